// Scheme shm://: streams over shared memory, and the Unix socket beside them.
#include <eddy/io/timeout.hpp>
#include <eddy/net/unix.hpp>
#include <eddy/shm/shm.hpp>

#include "transport/schemes.hpp"

#include <utility>

namespace eddy::transport {
namespace {

shm::listen_options options_of(const listen_options& given) {
    shm::listen_options made;
    if (given.unix_mode >= 0) made.mode = given.unix_mode;
    return made;
}

result<listener> listen_shm(const address& where, const listen_options& options) {
    return shm::listen(where.path, options_of(options));
}

task<result<stream>> finish_shm(stream plain, duration timeout) {
    shm::listen_options with;
    with.handshake_timeout = timeout;
    return shm::accept_over(std::move(plain), std::move(with));
}

/// Handshakes are made where the connections are served.
result<listener_parts> listen_shm_in_parts(const address& where, const listen_options& options) {
    if (loop::current().kind() == backend_kind::sim) return fail(errc::unsupported);
    listen_options below = options;
    below.unix_mode = options_of(options).mode;
    auto plain = unix_socket::listen(where.path, below);
    if (!plain) return fail(plain.error());
    return listener_parts{std::move(*plain), finish_shm};
}

task<result<stream>> connect_shm(address where, tcp::connect_options options) {
    return with_timeout(options.timeout, shm::connect(std::move(where.path)));
}

}  // namespace

constinit const scheme_entry shm_entry = {"shm",
                                          scheme::shm,
                                          true,
                                          listen_shm,
                                          connect_shm,
                                          nullptr,
                                          listen_shm_in_parts,
                                          "shm:// carries streams, not datagrams; use udp://"};

}  // namespace eddy::transport
