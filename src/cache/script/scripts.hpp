// Scripts: what is cached of them, the one that runs, its limits. One Lua state for all scripts,
// another one for functions' libraries (functions.hpp).
//
//   commands_script.cpp    EVAL and SCRIPT, commands_function.cpp FUNCTION and FCALL
//   vm.hpp                 a Lua state with its memory's limit; sandbox.cpp what scripts find in it
//   redis_library.cpp      redis.call() and its like; values.hpp replies to values and back
//   cjson.cpp, cmsgpack.cpp, struct.cpp   the libraries; in the place of Lua's own functions
//                          patterns.cpp, format.cpp, tables.cpp and loading.cpp
//   script_text.hpp        what is done to a text before it is compiled
//   fiber.hpp              how a script is left in the middle
//
// A script runs within its command, on a stack of its own. Every ten thousand of Lua's
// instructions, or steps within a function of C that may have many, it looks at the clock; more
// often while it has a text or table so large that one instruction may take long. After slice_ms it
// is late: engine::execute() returns with the session blocked, and engine::go_on() runs the script
// for a slice at a time until it ends or is killed, so that the loop serves others: other runtimes,
// the control API. The cache's own clients wait, whose commands must not see it half done. After
// busy_reply_ms it is busy, too: they get BUSY. A transaction with a script in it runs on that
// stack as a whole.
//
// LuaJIT's compiler is off: compiled loops look at no clock, and what scripts do mostly is to call
// functions of C, which end its traces. Its interpreter does twice what Redis's Lua does.
#pragma once

#include <eddy/base/byte_buffer.hpp>
#include <eddy/base/intrusive_list.hpp>

#include "base/text.hpp"
#include "cache/clients/session.hpp"
#include "cache/engine/call.hpp"
#include "cache/script/fiber.hpp"
#include "cache/script/vm.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace eddy::cache {

class libraries;

/// All that an engine has of scripts; made when the first one comes. One thread.
class scripts {
public:
    /// The text of all cached scripts together. Beyond it those go that EVAL brought and that were
    /// not run for longest; SCRIPT LOAD is refused when there are none.
    static constexpr std::size_t max_cached_bytes = std::size_t{32} << 20;
    static constexpr std::size_t max_cached = 64 * 1024;

    explicit scripts(engine& home);
    scripts(const scripts&) = delete;
    scripts& operator=(const scripts&) = delete;
    ~scripts();

    struct cached : list_link<> {
        std::string name;  // its SHA-1
        std::string text;
        int function = 0;  // in the registry
        std::uint32_t flags = 0;
        bool loaded = false;  // by SCRIPT LOAD: it stays
    };

    /// The script, or null. Its place in the order of use is the newest then.
    cached* find(std::string_view name) noexcept;
    /// The same, compiled if it is new; null with the error replied.
    cached* add(call& c, std::string_view text, bool loaded);
    std::size_t count() const noexcept { return by_name_.size(); }
    std::size_t cached_bytes() const noexcept { return cached_bytes_; }
    /// SCRIPT FLUSH.
    void flush();

    /// What runs, and how.
    struct task {
        vm* in = nullptr;
        int function = 0;           ///< in the registry
        std::string_view name;      ///< as errors tell it
        std::uint32_t flags = 0;    ///< of script_flag
        bool read_only = false;     ///< EVAL_RO, or the flag no-writes
        bool is_function = false;   ///< FCALL
        std::size_t first_key = 0;  ///< arg(first_key) .. are the keys,
        std::size_t keys = 0;       ///< so many,
        std::size_t arguments = 0;  ///< and so many arguments behind them
    };
    /// A script runs for so long before others on the loop have their turn, whatever busy_reply_ms
    /// is; of the two, the first slice is the shorter one.
    static constexpr std::int64_t slice_ms = 5;

    /// Runs it and replies. On the fiber.
    void run(call& c, const task& what);

    /// Runs `what(c)` on the fiber; inside it already, directly. The session is blocked afterwards
    /// if it has not come to its end.
    void on_fiber(call& c, void (*what)(call&));

