// Strict or lenient: each place where parsers of requests are known to differ, and the verdict of
// this one (RFC 9110, RFC 9112). docs/http.md has the summary for users.
#include "wire/http1/transcript.hpp"
#ifdef EDDY_LLHTTP
#include "wire/http1/llhttp_peer.hpp"
#endif

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::http1 {
namespace {

using namespace std::string_literals;

struct disputed {
    const char* what;
    std::string request;
    int status;  // of the refusal; 0: it is accepted
};

const std::string host = "Host: h\r\n\r\n";
const std::string post = "POST / HTTP/1.1\r\nHost: h\r\n";
const std::string chunks = post + "Transfer-Encoding: chunked\r\n\r\n";

std::vector<disputed> disputed_requests() {
    return {
        // Methods: any token (RFC 9110, 9.1); for methods without a route the router answers.
        // llhttp and nginx have lists, hyper takes tokens.
        {"a method of others", "PROPFIND / HTTP/1.1\r\n" + host, 0},
        {"an unknown method", "FROBNICATE / HTTP/1.1\r\n" + host, 0},
        {"a method in lower case is another one", "get / HTTP/1.1\r\n" + host, 0},
        {"a method of one letter", "! / HTTP/1.1\r\n" + host, 0},
        {"a method that is no token", "G[T / HTTP/1.1\r\n" + host, 400},
        {"an empty method", " / HTTP/1.1\r\n" + host, 400},

        // Versions: a higher minor one is read as 1.1 (RFC 9110, 2.5), as nginx does; llhttp and
        // hyper refuse it. Another major one is another protocol.
        {"version 1.0", "GET / HTTP/1.0\r\n\r\n", 0},
        {"version 1.2", "GET / HTTP/1.2\r\n" + host, 0},
        {"version 1.9", "GET / HTTP/1.9\r\n" + host, 0},
        {"version 1.2 without a host", "GET / HTTP/1.2\r\n\r\n", 400},
        {"version 1.10", "GET / HTTP/1.10\r\n" + host, 400},
        {"version 1.01", "GET / HTTP/1.01\r\n" + host, 400},
        {"version 2.0", "GET / HTTP/2.0\r\n" + host, 505},
        {"version 2.0 without its minor number", "GET / HTTP/2\r\n" + host, 400},
        {"version 3.0", "GET / HTTP/3.0\r\n" + host, 505},
        {"version 0.9", "GET / HTTP/0.9\r\n" + host, 505},
        {"a request of HTTP/0.9", "GET /\r\n\r\n", 400},
        {"a version in lower case", "GET / http/1.1\r\n" + host, 400},

        // Content-Length: once (RFC 9110, 8.6 allows either), as llhttp and nginx have it; hyper
        // takes equal ones.
        {"the same length twice", post + "Content-Length: 1\r\nContent-Length: 1\r\n\r\nx", 400},
        {"the same length in a list", post + "Content-Length: 1, 1\r\n\r\nx", 400},
        {"the same number twice", post + "Content-Length: 1\r\nContent-Length: 01\r\n\r\nx", 400},
        {"another length", post + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nx", 400},
        {"a tab behind the length", post + "Content-Length: 1\t\r\n\r\nx", 0},
        {"leading zeros", post + "Content-Length: 0001\r\n\r\nx", 0},
        {"a length of GET", "GET / HTTP/1.1\r\nContent-Length: 1\r\nHost: h\r\n\r\nx", 0},

        // Transfer-Encoding: chunked at its end, or the end of the request is unknown (RFC 9112,
        // 6.3); another coding before it is understood by none (6.1).
        {"chunked in another case", post + "Transfer-Encoding: Chunked\r\n\r\n0\r\n\r\n", 0},
        {"empty codings", post + "Transfer-Encoding: ,chunked,\r\n\r\n0\r\n\r\n", 0},
        {"a coding before chunked", post + "Transfer-Encoding: gzip, chunked\r\n\r\n", 501},
        {"a coding behind chunked", post + "Transfer-Encoding: chunked, gzip\r\n\r\n", 400},
        {"a coding in place of chunked", post + "Transfer-Encoding: gzip\r\n\r\n", 400},
        {"identity", post + "Transfer-Encoding: identity\r\n\r\n", 400},

        // Extensions of chunks: the grammar of RFC 9112 (7.1.1) alone, which has blanks around ;
        // and
        // =. Lenient parsers skip whatever is there, a line's end in quotes included.
        {"an extension", chunks + "1;a=b\r\nx\r\n0\r\n\r\n", 0},
        {"an extension in quotes", chunks + "1;a=\"b c\"\r\nx\r\n0\r\n\r\n", 0},
        {"an extension behind a blank", chunks + "1 ;a\r\nx\r\n0\r\n\r\n", 0},
        {"an extension without a name", chunks + "1;\r\nx\r\n0\r\n\r\n", 400},
        {"an extension without a value", chunks + "1;a=\r\nx\r\n0\r\n\r\n", 400},
        {"an extension of open quotes", chunks + "1;a=\"b\r\nx\r\n0\r\n\r\n", 400},
        {"an extension that is no token", chunks + "1;a/b\r\nx\r\n0\r\n\r\n", 400},
        {"a blank behind an extension", chunks + "1;a \r\nx\r\n0\r\n\r\n", 400},

        // Field lines: no white space before the colon (RFC 9112, 5.1), no empty name, no fold.
        {"a space before the colon", "GET / HTTP/1.1\r\nX : y\r\n" + host, 400},
        {"a tab before the colon", "GET / HTTP/1.1\r\nX\t: y\r\n" + host, 400},
        {"a space before the name", "GET / HTTP/1.1\r\n X: y\r\n" + host, 400},
        {"an empty name", "GET / HTTP/1.1\r\n: y\r\n" + host, 400},
        {"a name of white space", "GET / HTTP/1.1\r\n : y\r\n" + host, 400},
        {"no name at all", "GET / HTTP/1.1\r\n:\r\n" + host, 400},
        {"an empty value", "GET / HTTP/1.1\r\nX:\r\n" + host, 0},
        {"a folded value", "GET / HTTP/1.1\r\nX: y\r\n z\r\n" + host, 400},
        {"a value beyond ASCII", "GET / HTTP/1.1\r\nX: \xc3\xa4\r\n" + host, 0},

        // Targets: the four forms (RFC 9112, 3.2), each where it belongs.
        {"an absolute target", "GET http://h/a HTTP/1.1\r\n" + host, 0},
        {"an absolute target of another host", "GET http://other/a HTTP/1.1\r\n" + host, 0},
        {"an absolute target without a host", "GET http://h/a HTTP/1.1\r\n\r\n", 400},
        {"an absolute target without a path", "GET http://h HTTP/1.1\r\n" + host, 0},
        {"an absolute target of an empty host", "GET http:///a HTTP/1.1\r\n" + host, 400},
        {"an absolute target of two ports", "GET http://h:1:2/a HTTP/1.1\r\n" + host, 400},
        {"an absolute target of a port alone", "GET http://:80/a HTTP/1.1\r\n" + host, 400},
        {"an absolute target of an open bracket", "GET http://[::1/a HTTP/1.1\r\n" + host, 400},
        {"an absolute target of no address", "GET http://[zz]/a HTTP/1.1\r\n" + host, 400},
        {"an absolute target of an address", "GET http://[::1]:80/a HTTP/1.1\r\n" + host, 0},
        {"an authority for CONNECT", "CONNECT h:80 HTTP/1.1\r\n" + host, 0},
        {"an authority for GET", "GET h:80 HTTP/1.1\r\n" + host, 400},
        {"a path for CONNECT", "CONNECT /a HTTP/1.1\r\n" + host, 400},
        {"an asterisk for OPTIONS", "OPTIONS * HTTP/1.1\r\n" + host, 0},
        {"an asterisk for GET", "GET * HTTP/1.1\r\n" + host, 400},
        {"a target without a slash", "GET a HTTP/1.1\r\n" + host, 400},
        {"a fragment", "GET /a#b HTTP/1.1\r\n" + host, 400},
        {"a target beyond ASCII", "GET /\xc3\xa4 HTTP/1.1\r\n" + host, 400},
        {"two spaces before the target", "GET  / HTTP/1.1\r\n" + host, 400},

        // Host: one, except in HTTP/1.0, and well-formed (RFC 9112, 3.2). llhttp leaves its value
        // to
        // the caller; a proxy that routes by it and a server behind it could differ about its end.
        {"no host", "GET / HTTP/1.1\r\n\r\n", 400},
        {"no host in HTTP/1.0", "GET / HTTP/1.0\r\n\r\n", 0},
        {"an empty host", "GET / HTTP/1.1\r\nHost:\r\n\r\n", 0},
        {"the same host twice", "GET / HTTP/1.1\r\nHost: h\r\n" + host, 400},
        {"two hosts", "GET / HTTP/1.1\r\nHost: other\r\n" + host, 400},
        {"two hosts in HTTP/1.0", "GET / HTTP/1.0\r\nHost: other\r\n" + host, 400},
        {"a list of hosts", "GET / HTTP/1.1\r\nHost: a, b\r\n\r\n", 400},
        {"a port of letters", "GET / HTTP/1.1\r\nHost: a:asd\r\n\r\n", 400},
        {"two ports", "GET / HTTP/1.1\r\nHost: 1.2.3.4:9000:80\r\n\r\n", 400},
        {"a port alone", "GET / HTTP/1.1\r\nHost: :80\r\n\r\n", 400},
        {"an empty port", "GET / HTTP/1.1\r\nHost: h:\r\n\r\n", 0},
        {"an open bracket", "GET / HTTP/1.1\r\nHost: [::1\r\n\r\n", 400},
        {"no address in brackets", "GET / HTTP/1.1\r\nHost: [zz]\r\n\r\n", 400},
        {"an address without brackets", "GET / HTTP/1.1\r\nHost: ::1\r\n\r\n", 400},
        {"an address with a zone", "GET / HTTP/1.1\r\nHost: [fe80::1%eth0]\r\n\r\n", 400},
        {"an address of a later version", "GET / HTTP/1.1\r\nHost: [v1.a]:80\r\n\r\n", 0},
        {"an encoded name", "GET / HTTP/1.1\r\nHost: %41\r\n\r\n", 0},
        {"a name that is badly encoded", "GET / HTTP/1.1\r\nHost: %4\r\n\r\n", 400},

        // Ends of lines: CRLF alone, one blank line ahead (RFC 9112, 2.2 allows both).
        {"a blank line ahead", "\r\nGET / HTTP/1.1\r\n" + host, 0},
        {"two blank lines ahead", "\r\n\r\nGET / HTTP/1.1\r\n" + host, 400},
        {"a bare LF", "GET / HTTP/1.1\nHost: h\r\n\r\n", 400},
        {"a bare CR", "GET / HTTP/1.1\r\nX: a\rb\r\n" + host, 400},
    };
}

/// The status of the refusal, or 0 when a request comes whole.
int verdict(std::string_view input, std::size_t piece) {
    request_parser parser;
    bool is_whole = false;
    for (std::size_t at = 0; at < input.size();) {
        const std::size_t end = std::min(input.size(), at + piece);
        for (;;) {
            const step one = parser.parse(input.substr(at, end - at));
            at += one.consumed;
            if (one.what == event::need_more) break;
            if (one.what == event::error) return parser.error().status;
            is_whole |= one.what == event::end;
        }
    }
    EXPECT_TRUE(is_whole) << input;
    return 0;
}

TEST(http1_leniency, is_decided_for_each_disputed_request) {
    for (const disputed& each : disputed_requests())
        for (const std::size_t piece : {each.request.size(), std::size_t{1}, std::size_t{3}})
            EXPECT_EQ(verdict(each.request, piece), each.status)
                << each.what << " in pieces of " << piece;
}

#ifdef EDDY_LLHTTP
TEST(http1_leniency, accepts_nothing_that_llhttp_reads_differently) {
    for (const disputed& each : disputed_requests())
        if (each.status == 0) EXPECT_EQ(difference_to_llhttp(each.request), "") << each.what;
}
#endif

TEST(http1_leniency, versions_above_1_1_are_1_1) {
    for (const char digit : "23456789"s) {
        request_parser parser;
        const std::string request = "GET / HTTP/1."s + digit + "\r\n" + host;
        EXPECT_EQ(parser.parse(request).what, event::head) << digit;
        EXPECT_TRUE(parser.head().keep_alive) << digit;
    }
}

// A server that repeats its length harms itself alone, and some do: browsers, curl and Go take it.
TEST(http1_leniency, of_a_length_that_a_response_repeats) {
    const auto answered = [](std::string_view lengths) {
        response_parser parser;
        return transcript(parser, "HTTP/1.1 200 OK\r\n" + std::string(lengths) + "\r\nx", {});
    };
    EXPECT_TRUE(answered("Content-Length: 1\r\nContent-Length: 1\r\n").ends_with("end\nidle\n"));
    EXPECT_TRUE(answered("Content-Length: 1\r\nContent-Length: 2\r\n").starts_with("error 502 "));
}

}  // namespace
}  // namespace eddy::http1
