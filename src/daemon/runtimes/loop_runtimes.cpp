// Runtimes of one data loop: start, requests and stop of instances.
#include "daemon/runtimes/loop_runtimes.hpp"

#include <eddy/base/assert.hpp>

#include "runtime/scripting/script_limits.hpp"
#include "runtime/serving/inherited_listeners.hpp"
#include "runtime/serving/passed_listeners.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>

namespace eddy::daemon {

// A script that is overloaded at a stop is not taken for a loop that does not answer.
static_assert(runtime::script_least_farewell < loop_patience);

namespace {

runtime_vitals vitals_of(const runtime::instance& its) {
    return {its.count(), its.local(), its.fault(), its.detail()};
}

}  // namespace

/// Arbiter of a start that takes too long: the side that changes `pending` first decides.
struct loop_runtimes::start_ticket {
    enum state { pending, served, given_up };
    std::atomic<state> now{pending};
    /// Listeners for take_listeners(), once `served`.
    std::shared_ptr<runtime::inherited_listeners> listeners;

    bool change_to(state next) {
        state expected = pending;
        return now.compare_exchange_strong(expected, next);
    }
};

task<outcome<endpoint>> loop_runtimes::start(std::uint64_t number, const runtime::type& type,
                                             std::string name, runtime::settings options,
                                             std::shared_ptr<runtime_journal> events,
                                             std::shared_ptr<runtime::host> host,
                                             inheritance from) {
    EDDY_ASSERT(number > 0);
    ++load_;
    auto ticket = std::make_shared<start_ticket>();
    const duration patience = start_patience +
                              (type.file_time ? type.file_time(options) : duration{}) +
                              (from.data ? handover_patience : duration{});
    auto started = flatten(
        co_await run_on(group_, index_,
                        start_there(number, type, std::move(name), std::move(options),
                                    std::move(events), std::move(host), std::move(from), ticket),
                        patience));
    if (started) co_return started;
    // When it came up in the very moment in which the patience ended, it is taken down again.
    if (ticket->change_to(start_ticket::given_up))
        reduce_load();
    else
        static_cast<void>(co_await stop(number, duration::zero()));
    co_return started;
}

task<outcome<endpoint>> loop_runtimes::start_there(std::uint64_t number, const runtime::type& type,
                                                   std::string name, runtime::settings options,
                                                   std::shared_ptr<runtime_journal> events,
                                                   std::shared_ptr<runtime::host> host,
                                                   inheritance from,
                                                   std::shared_ptr<start_ticket> ticket) {
    if (from.passed) {
        auto adopted = runtime::adopt(std::move(*from.passed));
        if (!adopted)
            co_return refuse(500, fmt::format("cannot use a socket of the daemon before: {}",
                                              adopted.error().message()));
        from.listeners = std::move(*adopted);
    } else if (from.listeners) {
        // They may have been another process's, too, until its upgrade failed.
        for (auto& each : from.listeners->all) runtime::take_possession(each.from.socket);
    }
    auto made = std::make_shared<resident>();
    made->events = std::move(events);
    if (!host) host = std::make_shared<runtime::host>();
    made->instance =
        type.make({std::move(name), std::move(options), made->events.get(), std::move(host),
                   std::move(from.data), from.listeners, from.is_held});
    EDDY_ASSERT(made->instance != nullptr);
    EDDY_ASSERT(!instances_.contains(number));
    const bool is_first_start = starting_.emplace(number, made).second;
    EDDY_ASSERT(is_first_start);
    outcome<> started;
    {
        struct start_end {
            ~start_end() { of.erase(number); }
            decltype(starting_)& of;
            std::uint64_t number;
        } const end{starting_, number};
        started = co_await made->instance->start();
    }
    if (!started) co_return std::unexpected(std::move(started.error()));
    if (!ticket->change_to(start_ticket::served)) {
        // The start was given up: the instance before serves on.
        if (from.listeners != nullptr) {
            const auto again = co_await made->instance->hand_over_listeners();
            const auto before = instances_.find(from.number);
            if (again && before != instances_.end())
                static_cast<void>(before->second->instance->take_back(*again));
        }
        co_await made->instance->stop(duration::zero());
        co_return refuse(503, "it started too late");
    }
    endpoint local = made->instance->local();
    const bool is_new = instances_.emplace(number, std::move(made)).second;
    EDDY_ASSERT(is_new);
    co_return local;
}

/// An instance is no longer there.
void loop_runtimes::reduce_load() noexcept {
    EDDY_ASSERT(load_ > 0);
    --load_;
}

task<void> loop_runtimes::give_up_start(std::uint64_t number) {
    const auto give_up = [this, number] {
        const auto found = starting_.find(number);
        if (found != starting_.end()) found->second->instance->give_up_start();
        return found != starting_.end();
    };
    static_cast<void>(co_await run_on(group_, index_, give_up, loop_patience));
}

void loop_runtimes::resume(std::uint64_t number) {
    const auto go_on = [](runtime::instance& on) {
        on.resume();
        return outcome<>();
    };
    // Without the loop there is no instance.
    const outcome<> when_gone;
    static_cast<void>(group_.post(
        index_, ignore<outcome<>>(call_there(number, go_on, stopping::is_gone, when_gone))));
}

task<outcome<std::shared_ptr<runtime::inherited_listeners>>> loop_runtimes::take_listeners(
    std::uint64_t number) {
    auto ticket = std::make_shared<start_ticket>();
    auto take = [ticket](runtime::instance& from) { return take_listeners_there(from, ticket); };
    auto taken = co_await on_instance(number, loop_patience, std::move(take));
    // One that comes too late puts them back.
    if (!taken && !ticket->change_to(start_ticket::given_up))
        static_cast<void>(co_await give_back(number, ticket->listeners));
    co_return taken;
}

task<outcome<std::shared_ptr<runtime::inherited_listeners>>> loop_runtimes::take_listeners_there(
    runtime::instance& from, std::shared_ptr<start_ticket> ticket) {
    // A stop may be on its way here by now.
    if (ticket->now == start_ticket::given_up) co_return refuse(503, "its loop was busy");
    auto taken = co_await from.hand_over_listeners();
    if (!taken) co_return taken;
    if (ticket->now == start_ticket::given_up) {
        static_cast<void>(from.take_back(*taken));
        co_return refuse(503, "its loop was busy");
    }
    // The control loop may hold the last reference: they are destroyed on this loop all the same.
    auto* const owned = new std::shared_ptr(std::move(taken));
    const auto destroy = [owned, home = executor::current()](void*) {
        if (home.is_current())
            delete owned;
        else
            // A loop that has ended has closed what listened on it.
            static_cast<void>(home.post([owned] { delete owned; }));
    };
    std::shared_ptr<runtime::inherited_listeners> kept(std::shared_ptr<void>(nullptr, destroy),
                                                       owned->get());
    ticket->listeners = kept;
    if (!ticket->change_to(start_ticket::served)) static_cast<void>(from.take_back(*kept));
    co_return kept;
}

task<outcome<>> loop_runtimes::give_back(std::uint64_t number,
                                         std::shared_ptr<runtime::inherited_listeners> listeners) {
    auto take_back = [listeners = std::move(listeners)](runtime::instance& to) {
        return to.take_back(*listeners);
    };
    co_return co_await on_instance(number, loop_patience, std::move(take_back));
}

task<outcome<>> loop_runtimes::close_sockets(
    std::shared_ptr<runtime::inherited_listeners> listeners) {
    const auto close = [listeners = std::move(listeners)] {
        if (listeners == nullptr) return outcome<>();
        for (auto& each : listeners->all) each.from.socket.close();
        if (listeners->bound) listeners->bound->from.socket.close();
        listeners->close_senders();
        return outcome<>();
    };
    co_return flatten(co_await run_on(group_, index_, close, loop_patience));
}

task<outcome<>> loop_runtimes::end_listeners(
    std::shared_ptr<runtime::inherited_listeners> listeners) {
    const auto end = [listeners = std::move(listeners)] {
        for (auto& each : listeners->all) runtime::take_possession(each.from.socket);
        listeners->close();
        return outcome<>();
    };
    co_return flatten(co_await run_on(group_, index_, end, loop_patience));
}

task<outcome<std::string>> loop_runtimes::stop(std::uint64_t number, duration drain,
                                               duration file_time) {
    auto stopped = co_await run_on(group_, index_, stop_there(number, drain),
                                   drain + file_time + loop_patience);
    if (stopped) reduce_load();
    co_return stopped;
}

task<std::string> loop_runtimes::stop_there(std::uint64_t number, duration drain) {
    const auto found = instances_.find(number);
    if (found == instances_.end()) co_return std::string();
    const auto leaving = found->second;
    if (std::exchange(leaving->is_stopping, true)) {
        // A stop whose caller no longer waits is under way: a second one awaits it.
        static_cast<void>(co_await leaving->stopped.wait());
        co_return leaving->instance->lost();
    }
    {
        struct stop_end {
            ~stop_end() {
                of.erase(number);
                its.stopped.set();
            }
            decltype(instances_)& of;
            std::uint64_t number;
            resident& its;
        } const end{instances_, number, *leaving};
        co_await leaving->instance->stop(drain);
    }
    co_return leaving->instance->lost();
}

task<outcome<runtime_vitals>> loop_runtimes::vitals(std::uint64_t number) {
    co_return co_await on_instance(number, vitals_patience, [](const runtime::instance& its) {
        return outcome<runtime_vitals>(vitals_of(its));
    });
}

task<outcome<vitals_by_number>> loop_runtimes::vitals() {
    const auto count = [this] {
        vitals_by_number all;
        all.reserve(instances_.size());
        for (const auto& [number, resident] : instances_)
            all.emplace(number, vitals_of(*resident->instance));
        return all;
    };
    co_return co_await run_on(group_, index_, count, vitals_patience);
}

task<outcome<brief_list>> loop_runtimes::briefs() {
    const auto count = [this] {
        // Briefs are large: their order comes before them.
        std::vector<std::pair<std::uint64_t, const runtime::instance*>> order;
        order.reserve(instances_.size());
        for (const auto& [number, resident] : instances_)
            order.emplace_back(number, resident->instance.get());
        std::ranges::sort(order, {}, &decltype(order)::value_type::first);
        brief_list made;
        made.numbers.reserve(order.size());
        made.all.reserve(order.size());
        for (const auto& [number, its] : order) {
            made.numbers.push_back(number);
            made.all.push_back(
                {number, its->count_clients(), its->local(), its->fault(), its->detail()});
        }
        return made;
    };
    co_return co_await run_on(group_, index_, count, vitals_patience);
}

}  // namespace eddy::daemon
