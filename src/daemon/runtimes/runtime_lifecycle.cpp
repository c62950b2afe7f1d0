// Start, stop and restart of runtimes, and the daemon's shutdown.
#include "daemon/runtimes/runtime_lifecycle.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/base/log.hpp>
#include <eddy/base/random.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/timeout.hpp>

#include "daemon/runtimes/handover_file.hpp"
#include "daemon/runtimes/runtime_options.hpp"
#include "io/tasks/backoff.hpp"
#include "runtime/options/units.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace eddy::daemon {
namespace {

using restart_clients = runtime::type::restart_clients;

/// Time for runtimes that use others, until those are stopped, too. Connections may last longer;
/// what is under way at the others ends within their own time.
constexpr duration longest_users_time = std::chrono::seconds(1);

bool uses_others(const managed_runtime& which) noexcept {
    return which.desired.type != nullptr && which.desired.type->uses_others;
}

/// Empty where it serves on no address.
std::string address_text(const endpoint& local) {
    return local.family() == AF_UNSPEC ? std::string() : fmt::format("on {}", local.to_string());
}

std::string start_text(const endpoint& local) {
    const std::string where = address_text(local);
    return where.empty() ? "started" : "started " + where;
}

/// The line about a restart that is about to begin.
std::string restart_text(std::string_view reason, duration drain, restart_clients clients) {
    const std::string time = runtime::format_duration(drain.count());
    switch (clients) {
        case restart_clients::served:
            return fmt::format(
                "restarts {}: it serves new clients at once; those that it has may "
                "finish for up to {}",
                reason, time);
        case restart_clients::wait:
            return fmt::format(
                "restarts {}: clients that connect wait {}, and until it serves "
                "again",
                reason,
                drain > duration{} ? fmt::format("for up to {} (--drain)", time) : "for a moment");
        case restart_clients::none: return fmt::format("restarts {}", reason);
    }
    EDDY_ASSERT(false);
}

void report(const managed_runtime& which, log_level level, std::string_view text) {
    which.journal->write(text);
    log(level, which.name(), text);
}

/// Context of a stop that could not be stored.
std::string still_to_run(const managed_runtime& which) {
    return fmt::format("\"{}\" is stopped, but will run again with the next daemon", which.name());
}

}  // namespace

runtime_lifecycle::runtime_lifecycle(runtime_registry& registry, const state_access& state,
                                     blocking_pool& disk, loop_group& loops,
                                     lifecycle_options options, host_factory make_host)
    : registry_(registry),
      state_(state),
      disk_(disk),
      options_(std::move(options)),
      make_host_(std::move(make_host)) {
    EDDY_ASSERT(loops.size() > 0);
    for (std::size_t i = 0; i < loops.size(); ++i)
        loops_.push_back(std::make_unique<loop_runtimes>(loops, i));
}

duration runtime_lifecycle::file_time_of(const managed_runtime& which) {
    const auto& [record, type, options] = which.desired;
    return type && type->file_time && options ? type->file_time(*options) : duration{};
}

loop_runtimes& runtime_lifecycle::least_loaded() noexcept {
    return **std::min_element(loops_.begin(), loops_.end(),
                              [](const auto& a, const auto& b) { return a->load() < b->load(); });
}

duration runtime_lifecycle::restart_drain_of(const managed_runtime& which) const {
    const duration drain = drain_of(which);
    // Its clients hold up nothing.
    const bool is_beside = which.desired.type->over_restart == restart_clients::served;
    return is_beside ? std::max(drain, replaced_drain) : drain;
}

duration runtime_lifecycle::restart_time_of(const managed_runtime& which) const {
    const duration own = which.desired.type->replaced_time;
    return own > duration{} ? own : restart_drain_of(which);
}

duration runtime_lifecycle::drain_of(const managed_runtime& which) const {
    EDDY_ASSERT(which.desired.type != nullptr && which.desired.options);
    const auto& table = which.desired.type->options;
    const bool has_own = std::any_of(table.begin(), table.end(),
                                     [](const runtime::option& o) { return o.name == "drain"; });
    return has_own ? duration(which.desired.options->number("drain")) : options_.drain;
}

// --- Locks ----------------------------------------------------------------------------------

task<bool> runtime_lifecycle::give_up_start(runtime_ref which) {
    if (which->is_rereading && which->running.has_instance()) {
        const auto give_up = [](runtime::instance& on) {
            on.give_up_start();
            return outcome<>();
        };
        static_cast<void>(co_await which->running.where()->on_instance(which->running.number(),
                                                                       loop_patience, give_up));
        co_return false;
    }
    if (which->running.status() != runtime_status::starting) co_return false;
    which->start_given_up.set();
    if (which->running.has_instance())
        co_await which->running.where()->give_up_start(which->running.number());
    co_return true;
}

