// Writer of HTTP/1.1 messages: its bytes, its refusals, and the parsers that read them back.
#include "wire/http1/transcript.hpp"

#include <gtest/gtest.h>

#include <string>

namespace eddy::http1 {
namespace {

TEST(http1_writer, writes_responses) {
    byte_buffer out;
    out.append("before|");
    head_writer writer(out);
    writer.response(200).field("Content-Type", "text/plain").field("Age", std::uint64_t{7});
    ASSERT_TRUE(writer.end(body_framing::sized(5)));
    EXPECT_EQ(out.text(),
              "before|HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nAge: 7\r\nContent-Length: "
              "5\r\n\r\n");
}

TEST(http1_writer, writes_each_framing) {
    const auto framed = [](int status, body_framing body) {
        byte_buffer out;
        const result<> written = head_writer(out).response(status, "R").end(body);
        EXPECT_EQ(written.has_value(), !out.empty());
        return std::string(out.text());
    };
    EXPECT_EQ(framed(200, body_framing::sized(0)), "HTTP/1.1 200 R\r\nContent-Length: 0\r\n\r\n");
    EXPECT_EQ(framed(200, body_framing::sized(~std::uint64_t{0})),
              "HTTP/1.1 200 R\r\nContent-Length: 18446744073709551615\r\n\r\n");
    EXPECT_EQ(framed(200, body_framing::chunked()),
              "HTTP/1.1 200 R\r\nTransfer-Encoding: chunked\r\n\r\n");
    EXPECT_EQ(framed(200, body_framing::until_close()),
              "HTTP/1.1 200 R\r\nConnection: close\r\n\r\n");
    EXPECT_EQ(framed(304, body_framing::sized(9)), "HTTP/1.1 304 R\r\nContent-Length: 9\r\n\r\n");
    for (const int status : {100, 101, 204}) {
        EXPECT_FALSE(framed(status, body_framing::none()).empty());
        EXPECT_EQ(framed(status, body_framing::sized(0)), "") << status << " may have no length";
        EXPECT_EQ(framed(status, body_framing::chunked()), "");
        EXPECT_EQ(framed(status, body_framing::until_close()), "");
    }
}

TEST(http1_writer, writes_framing_in_its_place) {
    byte_buffer out;
    head_writer writer(out);
    writer.response(404).framing(body_framing::sized(5)).field("X", "y");
    ASSERT_TRUE(writer.end());
    EXPECT_EQ(out.text(), "HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\nX: y\r\n\r\n");
    out.clear();
    head_writer bodiless(out);
    bodiless.response(204).framing(body_framing::chunked()).field("X", "y");
    EXPECT_EQ(bodiless.end(), fail(errc::malformed));
    EXPECT_TRUE(out.empty());
    head_writer headless(out);
    headless.framing(body_framing::sized(5));
    EXPECT_EQ(headless.end(), fail(errc::malformed));
    EXPECT_TRUE(out.empty());
}

TEST(http1_writer, writes_requests) {
    byte_buffer out;
    ASSERT_TRUE(
        head_writer(out).request("GET", "/a?b").field("Host", "h").end(body_framing::none()));
    EXPECT_EQ(out.text(), "GET /a?b HTTP/1.1\r\nHost: h\r\n\r\n");
    out.clear();
    EXPECT_FALSE(head_writer(out).request("POST", "/").end(body_framing::until_close()))
        << "a request cannot end by closing";
    EXPECT_TRUE(out.empty());
}

TEST(http1_writer, leaves_the_buffer_alone_when_it_refuses) {
    using namespace std::string_view_literals;
    byte_buffer out;
    out.append("kept");
    const auto refused = [&out](head_writer& writer) {
        const bool failed = writer.end(body_framing::none()) == fail(errc::malformed);
        EXPECT_EQ(out.text(), "kept");
        return failed;
    };
    for (const std::string_view value :
         {"a\r\nb"sv, "a\nSet-Cookie: x"sv, "a\r"sv, "a\0b"sv, "\x7f"sv}) {
        head_writer writer(out);
        EXPECT_TRUE(refused(writer.response(200).field("X", value).field("Y", "fine")));
        head_writer reason(out);
        EXPECT_TRUE(refused(reason.response(200, value)));
    }
    for (const char* name : {"", "a b", "a:", "a\r\n", "content-LENGTH", "Transfer-Encoding"}) {
        head_writer writer(out);
        EXPECT_TRUE(refused(writer.response(200).field(name, "1"))) << name;
    }
    for (const int status : {99, 1000, -1, 0}) {
        head_writer writer(out);
        EXPECT_TRUE(refused(writer.response(status)));
    }
    for (const char* target : {"", "/a b", "/a\r\nHost: x", "a", "/\xff"}) {
        head_writer writer(out);
        EXPECT_TRUE(refused(writer.request("GET", target))) << target;
    }
    head_writer method(out), no_line(out), empty(out), twice(out);
    EXPECT_TRUE(refused(method.request("GE T", "/")));
    EXPECT_TRUE(refused(no_line.field("A", "b")));
    EXPECT_TRUE(refused(empty));
    EXPECT_TRUE(refused(twice.response(200).response(200)));
}

TEST(http1_writer, passes_parsed_fields_on_without_their_framing) {
    request_parser parser;
    ASSERT_EQ(parser.parse("POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nA: b\r\n\r\n").what,
              event::head);
    byte_buffer out;
    ASSERT_TRUE(head_writer(out)
                    .request(parser.head().method, parser.head().target)
                    .fields(parser.head().headers)
                    .end(body_framing::chunked()));
    EXPECT_EQ(out.text(),
              "POST /x HTTP/1.1\r\nHost: h\r\nA: b\r\nTransfer-Encoding: chunked\r\n\r\n");
}

TEST(http1_writer, writes_chunks_that_the_parser_reads_back) {
    byte_buffer out;
    ASSERT_TRUE(head_writer(out).response(200).end(body_framing::chunked()));
    write_chunk(out, "hello");
    write_chunk(out, "");
    write_chunk(out, std::string(300, 'x'));
    header_list trailers;
    ASSERT_TRUE(trailers.add("Digest", "d"));
    ASSERT_TRUE(trailers.add("Content-Length", "5"));
    write_last_chunk(out, trailers);
    EXPECT_NE(out.text().find("\r\n12c\r\n"), std::string_view::npos) << "sizes are hexadecimal";
    response_parser parser;
    EXPECT_EQ(transcript(parser, out.text(), {}),
              "head 200 'OK' 1.1 keep-alive chunked [Transfer-Encoding=chunked]\nbody 'hello" +
                  std::string(300, 'x') + "'\nend\ntrailer [Digest=d]\nidle\n");
    out.clear();
    write_last_chunk(out);
    EXPECT_EQ(out.text(), "0\r\n\r\n");
}

}  // namespace
}  // namespace eddy::http1
