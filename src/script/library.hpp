// Libraries of functions that scripts call, each function a row: name, arguments, help and code.
//
// A function's code answers at once, or with a task: the calling script is suspended until the task
// has ended, while other calls of its state run (coroutine_host.hpp).
#pragma once

#include <eddy/io/task.hpp>

#include "lua/stack.hpp"
#include "script/value.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace eddy::script {

class call;
class coroutine_host;

/// Results of a function, or why it has failed: a text of one line for the script.
using function_result = std::expected<values, std::string>;

/// Effect of a failure on the calling script.
enum class on_failure : std::uint8_t {
    raises,   ///< an error with the text
    returns,  ///< nil and the text
    ends,     ///< the call ends without a failure, as after a client that has gone
};

enum class argument_kind : std::uint8_t {
    any,
    text,    ///< or a number, which becomes one
    number,  ///< or a text that is one
    boolean,
    table,
};

struct argument {
    std::string_view name = {};
    argument_kind kind = argument_kind::any;
    bool is_optional = false;  ///< may be nil or absent
};

/// Arguments of a function at most; a script's further ones are dropped.
inline constexpr std::size_t max_arguments = 6;

/// Answer of a function's code. One loop's thread.
class answer {
public:
    /// No results.
    answer() noexcept : is_(std::in_place_type<values>) {}
    /// At most max_values.
    answer(values results) noexcept : is_(std::move(results)) {}
    /// Results or a failure to come, as of a function that waits. The task runs under the source of
    /// the call, which it must not outlive.
    answer(task<function_result> work) noexcept : is_(std::move(work)) {}

    /// A failure now, as the row has it. One line.
    static answer failed(std::string text) { return answer(failure{std::move(text)}); }
    /// A mistake in the arguments, which raises an error in any case. Without a text it is that of
    /// the row, "NAME() takes TAKES".
    static answer misused(std::string text = {}) { return answer(misuse{std::move(text)}); }

private:
    friend class coroutine_host;
    struct failure {
        std::string text;
    };
    struct misuse {
        std::string text;
    };
    explicit answer(failure why) noexcept : is_(std::move(why)) {}
    explicit answer(misuse why) noexcept : is_(std::move(why)) {}

    std::variant<values, task<function_result>, failure, misuse> is_;
};

/// Call of a function by a script: its arguments are checked, and numbers in the place of texts
/// have become texts. It lives as long as the code runs. The loop's thread.
class invocation {
public:
    invocation(lua::stack in, call* caller, void* context) noexcept
        : in_(in), caller_(caller), context_(context) {}

    // Arguments count from 1.
    bool has(int which) const noexcept { return !in_.isnil(which); }
    /// Valid until the code returns.
    std::string_view text(int which) const noexcept { return in_.tostring(which); }
    double number(int which) const noexcept { return in_.tonumber(which); }
    bool boolean(int which) const noexcept { return in_.toboolean(which); }
    /// A copy, as read_value(), of an argument that is `any` or a table.
    std::expected<value, std::string> read(int which) const { return read_value(in_, which); }

    /// The call that it belongs to; null while the script's own statements run. Never null for a
    /// function that waits.
    call* caller() const noexcept { return caller_; }
    /// The library's.
    template <class T>
    T& context() const noexcept {
        return *static_cast<T*>(context_);
    }

private:
    lua::stack in_;
    call* caller_;
    void* context_;
};

/// Row of a library, in static storage.
struct library_function {
    const char* name;
    std::array<argument, max_arguments> arguments = {};
    /// The arguments in words, behind "NAME() takes" in errors; needed where they are checked.
    std::string_view takes = {};
    /// A sentence for users.
    std::string_view help;
    /// It may answer with a task. Such a function can be called within a callback alone, not within
    /// a coroutine of the script's, and ends the time that the script may compute in a row.
    bool waits = false;
    /// `ends` is for functions that wait.
    on_failure failure = on_failure::raises;
    /// Runs within the script: keeps off the loop's waits, and calls no script. Only std::bad_alloc
    /// may be thrown.
    answer (*run)(invocation& of);
};

/// Functions of one table, or of the globals.
struct library {
    const char* name = "";  ///< of the table, in static storage; "" for globals
    std::span<const library_function> functions = {};
    void* context = nullptr;  ///< for the functions' code; must outlive the host
};

}  // namespace eddy::script
