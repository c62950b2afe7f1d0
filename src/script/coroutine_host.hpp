// Host of a script on a loop: one Lua state, in which each call of one of the script's callbacks is
// a coroutine of Lua's, and the budgets of time and memory that keep it from holding up the loop.
//
// A call that ends without a wait, and within its slice, costs no allocation and no coroutine of
// C++: try_run(). Lua's coroutines are used again.
//
// A call that waits in a library's function (library.hpp) is suspended; the host awaits the
// function's task and resumes the coroutine with the task's results. So any number of calls wait at
// a time, and one runs. A call that computes for longer than a slice is left in the middle, on a
// stack of its own, and resumed in the loop's next turn. The script's other calls wait meanwhile,
// since they share its state; other work of the loop runs. In the same way all calls of a turn of
// the loop have one slice together: what comes then waits for the next turn, in order.
#pragma once

#include <eddy/io/event.hpp>
#include <eddy/io/operation.hpp>
#include <eddy/io/semaphore.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>

#include "lua/fiber.hpp"
#include "lua/sandbox.hpp"
#include "script/failure_reasons.hpp"
#include "script/library.hpp"
#include "script/value.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <list>
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
    /// Text of Lua that is called with the script's function as the script is loaded, and returns
    /// the function that is called in its place; empty: none. It finds the sandbox's globals.
    std::string_view wrapper = {};
};

struct host_limits {
    /// Bytes of the values of all calls; beyond that a call that needs more fails.
    std::size_t bytes = std::size_t{64} << 20;
    /// Time of the processor in a row. A call that takes longer has a part of it at a time after
    /// that, so that other work of the loop waits for less: see slice_part.
    std::chrono::microseconds slice{1000};
    /// Time of the processor between two of a call's waits; beyond that the call fails. A function
    /// that answers at once, or in the same turn of the loop, is no wait.
    std::chrono::milliseconds run{500};
    /// The same of compiling the file, and of its own statements.
    std::chrono::milliseconds load{500};
    /// Bytes of an error's text.
    std::size_t error = 1000;
};

/// Place of a call in the queue for the state.
enum class call_order : std::uint8_t {
    in_order,    // behind them
    overtaking,  // before them, if the state is free: of a caller that has waited already
};

/// Text of Lua that runs before a script, and defines globals for it. In static storage. It is
/// called with two functions: share(function), which gives a function, such as of loadstring(), the
/// script's globals, and returns it; and extend(table, name, value), which adds to a library's
/// table.
struct prelude {
    std::string_view name;
    std::string_view text;
};

struct host_options {
    host_limits limits = {};
    std::vector<callback> callbacks = {};
    std::vector<library> libraries = {};
    std::vector<prelude> preludes = {};
    std::string_view call_name = "call";  ///< a call in messages; in static storage
    /// A global that is not there is nil, as in Lua, and `_G` is the table of the script's own
    /// ones. Otherwise reading one is an error, which shows misspelt names.
    bool plain_globals = false;
};

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

/// Call of a callback. It must live until it has ended, and die before the host. The loop's thread.
class call {
public:
    /// Call of the callback at that index in host_options, which the script must define.
    explicit call(coroutine_host& in, std::size_t callback = 0) noexcept;
    call(const call&) = delete;
    call& operator=(const call&) = delete;
    virtual ~call();

    /// The host that it belongs to.
    coroutine_host& host() const noexcept { return host_; }
    /// Name of the callback, for messages.
    std::string_view name() const noexcept { return name_; }
    /// False while it waits for its first turn.
    bool has_begun() const noexcept { return state_ != state::begins; }

protected:
    /// Call of nothing yet: reuse() must follow.
    struct unbound {};
    call(coroutine_host& in, unbound /*tag*/) noexcept : host_(in) {}
    /// Makes a call that has ended, or not begun, one of another callback.
    void reuse(std::size_t callback) noexcept;
    /// The same of a function that the host keeps; the function outlives the call's beginning.
    /// `name` is in static storage.
    void reuse(const kept_function& function, std::string_view name) noexcept;

private:
    friend class coroutine_host;
    enum class state : std::uint8_t { begins, runs, waits, ready, gone, over };

    /// Pushes the arguments, and returns how many; called once, protected. May raise, so keeps no
    /// object with a destructor over what does.
    virtual int push_arguments(lua::stack in) = 0;
    void begin_anew() noexcept {
        state_ = state::begins;
        has_paused_ = false;
        used_ = {};
    }

    coroutine_host& host_;
    int function_ = 0;
    std::string_view name_;
    std::size_t results_ = 0;
    state state_ = state::begins;
    bool has_paused_ = false;          // where it is suspended: for others, not for an event
    std::chrono::nanoseconds used_{};  // of the processor, since its last wait
    permit midway_;                    // lock of the state, while it was left in the middle
    int kept_ = 0;                     // its coroutine; 0: not begun
    lua::stack at_ = nullptr;
    const library_function* row_ = nullptr;  // that it is suspended in
    answer answer_;                          // of that one
};

/// One loop's thread. No call may be there when it dies.
class coroutine_host final : lua::supervisor, timer {
public:
    /// Throws std::bad_alloc.
    explicit coroutine_host(host_options options);
    coroutine_host(const coroutine_host&) = delete;
    coroutine_host& operator=(const coroutine_host&) = delete;
    ~coroutine_host();

