// Tests of the slab under use by several threads.
#include <eddy/base/random.hpp>

#include "base/test_seed.hpp"
#include "cache/memory/slab.hpp"
#include "cache/testing/marked_block.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace eddy::cache {
namespace {

using testing::marked_block;

TEST(slab_threads, threads_with_stocks_have_blocks_of_their_own) {
    const std::uint64_t seed = eddy::testing::seed_of_this_run();
    SCOPED_TRACE(seed);
    slab memory;
    constexpr std::size_t threads = 4;
    std::vector<std::unique_ptr<slab::stock>> stocks;
    for (std::size_t i = 0; i < threads; ++i)
        stocks.push_back(std::make_unique<slab::stock>(memory));
    // One thread may release what another has allocated.
    std::array<std::vector<marked_block>, threads> blocks;
    std::array<std::mutex, threads> of_blocks;
    std::vector<std::thread> running;
    for (std::size_t number = 0; number < threads; ++number) {
        running.emplace_back([&, number] {
            const slab::stock::use mine(*stocks[number]);
            random_generator random(seed + number);
            for (int i = 0; i < 30'000; ++i) {
                const std::size_t which = random.below(threads);
                if (random.below(5) < 3) {
                    const std::size_t size = 1 + random.below(random.below(8) == 0 ? 40'000 : 300);
                    auto* const block = static_cast<unsigned char*>(memory.allocate(size));
                    const auto mark = static_cast<unsigned char>(random());
                    std::memset(block, mark, slab::capacity(size));
                    const std::lock_guard alone(of_blocks[which]);
                    blocks[which].push_back({block, size, mark});
                    continue;
                }
                marked_block gone{};
                {
                    const std::lock_guard alone(of_blocks[which]);
                    if (blocks[which].empty()) continue;
                    gone = blocks[which].back();
                    blocks[which].pop_back();
                }
                for (std::size_t at = 0; at < slab::capacity(gone.size); at += 61)
                    ASSERT_EQ(gone.block[at], gone.mark);
                memory.release(gone.block, gone.size);
            }
        });
    }
    for (std::thread& each : running) each.join();
    for (const auto& each : stocks) each->merge_counters();
    std::size_t used = 0;
    constexpr std::size_t malloc_overhead = 16;
    for (const auto& all : blocks) {
        for (const marked_block& each : all) {
            const std::size_t room = slab::capacity(each.size);
            const bool is_large = each.size > slab::max_small && each.size != 8192 &&
                                  each.size != 16384 && each.size != slab::max_segment;
            used += room + (is_large ? malloc_overhead : 0);
        }
    }
    EXPECT_EQ(memory.used_bytes(), used);
    for (const auto& all : blocks) {
        for (const marked_block& each : all) memory.release(each.block, each.size);
    }
    EXPECT_EQ(memory.used_bytes(), 0U);
    stocks.clear();
    EXPECT_EQ(memory.used_bytes(), 0U);
}

TEST(slab_threads, a_stock_keeps_few_blocks_and_counts_what_it_gave) {
    slab memory;
    slab::stock stock(memory);
    constexpr std::size_t size = 64;
    std::vector<void*> blocks;
    {
        const slab::stock::use mine(stock);
        for (int i = 0; i < 1000; ++i) blocks.push_back(memory.allocate(size));
        EXPECT_EQ(stock.taken(), 1000 * size);
        for (void* const each : blocks) memory.release(each, size);
    }
    // Blocks in the stock count as used until it has merged its counters.
    EXPECT_GT(memory.used_bytes(), 0U);
    EXPECT_LE(memory.used_bytes(), slab::stock::most * size);
    stock.merge_counters();
    EXPECT_EQ(memory.used_bytes(), 0U);
    EXPECT_EQ(stock.taken(), 0U);
}

}  // namespace
}  // namespace eddy::cache
