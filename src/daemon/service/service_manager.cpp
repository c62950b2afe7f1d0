// Notifications of the service manager: a datagram each.
#include "daemon/service/service_manager.hpp"

#include <eddy/base/log.hpp>

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <system_error>

namespace eddy::daemon {
namespace {

std::string take_variable(const char* name) {
    const char* value = std::getenv(name);
    std::string taken = value ? value : "";
    ::unsetenv(name);
    return taken;
}

std::optional<std::int64_t> whole(std::string_view text) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size() || number <= 0) return {};
    return number;
}

/// A day: a longer watchdog is none.
constexpr std::int64_t longest_watchdog_us = std::int64_t{24} * 60 * 60 * 1'000'000;

}  // namespace

service_manager service_manager::take_from_environment() {
    const std::string name = take_variable("NOTIFY_SOCKET");
    const std::string time = take_variable("WATCHDOG_USEC");
    const std::string process = take_variable("WATCHDOG_PID");
    service_manager made;
    if (name.empty()) return made;
    if (name.starts_with('/') || name.starts_with('@'))
        if (auto at = endpoint::unix_path(name)) made.at_ = *at;
    if (made.at_)
        made.socket_.reset(::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!made.socket_) {
        log_warn("daemon", fmt::format("the service manager is not notified: NOTIFY_SOCKET is "
                                       "\"{}\", which is no Unix socket's path or @NAME",
                                       name));
        return made;
    }
    const auto limit = whole(time);
    const bool is_ours = process.empty() || whole(process) == std::int64_t{::getpid()};
    if (limit && *limit <= longest_watchdog_us && is_ours)
        made.watchdog_ = std::chrono::microseconds(*limit);
    return made;
}

result<> service_manager::notify(std::string_view lines) const noexcept {
    if (!socket_) return {};
    const ssize_t sent =
        ::sendto(socket_.get(), lines.data(), lines.size(), MSG_NOSIGNAL, at_->data(), at_->size());
    return sent < 0 ? fail_errno() : result<>();
}

}  // namespace eddy::daemon
