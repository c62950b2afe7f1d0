// The running stack, by thread. No function here may be inlined into one that switches stacks: a
// fiber may be resumed on another thread, which has variables of its own.
#include "lua/native_stack.hpp"

#include <eddy/base/assert.hpp>

#include <pthread.h>

namespace eddy::lua {
namespace {

// Assumed size of a thread's stack where it is unknown: without /proc, that of the main thread.
constexpr std::uintptr_t least_thread_stack = std::uintptr_t{1} << 20;

thread_local native_stack::state* fiber_stack = nullptr;
thread_local native_stack::state thread_stack;
native_stack::limits current_limits;

// Not the address of a variable: AddressSanitizer keeps variables elsewhere.
std::uintptr_t here() noexcept {
    return reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
}

std::uintptr_t find_thread_low() noexcept {
    pthread_attr_t attributes;
    if (::pthread_getattr_np(::pthread_self(), &attributes) != 0)
        return here() - least_thread_stack;
    void* low = nullptr;
    std::size_t bytes = 0;
    std::size_t guard = 0;
    const int status = ::pthread_attr_getstack(&attributes, &low, &bytes);
    static_cast<void>(::pthread_attr_getguardsize(&attributes, &guard));
    ::pthread_attr_destroy(&attributes);
    if (status != 0) return here() - least_thread_stack;
    return reinterpret_cast<std::uintptr_t>(low) + guard;
}

bool has_room_at(const native_stack::state& its, std::uintptr_t at) noexcept {
    if (at <= its.low + native_stack::reserve_bytes) return false;
    return its.top == 0 || its.top - at < current_limits.bytes;
}

native_stack::state& running_stack() noexcept {
    if (fiber_stack != nullptr) [[likely]]
        return *fiber_stack;
    if (thread_stack.low == 0) thread_stack.low = find_thread_low();
    return thread_stack;
}

}  // namespace

[[gnu::noinline]] bool native_stack::has_room() noexcept {
    return has_room_at(running_stack(), here());
}

void native_stack::set_limits(limits to) noexcept {
    EDDY_ASSERT(to.levels <= max_levels);
    current_limits = to;
}

[[gnu::noinline]] bool native_stack::enter_level(const void* frame) noexcept {
    state& its = running_stack();
    const auto at = reinterpret_cast<std::uintptr_t>(frame);
    // The stack grows downwards.
    while (its.levels > 0 && its.frames[its.levels - 1] <= at) --its.levels;
    if (its.levels >= current_limits.levels || !has_room_at(its, at)) return false;
    its.frames[its.levels++] = at;
    return true;
}

[[gnu::noinline]] native_stack::state* native_stack::switch_to(state* other) noexcept {
    state* const former = fiber_stack;
    fiber_stack = other;
    return former;
}

}  // namespace eddy::lua
