// Protected mode of a cache, and its listeners: the port for TLS beside the plain one.
#pragma once

#include <eddy/io/task.hpp>
#include <eddy/transport/transport.hpp>

#include "cache/config/server_settings.hpp"
#include "cache/engine/engine.hpp"
#include "runtime/cache/clients/cache_connection.hpp"
#include "runtime/listening.hpp"
#include "runtime/serving/listeners.hpp"
#include "serving/connections.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace eddy::runtime::cache {

/// Files, versions and ciphers of the options around --tls-port, for a listener.
transport::tls_parameters tls_parameters_of(const eddy::cache::tls_settings& chosen);

/// Address of another Redis server: by TLS if `chosen` says so. Then its certificate counts, and
/// not its name, which Sentinel, REPLICAOF and MIGRATE give as an address: as with Redis.
transport::address server_address(const eddy::cache::tls_settings& chosen, std::string host,
                                  std::uint16_t port);

/// TLS listener by --tls-port and the options around it; none without them. With --tls, which is
/// for the main port, `into` is filled from the options around that.
outcome<std::optional<transport::address>> choose_tls_address(const settings& chosen,
                                                              eddy::cache::tls_settings& into);

/// A listener, as commands show it.
eddy::cache::listening_place as_listening(const transport::address& where,
                                          const noted_listener& opened);

/// True for a client on this machine: on a Unix socket, or at a loopback address.
bool is_local(const endpoint& peer);

/// True when protected mode rejects a client. Redis's rule: it is not local, and the default user
/// needs no password.
bool is_rejected(eddy::cache::engine& by, const eddy::cache::server_settings& with,
                 const endpoint& peer);

/// Writes to the journal what protected mode does to a cache that listens for other machines.
void note_protection(const transport::address& where, const eddy::cache::server_settings& with,
                     std::string_view password, serving::journal& events);

/// A client that is_rejected(): it counts as a connection until it is gone, and has no session.
class rejected_client final : public cache_connection {
public:
    rejected_client(serving::connections& all, stream accepted, cancel_source& parent,
                    serving::connection_slot slot = nullptr)
        : cache_connection(false, all, std::move(accepted), parent, std::move(slot)) {}
};

/// Sends it the reason, and closes.
task<void> reject(std::unique_ptr<rejected_client> rejected);

}  // namespace eddy::runtime::cache
