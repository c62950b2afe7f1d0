// A Lua state, what it may take of memory, and how scripts are called in it.
#pragma once

#include <eddy/base/byte_buffer.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

struct lua_Debug;
struct lua_State;

namespace eddy::cache {

class scripts;

/// Instructions between two looks at the clock: some fifty microseconds.
inline constexpr int instructions_a_look = 10'000;
/// Bytes that are copied or compared in the time of an instruction.
inline constexpr std::size_t bytes_a_step = 64;

class vm {
public:
    /// What scripts find in it; a library's loading and its functions differ a little.
    enum class purpose { eval, functions };

    /// `max_bytes` is what its values may take together. Throws std::bad_alloc.
    vm(scripts& of, purpose what, std::size_t max_bytes);
    vm(const vm&) = delete;
    vm& operator=(const vm&) = delete;
    ~vm();

    lua_State* state() const noexcept { return state_; }
    scripts& owner() const noexcept { return owner_; }
    purpose what() const noexcept { return purpose_; }
    std::size_t used_bytes() const noexcept { return used_; }
    std::size_t max_bytes() const noexcept { return max_bytes_; }

    /// To compile a text may take so long.
    static constexpr std::chrono::milliseconds max_compile_time{500};
    /// Compiles the text and keeps the function; 0 with the reason when it does not compile.
    int compile(std::string_view text, const char* name, std::string& why);
    void forget(int function) noexcept;

    /// Collects garbage when more than half of what may be taken is: Lua itself would rather fail.
    /// Within a script it may leave it in the middle, but raises nothing.
    void collect_if_full() noexcept;
    /// A step of the collector's, which takes microseconds, or longer for a large table. True when
    /// it ended a cycle. Raises errors.
    bool collect_some(lua_State* in);
    /// A collection of all that is garbage now, as so many steps. May raise an error, and leave the
    /// script in the middle.
    void collect_all(lua_State* in);

    /// Everything anew: values that scripts have left behind are gone, functions too.
    void reset();

    /// What the libraries put together a text in. It counts as used bytes as long as it is used.
    byte_buffer& scratch() noexcept { return scratch_; }
    /// Raises "not enough memory" when that has grown too large.
    void check_scratch(lua_State* in) const;

    /// math.random()'s; Redis's, so that the same seed gives the same numbers.
    std::uint32_t random() noexcept;
    void seed_random(std::uint32_t seed) noexcept;

    /// A function of C has done so much more: it looks at the clock when the interpreter would. May
    /// raise an error, and leave the script in the middle.
    void count_steps(lua_State* in, std::size_t steps) {
        steps_ += steps;
        if (steps_ >= std::size_t{instructions_a_look}) [[unlikely]]
            look_at_clock(in);
    }

    /// The same for what may go through any one text or table there is, whose size it cannot ask
    /// for.
    void count_largest(lua_State* in) {
        if (largest_bytes_ != 0) [[unlikely]]
            count_steps(in, largest_bytes_ / bytes_a_step);
    }

    /// Whether the clock is looked at by every instruction from now on, as what runs has to end.
    void look_always(bool on) noexcept;

    /// The one that a Lua state belongs to.
    static vm& of(lua_State* in) noexcept;

private:
    // One instruction may go through a text or a table as a whole, and take a nanosecond a byte to
    // make a number of it. While there is a block of memory of this size or more, as many times
    // fewer instructions pass between two looks as it has parts.
    static constexpr int large_block_bits = 19;
    static constexpr std::size_t large_block = std::size_t{1} << large_block_bits;
    static constexpr std::size_t large_block_part = 64 * 1024;

    static void* allocate(void* self, void* block, std::size_t old_bytes, std::size_t bytes);
    static void hook(lua_State* in, lua_Debug*);
    void watch_cycles(lua_State* in);
    static int note_cycle(lua_State* in);
    void open();
    void close() noexcept;
    void look_at_clock(lua_State* in);
    void note_blocks(std::size_t gone, std::size_t made) noexcept;
    int instructions_wanted() const noexcept;
    void set_hook(int instructions) noexcept;

    scripts& owner_;
    purpose purpose_;
    std::size_t max_bytes_;
    std::size_t used_ = 0;
    std::size_t steps_ = 0;
    bool is_open_ = false;
    bool limited_ = false;
    bool looks_always_ = false;
    bool may_raise_ = true;
    unsigned cycles_ = 0;            // of the collector, so far
    int instructions_ = 0;           // between two looks, as the hook is set
    std::size_t largest_bytes_ = 0;  // what the largest block may have; 0 when none is large
    std::array<std::uint32_t, 64 - large_block_bits> large_blocks_{};  // by the bits of their size
    lua_State* state_ = nullptr;
    byte_buffer scratch_;
    std::uint64_t random_ = 0;
    void* (*allocate_)(void*, void*, std::size_t, std::size_t) = nullptr;
    void* allocator_ = nullptr;
};

// sandbox.cpp. Both leave Lua's stack as it was.
/// Puts what scripts may use into a new state.
void furnish(lua_State* in, vm& of);
/// Pushes a table that looks like the one on top, takes its place, and cannot be changed.
void protect(lua_State* in);
/// Raises an error when the value there is such a table.
void refuse_protected(lua_State* in, int index);
/// __index of what has no other names: raises an error that says which one.
int refuse_unknown_global(lua_State* in);
/// Sets a name of the real table of globals to the value on top, which is popped.
void set_global(lua_State* in, const char* name);

// What goes through whole texts and tables: Lua's own look at no clock. Each sets its functions in
// the library's table on top; Lua's own table is at `from`.
/// patterns.cpp: find, match, gmatch, gsub, and more.
void set_string_functions(lua_State* in, int from);
/// format.cpp: format.
void set_format_function(lua_State* in);
/// tables.cpp: sort, concat, insert, maxn.
void set_table_functions(lua_State* in, int from);
/// callbacks.cpp: coroutine.resume and wrap.
void set_coroutine_functions(lua_State* in);
/// loading.cpp: load and loadstring, of texts alone, in the table of globals on top.
void set_load_functions(lua_State* in);
/// As lua_load() of a text, which fails if it is not done by `ends`.
int load_within(lua_State* in, std::string_view text, const char* name,
                std::chrono::steady_clock::time_point ends);

// callbacks.cpp
/// What recurses within C calls this at each level: raises "C stack overflow" when too little is
/// left of the native stack.
void check_native_stack(lua_State* in);
/// A function of C that calls back into Lua calls enter_callback() before: raises "C stack
/// overflow" also at native_stack::max_levels.
void enter_callback_at(lua_State* in, const void* frame);
[[gnu::always_inline]] inline void enter_callback(lua_State* in) {
    enter_callback_at(in, __builtin_frame_address(0));
}
/// Has those functions of all standard libraries do so that call back.
void check_standard_libraries(lua_State* in);

/// While a library is loaded, "redis" is what may be used then; afterwards what functions use.
void use_load_library(lua_State* in, bool loading);

// The libraries; each pushes one table.
void push_redis_library(lua_State* in, bool loading);
void push_cjson_library(lua_State* in);
void push_cmsgpack_library(lua_State* in);
void push_struct_library(lua_State* in);

/// Raises an error as Redis's own functions do: a table {err = "ERR text"}. "-CODE text" names
/// another code word. Never returns.
[[noreturn]] void raise(lua_State* in, std::string_view text);
/// Pushes that table.
void push_error(lua_State* in, std::string_view text);
/// The error handler for lua_pcall: makes such a table of any error and notes where it was.
int note_error(lua_State* in);

}  // namespace eddy::cache
