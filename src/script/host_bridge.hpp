// Between the host of a script and Lua: functions that Lua calls, and what they are given.
#pragma once

#include "script/coroutine_host.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

struct lua_State;

namespace eddy::script {

inline constexpr const char* no_memory_text = "not enough memory";

/// End of a call where the process has no memory.
call_end lack_of_memory() noexcept;

/// Input and output of a protected function; its failure has a text.
struct host_job {
    const host_options* options = nullptr;
    call* of = nullptr;
    std::vector<int> chunks = {};  // the preludes, and the script
    int arguments = 0;
    std::vector<int> functions = {};
    std::vector<int> parameters = {};
    int globals = 0;
    int begin = 0;
    std::string failure = {};
    bool lacks_memory = false;
};

/// The same for a copy of globals.
struct host_global_job {
    int from = 0;
    const char* name = nullptr;
    value one = {};
    table all = {};
    bool lacks_memory = false;
};

/// Places of the main coroutine's stack that last: begin().
inline constexpr int begin_place = 1;

/// True for a function whose failures are errors, and may come after a wait. A suspended coroutine
/// is resumed with results, never with an error, so it is two functions: the second one raises what
/// the first has returned. The tail call leaves no frame, so the error's place is the script's.
inline bool is_pair(const library_function& row) noexcept {
    return row.waits && row.failure == on_failure::raises;
}
inline bool is_requested(const cancel_source* source) noexcept {
    return source != nullptr && source->requested();
}

/// Functions of Lua. Each is protected, and gets a pointer to its job as its only argument, but for
/// those of libraries.
class coroutine_host::bridge {
public:
    /// Adds the libraries to a new state. The table of globals is at index 1.
    static void furnish(const host_options& options, lua::stack in);
    static int load(lua_State* raw);
    /// Gives the call that is to begin a coroutine with its function and arguments.
    static int begin(lua_State* raw);
    static int read_global(lua_State* raw);
    static int read_globals(lua_State* raw);
    /// The results of the function that the call is suspended in.
    static int push_answer(lua_State* raw);
    /// Reads the results of the callback.
    static int read_results(lua_State* raw);
    static int read_failure(lua_State* raw);

private:
    static void describe(lua::stack failed, lua::stack in, host_job& to) noexcept;
    static constexpr int tables = 2;
    /// require(name): a library that is a global, too. The upvalue is the table of globals.
    static int require(lua_State* raw);
    /// Pushes the table of a library's name, which is made at first.
    static void push_table(lua::stack in, const char* name);
    static void push_field(lua::stack in, int of, std::string_view name);
    /// Protects the table within another one.
    static void seal_inner(lua::stack in, const char* name, const char* dot);
    /// Protects a table, and gives it its global names: those of its first library.
    static void seal(lua::stack in, const library& of);
    static void push_function(lua::stack in, const library& of, const library_function& row);
    /// A copy of the sandbox's globals, whose `_G` is the table at 1.
    static void push_plain_globals(lua::stack in);
    /// Runs a text's statements, whose globals are the table at 1.
    static bool run_chunk(lua::stack in, host_job& todo, int chunk);
    /// Gives a function the script's globals.
    static int share_globals(lua_State* raw);
    static int extend(lua_State* raw);
    static void keep_callback(lua::stack in, host_job& to, std::size_t which);
    /// Replaces the function on top by what the row's wrapper makes of it.
    static void wrap(lua::stack in, const callback& row);
    static coroutine_host& host_of(lua::stack in) noexcept;
    /// A function of a library.
    static int enter(lua_State* raw);
    /// Why a function that waits cannot do so here; null if it can.
    static const char* misplaced(lua::stack in, const coroutine_host& me,
                                 const library_function& row) noexcept;
    /// Checks the arguments, and drops further ones.
    static bool take_arguments(lua::stack in, const library_function& row);
    static bool is_of(lua::stack in, int which, const argument& wanted) noexcept;
    /// Keeps the argument that is a function, if there is one.
    static void take_function(lua::stack in, coroutine_host& me, const library_function& row);
    static const char* misuse_text(coroutine_host& me, const library_function& row) noexcept;
    /// Runs the code, whose exceptions must not pass Lua's frames. False without memory.
    static bool invoke(lua::stack in, coroutine_host& me, const library_function& row,
                       const library& of, std::size_t& steps) noexcept;
    static int leave(lua::stack in, coroutine_host& me, const library_function& row);
    static int suspend(lua::stack in, coroutine_host& me, const library_function& row,
                       call::state why);
    static int raise(lua::stack in, const library_function& row, const char* why);
    /// Pushes the script's values and returns their number.
    static int push_results(lua::stack in, const answer& from, const library_function& row);
    /// Second part of a pair.
    static int finish(lua_State* raw);
};

}  // namespace eddy::script
