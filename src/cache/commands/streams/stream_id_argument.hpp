// Stream IDs and interval ends as arguments of commands.
#pragma once

#include "cache/engine/call.hpp"
#include "cache/types/streams/stream_id.hpp"

#include <cstddef>
#include <cstdint>

namespace eddy::cache {

/// parse_stream_id() of the argument at `i`; false with the error replied.
bool stream_id_argument(call& c, std::size_t i, stream_id& to, std::uint64_t missing_seq = 0,
                        id_syntax syntax = id_syntax::strict, bool* has_seq = nullptr);

/// An interval's first ID, and its last one; "(" before it leaves out the ID itself.
bool first_id_argument(call& c, std::size_t i, stream_id& to);
bool last_id_argument(call& c, std::size_t i, stream_id& to);

}  // namespace eddy::cache
