// Limit on the time of a whole request.
#include <eddy/io/loop.hpp>

#include "proxy/testing.hpp"

#include <string>
#include <string_view>

namespace eddy::proxy {
namespace {

using namespace proxy::testing;
using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class http_total_time : public with_forwarding {};

INSTANTIATE_TEST_SUITE_P(proxy, http_total_time,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll,
                                           io_backend_kind::sim),
                         eddy::testing::io_backend_name);

constexpr std::string_view get = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

TEST_P(http_total_time, ends_a_request_without_a_response) {
    forward(
        [](forwarding& f) -> task<void> {
            f.rules.total_time = 100ms;
            text_peer client = co_await f.client();
            co_await client.say(std::string(get));
            text_peer backend = co_await f.backend().accept();
            co_await backend.head();
            EXPECT_THAT(co_await client.until("Timeout\n"), StartsWith("HTTP/1.1 504 "));
            EXPECT_TRUE(co_await backend.is_over());
            EXPECT_EQ(f.sum(&backend_counters::requests), 1U) << "it is not repeated";
            EXPECT_THAT(f.noted, Contains("504"));
            // The client's connection stays.
            co_await client.say(std::string(get));
            text_peer next = co_await f.backend(1).accept();
            co_await next.head();
            co_await next.say("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
            EXPECT_THAT(co_await client.head(), StartsWith("HTTP/1.1 200 "));
        },
        2);
}

TEST_P(http_total_time, includes_all_tries_and_the_upload) {
    forward(
        [](forwarding& f) -> task<void> {
            f.rules.total_time = 250ms;
            f.rules.limits.response_time = 100ms;
            text_peer client = co_await f.client();
            co_await client.say(std::string(get));
            EXPECT_THAT(co_await client.head(), StartsWith("HTTP/1.1 504 "));
            EXPECT_EQ(f.sum(&backend_counters::requests), 3U);
            text_peer uploading = co_await f.client();
            co_await uploading.say("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc");
            EXPECT_THAT(co_await uploading.head(), StartsWith("HTTP/1.1 504 "));
        },
        5);
}

TEST_P(http_total_time, cuts_a_response_that_has_begun) {
    forward([](forwarding& f) -> task<void> {
        f.rules.total_time = 500ms;
        text_peer client = co_await f.client();
        co_await client.say(std::string(get));
        text_peer backend = co_await f.backend().accept();
        co_await backend.head();
        co_await backend.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
        EXPECT_THAT(co_await client.rest(), EndsWith("3\r\nabc\r\n"));
        EXPECT_NE(client.end, errc::end_of_stream);
        EXPECT_TRUE(co_await backend.is_over());
        EXPECT_THAT(f.noted, Contains(HasSubstr("was cut")));
    });
}

TEST_P(http_total_time, does_not_limit_tunnels) {
    forward([](forwarding& f) -> task<void> {
        f.rules.total_time = 1s;
        text_peer client = co_await f.client();
        co_await client.say(
            "GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
        text_peer backend = co_await f.backend().accept();
        co_await backend.head();
        co_await backend.say("HTTP/1.1 101 x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
        EXPECT_THAT(co_await client.head(), StartsWith("HTTP/1.1 101 "));
        must(co_await loop::current().sleep_for(1100ms));
        co_await client.say("one");
        EXPECT_EQ(co_await backend.bytes(3), "one");
    });
}

}  // namespace
}  // namespace eddy::proxy
