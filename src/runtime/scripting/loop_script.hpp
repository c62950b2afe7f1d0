// Script of a runtime on one loop, for every type that runs scripts: the state of the present
// version of its file, the calls of its callbacks, its timers, and its renewal while calls of the
// version before still wait.
//
// A type names its own callbacks and libraries (script_type), and begins calls by begin(). Common
// to all types are on_start, on_stop, on_tick and on_reload, and the functions of
// common_library.hpp.
#pragma once

#include <eddy/io/event.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>

#include "base/problem.hpp"
#include "runtime/host/host.hpp"
#include "runtime/logs/failure_log.hpp"
#include "runtime/scripting/admin_library.hpp"
#include "runtime/scripting/bus_library.hpp"
#include "runtime/scripting/cache_library.hpp"
#include "runtime/scripting/callback_names.hpp"
#include "runtime/scripting/meter_library.hpp"
#include "runtime/scripting/script_limits.hpp"
#include "runtime/scripting/script_metrics.hpp"
#include "runtime/scripting/script_rows.hpp"
#include "runtime/scripting/script_timers.hpp"
#include "script/blocking_calls.hpp"
#include "script/coroutine_host.hpp"
#include "script/http_library.hpp"
#include "script/library.hpp"
#include "script/modules.hpp"
#include "script/sockets.hpp"
#include "serving/journal.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace eddy::runtime {

/// A type's own part of its scripts. Callbacks are in static storage; the libraries' contexts
/// outlive the script.
struct script_type {
    std::span<const script::callback> callbacks = {};
    std::vector<script::library> libraries = {};
    /// Fields of the table `self`: name, port and so on.
    std::vector<script::library_constant> fields = {};
    /// Further name of that table, such as "server"; null: none.
    const char* table_name = nullptr;
    /// The daemon, for functions that reach other runtimes; null in a trial.
    std::shared_ptr<host> daemon = nullptr;
};

/// Argument of a callback. A text is copied where the call does not begin at once.
using script_argument =
    std::variant<std::monostate, double, std::string_view, const script::value*>;

/// Arguments of a callback that are pushed without a copy of them before, such as those of a
/// request.
class pushed_arguments {
public:
    pushed_arguments() = default;
    pushed_arguments(const pushed_arguments&) = delete;
    pushed_arguments& operator=(const pushed_arguments&) = delete;
    virtual ~pushed_arguments() = default;

    /// Pushes them, and returns how many: at most script::max_values. May raise, so keeps no object
    /// with a destructor over what does.
    virtual int push(lua::stack in) const = 0;
    /// A copy that owns what it pushes.
    virtual std::unique_ptr<pushed_arguments> copy() const = 0;
};

class script_version;

/// Call of a callback, or of a timer's function. Used again.
class script_call final : public script::call {
public:
    explicit script_call(script_version& of);
    ~script_call() override = default;

    script_version& version() const noexcept { return version_; }

private:
    friend class loop_script;
    friend class script_version;
    int push_arguments(lua::stack in) override;
    void prepare(std::size_t callback, std::span<const script_argument> arguments) noexcept;
    void prepare_with(std::size_t callback, const pushed_arguments& arguments) noexcept;
    void prepare(std::shared_ptr<script::kept_function> function, std::string_view name,
                 std::span<const script_argument> arguments = {}) noexcept;
    /// Copies the arguments, whose owner may go.
    void own();

    static constexpr std::size_t max_arguments = 3;
    script_version& version_;
    std::array<script_argument, max_arguments> arguments_;
    std::size_t count_ = 0;
    std::array<std::string, max_arguments> texts_;
    script::value owned_;
    const pushed_arguments* pushed_ = nullptr;  // in the place of the others
    std::unique_ptr<pushed_arguments> owned_pushed_;
    std::shared_ptr<script::kept_function> function_;
};

