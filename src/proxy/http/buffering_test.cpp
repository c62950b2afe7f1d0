// Buffered content: requests that are read before a backend has them, responses that are taken
// ahead of slow clients, and the limits of both.
#include "proxy/http/buffering.hpp"

#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>

#include "proxy/testing.hpp"

#include <memory>
#include <string>
#include <string_view>

namespace eddy::proxy {
namespace {

using namespace proxy::testing;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class http_buffering : public with_forwarding {};

INSTANTIATE_TEST_SUITE_P(proxy, http_buffering,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll,
                                           io_backend_kind::sim),
                         eddy::testing::io_backend_name);

constexpr std::string_view get = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
const std::string ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
constexpr std::size_t mebibyte = 1 << 20;

/// Content whose every part is different.
std::string numbers(std::size_t size) {
    std::string made;
    for (std::size_t i = 0; made.size() < size; ++i) made += std::to_string(i) + ",";
    made.resize(size);
    return made;
}

task<void> say_all(text_peer& from, std::string text) { co_await from.say(std::move(text)); }

TEST(buffer_budget, gives_what_it_has) {
    const auto budget = std::make_shared<buffer_budget>(10);
    {
        budget_share share(budget);
        EXPECT_TRUE(share.take(7));
        EXPECT_FALSE(share.take(4));
        EXPECT_TRUE(share.take(3));
        EXPECT_EQ(budget->taken(), 10U);
        share.give_back(2);
        EXPECT_EQ(budget->taken(), 8U);
    }
    EXPECT_EQ(budget->taken(), 0U);
}

TEST_P(http_buffering, a_request_is_read_before_a_backend_gets_it) {
    forward([](forwarding& f) -> task<void> {
        f.rules.buffered_request = 6;
        text_peer client = co_await f.client();
        co_await client.say("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\nabc");
        must(co_await loop::current().sleep_for(20ms));
        EXPECT_EQ(f.sum(&backend_counters::connections), 0U);
        EXPECT_EQ(f.budget->taken(), 3U);
        co_await client.say("def");
        text_peer backend = co_await f.backend().accept();
        EXPECT_THAT(co_await backend.head(), HasSubstr("\r\nContent-Length: 6\r\n"));
        EXPECT_EQ(co_await backend.bytes(6), "abcdef");
        co_await backend.say(ok);
        EXPECT_THAT(co_await client.until("ok"), StartsWith("HTTP/1.1 200 "));
        EXPECT_EQ(f.budget->taken(), 0U);
        co_await client.say(
            "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"
            "0\r\nSum: 1\r\n\r\n");
        EXPECT_THAT(co_await backend.head(), HasSubstr("\r\nTransfer-Encoding: chunked\r\n"));
        EXPECT_EQ(co_await backend.until("\r\n\r\n"), "3\r\nabc\r\n0\r\nSum: 1\r\n\r\n");
        co_await backend.say(ok);
        EXPECT_THAT(co_await client.until("ok"), StartsWith("HTTP/1.1 200 "));
    });
}

TEST_P(http_buffering, a_larger_request_is_streamed) {
    forward([](forwarding& f) -> task<void> {
        f.rules.buffered_request = 5;
        text_peer client = co_await f.client();
        co_await client.say("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\nabc");
        text_peer backend = co_await f.backend().accept();
        EXPECT_THAT(co_await backend.until("abc"), EndsWith("\r\n\r\nabc"));
        co_await client.say("def");
        EXPECT_EQ(co_await backend.bytes(3), "def");
        co_await backend.say(ok);
        EXPECT_THAT(co_await client.until("ok"), StartsWith("HTTP/1.1 200 "));
        // One without a length, from where it becomes too large.
        co_await client.say(
            "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n");
        must(co_await loop::current().sleep_for(20ms));
        EXPECT_EQ(f.sum(&backend_counters::requests), 1U);
        co_await client.say("1\r\nf\r\n");
        EXPECT_THAT(co_await backend.until("f\r\n"), EndsWith("\r\n\r\n6\r\nabcdef\r\n"));
        co_await client.say("0\r\n\r\n");
        EXPECT_EQ(co_await backend.until("\r\n\r\n"), "0\r\n\r\n");
        co_await backend.say(ok);
        EXPECT_THAT(co_await client.until("ok"), StartsWith("HTTP/1.1 200 "));
    });
}

TEST_P(http_buffering, the_proxy_asks_for_what_it_buffers) {
    forward([](forwarding& f) -> task<void> {
        f.rules.buffered_request = 100;
        text_peer client = co_await f.client();
        co_await client.say(
            "PUT / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
        EXPECT_EQ(co_await client.head(), "HTTP/1.1 100 Continue\r\n\r\n");
        co_await client.say("hi");
        text_peer backend = co_await f.backend().accept();
        EXPECT_EQ(co_await backend.until("hi"),
                  "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi");
        co_await backend.say(ok);
        EXPECT_THAT(co_await client.until("ok"), StartsWith("HTTP/1.1 200 "));
    });
}

TEST_P(http_buffering, buffered_requests_are_repeated) {
    forward(
        [](forwarding& f) -> task<void> {
            f.rules.buffered_request = mebibyte;
            const std::string content = numbers(mebibyte);
            text_peer client = co_await f.client();
            co_await client.say("PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: " +
                                std::to_string(content.size()) + "\r\n\r\n" + content);
            {
                // The rest of it is under way when the backend closes.
                text_peer first = co_await f.backend(0).accept();
                EXPECT_THAT(co_await first.head(), StartsWith("PUT "));
            }
            text_peer second = co_await f.backend(1).accept();
            EXPECT_THAT(co_await second.head(), StartsWith("PUT "));
            EXPECT_EQ(co_await second.bytes(content.size()), content);
            co_await second.say(ok);
            EXPECT_THAT(co_await client.until("ok"), StartsWith("HTTP/1.1 200 "));
            EXPECT_EQ(f.sum(&backend_counters::retries), 1U);
            co_await client.say("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi");
            EXPECT_THAT(co_await second.until("hi"), StartsWith("POST "));
            second.socket.close();
            EXPECT_THAT(co_await client.head(), StartsWith("HTTP/1.1 502 "))
                << "it is not idempotent";
        },
        2);
}

TEST_P(http_buffering, without_a_budget_requests_are_streamed) {
    forward([](forwarding& f) -> task<void> {
        f.budget = std::make_shared<buffer_budget>(4);
        f.rules.buffered_request = 100;
        text_peer client = co_await f.client();
        co_await client.say("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc");
        must(co_await loop::current().sleep_for(20ms));
        EXPECT_EQ(f.sum(&backend_counters::connections), 0U);
        co_await client.say("def");
        text_peer backend = co_await f.backend().accept();
        EXPECT_THAT(co_await backend.until("def"), EndsWith("\r\n\r\nabcdef"));
        co_await client.say("ghi");
        EXPECT_EQ(co_await backend.bytes(3), "ghi");
        co_await backend.say(ok);
        EXPECT_THAT(co_await client.until("ok"), StartsWith("HTTP/1.1 200 "));
    });
}

TEST_P(http_buffering, content_at_fault_costs_no_backend) {
    forward([](forwarding& f) -> task<void> {
        f.rules.buffered_request = 100;
        text_peer client = co_await f.client();
        co_await client.say(
            "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n");
        EXPECT_THAT(co_await client.head(), StartsWith("HTTP/1.1 400 "));
        text_peer leaving = co_await f.client();
        co_await leaving.say("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc");
        must(co_await loop::current().sleep_for(20ms));
        leaving.socket.abort();
        must(co_await loop::current().sleep_for(20ms));
        EXPECT_EQ(f.sum(&backend_counters::connections), 0U);
        EXPECT_EQ(f.budget->taken(), 0U);
    });
}

TEST_P(http_buffering, a_slow_client_keeps_no_backend) {
    forward([](forwarding& f) -> task<void> {
        f.rules.buffered_response = 16 * mebibyte;
        f.rules.backend_connections = 1;
        const std::string content = numbers(8 * mebibyte);
        text_peer slow = co_await f.client();
        text_peer other = co_await f.client();
        co_await slow.say(std::string(get));
        text_peer backend = co_await f.backend().accept();
        co_await backend.head();
        co_await backend.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n800000\r\n" +
                             content + "\r\n0\r\n\r\n");
        co_await other.say(std::string(get));
        EXPECT_EQ(co_await backend.head(), get) << "over the only connection, which is free";
        co_await backend.say(ok);
        EXPECT_THAT(co_await other.until("ok"), StartsWith("HTTP/1.1 200 "));
        EXPECT_GT(f.budget->taken(), 0U);
        co_await slow.head();
        std::string got;
        for (;;) {
            const std::string line = co_await slow.until("\r\n");
            const std::size_t size = std::stoul(line, nullptr, 16);
            got += (co_await slow.bytes(size + 2)).substr(0, size);
            if (size == 0) break;
        }
        EXPECT_TRUE(got == content);
        EXPECT_EQ(f.budget->taken(), 0U);
    });
}

TEST_P(http_buffering, a_response_beyond_the_limits_is_whole_and_in_order) {
    for (const bool has_budget : {true, false}) {
        forward([has_budget](forwarding& f) -> task<void> {
            f.rules.buffered_response = mebibyte / 2;
            if (!has_budget) f.budget = std::make_shared<buffer_budget>(0);
            const std::string content = numbers(6 * mebibyte);
            text_peer client = co_await f.client();
            co_await client.say(std::string(get));
            text_peer backend = co_await f.backend().accept();
            co_await backend.head();
            co_await with_scope([&](scope& sending) -> task<void> {
                sending.spawn(say_all(backend, "HTTP/1.1 200 OK\r\nContent-Length: " +
                                                   std::to_string(content.size()) + "\r\n\r\n" +
                                                   content));
                co_await client.head();
                must(co_await loop::current().sleep_for(20ms));
                EXPECT_LE(f.budget->taken(), has_budget ? mebibyte / 2 : 0U);
                EXPECT_TRUE((co_await client.bytes(content.size())) == content);
            });
            EXPECT_EQ(f.budget->taken(), 0U);
        });
    }
}

TEST_P(http_buffering, a_response_that_breaks_off_looks_broken) {
    forward([](forwarding& f) -> task<void> {
        f.rules.buffered_response = mebibyte;
        text_peer client = co_await f.client();
        co_await client.say(std::string(get));
        {
            text_peer backend = co_await f.backend().accept();
            co_await backend.head();
            co_await backend.say(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
            EXPECT_THAT(co_await client.until("abc"), EndsWith("abc"));
        }
        EXPECT_THAT(co_await client.rest(), Not(HasSubstr("0\r\n\r\n")));
        EXPECT_NE(client.end, errc::end_of_stream);
        EXPECT_EQ(f.sum(&backend_counters::failed_answers), 1U);
    });
}

TEST_P(http_buffering, trailers_follow_a_buffered_response) {
    forward([](forwarding& f) -> task<void> {
        f.rules.buffered_response = mebibyte;
        text_peer client = co_await f.client();
        co_await client.say("GET / HTTP/1.1\r\nHost: x\r\nTE: trailers\r\n\r\n");
        text_peer backend = co_await f.backend().accept();
        co_await backend.head();
        co_await backend.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        co_await client.head();
        co_await backend.say("3\r\nabc\r\n0\r\nSum: 1\r\n\r\n");
        EXPECT_EQ(co_await client.until("\r\n\r\n"), "3\r\nabc\r\n0\r\nSum: 1\r\n\r\n");
    });
}

}  // namespace
}  // namespace eddy::proxy
