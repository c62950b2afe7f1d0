// Tests of the slab: sizes, reuse, true counts, memory returned to the system.
#include "cache/memory/slab.hpp"

#include <eddy/base/random.hpp>

#include "base/test_seed.hpp"
#include "cache/testing/marked_block.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace eddy::cache {
namespace {

using testing::marked_block;

TEST(slab, capacities_cover_their_sizes_with_little_waste) {
    for (std::size_t size = 1; size <= 40'000; ++size) {
        const std::size_t capacity = slab::capacity(size);
        ASSERT_GE(capacity, size);
        ASSERT_LE(capacity, size <= 512 ? size + 7 : size + size / 8 + 16) << size;
    }
    EXPECT_EQ(slab::capacity(56), 56U);
    EXPECT_TRUE(slab::same_class(57, 64));
    EXPECT_FALSE(slab::same_class(56, 57));
}

TEST(slab, blocks_are_apart_and_keep_their_bytes) {
    const std::uint64_t seed = eddy::testing::seed_of_this_run();
    SCOPED_TRACE(seed);
    random_generator random(seed);
    slab memory;
    std::vector<marked_block> blocks;
    std::size_t used = memory.used_bytes();
    EXPECT_EQ(used, 0U);
    for (int i = 0; i < 200'000; ++i) {
        if (blocks.empty() || random.below(5) < 3) {
            const std::size_t size = 1 + random.below(random.below(8) == 0 ? 40'000 : 300);
            auto* const block = static_cast<unsigned char*>(memory.allocate(size));
            ASSERT_EQ(reinterpret_cast<std::uintptr_t>(block) % 8, 0U);
            const auto mark = static_cast<unsigned char>(random());
            // All of the capacity may be used, not only what was asked for.
            std::memset(block, mark, slab::capacity(size));
            blocks.push_back({block, size, mark});
        } else {
            const std::size_t at = random.below(blocks.size());
            const marked_block gone = blocks[at];
            blocks[at] = blocks.back();
            blocks.pop_back();
            for (std::size_t b = 0; b < gone.size; b += gone.size / 7 + 1) {
                ASSERT_EQ(gone.block[b], gone.mark);
            }
            memory.release(gone.block, gone.size);
        }
    }
    EXPECT_GE(memory.reserved_bytes(), memory.used_bytes());
    for (const marked_block& each : blocks) memory.release(each.block, each.size);
    EXPECT_EQ(memory.used_bytes(), 0U);
}

TEST(slab, counts_the_capacity_of_each_block) {
    slab memory;
    void* const small = memory.allocate(50);
    EXPECT_EQ(memory.used_bytes(), 56U);
    void* const large = memory.allocate(100'000);
    EXPECT_GE(memory.used_bytes(), 100'056U);
    memory.release(large, 100'000);
    memory.release(small, 50);
    EXPECT_EQ(memory.used_bytes(), 0U);
}

TEST(slab, segment_sized_blocks_are_aligned_to_two_cache_lines) {
    slab memory;
    std::vector<marked_block> blocks;
    for (std::size_t size = 128; size <= slab::max_segment; size *= 2) {
        for (int i = 0; i < 40; ++i) {
            auto* const block = static_cast<unsigned char*>(memory.allocate(size));
            ASSERT_EQ(reinterpret_cast<std::uintptr_t>(block) % 128, 0U) << size;
            blocks.push_back({block, size, 0});
        }
    }
    for (const marked_block& each : blocks) memory.release(each.block, each.size);
}

TEST(slab, what_one_size_gives_back_another_can_use) {
    slab memory;
    const auto fill = [&memory](std::size_t size) {
        std::vector<void*> blocks;
        for (std::size_t bytes = 0; bytes < (32U << 20); bytes += slab::capacity(size)) {
            blocks.push_back(memory.allocate(size));
        }
        return blocks;
    };
    std::vector<void*> blocks = fill(64);
    const std::size_t reserved = memory.reserved_bytes();
    for (void* const each : blocks) memory.release(each, 64);
    EXPECT_LE(memory.reserved_bytes(), 2 * slab::chunk_bytes);
    blocks = fill(200);
    EXPECT_LE(memory.reserved_bytes(), reserved + 2 * slab::chunk_bytes);
    for (void* const each : blocks) memory.release(each, 200);
}

// Pages of 64 KiB of which the system has given memory.
std::size_t resident_pages(const std::vector<char*>& pages) {
    std::size_t resident = 0;
    for (char* const each : pages) {
        std::array<unsigned char, slab::page_bytes / 4096> map{};
        EXPECT_EQ(::mincore(each, slab::page_bytes, map.data()), 0);
        // The first 4 KiB of a chunk are its head.
        resident += (map[1] & 1) != 0;
    }
    return resident;
}

TEST(slab, the_memory_of_most_free_pages_goes_back_though_their_chunks_are_in_use) {
    constexpr std::size_t chunks = 10;
    constexpr std::size_t size = 64;
    constexpr std::size_t other_size = 200;
    slab memory;
    std::vector<void*> going;
    std::vector<void*> staying;
    std::vector<char*> pages;
    const auto page_of = [](void* block) {
        return reinterpret_cast<char*>(reinterpret_cast<std::uintptr_t>(block) / slab::page_bytes *
                                       slab::page_bytes);
    };
    // Pages of both sizes in each chunk.
    for (std::size_t i = 0; i < 2 * chunks; ++i) {
        for (std::size_t bytes = 0; bytes < slab::chunk_bytes / 2; bytes += size) {
            going.push_back(memory.allocate(size));
            std::memset(going.back(), 'x', size);
            if (pages.empty() || pages.back() != page_of(going.back()))
                pages.push_back(page_of(going.back()));
        }
        for (std::size_t bytes = 0; bytes < slab::chunk_bytes / 2; bytes += other_size)
            staying.push_back(memory.allocate(other_size));
    }
    EXPECT_EQ(resident_pages(pages), pages.size());
    EXPECT_GE(pages.size(), 10 * chunks);
    for (void* const each : going) memory.release(each, size);
    EXPECT_LE(resident_pages(pages), 4 * memory.reserved_bytes() / slab::chunk_bytes);
    // And they can be used again.
    const std::size_t reserved = memory.reserved_bytes();
    for (void*& each : going) {
        each = memory.allocate(size);
        std::memset(each, 'y', size);
    }
    EXPECT_LE(memory.reserved_bytes(), reserved + slab::chunk_bytes);
    for (void* const each : going) {
        ASSERT_EQ(static_cast<const char*>(each)[size - 1], 'y');
        memory.release(each, size);
    }
    for (void* const each : staying) memory.release(each, other_size);
    EXPECT_EQ(memory.used_bytes(), 0U);
}

/// The flags of the mapping in which `inside` lies (proc_pid_smaps(5), VmFlags).
std::string flags_of_mapping(const void* inside) {
    const auto at = reinterpret_cast<std::uintptr_t>(inside);
    std::ifstream smaps("/proc/self/smaps");
    bool found = false;
    for (std::string line; std::getline(smaps, line);) {
        std::uintptr_t begin = 0;
        std::uintptr_t end = 0;
        if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " ", &begin, &end) == 2)
            found = begin <= at && at < end;
        else if (found && line.starts_with("VmFlags:"))
            return line + ' ';
    }
    return {};
}

TEST(slab, asks_for_huge_pages_but_not_for_its_first_chunk) {
    if (!std::filesystem::exists("/sys/kernel/mm/transparent_hugepage"))
        GTEST_SKIP() << "this kernel has no transparent huge pages";
    constexpr std::size_t size = 64;
    slab memory;
    std::vector<void*> blocks;
    while (memory.reserved_bytes() < 3 * slab::chunk_bytes) blocks.push_back(memory.allocate(size));
    EXPECT_NE(flags_of_mapping(blocks.front()).find(" nh "), std::string::npos);
    EXPECT_NE(flags_of_mapping(blocks.back()).find(" hg "), std::string::npos);
    for (void* const each : blocks) memory.release(each, size);
}

TEST(slab, an_empty_one_holds_nothing) {
    const slab memory;
    EXPECT_EQ(memory.reserved_bytes(), 0U);
}

}  // namespace
}  // namespace eddy::cache
