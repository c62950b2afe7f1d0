// Moving a client to another engine, with the connection that stays: the state of its session
// between two commands.
#pragma once

#include "cache/clients/client_session.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace eddy::cache {

/// State that a session takes along. One in a transaction, with WATCH, tracking or MONITOR, a
/// replica, or one whose command has had a part of its effect does not move.
struct moved_session {
    std::string user;
    std::string name;
    std::string library_name;
    std::string library_version;
    std::string address;  ///< as CLIENT LIST shows it
    std::vector<std::string> channels;
    std::vector<std::string> patterns;
    std::vector<std::string> shard_channels;
    std::uint16_t special = 0;
    std::uint8_t protocol = 2;
    std::uint8_t db = 0;
    bool authenticated = true;
    bool no_evict = false;
    bool redirects = false;
    bool reads_replica = false;
    /// A command that waits for a key, as RESP: it is executed again, and its timeout begins anew.
    /// Other commands that wait are still among the bytes that the connection has received.
    std::string waiting;
};

}  // namespace eddy::cache