task<outcome<permit>> runtime_lifecycle::lock_unless_starting(runtime_ref which,
                                                              std::string_view change) {
    for (;;) {
        auto held = co_await with_timeout(starting_patience, which->change_lock.lock());
        if (held) co_return std::move(*held);
        if (held.error() != errc::timed_out) co_return interrupted();
        if (which->running.status() != runtime_status::starting) continue;
        co_return refuse(409, fmt::format("\"{0}\" is still starting; `eddy {1}` can be had when "
                                          "`eddy ls` shows it running, or after `eddy stop {0}`",
                                          which->name(), change));
    }
}

// --- Start ----------------------------------------------------------------------------------

/// Saves whether it is to run.
task<outcome<>> runtime_lifecycle::save_is_to_run(runtime_ref which, bool is_to_run) {
    EDDY_ASSERT(which->change_lock.locked());
    runtime_record wanted = which->desired.record;
    wanted.running = is_to_run;
    auto saved = co_await state_.save(std::move(wanted));
    if (saved) which->desired.record.running = is_to_run;
    co_return saved;
}

task<outcome<>> runtime_lifecycle::start(runtime_ref which) {
    const auto held = co_await which->change_lock.lock();
    if (!held) co_return interrupted();
    if (which->is_removed) co_return vanished(*which);
    // The change that has given up the start before waits for the lock behind this one.
    if (which->start_given_up.is_set())
        co_return refuse(
            409, fmt::format("\"{}\" is being stopped; start it again after that", which->name()));

    const std::string context = fmt::format("\"{}\" could not be started", which->name());
    const bool was_to_run = which->desired.record.running;
    if (!was_to_run) {
        auto saved = co_await save_is_to_run(which, true);
        if (!saved) co_return with_context(context, std::move(saved.error()));
    }
    if (which->running.status() == runtime_status::running) co_return outcome<>();
    auto up = co_await bring_up(which);
    if (up) co_return outcome<>();
    if (!was_to_run) {
        which->desired.record.running = false;
        auto saved = co_await state_.save(which->desired.record);
        if (!saved) log_warn(which->name(), saved.error().message);
    }
    co_return with_context(context, std::move(up.error()));
}

task<outcome<>> runtime_lifecycle::bring_up(runtime_ref which) {
    return bring_up_on(std::move(which), least_loaded(), {});
}

task<outcome<>> runtime_lifecycle::bring_up_on(runtime_ref which, loop_runtimes& where,
                                               inheritance from) {
    EDDY_ASSERT(which->change_lock.locked() && !which->is_removed);
    desired_state& desired = which->desired;
    running_state& running = which->running;
    if (running.has_instance())
        co_return refuse(503,
                         fmt::format("\"{}\" is still there: {}", which->name(), running.reason()));
    // A script that they name may have been mended since they were read.
    if (desired.type && !desired.options) runtime_registry::read_options(*which);
    if (!desired.type || !desired.options) co_return refuse(409, running.reason());
    if (is_shutting_down_) {
        running.mark_stopped();
        co_return interrupted();
    }

    which->end.reset();
    const std::uint64_t number = ++last_number_;
    running.begin_start(where, number, make_host_(which->name(), number));
    from.data = running.handover();
    auto started = co_await where.start(number, *desired.type, which->name(), *desired.options,
                                        which->journal, running.host(), std::move(from));
    EDDY_ASSERT(running.number() == number);
    if (!started) {
        if (running.host()) running.host()->end();
        running.fail_start(started.error().message);
        registry_.note(*which, event_kind::failed, running.reason());
        report(*which, log_level::warn, fmt::format("could not start: {}", running.reason()));
        co_return std::unexpected(std::move(started.error()));
    }
    running.finish_start(loop::current().now(), *started);
    registry_.publish_running(*which, true);
    if (!which->is_restarting) registry_.note(*which, event_kind::started, address_text(*started));
    report(*which, log_level::info, start_text(*started));
    co_return outcome<>();
}

// --- Stop -----------------------------------------------------------------------------------

task<outcome<>> runtime_lifecycle::stop(runtime_ref which, unsaved data) {
    const bool was_starting = co_await give_up_start(which);
    {
        const auto held = co_await which->change_lock.lock();
        if (!held) co_return interrupted();
        which->start_given_up.reset();
        auto stopped = co_await stop_alone(which, data, was_starting);
        if (!stopped) co_return stopped;
    }
    co_return co_await stop_children(which->name(), data);
}

task<outcome<>> runtime_lifecycle::end_instance(runtime_ref which, instance_end how) {
    // An upgrade of the daemon, which may have the lock, sees it at once.
    const std::uint64_t number = how.number;
    which->end = std::move(how);
    co_return co_await stop_instance(which, number);
}

