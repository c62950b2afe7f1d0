// Per-thread free lists behind frame_allocate(), and the header that records a frame's origin.
#include <eddy/base/frame_pool.hpp>

#include <array>
#include <cstdlib>
#include <cstring>
#include <new>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define EDDY_FRAME_POOL_OFF 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define EDDY_FRAME_POOL_OFF 1
#endif

namespace eddy {
namespace {

#if defined(EDDY_FRAME_POOL_OFF)
constexpr bool recycles = false;
#else
constexpr bool recycles = true;
#endif

// A block and the header that malloc puts before it are a multiple of the step: malloc has no rest
// of a block to waste.
constexpr std::size_t malloc_header = sizeof(std::size_t);
constexpr std::size_t class_count = frame_size_limit / frame_class_step + 1;

struct free_frame {
    free_frame* next;
};

enum class phase : unsigned char { unused, active, ended };

// Trivial, so that reaching it costs no guard and it outlives every thread_local destructor.
struct frame_cache {
    std::array<free_frame*, class_count> free_lists;
    // Free places of a class. Zero in all classes before the first free and after the thread's end:
    // the fast path needs no other check.
    std::array<std::uint32_t, class_count> room;
    std::uint64_t allocations;
    std::uint32_t freed_last;  // its class; class_count for none
    phase state;
};

constinit thread_local frame_cache cache{};

struct cache_janitor {
    ~cache_janitor() {
        cache.state = phase::ended;
        cache.room.fill(0);
        for (free_frame*& list : cache.free_lists) {
            while (list) {
                free_frame* next = list->next;
                std::free(list);
                list = next;
            }
        }
    }
    void attend() const noexcept {}
};

/// The size class of `size`, which is not 0.
std::size_t class_of(std::size_t size) noexcept {
    return (size - 1 + malloc_header) / frame_class_step;
}

/// The most that a block of a class holds.
constexpr std::size_t block_size(std::size_t size_class) noexcept {
    return (size_class + 1) * frame_class_step - malloc_header;
}

void push(std::size_t size_class, void* frame) noexcept {
    --cache.room[size_class];
    cache.free_lists[size_class] = ::new (frame) free_frame{cache.free_lists[size_class]};
}

// Slow path of a free: the class is full, or it is the thread's first or one after its end.
[[gnu::noinline]] void free_slowly(std::size_t size_class, void* frame) noexcept {
    if (cache.state != phase::unused) {
        std::free(frame);
        return;
    }
    thread_local cache_janitor janitor;
    janitor.attend();
    cache.state = phase::active;
    for (std::size_t i = 0; i < class_count; ++i) {
        cache.room[i] =
            static_cast<std::uint32_t>(frame_cache_limit / ((i + 1) * frame_class_step));
    }
    push(size_class, frame);
}

[[gnu::noinline]] void* allocate_slowly(std::size_t size) {
    ++cache.allocations;
    const bool fits = recycles && size <= frame_size_limit;
    void* frame = std::malloc(fits ? block_size(class_of(size)) : size);
    if (!frame) throw std::bad_alloc();
    return frame;
}

/// A block for a size that is not 0, or null where the pool has none.
inline void* take_pooled(std::size_t size) noexcept {
    if (!recycles || size > frame_size_limit) return nullptr;
    const std::size_t size_class = class_of(size);
    free_frame* frame = cache.free_lists[size_class];
    if (!frame) return nullptr;
    cache.free_lists[size_class] = frame->next;
    ++cache.room[size_class];
    return frame;
}

inline void give_back(void* frame, std::size_t size) noexcept {
    if (!recycles || size > frame_size_limit) {
        cache.freed_last = class_count;
        std::free(frame);
        return;
    }
    const std::size_t size_class = class_of(size);
    cache.freed_last = static_cast<std::uint32_t>(size_class);
    if (cache.room[size_class] == 0) return free_slowly(size_class, frame);
    push(size_class, frame);
}

/// Footer of each coroutine's frame.
struct origin {
    std::pmr::memory_resource* memory;  // null for the pool
};
constexpr std::size_t frame_alignment = 16;

void* keep_origin(void* frame, std::size_t size, origin from) noexcept {
    std::memcpy(static_cast<std::byte*>(frame) + size, &from, sizeof(origin));
    return frame;
}

[[gnu::noinline]] void* make_frame_slowly(std::size_t size) {
    std::pmr::memory_resource* const memory = detail::current_frame_memory;
    const std::size_t whole = size + sizeof(origin);
    void* const frame = memory ? memory->allocate(whole, frame_alignment) : allocate_slowly(whole);
    return keep_origin(frame, size, {memory});
}

[[gnu::noinline]] void give_back_to(origin from, void* frame, std::size_t size) noexcept {
    cache.freed_last = class_count;  // it was no block of the pool
    from.memory->deallocate(frame, size + sizeof(origin), frame_alignment);
}

}  // namespace

void* frame_allocate(std::size_t size) {
    if (size == 0) size = 1;
    void* const frame = take_pooled(size);
    return frame ? frame : allocate_slowly(size);
}

void frame_free(void* frame, std::size_t size) noexcept {
    if (frame) give_back(frame, size == 0 ? 1 : size);
}

constinit thread_local std::pmr::memory_resource* detail::current_frame_memory = nullptr;

void* detail::make_frame(std::size_t size) {
    void* const frame = current_frame_memory ? nullptr : take_pooled(size + sizeof(origin));
    if (!frame) [[unlikely]]
        return make_frame_slowly(size);
    return keep_origin(frame, size, {nullptr});
}

void detail::end_frame(void* frame, std::size_t size) noexcept {
    origin from;
    std::memcpy(&from, static_cast<const std::byte*>(frame) + size, sizeof(origin));
    if (from.memory) [[unlikely]]
        return give_back_to(from, frame, size);
    give_back(frame, size + sizeof(origin));
}

frame_block frame_take_back() noexcept {
    const std::size_t size_class = cache.freed_last;
    if (size_class == class_count || !cache.free_lists[size_class]) return {};
    const std::size_t size = block_size(size_class);
    return {frame_allocate(size), size};
}

std::uint64_t frame_allocations() noexcept { return cache.allocations; }

bool frame_pool_recycles() noexcept { return recycles; }

}  // namespace eddy
