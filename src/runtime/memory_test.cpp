// Tests of what an idle connection costs in user space.
#include "http/server/server_worker.hpp"
#include "runtime/testing.hpp"

#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/socket.h>

#include <string>
#include <vector>

namespace eddy::runtime {
namespace {

using namespace runtime::testing;

EDDY_ON_EVERY_KERNEL_IO_BACKEND(idle_connections);

constexpr std::uint64_t connections = 2000;
constexpr std::size_t most_bytes_each = 1024;

/// A connection without any memory of this process: a bare socket.
unique_fd connect_to(const endpoint& where) {
    unique_fd made(::socket(where.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::connect(made.get(), where.data(), where.size()) != 0)
        throw std::runtime_error("connect failed");
    return made;
}

/// `quiet` is the time after which a connection that is idle costs no more than it does then;
/// `most` bytes.
task<void> cost_of_idle_connections(std::string type, std::string greeting, std::string answer,
                                    duration quiet = 20ms, std::size_t most = most_bytes_each) {
    subject runtime(type, any_port);
    co_await runtime.start();
    std::vector<unique_fd> peers;
    peers.reserve(2 * connections);
    const auto add = [&](std::uint64_t count) -> task<void> {
        for (std::uint64_t i = 0; i < count; ++i) {
            peers.push_back(connect_to(runtime->local()));
            if (i % 50 == 49)
                co_await until([&] { return runtime->count().connections_now == peers.size(); });
        }
        // Each connection sends and receives something before it is idle.
        std::string rest(4096, ' ');
        for (const unique_fd& peer : peers)
            while (::recv(peer.get(), rest.data(), rest.size(), MSG_DONTWAIT) > 0) continue;
        for (const unique_fd& peer : peers)
            EXPECT_EQ(::send(peer.get(), greeting.data(), greeting.size(), 0),
                      static_cast<ssize_t>(greeting.size()));
        const std::uint64_t expected = runtime->count().bytes_in;
        co_await until([&] { return runtime->count().bytes_in >= expected; });
        std::string got(answer.size(), ' ');
        for (const unique_fd& peer : peers) {
            std::size_t size = 0;
            while (size < got.size()) {
                const ssize_t more =
                    ::recv(peer.get(), got.data() + size, got.size() - size, MSG_DONTWAIT);
                if (more > 0)
                    size += static_cast<std::size_t>(more);
                else
                    static_cast<void>(co_await loop::current().sleep_for(1ms));
            }
            EXPECT_EQ(got, answer);
        }
    };
    // As many before: what pools keep for later connections is no connection's.
    co_await add(type == "http" ? connections : 100);
    static_cast<void>(co_await loop::current().sleep_for(quiet));
    const std::size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
    co_await add(connections);
    static_cast<void>(co_await loop::current().sleep_for(quiet));
    const std::size_t each = (mallinfo2().uordblks + mallinfo2().hblkhd - before) / connections;
    ::testing::Test::RecordProperty("bytes_each", std::to_string(each));
    std::printf("%s: %zu bytes for each idle connection\n", type.c_str(), each);
    EXPECT_LE(each, most);
    peers.clear();
    co_await runtime->stop(0s);
}

TEST_P(idle_connections, of_a_cache_cost_a_kibibyte_at_most) {
    if (!frame_pool_recycles()) GTEST_SKIP() << "the sanitizer's allocator counts otherwise";
    run([] { return cost_of_idle_connections("cache", "PING\r\n", "+PONG\r\n"); });
}

TEST_P(idle_connections, of_a_server_cost_a_kibibyte_at_most) {
    if (!frame_pool_recycles()) GTEST_SKIP() << "the sanitizer's allocator counts otherwise";
    run([] { return cost_of_idle_connections("server", "", ""); });
}

TEST_P(idle_connections, of_a_site_cost_512_bytes_at_most) {
    if (!frame_pool_recycles()) GTEST_SKIP() << "the sanitizer's allocator counts otherwise";
    run([] {
        return cost_of_idle_connections("http", "GET /missing HTTP/1.1\r\nHost: x\r\n\r\n",
                                        "HTTP/1.1 404 Not Found\r\n",
                                        eddy::http::server_worker::rest_after + 500ms, 512);
    });
}

}  // namespace
}  // namespace eddy::runtime