    // The script that runs.
    bool is_running() const noexcept { return running_ != nullptr; }
    /// It was left in the middle, and go_on() runs it.
    bool is_late() const noexcept { return fiber_.is_suspended(); }
    /// It has taken longer than busy_reply_ms.
    bool is_busy() const noexcept { return is_busy_; }
    const task* running() const noexcept { return running_; }
    bool has_written() const noexcept { return has_written_; }
    std::int64_t running_ms() const noexcept;
    /// "EVALSHA ...": what was called, for FUNCTION STATS.
    const std::vector<std::string>& running_command() const noexcept { return running_command_; }
    /// Whether its caller may run this command, known and with the right number of arguments.
    /// The command that clients call so, or null.
    const command_spec* find_named_command(std::string_view name) const noexcept;
    bool may_run(const command_spec& what, std::span<const std::string_view> args) const;
    /// It ends with an error at its next instruction.
    void kill() noexcept { killed_ = true; }
    /// Runs a late script for a slice of time.
    void go_on();
    /// Scripts that would begin wait, see script_gap.hpp. Only while one is late.
    void hold_back() noexcept { ++holds_; }
    void let_begin() noexcept;
    /// The session ends: so does what it has running.
    void forget(session& who);

    /// A library is loaded from now on, which may take max_load_ms; or no longer.
    void limit_load(bool on) noexcept;

    /// Called by Lua's hook, and by what counts steps. May raise an error.
    void look_at_clock(lua_State* in);
    /// The same within what has to come to its end: what is killed goes on, too.
    void pause_if_due();
    /// What runs is to end: none of its own error handlers is to be called.
    bool is_ending() const noexcept { return killed_ || load_is_over_; }

    // For redis_library.cpp.
    engine::state& state() noexcept { return state_; }
    session& own_session() noexcept { return session_; }
    /// Executes a command of the script's and returns its reply, which ends with the next one. The
    /// error is in `refusal`, a static text, if it was not executed.
    std::string_view execute(const std::string_view* args, std::size_t count,
                             std::string_view& refusal);
    /// Counts what the last one has taken as steps of the script. May raise an error, and leave the
    /// script in the middle.
    void count_executed(lua_State* in);

    vm& eval_vm() noexcept { return eval_; }
    libraries& functions();
    const libraries* functions_if_any() const noexcept { return functions_.get(); }

private:
    struct own final : session {
        explicit own(engine& home);
    };
    void remove(cached& gone);
    void begin_slice() noexcept;
    void note_busy();
    void end_attention() noexcept;
    void finish_late();
    std::int64_t clock_ns() const noexcept;
    std::int64_t look_ns() noexcept;

    engine::state& state_;
    own session_;
    vm eval_;
    std::unique_ptr<libraries> functions_;
    std::unordered_map<std::string, std::unique_ptr<cached>, string_hash, std::equal_to<>> by_name_;
    intrusive_list<cached> evictable_;  // the oldest first
    std::size_t cached_bytes_ = 0;

    fiber fiber_;
    bool lacked_memory_ = false;  // what has run on it
    byte_buffer reply_;           // of what runs on the fiber
    byte_buffer command_reply_;   // of one command of a script
    std::optional<resp::reply_writer> writer_;
    std::optional<call> call_;  // as the fiber sees it
    void (*body_)(call&) = nullptr;
    session* late_session_ = nullptr;
    std::int64_t looked_ns_ = 0;  // what all looks at the clock would have taken
    std::int64_t began_ns_ = 0;
    std::int64_t slice_ends_ns_ = 0;  // 0: none has begun
    std::int64_t load_ends_ns_ = 0;   // 0: no library is loaded
    std::int64_t now_us_ = 0;         // as the script has it
    class running_mark;
    const task* running_ = nullptr;
    call* running_call_ = nullptr;
    byte_buffer late_pushes_;  // what a late script has caused for its session
    std::vector<std::string> running_command_;
    bool load_is_over_ = false;
    std::size_t executed_steps_ = 0;
    bool has_written_ = false;
    unsigned holds_ = 0;  // of hold_back()
    bool is_busy_ = false;
    bool killed_ = false;
    bool abandoned_ = false;  // its session goes: all that it runs ends
    bool memory_is_short_ = false;
    bool is_stale_ = false;  // a replica without its master, which shows no data
};

}  // namespace eddy::cache
