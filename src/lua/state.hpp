// Lua state: its memory limit, and its interrupt after a number of instructions.
//
//   sandbox.hpp         a state for scripts of clients, which runs on a loop's thread
//   blocking_state.hpp  a state for scripts of the operator, which may block, on a thread of its
//   own stack.hpp           the values in a state, for the other layers; fiber.hpp, calls left in
//   the middle
#pragma once

#include "lua/stack.hpp"

#include <cstddef>

struct lua_Debug;

extern "C" void* (*lua_getallocf(lua_State* in, void** self))(void* self, void* block,
                                                              std::size_t old_bytes,
                                                              std::size_t bytes);

namespace eddy::lua {

/// Instructions between two interrupts: some fifty microseconds.
inline constexpr int instructions_a_look = 10'000;

/// One thread at a time. LuaJIT's compiler is off: compiled loops call no interrupt.
class state {
public:
    state(const state&) = delete;
    state& operator=(const state&) = delete;

    /// Its values, between calls.
    stack values() const noexcept { return raw_; }
    /// Bytes of its values; libraries in C have memory of their own.
    std::size_t used_bytes() const noexcept { return used_; }
    std::size_t max_bytes() const noexcept { return max_bytes_; }

protected:
    using allocator = void* (*)(void* self, void* block, std::size_t old_bytes, std::size_t bytes);

    explicit state(std::size_t max_bytes) noexcept : max_bytes_(max_bytes) {}
    /// It must be closed.
    ~state();

    /// Makes the state, without libraries and limit. `allocate` is called with this object; it is
    /// resize() or more. Throws std::bad_alloc.
    void open(allocator allocate);
    /// Frees the state and all its values, whose finalizers run.
    void close() noexcept;
    lua_State* raw() const noexcept { return raw_; }
    /// At the limit allocations fail from here on, so Lua raises "not enough memory"; or no longer.
    void limit_memory(bool on) noexcept { is_limited_ = on; }
    bool has_memory_limit() const noexcept { return is_limited_; }
    /// Allocator of Lua's within the limit: null when it is reached.
    static void* resize(void* self, void* block, std::size_t old_bytes, std::size_t bytes) {
        state& me = *static_cast<state*>(self);
        if (bytes > old_bytes && me.is_limited_ && me.used_ - old_bytes + bytes > me.max_bytes_) {
            return nullptr;
        }
        void* const made = me.below_(me.below_self_, block, old_bytes, bytes);
        if (made != nullptr || bytes == 0) me.used_ += bytes - old_bytes;
        return made;
    }

    /// interrupt() is called after so many instructions, again and again; 0: never.
    void interrupt_each(int instructions) noexcept;
    /// May raise an error. Within it, no instruction is counted.
    virtual void interrupt(lua_State* in) = 0;

    /// The one that a Lua state belongs to.
    static state& owner_of(stack in) noexcept {
        void* self = nullptr;
        static_cast<void>(lua_getallocf(in.raw(), &self));
        return *static_cast<state*>(self);
    }

private:
    static void count_hook(lua_State* in, lua_Debug*);

    std::size_t max_bytes_;
    std::size_t used_ = 0;
    bool is_limited_ = false;
    lua_State* raw_ = nullptr;
    allocator below_ = nullptr;  // LuaJIT's own
    void* below_self_ = nullptr;
};

}  // namespace eddy::lua
