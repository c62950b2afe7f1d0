// The one place where RDB meets the sorted sets, which the cache does not have yet: a key that
// holds one is refused when it is loaded.
//
// With the type there, reading is these two functions: make_sorted_set() adds an empty one, and
// add_scored() adds to it (members come in any order of their scores; from Redis in ascending order
// when they were packed, else in descending order). Writing is one more case where value_writer.cpp
// looks at the type: type_of() says object_type::zset_2; begin_elements() writes the count and
// begins a walk; next_element() starts the member's text and notes the score, which the part after
// it writes as 8 bytes by put_little().
#pragma once

#include "cache/keyspace.hpp"
#include "cache/rdb/consumer.hpp"

#include <cstdint>
#include <string_view>

namespace eddy::cache::rdb {

/// Adds an empty sorted set under a key that is not there; null when there is no such type.
inline keyspace::slot* make_sorted_set(keyspace&, std::string_view, std::uint64_t) {
    return nullptr;
}

/// False when the member is there already.
inline bool add_scored(environment&, entry&, std::string_view, double) { return false; }

}  // namespace eddy::cache::rdb