    /// Compiles the text, as load() does, and nothing else.
    std::expected<void, std::string> check(std::string_view text, std::string_view name);
    /// Compiles the text and runs it, which defines the callbacks. `name` is what errors call it.
    /// The error is one line that names the script's. Once, before all calls.
    std::expected<void, std::string> load(std::string_view text, std::string_view name);
    /// The same in slices, between which other work of the loop runs. What the file's statements
    /// have begun, such as timers, may run calls after that, or must be ended where it fails.
    task<std::expected<void, std::string>> load_in_slices(std::string text, std::string name);
    /// True if the script has defined that callback.
    bool defines(std::size_t callback) const noexcept { return functions_[callback] != 0; }
    /// Parameters that the callback was defined with, -1 for any number.
    int parameters(std::size_t callback) const noexcept { return parameters_[callback]; }
    /// Copy of the script's own global; nil where it cannot be copied. No call may be in the
    /// middle.
    value global(const char* name);
    /// The same once no call is in the middle.
    task<value> global_later(const char* name);
    /// Copies of all of them that read_value() takes, once no call is in the middle.
    task<table> globals();

    /// Runs the call as far as it comes at once. Its end, valid until the next call; or null where
    /// it waits, has used its slice, or did not begin since another one is in the middle, or others
    /// come first: run() continues it then, and must be awaited.
    call_end* try_run(call& of, call_order order = call_order::in_order);
    /// Runs the call to its end, also one that try_run() has not ended. It runs under the source of
    /// the awaiting coroutine: that source's request ends it, at its wait or within a slice.
    task<call_end> run(call& of);

    /// True when the calls of this turn of the loop have used a slice together: none begins before
    /// the next turn.
    bool is_round_over() const noexcept { return is_round_over_; }
    /// Calls that have waited for their turn so far, and those among them that have had it.
    std::uint64_t queued() const noexcept { return queued_; }
    std::uint64_t unqueued() const noexcept { return queued_ - queue_.size(); }

    /// Bytes of the state's values.
    std::size_t used_bytes() const noexcept { return machine_.used_bytes(); }

private:
    friend class call;
    friend class kept_function;
    class bridge;  // what Lua calls
    /// A time that is read when it is needed: that of a call of Lua's costs more than most calls.
    static constexpr std::chrono::nanoseconds not_read = std::chrono::nanoseconds::min();
    /// A call's first slice is whole, further ones are such a part of it, but not below the least.
    static constexpr int slice_part = 16;
    static constexpr std::chrono::microseconds least_slice{50};
    /// Coroutines without a call that are kept at most.
    static constexpr std::size_t max_idle = 64;
    /// Calls that are woken at a time: most of a long queue has no turn soon.
    static constexpr std::size_t max_woken = 64;
    struct waiter {
        event woken = {};
    };
    struct idle_coroutine {
        int kept;
        lua::stack at;
    };

    value read_global(const char* name);
    bool compile(std::string_view text, std::string_view name, std::vector<int>& to,
                 std::string& why);
    task<permit> lock_state();
    permit try_lock_state(call_order order) noexcept;
    void wake() noexcept;
    void begin_turn() noexcept;
    void fire() noexcept override;
    void release(permit lock) noexcept;
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
    void drop(int kept) noexcept;
    void reserve_drops();
    bool try_reserve_drops() noexcept;
    void read_results(call& of);
    void note_end(const call& of) const noexcept;
    call_end* end_round_trip(call& of) noexcept;
    void end_gone(call& of) noexcept;
    void begin_run(const call* of) noexcept;
    void begin_further_slice() noexcept;
    std::chrono::nanoseconds slice_time() noexcept;
    void leave_after(std::chrono::nanoseconds elapsed);
    void collect() noexcept;
    void check(lua::stack in) override;
    void check_quietly() override;
    bool is_ending() const noexcept override { return !ending_.empty(); }

    const host_options options_;
    std::vector<const library*> watching_;  // with `ended`
    // Errors of functions that wait, where they cannot.
    const std::string outside_text_;
    const std::string nested_text_;
    lua::sandbox machine_;
    lua::fiber fiber_;
    async_mutex state_lock_;
    std::list<waiter> queue_;      // calls that wait for the lock
    std::uint64_t queued_ = 0;     // that have ever waited for it
    bool are_woken_ = false;       // the first of them, and none has run since
    std::vector<int> functions_;   // by the callbacks' places; 0: not defined
    std::vector<int> parameters_;  // the same
    int globals_ = 0;              // table of the script's own
    bool is_loaded_ = false;
    call* running_ = nullptr;
    call_end end_;              // of that one
    bool is_pause_ = false;     // of the function that runs: invocation::pauses()
    answer answer_;             // of the function that runs; here, as errors leave its frame
    std::string text_;          // the same for an error's text
    std::vector<int> dropped_;  // coroutines and functions that are not used any more
    std::size_t kept_ = 0;      // that are, those of idle_ included
    std::vector<idle_coroutine> idle_;
    int arguments_ = 0;          // of the call that begins
    kept_function given_;        // argument of the function that runs
    std::size_t collected_ = 0;  // bytes that were used after the last collection
    std::chrono::nanoseconds slice_begun_ = not_read;
    std::chrono::nanoseconds slice_length_{};
    std::chrono::nanoseconds round_begun_ = not_read;
    time_point turn_;                  // of round_begun_
    bool is_round_over_ = false;       // until the timer fires, in the next turn
    std::chrono::nanoseconds used_{};  // since the last wait, in the slices before
    bool has_used_slice_ = false;
    std::string_view ending_;  // the reason, while what runs is to end
};

}  // namespace eddy::script