task<outcome<>> runtime_lifecycle::stop_instance(runtime_ref which, std::uint64_t number) {
    running_state& running = which->running;
    if (running.number() != number) co_return outcome<>();
    const bool was_starting = co_await give_up_start(which);
    outcome<> stopped;
    {
        const auto held = co_await which->change_lock.lock();
        if (!held) co_return interrupted();
        which->start_given_up.reset();
        // A restart may have had the lock before, a stop, or an upgrade that failed.
        const bool has_ended =
            which->has_ended() && which->desired.record.running && !is_shutting_down_;
        const bool is_its =
            running.has_instance() ? running.number() == number : was_starting || has_ended;
        if (which->is_removed || !is_its) {
            if (which->end && which->end->number == number) which->end.reset();
            co_return outcome<>();
        }
        if (has_ended && running.has_instance())
            running.note_ending(which->end->how, which->end->is_failure);
        else if (has_ended)
            running.finish_ending(which->end->how, which->end->is_failure);
        stopped = co_await stop_alone(which, unsaved::kept, was_starting);
        if (which->has_unsaved_end()) {
            which->end->has_stopped_owned = true;
            note_unsaved_end();
        } else if (!stopped) {
            co_return stopped;
        }
    }
    auto owned_stopped = co_await stop_children(which->name(), unsaved::kept);
    if (stopped) co_return owned_stopped;
    stopped.error().message += ". This is tried again while the daemon runs";
    co_return stopped;
}

/// save_ends() begins with its first pause.
void runtime_lifecycle::note_unsaved_end() noexcept {
    if (!unsaved_ends_.is_set()) saved_.reset();
    unsaved_ends_.set();
}

task<void> runtime_lifecycle::save_ends() {
    backoff pauses(first_save_pause, longest_save_pause, entropy_seed());
    while (co_await unsaved_ends_.wait()) {
        const auto woken = co_await with_timeout(pauses.next(), saved_.wait());
        if (!woken && woken.error() != errc::timed_out) co_return;
        unsaved_ends_.reset();
        for (const runtime_ref& each : registry_.all())
            if (each->has_unsaved_end()) co_await save_end(each);
        if (!unsaved_ends_.is_set()) pauses.reset();
    }
}

task<void> runtime_lifecycle::save_end(runtime_ref which) {
    bool stops_owned = false;
    {
        const auto held = co_await which->change_lock.lock();
        if (!held || which->is_removed || !which->has_unsaved_end()) co_return;
        stops_owned = !std::exchange(which->end->has_stopped_owned, true);
        const bool is_late = !stops_owned;
        auto saved = co_await save_end_now(which);
        if (!saved) {
            note_unsaved_end();
            if (!is_late)
                log_warn(which->name(), fmt::format("{}. This is tried again while the daemon runs",
                                                    saved.error().message));
        } else if (is_late) {
            log_info(which->name(), "its end is stored now");
        }
    }
    if (!stops_owned) co_return;
    auto owned_stopped = co_await stop_children(which->name(), unsaved::kept);
    if (!owned_stopped) log_warn(which->name(), owned_stopped.error().message);
}

/// The caller has the lock.
task<outcome<>> runtime_lifecycle::save_end_now(runtime_ref which) {
    EDDY_ASSERT(which->change_lock.locked() && which->has_unsaved_end());
    outcome<> saved;
    if (which->desired.record.running) saved = co_await save_is_to_run(which, false);
    if (saved)
        which->end.reset();
    else
        saved = with_context(still_to_run(*which), std::move(saved.error()));
    co_return saved;
}

/// Without the ones that it owns. The caller has the lock.
task<outcome<>> runtime_lifecycle::stop_alone(runtime_ref which, unsaved data, bool was_starting) {
    EDDY_ASSERT(which->change_lock.locked());
    if (which->is_removed) co_return vanished(*which);
    const runtime_status status = which->running.status();
    if (which->running.has_instance()) {
        auto down = co_await take_down(which, data);
        if (!down) co_return down;
    } else if (status == runtime_status::starting ||
               (was_starting && status == runtime_status::failed)) {
        which->running.mark_stopped();
    }
    outcome<> saved;
    if (which->desired.record.running) saved = co_await save_is_to_run(which, false);
    if (!saved) co_return with_context(still_to_run(*which), std::move(saved.error()));
    which->end.reset();
    co_return saved;
}

task<outcome<>> runtime_lifecycle::stop_children(std::string owner, unsaved data) {
    outcome<> all_stopped;
    for (const runtime_ref& child : registry_.children_of(owner)) {
        const on_parent_stop policy = child->desired.record.policy;
        if (child->is_removed || policy == on_parent_stop::keep) continue;
        const bool removes = policy == on_parent_stop::remove && remove_ != nullptr;
        if (!removes && !child->desired.record.running) continue;
        auto stopped = removes ? co_await remove_(child, data) : co_await stop(child, data);
        if (!stopped) all_stopped = std::move(stopped);
    }
    co_return all_stopped;
}

/// Its loop does not answer.
outcome<> runtime_lifecycle::fail_stop(managed_runtime& which, problem why) {
    which.running.fail_stop(fmt::format("it could not be stopped: {}", why.message));
    registry_.note(which, event_kind::failed, which.running.reason());
    registry_.publish_running(which, false);
    log_error(which.name(), which.running.reason());
    return with_context(fmt::format("\"{}\" could not be stopped", which.name()), std::move(why));
}

