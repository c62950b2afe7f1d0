// FAILOVER: a master and one of its replicas change roles, without loss of a write.
//
// Writes are paused until a replica has everything (waiting_for_sync). Then this server drops its
// replicas, connects to that one and sends PSYNC with the word FAILOVER, at which the other
// promotes itself and both go on with one stream (in_progress). The writes that waited are answered
// like all writes to a replica.
#pragma once

#include "cache/clients/session.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace eddy::cache {

enum class failover_stage : std::uint8_t { none, waiting_for_sync, in_progress };

struct failover_plan {
    failover_stage now = failover_stage::none;
    std::string host;        ///< of the replica; empty: the first that has everything
    std::uint16_t port = 0;  ///< where it listens
    /// When it is given up, or with `force` done all the same; by the clock that waits go by.
    std::int64_t deadline_us = session::no_deadline;
    bool force = false;
    /// The replica had the stream up to here: one that has less does not lead with this data.
    std::uint64_t least = 0;
    /// The replica may have promoted itself already, so this server must not write again by itself.
    bool asked = false;
};

}  // namespace eddy::cache
