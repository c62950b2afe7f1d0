// Reports to the service manager over a daemon's life: ready, reloading, stopping, and its
// watchdog.
#pragma once

#include <eddy/io/event.hpp>
#include <eddy/io/loop_group.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>

#include "daemon/service/service_manager.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <system_error>
#include <utility>

namespace eddy::daemon {

/// While the daemon starts and stops, which may take long with much data, it asks for more time at
/// this interval: for three times as long.
inline constexpr duration extension_interval = std::chrono::seconds(10);
/// Reports at most that wait for the service manager to read.
inline constexpr std::size_t max_waiting_reports = 16;

/// Without a service manager, or while the daemon serves without a watchdog, nothing runs. Control
/// loop.
class service_reports {
public:
    /// `loops` are asked whether they answer before the watchdog is; `status` is what a person
    /// reads in `systemctl status`. All outlive it.
    service_reports(const service_manager& to, loop_group& loops,
                    std::function<std::string()> status)
        : to_(to), loops_(loops), status_(std::move(status)) {}

    /// Another process is the service still, and its reports alone are taken: nothing is sent
    /// before become_main().
    void await_main() noexcept { is_main_ = false; }
    /// This process is the service from now on.
    void become_main();

    void starting() { enter(phase::starting, ""); }
    /// It serves: after a start, a reload, or a stop that was given up.
    void ready() { enter(phase::serving, "READY=1\n"); }
    /// ready() follows.
    void reloading();
    /// Sends the status line if it is another one than before.
    void refresh();
    void stopping() { enter(phase::stopping, "STOPPING=1\n"); }
    /// Another process is the service from now on, and reports for itself: this one does no more.
    void hand_over();

    /// Until cancelled: the watchdog, requests for more time, and reports that wait.
    task<void> run();

private:
    enum class phase : std::uint8_t { starting, serving, stopping, handed_over };

    void enter(phase next, std::string lines);
    void report(std::string lines);
    bool send_waiting();
    duration interval() const noexcept;
    task<void> repeat();
    task<bool> loops_answer();

    const service_manager& to_;
    loop_group& loops_;
    std::function<std::string()> status_;
    phase phase_ = phase::starting;
    bool is_main_ = true;  // process of the service
    std::string shown_;
    std::deque<std::string> waiting_;
    std::error_code fault_;  // of the last report
    event changed_;
};

}  // namespace eddy::daemon