/// The instance writes what must last; on failure it serves as before.
task<outcome<>> runtime_lifecycle::prepare_stop(runtime_ref which, duration drain) {
    const running_state& running = which->running;
    if (!running.has_instance()) co_return outcome<>();
    const auto prepare = [drain](runtime::instance& on) { return on.prepare_stop(drain); };
    // A stop that is under way has prepared it before.
    const outcome<> when_gone;
    auto ready = co_await running.where()->prepare_on_instance(
        running.number(), drain + file_time_of(*which) + loop_patience, prepare, when_gone);
    if (!ready) co_return fail_stop(*which, std::move(ready.error()));
    if (*ready) co_return outcome<>();
    log_error(which->name(), fmt::format("not stopped: {}", ready->error().message));
    co_return std::move(*ready);
}

task<outcome<>> runtime_lifecycle::take_down(runtime_ref which, unsaved data) {
    if (!which->running.has_instance()) co_return outcome<>();
    const duration drain = drain_of(*which);
    if (data == unsaved::kept) {
        auto ready = co_await prepare_stop(which, drain);
        if (!ready && which->running.status() == runtime_status::failed) co_return ready;
        if (!ready) {
            const std::string& name = which->name();
            ready.error().message += fmt::format(
                ". Mend that, or lose what was not saved with: eddy stop --force {}", name);
            co_return with_context(
                fmt::format("\"{}\" was not stopped, and goes on as before", name),
                std::move(ready.error()));
        }
    }
    co_return co_await take_down_within(which, drain);
}

/// Without prepare_stop() before, what cannot be written is lost.
task<outcome<>> runtime_lifecycle::take_down_within(runtime_ref which, duration drain) {
    EDDY_ASSERT(which->change_lock.locked());
    running_state& running = which->running;
    if (!running.has_instance()) co_return outcome<>();
    running.begin_stop();
    registry_.publish_running(*which, false);
    const time_point begun = loop::current().now();
    auto stopped = co_await running.where()->stop(running.number(), drain, file_time_of(*which));
    // Their clients have the same time.
    const duration elapsed = loop::current().now() - begun;
    co_await await_replaced(which, 0, drain - std::min(drain, elapsed));
    if (!stopped) co_return fail_stop(*which, std::move(stopped.error()));
    if (running.host()) running.host()->end();
    running.finish_stop(std::move(*stopped));
    if (!which->is_restarting)
        registry_.note(*which, event_kind::stopped,
                       running.lost().empty() ? "" : fmt::format("lost {}", running.lost()));
    if (running.lost().empty())
        report(*which, log_level::info, "stopped");
    else
        report(*which, log_level::warn, fmt::format("stopped; lost {}", running.lost()));
    co_return outcome<>();
}

// --- Restart --------------------------------------------------------------------------------

task<std::shared_ptr<runtime::handover>> runtime_lifecycle::make_handover() {
    const std::string& folder = options_.handover_folder;
    auto made = co_await run_blocking(disk_, [&folder] { return open_handover_file(folder); });
    if (made) co_return std::make_shared<runtime::handover>(std::move(*made));
    auto none = std::make_shared<runtime::handover>();
    none->folder = folder;
    none->fault = made.error().message();
    co_return none;
}

/// The instance writes what must last, or what the next one needs. Yields the latter; null if there
/// is none. `remedy` ends the message of an instance that cannot.
task<outcome<std::shared_ptr<runtime::handover>>> runtime_lifecycle::prepare_restart(
    runtime_ref which, runtime::settings next, restart_data data, std::string remedy) {
    const running_state& running = which->running;
    auto to = co_await make_handover();
    const duration drain = drain_of(*which);
    auto hand_over = [next = std::move(next), to, drain](runtime::instance& on) mutable {
        return on.hand_over(std::move(next), std::move(to), drain);
    };
    outcome<> when_gone = loop_runtimes::gone();
    auto handed = co_await running.where()->prepare_on_instance(
        running.number(), drain + file_time_of(*which) + handover_patience, std::move(hand_over),
        std::move(when_gone));
    if (!handed) co_return std::unexpected(fail_stop(*which, std::move(handed.error())).error());
    if (!*handed && data == restart_data::kept) {
        handed->error().message += std::move(remedy);
        co_return std::unexpected(std::move(handed->error()));
    }
    if (!to->is_used) to.reset();
    co_return to;
}

task<outcome<std::shared_ptr<runtime::handover>>> runtime_lifecycle::set_aside(
    runtime_ref which, runtime::settings next) {
    EDDY_ASSERT(which->change_lock.locked() && which->running.has_instance());
    auto data = co_await prepare_restart(
        which, std::move(next), restart_data::kept,
        fmt::format("; mend that and apply the file again, or lose what cannot be kept with: eddy "
                    "stop --force {}",
                    which->name()));
    if (!data) co_return data;
    auto down = co_await take_down_within(which, drain_of(*which));
    if (!down) co_return std::unexpected(std::move(down.error()));
    co_return data;
}

