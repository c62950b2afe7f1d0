// Cost of connections: memory and wake-ups of idle ones, and allocations of busy ones.
#include <eddy/shm/connection.hpp>
#include <eddy/shm/layout.h>

#include "base/counted_memory.hpp"
#include "base/test_rounds.hpp"
#include "io/testing.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace eddy::shm {
namespace {

using testing::error_of;
using testing::must;
using namespace std::chrono_literals;

constexpr std::size_t idle_bytes_allowed = 64 * 1024;

/// Bytes of memory files of streams that are in use, each counted once.
std::size_t shared_bytes() {
    std::ifstream maps("/proc/self/smaps");
    std::size_t kibibytes = 0;
    bool is_ours = false;
    for (std::string line; std::getline(maps, line);) {
        std::istringstream words(line);
        std::string first;
        std::size_t number = 0;
        words >> first;
        if (!first.ends_with(':')) is_ours = line.find("eddy-shm") != std::string::npos;
        if (is_ours && first == "Pss:" && words >> number) kibibytes += number;
    }
    return kibibytes * 1024;
}

/// Times that threads of this process but the calling one have gone to sleep.
std::uint64_t sleeps_of_other_threads() {
    std::uint64_t total = 0;
    for (const auto& each : std::filesystem::directory_iterator("/proc/self/task")) {
        if (each.path().filename() == std::to_string(::gettid())) continue;
        std::ifstream status(each.path() / "status");
        for (std::string word; status >> word;) {
            std::uint64_t count = 0;
            if (word == "voluntary_ctxt_switches:" && status >> count) total += count;
        }
    }
    return total;
}

/// Expects that all other threads sleep on, once they do.
void expect_no_wakeups() {
    const auto deadline = std::chrono::steady_clock::now() + 40s;
    std::uint64_t seen = 0;
    while (std::exchange(seen, sleeps_of_other_threads()) != sleeps_of_other_threads() &&
           std::chrono::steady_clock::now() < deadline)
        std::this_thread::sleep_for(20ms);
    seen = sleeps_of_other_threads();
    std::this_thread::sleep_for(500ms);
    // A stopped process that continues counts once for each thread.
    EXPECT_LE(sleeps_of_other_threads() - seen, 4u);
}

TEST(shm_idle, connections_take_little_memory_and_no_wakeups) {
    auto ends = must(connection::pair());
    std::atomic<bool> has_echoed = false;
    std::error_code end;
    std::thread echoing([&] {
        std::vector<std::byte> buffer(100);
        must(ends.second.read_some(buffer));
        must(ends.second.write_all(const_bytes(buffer).first(1)));
        has_echoed = true;
        end = error_of(ends.second.read_some(buffer));
    });
    std::vector<std::byte> buffer(1);
    must(ends.first.write_all(as_bytes("x")));
    must(ends.first.read_exactly(buffer));
    EXPECT_LE(shared_bytes(), idle_bytes_allowed);
    EXPECT_GT(shared_bytes(), 0u);
    if (!testing::is_sanitized) expect_no_wakeups();  // sanitizers have threads of their own
    ends.first.close();
    echoing.join();
    EXPECT_TRUE(has_echoed);
    EXPECT_EQ(end, errc::end_of_stream);
}

TEST(shm_idle, connections_that_are_not_read_take_their_ring_and_no_more) {
    constexpr std::size_t count = 20;
    const std::vector<std::byte> many(2 * EDDY_SHM_DEFAULT_RING, std::byte{1});
    const std::size_t before = shared_bytes();
    std::vector<std::pair<connection, connection>> unread;
    for (std::size_t i = 0; i < count; ++i) {
        unread.push_back(must(connection::pair()));
        EXPECT_EQ(must(unread.back().first.try_write(many)), EDDY_SHM_DEFAULT_RING);
        EXPECT_EQ(must(unread.back().first.try_write(many)), 0U);
    }
    const std::size_t each = (shared_bytes() - before) / count;
    EXPECT_GE(each, EDDY_SHM_DEFAULT_RING);
    EXPECT_LE(each, EDDY_SHM_DEFAULT_RING + idle_bytes_allowed);
}

task<void> echo_in_a_loop(std::string path) {
    listener accepting = must(shm::listen(path));
    stream peer = must(co_await accepting.accept());
    for (;;) {
        const auto received = co_await peer.read();
        if (!received) co_return;
        must(co_await peer.write_all(received->bytes()));
    }
}

TEST(shm_idle, streams_of_a_loop_take_little_memory_and_no_wakeups) {
    const testing::temporary_folder folder;
    std::thread looping([&] {
        loop_options chosen;
        chosen.kind = io_backend_kind::epoll;
        must(loop::create(chosen))->run(echo_in_a_loop(folder.file("s")));
    });
    const auto deadline = std::chrono::steady_clock::now() + 40s;
    result<connection> client = fail(errc::closed);
    while (!client && std::chrono::steady_clock::now() < deadline)
        client = connection::connect(folder.file("s"));
    std::vector<std::byte> buffer(1);
    must(client->write_all(as_bytes("x")));
    must(client->read_exactly(buffer));
    EXPECT_LE(shared_bytes(), idle_bytes_allowed);
    if (!testing::is_sanitized) expect_no_wakeups();
    client->close();
    looping.join();
}

#if EDDY_COUNTS_ALLOCATIONS

constexpr int warm_rounds = 100;
constexpr int counted_rounds = 2'000;

/// Round trips of 100 bytes, and one message that is larger than the ring.
void converse(connection& with, bool asks, std::uint64_t& made) {
    std::vector<std::byte> buffer(100);
    const std::vector<std::byte> large(asks ? 600'000 : 0);
    std::vector<std::byte> into(asks ? 0 : 600'000);
    for (int i = 0; i < warm_rounds + counted_rounds; ++i) {
        if (i == warm_rounds) made = testing::allocations();
        if (asks) must(with.write_all(buffer));
        must(with.read_exactly(buffer));
        if (!asks) must(with.write_all(buffer));
    }
    if (asks)
        must(with.write_all(large));
    else
        must(with.read_exactly(into));
    made = testing::allocations() - made;
}

TEST(shm_busy, connections_allocate_nothing) {
    for (const waiting how : {waiting::adaptive, waiting::sleep}) {
        connection_options wanted;
        wanted.wait = how;
        wanted.max_packets = 64;
        auto ends = must(connection::pair(wanted));
        std::uint64_t asked = 0;
        std::uint64_t answered = 0;
        std::thread answering([&] { converse(ends.second, false, answered); });
        converse(ends.first, true, asked);
        answering.join();
        EXPECT_EQ(asked, 0u);
        EXPECT_EQ(answered, 0u);
    }
}

class shm_busy_streams : public testing::on_io_backend {
protected:
    static task<void> echo(listener* from) {
        stream peer = must(co_await from->accept());
        for (;;) {
            const auto received = co_await peer.read();
            if (!received) co_return;
            must(co_await peer.write_all(received->bytes()));
        }
    }
};
INSTANTIATE_TEST_SUITE_P(shm, shm_busy_streams,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll),
                         testing::io_backend_name);

TEST_P(shm_busy_streams, allocate_nothing) {
    run([]() -> task<> {
        const testing::temporary_folder folder;
        listener accepting = must(shm::listen(folder.file("s")));
        co_await with_scope([&](scope& children) -> task<> {
            children.spawn(echo(&accepting));
            stream client = must(co_await shm::connect(folder.file("s")));
            std::vector<std::byte> buffer(100);
            std::uint64_t before = 0;
            for (int i = 0; i < warm_rounds + counted_rounds; ++i) {
                if (i == warm_rounds) before = testing::allocations();
                must(co_await client.write_all(buffer));
                must(co_await client.read_exactly(buffer));
            }
            EXPECT_EQ(testing::allocations() - before, 0u);
            client.close();
            co_await children.join();
        });
    });
}

#endif

}  // namespace
}  // namespace eddy::shm
