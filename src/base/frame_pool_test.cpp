// Recycling of coroutine frames, its bounds, and frames that change threads.
#include <eddy/base/frame_pool.hpp>

#include <eddy/base/random.hpp>

#include "base/test_seed.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <memory_resource>
#include <thread>
#include <vector>

namespace eddy {
namespace {

// Each test takes a thread of its own, so that the pool it sees is new.
template <class F>
void on_new_thread(F f) {
    std::thread(f).join();
}

std::vector<void*> allocate_many(std::size_t count, std::size_t size) {
    std::vector<void*> frames;
    for (std::size_t i = 0; i < count; ++i) frames.push_back(frame_allocate(size));
    return frames;
}

void free_all(const std::vector<void*>& frames, std::size_t size) {
    for (void* frame : frames) frame_free(frame, size);
}

TEST(frame_pool, reuses_a_freed_frame_of_the_same_class) {
    if (!frame_pool_recycles()) GTEST_SKIP() << "the address sanitizer sees every frame";
    on_new_thread([] {
        void* first = frame_allocate(200);
        frame_free(first, 200);
        EXPECT_EQ(frame_allocations(), 1u);
        void* second = frame_allocate(248);  // 185..248 are one class
        EXPECT_EQ(second, first);
        EXPECT_EQ(frame_allocations(), 1u);
        void* other = frame_allocate(249);
        EXPECT_NE(other, second);
        EXPECT_EQ(frame_allocations(), 2u);
        frame_free(second, 248);
        frame_free(other, 249);
    });
}

TEST(frame_pool, makes_no_allocation_in_the_steady_state) {
    if (!frame_pool_recycles()) GTEST_SKIP();
    on_new_thread([] {
        const std::vector<std::size_t> sizes{0, 1, 64, 65, 500, 1024, 4095, frame_size_limit};
        for (const std::size_t size : sizes) frame_free(frame_allocate(size), size);
        const std::uint64_t before = frame_allocations();
        for (int round = 0; round < 1000; ++round) {
            for (const std::size_t size : sizes) frame_free(frame_allocate(size), size);
        }
        EXPECT_EQ(frame_allocations(), before);
    });
}

TEST(frame_pool, sends_large_frames_to_malloc) {
    on_new_thread([] {
        for (int i = 0; i < 3; ++i) {
            void* frame = frame_allocate(frame_size_limit + 1);
            std::memset(frame, 1, frame_size_limit + 1);
            frame_free(frame, frame_size_limit + 1);
        }
        EXPECT_EQ(frame_allocations(), 3u);
    });
}

TEST(frame_pool, keeps_no_more_than_its_limit) {
    if (!frame_pool_recycles()) GTEST_SKIP();
    on_new_thread([] {
        for (const std::size_t size : {frame_class_step, std::size_t{1000}, frame_size_limit}) {
            // With malloc's header, which is a part of the class's blocks.
            const std::size_t rounded = (size + sizeof(std::size_t) + frame_class_step - 1) /
                                        frame_class_step * frame_class_step;
            const std::size_t kept = frame_cache_limit / rounded;
            free_all(allocate_many(kept + 10, size), size);
            const std::uint64_t before = frame_allocations();
            const std::vector<void*> frames = allocate_many(kept, size);
            EXPECT_EQ(frame_allocations(), before);
            void* one_more = frame_allocate(size);
            EXPECT_EQ(frame_allocations(), before + 1) << "more than the limit was kept";
            frame_free(one_more, size);
            free_all(frames, size);
        }
    });
}

TEST(frame_pool, takes_frames_of_other_threads) {
    const std::vector<void*> frames = allocate_many(100, 320);
    on_new_thread([frames] {
        free_all(frames, 320);
        if (!frame_pool_recycles()) return;
        const std::vector<void*> again = allocate_many(100, 320);
        EXPECT_EQ(frame_allocations(), 0u);
        free_all(again, 320);
    });
}

TEST(frame_pool, gives_the_block_that_was_freed_last_back_for_its_thread) {
    if (!frame_pool_recycles()) {
        EXPECT_EQ(frame_take_back().memory, nullptr);
        return;
    }
    on_new_thread([] {
        EXPECT_EQ(frame_take_back().memory, nullptr) << "nothing was freed yet";
        void* const visitor = frame_allocate(300);
        frame_free(frame_allocate(1000), 1000);
        frame_free(visitor, 300);
        const frame_block taken = frame_take_back();
        EXPECT_EQ(taken.memory, visitor);
        EXPECT_EQ(frame_take_back().memory, nullptr) << "there is no second one";
        on_new_thread([taken] {
            frame_free(taken.memory, taken.size);
            EXPECT_EQ(frame_allocate(300), taken.memory);
            EXPECT_EQ(frame_allocations(), 0u);
            frame_free(taken.memory, 300);
        });
        frame_free(frame_allocate(frame_size_limit + 1), frame_size_limit + 1);
        EXPECT_EQ(frame_take_back().memory, nullptr) << "it was no block of the pool";
        // A class that is full passes one on all the same: the other thread lacks it.
        const std::size_t more = frame_cache_limit / 320 + 5;
        free_all(allocate_many(more, 320), 320);
        const frame_block spare = frame_take_back();
        EXPECT_NE(spare.memory, nullptr);
        frame_free(spare.memory, spare.size);
    });
}

// Constructed before the pool's own thread-exit hook, so destroyed after it.
struct late_owner {
    void* frame = nullptr;
    ~late_owner() {
        frame_free(frame, 128);
        frame_free(frame_allocate(128), 128);
    }
};

TEST(frame_pool, works_after_its_thread_has_let_go_of_it) {
    // The leak and address checkers are what judges this one.
    on_new_thread([] {
        static thread_local late_owner owner;
        owner.frame = frame_allocate(128);
        frame_free(frame_allocate(64), 64);
    });
}

TEST(frame_pool, aligns_and_never_gives_a_frame_twice) {
    const std::uint64_t seed = testing::seed_of_this_run();
    SCOPED_TRACE(seed);
    random_generator random(seed);
    struct held {
        unsigned char* frame;
        std::size_t size;
        unsigned char mark;
    };
    std::vector<held> all;
    for (int i = 0; i < 20000; ++i) {
        if (all.empty() || (all.size() < 200 && random.chance(0.5))) {
            const std::size_t size = 1 + random.below(5000);
            auto* frame = static_cast<unsigned char*>(frame_allocate(size));
            ASSERT_EQ(reinterpret_cast<std::uintptr_t>(frame) % 16, 0u);
            const auto mark = static_cast<unsigned char>(random());
            std::memset(frame, mark, size);
            all.push_back({frame, size, mark});
        } else {
            const std::size_t at = random.below(all.size());
            const held one = all[at];
            ASSERT_EQ(one.frame[0], one.mark);
            ASSERT_EQ(one.frame[one.size - 1], one.mark);
            frame_free(one.frame, one.size);
            all[at] = all.back();
            all.pop_back();
        }
    }
    for (const held& one : all) frame_free(one.frame, one.size);
}

TEST(frame_pool, a_coroutines_frame_goes_back_to_where_it_came_from) {
    struct one_block final : std::pmr::memory_resource {
        void* do_allocate(std::size_t size, std::size_t alignment) override {
            EXPECT_EQ(alignment, 16u);
            EXPECT_LE(size, block.size());
            EXPECT_FALSE(given);
            given = size;
            return block.data();
        }
        void do_deallocate(void* memory, std::size_t size, std::size_t alignment) override {
            EXPECT_EQ(memory, block.data());
            EXPECT_EQ(size, given);
            EXPECT_EQ(alignment, 16u);
            given = 0;
        }
        bool do_is_equal(const memory_resource& other) const noexcept override {
            return this == &other;
        }
        alignas(16) std::array<std::byte, 2 * frame_size_limit> block{};
        std::size_t given = 0;
    };
    one_block memory;
    for (const std::size_t size : {std::size_t{1}, std::size_t{63}, std::size_t{64},
                                   frame_size_limit - 8, frame_size_limit, frame_size_limit + 1}) {
        void* const pooled = detail::make_frame(size);
        std::memset(pooled, 0xff, size);
        void* taken = nullptr;
        {
            const detail::frames_from here(&memory);
            taken = detail::make_frame(size);
            std::memset(taken, 0xff, size);
            EXPECT_EQ(taken, memory.block.data());
            const detail::frames_from none(nullptr);
            detail::end_frame(pooled, size);
            detail::end_frame(detail::make_frame(size), size);
            EXPECT_NE(memory.given, 0u);
        }
        EXPECT_EQ(detail::current_frame_memory, nullptr);
        detail::end_frame(taken, size);
        EXPECT_EQ(memory.given, 0u);
        EXPECT_EQ(frame_take_back().memory, nullptr) << "it was no block of the pool";
    }
}

TEST(frame_pool, coroutines_frames_are_recycled_by_class) {
    if (!frame_pool_recycles()) GTEST_SKIP() << "this build takes every frame from malloc";
    on_new_thread([] {
        void* const first = detail::make_frame(112);
        detail::end_frame(first, 112);
        EXPECT_EQ(frame_allocations(), 1u);
        void* const second = detail::make_frame(100);
        EXPECT_EQ(second, first);
        detail::end_frame(second, 100);
        void* const third = detail::make_frame(113);  // with what stands behind it, a larger class
        EXPECT_EQ(frame_allocations(), 2u);
        detail::end_frame(third, 113);
    });
}

TEST(frame_pool, ignores_null) { frame_free(nullptr, 100); }

}  // namespace
}  // namespace eddy
