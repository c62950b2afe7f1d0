// Service manager that started this process, such as systemd: where its notifications go.
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/base/unique_fd.hpp>
#include <eddy/io/endpoint.hpp>
#include <eddy/io/timer.hpp>

#include <optional>
#include <string_view>

namespace eddy::daemon {

/// Sends notifications as sd_notify(3) does, without its library. Without a service manager nothing
/// is sent. Any thread, one at a time.
class service_manager {
public:
    service_manager() = default;

    /// The service manager of $NOTIFY_SOCKET and its watchdog ($WATCHDOG_USEC, $WATCHDOG_PID). The
    /// variables are removed, so that no child process reports for this one: before the first
    /// thread. A name that is no Unix socket's, such as one of a virtual machine's host, is left
    /// out with a warning.
    static service_manager take_from_environment();

    bool is_there() const noexcept { return static_cast<bool>(socket_); }
    /// After so long without WATCHDOG=1 the service manager ends this process; zero for never.
    duration watchdog() const noexcept { return watchdog_; }

    /// Sends lines of the form NAME=VALUE. Does not wait: EAGAIN while the service manager reads
    /// nothing; else sendto(2)'s errors.
    [[nodiscard]] result<> notify(std::string_view lines) const noexcept;

private:
    unique_fd socket_;
    std::optional<endpoint> at_;
    duration watchdog_{};
};

}  // namespace eddy::daemon
