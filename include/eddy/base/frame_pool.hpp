// Memory for coroutine frames, recycled thread by thread.
//
// A loop starts and ends the same few coroutines for every request. Their frames come from a free
// list of the thread, one for each size class, and return to the list of the thread that frees
// them: no lock, no atomic, no malloc in the steady state. A body under with_frames()
// (io/frames.hpp) takes them from the caller's memory_resource.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <utility>

namespace eddy {

/// Blocks of a class take a multiple of this many bytes from malloc, whose header is 8 of them: one
/// class for each multiple.
inline constexpr std::size_t frame_class_step = 64;
/// Larger frames go straight to malloc and back.
inline constexpr std::size_t frame_size_limit = 4096;
/// The most that a thread keeps in one class, in bytes; what is freed beyond it goes to free().
inline constexpr std::size_t frame_cache_limit = 128 * 1024;

/// Memory for `size` bytes, aligned to 16. Throws std::bad_alloc. Any thread.
void* frame_allocate(std::size_t size);

/// Takes back what frame_allocate(size) gave, with that same size. Any thread, also another than
/// the one that allocated, also while a thread's local objects are being destroyed. Null is
/// allowed.
void frame_free(void* frame, std::size_t size) noexcept;

/// A block of a pool on its way to another thread, and the size to free it with.
struct frame_block {
    void* memory = nullptr;  ///< null for none
    std::size_t size = 0;    ///< what frame_free() takes
};

/// Takes a block out of this thread's pool, of the size class that it freed last. A thread that
/// frees frames for another one sends their memory back in this way: otherwise the other thread
/// would allocate each time, and this pool would fill up. Empty if that block was too large for the
/// pool, or the pool is off.
frame_block frame_take_back() noexcept;

/// Calls of frame_allocate() on this thread, since it began, that went to malloc.
std::uint64_t frame_allocations() noexcept;

/// False in builds with the address sanitizer: there every frame comes from malloc, so that a
/// frame used after its end is seen.
bool frame_pool_recycles() noexcept;

namespace detail {

/// Where a coroutine that is made now on this thread gets its frame from; null for the pool. While
/// a coroutine runs it is the choice that this one has inherited, and null while none does: code
/// that suspends a coroutine keeps it for that coroutine and clears it, and code that resumes one
/// restores it.
///
/// With this model it is reached without a call, also in position-independent code. That needs 8
/// bytes of what the C library keeps free for libraries that are loaded later.
[[gnu::tls_model(
    "initial-exec")]] extern constinit thread_local std::pmr::memory_resource* current_frame_memory;

/// A coroutine's frame, aligned to 16, from current_frame_memory. Throws what that throws. The
/// frame records its origin.
void* make_frame(std::size_t size);

/// Frees what make_frame(size) gave, at its origin. Any thread that may use that.
void end_frame(void* frame, std::size_t size) noexcept;

/// While it lives, frames come from `memory` (null: the pool). Only around code that does not
/// suspend.
class frames_from {
public:
    explicit frames_from(std::pmr::memory_resource* memory) noexcept
        : before_(std::exchange(current_frame_memory, memory)) {}
    ~frames_from() { current_frame_memory = before_; }
    frames_from(const frames_from&) = delete;
    frames_from& operator=(const frames_from&) = delete;

private:
    std::pmr::memory_resource* before_;
};

}  // namespace detail

}  // namespace eddy
