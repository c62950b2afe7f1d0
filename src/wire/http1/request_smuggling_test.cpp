// Request smuggling: inputs about whose end two parsers could disagree. Each is refused, whole and
// byte by byte, and no second request comes of it.
#include "wire/http1/transcript.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace eddy::http1 {
namespace {

struct smuggled {
    const char* what;
    std::string fields;  // behind "Host: h"
    std::string body;
    int status;
};

const std::string chunked = "Transfer-Encoding: chunked\r\n";
const std::string hidden = "GET /hidden HTTP/1.1\r\nHost: h\r\n\r\n";

std::vector<smuggled> vectors() {
    using namespace std::string_literals;
    return {
        {"CL.CL, different", "Content-Length: 5\r\nContent-Length: 6\r\n", "", 400},
        {"CL.CL, the same", "Content-Length: 5\r\nContent-Length: 5\r\n", "hello", 400},
        {"CL.CL in one field", "Content-Length: 5, 5\r\n", "", 400},
        {"CL.TE", "Content-Length: 6\r\n" + chunked, "0\r\n\r\nG", 400},
        {"TE.CL", chunked + "Content-Length: 4\r\n", "5c\r\n", 400},
        {"CL.0 behind TE", chunked + "Content-Length: 0\r\n", "0\r\n\r\n", 400},
        {"TE.TE, the second unknown", chunked + "Transfer-Encoding: cow\r\n", "", 400},
        {"TE.TE, the first unknown", "Transfer-Encoding: cow\r\n" + chunked, "0\r\n\r\n", 501},
        {"TE.TE, twice", chunked + chunked, "", 400},
        {"TE.TE in one field", "Transfer-Encoding: chunked, chunked\r\n", "", 400},
        {"TE with a prefix", "Transfer-Encoding: xchunked\r\n", "", 400},
        {"TE in quotes", "Transfer-Encoding: \"chunked\"\r\n", "", 400},
        {"TE identity first", "Transfer-Encoding: identity, chunked\r\n", "", 501},
        {"TE not final", "Transfer-Encoding: chunked, gzip\r\n", "", 400},
        {"TE, vertical tab", "Transfer-Encoding: \x0b"s + "chunked\r\n", "", 400},
        {"TE, NUL", "Transfer-Encoding: chunked\0\r\n"s, "", 400},
        {"TE, empty", "Transfer-Encoding:\r\n", "", 400},
        {"TE, space before the colon", "Transfer-Encoding : chunked\r\n", "", 400},
        {"TE, tab before the colon", "Transfer-Encoding\t: chunked\r\n", "", 400},
        {"TE, space before the name", " Transfer-Encoding: chunked\r\n", "", 400},
        {"TE, folded", "Transfer-Encoding:\r\n chunked\r\n", "", 400},
        {"TE, folded behind another", "X: y\r\n Transfer-Encoding: chunked\r\n", "", 400},
        {"TE behind a bare LF", "X: y\nTransfer-Encoding: chunked\r\n", "", 400},
        {"TE behind a bare CR", "X: y\rTransfer-Encoding: chunked\r\n", "", 400},
        {"TE behind a NUL", "X: y\0Transfer-Encoding: chunked\r\n"s, "", 400},
        {"TE, bare LF at its end", "Transfer-Encoding: chunked\n", "", 400},
        {"TE, underscore and CL", "Transfer_Encoding: chunked\r\nContent-Length: x\r\n", "", 400},
        {"CL, negative", "Content-Length: -1\r\n", "", 400},
        {"CL, plus", "Content-Length: +5\r\n", "", 400},
        {"CL, hexadecimal", "Content-Length: 0x5\r\n", "", 400},
        {"CL, space within", "Content-Length: 5 5\r\n", "", 400},
        {"CL, empty", "Content-Length:\r\n", "", 400},
        {"CL, space before the colon", "Content-Length : 5\r\n", "", 400},
        {"CL, 2^64", "Content-Length: 18446744073709551616\r\n", "", 413},
        {"CL, 2^64+5", "Content-Length: 18446744073709551621\r\n", "", 413},
        {"chunk size, 17 digits", chunked, "00000000000000005\r\nhello\r\n0\r\n\r\n", 400},
        {"chunk size, 2^64", chunked, "10000000000000000\r\n", 400},
        {"chunk size, 2^64-1", chunked, "ffffffffffffffff\r\n", 413},
        {"chunk size, negative", chunked, "-1\r\n", 400},
        {"chunk size, plus", chunked, "+5\r\nhello\r\n0\r\n\r\n", 400},
        {"chunk size, 0x", chunked, "0x5\r\nhello\r\n0\r\n\r\n", 400},
        {"chunk size, space before", chunked, " 5\r\nhello\r\n0\r\n\r\n", 400},
        {"chunk size, space behind", chunked, "5 \r\nhello\r\n0\r\n\r\n", 400},
        {"chunk size, missing", chunked, "\r\nhello\r\n0\r\n\r\n", 400},
        {"chunk size, bare LF", chunked, "5\nhello\r\n0\r\n\r\n", 400},
        {"chunk longer than its size", chunked, "4\r\nhello\r\n0\r\n\r\n", 400},
        {"chunk data, bare LF", chunked, "5\r\nhello\n0\r\n\r\n", 400},
        {"chunk extension, bare LF", chunked, "5;a\nhello\r\n0\r\n\r\n", 400},
        {"chunk extension, bare CR", chunked, "5;a\rb\r\nhello\r\n0\r\n\r\n", 400},
        {"chunk extension, no name", chunked, "5;\r\nhello\r\n0\r\n\r\n", 400},
        {"chunk extension, open quotes", chunked, "5;a=\"\r\nhello\r\n0\r\n\r\n", 400},
        {"chunk extension, too long", chunked, "5;" + std::string(300, 'a') + "\r\n", 400},
        {"last chunk, bare LF", chunked, "0\r\n\n", 400},
        {"trailer, space before the colon", chunked, "0\r\nX : y\r\n\r\n", 400},
        {"trailer, folded", chunked, "0\r\nX: y\r\n z\r\n\r\n", 400},
        {"trailer, bare LF", chunked, "0\r\nX: y\nZ: z\r\n\r\n", 400},
        {"Host, twice", "Host: other\r\n", "", 400},
        {"Host, twice in other case", "hOST: h\r\n", "", 400},
    };
}

// Status of the first error, and how many requests ended before it.
struct verdict {
    int status = 0;
    int ended = 0;
};

verdict judge(std::string_view input, std::size_t piece) {
    request_parser parser;
    verdict found;
    for (std::size_t at = 0; at < input.size();) {
        const std::size_t end = std::min(input.size(), at + piece);
        for (;;) {
            const step one = parser.parse(input.substr(at, end - at));
            at += one.consumed;
            if (one.what == event::need_more) break;
            if (one.what == event::end) ++found.ended;
            if (one.what == event::error) {
                found.status = parser.error().status;
                return found;
            }
        }
    }
    return found;
}

TEST(http1_smuggling, is_refused_before_a_request_ends) {
    for (const smuggled& each : vectors()) {
        const std::string input =
            "POST / HTTP/1.1\r\nHost: h\r\n" + each.fields + "\r\n" + each.body + hidden;
        for (const std::size_t piece : {input.size(), std::size_t{1}, std::size_t{7}}) {
            const verdict found = judge(input, piece);
            EXPECT_EQ(found.status, each.status) << each.what << " in pieces of " << piece;
            EXPECT_EQ(found.ended, 0) << each.what << " in pieces of " << piece;
        }
    }
}

TEST(http1_smuggling, of_transfer_encoding_in_http_1_0_is_refused) {
    const std::string input = "POST / HTTP/1.0\r\nHost: h\r\n" + chunked + "\r\n0\r\n\r\n" + hidden;
    EXPECT_EQ(judge(input, input.size()).status, 400);
    EXPECT_EQ(judge(input, 1).status, 400);
}

TEST(http1_smuggling, content_is_never_a_request) {
    const std::string size = std::to_string(hidden.size());
    const std::string sized = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: " + size + "\r\n\r\n";
    EXPECT_EQ(judge(sized + hidden, 1).ended, 1);
    EXPECT_EQ(judge(sized + hidden, 1000).ended, 1);
    // A field that only looks like the one of the framing.
    const std::string alike =
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer_Encoding: chunked\r\nContent-Length: " + size +
        "\r\n\r\n";
    EXPECT_EQ(judge(alike + hidden, 1000).ended, 1);
}

TEST(http1_smuggling, unbounded_chunk_extensions_are_refused) {
    // The limit is one of a line, so each of many chunks may have some.
    limits l;
    request_parser parser(l);
    const std::string head = "POST / HTTP/1.1\r\nHost: h\r\n" + chunked + "\r\n";
    EXPECT_EQ(parser.parse(head).what, event::head);
    const std::string more(64, 'e');
    step one = parser.parse("5;");
    std::size_t sent = 0;
    while (one.what == event::need_more && sent < 10 * l.chunk_line) {
        one = parser.parse(more);
        sent += more.size();
    }
    EXPECT_EQ(one.what, event::error);
    EXPECT_LE(sent, l.chunk_line + more.size());
}

}  // namespace
}  // namespace eddy::http1
