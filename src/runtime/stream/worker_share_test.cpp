// Tests of the counts of streams that several workers share: their limit, their peak, and the
// choice of the worker that accepts.
#include "runtime/stream/worker_share.hpp"

#include "io/testing.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <thread>
#include <utility>
#include <vector>

namespace eddy::runtime::stream {
namespace {

using eddy::testing::must;

/// The same board as another process has it.
std::shared_ptr<worker_board> as_of_another(const worker_board& of) {
    return must(worker_board::open(unique_fd(::fcntl(of.descriptor(), F_DUPFD_CLOEXEC, 0))));
}

TEST(worker_board, is_one_for_all_processes) {
    const auto mine = must(worker_board::make());
    worker_share a(as_of_another(*mine), 0);
    worker_share b(as_of_another(*mine), 5);
    EXPECT_TRUE(a.take(100) && a.take(100) && b.take(100));
    EXPECT_EQ(mine->streams(), 3U);
    EXPECT_EQ(mine->streams_of(0), 2U);
    EXPECT_EQ(mine->streams_of(5), 1U);
    a.give_back();
    EXPECT_EQ(mine->streams(), 2U);
    EXPECT_EQ(mine->peak_streams(), 3U);
    EXPECT_EQ(b.peak_streams(), 3U);
    b.give_all_back();
    EXPECT_EQ(mine->streams(), 1U);
}

TEST(worker_board, is_no_other_file) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const unique_fd writer(ends[1]);
    EXPECT_EQ(worker_board::open(unique_fd(ends[0])).error(), errno_code(EINVAL));
}

TEST(worker_share, holds_the_limit_of_all) {
    const auto board = must(worker_board::make());
    worker_share a(board, 0);
    worker_share b(board, 1);
    EXPECT_TRUE(a.take(2));
    EXPECT_TRUE(b.take(2));
    EXPECT_FALSE(a.take(2));
    EXPECT_FALSE(b.take(2));
    EXPECT_EQ(board->streams(), 2U) << "those that are refused do not count";
    EXPECT_EQ(board->peak_streams(), 2U);
    a.give_back();
    EXPECT_TRUE(b.take(2));
}

TEST(worker_share, never_exceeds_the_limit_in_a_race) {
    const auto board = must(worker_board::make());
    constexpr std::uint64_t limit = 10;
    std::atomic<bool> was_exceeded = false;
    std::vector<std::thread> workers;
    for (std::size_t number = 0; number < 3; ++number)
        workers.emplace_back([&board, &was_exceeded, number] {
            worker_share mine(board, number);
            unsigned taken = 0;
            for (int i = 0; i < 20'000; ++i) {
                if (mine.take(limit)) ++taken;
                if (taken == 5) {
                    mine.give_all_back();
                    taken = 0;
                }
                if (board->peak_streams() > limit) was_exceeded = true;
            }
        });
    for (std::thread& each : workers) each.join();
    EXPECT_FALSE(was_exceeded);
    EXPECT_GT(board->peak_streams(), 0U);
    EXPECT_EQ(board->streams(), 0U) << "they have left";
}

TEST(worker_share, leaves_its_count_to_the_board_when_it_dies) {
    const auto board = must(worker_board::make());
    auto* const killed = new worker_share(board, 2);
    EXPECT_TRUE(killed->take(10) && killed->take(10));
    EXPECT_EQ(board->clear(2), 2U);
    EXPECT_EQ(board->clear(2), 0U);
    EXPECT_EQ(board->streams(), 0U);
    delete killed;
}

TEST(worker_share, is_ahead_of_workers_with_fewer_streams) {
    const auto board = must(worker_board::make());
    worker_share a(board, 0);
    for (int i = 0; i < 100; ++i) EXPECT_TRUE(a.take(1000));
    EXPECT_FALSE(a.is_ahead()) << "it is alone";
    worker_share b(board, 1);
    EXPECT_TRUE(a.is_ahead());
    EXPECT_FALSE(b.is_ahead());
    for (int i = 0; i < 100; ++i) EXPECT_TRUE(b.take(1000));
    EXPECT_FALSE(a.is_ahead());
}

}  // namespace
}  // namespace eddy::runtime::stream
