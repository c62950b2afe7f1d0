// Runtimes of one data loop. The control loop knows each by a number and posts requests; the
// instances themselves are made, used and destroyed on their loop's thread alone.
#pragma once

#include <eddy/base/assert.hpp>
#include <eddy/io/endpoint.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/loop_group.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>

#include "base/problem.hpp"
#include "daemon/journal/runtime_journal.hpp"
#include "daemon/runtimes/remote.hpp"
#include "runtime/host/host.hpp"
#include "runtime/instance.hpp"
#include "runtime/metrics.hpp"
#include "runtime/options/settings.hpp"
#include "runtime/type.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

namespace eddy::daemon {

/// Time limit of a loop's answer to what needs no waiting on its side.
inline constexpr duration loop_patience = std::chrono::seconds(2);
/// Time limit of counting, which takes microseconds; a slower loop is shown with old numbers.
inline constexpr duration vitals_patience = std::chrono::milliseconds(500);
/// Time limit of opening a runtime's listeners.
inline constexpr duration start_patience = std::chrono::seconds(30);
/// Time limit for peers to accept what `eddy send` sends them.
inline constexpr duration send_patience = std::chrono::seconds(30);

/// Time limit of reading a runtime's files again, such as a script that connects to a backend.
inline constexpr duration reread_patience = std::chrono::seconds(60);

/// Time limit of passing the data of an instance to the next one.
inline constexpr duration handover_patience = std::chrono::hours(1);

/// State of a runtime as seen from outside.
struct runtime_vitals {
    runtime::metrics counted;
    endpoint local;
    std::string fault = {};   ///< see runtime::instance::fault()
    std::string detail = {};  ///< see runtime::instance::detail()
};

/// The part of it that lists of runtimes show, which costs little to read.
struct runtime_brief {
    std::uint64_t number = 0;  ///< of the instance
    runtime::client_counts clients;
    endpoint local;
    std::string fault = {};
    std::string detail = {};
};

/// The briefs of a loop's instances. The numbers are apart, since a search among thousands reads
/// these alone.
struct brief_list {
    std::vector<std::uint64_t> numbers;  ///< in their order
    std::vector<runtime_brief> all;      ///< in the same order

    /// Null for none.
    runtime_brief* find(std::uint64_t number) noexcept {
        const auto at = std::ranges::lower_bound(numbers, number);
        return at != numbers.end() && *at == number
                   ? &all[static_cast<std::size_t>(at - numbers.begin())]
                   : nullptr;
    }
};

namespace detail {

template <class T>
struct awaited {
    using type = T;
};
template <class T>
struct awaited<task<T>> {
    using type = T;
};

}  // namespace detail

/// Outcome of a call on an instance, whether that is a task or not.
template <class F>
using instance_outcome =
    typename detail::awaited<std::invoke_result_t<F&, runtime::instance&>>::type;

/// Inheritance from the instance before. `listeners` are those of an instance on the same loop,
/// and are destroyed there.
struct inheritance {
    std::shared_ptr<const runtime::handover> data = nullptr;
    std::shared_ptr<runtime::inherited_listeners> listeners = nullptr;
    std::uint64_t number = 0;  ///< of that instance
    /// Listeners of an instance of another process, which still serves: the new one is held, see
    /// runtime::creation::is_held. In place of `listeners`.
    std::shared_ptr<runtime::passed_listeners> passed = nullptr;
    bool is_held = false;
};

using vitals_by_number = std::unordered_map<std::uint64_t, runtime_vitals>;

/// Instances of one loop of the group. All members are called on the control loop; it must outlive
/// the threads of the group.
class loop_runtimes {
public:
    loop_runtimes(loop_group& group, std::size_t index) : group_(group), index_(index) {
        EDDY_ASSERT(index < group.size());
    }

    std::size_t index() const noexcept { return index_; }
    /// Number of runtimes that were given to this loop and not taken back.
    std::size_t load() const noexcept { return load_; }

    /// Makes and starts an instance under a new number. On failure nothing is left, and `from` has
    /// its listeners again. Without a host it has one without a daemon. Yields the address that it
    /// serves on.
    task<outcome<endpoint>> start(std::uint64_t number, const runtime::type& type, std::string name,
                                  runtime::settings options,
                                  std::shared_ptr<runtime_journal> events,
                                  std::shared_ptr<runtime::host> host = nullptr,
                                  inheritance from = {});

    /// Ends the start under this number soon, without success; no effect when it has ended.
    task<void> give_up_start(std::uint64_t number);

    /// The refusal when there is no instance under a number.
    static std::unexpected<problem> gone() { return refuse(409, "it is not running"); }

    /// Calls `what(instance&)` on the loop and awaits its outcome: a task's or a plain one.
    /// Arguments of a task are moved into it. The instance lives until the call has ended. Fails
    /// with gone(), and as run_on() does.
    template <class F>
    task<instance_outcome<F>> on_instance(std::uint64_t number, duration patience, F what) {
        instance_outcome<F> when_gone = gone();
        co_return flatten(co_await run_on(
            group_, index_,
            call_there(number, std::move(what), stopping::counts, std::move(when_gone)), patience));
    }

