// Proxied responses: what clients of each version see of a source's response, of its end, and of
// one that broke off.
#include "runtime/stream/sources/proxied_head.hpp"
#include "runtime/stream/sources/relay_source.hpp"
#include "runtime/stream/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::runtime::stream {
namespace {

using namespace stream::testing;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::string_view http_1_0 = R"({"http_version":"HTTP/1.0"})";

class proxied_streams : public on_io_backend {
protected:
    subject make(const std::string& url, json options = {}) {
        options["handoff"] = "unix://" + folder_.file("handoff.sock");
        options["source_url"] = url;
        return subject("stream", with(std::move(options), {{"source", "proxy"}}));
    }
    static task<std::string> answer_of(subject& s, std::string message) {
        talker client = make_client(s, message);
        co_return co_await client.rest();
    }
    static double faults(subject& s, std::string_view reason) {
        return count_of(s, "stream_errors_total", reason);
    }

    temporary_folder folder_;
};

INSTANTIATE_TEST_SUITE_P(runtime, proxied_streams,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll),
                         eddy::testing::io_backend_name);

TEST_P(proxied_streams, pass_a_response_through) {
    run([this]() -> task<void> {
        chat_api site({"any ", "bytes"},
                      "429 Too Many Requests\r\nRetry-After: 61\r\nSet-Cookie: a=1\r\n"
                      "Set-Cookie: b=2\r\nx-request-id: r1\r\nx-ratelimit-limit-requests: 60\r\n"
                      "Keep-Alive: timeout=5");
        subject s = make(site.url());
        co_await s.start();
        const parsed_answer got = parse_answer(co_await answer_of(s, R"({"prompt":"hi","x":1})"));
        EXPECT_EQ(got.status, 429);
        EXPECT_EQ(got.content, "any bytes");
        EXPECT_TRUE(got.is_whole);
        EXPECT_EQ(got.field("Content-Type"), "text/event-stream");
        EXPECT_EQ(got.field("Retry-After"), "61");
        EXPECT_EQ(got.all_of("Set-Cookie"), "a=1,b=2");
        EXPECT_EQ(got.field("X-Request-Id"), "r1");
        EXPECT_EQ(got.field("X-RateLimit-Limit-Requests"), "60");
        EXPECT_EQ(got.field("Keep-Alive"), "(none)");
        EXPECT_THAT(site.requests.at(0), StartsWith("POST /v1 HTTP/1.1\r\n"));
        EXPECT_THAT(site.requests.at(0), HasSubstr("\r\nAccept-Encoding: identity\r\n"));
        EXPECT_THAT(site.requests.at(0), EndsWith("\r\n\r\n{\"prompt\":\"hi\",\"x\":1}"));
        co_await s->stop(0s);
        co_await site.close();
        subject gone = make("http://127.0.0.1:1/");
        co_await gone.start();
        EXPECT_THAT(co_await answer_of(gone, "{}"), StartsWith("HTTP/1.1 502 Bad Gateway\r\n"));
        co_await gone->stop(0s);
    });
}

TEST_P(proxied_streams, come_from_the_next_backend_where_one_fails) {
    run([this]() -> task<void> {
        chat_api bad({"busy"}, "503 Service Unavailable");
        chat_api good({"any bytes"});
        const json others = {{"source_backend", {"b=" + good.url()}}, {"handoff_key", true}};
        subject s = make(bad.url(), others);
        co_await s.start();
        parsed_answer got =
            parse_answer(co_await answer_of(s, R"({"response_headers":{"x-a":"1"},"y":2})"));
        EXPECT_EQ(got.status, 200);
        EXPECT_EQ(got.content, "any bytes");
        EXPECT_EQ(got.field("x-a"), "1");
        for (const chat_api* each : {&bad, &good})
            EXPECT_THAT(each->requests.at(0),
                        EndsWith(R"({"response_headers":{"x-a":"1"},"y":2})"));
        // A user's key goes to one backend, as a field, and its answer is the client's.
        got = parse_answer(co_await answer_of(s, R"({"api_key":"k","y":2})"));
        EXPECT_EQ(got.status, 503);
        EXPECT_EQ(got.content, "busy");
        EXPECT_THAT(bad.requests.at(1), HasSubstr("\r\nAuthorization: Bearer k\r\n"));
        EXPECT_THAT(bad.requests.at(1), EndsWith("\r\n\r\n{\"y\":2}"));
        co_await s->stop(0s);
        subject reversed = make(good.url(), {{"source_backend", {"b=" + bad.url()}}});
        co_await reversed.start();
        got = parse_answer(co_await answer_of(reversed, R"({"backend":"b"})"));
        EXPECT_EQ(got.status, 503) << "the last backend's answer is the client's";
        co_await reversed->stop(0s);
        co_await bad.close();
        co_await good.close();
    });
}

