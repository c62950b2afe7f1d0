// Served listener: a listener whose connections a server accepts, with its scheme's conversion of
// each connection.
#pragma once

#include <eddy/io/stream.hpp>
#include <eddy/transport/transport.hpp>

#include <sys/types.h>

#include <chrono>
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
};

/// One loop's thread.
struct served_listener {
    listener socket;
    /// For a listener in parts: see transport::listener_parts.
    transport::listener_parts::finisher finish = nullptr;
    transport::listener_parts::renewer renew = nullptr;
    accept_rules rules = {};
};

/// Changes the rules, for connections that are accepted from then on. One loop's thread.
void set_rules(served_listener& of, accept_rules rules) noexcept;

}  // namespace eddy::serving
