// Served listener: a listener whose connections a server accepts, with its scheme's conversion of
// each connection.
#pragma once

#include <eddy/io/stream.hpp>
#include <eddy/transport/transport.hpp>

#include "net/network.hpp"

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

namespace eddy::serving {

/// Conditions of accepting, and options of accepted sockets.
struct accept_rules {
    /// Effective users whose connections to a Unix socket are served: the listed ones, or with an
    /// empty list the own user and root. None: all.
    std::optional<std::vector<uid_t>> users = std::nullopt;
    /// TCP keepalive as tcp::keepalive_after(); zero for none.
    std::chrono::seconds keepalive{};
    /// Proxies: connections from them begin with a PROXY header.
    std::vector<network> proxies = {};
};

/// Steps of a connection before it is served, on the loop that serves it.
enum class preamble : std::uint8_t {
    handshake,     ///< that of the listener's scheme, if it has one
    proxy_header,  ///< a PROXY header first
};

/// One loop's thread.
struct served_listener {
    listener socket;
    /// For a listener in parts: see transport::listener_parts.
    transport::listener_parts::finisher finish = nullptr;
    transport::listener_parts::renewer renew = nullptr;
    accept_rules rules = {};

    /// True if connections may have steps before they are served. The loop that accepts.
    bool has_handshakes() const noexcept { return finish != nullptr || !rules.proxies.empty(); }
    /// Preamble of a connection. The loop that accepts.
    preamble preamble_of(const stream& accepted) const noexcept {
        return !rules.proxies.empty() && contains(rules.proxies, accepted.peer())
                   ? preamble::proxy_header
                   : preamble::handshake;
    }
    /// True if a connection is to pass loop_worker::adopt(). Any thread.
    bool has_steps(preamble first) const noexcept {
        return finish != nullptr || first == preamble::proxy_header;
    }
};

/// Changes the rules, for connections that are accepted from then on. One loop's thread.
void set_rules(served_listener& of, accept_rules rules) noexcept;

}  // namespace eddy::serving
