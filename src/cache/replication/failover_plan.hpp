// FAILOVER: a master and one of its replicas change roles, without loss of a write.
//
// Writes are paused until a replica has everything (waiting_for_sync). Then this server drops its
// replicas, connects to that one and sends PSYNC with the word FAILOVER, at which the other
// promotes itself and both continue with one stream (in_progress). The paused writes are answered
// like all writes to a replica.
#pragma once

#include "cache/clients/client_session.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace eddy::cache {

enum class failover_stage : std::uint8_t { none, waiting_for_sync, in_progress };

struct failover_plan {
    failover_stage now = failover_stage::none;
    std::string host;        ///< of the replica; empty: the first one with all changes
    std::uint16_t port = 0;  ///< its listening port
    /// Time at which it is aborted, or with `force` executed in any case; by the steady clock.
    std::int64_t deadline_us = client_session::no_deadline;
    bool force = false;
    /// The replica had the stream up to here: a server with less must not become the master of this
    /// data.
    std::uint64_t least = 0;
    /// The replica may have promoted itself already, so this server must not resume as a master.
    bool asked = false;
};

}  // namespace eddy::cache
