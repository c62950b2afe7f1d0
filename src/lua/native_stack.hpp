// Native stack of the running code: what is left of it, and the levels of callbacks on it.
// Functions of C that call back into Lua, or that recurse, take native stack for each level; Lua's
// own limits count the slots of Lua's stack alone.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace eddy::lua {

class native_stack {
public:
    /// Left for what calls no Lua: any command of redis.call(), LuaJIT's parser (200 levels), an
    /// error on its way. Frames are several times larger with sanitizers.
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
    static constexpr std::size_t reserve_bytes = std::size_t{1} << 20;
#else
    static constexpr std::size_t reserve_bytes = std::size_t{256} << 10;
#endif
    /// Functions of C, each called by a callback of the one before: as many as in Redis. It takes
    /// microseconds a level to leave them with an error.
    static constexpr std::size_t max_levels = 200;

    /// Limits of all stacks beside the reserve.
    struct limits {
        std::size_t levels = max_levels;  ///< at most max_levels
        std::size_t bytes = SIZE_MAX;     ///< of a fiber's stack
    };
    /// Lower limits, for tests: few levels, or few bytes, reach them. Not while a script runs.
    static void set_limits(limits to) noexcept;

    /// State of one stack. Its owner keeps it.
    struct state {
        std::uintptr_t low = 0;  ///< the lowest address that may be used
        std::uintptr_t top = 0;  ///< of a fiber's stack: where it begins
        std::size_t levels = 0;
        std::array<std::uintptr_t, max_levels> frames{};  ///< of the levels
    };

    /// True if more than the reserve is left of the stack that the caller runs on: a fiber's, or
    /// the thread's own.
    static bool has_room() noexcept;

    /// True if a function of C may call back. `frame` is its own, by __builtin_frame_address(0):
    /// errors leave levels without notice, so only levels whose frames still exist are counted.
    static bool enter_level(const void* frame) noexcept;

    /// The running stack is another one from now on; null is for the thread's own. Returns the
    /// former one.
    static state* switch_to(state* other) noexcept;
};

}  // namespace eddy::lua
