// Connections for threads: connecting, and pairs.
#include <eddy/io/endpoint.hpp>
#include <eddy/net/blocking.hpp>
#include <eddy/shm/connection.hpp>

#include "net/peer_process.hpp"
#include "shm/connection_state.hpp"
#include "shm/deadlines.hpp"
#include "shm/port_names.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <new>
#include <string>
#include <utility>

namespace eddy::shm {
namespace {

/// Drives an exchange to its end.
result<> complete(exchange& with, int socket, time_point deadline) noexcept {
    for (;;) {
        const auto next = with.step();
        if (!next) return fail(next.error());
        if (*next == exchange::wait::none) return {};
        const duration left = left_until(deadline, clock_now());
        if (left == duration::zero()) return fail(errc::timed_out);
        pollfd watched{socket, events_of(*next), 0};
        static_cast<void>(::poll(&watched, 1, milliseconds_of(left)));
    }
}

result<unique_fd> connect_socket(std::string_view path, const connection_options& wanted,
                                 time_point deadline) {
    const auto paths = paths_of(path, wanted.server_users);
    if (!paths) return fail(paths.error());
    result<blocking::stream> plain = fail_errno(ECONNREFUSED);
    for (const std::string& each : *paths) {
        const auto to = endpoint::unix_path(each);
        if (!to) return fail(to.error());
        plain = blocking::connect(*to, left_until(deadline, clock_now()));
        if (plain || !is_no_server(plain.error())) break;
    }
    if (!plain) return fail(plain.error());
    return plain->release();
}

}  // namespace

result<connection> connection::connect(std::string_view path,
                                       const connection_options& wanted) try {
    if (auto usable = check(wanted); !usable) return fail(usable.error());
    const time_point deadline = deadline_after(wanted.handshake_timeout);
    auto socket = connect_socket(path, wanted, deadline);
    if (!socket) return fail(socket.error());
    if (!unix_socket::has_allowed_peer(socket->get(), wanted.server_users))
        return fail_errno(EACCES);
    exchange with(side::client, socket->get(), offer_of(wanted));
    if (auto done = complete(with, socket->get(), deadline); !done) return fail(done.error());
    auto made = make_state(std::move(*socket), with, wanted);
    if (!made) return fail(made.error());
    return connection(std::move(*made));
} catch (const std::bad_alloc&) {
    return fail_errno(ENOMEM);
}

result<std::pair<connection, connection>> connection::pair(const connection_options& wanted) try {
    if (auto usable = check(wanted); !usable) return fail(usable.error());
    int numbers[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, numbers) < 0) return fail_errno();
    unique_fd sockets[2] = {unique_fd(numbers[0]), unique_fd(numbers[1])};
    exchange first(side::client, numbers[0], offer_of(wanted));
    exchange second(side::server, numbers[1], offer_of(wanted));
    // The first sends; the second has both messages; then so has the first.
    for (exchange* each : {&first, &second, &first})
        if (auto stepped = each->step(); !stepped) return fail(stepped.error());
    auto one = make_state(std::move(sockets[0]), first, wanted);
    if (!one) return fail(one.error());
    auto other = make_state(std::move(sockets[1]), second, wanted);
    if (!other) return fail(other.error());
    return std::pair(connection(std::move(*one)), connection(std::move(*other)));
} catch (const std::bad_alloc&) {
    return fail_errno(ENOMEM);
}

}  // namespace eddy::shm