/// On failure it runs as before, where that is possible.
task<outcome<>> runtime_lifecycle::restart(runtime_ref which, runtime::settings next,
                                           restart_data data, std::string reason) {
    EDDY_ASSERT(which->change_lock.locked() && which->running.has_instance());
    auto ready = co_await prepare_restart(
        which, next, data, "; --discard-keys restarts it without what cannot be kept");
    if (!ready) co_return std::unexpected(std::move(ready.error()));
    const restart_clients clients = which->desired.type->over_restart;
    which->journal->write(restart_text(reason, restart_time_of(*which), clients));
    const std::uint64_t before = which->running.number();
    which->is_restarting = true;
    auto done = co_await restart_prepared(which, std::move(next), data, std::move(*ready));
    which->is_restarting = false;
    const running_state& running = which->running;
    if (done)
        registry_.note(*which, event_kind::restarted, std::move(reason));
    else if (running.status() == runtime_status::running && running.number() != before)
        registry_.note(*which, event_kind::restarted, "with its old options");
    co_return done;
}

task<outcome<>> runtime_lifecycle::restart_prepared(
    runtime_ref which, runtime::settings next, restart_data data,
    std::shared_ptr<runtime::handover> handed_over) {
    const running_state& running = which->running;
    const restart_clients clients = which->desired.type->over_restart;
    auto listeners = co_await running.where()->take_listeners(running.number());
    if (!listeners) {
        running.where()->resume(running.number());
        co_return std::unexpected(std::move(listeners.error()));
    }
    if (clients == restart_clients::served && *listeners)
        co_return co_await replace(which, std::move(next), std::move(*listeners));
    co_return co_await restart_with_data(which, std::move(next), data, std::move(handed_over),
                                         std::move(*listeners));
}

/// One instance after the other; clients that connect meanwhile wait.
task<outcome<>> runtime_lifecycle::restart_with_data(
    runtime_ref which, runtime::settings next, restart_data data,
    std::shared_ptr<runtime::handover> handed_over,
    std::shared_ptr<runtime::inherited_listeners> listeners) {
    desired_state& desired = which->desired;
    running_state& running = which->running;
    loop_runtimes& where = *running.where();
    auto down = co_await take_down_within(which, drain_of(*which));
    if (!down) co_return down;
    runtime::settings old_options = std::move(*desired.options);
    desired.options = std::move(next);
    running.keep_handover(data == restart_data::kept ? handed_over : nullptr);
    auto up = co_await bring_up_on(which, where, {nullptr, listeners});
    if (up) co_return outcome<>();
    desired.options = std::move(old_options);
    // Its old files may lack what they lacked before.
    if (handed_over) handed_over->has_new_files = false;
    running.keep_handover(handed_over);
    auto again = co_await bring_up_on(which, where, {nullptr, listeners});
    if (again) co_return up;
    co_return with_context(
        fmt::format("it is stopped, and did not start with its old options either ({}){}",
                    again.error().message,
                    running.handover()
                        ? "; its data is kept for the next start, until the daemon ends"
                        : ""),
        std::move(up.error()));
}

/// The next instance accepts clients at once; those of the one before finish.
task<outcome<>> runtime_lifecycle::replace(
    runtime_ref which, runtime::settings next,
    std::shared_ptr<runtime::inherited_listeners> listeners) {
    running_state& running = which->running;
    loop_runtimes& where = *running.where();
    const replaced_instance before{&where, running.number(), running.host()};
    const duration drain = restart_drain_of(*which);
    const std::uint64_t number = ++last_number_;
    const auto host = make_host_(which->name(), number);
    inheritance from{nullptr, listeners, before.number};
    auto started = co_await where.start(number, *which->desired.type, which->name(), next,
                                        which->journal, host, std::move(from));
    if (!started) {
        if (host) host->end();
        auto back = co_await where.give_back(before.number, std::move(listeners));
        where.resume(before.number);
        if (back) co_return std::unexpected(std::move(started.error()));
        report(*which, log_level::error,
               fmt::format("does not serve on all of its addresses any more: {}",
                           back.error().message));
        co_return std::unexpected(std::move(started.error()));
    }
    which->desired.options = std::move(next);
    running.replace(number, host, loop::current().now(), *started);
    registry_.publish_running(*which, true);
    report(*which, log_level::info, start_text(*started));
    which->replaced.push_back(before);
    ending_.spawn(end_replaced(which, before.number, drain));
    co_await await_replaced(which, max_replaced_instances, surplus_patience);
    co_return outcome<>();
}

