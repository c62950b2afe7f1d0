// Where a cache is reached, and who is turned away at the door: the port for TLS beside the plain
// one, and protected mode.
#pragma once

#include <eddy/io/task.hpp>
#include <eddy/transport/transport.hpp>

#include "cache/engine/engine.hpp"
#include "runtime/cache/options.hpp"
#include "runtime/connections.hpp"
#include "runtime/listening.hpp"
#include "runtime/serving/listeners.hpp"

#include <memory>
#include <optional>
#include <string>

namespace eddy::runtime::cache {

/// The files, versions and ciphers that the options around --tls-port name, for who listens.
transport::tls_parameters tls_parameters_of(const eddy::cache::tls_settings& told);

/// How another Redis server is reached: by TLS if `told` says so. Then its certificate counts, and
/// not its name, which Sentinel, REPLICAOF and MIGRATE give as an address: as with Redis.
transport::address server_address(const eddy::cache::tls_settings& told, std::string host,
                                  std::uint16_t port);

/// What --tls-port and the options around it ask for; none without them. With --tls, which is for
/// the main port, `told` is filled from the options around that.
outcome<std::optional<transport::address>> choose_tls_address(const settings& chosen,
                                                              eddy::cache::tls_settings& told);

/// Opens what the config names, and notes the real ports in it.
outcome<serving::listeners> open_listeners(config& by, host* of);

/// Whether a client is on this machine: on a Unix socket, or at a loopback address.
bool is_local(const endpoint& peer);

/// Whether protected mode keeps a client out. Redis's rule: it is not local, and the default user
/// needs no password.
bool is_denied(eddy::cache::engine& by, const endpoint& peer);

/// Says what protected mode does to a cache that listens for other machines.
void tell_of_protection(const config& of, journal& events);

/// One that is_denied(): it counts as a connection until it is gone, and has no session.
class denied_client final : public connection {
public:
    using connection::connection;
};

/// Tells it why, and closes.
task<void> turn_away(std::unique_ptr<denied_client> who);

}  // namespace eddy::runtime::cache
