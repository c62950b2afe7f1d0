// Key events, for watchers of a key, observers of the database and the count of changes.
#pragma once

#include <cstdint>

namespace eddy::cache {

/// The kinds of Redis's keyspace notifications, each a bit, for the letters of
/// notify-keyspace-events.
enum class key_event : std::uint16_t {
    generic = 1,      ///< g: commands of every type, as DEL, EXPIRE, RENAME
    string = 2,       ///< $
    list = 4,         ///< l
    set = 8,          ///< s
    hash = 16,        ///< h
    sorted_set = 32,  ///< z
    expired = 64,     ///< x
    evicted = 128,    ///< e
    stream = 256,     ///< t
    key_miss = 1024,  ///< m: lookup of a missing key; no change
    new_key = 2048,   ///< n: a key was added; what added it follows
};

}  // namespace eddy::cache
