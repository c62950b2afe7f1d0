// Reports to the service manager.
#include "daemon/service/service_reports.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/base/log.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/timeout.hpp>

#include "daemon/runtimes/remote.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <utility>

namespace eddy::daemon {
namespace {

/// Before a report that the service manager did not take is sent again.
constexpr duration retry_interval = std::chrono::milliseconds(100);
/// A shorter watchdog is fed at this interval, and its loops have this time for their answer.
constexpr duration shortest_interval = std::chrono::milliseconds(10);

std::int64_t in_microseconds(duration time) {
    return std::chrono::duration_cast<std::chrono::microseconds>(time).count();
}

/// The clock that RELOADING=1 is read with.
std::int64_t monotonic_us() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return std::int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1000;
}

}  // namespace

void service_reports::hand_over() {
    phase_ = phase::handed_over;
    waiting_.clear();
    changed_.set();
}

void service_reports::become_main() {
    if (std::exchange(is_main_, true) || !to_.is_there() || phase_ == phase::handed_over) return;
    EDDY_ASSERT(waiting_.empty());
    std::string lines;
    if (phase_ == phase::serving) lines = "READY=1\n";
    if (phase_ == phase::stopping) lines = "STOPPING=1\n";
    // The last one may have been long ago.
    if (to_.watchdog() > duration()) lines += "WATCHDOG=1\n";
    shown_ = status_();
    report(std::move(lines) + "STATUS=" + shown_ + "\n");
    changed_.set();
}

void service_reports::enter(phase next, std::string lines) {
    if (!to_.is_there() || phase_ == phase::handed_over) return;
    phase_ = next;
    shown_ = status_();
    report(std::move(lines) + "STATUS=" + shown_ + "\n");
    changed_.set();
}

void service_reports::reloading() {
    if (!to_.is_there() || phase_ == phase::handed_over) return;
    report(fmt::format("RELOADING=1\nMONOTONIC_USEC={}\nSTATUS=Reading the state again\n",
                       monotonic_us()));
}

void service_reports::refresh() {
    if (!to_.is_there() || phase_ != phase::serving) return;
    std::string status = status_();
    if (status == shown_) return;
    shown_ = std::move(status);
    report("STATUS=" + shown_ + "\n");
}

void service_reports::report(std::string lines) {
    if (!is_main_ || phase_ == phase::handed_over) return;
    // The newest are what counts.
    if (waiting_.size() >= max_waiting_reports) waiting_.pop_front();
    waiting_.push_back(std::move(lines));
    if (!send_waiting()) changed_.set();
}

bool service_reports::send_waiting() {
    EDDY_ASSERT(waiting_.size() <= max_waiting_reports);
    while (!waiting_.empty()) {
        const auto sent = to_.notify(waiting_.front());
        if (!sent && sent.error() == std::errc::resource_unavailable_try_again) return false;
        // Reports may come for years.
        if (!sent && sent.error() != fault_)
            log_warn("daemon", fmt::format("could not notify the service manager: {}",
                                           sent.error().message()));
        fault_ = sent ? std::error_code() : sent.error();
        waiting_.pop_front();
    }
    return true;
}

/// Zero for none.
duration service_reports::interval() const noexcept {
    const duration half =
        to_.watchdog() > duration() ? std::max(to_.watchdog() / 2, shortest_interval) : duration();
    EDDY_ASSERT(half >= duration());
    if (!is_main_) return {};
    if (phase_ == phase::serving) return half;
    return half == duration() ? extension_interval : std::min(half, extension_interval);
}

task<void> service_reports::run() {
    if (!to_.is_there()) co_return;
    time_point last = loop::current().now();
    for (;;) {
        const duration every = interval();
        result<> woken;
        if (!waiting_.empty())
            woken = co_await with_timeout(retry_interval, changed_.wait());
        else if (every == duration())
            woken = co_await changed_.wait();
        else
            woken = co_await with_timeout(
                std::max(every - (loop::current().now() - last), duration()), changed_.wait());
        if (!woken && woken.error() != errc::timed_out) co_return;
        if (phase_ == phase::handed_over) co_return;
        changed_.reset();
        static_cast<void>(send_waiting());
        if (every == duration() || loop::current().now() - last < every) continue;
        last = loop::current().now();
        co_await repeat();
    }
}

task<void> service_reports::repeat() {
    std::string lines;
    if (phase_ != phase::serving)
        lines = fmt::format("EXTEND_TIMEOUT_USEC={}\n", in_microseconds(3 * extension_interval));
    if (to_.watchdog() > duration()) {
        if (phase_ == phase::serving && !co_await loops_answer()) co_return;
        lines += "WATCHDOG=1\n";
    }
    std::string status = status_();
    if (status != shown_) {
        shown_ = std::move(status);
        lines += "STATUS=" + shown_ + "\n";
    }
    report(std::move(lines));
}

/// True once each loop of the runtimes has answered; waits for them as long as it takes. False when
/// cancelled.
task<bool> service_reports::loops_answer() {
    EDDY_ASSERT(to_.watchdog() > duration() && loops_.size() > 0);
    for (std::size_t index = 0; index < loops_.size(); ++index) {
        for (;;) {
            const time_point began = loop::current().now();
            const duration patience = std::max(to_.watchdog() / 4, shortest_interval);
            if (co_await run_on(loops_, index, [] { return true; }, patience)) break;
            if (loop::current().now() - began < patience) co_return false;
            log_warn("daemon",
                     fmt::format("the loop {} does not answer: the service manager ends the daemon "
                                 "after {} s of that",
                                 index, in_microseconds(to_.watchdog()) / 1'000'000));
        }
    }
    co_return true;
}

}  // namespace eddy::daemon
