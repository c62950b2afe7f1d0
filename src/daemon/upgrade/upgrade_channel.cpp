// Messages of an upgrade.
#include "daemon/upgrade/upgrade_channel.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/timeout.hpp>
#include <eddy/net/descriptors.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <system_error>
#include <vector>

namespace eddy::daemon {
namespace {

/// Wait while too many descriptors are under way, unix(7).
constexpr duration crowded_pause = std::chrono::milliseconds(5);

problem late() { return {504, "the other daemon is alive, and has not finished in time"}; }

}  // namespace

std::string upgrade_message::text(std::string_view name) const {
    const auto found = what.find(name);
    return found != what.end() && found->is_string() ? found->get<std::string>() : std::string();
}

outcome<std::pair<upgrade_channel, unique_fd>> upgrade_channel::make_pair() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
        return refuse(503, fmt::format("could not make a socket: {}",
                                       std::generic_category().message(errno)));
    return std::pair(upgrade_channel(unique_fd(ends[0])), unique_fd(ends[1]));
}

std::optional<upgrade_channel> upgrade_channel::take_from_environment() {
    if (std::getenv(upgrade_variable) == nullptr) return std::nullopt;
    ::unsetenv(upgrade_variable);
    int type = 0;
    socklen_t size = sizeof type;
    if (::getsockopt(STDIN_FILENO, SOL_SOCKET, SO_TYPE, &type, &size) != 0 ||
        type != SOCK_SEQPACKET)
        return std::nullopt;
    unique_fd socket(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
    const unique_fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    if (!socket || !null || ::dup2(null.get(), STDIN_FILENO) < 0) return std::nullopt;
    return upgrade_channel(std::move(socket));
}

task<outcome<>> upgrade_channel::send(json what, int descriptor) {
    EDDY_ASSERT(socket_ && what.is_object());
    const std::string text = dump_json(what);
    if (text.size() > max_upgrade_message)
        co_return refuse(500, fmt::format("a message of the upgrade would have {} bytes, more than "
                                          "{}",
                                          text.size(), max_upgrade_message));
    for (;;) {
        result<std::size_t> sent = 0;
        if (descriptor >= 0) {
            sent = unix_socket::send_descriptor(socket_.get(), text, descriptor);
        } else {
            const ssize_t size =
                ::send(socket_.get(), text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
            if (size < 0) sent = fail_errno();
        }
        if (sent) co_return outcome<>();
        result<> waited;
        if (sent.error() == std::errc::resource_unavailable_try_again)
            waited = co_await with_deadline(until_, loop::current().wait_writable(socket_.get()));
        else if (sent.error() == errno_code(ETOOMANYREFS))
            waited = co_await loop::current().sleep_for(crowded_pause);
        else if (sent.error() != std::errc::interrupted) {
            is_at_end_ = true;
            co_return refuse(500,
                             fmt::format("the other daemon is gone: {}", sent.error().message()));
        }
        if (!waited && waited.error() == errc::timed_out) co_return std::unexpected(late());
        if (!waited) co_return refuse(503, "the upgrade was given up");
    }
}

void upgrade_channel::end() noexcept { ::shutdown(socket_.get(), SHUT_RDWR); }

outcome<std::optional<upgrade_message>> upgrade_channel::receive_now() {
    EDDY_ASSERT(socket_);
    std::vector<std::byte> buffer(max_upgrade_message);
    auto got = unix_socket::receive_message(socket_.get(), buffer);
    if (!got) {
        if (got.error() == std::errc::resource_unavailable_try_again ||
            got.error() == std::errc::interrupted)
            return std::nullopt;
        is_at_end_ = true;
        return refuse(500, fmt::format("the other daemon is gone: {}", got.error().message()));
    }
    if (got->size == 0) {
        is_at_end_ = true;
        return refuse(500, "the other daemon is gone");
    }
    if (got->lost_descriptors)
        return refuse(503,
                      "the limit of open files is too low for an upgrade: raise it (ulimit "
                      "-n, LimitNOFILE=)");
    auto what = parse_json({reinterpret_cast<const char*>(buffer.data()), got->size},
                           "a message of the other daemon");
    if (!what) return std::unexpected(std::move(what.error()));
    if (got->is_cut || !what->is_object())
        return refuse(500, "the other daemon has sent what is no message of an upgrade");
    return upgrade_message{std::move(*what), std::move(got->descriptor)};
}

task<outcome<upgrade_message>> upgrade_channel::receive(duration patience) {
    const time_point until = std::min(loop::current().after(patience), until_);
    for (;;) {
        if (loop::current().now() >= until_) co_return std::unexpected(late());
        auto got = receive_now();
        if (!got) co_return std::unexpected(std::move(got.error()));
        if (*got) co_return std::move(**got);
        const result<> waited =
            co_await with_deadline(until, loop::current().wait_readable(socket_.get()));
        if (waited) continue;
        if (waited.error() == errc::timed_out && until == until_) co_return std::unexpected(late());
        if (waited.error() == errc::timed_out)
            co_return refuse(504, fmt::format("the other daemon has not answered for {} s",
                                              std::chrono::duration<double>(patience).count()));
        co_return refuse(503, "the upgrade was given up");
    }
}

}  // namespace eddy::daemon
