// Blocking state: a Lua state for scripts of the operator, which may load libraries, open files and
// block. It runs on a thread of its own, never on a loop's.
//
// Such a script is not written by clients, so it has the standard libraries, without the parts that
// would end the process or change it as a whole: os.exit, os.setlocale, ffi, loading of bytecode
// and of single C functions, the debug library's hooks. LuaJIT's compiler is off, since compiled
// loops cannot be ended.
#pragma once

#include "lua/state.hpp"

#include <chrono>
#include <cstddef>
#include <expected>
#include <functional>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::lua {

/// One thread at a time. Errors are sentences of one line, at most `max_error` bytes of the
/// script's, with the calls that led there: "a.lua:3: no route; called from a.lua:9".
class blocking_state final : public state {
public:
    static constexpr std::size_t max_error = 1000;

    struct limits {
        std::size_t bytes = std::size_t{256} << 20;               ///< of its values
        std::chrono::nanoseconds load{std::chrono::seconds(30)};  ///< of the script's own text
    };
    /// Called with each line that the script prints, within its call.
    using printer = std::function<void(std::string_view line)>;

    /// Throws std::bad_alloc.
    blocking_state(limits most, printer prints);
    ~blocking_state();

    /// Compiles the text alone. `name` is what errors call it.
    std::expected<void, std::string> compile(std::string_view text, const std::string& name);
    /// Opens the libraries, compiles the text and runs it once; then those global functions of
    /// these names that it has defined can be called. Fails when one of them is no function. Once.
    std::expected<void, std::string> load(std::string_view text, const std::string& name,
                                          std::span<const char* const> functions);
    /// For each of the names, whether the script has defined it.
    std::vector<bool> defined() const;

    /// The global variable's number, or `if_absent` where it is nil. Fails when it is neither.
    std::expected<double, std::string> global_number(const char* name, double if_absent);

    /// Calls the function of that place among the names, which must be defined: `push(in)` pushes
    /// its arguments and returns how many, `read(in)` finds so many results from index 1 on.
    /// Neither keeps objects with destructors over calls that may raise. After `limit` the call is
    /// ended, unless it is within a function of C.
    template <class Push, class Read>
    std::expected<void, std::string> call(std::size_t function, std::chrono::nanoseconds limit,
                                          Push push, int results, Read read) {
        bool lacks_memory = false;
        auto called = run(limit, [&](stack in) {
            in.getref(functions_[function]);
            int arguments = 0;
            // Exceptions must not pass Lua's frames.
            try {
                arguments = push(in);
            } catch (const std::bad_alloc&) {
                lacks_memory = true;
                return;
            }
            in.call(arguments, results);
            try {
                read(in);
            } catch (const std::bad_alloc&) {
                lacks_memory = true;
            }
        });
        collect_if_full();
        if (lacks_memory) return std::unexpected(std::string(no_memory_text));
        return called;
    }

private:
    static constexpr std::string_view no_memory_text = "not enough memory";
    static constexpr std::chrono::seconds collection_limit{5};

    template <class F>
    std::expected<void, std::string> run(std::chrono::nanoseconds limit, F body) {
        return protect(limit, [](stack in, void* of) { (*static_cast<F*>(of))(in); }, &body);
    }
    /// Calls body(in, of) protected, with no values on the stack.
    std::expected<void, std::string> protect(std::chrono::nanoseconds limit,
                                             void (*body)(stack in, void* of), void* of);
    void interrupt(lua_State* in) override;
    static int note_calls(lua_State* in);
    std::string describe(int status);
    void collect_if_full();
    static int print(lua_State* in);
    static int push_is_over(lua_State* in);

    limits most_;
    printer prints_;
    std::vector<int> functions_;  // kept; none when not above 0
    bool is_over_ = false;
    std::string over_at_;  // place and calls of the end of the time
    std::string calls_;    // that led to a failure
    std::chrono::steady_clock::time_point end_;
};

}  // namespace eddy::lua