/// One version of a script: its state, and what belongs to that. One loop's thread.
class script_version final : public script_timers::runner, public script_bus::runner {
public:
    /// `type` must outlive it.
    script_version(const script_type& type, const script_config& budgets, serving::journal& lines,
                   script_tallies& counted, failure_log& failures);
    ~script_version();
    script_version(const script_version&) = delete;
    script_version& operator=(const script_version&) = delete;

    outcome<> load(const script_file& from);
    /// The same in slices. abandon() must follow where it fails.
    task<outcome<>> load_in_slices(script_file from);
    script::coroutine_host& host() noexcept { return host_; }
    const script::coroutine_host& host() const noexcept { return host_; }

    /// Runs a call as far as it comes at once: null when it has ended, with its end in `end`, valid
    /// until the next call. Otherwise finish() must be awaited, within tasks().
    std::unique_ptr<script_call> begin(std::size_t callback,
                                       std::span<const script_argument> arguments,
                                       const script::call_end*& end,
                                       script::call_order order = script::call_order::in_order);
    /// The same with arguments that are copied where the call does not begin at once.
    std::unique_ptr<script_call> begin_with(std::size_t callback, const pushed_arguments& arguments,
                                            const script::call_end*& end);
    /// A call that has not begun, for finish(). Copies the arguments.
    std::unique_ptr<script_call> make_call(std::size_t callback,
                                           std::span<const script_argument> arguments);
    /// Runs the call to its end.
    task<script::call_end> finish(std::unique_ptr<script_call> call);
    /// Runs a call of the type's own to its end. It is no task of tasks(): the version outlives it,
    /// and its owner ends it.
    task<script::call_end> run_guest(script::call& of);
    /// Tasks that await calls of this version.
    scope& tasks() noexcept { return tasks_; }
    /// True while there are some.
    bool has_tasks() const noexcept { return task_count_ > 0; }

    void start_ticks();
    /// Reads tick_ms for it; refuses what is no time.
    task<outcome<>> read_ticks();
    /// Its subscriptions get the messages of the bus behind that one.
    void begin_messages(std::uint64_t after) noexcept { bus_.begin(after); }
    /// They get those up to that one, and end.
    void end_messages(std::uint64_t last) noexcept { bus_.end(last); }
    /// No timer fires any more.
    void end_timers() noexcept;
    /// Awaits the end of its calls, for `limit`, and then ends them. Calls that have not had their
    /// turn get script_least_farewell for it.
    task<void> end(duration limit);
    /// Ends its calls.
    task<void> abandon();
    /// Awaits the end of all guests.
    task<void> await_guests();

private:
    class ticker final : private timer {
    public:
        explicit ticker(script_version& of) noexcept : of_(of) {}
        ~ticker() { stop(); }
        void start(duration every) noexcept;
        void stop() noexcept;
        void again() noexcept;

    private:
        void fire() noexcept override;
        script_version& of_;
        duration every_{};
        time_point last_{};
    };

    void run(script_timers& from, std::uint64_t id,
             std::shared_ptr<script::kept_function> function) override;
    task<void> deliver(std::shared_ptr<script::kept_function> function, std::string_view channel,
                       std::string_view text) override;
    task<void> finish_timer(std::unique_ptr<script_call> call, std::uint64_t id);
    void tick(double milliseconds);
    task<void> finish_tick(std::unique_ptr<script_call> call);
    std::unique_ptr<script_call> take();
    void give_back(std::unique_ptr<script_call> call) noexcept;
    void note(const script::call& of, const script::call_end& end) noexcept;
    script::host_options options_of(const script_type& type, const script_config& budgets);

    static constexpr std::size_t max_spare = 64;
    static const script::call_end no_memory_end;
    const script_type& type_;
    duration every_tick_ = usual_tick;
    serving::journal& lines_;
    script_tallies& counted_;
    failure_log& failures_;
    script::sockets sockets_;
    script::http_requests requests_;
    script::modules modules_;
    script::blocking_calls blocking_;
    script_caches caches_;
    meter_library meters_;
    script_admin admin_;
    script::coroutine_host host_;
    script_timers timers_;
    script_bus bus_;
    std::vector<std::unique_ptr<script_call>> spare_;
    ticker ticker_{*this};
    scope tasks_;
    std::size_t task_count_ = 0;
    event no_tasks_;
    std::size_t guests_ = 0;
    event no_guests_;
};

