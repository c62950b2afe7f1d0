// Propagation of consumer groups: their changes as commands that make the same change elsewhere.
#pragma once

#include "cache/engine/call.hpp"
#include "cache/types/streams/stream.hpp"

#include <string_view>

namespace eddy::cache {

/// The entry has become pending for its owner, or its state has changed: XCLAIM.
void propagate_claim(call& c, std::string_view key, const stream_group& group, stream_id id,
                     const stream_pending& what);
/// The group's position: XGROUP SETID.
void propagate_position(call& c, std::string_view key, const stream_group& group);
/// XGROUP CREATECONSUMER.
void propagate_consumer(call& c, std::string_view key, const stream_group& group,
                        const stream_consumer& made);
/// The entry is no longer pending: XACK.
void propagate_acknowledged(call& c, std::string_view key, const stream_group& group, stream_id id);

}  // namespace eddy::cache
