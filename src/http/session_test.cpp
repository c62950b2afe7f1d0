// What a client sees of a control connection: pipelining, limits, deadlines, streams.
#include "http/session.hpp"

#include <eddy/io/event.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <memory>
#include <string>
#include <utility>

namespace eddy::http {
namespace {

/// Three pieces, then the end; or pieces without end that wait for nothing but cancellation.
class test_source final : public body_source {
public:
    test_source(bool endless, bool& cancelled) : endless_(endless), cancelled_(cancelled) {}
    task<std::optional<std::string>> next() override {
        if (!endless_) {
            if (++given_ > 3) co_return std::nullopt;
            co_return "piece" + std::to_string(given_) + ";";
        }
        const auto woken = co_await never_.wait();
        cancelled_ = !woken;
        co_return std::nullopt;
    }

private:
    bool endless_;
    bool& cancelled_;
    int given_ = 0;
    event never_;
};

class echo_handler final : public request_handler {
public:
    task<response> handle(request request) override {
        ++requests;
        response response;
        response.content_type = "text/plain";
        if (request.path == "/pieces" || request.path == "/endless") {
            response.pieces = std::make_unique<test_source>(request.path == "/endless", cancelled);
        } else if (request.path == "/nothing") {
            response.status = 204;
        } else {
            response.body = request.method + " " + request.path + " [" + request.body + "]";
            if (const auto name = request.parameter("name"))
                response.body += " name=" + std::string(*name);
        }
        co_return response;
    }
    response reject(int status, std::string_view what) override {
        response response;
        response.status = status;
        response.body = what;
        return response;
    }
    int requests = 0;
    bool cancelled = false;
};

class http_session : public testing::TestWithParam<backend_kind> {
protected:
    http_session() {
        loop_options options;
        options.kind = GetParam();
        auto made = loop::create(options);
        if (made) loop_ = std::move(*made);
        limits_.parser.body = 1000;
        limits_.request_time = std::chrono::milliseconds(50);
        limits_.idle_time = std::chrono::milliseconds(100);
        limits_.linger_time = std::chrono::milliseconds(50);
    }
    void SetUp() override {
        if (!loop_) GTEST_SKIP() << "the kernel refuses " << to_string(GetParam());
    }

    /// Sends `text` on a new connection and gives back all that comes until the server closes.
    std::string talk(std::string text, bool half_close = false) {
        std::string answer;
        loop_->run(converse(std::move(text), half_close, answer));
        return answer;
    }

    task<void> converse(std::string text, bool half_close, std::string& answer) {
        int ends[2];
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
        auto server = loop_->adopt(unique_fd(ends[0]));
        auto client = loop_->adopt(unique_fd(ends[1]));
        scope serving(co_await current_source());
        serving.spawn(serve(std::move(*server), handler_, limits_));
        const auto sent = co_await client->write_all(text);
        EXPECT_TRUE(sent || GetParam() != backend_kind::sim);
        if (half_close) EXPECT_TRUE(client->shutdown_write());
        for (;;) {
            auto received = co_await client->read();
            if (!received) break;
            answer += received->text();
        }
        client->close();
        co_await serving.join();
    }

