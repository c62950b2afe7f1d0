// Max-Forwards: how many proxies a TRACE or OPTIONS passes.
#include "proxy/http/max_forwards.hpp"

#include "proxy/testing.hpp"

#include <string>
#include <string_view>

namespace eddy::proxy {
namespace {

using namespace proxy::testing;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class http_max_forwards : public with_forwarding {};

INSTANTIATE_TEST_SUITE_P(proxy, http_max_forwards,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll,
                                           io_backend_kind::sim),
                         eddy::testing::io_backend_name);

const std::string none = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

TEST_P(http_max_forwards, each_proxy_counts_one_off) {
    forward([](forwarding& f) -> task<void> {
        text_peer client = co_await f.client();
        co_await client.say("OPTIONS * HTTP/1.1\r\nHost: x\r\nmax-forwards: 3\r\n\r\n");
        text_peer backend = co_await f.backend().accept();
        EXPECT_EQ(co_await backend.head(),
                  "OPTIONS * HTTP/1.1\r\nHost: x\r\nMax-Forwards: 2\r\n\r\n");
        co_await backend.say(none);
        EXPECT_THAT(co_await client.head(), StartsWith("HTTP/1.1 200"));
        co_await client.say(
            "TRACE /a HTTP/1.1\r\nHost: x\r\nConnection: max-forwards\r\n"
            "Max-Forwards: 99999999999\r\n\r\n");
        EXPECT_EQ(co_await backend.head(),
                  "TRACE /a HTTP/1.1\r\nHost: x\r\nMax-Forwards: 4294967294\r\n\r\n")
            << "Connection does not take it away";
        co_await backend.say(none);
        EXPECT_THAT(co_await client.head(), StartsWith("HTTP/1.1 200"));
        co_await client.say("GET / HTTP/1.1\r\nHost: x\r\nMax-Forwards: 0\r\n\r\n");
        EXPECT_EQ(co_await backend.head(), "GET / HTTP/1.1\r\nHost: x\r\nMax-Forwards: 0\r\n\r\n")
            << "it means nothing with other methods";
        co_await backend.say(none);
        EXPECT_THAT(co_await client.head(), StartsWith("HTTP/1.1 200"));
    });
}

TEST_P(http_max_forwards, the_proxy_answers_at_zero) {
    forward([](forwarding& f) -> task<void> {
        text_peer client = co_await f.client();
        co_await client.say("OPTIONS / HTTP/1.1\r\nHost: x\r\nMax-Forwards: 0\r\n\r\n");
        const std::string options = co_await client.head();
        EXPECT_THAT(options, StartsWith("HTTP/1.1 200 OK\r\n"));
        EXPECT_THAT(options, HasSubstr("\r\nContent-Length: 0\r\n"));
        co_await client.say(
            "TRACE /a?b HTTP/1.1\r\nHost: x\r\nCookie: secret\r\nAuthorization: Basic eA==\r\n"
            "A: b\r\nMax-Forwards: 0\r\n\r\n");
        EXPECT_THAT(co_await client.head(), HasSubstr("\r\nContent-Type: message/http\r\n"));
        EXPECT_EQ(co_await client.head(),
                  "TRACE /a?b HTTP/1.1\r\nHost: x\r\nA: b\r\nMax-Forwards: 0\r\n\r\n")
            << "without what is secret";
        for (const std::string_view bad : {"x", "-1", "1 2", "", "1\r\nMax-Forwards: 1"}) {
            co_await client.say("TRACE / HTTP/1.1\r\nHost: x\r\nMax-Forwards: " + std::string(bad) +
                                "\r\n\r\n");
            const std::string head = co_await client.head();
            EXPECT_THAT(head, StartsWith("HTTP/1.1 400 ")) << bad;
            const std::size_t at = head.find("Content-Length: ") + 16;
            co_await client.bytes(std::stoul(head.substr(at)));
        }
        EXPECT_EQ(f.sum(&backend_counters::requests), 0U);
    });
}

}  // namespace
}  // namespace eddy::proxy
