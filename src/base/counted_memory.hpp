// Counter of a thread's allocations by any way (`operator new`, the frame pool, a buffer, a library
// within a call), with injected failures. It replaces those functions, so one file of a test
// program includes it. Not with the sanitizers, which bring their own: EDDY_COUNTS_ALLOCATIONS is 0
// there, and nothing is defined.
#pragma once

#include <eddy/base/frame_pool.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <new>
#include <utility>
#include <vector>

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define EDDY_COUNTS_ALLOCATIONS 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define EDDY_COUNTS_ALLOCATIONS 0
#endif
#endif
#if !defined(EDDY_COUNTS_ALLOCATIONS)
#define EDDY_COUNTS_ALLOCATIONS 1

// NOLINTBEGIN(bugprone-reserved-identifier)
extern "C" void* __libc_malloc(std::size_t size) noexcept;
extern "C" void* __libc_calloc(std::size_t count, std::size_t size) noexcept;
extern "C" void* __libc_realloc(void* memory, std::size_t size) noexcept;
extern "C" void __libc_free(void* memory) noexcept;
// NOLINTEND(bugprone-reserved-identifier)

namespace eddy::testing {

inline constexpr std::uint64_t no_limit = std::numeric_limits<std::uint64_t>::max();
inline thread_local constinit std::uint64_t allocations_made = 0;
inline thread_local constinit std::uint64_t mallocs_left = no_limit;
inline thread_local constinit std::size_t largest_refused = no_limit;
inline thread_local constinit std::int64_t blocks_live = 0;
inline thread_local constinit std::uint64_t mallocs_refused = 0;
inline thread_local constinit bool refuses_once = false;

inline void* counted_allocation(std::size_t size) {
    void* memory = std::malloc(size ? size : 1);
    if (!memory) throw std::bad_alloc();
    return memory;
}

/// Allocations of this thread since it began. Only differences are meaningful.
inline std::uint64_t allocations() noexcept { return allocations_made; }

/// Blocks allocated minus blocks freed on this thread, without those of their own alignment. Only
/// differences are meaningful.
inline std::int64_t live_blocks() noexcept { return blocks_live; }

/// Times that malloc has failed on this thread by no_memory or one_failure.
inline std::uint64_t refusals() noexcept { return mallocs_refused; }

/// While it lives, malloc succeeds the given number of times on this thread, fails once, and
/// succeeds again.
class one_failure {
public:
    explicit one_failure(std::uint64_t after) noexcept {
        mallocs_left = after;
        refuses_once = true;
    }
    ~one_failure() {
        mallocs_left = no_limit;
        refuses_once = false;
    }
    one_failure(const one_failure&) = delete;
    one_failure& operator=(const one_failure&) = delete;
};

/// While it lives, malloc succeeds the given number of times on this thread, and fails from then
/// on. Requests above `largest` bytes succeed all the same.
class no_memory {
public:
    explicit no_memory(std::uint64_t after = 0, std::size_t largest = no_limit) noexcept {
        mallocs_left = after;
        largest_refused = largest;
    }
    ~no_memory() { mallocs_left = no_limit; }
    no_memory(const no_memory&) = delete;
    no_memory& operator=(const no_memory&) = delete;

    /// True if the next allocation would fail.
    bool is_out() const noexcept { return mallocs_left == 0; }
};

/// While it lives, this thread's frame pool is empty: each new coroutine calls malloc.
class no_spare_frames {
public:
    no_spare_frames() {
        // One of each class, the last included, which may hold less than the step.
        for (std::size_t next = 1; next < frame_size_limit + frame_class_step;
             next += frame_class_step) {
            const std::size_t size = std::min(next, frame_size_limit);
            for (const std::uint64_t before = frame_allocations(); frame_allocations() == before;)
                frames_.emplace_back(frame_allocate(size), size);
        }
    }
    ~no_spare_frames() {
        for (const auto& [frame, size] : frames_) frame_free(frame, size);
    }
    no_spare_frames(const no_spare_frames&) = delete;
    no_spare_frames& operator=(const no_spare_frames&) = delete;

private:
    std::vector<std::pair<void*, std::size_t>> frames_;
};

}  // namespace eddy::testing

extern "C" void* malloc(std::size_t size) noexcept {
    using namespace eddy::testing;
    ++allocations_made;
    if (size <= largest_refused) {
        if (mallocs_left == 0) {
            ++mallocs_refused;
            if (refuses_once) mallocs_left = no_limit;
            return nullptr;
        }
        if (mallocs_left != no_limit) --mallocs_left;
    }
    ++blocks_live;
    return __libc_malloc(size);
}
extern "C" void* calloc(std::size_t count, std::size_t size) noexcept {
    ++eddy::testing::allocations_made;
    ++eddy::testing::blocks_live;
    return __libc_calloc(count, size);
}
extern "C" void* realloc(void* memory, std::size_t size) noexcept {
    ++eddy::testing::allocations_made;
    if (memory == nullptr) ++eddy::testing::blocks_live;
    return __libc_realloc(memory, size);
}
extern "C" void free(void* memory) noexcept {
    if (memory != nullptr) --eddy::testing::blocks_live;
    __libc_free(memory);
}

void* operator new(std::size_t size) { return eddy::testing::counted_allocation(size); }
void* operator new[](std::size_t size) { return eddy::testing::counted_allocation(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

#endif
