// Scheme shm://: streams over shared memory, and the Unix socket beside them.
#include <eddy/io/timeout.hpp>
#include <eddy/shm/shm.hpp>

#include "shm/port_names.hpp"
#include "transport/handoff_parameters.hpp"
#include "transport/schemes.hpp"

#include <system_error>
#include <utility>

namespace eddy::transport {
namespace {

/// errc::bad_address for users that cannot be, EINVAL for permissions of an abstract name.
result<shm::listen_options> options_of(const address& where, const listen_options& given) {
    if (!shm::has_file(where.path) && given.unix_mode >= 0) return fail_errno(EINVAL);
    auto users = users_of(where.shm.allow);
    if (!users) return fail(errc::bad_address);
    shm::listen_options made;
    if (given.unix_mode >= 0) made.mode = given.unix_mode;
    made.allowed_users = std::move(*users);
    return made;
}

result<listener> listen_shm(const address& where, const listen_options& options) {
    const auto with = options_of(where, options);
    if (!with) return fail(with.error());
    return shm::listen(where.path, *with);
}

task<result<stream>> failed(std::error_code error) { co_return fail(error); }

/// Handshakes are made where the connections are served.
result<listener_parts> make_shm_parts(const address& where) {
    if (loop::current().kind() == io_backend_kind::sim) return fail(errc::unsupported);
    const auto with = options_of(where, {});
    if (!with) return fail(with.error());
    return listener_parts{listener(), [with = *with](stream connected, duration timeout) {
                              shm::listen_options wanted = with;
                              wanted.handshake_timeout = timeout;
                              return shm::accept_over(std::move(connected), std::move(wanted));
                          }};
}

result<listener> listen_below_shm(const address& where, const listen_options& options) {
    const auto with = options_of(where, options);
    if (!with) return fail(with.error());
    listen_options below = options;
    if (shm::has_file(where.path)) below.unix_mode = with->mode;
    return shm::listen_plain(where.path, below);
}

task<result<stream>> connect_shm(address where, tcp::connect_options options) {
    auto users = users_of(where.shm.allow);
    if (!users) return failed(errc::bad_address);
    shm::options wanted;
    wanted.server_users = std::move(*users);
    return with_timeout(options.timeout, shm::connect(std::move(where.path), std::move(wanted)));
}

}  // namespace

constinit const scheme_entry shm_entry = {
    "shm",          scheme::shm,      true,
    listen_shm,     connect_shm,      nullptr,
    make_shm_parts, listen_below_shm, "shm:// carries streams, not datagrams; use udp://"};

}  // namespace eddy::transport