TEST_P(proxied_streams, that_break_off_are_no_whole_ones) {
    run([this]() -> task<void> {
        struct ending {
            std::string framing;
            std::string content;
            bool closes;
            std::string_view reason;
        };
        const std::string chunked = "Transfer-Encoding: chunked";
        const std::vector<ending> all = {
            {chunked, "5\r\nhello\r\n", true, "backend_broke_off"},
            {chunked, "5\r\nhello\r\n", false, "backend_stalled"},
            {chunked, "5\r\nhello\r\n0\r\n\r\n", true, ""},
            {"Content-Length: 9", "hello", true, "backend_broke_off"},
            {"Content-Length: 5", "hello", true, ""},
            // Content that ends by the close alone may be whole.
            {"X: y", "hello", true, ""},
        };
        for (const ending& each : all) {
            chat_api site({each.content}, "200 OK\r\n" + each.framing, each.closes);
            subject s = make(site.url(), {{"source_timeout", "100ms"}});
            co_await s.start();
            // Over a Unix socket, which has no resets, and over TCP.
            const parsed_answer got = parse_answer(co_await answer_of(s, "{}"));
            EXPECT_EQ(got.content, "hello") << each.content;
            EXPECT_EQ(got.is_whole, each.reason.empty()) << each.framing << each.content;
            kept_client kept = co_await make_kept_client(s, "{}");
            const last_bytes over_tcp = co_await rest_of(kept.client);
            EXPECT_EQ(parse_answer(over_tcp.text).content, "hello");
            EXPECT_EQ(parse_answer(over_tcp.text).is_whole, each.reason.empty());
            EXPECT_EQ(over_tcp.end, make_error_code(errc::end_of_stream))
                << "a reset might cost bytes that were sent";
            if (!each.reason.empty()) EXPECT_EQ(faults(s, each.reason), 2);
            co_await s->stop(0s);
            co_await site.close();
        }
    });
}

TEST_P(proxied_streams, of_clients_without_chunks_end_with_the_connection) {
    run([this]() -> task<void> {
        struct ending {
            std::string framing;
            std::string content;
            bool closes;
            std::error_code end;
        };
        const std::error_code whole = errc::end_of_stream;
        const std::error_code broken = errno_code(ECONNRESET);
        const std::string chunked = "Transfer-Encoding: chunked";
        const std::vector<ending> all = {
            {chunked, "5\r\nhello\r\n", true, broken},
            {chunked, "5\r\nhello\r\n", false, broken},
            {chunked, "5\r\nhello\r\n0\r\n\r\n", true, whole},
            {"Content-Length: 9", "hello", true, whole},  // the client knows the length
            {"X: y", "hello", true, whole},
        };
        for (const ending& each : all) {
            chat_api site({each.content}, "200 OK\r\n" + each.framing, each.closes);
            subject s = make(site.url(), {{"source_timeout", "100ms"}});
            co_await s.start();
            kept_client kept = co_await make_kept_client(s, std::string(http_1_0));
            const last_bytes got = co_await rest_of(kept.client);
            EXPECT_THAT(got.text, EndsWith("\r\n\r\nhello")) << each.content;
            EXPECT_EQ(got.text.find("Transfer-Encoding"), std::string::npos);
            EXPECT_EQ(got.end, each.end) << each.framing << each.content;
            co_await s->stop(0s);
            co_await site.close();
        }
    });
}

