// Limits of Redis's compact encodings: the parameters of redis.conf, at their defaults.
#pragma once

#include <cstddef>
#include <cstdint>

namespace eddy::cache {

/// Up to these, sets and hashes keep the order in which elements came, and OBJECT ENCODING calls a
/// value compact. A block has limits of its own beside them: see collection.hpp.
struct encoding_limits {
    std::size_t hash_fields = 512;         ///< hash-max-listpack-entries
    std::size_t hash_text = 64;            ///< hash-max-listpack-value, bytes
    std::size_t set_integers = 512;        ///< set-max-intset-entries
    std::size_t set_members = 128;         ///< set-max-listpack-entries
    std::size_t set_text = 64;             ///< set-max-listpack-value, bytes
    std::size_t sorted_set_members = 128;  ///< zset-max-listpack-entries
    std::size_t sorted_set_text = 64;      ///< zset-max-listpack-value, bytes
    /// list-max-listpack-size: elements, or from -1 to -5 4 to 64 KiB.
    std::int64_t list_size = -2;
};

}  // namespace eddy::cache
