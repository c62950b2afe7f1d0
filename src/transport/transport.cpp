// Opening of listeners, streams and datagram sockets by scheme.
#include <eddy/transport/transport.hpp>

#include <eddy/io/timeout.hpp>
#include <eddy/net/descriptors.hpp>
#include <eddy/net/tcp.hpp>
#include <eddy/net/udp.hpp>
#include <eddy/net/unix.hpp>

#include "transport/schemes.hpp"
#include "transport/taken_listener.hpp"

#include <array>
#include <utility>

namespace eddy::transport {
namespace {

task<result<stream>> failed(std::error_code error) { co_return fail(error); }

result<listener> listen_tcp(const address& where, const listen_options& options) {
    return tcp::listen(where.host, where.port, options);
}
task<result<stream>> connect_tcp(address where, tcp::connect_options options) {
    if (where.port == 0) return failed(errc::bad_address);
    return tcp::connect(std::move(where.host), where.port, options);
}
result<datagram> bind_udp(const address& where, const datagram_options& options) {
    return udp::bind(where.host, where.port, options);
}
result<listener> listen_unix(const address& where, const listen_options& options) {
    auto made = unix_socket::listen(where.path, options);
    // Streams carry bytes alone; dropping a passed socket that lingers would block the loop.
    if (made && made->native_handle() >= 0) unix_socket::refuse_descriptors(made->native_handle());
    return made;
}
task<result<stream>> connect_unix(address where, tcp::connect_options options) {
    return with_timeout(options.timeout, unix_socket::connect(std::move(where.path)));
}

const std::array table = {
    scheme_entry{"tcp", scheme::tcp, false, listen_tcp, connect_tcp, nullptr, nullptr, nullptr,
                 "tcp:// carries streams, not datagrams; use udp://"},
    scheme_entry{"udp", scheme::udp, false, nullptr, nullptr, bind_udp, nullptr, nullptr,
                 "udp:// carries datagrams, not streams; use tcp://"},
    scheme_entry{"unix", scheme::unix_socket, true, listen_unix, connect_unix, nullptr, nullptr,
                 nullptr, "unix:// carries streams, not datagrams; use udp://"},
    tls_entry,
    shm_entry,
    handoff_entry,
};

const scheme_entry& entry_of(const address& where) noexcept {
    for (const scheme_entry& one : table)
        if (one.kind == where.kind) return one;
    std::unreachable();
}

}  // namespace

std::span<const scheme_entry> schemes() noexcept { return table; }

result<listener> listen(const address& where, const listen_options& options) {
    const scheme_entry& entry = entry_of(where);
    if (!entry.listen) return fail(errc::unsupported);
    return entry.listen(where, options);
}

result<listener> listen(std::string_view uri, const listen_options& options) {
    const auto where = parse(uri);
    if (!where) return fail(where.error());
    return listen(*where, options);
}

result<> renew(listener& of, const address& where) {
    if (where.kind != scheme::tls) return fail(errc::unsupported);
    return renew_tls(of, where);
}

result<listener_parts> listen_in_parts(const address& where, const listen_options& options) {
    const scheme_entry& entry = entry_of(where);
    result<listener_parts> parts;
    if (entry.make_parts) parts = entry.make_parts(where);
    if (!parts) return parts;
    auto plain = entry.listen_below ? entry.listen_below(where, options) : listen(where, options);
    if (!plain) return fail(plain.error());
    parts->below = std::move(*plain);
    return parts;
}

result<listener_parts> take_in_parts(listener& below, const address& where) {
    const scheme_entry& entry = entry_of(where);
    if (!entry.listen) return fail(errc::unsupported);
    result<listener_parts> parts;
    if (entry.make_parts) parts = entry.make_parts(where);
    if (parts) parts->below = std::move(below);
    return parts;
}

task<result<stream>> connect(address where, tcp::connect_options options) {
    const scheme_entry& entry = entry_of(where);
    if (!entry.connect) return failed(errc::unsupported);
    return entry.connect(std::move(where), options);
}

task<result<stream>> connect(std::string_view uri) {
    auto where = parse(uri);
    if (!where) return failed(where.error());
    return connect(std::move(*where), tcp::connect_options());
}

result<datagram> bind_datagram(const address& where, const datagram_options& options) {
    const scheme_entry& entry = entry_of(where);
    if (!entry.bind_datagram) return fail(errc::unsupported);
    return entry.bind_datagram(where, options);
}

result<datagram> bind_datagram(std::string_view uri, const datagram_options& options) {
    const auto where = parse(uri);
    if (!where) return fail(where.error());
    return bind_datagram(*where, options);
}

}  // namespace eddy::transport