/// One loop's thread, but for what says otherwise.
class loop_script {
public:
    /// `lines` outlives it. `type` is kept.
    loop_script(script_type type, const script_config& budgets, serving::journal& lines);
    ~loop_script();

    /// Loads the first version, without running on_start(): at once, for a trial.
    outcome<> load(const script_file& from);
    /// The same in slices.
    task<outcome<>> load_in_slices(script_file from);
    /// Runs on_start() to its end, or script_start_patience; it then continues. Its failure is
    /// that of the start.
    task<outcome<>> start();
    /// Replaces the version: loads another one, runs its on_reload(old), or on_start() where it has
    /// none, and then has it serve. On failure the present one stays.
    task<outcome<>> replace(script_file by);
    /// The same in two steps, so that several loops take theirs together: all but the last, which
    /// is adopt(). One that was prepared and not adopted is discarded by the next.
    task<outcome<>> prepare(script_file by);
    /// The prepared version serves from now on. Without effect if there is none.
    void adopt();
    /// Ends the prepared version, if there is one.
    void discard();
    /// Runs on_stop(), for at most `limit`. No timer fires from then on.
    task<void> stop(duration limit);
    /// Awaits the end of all calls, for at most `limit`. Without effect, as stop(), if no version
    /// is loaded.
    task<void> end(duration limit);
    /// Ends all calls: after a trial.
    task<void> abandon();

    /// False as long as no version is loaded.
    bool defines(std::size_t callback) const noexcept {
        return now_ != nullptr && now_->host().defines(callback);
    }
    int parameters(std::size_t callback) const noexcept {
        return now_->host().parameters(callback);
    }
    /// As script_version's, of the present version.
    std::unique_ptr<script_call> begin(std::size_t callback,
                                       std::span<const script_argument> arguments,
                                       const script::call_end*& end,
                                       script::call_order order = script::call_order::in_order) {
        return now_->begin(callback, arguments, end, order);
    }
    std::unique_ptr<script_call> begin_with(std::size_t callback, const pushed_arguments& arguments,
                                            const script::call_end*& end) {
        return now_->begin_with(callback, arguments, end);
    }
    script_version& version() noexcept { return *now_; }
    /// See coroutine_host::is_round_over().
    bool is_round_over() const noexcept { return now_->host().is_round_over(); }

    /// Counts and writes that a callback has returned what it may not: its mistake is an error,
    /// too.
    void note_misuse(std::string_view callback, std::string_view why) noexcept;

    /// Any thread.
    const script_tallies& counted() const noexcept { return counted_; }
    /// Notes the memory that it uses for counted().
    void note_memory() noexcept;

private:
    std::uint64_t last_message() const;
    task<outcome<>> run_first(script_version& of, std::size_t callback, script::value argument);
    task<void> retire(std::unique_ptr<script_version> old);
    static task<void> abandon(std::unique_ptr<script_version> unused);
    static task<void> set_at_end(script_version& of, std::unique_ptr<script_call> call,
                                 std::shared_ptr<script::call_end> to, std::shared_ptr<event> done);

    script_type type_;
    const script_config budgets_;
    serving::journal& lines_;
    script_tallies counted_;
    failure_log failures_;
    std::unique_ptr<script_version> now_;
    std::unique_ptr<script_version> next_;  // prepared
    std::size_t old_ = 0;
    bool is_replacing_ = false;
    scope background_;
};

/// For trials, whose scripts log nowhere.
class no_journal final : public serving::journal {
    void write(std::string_view /*line*/) override {}
};
/// Loads a script as a trial, with the errors of a start.
outcome<> try_script(const script_type& type, const script_config& from);
/// The same in slices, between which other work of the loop runs.
task<outcome<>> try_script_in_slices(script_type type, script_config from);

}  // namespace eddy::runtime
