// Memory of an idle connection in user space.
#include <eddy/base/frame_pool.hpp>

#include "io/testing.hpp"

#include <malloc.h>
#include <sys/socket.h>

#include <vector>

namespace eddy::testing {
namespace {

EDDY_ON_EVERY_KERNEL_IO_BACKEND(memory_kernel_io);

constexpr std::size_t connections = 5'000;
constexpr std::size_t bytes_allowed = 1024;

/// Bytes that malloc has given out, however they were allocated: operator new, frames, mappings.
std::size_t bytes_in_use() {
    const struct mallinfo2 now = mallinfo2();
    return now.uordblks + now.hblkhd;
}

task<> echo(stream peer) {
    for (;;) {
        const result<lease> received = co_await peer.read();
        if (!received) co_return;
        if (!co_await peer.write_all(received->bytes())) co_return;
    }
}

TEST_P(memory_kernel_io, an_idle_connection_takes_less_than_a_kibibyte) {
    if (!frame_pool_recycles() || bytes_in_use() == 0)
        GTEST_SKIP() << "this build's malloc does not count";
    run([this]() -> task<> {
        listener accepting = must(here().listen(loopback()));
        const endpoint where = accepting.local();
        // The clients are bare descriptors, so that only the servers' side is counted.
        std::vector<unique_fd> clients;
        clients.reserve(connections);
        co_await with_scope([&](scope& children) -> task<> {
            const std::size_t before = bytes_in_use();
            for (std::size_t i = 0; i < connections; ++i) {
                unique_fd client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
                EXPECT_EQ(::connect(client.get(), where.data(), where.size()), 0);
                clients.push_back(std::move(client));
                children.spawn(echo(must(co_await accepting.accept())));
            }
            // Each has been used once: an idle connection is one that was busy before.
            for (const unique_fd& client : clients) EXPECT_EQ(send(client.get(), "x", 1, 0), 1);
            char byte = 0;
            for (const unique_fd& client : clients) {
                ssize_t got = 0;
                while ((got = recv(client.get(), &byte, 1, MSG_DONTWAIT)) < 0)
                    must(co_await here().sleep_for(1us));
                EXPECT_EQ(got, 1);
            }
            // The last echoes give back what they wrote from once the kernel is done with it.
            std::size_t each = 0;
            const time_point deadline = here().now() + std::chrono::seconds(10);
            do {
                must(co_await here().sleep_for(1ms));
                each = (bytes_in_use() - before) / connections;
            } while (each > bytes_allowed && here().now() < deadline);
            RecordProperty("bytes_per_connection", std::to_string(each));
            EXPECT_LE(each, bytes_allowed);
        });
    });
}

}  // namespace
}  // namespace eddy::testing