/// The end of an instance that was replaced, when its clients have finished.
task<void> runtime_lifecycle::end_replaced(runtime_ref which, std::uint64_t number,
                                           duration drain) {
    const auto found = [&] {
        return std::ranges::find(which->replaced, number, &replaced_instance::number);
    };
    const replaced_instance its = *found();
    auto stopped = co_await its.where->stop(number, drain, file_time_of(*which));
    if (its.host) its.host->end();
    if (!stopped)
        report(*which, log_level::error,
               fmt::format("its instance of before could not be stopped: {}",
                           stopped.error().message));
    else if (!stopped->empty())
        report(*which, log_level::warn, fmt::format("its instance of before lost {}", *stopped));
    which->replaced.erase(found());
    which->replaced_ended.set();
}

/// Until at most `most` of them are left: after `patience` the clients of the others are closed.
task<void> runtime_lifecycle::await_replaced(runtime_ref which, std::size_t most,
                                             duration patience) {
    const time_point until = loop::current().after(patience);
    while (which->replaced.size() > most) {
        which->replaced_ended.reset();
        if (loop::current().now() < until) {
            const auto ended = co_await with_deadline(until, which->replaced_ended.wait());
            if (!ended && ended.error() != errc::timed_out) co_return;
            continue;
        }
        const std::size_t surplus = which->replaced.size() - most;
        const auto end_drain = [](runtime::instance& on) {
            on.end_drain();
            return outcome<>();
        };
        for (std::size_t i = 0; i < surplus; ++i)
            which->replaced[i].where->notify(which->replaced[i].number, end_drain);
        // A wait that is cancelled leaves them to their time.
        if (!co_await which->replaced_ended.wait()) co_return;
    }
}

task<outcome<>> runtime_lifecycle::restart(runtime_ref which, restart_data data) {
    {
        auto held = co_await lock_unless_starting(which, "restart");
        if (!held) co_return std::unexpected(std::move(held.error()));
        if (which->is_removed) co_return vanished(*which);
        if (which->running.has_instance()) {
            const std::string context =
                fmt::format("\"{}\" was not restarted, and goes on as before", which->name());
            auto good = co_await check_restart(which, *which->desired.options, data);
            if (!good) co_return with_context(context, std::move(good.error()));
            auto done = co_await restart(which, *which->desired.options, data, "as asked");
            if (done) co_return outcome<>();
            const running_state& running = which->running;
            const bool goes_on =
                running.has_instance() && running.status() != runtime_status::failed;
            co_return with_context(
                goes_on ? context : fmt::format("\"{}\" was not restarted", which->name()),
                std::move(done.error()));
        }
    }
    co_return co_await start(which);
}

task<outcome<>> runtime_lifecycle::reload(runtime_ref which, restart_data data) {
    auto held = co_await lock_unless_starting(which, "reload");
    if (!held) co_return std::unexpected(std::move(held.error()));
    if (which->is_removed) co_return vanished(*which);
    const running_state& running = which->running;
    if (!running.has_instance()) co_return not_running(*which);
    const std::string context =
        fmt::format("\"{}\" was not reloaded, and goes on as before", which->name());
    // Data in memory must not be lost to a mistake in a file.
    auto good = co_await check_restart(which, *which->desired.options, restart_data::discarded);
    if (!good) co_return with_context(context, std::move(good.error()));
    // Keys that are to go need a restart.
    if (data == restart_data::kept) {
        const auto read_again = [](runtime::instance& on) { return on.reread(); };
        which->is_rereading = true;
        auto reread = co_await running.where()->change_instance(running.number(), reread_patience,
                                                                read_again);
        which->is_rereading = false;
        // Replaced instances write to logs, too.
        for (const replaced_instance& each : which->replaced)
            each.where->notify(each.number, [](runtime::instance& on) { return on.reread(); });
        if (!reread) co_return with_context(context, std::move(reread.error()));
        if (*reread) {
            which->journal->write("files read again");
            registry_.note(*which, event_kind::reloaded, "files read again");
            co_return outcome<>();
        }
    }
    auto restarted =
        co_await restart(which, *which->desired.options, data, "to read its files again");
    if (restarted) {
        registry_.note(*which, event_kind::reloaded, "restarted");
        co_return outcome<>();
    }
    const bool goes_on = running.has_instance() && running.status() != runtime_status::failed;
    co_return with_context(
        goes_on ? context : fmt::format("\"{}\" was not reloaded", which->name()),
        std::move(restarted.error()));
}

task<outcome<>> runtime_lifecycle::reload_script(runtime_ref which) {
    auto held = co_await lock_unless_starting(which, "reload");
    if (!held) co_return std::unexpected(std::move(held.error()));
    if (which->is_removed) co_return vanished(*which);
    const running_state& running = which->running;
    if (!running.has_instance()) co_return not_running(*which);
    which->is_rereading = true;
    auto reloaded = co_await running.where()->change_instance(
        running.number(), reread_patience,
        [](runtime::instance& on) { return on.reload_script(); });
    which->is_rereading = false;
    if (!reloaded && reloaded.error().status == 409) co_return std::unexpected(reloaded.error());
    if (!reloaded)
        co_return with_context(fmt::format("the script of \"{}\" was not reloaded, and goes on as "
                                           "before",
                                           which->name()),
                               std::move(reloaded.error()));
    which->journal->write("script loaded again");
    registry_.note(*which, event_kind::reloaded, "script loaded again");
    co_return outcome<>();
}

