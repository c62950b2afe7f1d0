// Runner of scripts: the running script, its limits, and the commands that it calls.
//
// A script runs within its command, on a stack of its own. It reads the clock every ten thousand of
// Lua's instructions, or steps within a function of C that may take many, and more often while it
// has a text or table so large that one instruction may take long. After slice_ms it is late:
// engine::execute() returns with the session blocked, and engine::go_on() runs the script for a
// slice at a time until it ends or is killed, so that the loop serves other runtimes and the
// control API. The cache's other clients wait, as their commands must not see partial changes.
// After busy_reply_ms the script is busy, too: they get BUSY. A transaction with a script runs on
// that stack as a whole.
//
// LuaJIT's compiler is off: compiled loops do not read the clock, and scripts mostly call functions
// of C, which end its traces. Its interpreter is twice as fast as Redis's Lua.
#pragma once

#include <eddy/base/byte_buffer.hpp>

#include "cache/clients/client_session.hpp"
#include "cache/engine/call.hpp"
#include "cache/engine/engine_state.hpp"
#include "lua/fiber.hpp"
#include "lua/sandbox.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::cache {

/// Call of a script or function.
struct script_call {
    lua::sandbox* in = nullptr;
    int function = 0;           ///< in the sandbox
    std::string_view name;      ///< as in error texts
    std::uint32_t flags = 0;    ///< of script_flag
    bool read_only = false;     ///< EVAL_RO, or the flag no-writes
    bool is_function = false;   ///< FCALL
    std::size_t first_key = 0;  ///< arg(first_key) and the following are the keys,
    std::size_t keys = 0;       ///< so many,
    std::size_t arguments = 0;  ///< followed by so many arguments
};

/// Supervisor of all sandboxes of an engine; runs one script at a time. One thread.
class script_runner final : public lua::supervisor {
public:
    explicit script_runner(engine& home);
    script_runner(const script_runner&) = delete;
    script_runner& operator=(const script_runner&) = delete;
    ~script_runner();

    /// The supervisor of a sandbox of the engine.
    static script_runner& of(lua::stack in) noexcept {
        return static_cast<script_runner&>(lua::sandbox::of(in).supervised_by());
    }

    /// Duration of a slice, after which other work of the loop runs, whatever busy_reply_ms is; the
    /// first slice is at most busy_reply_ms, unless that is 0.
    static constexpr std::int64_t slice_ms = 5;

    /// Runs the script and replies. On the fiber.
    void run(call& c, const script_call& what);

    /// Runs `what(c)` on the fiber, or directly if called on it. Afterwards the session is blocked
    /// if it was suspended.
    void on_fiber(call& c, void (*what)(call&));

    // The running script.
    bool is_running() const noexcept { return running_ != nullptr; }
    /// True if it was cut off by the end of the server.
    bool is_cut_off() const noexcept { return abandoned_ && state_.persistence.is_ending; }
    /// True while it is suspended, and go_on() runs it.
    bool is_late() const noexcept { return fiber_.is_suspended(); }
    /// True if it has taken longer than busy_reply_ms.
    bool is_busy() const noexcept { return is_busy_; }
    const script_call* running() const noexcept { return running_; }
    bool has_written() const noexcept { return has_written_; }
    /// True if the code on the fiber has changed data.
    bool has_changed() const noexcept { return state_.data.changes != changes_before_; }
    std::int64_t running_ms() const noexcept;
    /// Command of the running script, "EVALSHA ...", for FUNCTION STATS.
    const std::vector<std::string>& running_command() const noexcept { return running_command_; }
    /// The command with this current name, or null.
    const command_spec* find_named_command(std::string_view name) const noexcept;
    /// True if the caller may run this command, a known one with the right number of arguments.
    bool may_run(const command_spec& what, std::span<const std::string_view> args) const;
    /// Ends it with an error at its next instruction.
    void kill() noexcept { killed_ = true; }
    /// Runs a late script for a slice of time.
    void go_on();
    /// Scripts that would begin wait, see script_gap.hpp. Only while one is late.
    void hold_back() noexcept { ++holds_; }
    void let_begin() noexcept;
    /// Suspends the code on the fiber for so long; it is late meanwhile. Returns at once elsewhere.
    void pause(std::int64_t us);
    /// The session closes: its script ends.
    void forget(client_session& who);
    /// Ends the late script in its current state, and closes its session.
    void cut_off();

    /// Begins and ends the load of a library in that sandbox, for at most so long.
    void begin_load(lua::sandbox& in, std::int64_t max_ms) noexcept;
    void end_load(lua::sandbox& in) noexcept;

    // Overrides of lua::supervisor.
    void check(lua::stack in) override;
    /// The same without an error: a killed script continues.
    void check_quietly() override;
    bool is_ending() const noexcept override { return killed_ || load_is_over_; }

    /// Seeds a new sandbox from the engine's generator.
    void seed_random(lua::stack in);

    // For redis_library.cpp.
    engine_state& state() noexcept { return state_; }
    client_session& own_session() noexcept { return session_; }
    /// Executes a command of the script and returns its reply, which is valid until the next one.
    /// The error is in `refusal`, a static text, if it was not executed.
    std::string_view execute(const std::string_view* args, std::size_t count,
                             std::string_view& refusal);
    /// Counts the last command as steps of the script. May raise an error or suspend the script.
    void count_executed(lua::stack in);

private:
    struct own final : client_session {
        explicit own(engine& home);
    };
    const command_spec* find_callable(const std::string_view* args, std::size_t count,
                                      std::uint64_t& flags, std::string_view& why) const;
    std::string_view refusal_of_write(std::uint64_t flags) const;
    /// Runs a command of the script, with its effects on replicas and files.
    void run_command(call& inner, const command_spec& spec);
    void begin_slice() noexcept;
    void note_busy();
    void end_slow_path() noexcept;
    void finish_late();
    void note_half_script();
    void abandon();
    std::int64_t clock_ns() const noexcept;
    std::int64_t look_ns() noexcept;

    engine_state& state_;
    own session_;

    lua::fiber fiber_;
    bool lacked_memory_ = false;  // the code on it
    byte_buffer reply_;           // of the code on the fiber
    byte_buffer command_reply_;   // of one command of a script
    std::optional<resp::reply_writer> writer_;
    std::optional<call> call_;  // valid on the fiber
    void (*body_)(call&) = nullptr;
    client_session* late_session_ = nullptr;
    std::uint64_t changes_before_ = 0;  // value of data.changes before the code on the fiber
    std::int64_t looked_ns_ = 0;        // simulated time of all readings
    std::int64_t began_ns_ = 0;
    std::int64_t slice_ends_ns_ = 0;  // 0: no slice
    std::int64_t load_ends_ns_ = 0;   // 0: no library is loaded
    std::int64_t now_us_ = 0;         // the script's time
    class running_mark;
    const script_call* running_ = nullptr;
    call* running_call_ = nullptr;
    byte_buffer late_pushes_;  // output that a late script causes for its session
    std::vector<std::string> running_command_;
    bool load_is_over_ = false;
    std::size_t executed_steps_ = 0;
    bool has_written_ = false;
    unsigned holds_ = 0;  // of hold_back()
    bool is_busy_ = false;
    bool killed_ = false;
    bool abandoned_ = false;  // its session closes: all that it runs ends
    bool memory_is_short_ = false;
    bool is_stale_ = false;  // on a replica without its master, which shows no data
};

}  // namespace eddy::cache
