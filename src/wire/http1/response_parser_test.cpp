// Responses: which have a body and where it ends, interim ones, tunnels.
#include "wire/http1/transcript.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace eddy::http1 {
namespace {

std::string parse_cut(std::string_view input, std::string_view method = "GET", bool closed = false,
                      const limits& l = {}) {
    const auto run = [&](const std::vector<std::size_t>& cuts) {
        response_parser parser(l);
        parser.expect_response_to(method);
        return transcript(parser, input, cuts, closed);
    };
    const std::string whole = run({});
    std::vector<std::size_t> everywhere;
    for (std::size_t at = 1; at < input.size(); ++at) {
        everywhere.push_back(at);
        EXPECT_EQ(run({at}), whole) << "cut at " << at;
    }
    EXPECT_EQ(run(everywhere), whole);
    return whole;
}

TEST(http1_response, reads_sized_and_chunked_bodies) {
    EXPECT_EQ(
        parse_cut(
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
            "HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"),
        "head 200 'OK' 1.1 keep-alive length=2 [Content-Length=2]\nbody 'hi'\nend\n"
        "head 404 'Not Found' 1.1 keep-alive chunked [Transfer-Encoding=chunked]\n"
        "body 'abc'\nend\nidle\n");
}

TEST(http1_response, reads_reasons_of_every_length) {
    for (std::size_t size = 0; size < 300; ++size) {
        const std::string reason(size, 'r');
        const std::string input = "HTTP/1.1 204 " + reason + "\r\nServer: x\r\n\r\n";
        response_parser parser;
        EXPECT_EQ(transcript(parser, input, {}),
                  "head 204 '" + reason + "' 1.1 keep-alive [Server=x]\nend\nidle\n");
    }
}

TEST(http1_response, reads_until_the_close_when_nothing_else_says_where_it_ends) {
    const std::string_view input = "HTTP/1.0 200 OK\r\nServer: x\r\n\r\nHTTP/1.1 is content here";
    EXPECT_EQ(parse_cut(input),
              "head 200 'OK' 1.0 [Server=x]\nbody 'HTTP/1.1 is content here'\nopen\n");
    EXPECT_EQ(parse_cut(input, "GET", true),
              "head 200 'OK' 1.0 [Server=x]\nbody 'HTTP/1.1 is content here'\nend at close\n");
    EXPECT_EQ(parse_cut("HTTP/1.1 200 OK\r\n\r\n", "GET", true),
              "head 200 'OK' 1.1\nend at close\n")
        << "not kept alive, although it is 1.1";
}

TEST(http1_response, sees_bodies_cut_off) {
    EXPECT_TRUE(parse_cut("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhi", "GET", true)
                    .ends_with("error 502 the message was cut off\n"));
    EXPECT_TRUE(
        parse_cut("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n", "GET", true)
            .ends_with("error 502 the message was cut off\n"));
    EXPECT_TRUE(
        parse_cut("HTTP/1.1 200", "GET", true).ends_with("error 502 the message was cut off\n"));
    EXPECT_EQ(parse_cut("", "GET", true), "closed\n");
    EXPECT_TRUE(parse_cut("HTTP/1.1 204 \r\n\r\n", "GET", true).ends_with("end\nclosed\n"));
}

TEST(http1_response, has_no_body_where_none_may_be) {
    const std::string next = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx";
    for (const char* status : {"204 No Content", "304 Not Modified"}) {
        const std::string log =
            parse_cut("HTTP/1.1 " + std::string(status) + "\r\nContent-Length: 9\r\n\r\n" + next);
        EXPECT_EQ(log.find("body"), log.rfind("body"));
        EXPECT_TRUE(log.ends_with("body 'x'\nend\nidle\n")) << log;
    }
    EXPECT_EQ(parse_cut("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n" + next, "HEAD"),
              "head 200 'OK' 1.1 keep-alive length=9 [Content-Length=9]\nend\n"
              "head 200 'OK' 1.1 keep-alive length=1 [Content-Length=1]\nbody 'x'\nend\nidle\n")
        << "only the one response answers HEAD";
}

TEST(http1_response, gives_interim_responses_as_messages) {
    EXPECT_EQ(parse_cut("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
                        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
                        "HEAD"),
              "head 100 'Continue' 1.1 keep-alive\nend\n"
              "head 103 'Early Hints' 1.1 keep-alive [Link=x]\nend\n"
              "head 200 'OK' 1.1 keep-alive length=5 [Content-Length=5]\nend\nidle\n");
}

TEST(http1_response, hands_tunnels_over) {
    EXPECT_EQ(parse_cut("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                        "Connection: Upgrade\r\n\r\n\x81\x02hi"),
              "head 101 'Switching Protocols' 1.1 keep-alive upgrade [Upgrade=websocket]"
              " [Connection=Upgrade] tunnel\nend\ntunnel \x81\x02hi\n");
    EXPECT_EQ(parse_cut("HTTP/1.1 200 OK\r\n\r\nraw", "CONNECT"),
              "head 200 'OK' 1.1 keep-alive tunnel\nend\ntunnel raw\n");
    EXPECT_EQ(parse_cut("HTTP/1.1 407 No\r\nContent-Length: 2\r\n\r\nno", "CONNECT"),
              "head 407 'No' 1.1 keep-alive length=2 [Content-Length=2]\nbody 'no'\nend\nidle\n");
}

TEST(http1_response, accepts_a_missing_reason) {
    EXPECT_EQ(parse_cut("HTTP/1.1 204\r\n\r\n"), "head 204 '' 1.1 keep-alive\nend\nidle\n");
    EXPECT_EQ(parse_cut("HTTP/1.1 204 \r\n\r\n"), "head 204 '' 1.1 keep-alive\nend\nidle\n");
    EXPECT_EQ(parse_cut("HTTP/1.1 299 a \xc3\xa4\tb\r\nContent-Length:0\r\n\r\n"),
              "head 299 'a \xc3\xa4\tb' 1.1 keep-alive length=0 [Content-Length=0]\nend\nidle\n");
}

TEST(http1_response, answers_every_fault_with_502) {
    for (const char* input :
         {"HTTP/1.1\r\n",
          "HTTP/1.1 \r\n",
          "HTTP/1.1 20\r\n",
          "HTTP/1.1 2000 x\r\n",
          "HTTP/1.1 2x0 x\r\n",
          "HTTP/1.1  200 OK\r\n",
          "HTTP/1.1 099 x\r\n",
          "HTTP/2.0 200 OK\r\n",
          "ICY 200 OK\r\n",
          "\r\n",
          "HTTP/1.1 200 a\rb\r\n",
          "HTTP/1.1 200 OK\n",
          "HTTP/1.1 200 OK\r\nA : b\r\n",
          "HTTP/1.1 200 OK\r\nA: b\r\n fold\r\n\r\n",
          "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;\r\nx\r\n0\r\n\r\n",
          "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\n\r\n",
          "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
          "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
          "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"}) {
        EXPECT_NE(parse_cut(input).find("error 502 "), std::string::npos) << input;
    }
}

// RFC 9112 (2.2) allows either. With a bare LF as a line's end, one that a server copies into a
// value would begin a field or a response, and an intermediary would send it on with CRLF.
TEST(http1_response, accepts_crlf_only) {
    for (const char* input :
         {"HTTP/1.1 200 OK\nContent-Length: 0\n\n", "HTTP/1.1 200 OK\nContent-Length: 0\r\n\r\n",
          "HTTP/1.1 200 OK\r\nX: a\nSet-Cookie: b\r\nContent-Length: 0\r\n\r\n",
          "HTTP/1.1 200 OK\r\nX: a\n\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
          "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\n", "HTTP/1.1 200 OK\r\n\n",
          "HTTP/1.1 200 a\n\n", "\nHTTP/1.1 200 OK\r\n\r\n"}) {
        EXPECT_EQ(parse_cut(input), "error 502 a line does not end in CRLF\n") << input;
    }
    const std::string head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (const char* body : {"1\nx\r\n0\r\n\r\n", "1\r\nx\r\n0\n\r\n", "1\r\nx\r\n0\r\nA: b\n\r\n",
                             "1\r\nx\r\n0\r\n\n"}) {
        EXPECT_TRUE(parse_cut(head + body).ends_with("error 502 a line does not end in CRLF\n"))
            << body;
    }
}

TEST(http1_response, bounds_a_body_that_runs_until_the_close) {
    limits l;
    l.body = 4;
    EXPECT_EQ(parse_cut("HTTP/1.1 200 OK\r\n\r\nabcd", "GET", true, l),
              "head 200 'OK' 1.1\nbody 'abcd'\nend at close\n");
    EXPECT_EQ(parse_cut("HTTP/1.1 200 OK\r\n\r\nabcde", "GET", true, l),
              "head 200 'OK' 1.1\nbody 'abcd'\nerror 502 the body is above the limit\n");
}

}  // namespace
}  // namespace eddy::http1
