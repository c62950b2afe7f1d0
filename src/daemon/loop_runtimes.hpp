// Runtimes of one data loop. The control loop knows each by a number and posts requests; the
// instances themselves are made, used and destroyed on their loop's thread alone.
#pragma once

#include <eddy/base/assert.hpp>
#include <eddy/io/endpoint.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/loop_group.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>

#include "daemon/problem.hpp"
#include "daemon/runtime_journal.hpp"
#include "runtime/host.hpp"
#include "runtime/instance.hpp"
#include "runtime/metrics.hpp"
#include "runtime/settings.hpp"
#include "runtime/type.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

namespace eddy::daemon {

/// How long a loop may take to answer what needs no waiting on its side.
inline constexpr duration loop_patience = std::chrono::seconds(2);
/// Counting is a question of microseconds; a loop that takes longer is shown with old numbers.
inline constexpr duration vitals_patience = std::chrono::milliseconds(500);
/// How long opening what a runtime serves on may take.
inline constexpr duration start_patience = std::chrono::seconds(30);
/// How long peers may take to accept what `eddy send` sends them.
inline constexpr duration send_patience = std::chrono::seconds(30);

/// How long the data of an instance may take on its way to the next one.
inline constexpr duration handover_patience = std::chrono::hours(1);

/// State of a runtime as seen from outside.
struct runtime_vitals {
    runtime::metrics counted;
    endpoint local;
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
    /// How many runtimes were given to this loop and not taken back.
    std::size_t load() const noexcept { return load_; }

    /// Makes and starts an instance under a new number. On failure nothing is left. Yields the
    /// address that it serves on.
    task<outcome<endpoint>> start(std::uint64_t number, const runtime::type& type, std::string name,
                                  runtime::settings options,
                                  std::shared_ptr<runtime_journal> events,
                                  std::shared_ptr<runtime::host> host =
                                      std::make_shared<runtime::host>(),
                                  std::shared_ptr<const runtime::handover> inherited = nullptr);

    /// Has the start under this number end soon, without success; nothing when it has ended.
    task<void> give_up_start(std::uint64_t number);

    /// instance::prepare_stop(). The outer error is one of the loop, which did not answer; the
    /// inner one is the instance's reason. After either the instance serves on as before.
    task<outcome<outcome<>>> prepare_stop(std::uint64_t number, duration patience,
                                          duration file_time = {});
    /// The same for instance::hand_over().
    task<outcome<outcome<>>> hand_over(std::uint64_t number, runtime::settings next,
                                       std::shared_ptr<runtime::handover> to, duration patience,
                                       duration file_time);
    /// No stop() follows a prepare_stop() or hand_over().
    void resume(std::uint64_t number);

    /// Stops and destroys an instance; connections get `drain` to finish, and its files `file_time`
    /// to be written. Yields what was lost, see instance::lost(). When the loop does not
    /// answer the instance stays there, and stop() may be tried again.
    task<outcome<std::string>> stop(std::uint64_t number, duration drain, duration file_time = {});

    task<outcome<std::uint64_t>> send(std::uint64_t number, std::string message);
    task<outcome<>> apply(std::uint64_t number, runtime::settings changed);

    /// instance::check_restart() and reread().
    task<outcome<>> check_restart(std::uint64_t number, runtime::settings next, bool discards_data);
    task<outcome<bool>> reread(std::uint64_t number);

    /// What all instances of the loop count, by number.
    task<outcome<vitals_by_number>> vitals();

private:
    void reduce_load() noexcept;

    struct resident {
        std::shared_ptr<runtime_journal> events;
        std::unique_ptr<runtime::instance> instance;
        bool is_stopping = false;
        event stopped;  // set when its stop has ended
    };

    struct start_ticket;

    // These run on the loop.
    task<outcome<endpoint>> start_there(std::uint64_t number, const runtime::type& type,
                                        std::string name, runtime::settings options,
                                        std::shared_ptr<runtime_journal> events,
                                        std::shared_ptr<runtime::host> host,
                                        std::shared_ptr<const runtime::handover> inherited,
                                        std::shared_ptr<start_ticket> ticket);
    task<bool> give_up_start_there(std::uint64_t number);
    task<outcome<>> prepare_there(std::uint64_t number, duration patience);
    task<outcome<>> hand_over_there(std::uint64_t number, runtime::settings next,
                                    std::shared_ptr<runtime::handover> to, duration patience);
    task<void> resume_there(std::uint64_t number);
    task<std::string> stop_there(std::uint64_t number, duration drain);
    task<outcome<std::uint64_t>> send_there(std::uint64_t number, std::string message);
    task<outcome<>> apply_there(std::uint64_t number, runtime::settings changed);
    task<outcome<>> check_there(std::uint64_t number, runtime::settings next, bool discards_data);
    task<outcome<bool>> reread_there(std::uint64_t number);
    task<vitals_by_number> vitals_there();

    loop_group& group_;
    std::size_t index_;
    std::size_t load_ = 0;
    // The loop's thread only.
    std::unordered_map<std::uint64_t, std::shared_ptr<resident>> instances_;
    std::unordered_map<std::uint64_t, std::shared_ptr<resident>> starting_;
};

}  // namespace eddy::daemon
