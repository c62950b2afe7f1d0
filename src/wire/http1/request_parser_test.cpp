// Requests: framing, what is refused with which status, limits, and input cut anywhere.
#include <eddy/base/random.hpp>

#include "base/test_seed.hpp"
#include "wire/http1/transcript.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace eddy::http1 {
namespace {

std::string parse_whole(std::string_view input, const limits& l = {}) {
    request_parser parser(l);
    return transcript(parser, input, {});
}

// Judges the input whole, cut at each single place and cut everywhere: always the same.
std::string parse_cut(std::string_view input, const limits& l = {}) {
    const std::string whole = parse_whole(input, l);
    std::vector<std::size_t> everywhere;
    for (std::size_t at = 1; at < input.size(); ++at) {
        everywhere.push_back(at);
        request_parser parser(l);
        EXPECT_EQ(transcript(parser, input, {at}), whole) << "cut at " << at;
    }
    request_parser parser(l);
    EXPECT_EQ(transcript(parser, input, everywhere), whole) << "cut everywhere";
    return whole;
}

// The status that a request with this line among its fields is refused with; 0 when it is not.
int status_of(std::string_view input, const limits& l = {}) {
    request_parser parser(l);
    for (std::size_t used = 0;;) {
        const step one = parser.parse(input.substr(used));
        used += one.consumed;
        if (one.what == event::error) {
            EXPECT_FALSE(parser.error().what.empty());
            const step again = parser.parse(input);
            EXPECT_EQ(again.what, event::error) << "an error is final";
            EXPECT_EQ(again.consumed, 0u);
            EXPECT_EQ(parser.finish(), event::error);
            return parser.error().status;
        }
        if (one.what == event::need_more) return 0;
    }
}

int status_with(std::string_view fields, std::string_view body = {}) {
    return status_of("POST / HTTP/1.1\r\nHost: h\r\n" + std::string(fields) + "\r\n" +
                     std::string(body));
}

TEST(http1_request, reads_a_plain_get) {
    EXPECT_EQ(parse_cut("GET /a?b HTTP/1.1\r\nHost: h\r\nAccept:  */* \t\r\nX:\r\n\r\n"),
              "head GET /a?b 1.1 keep-alive [Host=h] [Accept=*/*] [X=]\nend\nidle\n");
}

TEST(http1_request, reads_a_sized_body) {
    EXPECT_EQ(parse_cut("POST / HTTP/1.1\r\nhost:h\r\ncontent-length: 5\r\n\r\nhello"),
              "head POST / 1.1 keep-alive length=5 [host=h] [content-length=5]\n"
              "body 'hello'\nend\nidle\n");
    EXPECT_EQ(parse_cut("PUT / HTTP/1.1\r\nHost:\r\nContent-Length: 0\r\n\r\n"),
              "head PUT / 1.1 keep-alive length=0 [Host=] [Content-Length=0]\nend\nidle\n");
}

TEST(http1_request, reads_a_chunked_body_with_extensions_and_trailers) {
    EXPECT_EQ(parse_cut("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: Chunked\r\n\r\n"
                        "5\r\nhello\r\n00a ;n=\"v\"\r\n, wide wor\r\n2;x\r\nld\r\n"
                        "0\r\nDigest: abc\r\n\r\n"),
              "head POST / 1.1 keep-alive chunked [Host=h] [Transfer-Encoding=Chunked]\n"
              "body 'hello, wide world'\nend\ntrailer [Digest=abc]\nidle\n");
}

TEST(http1_request, tells_pipelined_requests_apart) {
    EXPECT_EQ(parse_cut("POST /1 HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc"
                        "POST /2 HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
                        "1\r\nx\r\n0\r\n\r\n"
                        "\r\nGET /3 HTTP/1.0\r\n\r\nGET /4 HT"),
              "head POST /1 1.1 keep-alive length=3 [Host=h] [Content-Length=3]\nbody 'abc'\nend\n"
              "head POST /2 1.1 keep-alive chunked [Host=h] [Transfer-Encoding=chunked]\n"
              "body 'x'\nend\nhead GET /3 1.0\nend\nopen\n");
}

TEST(http1_request, says_exactly_where_a_message_ends) {
    const std::string first = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab";
    const std::string input = first + "GET /next";
    request_parser parser;
    std::size_t used = 0;
    for (step one; one.what != event::end;) {
        one = parser.parse(std::string_view(input).substr(used));
        used += one.consumed;
    }
    EXPECT_EQ(used, first.size());
    EXPECT_EQ(parser.head().headers.find("host"), "h") << "the head outlives the end";
    EXPECT_EQ(parser.parse({}).what, event::need_more);
    EXPECT_EQ(parser.head().method, "POST") << "until the next message begins";
    EXPECT_EQ(parser.parse("GET /next").what, event::need_more);
    EXPECT_EQ(parser.head().method, "");
}

TEST(http1_request, decides_what_keeps_a_connection) {
    const auto keeps = [](std::string_view version, std::string_view fields) {
        request_parser parser;
        const std::string input =
            "GET / HTTP/" + std::string(version) + "\r\nHost: h\r\n" + std::string(fields) + "\r\n";
        EXPECT_EQ(parser.parse(input).what, event::head);
        return parser.head().keep_alive;
    };
    EXPECT_TRUE(keeps("1.1", ""));
    EXPECT_TRUE(keeps("1.9", "")) << "a higher minor version is read as 1.1";
    EXPECT_FALSE(keeps("1.1", "Connection: CLOSE\r\n"));
    EXPECT_FALSE(keeps("1.1", "Connection: x, close\r\n"));
    EXPECT_FALSE(keeps("1.1", "Connection: keep-alive\r\nConnection: close\r\n"));
    EXPECT_TRUE(keeps("1.1", "Connection: closed\r\n"));
    EXPECT_FALSE(keeps("1.0", ""));
    EXPECT_TRUE(keeps("1.0", "Connection: Keep-Alive\r\n"));
    EXPECT_FALSE(keeps("1.0", "Connection: keep-alive, close\r\n"));
}

TEST(http1_request, flags_upgrades) {
    request_parser parser;
    EXPECT_EQ(parser
                  .parse("GET /chat HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\n"
                         "Connection: keep-alive, Upgrade\r\n\r\n")
                  .what,
              event::head);
    EXPECT_TRUE(parser.head().upgrade);
    request_parser other;
    EXPECT_EQ(other.parse("GET / HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\n\r\n").what,
              event::head);
    EXPECT_FALSE(other.head().upgrade);
}

TEST(http1_request, flags_who_waits_for_continue) {
    const auto expects = [](std::string_view version, std::string_view fields) {
        request_parser parser;
        const std::string input =
            "PUT / HTTP/" + std::string(version) + "\r\nHost: h\r\n" + std::string(fields) + "\r\n";
        EXPECT_EQ(parser.parse(input).what, event::head);
        return parser.head().expect_continue;
    };
    EXPECT_TRUE(expects("1.1", "Expect: 100-Continue\r\nContent-Length: 1\r\n"));
    EXPECT_TRUE(expects("1.1", "Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n"));
    EXPECT_FALSE(expects("1.1", "Expect: 100-continue\r\nContent-Length: 0\r\n"));
    EXPECT_FALSE(expects("1.1", "Expect: 100-continue\r\n"));
    EXPECT_FALSE(expects("1.1", "Expect: something\r\nContent-Length: 1\r\n"));
    EXPECT_FALSE(expects("1.0", "Expect: 100-continue\r\nContent-Length: 1\r\n"));
}

TEST(http1_request, refuses_a_declared_body_before_continue_is_sent) {
    request_parser parser;
    parser.set_body_limit(9);
    EXPECT_EQ(parser
                  .parse("PUT / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n"
                         "Content-Length: 10\r\n\r\n")
                  .what,
              event::head);
    EXPECT_EQ(parser.parse({}).what, event::error);
    EXPECT_EQ(parser.error().status, 413);
    request_parser raised;
    raised.set_body_limit(9);
    const std::string_view head = "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n";
    EXPECT_EQ(raised.parse(head).what, event::head);
    raised.set_body_limit(10);
    EXPECT_EQ(raised.parse("0123456789").what, event::body) << "a route may allow more";
    EXPECT_EQ(raised.parse({}).what, event::end);
}

TEST(http1_request, refuses_malformed_request_lines) {
    for (const char* line : {"GET",
                             "GET /",
                             "GET / ",
                             "GET  / HTTP/1.1",
                             "GET /  HTTP/1.1",
                             " GET / HTTP/1.1",
                             "GET\t/ HTTP/1.1",
                             "G(T / HTTP/1.1",
                             "/ HTTP/1.1",
                             "GET / HTTP/1.1 ",
                             "GET / http/1.1",
                             "GET / HTTP/1",
                             "GET / HTTP/1.10",
                             "GET / HTTP/x.1",
                             "GET / HTTP1.1",
                             "GET /a b HTTP/1.1",
                             "GET # HTTP/1.1",
                             "GET * HTTP/1.1",
                             "GET h:80 HTTP/1.1",
                             "CONNECT / HTTP/1.1",
                             "G\rT / HTTP/1.1",
                             "GET /\x01 HTTP/1.1",
                             "GET / \xff HTTP/1.1"}) {
        EXPECT_EQ(status_of(std::string(line) + "\r\nHost: h\r\n\r\n"), 400) << line;
    }
    using namespace std::string_literals;
    EXPECT_EQ(status_of("GET /\0 HTTP/1.1\r\n"s), 400);
    EXPECT_EQ(status_of("\x16\x03\x01\x02\0\x01\r\n"s), 400) << "TLS on a plain port";
}

TEST(http1_request, refuses_other_versions) {
    EXPECT_EQ(status_of("GET / HTTP/2.0\r\n"), 505);
    EXPECT_EQ(status_of("GET / HTTP/0.9\r\n"), 505);
    EXPECT_EQ(status_of("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 505);
    EXPECT_EQ(status_of("GET / HTTP/1.7\r\nHost: h\r\n\r\n"), 0);
}

TEST(http1_request, accepts_one_blank_line_before_a_request) {
    static_assert(blank_line_limit == 1);
    EXPECT_EQ(status_of("\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n"), 0);
    EXPECT_EQ(status_of("\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n"), 400);
}

TEST(http1_request, accepts_crlf_only) {
    EXPECT_EQ(status_of("GET / HTTP/1.1\nHost: h\r\n\r\n"), 400);
    EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: h\n\r\n"), 400);
    EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: h\r\n\n"), 400);
    EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: h\rX: y\r\n\r\n"), 400);
    EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: h\r\r\n\r\n"), 400);
    EXPECT_EQ(status_with("Transfer-Encoding: chunked\r\n", "1\nx\r\n0\r\n\r\n"), 400);
    EXPECT_EQ(status_with("Transfer-Encoding: chunked\r\n", "1\r\nx\n0\r\n\r\n"), 400);
    EXPECT_EQ(status_with("Transfer-Encoding: chunked\r\n", "1\r\nx\r\n0\r\n\n"), 400);
}

TEST(http1_request, refuses_malformed_fields) {
    using namespace std::string_literals;
    for (const std::string& field :
         {"X : y"s, "X\t: y"s, ": y"s, " X: y"s, "X: y\r\n folded"s, "X: y\r\n\tfolded"s,
          "no colon"s, "X y: z"s, "X: a\0b"s, "X: a\x01"s, "X: \x7f"s, "X: a\rb"s, "\xc3\xa4: y"s,
          "X(: y"s}) {
        EXPECT_EQ(status_with(field + "\r\n"), 400) << field;
    }
    EXPECT_EQ(status_of("GET / HTTP/1.1\r\n Host: h\r\n\r\n"), 400) << "a fold of the first line";
    EXPECT_EQ(status_with("X: \xc3\xa4\t!\r\n"), 0);
}

TEST(http1_request, wants_one_well_formed_host) {
    EXPECT_EQ(status_of("GET / HTTP/1.1\r\n\r\n"), 400);
    EXPECT_EQ(status_of("GET / HTTP/1.0\r\n\r\n"), 0);
    EXPECT_EQ(status_with("Host: h\r\n"), 400) << "twice the same";
    EXPECT_EQ(status_of("GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n"), 400);
    for (const char* host : {"a b", "a/b", "u@h", "a?b", "a#b", "a\\b", "\xc3\xa4"}) {
        EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: " + std::string(host) + "\r\n\r\n"), 400)
            << host;
    }
}

// The grammar itself is in authority_test.cpp.
TEST(http1_request, judges_a_host_the_same_however_it_is_cut) {
    for (const char* host : {"a:asd", "1.2.3.4:9000:80", "[::1", "[zz]", ":80", ":", "a%2", "[]"}) {
        for (const char* version : {"1.1", "1.0"}) {
            const std::string request = "GET / HTTP/" + std::string(version) +
                                        "\r\nHost: " + std::string(host) + "\r\n\r\n";
            EXPECT_EQ(parse_cut(request), "error 400 the Host field is malformed\n") << request;
        }
    }
    for (const char* host :
         {"", "localhost", "127.0.0.1:80", "[::1]:8080", "a-b_c.example", "a:"}) {
        const std::string field = "Host: " + std::string(host);
        EXPECT_EQ(parse_cut("GET / HTTP/1.1\r\n" + field + "\r\n\r\n"),
                  "head GET / 1.1 keep-alive [Host=" + std::string(host) + "]\nend\nidle\n");
    }
}

TEST(http1_request, refuses_an_absolute_target_with_a_malformed_authority) {
    for (const char* authority : {"a:asd", "1.2.3.4:9000:80", "[::1", "[zz]", ":80", "u@h", ""}) {
        EXPECT_EQ(
            parse_cut("GET http://" + std::string(authority) + "/x HTTP/1.1\r\nHost: h\r\n\r\n"),
            "error 400 the request's target is malformed\n")
            << authority;
    }
    EXPECT_TRUE(parse_cut("GET http://[::1]:80/x HTTP/1.1\r\nHost: h\r\n\r\n")
                    .starts_with("head GET http://[::1]:80/x 1.1 "));
}

TEST(http1_request, refuses_doubtful_lengths) {
    for (const char* value :
         {"", "x", "+5", "-1", "0x5", "5 5", "5,5", "5.0", "5;", "1e3", "\xb2"}) {
        EXPECT_EQ(status_with("Content-Length: " + std::string(value) + "\r\n"), 400) << value;
    }
    EXPECT_EQ(status_with("Content-Length: 1\r\nContent-Length: 2\r\n"), 400);
    EXPECT_EQ(status_with("Content-Length: 1\r\ncontent-length: 1\r\n", "x"), 400) << "the same";
    EXPECT_EQ(status_with("Content-Length: 18446744073709551616\r\n"), 413);
    EXPECT_EQ(status_with("Content-Length: 18446744073709551615\r\n"), 413);
    EXPECT_EQ(status_with("Content-Length: 9223372036854775808\r\n"), 413);
    EXPECT_EQ(status_with("Content-Length: 99999999999999999999999999999\r\n"), 413);
}

TEST(http1_request, refuses_doubtful_transfer_codings) {
    EXPECT_EQ(status_with("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n"), 400);
    EXPECT_EQ(status_with("Transfer-Encoding: chunked\r\nContent-Length: 1\r\n"), 400);
    EXPECT_EQ(status_with("Transfer-Encoding: chunked, chunked\r\n"), 400);
    EXPECT_EQ(status_with("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), 400);
    EXPECT_EQ(status_with("Transfer-Encoding:\r\n"), 400);
    EXPECT_EQ(status_with("Transfer-Encoding: ,\r\n"), 400);
    for (const char* value : {"gzip", "identity", "xchunked", "chunked;q=1", "chunked x",
                              "\"chunked\"", "chunked, identity", "chunked, gzip", "gzip, gzip",
                              "chunked, gzip, chunked", "chunked, x, chunked, y"}) {
        EXPECT_EQ(status_with("Transfer-Encoding: " + std::string(value) + "\r\n"), 400) << value;
    }
    for (const char* value : {"gzip, chunked", "identity, chunked", "a, b;q=\"c\", Chunked,"})
        EXPECT_EQ(status_with("Transfer-Encoding: " + std::string(value) + "\r\n"), 501) << value;
    EXPECT_EQ(status_of("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), 400);
}

// All lines of the field are one list, and chunked must be its end (RFC 9112, 6.3).
TEST(http1_request, judges_transfer_codings_by_the_last_however_they_are_cut) {
    const auto judged = [](std::string_view fields) {
        return parse_cut("POST / HTTP/1.1\r\nHost: h\r\n" + std::string(fields) + "\r\n");
    };
    constexpr std::string_view not_last = "error 400 the last transfer coding is not chunked\n";
    EXPECT_EQ(judged("Transfer-Encoding: chunked, gzip\r\n"), not_last);
    EXPECT_EQ(judged("Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n"), not_last);
    EXPECT_EQ(judged("Transfer-Encoding: gzip\r\nContent-Length: 1\r\n"), not_last);
    EXPECT_EQ(judged("Transfer-Encoding: gzip\r\nA: b\r\nTransfer-Encoding: chunked\r\n"),
              "error 501 a transfer coding is unknown\n");
    EXPECT_EQ(judged("Transfer-Encoding: gzip, chunked\r\nContent-Length: 1\r\n"),
              "error 400 both Content-Length and Transfer-Encoding are given\n");
    EXPECT_TRUE(judged("Transfer-Encoding: ,chunked ,\r\n").starts_with("head POST / 1.1 "));
}

TEST(http1_request, refuses_malformed_chunks) {
    for (const char* body :
         {"\r\n", "g\r\n", "-1\r\n", "+1\r\n", "0x1\r\n", " 1\r\n", "1 \r\n", "1 x\r\n", "1,\r\n",
          "00000000000000001\r\n", "fffffffffffffffff\r\n", "1\r\nxy\r\n", "1\r\nx0\r\n\r\n",
          "1;a\rb\r\n", "1;\x01\r\n", "0\r\nbad trailer\r\n\r\n", "0\r\nA: b\r\n c\r\n\r\n"}) {
        EXPECT_EQ(status_with("Transfer-Encoding: chunked\r\n", body), 400) << body;
    }
    EXPECT_EQ(status_with("Transfer-Encoding: chunked\r\n", "ffffffffffffffff\r\n"), 413);
    EXPECT_EQ(status_with("Transfer-Encoding: chunked\r\n", "0000000000000001\r\nx\r\n0\r\n\r\n"),
              0);
}

// The grammar of RFC 9112 (7.1.1): ;name, ;name=token or ;name="text", with blanks around ; and =.
TEST(http1_request, takes_chunk_extensions_of_the_grammar_alone) {
    const auto judged = [](std::string_view extension) {
        return parse_cut("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1" +
                         std::string(extension) + "\r\nx\r\n0" + std::string(extension) +
                         "\r\n\r\n");
    };
    for (const char* extension :
         {";a", ";a;b", " ;a", "\t; \ta", ";a=b", ";a = b ; c", ";a=\"\"", ";a=\"b c;d=\\\"\\\\\"",
          ";a=\"\xc3\xa4\t\";b", ";!#$%&'*+-.^_`|~09=1", ";a=\"\\\xc3\\\t\""}) {
        EXPECT_TRUE(judged(extension).ends_with("body 'x'\nend\nidle\n")) << extension;
    }
    for (const char* extension :
         {";",          ";;",        ";a;",    "; ",        ";=",        ";=b",
          ";a=",        ";a=;b",     ";a=b=c", ";a b",      ";a ",       " ",
          ";a=b ",      ";a/b",      ";a=b/c", ";a,b",      ";a=\"",     ";a=\"b",
          ";a=\"b\\\"", ";a=\"b\"c", ";\"a\"", ";a=b\"c\"", ";\xc3\xa4", ";a=\xc3\xa4",
          "x",          ",a",        "=b",     " a;b",      ":a"}) {
        EXPECT_TRUE(judged(extension).ends_with("\nerror 400 a chunk's extension is malformed\n"))
            << extension;
    }
}

TEST(http1_request, refuses_a_malformed_extension_of_the_last_chunk) {
    const std::string head = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
    EXPECT_TRUE(parse_cut(head + "1;a\r\nx\r\n0;=\r\n\r\n")
                    .ends_with("body 'x'\nerror 400 a chunk's extension is malformed\n"));
}

// Limits: at each one a request passes, and one byte or field more does not.

TEST(http1_request_limits, first_line) {
    limits l;
    l.start_line = 40;
    const std::string fits = "GET /" + std::string(40 - 14, 'x') + " HTTP/1.1";
    ASSERT_EQ(fits.size(), 40u);
    EXPECT_EQ(status_of(fits + "\r\nHost: h\r\n\r\n", l), 0);
    EXPECT_EQ(status_of("GET /x" + fits.substr(5) + "\r\nHost: h\r\n\r\n", l), 414);
    EXPECT_EQ(status_of(std::string(41, 'G'), l), 0) << "CRLF may still follow";
    EXPECT_EQ(status_of(std::string(42, 'G'), l), 414) << "no end could save it";
    EXPECT_TRUE(
        parse_cut("GET /x" + fits.substr(5) + "\r\nHost: h\r\n\r\n", l).starts_with("error 414"));
    EXPECT_TRUE(parse_cut(fits + "x\nHost: h\r\n\r\n", l).starts_with("error 414"));
    EXPECT_TRUE(parse_cut(fits + "\nHost: h\r\n\r\n", l).starts_with("error 400"));
}

TEST(http1_request_limits, header_bytes) {
    limits l;
    l.header_bytes = 64;
    const auto request = [](std::size_t fields) {  // bytes of the fields, the blank line included
        return "GET / HTTP/1.1\r\nHost: h\r\nX: " + std::string(fields - 9 - 5 - 2, 'v') +
               "\r\n\r\n";
    };
    EXPECT_EQ(status_of(request(64), l), 0);
    EXPECT_EQ(status_of(request(65), l), 431);
    EXPECT_EQ(status_of(request(66), l), 431);
    EXPECT_EQ(status_of(request(67), l), 431);
    EXPECT_TRUE(parse_cut(request(64), l).ends_with("end\nidle\n"));
    for (std::size_t fields = 62; fields < 70; ++fields) parse_cut(request(fields), l);
    EXPECT_EQ(status_of("GET / HTTP/1.1\r\nX: " + std::string(1000, 'v'), l), 431);
    EXPECT_EQ(status_of("GET / HTTP/1.1\r\n" + std::string(1000, 'v'), l), 431);
}

TEST(http1_request_limits, header_count) {
    limits l;
    l.header_count = 3;
    EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: h\r\nA:\r\nB:\r\n\r\n", l), 0);
    EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: h\r\nA:\r\nB:\r\nC:\r\n\r\n", l), 431);
    EXPECT_EQ(limits().header_count, 100u);
    std::string many = "GET / HTTP/1.1\r\nHost: h\r\n";
    for (int i = 1; i < 100; ++i) many += "A: b\r\n";
    EXPECT_EQ(status_of(many + "\r\n"), 0);
    EXPECT_EQ(status_of(many + "A: b\r\n\r\n"), 431);
}

TEST(http1_request_limits, trailers_are_counted_anew) {
    limits l;
    l.header_count = 2;
    l.header_bytes = 40;
    const std::string head = "POST / HTTP/1.1\r\nHost:\r\nTransfer-Encoding:chunked\r\n\r\n0\r\n";
    EXPECT_EQ(status_of(head + "A: b\r\nC: d\r\n\r\n", l), 0);
    EXPECT_EQ(status_of(head + "A: b\r\nC: d\r\nE: f\r\n\r\n", l), 431);
    EXPECT_EQ(status_of(head + "A: " + std::string(40 - 5 - 2, 'v') + "\r\n\r\n", l), 0);
    EXPECT_EQ(status_of(head + "A: " + std::string(40 - 5 - 1, 'v') + "\r\n\r\n", l), 431);
}

TEST(http1_request_limits, sized_body) {
    limits l;
    l.body = 4;
    const std::string head = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: ";
    EXPECT_EQ(status_of(head + "4\r\n\r\nabcd", l), 0);
    EXPECT_EQ(status_of(head + "5\r\n\r\n", l), 413);
    l.body = 0;
    EXPECT_EQ(status_of(head + "0\r\n\r\n", l), 0);
    EXPECT_EQ(status_of(head + "1\r\n\r\n", l), 413);
}

TEST(http1_request_limits, chunked_body) {
    limits l;
    l.body = 4;
    const std::string head = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
    EXPECT_EQ(status_of(head + "1\r\na\r\n3\r\nbcd\r\n0\r\n\r\n", l), 0);
    EXPECT_EQ(status_of(head + "5\r\n", l), 413);
    EXPECT_EQ(status_of(head + "1\r\na\r\n4\r\n", l), 413);
    l.body = ~std::uint64_t{0};
    EXPECT_EQ(status_of(head + "1\r\na\r\nffffffffffffffff\r\n", l), 413) << "no overflow";
}

TEST(http1_request_limits, chunk_line) {
    limits l;
    l.chunk_line = 10;
    const std::string head = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
    EXPECT_EQ(status_of(head + "1;" + std::string(8, 'e') + "\r\nx\r\n0\r\n\r\n", l), 0);
    EXPECT_EQ(status_of(head + "1;" + std::string(9, 'e') + "\r\nx\r\n0\r\n\r\n", l), 400);
    EXPECT_EQ(status_of(head + "1;" + std::string(100, 'e'), l), 400);
}

TEST(http1_request, knows_whether_an_end_cuts_a_message_off) {
    const std::string whole =
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n";
    for (std::size_t size = 0; size <= whole.size(); ++size) {
        request_parser parser;
        const std::string log = transcript(parser, whole.substr(0, size), {}, true);
        if (size == 0 || size == whole.size()) {
            EXPECT_TRUE(log.ends_with("closed\n")) << size;
        } else {
            EXPECT_TRUE(log.ends_with("error 400 the message was cut off\n")) << size << log;
        }
    }
}

TEST(http1_request, collects_a_whole_body) {
    request_parser parser;
    byte_buffer body;
    std::string input =
        "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
        "2\r\nab\r\n3\r\ncde\r\n0\r\n\r\nGET /b HTTP/1.1\r\n";
    step one = parser.collect(input, body);
    EXPECT_EQ(one.what, event::head);
    input.erase(0, one.consumed);
    one = parser.collect(input, body);
    EXPECT_EQ(one.what, event::end);
    EXPECT_EQ(input.substr(one.consumed), "GET /b HTTP/1.1\r\n");
    EXPECT_EQ(body.text(), "abcde");
    EXPECT_EQ(parser.head().target, "/a");
}

TEST(http1_request, collects_no_more_than_the_limit) {
    limits l;
    l.body = 10;
    request_parser parser(l);
    byte_buffer body;
    EXPECT_EQ(
        parser.collect("PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n", body)
            .what,
        event::head);
    step one;
    for (int i = 0; i < 100 && one.what == event::need_more; ++i) {
        one = parser.collect("4\r\nabcd\r\n", body);
    }
    EXPECT_EQ(one.what, event::error);
    EXPECT_EQ(parser.error().status, 413);
    EXPECT_LE(body.size(), 10u);
}

TEST(http1_request, gives_its_memory_back_between_messages) {
    request_parser parser;
    const std::string input = "GET /1 HTTP/1.1\r\nHost: h\r\n\r\n";
    EXPECT_EQ(transcript(parser, input, {}), transcript(parser, input, {5}));
    parser.release_memory();
    EXPECT_EQ(parser.head().headers.size(), 0u);
    EXPECT_EQ(parser.head().target, "");
    EXPECT_EQ(transcript(parser, input, {9}), "head GET /1 1.1 keep-alive [Host=h]\nend\nidle\n");
    request_parser moved(std::move(parser));
    EXPECT_EQ(transcript(moved, input, {}), "head GET /1 1.1 keep-alive [Host=h]\nend\nidle\n");
}

TEST(http1_request, can_be_moved_from_at_its_end) {
    request_parser parser;
    EXPECT_EQ(parser.parse("GET /1 HTTP/1.1\r\nHost: one\r\n\r\n").what, event::head);
    EXPECT_EQ(parser.parse({}).what, event::end);
    const request_head taken = std::move(parser.head());
    EXPECT_EQ(transcript(parser, "GET /2 HTTP/1.1\r\nHost: two\r\n\r\n", {}),
              "head GET /2 1.1 keep-alive [Host=two]\nend\nidle\n");
    EXPECT_EQ(taken.target, "/1");
    EXPECT_EQ(taken.headers.find("host"), "one");
}

TEST(http1_request, says_the_same_of_damaged_input_however_it_is_cut) {
    const std::uint64_t seed = testing::seed_of_this_run();
    SCOPED_TRACE(seed);
    random_generator random(seed);
    const std::string good =
        "POST /p?q=1 HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody"
        "PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n4;x=y\r\nbody\r\n0\r\nT: "
        "u\r\n\r\n";
    using namespace std::string_view_literals;
    constexpr std::string_view spice = "\r\n\0: \t;0aG,/\xff"sv;
    limits l;
    l.start_line = 30;
    l.header_bytes = 70;
    l.body = 20;
    l.chunk_line = 8;
    for (int i = 0; i < 3000; ++i) {
        std::string input = good;
        for (std::uint64_t n = random.below(4); n > 0; --n) {
            const std::size_t at = random.below(input.size());
            switch (random.below(3)) {
                case 0: input[at] = spice[random.below(spice.size())]; break;
                case 1: input.insert(at, 1, spice[random.below(spice.size())]); break;
                default: input.erase(at, 1 + random.below(3)); break;
            }
        }
        std::vector<std::size_t> cuts;
        for (std::size_t at = 1 + random.below(20); at < input.size(); at += 1 + random.below(20)) {
            cuts.push_back(at);
        }
        request_parser whole(l), cut(l);
        ASSERT_EQ(transcript(cut, input, cuts), transcript(whole, input, {})) << input;
    }
}

}  // namespace
}  // namespace eddy::http1
