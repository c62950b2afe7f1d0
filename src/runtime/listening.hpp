// Address of a runtime: the options that name it, and errors with their remedies.
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/io/endpoint.hpp>
#include <eddy/io/stream.hpp>
#include <eddy/io/task.hpp>
#include <eddy/transport/transport.hpp>

#include "base/problem.hpp"
#include "runtime/host/host.hpp"
#include "runtime/host/registry.hpp"
#include "runtime/options/option.hpp"
#include "runtime/options/settings.hpp"
#include "serving/served_listener.hpp"

#include <sys/types.h>

#include <span>
#include <string>
#include <string_view>
#include <system_error>

namespace eddy::runtime {

/// File of a Unix socket, by which one that was removed or replaced by hand is noticed. All are the
/// same where there is no file: abstract names and ports.
struct socket_file {
    dev_t device = 0;
    ino_t number = 0;

    /// File at an absolute path; none for other paths, and where no file is.
    static socket_file at(const std::string& path) noexcept;
    friend bool operator==(const socket_file&, const socket_file&) = default;
};

/// A listener and the note that it is there.
struct noted_listener : serving::served_listener {
    address_note note;
    socket_file file = {};
};
struct noted_datagram {
    datagram socket;
    address_note note;
};

inline constexpr std::string_view bind_help =
    "address of this machine to serve on; * for all, so that others on the network may connect";

/// The options --port, --bind, --unix, --listen and --max-connections, the same for every type that
/// listens. Without --bind it serves programs of this machine alone.
option port_option();
/// `help` must live as long as the program.
option bind_option(std::string_view help = bind_help);
option unix_option();
option listen_option(std::string_view help);
option max_connections_option();

/// The address that those options of `chosen` name, a --port's as `port_scheme` (tcp or udp). One
/// without a host is 127.0.0.1; * is all addresses.
/// Refuses what contradicts itself and what names nothing.
outcome<transport::address> choose_address(const settings& chosen, transport::scheme port_scheme);

/// Listens there and notes the address with the instance's host. A failure says what to do, and
/// names the runtime that has the address, as far as the host knows.
outcome<noted_listener> listen_on(const transport::address& where, host& of);
/// The same, as transport::listen_in_parts().
outcome<noted_listener> listen_in_parts_on(const transport::address& where, host& of);
outcome<noted_datagram> bind_datagram_on(const transport::address& where, host& of);

/// Why an address could not be listened on, and what to do. Without a host no runtime is named.
problem explain_listen_failure(const transport::address& wanted, std::error_code error,
                               const host* of);

/// Failure to open an address again that a running instance has lost.
problem not_listening(const transport::address& at, const problem& why);

/// Checks that the instance, which serves on `own` now, could serve on the address after a restart:
/// listens there for a moment, which reads certificates, too. A port or path that it has already is
/// not opened a second time, and nothing is noted.
outcome<> try_address(transport::address wanted, std::span<const endpoint> own, const host& of);
/// Reads the certificates of a tls address again, for the connections from then on. On failure the
/// ones that were read before stay.
outcome<> renew_certificates(noted_listener& of, const transport::address& where);

}  // namespace eddy::runtime