edit_plan runtime_lifecycle::plan(const managed_runtime& which,
                                  const runtime::settings& next) const {
    const desired_state& desired = which.desired;
    EDDY_ASSERT(which.running.has_instance() && desired.type != nullptr && desired.options);
    edit_plan made;
    made.restart_options = restart_options(*desired.type, *desired.options, next);
    made.effect = made.restart_options.empty() ? edit_effect::live : edit_effect::restarted;
    if (made.effect == edit_effect::restarted) {
        made.drain = restart_time_of(which);
        made.clients = desired.type->over_restart;
    }
    return made;
}

task<outcome<>> runtime_lifecycle::check_restart(runtime_ref which, runtime::settings next,
                                                 restart_data data) {
    const running_state& running = which->running;
    EDDY_ASSERT(which->change_lock.locked() && running.has_instance());
    auto check = [next = std::move(next), data](runtime::instance& on) mutable {
        return on.check_restart(std::move(next), data == restart_data::discarded);
    };
    EDDY_ASSERT(!which->is_rereading);
    which->is_rereading = true;
    auto good =
        co_await running.where()->on_instance(running.number(), reread_patience, std::move(check));
    which->is_rereading = false;
    co_return good;
}

task<outcome<edit_effect>> runtime_lifecycle::apply(runtime_ref which, runtime::settings next,
                                                    restart_data data) {
    desired_state& desired = which->desired;
    const running_state& running = which->running;
    EDDY_ASSERT(which->change_lock.locked() && running.has_instance());
    const edit_plan planned = plan(*which, next);
    if (planned.effect == edit_effect::live) {
        auto take = [next](runtime::instance& on) { return on.apply(next); };
        auto applied = co_await running.where()->change_instance(running.number(), loop_patience,
                                                                 std::move(take));
        if (!applied) co_return std::unexpected(std::move(applied.error()));
        desired.options = std::move(next);
        which->journal->write("options changed");
        co_return edit_effect::live;
    }
    auto good = co_await check_restart(which, next, data);
    if (!good) co_return std::unexpected(std::move(good.error()));
    auto restarted =
        co_await restart(which, std::move(next), data,
                         fmt::format("for --{}", fmt::join(planned.restart_options, ", --")));
    if (!restarted) co_return std::unexpected(std::move(restarted.error()));
    co_return edit_effect::restarted;
}

// --- Messages and vitals --------------------------------------------------------------------

task<outcome<std::uint64_t>> runtime_lifecycle::send(runtime_ref which, std::string message) {
    const std::string& name = which->name();
    const running_state& running = which->running;
    if (running.status() == runtime_status::starting)
        co_return refuse(409, fmt::format("\"{}\" is still starting; try again when `eddy ls` "
                                          "shows it running",
                                          name));
    if (running.status() != runtime_status::running) co_return not_running(*which);
    auto send = [message = std::move(message)](runtime::instance& to) mutable {
        return to.send(std::move(message));
    };
    auto sent =
        co_await running.where()->on_instance(running.number(), send_patience, std::move(send));
    if (!sent)
        co_return with_context(fmt::format("\"{}\" did not send it", name),
                               std::move(sent.error()));
    co_return sent;
}

task<void> runtime_lifecycle::refresh() {
    scope asking(co_await current_source());
    for (const auto& each : loops_) asking.spawn(refresh_from(*each));
    co_await asking.join();
}

task<void> runtime_lifecycle::ask_briefs(loop_runtimes& where, outcome<brief_list>& into) {
    into = co_await where.briefs();
}

task<void> runtime_lifecycle::refresh_briefly() {
    std::vector<outcome<brief_list>> counted(loops_.size());
    scope asking(co_await current_source());
    for (const auto& each : loops_) {
        EDDY_ASSERT(each->index() < counted.size());
        asking.spawn(ask_briefs(*each, counted[each->index()]));
    }
    co_await asking.join();
    const auto find = [&counted](const loop_runtimes& where, std::uint64_t number) {
        auto& found = counted[where.index()];
        return found ? found->find(number) : nullptr;
    };
    // One walk for all loops: thousands of runtimes are not in the processor's caches.
    registry_.for_each([&](managed_runtime& each) {
        for (replaced_instance& before : each.replaced)
            if (const runtime_brief* const its = find(*before.where, before.number))
                before.connections = its->clients.connections;
        const running_state& running = each.running;
        if (!running.has_instance()) return;
        if (runtime_brief* const its = find(*running.where(), running.number()))
            refresh_one(each, std::move(*its));
    });
}

