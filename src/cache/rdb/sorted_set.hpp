// The one place where RDB meets the sorted sets, which the cache does not have yet: a key that
// holds one is refused when it is loaded.
//
// With the type there, make_sorted_set() gives the entry an empty one and add_scored() adds to it
// (members come in ascending order of their scores from Redis, but in any order from others), and
// the three switches of value_writer.cpp get their case: the type is object_type::zset_2, the
// elements are each member as text and its score by put_score(), after the count.
#pragma once

#include <eddy/base/byte_buffer.hpp>

#include "cache/keyspace.hpp"
#include "cache/rdb/consumer.hpp"

#include <string_view>

namespace eddy::cache::rdb {

/// Adds an empty sorted set under a key that is not there; null when there is no such type.
inline keyspace::slot* make_sorted_set(keyspace&, std::string_view, std::uint64_t) {
    return nullptr;
}

/// False when the member is there already.
inline bool add_scored(environment&, entry&, std::string_view, double) { return false; }

}  // namespace eddy::cache::rdb
