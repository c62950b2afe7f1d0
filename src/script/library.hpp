// Libraries of functions that scripts call, each function a row: name, arguments, help and code.
//
// A function's code answers at once, or with a task: the calling script is suspended until the task
// has ended, while other calls of its state run (coroutine_host.hpp).
#pragma once

#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>

#include "lua/moved_function.hpp"
#include "lua/stack.hpp"
#include "script/value.hpp"

#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace eddy::script {

class call;
class coroutine_host;

/// Function of a script that a library's function was given, to be called later. It must die before
/// the host. The loop's thread.
class kept_function {
public:
    kept_function() noexcept = default;
    kept_function(kept_function&& other) noexcept
        : host_(std::exchange(other.host_, nullptr)), kept_(std::exchange(other.kept_, 0)) {}
    kept_function& operator=(kept_function&& other) noexcept {
        std::swap(host_, other.host_);
        std::swap(kept_, other.kept_);
        return *this;
    }
    ~kept_function();

    explicit operator bool() const noexcept { return host_ != nullptr; }

private:
    friend class call;
    friend class coroutine_host;
    kept_function(coroutine_host& host, int kept) noexcept : host_(&host), kept_(kept) {}

    coroutine_host* host_ = nullptr;
    int kept_ = 0;
};

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
    function,  ///< one of a row's at most, which its code takes by invocation::take_function()
};

struct argument {
    std::string_view name = {};
    argument_kind kind = argument_kind::any;
    bool is_optional = false;  ///< may be nil or absent
};

/// Arguments of a function at most; a script's further ones are dropped.
inline constexpr std::size_t max_arguments = 6;

/// A shorter sleep is no wait: a loop of such is computing.
inline constexpr duration least_sleep = std::chrono::microseconds(100);

/// Answer of a function's code. One loop's thread.
class answer {
public:
    /// No results.
    answer() noexcept : is_(std::in_place_type<values>) {}
    /// One result, without an allocation.
    answer(std::same_as<bool> auto truth) noexcept : is_(truth) {}
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

    std::variant<values, bool, task<function_result>, failure, misuse> is_;
};

/// Call of a function by a script: its arguments are checked, and numbers in the place of texts
/// have become texts. It lives as long as the code runs. The loop's thread.
class invocation {
public:
    invocation(lua::stack in, call* caller, void* context, kept_function& given) noexcept
        : in_(in), caller_(caller), context_(context), given_(given) {}

    // Arguments count from 1.
    bool has(int which) const noexcept { return !in_.isnil(which); }
    /// Valid until the code returns.
    std::string_view text(int which) const noexcept { return in_.tostring(which); }
    double number(int which) const noexcept { return in_.tonumber(which); }
    bool boolean(int which) const noexcept { return in_.toboolean(which); }
    bool is_number(int which) const noexcept { return in_.type(which) == lua::value_type::number; }
    /// The argument that is a function. Once.
    kept_function take_function() const noexcept { return std::move(given_); }
    /// A copy, as read_value(), of an argument that is `any` or a table.
    std::expected<value, std::string> read(int which) {
        std::size_t bytes = 0;
        auto copied = read_value(in_, which, bytes);
        count(bytes);
        return copied;
    }

    /// Bytecode of the function of Lua's that the argument is, for another state; empty for one of
    /// C.
    std::string dump(int which) {
        std::string code = lua::dump_function(in_, which);
        count(code.size());
        return code;
    }
    /// Copy of a local variable around that function, from 1 on; nothing behind the last one. The
    /// error names one that cannot be copied.
    std::expected<std::optional<value>, std::string> read_upvalue(int function, int which) {
        const char* const name = lua::push_upvalue(in_, function, which);
        if (name == nullptr) return std::optional<value>();
        std::size_t bytes = 0;
        auto copied = read_value(in_, in_.gettop(), bytes);
        in_.pop();
        count(bytes);
        if (!copied)
            return std::unexpected("its local variable " + std::string(name) + " is " +
                                   copied.error() + ", which stays on this thread");
        return std::optional<value>(std::move(*copied));
    }

    /// Counts work as time of the script, in its instructions: some nanoseconds each. Every call
    /// counts as a few microseconds anyway; this is for what may take much longer.
    void count(std::size_t steps) noexcept { steps_ += steps; }
    std::size_t steps() const noexcept { return steps_; }

    /// The task that is answered lets others run, and awaits nothing that happens outside: the time
    /// that the script may compute in a row continues.
    void pauses() noexcept { is_pause_ = true; }
    bool is_pause() const noexcept { return is_pause_; }
    /// The same for a sleep of that length.
    void sleeps(duration time) noexcept { is_pause_ = time < least_sleep; }

    /// The call that it belongs to; null while the script's own statements run. Never null for a
    /// function that waits.
    call* caller() const noexcept { return caller_; }
    /// The library's.
    template <class T>
    T& context() const noexcept {
        return *static_cast<T*>(context_);
    }
    /// The same where it may be null.
    template <class T>
    T* context_if() const noexcept {
        return static_cast<T*>(context_);
    }

private:
    lua::stack in_;
    call* caller_;
    void* context_;
    kept_function& given_;
    std::size_t steps_ = 0;
    bool is_pause_ = false;
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
    /// a coroutine of the script's. The time that the script may compute in a row ends where the
    /// task takes longer than a turn of the loop.
    bool waits = false;
    /// `ends` is for functions that wait.
    on_failure failure = on_failure::raises;
    /// Runs within the script: keeps off the loop's waits, and calls no script. Only std::bad_alloc
    /// may be thrown. Null for a function that the state has already.
    answer (*run)(invocation& of) = nullptr;
    /// Table and name of that one: {"cjson", "encode"}.
    std::array<const char*, 2> existing = {};
};

/// Field of a table that is no function.
struct library_constant {
    const char* name;  ///< in static storage
    std::variant<double, std::string> is;
};

/// Functions of one table, or of the globals. Libraries of the same name share the table.
struct library {
    /// Name of the table, in static storage; "" for globals. A second name, as in "eddy.json", is
    /// that of a field of the table with the first one.
    const char* name = "";
    std::span<const library_function> functions = {};
    void* context = nullptr;  ///< for the functions' code; must outlive the host
    std::vector<library_constant> constants = {};
    /// Further globals that are the same table; of its first library alone.
    std::vector<const char*> other_names = {};
    /// Called as a call ends that has begun, to free what it had; may be null.
    void (*ended)(void* context, const call& of) noexcept = nullptr;
};

}  // namespace eddy::script
