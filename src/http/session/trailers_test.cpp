// Trailers of requests and responses.
#include "http/testing.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace eddy::http {
namespace {

using testing::error_of;

class http_trailers : public testing::with_server {};

TEST_P(http_trailers, of_a_request_are_there_after_its_body) {
    handler_.answer = [](request& incoming) -> task<response> {
        std::string found = std::to_string(incoming.trailers().size());
        if (!co_await incoming.collect()) co_return response();
        found += " " + incoming.content() + " ";
        for (const http1::header each : incoming.trailers())
            found.append(each.name).append("=").append(each.value).append(";");
        co_return text(found + "\n");
    };
    const std::string answer = talk(
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        "2\r\nab\r\n0\r\nDigest: 123\r\nX: y\r\n\r\n"
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nc"
        "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    EXPECT_NE(answer.find("0 ab Digest=123;X=y;\n"), std::string::npos) << answer;
    EXPECT_NE(answer.find("0 c \n"), std::string::npos) << answer;
    EXPECT_TRUE(answer.ends_with("0  \n")) << answer;
}

TEST_P(http_trailers, of_a_request_have_the_limits_of_headers) {
    limits_.parser.header_count = 3;
    handler_.answer = [](request& incoming) -> task<response> {
        const auto body = co_await incoming.collect();
        EXPECT_EQ(error_of(body), errc::malformed);
        EXPECT_TRUE(incoming.trailers().empty());
        co_return response();
    };
    const std::string answer = talk(
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        "0\r\nA: 1\r\nA: 2\r\nA: 3\r\nA: 4\r\n\r\n");
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 431 ")) << answer;
}

task<result<>> write_with_digest(body_writer& to) {
    const auto sent = co_await to.write("content");
    if (!sent) co_return sent;
    http1::header_list fields;
    testing::must(fields.add("Digest", "123"));
    testing::must(fields.add("Content-Length", "7"));
    const bool is_sent = to.set_trailers(std::move(fields));
    co_return co_await to.write(is_sent ? "+" : "-");
}

TEST_P(http_trailers, of_a_response_go_to_clients_that_take_them) {
    handler_.answer = [](request& incoming) -> task<response> {
        response made;
        if (incoming.path() == "/sized")
            made.body = body::streamed(write_with_digest, 8);
        else
            made.body = body::streamed(write_with_digest);
        co_return made;
    };
    const std::string answer =
        talk("GET / HTTP/1.1\r\nHost: x\r\nTE: gzip, Trailers\r\nConnection: close\r\n\r\n");
    EXPECT_TRUE(answer.ends_with("7\r\ncontent\r\n1\r\n+\r\n0\r\nDigest: 123\r\n\r\n")) << answer;
    EXPECT_TRUE(talk("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                    .ends_with("7\r\ncontent\r\n1\r\n-\r\n0\r\n\r\n"));
    EXPECT_TRUE(talk("GET /sized HTTP/1.1\r\nHost: x\r\nTE: trailers\r\nConnection: close\r\n\r\n")
                    .ends_with("\r\n\r\ncontent-"));
}

EDDY_HTTP_ON_EVERY_BACKEND(http_trailers);

}  // namespace
}  // namespace eddy::http