task<void> runtime_lifecycle::refresh(runtime_ref which) {
    const running_state& running = which->running;
    const std::uint64_t number = running.number();
    const std::vector<replaced_instance> before(which->replaced.begin(), which->replaced.end());
    if (running.has_instance()) {
        auto counted = co_await running.where()->vitals(number);
        if (counted && running.has_instance() && running.number() == number)
            refresh_one(*which, std::move(*counted));
    }
    for (const replaced_instance& each : before) {
        const auto counted = co_await each.where->vitals(each.number);
        const auto its =
            std::ranges::find(which->replaced, each.number, &replaced_instance::number);
        if (counted && its != which->replaced.end())
            its->connections = counted->counted.connections_now;
    }
}

template <class Vitals>
void runtime_lifecycle::refresh_one(managed_runtime& which, Vitals fresh) {
    running_state& running = which.running;
    const bool was_degraded = is_degraded(running);
    running.refresh(std::move(fresh));
    if (running.status() != runtime_status::running || is_degraded(running) == was_degraded) return;
    if (was_degraded)
        registry_.note(which, event_kind::recovered);
    else
        registry_.note(which, event_kind::degraded, running.vitals().fault);
}

task<void> runtime_lifecycle::watch_faults() {
    while (co_await registry_.events()->followed()) {
        co_await refresh_briefly();
        if (!co_await loop::current().sleep_for(fault_pause)) co_return;
    }
}

task<void> runtime_lifecycle::refresh_from(loop_runtimes& where) {
    auto counted = co_await where.vitals();
    if (!counted) co_return;
    for (const runtime_ref& each : registry_.all()) {
        if (each->running.where() != &where) continue;
        const auto found = counted->find(each->running.number());
        if (found != counted->end()) refresh_one(*each, std::move(found->second));
        for (replaced_instance& before : each->replaced) {
            const auto its = counted->find(before.number);
            if (its == counted->end()) continue;
            before.connections = its->second.counted.connections_now;
        }
    }
}

// --- Shutdown -------------------------------------------------------------------------------

task<outcome<>> runtime_lifecycle::prepare_shutdown(duration drain) {
    std::vector<std::string> refusals;
    scope preparing(co_await current_source());
    for (const runtime_ref& each : registry_.all())
        preparing.spawn(prepare_for_shutdown(each, drain, refusals));
    co_await preparing.join();
    if (refusals.empty()) co_return outcome<>();
    for (const runtime_ref& each : registry_.all())
        if (each->running.has_instance()) each->running.where()->resume(each->running.number());
    co_return refuse(503, fmt::format("{}", fmt::join(refusals, "; ")));
}

task<void> runtime_lifecycle::prepare_for_shutdown(runtime_ref which, duration drain,
                                                   std::vector<std::string>& refusals) {
    const auto refuse_for_handover = [&] {
        if (which->running.handover())
            refusals.push_back(fmt::format("\"{}\": {}", which->name(), handover_text));
    };
    // A runtime that is starting has nothing to save but the data that it takes over.
    if (which->running.status() == runtime_status::starting) {
        refuse_for_handover();
        co_return;
    }
    const auto held = co_await which->change_lock.lock();
    if (!held) co_return;
    if (which->has_unsaved_end()) static_cast<void>(co_await save_end_now(which));
    refuse_for_handover();
    auto ready = co_await prepare_stop(which, drain);
    // A loop that does not answer is shut_down()'s affair.
    if (!ready && which->running.status() != runtime_status::failed)
        refusals.push_back(fmt::format("\"{}\": {}", which->name(), ready.error().message));
}

task<bool> runtime_lifecycle::shut_down(duration drain) {
    is_shutting_down_ = true;
    bool complete = true;
    const time_point begun = loop::current().now();
    event users_end;
    scope stopping(co_await current_source());
    stopping.spawn(stop_users(drain, complete, users_end));
    static_cast<void>(
        co_await with_timeout(std::min(drain / 2, longest_users_time), users_end.wait()));
    const duration left = drain - std::min<duration>(drain, loop::current().now() - begun);
    for (const runtime_ref& each : registry_.all())
        if (!uses_others(*each)) stopping.spawn(stop_for_shutdown(each, left, complete));
    co_await stopping.join();
    co_await ending_.join();
    co_await registry_.events()->close();
    co_return complete;
}

/// Proxies and clients, before what they use: no request of theirs is refused there then.
task<void> runtime_lifecycle::stop_users(duration drain, bool& complete, event& end) {
    scope stopping(co_await current_source());
    for (const runtime_ref& each : registry_.all())
        if (uses_others(*each)) stopping.spawn(stop_for_shutdown(each, drain, complete));
    co_await stopping.join();
    end.set();
}

task<void> runtime_lifecycle::stop_for_shutdown(runtime_ref which, duration drain, bool& complete) {
    static_cast<void>(co_await give_up_start(which));
    const auto held = co_await which->change_lock.lock();
    if (!held) {
        complete = false;
        co_return;
    }
    which->start_given_up.reset();
    auto down = co_await take_down_within(which, drain);
    if (!down) complete = false;
    if (which->running.handover())
        report(*which, log_level::warn, fmt::format("lost {}", handover_loss));
    which->end_followers();
}

}  // namespace eddy::daemon
