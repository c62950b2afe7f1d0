// Running state of a runtime: its instance, the loop of that, since when, and why there is none. A
// state machine: a change of status that may_change() does not list is a bug and ends the process.
//
//     created ──> starting ──> running ──> stopping ──> stopped ──> starting
//
// Any of the first four may fail, and a stopped one whose instance had failed before its stop. A
// start may also end in stopped, and a failed runtime becomes stopped once the reason is gone. One
// whose stop failed still has its instance, on a loop that does not answer: its stop may be tried
// again, a start is refused.
#pragma once

#include <eddy/io/endpoint.hpp>
#include <eddy/io/timer.hpp>

#include "daemon/runtimes/loop_runtimes.hpp"
#include "runtime/host/host.hpp"
#include "runtime/instance.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace eddy::daemon {

enum class runtime_status : std::uint8_t { created, starting, running, stopping, stopped, failed };
std::string_view to_string(runtime_status status) noexcept;

class running_state;
/// True if it runs and lacks what it needs for its work, see runtime::instance::fault(), as of the
/// last refresh.
bool is_degraded(const running_state& of) noexcept;

/// True if a runtime's status may change from `from` to `to`.
bool may_change(runtime_status from, runtime_status to) noexcept;

/// Running state of one runtime. The control loop's.
class running_state {
public:
    runtime_status status() const noexcept { return status_; }
    /// Why it failed; the reason of the last attempt while another one is ahead.
    const std::string& reason() const noexcept { return reason_; }

    /// End of the last instance by itself, such as "exited with status 0"; empty if it did not,
    /// or has failed: reason() then.
    const std::string& ending() const noexcept { return ending_; }

    /// Loop of the instance; null while there is none.
    loop_runtimes* where() const noexcept { return where_; }
    bool has_instance() const noexcept { return where_ != nullptr; }
    /// Number of the instance, or of the last one, on its loop; 0 before the first.
    std::uint64_t number() const noexcept { return number_; }
    /// Host of the instance, or of the last one.
    const std::shared_ptr<runtime::host>& host() const noexcept { return host_; }
    time_point started_at() const noexcept { return started_at_; }
    /// As of the last refresh.
    const runtime_vitals& vitals() const noexcept { return vitals_; }
    /// Lost by the last stop or removal, see runtime::instance::lost().
    const std::string& lost() const noexcept { return lost_; }
    /// Data of the last instance for the next one, until that has started.
    const std::shared_ptr<const runtime::handover>& handover() const noexcept { return handover_; }

    /// It is to start soon, and has no instance yet.
    void await_start();
    /// Instance `number`, a higher one than those before, is made on `where`.
    void begin_start(loop_runtimes& where, std::uint64_t number,
                     std::shared_ptr<runtime::host> host);
    /// The instance serves, at `local` if that is an address.
    void finish_start(time_point now, const endpoint& local);
    /// The instance is gone.
    void fail_start(std::string reason);
    /// No attempt follows; the reason of the last one stays.
    void give_up_retry();

    /// Instance `number`, which serves at `local` on the same loop, takes the place of the one that
    /// runs.
    void replace(std::uint64_t number, std::shared_ptr<runtime::host> host, time_point now,
                 const endpoint& local);

    /// The instance has ended by itself; the stop that follows makes it stopped, or failed.
    void note_ending(std::string how, bool is_failure);
    /// Without an instance: the last one, maybe of another process, has ended by itself.
    void finish_ending(std::string how, bool is_failure);
    void begin_stop();
    /// The instance is gone; `lost` describes the data that went with it.
    void finish_stop(std::string lost);
    /// The instance is still there, on a loop that does not answer.
    void fail_stop(std::string reason);

    /// Without an instance: it cannot start as it is stored.
    void reject(std::string reason);
    /// Without an instance: it may start.
    void mark_stopped();

    void refresh(runtime_vitals fresh);
    /// The other vitals stay as they were.
    void refresh(runtime_brief fresh);
    void keep_handover(std::shared_ptr<const runtime::handover> data);
    void set_lost(std::string lost) { lost_ = std::move(lost); }

private:
    void change_to(runtime_status next);
    bool is_consistent() const noexcept;

    runtime_status status_ = runtime_status::created;
    std::string reason_;
    std::string ending_;
    bool is_failing_ = false;  // its end is a failure, described by ending_
    loop_runtimes* where_ = nullptr;
    std::uint64_t number_ = 0;
    std::shared_ptr<runtime::host> host_;
    time_point started_at_{};
    runtime_vitals vitals_;
    std::string lost_;
    std::shared_ptr<const runtime::handover> handover_;
};

}  // namespace eddy::daemon