    /// The same for what changes the instance, such as reread() or reload_script(): one whose stop
    /// has begun is gone, also where nothing waits for that stop any more.
    template <class F>
    task<instance_outcome<F>> change_instance(std::uint64_t number, duration patience, F what) {
        instance_outcome<F> when_gone = gone();
        co_return flatten(co_await run_on(
            group_, index_,
            call_there(number, std::move(what), stopping::is_gone, std::move(when_gone)),
            patience));
    }

    /// The same for what precedes a stop: instance::prepare_stop() or hand_over(). The outer error
    /// is one of the loop, which did not answer; the inner one is the instance's reason. After
    /// either the instance serves on as before. Yields `when_gone` if its stop has begun.
    template <class F>
    task<outcome<instance_outcome<F>>> prepare_on_instance(std::uint64_t number, duration patience,
                                                           F what, instance_outcome<F> when_gone) {
        auto ready = co_await run_on(
            group_, index_,
            call_there(number, std::move(what), stopping::is_gone, std::move(when_gone)), patience);
        // The preparation may still run there.
        if (!ready) resume(number);
        co_return ready;
    }
    /// No stop() follows a prepare_on_instance().
    void resume(std::uint64_t number);

    /// instance::hand_over_listeners(), for a start on this loop. Null where there are none.
    task<outcome<std::shared_ptr<runtime::inherited_listeners>>> take_listeners(
        std::uint64_t number);
    /// instance::take_back(): the start has failed.
    task<outcome<>> give_back(std::uint64_t number,
                              std::shared_ptr<runtime::inherited_listeners> listeners);
    /// Closes the sockets of listeners that another process has, too. Their notes stay: at these
    /// addresses it serves.
    task<outcome<>> close_sockets(std::shared_ptr<runtime::inherited_listeners> listeners);
    /// Closes listeners that no instance takes, of this process or another one.
    task<outcome<>> end_listeners(std::shared_ptr<runtime::inherited_listeners> listeners);
    /// Calls `what(instance&)` on the loop, and awaits nothing.
    template <class F>
    void notify(std::uint64_t number, F what) {
        instance_outcome<F> when_gone = gone();
        static_cast<void>(group_.post(
            index_, ignore<instance_outcome<F>>(call_there(
                        number, std::move(what), stopping::counts, std::move(when_gone)))));
    }

    /// Stops and destroys an instance; connections get `drain` to finish, and its files `file_time`
    /// to be written. Yields what was lost, see instance::lost(). When the loop does not
    /// answer the instance stays there, and stop() may be tried again.
    task<outcome<std::string>> stop(std::uint64_t number, duration drain, duration file_time = {});

    /// Counters of all instances of the loop, by number.
    task<outcome<vitals_by_number>> vitals();
    /// Vitals of one instance.
    task<outcome<runtime_vitals>> vitals(std::uint64_t number);
    /// The same in brief.
    task<outcome<brief_list>> briefs();

private:
    void reduce_load() noexcept;

    struct resident {
        std::shared_ptr<runtime_journal> events;
        std::unique_ptr<runtime::instance> instance;
        bool is_stopping = false;
        event stopped;  // set when its stop has ended
    };

    struct start_ticket;

    template <class T>
    static task<void> ignore(task<T> work) {
        static_cast<void>(co_await std::move(work));
    }

    /// Treatment of an instance whose stop has begun: it still counts, or it is gone.
    enum class stopping : std::uint8_t { counts, is_gone };

    // These run on the loop.

    template <class F>
    task<instance_outcome<F>> call_there(std::uint64_t number, F what, stopping rule,
                                         instance_outcome<F> when_gone) {
        const auto found = instances_.find(number);
        if (found == instances_.end()) co_return when_gone;
        // Held, since a stop may come that does not wait for this.
        const std::shared_ptr<resident> called = found->second;
        if (called->is_stopping && rule == stopping::is_gone) co_return when_gone;
        if constexpr (std::is_same_v<std::invoke_result_t<F&, runtime::instance&>,
                                     instance_outcome<F>>)
            co_return what(*called->instance);
        else
            co_return co_await what(*called->instance);
    }

    task<outcome<endpoint>> start_there(std::uint64_t number, const runtime::type& type,
                                        std::string name, runtime::settings options,
                                        std::shared_ptr<runtime_journal> events,
                                        std::shared_ptr<runtime::host> host, inheritance from,
                                        std::shared_ptr<start_ticket> ticket);
    static task<outcome<std::shared_ptr<runtime::inherited_listeners>>> take_listeners_there(
        runtime::instance& from, std::shared_ptr<start_ticket> ticket);
    task<std::string> stop_there(std::uint64_t number, duration drain);

    loop_group& group_;
    std::size_t index_;
    std::size_t load_ = 0;
    // The loop's thread only.
    std::unordered_map<std::uint64_t, std::shared_ptr<resident>> instances_;
    std::unordered_map<std::uint64_t, std::shared_ptr<resident>> starting_;
};

}  // namespace eddy::daemon
