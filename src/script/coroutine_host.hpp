// Host of a script on a loop: one Lua state, in which each call of one of the script's callbacks is
// a coroutine of Lua's, and the budgets of time and memory that keep it from holding up the loop.
//
// A call that waits in a library's function (library.hpp) is suspended; the host awaits the
// function's task and resumes the coroutine with the task's results. So any number of calls wait at
// a time, and one runs. A call that computes for longer than a slice is left in the middle, on a
// stack of its own, and resumed in the loop's next turn. The script's other calls wait meanwhile,
// since they share its state; other work of the loop runs.
#pragma once

#include <eddy/io/operation.hpp>
#include <eddy/io/semaphore.hpp>
#include <eddy/io/task.hpp>

#include "lua/fiber.hpp"
#include "lua/sandbox.hpp"
#include "script/library.hpp"
#include "script/value.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::script {

/// Function that a script defines and the host calls. Texts are in static storage.
struct callback {
    std::string_view name;
    std::string_view arguments = {};  ///< for messages: "request"
    bool is_required = false;         ///< a script without it does not load
    std::size_t results = 0;  ///< that are read, at most max_values; further ones are dropped
};

struct host_limits {
    /// Bytes of the values of all calls; beyond that a call that needs more fails.
    std::size_t bytes = std::size_t{64} << 20;
    /// Time of the processor in a row.
    std::chrono::microseconds slice{1000};
    /// Time of the processor between two of a call's waits; beyond that the call fails. The same
    /// for the file's own statements.
    std::chrono::milliseconds run{500};
    /// Bytes of an error's text.
    std::size_t error = 1000;
};

struct host_options {
    host_limits limits = {};
    std::vector<callback> callbacks = {};
    std::vector<library> libraries = {};
    std::string_view call_name = "call";  ///< a call in messages; in static storage
};

// Reasons of failures, for metrics.
/// It has raised an error, or used up the memory.
inline constexpr std::string_view script_failed = "script_failed";
/// It has computed for longer than host_limits::run.
inline constexpr std::string_view script_too_long = "script_too_long";
/// It was computing when its client went.
inline constexpr std::string_view script_killed = "script_killed";
/// The process has no more memory; such an end has no text.
inline constexpr std::string_view no_memory = "no_memory";

/// End of a call.
struct call_end {
    enum class kind : std::uint8_t {
        returned,  ///< with `results`
        failed,    ///< with `text` and `reason`
        gone,      ///< its source was requested, or a function has ended it
    };
    kind what = kind::gone;
    values results = {};    ///< as many as the callback's row says
    std::string text = {};  ///< one line, host_limits::error bytes of it the script's at most
    std::string_view reason = {};  ///< in static storage
};

/// Call of a callback. It must live until run() has returned, and die before the host. The loop's
/// thread.
class call {
public:
    /// Call of the callback at that index in host_options, which the script must define.
    explicit call(coroutine_host& in, std::size_t callback = 0) noexcept;
    call(const call&) = delete;
    call& operator=(const call&) = delete;
    virtual ~call();

private:
    friend class coroutine_host;
    enum class state : std::uint8_t { begins, runs, waits, ready, gone, over };

    /// Pushes the arguments, and returns how many; called once, protected. May raise, so keeps no
    /// object with a destructor over what does.
    virtual int push_arguments(lua::stack in) = 0;

    coroutine_host& host_;
    std::size_t callback_;
    state state_ = state::begins;
    int kept_ = 0;  // its coroutine; 0: not begun
    lua::stack at_ = nullptr;
    const library_function* row_ = nullptr;  // that it is suspended in
    answer answer_;                          // of that one
};

/// One loop's thread. No call may be there when it dies.
class coroutine_host final : lua::supervisor {
public:
    /// Throws std::bad_alloc.
    explicit coroutine_host(host_options options);
    coroutine_host(const coroutine_host&) = delete;
    coroutine_host& operator=(const coroutine_host&) = delete;
    ~coroutine_host();

    /// Compiles the text and runs it, which defines the callbacks. `name` is what errors call it.
    /// The error is one line that names the script's. Once, before all calls.
    std::expected<void, std::string> load(std::string_view text, std::string_view name);
    /// True if the script has defined that callback.
    bool defines(std::size_t callback) const noexcept { return functions_[callback] != 0; }

    /// Runs the call to its end. It runs under the source of the awaiting coroutine: that source's
    /// request ends it, at its wait or within a slice. Once a call.
    task<call_end> run(call& of);

    /// Bytes of the state's values.
    std::size_t used_bytes() const noexcept { return machine_.used_bytes(); }

private:
    friend class call;
    class bridge;  // what Lua calls

    task<bool> run_until_wait(call& of, cancel_source* source);
    void go(call& of) noexcept;
    void resume(call& of);
    bool begin(call& of, int& arguments);
    bool push_answer(call& of, int& arguments);
    void end_suspended(call& of);
    void end_returned(call& of);
    void end_failed(call& of);
    void fail(call& of, std::string text, std::string_view reason = script_failed);
    void drop(call& of) noexcept;
    void begin_run() noexcept;
    std::chrono::nanoseconds slice_time() noexcept;
    void leave_after(std::chrono::nanoseconds elapsed);
    void collect() noexcept;
    void check(lua::stack in) override;
    void check_quietly() override;
    bool is_ending() const noexcept override { return !ending_.empty(); }

    const host_options options_;
    // Errors of functions that wait, where they cannot.
    const std::string outside_text_;
    const std::string nested_text_;
    lua::sandbox machine_;
    lua::fiber fiber_;
    async_mutex state_lock_;
    std::size_t queued_ = 0;      // calls that wait for it
    std::vector<int> functions_;  // by the callbacks' places; 0: not defined
    bool is_loaded_ = false;
    call* running_ = nullptr;
    call_end end_;               // of that one
    answer answer_;              // of the function that runs; here, as errors leave its frame
    std::string text_;           // the same for an error's text
    std::vector<int> dropped_;   // coroutines of calls that are over
    std::size_t calls_ = 0;      // that have one
    std::size_t collected_ = 0;  // bytes that were used after the last collection
    std::chrono::nanoseconds slice_begun_{};
    std::chrono::nanoseconds used_{};  // since the last wait, in the slices before
    bool has_waited_ = false;          // since the clock was last read
    bool has_used_slice_ = false;
    std::string_view ending_;  // the reason, while what runs is to end
};

}  // namespace eddy::script
