// The per-thread free lists behind frame_allocate().
#include <eddy/base/frame_pool.hpp>

#include <array>
#include <cstdlib>
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

constexpr std::size_t class_count = frame_size_limit / frame_class_step;

struct free_frame {
    free_frame* next;
};

enum class phase : unsigned char { unused, active, ended };

// Trivial, so that reaching it costs no guard and it outlives every thread_local destructor.
struct frame_cache {
    std::array<free_frame*, class_count> free_lists;
    // How many more frames a class may keep. Zero in all classes before the first free and after
    // the thread's end: the fast path needs no other check.
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

std::size_t class_of(std::size_t size) noexcept {
    return size == 0 ? 0 : (size - 1) / frame_class_step;
}

void push(std::size_t size_class, void* frame) noexcept {
    --cache.room[size_class];
    cache.free_lists[size_class] = ::new (frame) free_frame{cache.free_lists[size_class]};
}

// The class is full, or this is the thread's first free, or its last.
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
    void* frame = std::malloc(size);
    if (!frame) throw std::bad_alloc();
    return frame;
}

}  // namespace

void* frame_allocate(std::size_t size) {
    if (!recycles || size > frame_size_limit) return allocate_slowly(size == 0 ? 1 : size);
    const std::size_t size_class = class_of(size);
    free_frame* frame = cache.free_lists[size_class];
    if (!frame) return allocate_slowly((size_class + 1) * frame_class_step);
    cache.free_lists[size_class] = frame->next;
    ++cache.room[size_class];
    return frame;
}

void frame_free(void* frame, std::size_t size) noexcept {
    if (!frame) return;
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

frame_block frame_take_back() noexcept {
    const std::size_t size_class = cache.freed_last;
    if (size_class == class_count || !cache.free_lists[size_class]) return {};
    const std::size_t size = (size_class + 1) * frame_class_step;
    return {frame_allocate(size), size};
}

std::uint64_t frame_allocations() noexcept { return cache.allocations; }

bool frame_pool_recycles() noexcept { return recycles; }

}  // namespace eddy