TEST_P(proxied_streams, that_are_cut_off_are_no_whole_ones) {
    run([this]() -> task<void> {
        for (const std::string_view message : {std::string_view("{}"), http_1_0}) {
            {
                // By a stop.
                chat_api site({"5\r\nhello\r\n"}, "200 OK\r\nTransfer-Encoding: chunked", false);
                subject s = make(site.url());
                co_await s.start();
                kept_client kept = co_await make_kept_client(s, std::string(message));
                while (!(co_await line_of(kept.client)).empty()) {
                }
                const std::size_t size = message == http_1_0 ? 5 : 10;
                EXPECT_THAT(co_await kept.client.bytes(size), HasSubstr("hello"));
                co_await s->stop(0s);
                const last_bytes rest = co_await rest_of(kept.client);
                EXPECT_EQ(rest.text, message == http_1_0 ? "" : broken_chunk);
                if (message == http_1_0) EXPECT_EQ(rest.end, errno_code(ECONNRESET));
                co_await site.close();
            }
            // Since the client takes nothing.
            chat_api site({std::string(3'000'000, 'x')});
            subject s = make(site.url(), {{"source_timeout", "50ms"}});
            co_await s.start();
            kept_client kept = co_await make_kept_client(s, std::string(message));
            const int few = 20'000;
            ::setsockopt(kept.copy.native_handle(), SOL_SOCKET, SO_SNDBUF, &few, sizeof(few));
            co_await until([&] { return faults(s, "client_too_slow") == 1; });
            const last_bytes got = co_await rest_of(kept.client);
            if (message == http_1_0)
                EXPECT_EQ(got.end, errno_code(ECONNRESET));
            else
                EXPECT_FALSE(parse_answer(got.text).is_whole);
            co_await s->stop(0s);
            co_await site.close();
        }
    });
}

TEST_P(proxied_streams, without_content_have_none) {
    run([this]() -> task<void> {
        for (const std::string_view status : {"204 No Content", "304 Not Modified"}) {
            chat_api site({}, std::string(status) + "\r\nETag: \"1\"");
            subject s = make(site.url());
            co_await s.start();
            const std::string answer = co_await answer_of(s, "{}");
            EXPECT_THAT(answer, StartsWith("HTTP/1.1 " + std::string(status) + "\r\n"));
            EXPECT_THAT(answer, HasSubstr("\r\nETag: \"1\"\r\n"));
            EXPECT_THAT(answer, EndsWith("\r\n\r\n"));
            EXPECT_EQ(answer.find("Transfer-Encoding"), std::string::npos);
            co_await s->stop(0s);
            co_await site.close();
        }
        // A client that asked for the head alone, of a source whose content never ends.
        chat_api site({"5\r\nhello\r\n"}, "200 OK\r\nTransfer-Encoding: chunked", false);
        subject s = make(site.url());
        co_await s.start();
        const std::string answer = co_await answer_of(s, R"({"request_method":"HEAD"})");
        EXPECT_THAT(answer, HasSubstr("\r\nTransfer-Encoding: chunked\r\n"));
        EXPECT_THAT(answer, EndsWith("\r\n\r\n"));
        co_await until([&] { return site.open == 0; });
        EXPECT_EQ(sample_of(*s, "streams_total"), 1);
        co_await s->stop(0s);
        co_await site.close();
    });
}

TEST_P(proxied_streams, have_the_coding_of_their_content) {
    run([this]() -> task<void> {
        chat_api site({"packed"}, "200 OK\r\nContent-Encoding: x\r\nContent-Encoding: gzip");
        subject s = make(site.url());
        co_await s.start();
        const parsed_answer got = parse_answer(co_await answer_of(s, "{}"));
        EXPECT_EQ(got.all_of("Content-Encoding"), "x,gzip");
        EXPECT_EQ(got.content, "packed");
        co_await s->stop(0s);
        co_await site.close();
    });
}

}  // namespace
}  // namespace eddy::runtime::stream