    std::unique_ptr<loop> loop_;
    echo_handler handler_;
    session_limits limits_;
};

bool begins_with(const std::string& text, std::string_view start) {
    return text.starts_with(start);
}

TEST_P(http_session, answers_a_request_and_closes_when_asked) {
    const std::string answer =
        talk("GET /a?name=b%20c HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    EXPECT_TRUE(begins_with(answer, "HTTP/1.1 200 OK\r\n")) << answer;
    EXPECT_TRUE(answer.ends_with("GET /a [] name=b c")) << answer;
    EXPECT_NE(answer.find("Connection: close"), std::string::npos);
}

TEST_P(http_session, answers_pipelined_requests_in_order) {
    const std::string answer = talk(
        "GET /1 HTTP/1.1\r\nHost: x\r\n\r\n"
        "POST /2 HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"
        "POST /3 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\ndef\r\n0\r\n\r\n"
        "GET /4 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    const auto first = answer.find("GET /1 []");
    const auto second = answer.find("POST /2 [abc]");
    const auto third = answer.find("POST /3 [def]");
    const auto fourth = answer.find("GET /4 []");
    ASSERT_NE(fourth, std::string::npos) << answer;
    EXPECT_LT(first, second);
    EXPECT_LT(second, third);
    EXPECT_LT(third, fourth);
    EXPECT_EQ(handler_.requests, 4);
}

TEST_P(http_session, answers_head_without_a_body) {
    const std::string answer = talk("HEAD /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    EXPECT_NE(answer.find("Content-Length: 10"), std::string::npos) << answer;
    EXPECT_TRUE(answer.ends_with("\r\n\r\n"));
}

TEST_P(http_session, a_204_has_no_body_and_no_length) {
    const std::string answer =
        talk("GET /nothing HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    EXPECT_TRUE(begins_with(answer, "HTTP/1.1 204")) << answer;
    EXPECT_EQ(answer.find("Content-Length"), std::string::npos);
}

TEST_P(http_session, closes_after_http_1_0) {
    const std::string answer = talk("GET /a HTTP/1.0\r\n\r\n");
    EXPECT_TRUE(answer.ends_with("GET /a []")) << answer;
}

TEST_P(http_session, garbage_gets_400) {
    EXPECT_TRUE(begins_with(talk("\x16\x03\x01 garbage\r\n\r\n"), "HTTP/1.1 400"));
    EXPECT_TRUE(begins_with(talk("GET /a b c HTTP/1.1\r\n\r\n"), "HTTP/1.1 400"));
    EXPECT_EQ(handler_.requests, 0);
}

TEST_P(http_session, a_body_over_the_limit_gets_413) {
    const std::string big(1001, 'x');
    const std::string fits(1000, 'x');
    EXPECT_TRUE(begins_with(
        talk("POST /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 1000\r\n\r\n" +
             fits),
        "HTTP/1.1 200"));
    EXPECT_TRUE(begins_with(
        talk("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 1001\r\n\r\n" + big), "HTTP/1.1 413"));
    EXPECT_TRUE(begins_with(
        talk("POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n" + big),
        "HTTP/1.1 413"));
}

TEST_P(http_session, a_client_that_waits_for_100_gets_it_or_the_refusal) {
    const std::string wanted = talk(
        "POST /a HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n"
        "Connection: close\r\n\r\nok");
    EXPECT_TRUE(begins_with(wanted, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200")) << wanted;
    const std::string refused = talk(
        "POST /a HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 99999\r\n\r\n");
    EXPECT_TRUE(begins_with(refused, "HTTP/1.1 413")) << refused;
}

TEST_P(http_session, endless_headers_get_431) {
    std::string request = "GET /a HTTP/1.1\r\nHost: x\r\n";
    for (int i = 0; i < 200; ++i) request += "X-" + std::to_string(i) + ": y\r\n";
    EXPECT_TRUE(begins_with(talk(request + "\r\n"), "HTTP/1.1 431"));
}

TEST_P(http_session, a_slow_request_gets_408) {
    EXPECT_TRUE(begins_with(talk("GET /a HTTP/1.1\r\nHost:"), "HTTP/1.1 408"));
    EXPECT_TRUE(begins_with(talk("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc"),
                            "HTTP/1.1 408"));
}

TEST_P(http_session, a_silent_connection_is_closed_without_a_word) { EXPECT_EQ(talk(""), ""); }

TEST_P(http_session, a_truncated_request_gets_400) {
    EXPECT_TRUE(
        begins_with(talk("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc", true),
                    "HTTP/1.1 400"));
    EXPECT_EQ(handler_.requests, 0);
}

TEST_P(http_session, a_half_closed_connection_gets_its_answer) {
    EXPECT_TRUE(talk("GET /a HTTP/1.1\r\nHost: x\r\n\r\n", true).ends_with("GET /a []"));
}

TEST_P(http_session, streams_pieces_as_chunks) {
    const std::string answer = talk("GET /pieces HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    EXPECT_NE(answer.find("Transfer-Encoding: chunked"), std::string::npos) << answer;
    EXPECT_TRUE(answer.ends_with("7\r\npiece1;\r\n7\r\npiece2;\r\n7\r\npiece3;\r\n0\r\n\r\n"))
        << answer;
}

TEST_P(http_session, a_stream_ends_when_the_client_goes) {
    talk("GET /endless HTTP/1.1\r\nHost: x\r\n\r\n", true);
    EXPECT_TRUE(handler_.cancelled);
}

TEST_P(http_session, a_stream_ends_when_the_client_sends_too_much_meanwhile) {
    talk("GET /endless HTTP/1.1\r\nHost: x\r\n\r\n" + std::string(100 * 1024, 'x'));
    EXPECT_TRUE(handler_.cancelled);
}

TEST_P(http_session, requests_sent_during_a_stream_are_answered_after_it) {
    const std::string answer = talk(
        "GET /pieces HTTP/1.1\r\nHost: x\r\n\r\n"
        "GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    EXPECT_LT(answer.find("piece3;"), answer.find("GET /a []")) << answer;
    EXPECT_TRUE(answer.ends_with("GET /a []")) << answer;
}

TEST_P(http_session, http_1_0_cannot_have_a_stream) {
    EXPECT_TRUE(begins_with(talk("GET /pieces HTTP/1.0\r\n\r\n"), "HTTP/1.1 400"));
}

INSTANTIATE_TEST_SUITE_P(backends, http_session,
                         testing::Values(backend_kind::uring, backend_kind::epoll),
                         [](const auto& info) { return std::string(to_string(info.param)); });

}  // namespace
}  // namespace eddy::http
