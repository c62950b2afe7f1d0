// Steps of an upgrade for one runtime: to an instance of another process, and back.
#include <eddy/base/assert.hpp>
#include <eddy/base/log.hpp>
#include <eddy/io/loop.hpp>

#include "daemon/runtimes/runtime_lifecycle.hpp"
#include "runtime/serving/inherited_listeners.hpp"
#include "runtime/serving/passed_listeners.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

namespace eddy::daemon {
namespace {

task<outcome<>> end_accepting(runtime::instance& on) {
    co_await on.end_accepting();
    co_return outcome<>();
}

task<outcome<std::vector<runtime::passed_client>>> hand_over_clients(runtime::instance& on) {
    co_return co_await on.hand_over_clients();
}

/// Time limit of moving the clients of a runtime, many of which may be busy.
constexpr duration moving_patience = std::chrono::seconds(10);
/// Time of clients that cannot move, while others wait for the keys.
constexpr duration staying_drain = std::chrono::milliseconds(500);

}  // namespace

task<outcome<departure>> runtime_lifecycle::share(runtime_ref which) {
    EDDY_ASSERT(which->change_lock.locked());
    const running_state& running = which->running;
    departure made;
    made.where = running.where();
    if (made.where == nullptr) co_return made;
    auto shared = co_await made.where->on_instance(
        running.number(), loop_patience,
        [](runtime::instance& on) { return on.share_listeners(); });
    if (!shared) {
        unshare(*which);
        co_return with_context(fmt::format("\"{}\"", which->name()), std::move(shared.error()));
    }
    made.sockets = std::move(*shared);
    co_return made;
}

void runtime_lifecycle::unshare(const managed_runtime& which) {
    const running_state& running = which.running;
    if (running.where() == nullptr) return;
    running.where()->notify(running.number(), [](runtime::instance& on) {
        on.unshare_listeners();
        return outcome<>();
    });
}

task<outcome<departure>> runtime_lifecycle::depart(runtime_ref which) {
    auto made = co_await share(which);
    if (!made || made->where == nullptr) co_return made;
    loop_runtimes& where = *made->where;
    const std::uint64_t number = which->running.number();
    const std::string context = fmt::format("\"{}\"", which->name());
    auto ready = co_await prepare_restart(
        which, *which->desired.options, restart_data::kept,
        fmt::format("; mend that and upgrade again, or lose what cannot be kept with: eddy stop "
                    "--force {}",
                    which->name()));
    if (!ready) {
        unshare(*which);
        co_return with_context(context, std::move(ready.error()));
    }
    made->data = std::move(*ready);
    auto ended = co_await where.on_instance(number, loop_patience, end_accepting);
    outcome<std::shared_ptr<runtime::inherited_listeners>> taken;
    if (ended) taken = co_await where.take_listeners(number);
    if (!ended || !taken) {
        where.resume(number);
        unshare(*which);
        co_return with_context(context, std::move(ended ? taken.error() : ended.error()));
    }
    made->listeners = std::move(*taken);
    EDDY_ASSERT(which->running.number() == number);
    // The others end with the instance.
    auto clients = co_await where.on_instance(number, moving_patience, hand_over_clients);
    if (clients) made->clients = std::move(*clients);
    // One that takes no reply would hold up the moved ones for the whole drain.
    duration drain = drain_of(*which);
    if (!made->clients.empty()) drain = std::min(drain, staying_drain);
    auto down = co_await take_down_within(which, drain);
    if (!down) co_return std::unexpected(std::move(down.error()));
    co_return made;
}

task<void> runtime_lifecycle::abandon(departure& from) {
    from.sockets.reset();
    if (from.where == nullptr || from.listeners == nullptr) co_return;
    static_cast<void>(co_await from.where->end_listeners(std::exchange(from.listeners, nullptr)));
}

task<outcome<>> runtime_lifecycle::come_back(runtime_ref which, departure from) {
    EDDY_ASSERT(which->change_lock.locked());
    if (from.where == nullptr || which->running.has_instance()) co_return outcome<>();
    // Its files may lack what they lacked before.
    if (from.data) from.data->has_new_files = false;
    which->running.keep_handover(std::move(from.data));
    // One that listens nowhere may need others for its work, which come back after it.
    const bool is_held = which->desired.type->over_restart == runtime::type::restart_clients::none;
    auto up = co_await bring_up_on(which, *from.where,
                                   {.listeners = std::move(from.listeners), .is_held = is_held});
    if (up && is_held) up = co_await open(which);
    if (!up) co_return up;
    co_return co_await take_clients(which, std::move(from.clients));
}

task<outcome<>> runtime_lifecycle::take_clients(runtime_ref which,
                                                std::vector<runtime::passed_client> clients) {
    const running_state& running = which->running;
    if (clients.empty() || !running.has_instance()) co_return outcome<>();
    // The call may be copied.
    auto shared = std::make_shared<std::vector<runtime::passed_client>>(std::move(clients));
    co_return co_await running.where()->on_instance(running.number(), loop_patience,
                                                    [shared](runtime::instance& on) {
                                                        on.take_clients(std::move(*shared));
                                                        return outcome<>();
                                                    });
}

task<std::shared_ptr<runtime::inherited_listeners>> runtime_lifecycle::leave(
    runtime_ref which, client_sender pass_on) {
    EDDY_ASSERT(which->change_lock.locked() && pass_on);
    running_state& running = which->running;
    if (!running.has_instance()) co_return nullptr;
    loop_runtimes& where = *running.where();
    const std::uint64_t number = running.number();
    static_cast<void>(co_await where.on_instance(number, loop_patience, end_accepting));
    auto taken = co_await where.take_listeners(number);
    if (!taken)
        log_error(which->name(), fmt::format("still accepts clients beside the new daemon: {}",
                                             taken.error().message));
    else
        static_cast<void>(co_await where.close_sockets(*taken));
    // Clients that have left wait for the other process: they go before the others.
    for (bool is_last = false; !is_last;) {
        auto clients = co_await where.on_instance(number, moving_patience, hand_over_clients);
        if (!clients) clients.emplace();
        is_last = clients->empty();
        co_await pass_on(which->name(), std::move(*clients));
    }
    running.begin_stop();
    auto stopped = co_await where.stop(number, restart_drain_of(*which), file_time_of(*which));
    if (running.host()) running.host()->end();
    if (stopped)
        running.finish_stop(std::move(*stopped));
    else
        running.fail_stop(std::move(stopped.error().message));
    co_return taken ? std::move(*taken) : nullptr;
}

task<outcome<>> runtime_lifecycle::arrive(runtime_ref which, departure from) {
    const auto held = co_await which->change_lock.lock();
    if (!held) co_return interrupted();
    if (!which->desired.type || !which->desired.options)
        co_return with_context(fmt::format("\"{}\" cannot be started", which->name()),
                               {409, which->running.reason()});
    EDDY_ASSERT(!which->running.has_instance());
    if (from.data) which->running.keep_handover(std::move(from.data));
    auto up = co_await bring_up_on(which, least_loaded(),
                                   {.passed = std::move(from.sockets), .is_held = true});
    if (up) co_return co_await take_clients(which, std::move(from.clients));
    co_return with_context(fmt::format("\"{}\" could not be started", which->name()),
                           std::move(up.error()));
}

task<outcome<>> runtime_lifecycle::arrive_ended(runtime_ref which, instance_end how) {
    const auto held = co_await which->change_lock.lock();
    if (!held) co_return interrupted();
    EDDY_ASSERT(!which->running.has_instance());
    which->running.finish_ending(how.how, how.is_failure);
    how.number = which->running.number();
    which->end = std::move(how);
    unsaved_ends_.set();
    // Without a pause.
    saved_.set();
    co_return outcome<>();
}

task<outcome<>> runtime_lifecycle::open(runtime_ref which) {
    const running_state& running = which->running;
    if (!running.has_instance()) co_return outcome<>();
    co_return co_await running.where()->on_instance(running.number(), loop_patience,
                                                    [](runtime::instance& on) {
                                                        on.open();
                                                        return outcome<>();
                                                    });
}

}  // namespace eddy::daemon
