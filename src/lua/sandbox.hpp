// Sandbox: a Lua state for scripts that are not trusted. They find the parts of Lua's libraries
// that Redis lets them have, cannot leave anything to one another, and are interrupted wherever
// they are.
//
// What goes through whole texts and tables is our own, since Lua's calls no interrupt:
// patterns.cpp, format.cpp, tables.cpp and loading.cpp, beside the libraries cjson.cpp,
// cmsgpack.cpp and struct.cpp. callbacks.cpp bounds what functions of C take of the native stack;
// globals.cpp puts all together.
#pragma once

#include <eddy/base/byte_buffer.hpp>

#include "lua/state.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace eddy::lua {

/// Bytes that are copied or compared in the time of an instruction.
inline constexpr std::size_t bytes_a_step = 64;

/// Owner of what runs in a sandbox, which decides for how long it does.
class supervisor {
public:
    /// Called at least every `instructions_a_look` instructions or steps. May raise an error in
    /// `in`, or leave the script in the middle.
    virtual void check(stack in) = 0;
    /// The same within code that must complete: no error is to be raised.
    virtual void check_quietly() = 0;
    /// True while the running script is being ended: none of its own error handlers is to be
    /// called.
    virtual bool is_ending() const noexcept = 0;

protected:
    ~supervisor() = default;
};

/// One thread at a time.
class sandbox final : public state {
public:
    /// Adds libraries to a new sandbox, whose table of globals is at index 1. No limit of memory
    /// holds yet; it must not raise.
    using furnisher = std::function<void(stack in)>;

    /// `max_bytes` is what its values may take together. `by` must outlive it. Throws
    /// std::bad_alloc.
    sandbox(supervisor& by, std::size_t max_bytes, furnisher furnish);
    ~sandbox();

    supervisor& supervised_by() const noexcept { return by_; }

    /// To compile a text may take so much of the thread's time. It is done in pieces, between which
    /// the supervisor's check_quietly() may leave it in the middle.
    static constexpr std::chrono::milliseconds max_compile_time{500};
    /// Compiles the text and keeps the function; 0 with the reason when it does not compile.
    int compile(std::string_view text, const char* name, std::string& why);
    void forget(int function) noexcept;

    /// Calls the function protected, with `of` as its only argument, a pointer: false with the
    /// error on top. Results are dropped.
    [[nodiscard]] bool call_protected(function run, void* of);
    /// Sets a global, which scripts cannot, to the value on top, which is popped. May raise.
    static void set_global(stack in, const char* name);
    /// Pops a table, in which scripts find their globals from now on, or nil: their usual ones
    /// again. Functions that exist are affected, too. May raise.
    static void show_globals(stack table);
    /// Pushes the table `os` of trusted scripts: clock, date, difftime and time. For a furnisher.
    static void push_time_library(stack in);
    /// Parameters of the function on top, -1 if it takes any number. May raise.
    static int parameters_of(stack function);
    /// Sets a field of the table at `index`, also of one that scripts cannot change, to the value
    /// on top, which is popped. May raise.
    static void extend(stack in, int index, std::string_view name);
    /// Replaces a function of LuaJIT's own on top, which calls what a script gives it without a
    /// frame of C, by one of Lua's that calls it. The interpreter runs such a function without an
    /// instruction and without a check of the stack: as a metamethod that leads to itself,
    /// tostring() would never end, and pcall() would write behind the stack.
    static void wrap_in_lua(stack function);
    /// Replaces the table on top by one with the same fields, which cannot be changed.
    static void protect(stack in);
    /// __index of tables without other names: raises an error that says which one.
    static int refuse_unknown_global(lua_State* in);

    /// Collects garbage when more than half of the memory limit is used: Lua itself would fail at
    /// the limit without collecting. Within a script it may leave it in the middle, but raises
    /// nothing.
    void collect_if_full() noexcept;
    /// A step of the collector's, which takes microseconds, or longer for a large table. True when
    /// it ended a cycle. Raises errors.
    bool collect_some(stack in);
    /// A collection of all that is garbage now, as so many steps. May raise an error, and leave the
    /// script in the middle.
    void collect_all(stack in);

    /// Replaces the state: values that scripts have left behind are gone, functions too.
    void reset();

    /// Buffer in which the libraries put together a text. It counts as used bytes as long as it is
    /// used.
    byte_buffer& scratch() noexcept { return scratch_; }
    /// Raises "not enough memory" when that has grown too large.
    void check_scratch(stack in) const;

    /// math.random()'s; Redis's, so that the same seed gives the same numbers.
    std::uint32_t random() noexcept;
    void seed_random(std::uint32_t seed) noexcept;

    /// Counts steps of a function of C; calls the supervisor when the interpreter would. May raise
    /// an error, and leave the script in the middle.
    void count_steps(stack in, std::size_t steps) {
        steps_ += steps;
        if (steps_ >= std::size_t{instructions_a_look}) [[unlikely]]
            check(in);
    }

    /// The same for a function that may process any one text or table, whose size it does not know.
    void count_largest(stack in) {
        if (largest_bytes_ != 0) [[unlikely]]
            count_steps(in, largest_bytes_ / bytes_a_step);
    }

    /// Between pieces of work that is no script's: the supervisor may leave it in the middle.
    void let_others_run() { by_.check_quietly(); }

    /// Makes the interpreter call the supervisor at every instruction, as the running script must
    /// end.
    void check_always(bool on) noexcept;

    /// The one that a Lua state belongs to; it must belong to one.
    static sandbox& of(stack in) noexcept { return static_cast<sandbox&>(owner_of(in)); }

private:
    // One instruction may go through a text or a table as a whole, and take a nanosecond a byte to
    // make a number of it. While there is a block of memory of this size or more, as many times
    // fewer instructions pass between two interrupts as it has parts.
    static constexpr int large_block_bits = 19;
    static constexpr std::size_t large_block = std::size_t{1} << large_block_bits;
    static constexpr std::size_t large_block_part = 64 * 1024;

    static void* allocate(void* self, void* block, std::size_t old_bytes, std::size_t bytes);
    void interrupt(lua_State* in) override;
    void watch_cycles(lua_State* in);
    static int note_cycle(lua_State* in);
    void furnish_and_limit();
    void shut() noexcept;
    void check(stack in);
    void note_blocks(std::size_t gone, std::size_t made) noexcept;
    int instructions_wanted() const noexcept;
    void set_interrupt(int instructions) noexcept;

    supervisor& by_;
    furnisher furnish_;
    std::size_t steps_ = 0;
    bool is_open_ = false;
    bool checks_always_ = false;
    bool may_raise_ = true;
    unsigned cycles_ = 0;            // of the collector, so far
    int instructions_ = 0;           // between two interrupts, as they are set
    std::size_t largest_bytes_ = 0;  // what the largest block may have; 0 when none is large
    std::array<std::uint32_t, 64 - large_block_bits> large_blocks_{};  // by the bits of their size
    byte_buffer scratch_;
    std::uint64_t random_ = 0;
};

}  // namespace eddy::lua
