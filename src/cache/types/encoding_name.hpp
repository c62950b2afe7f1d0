// OBJECT ENCODING: the name of the encoding that Redis would use for a value.
#pragma once

#include "cache/keyspace/environment.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace eddy::cache {

/// O(elements) for a list, up to the limit of a listpack, and for a hash with expiring fields;
/// otherwise O(1).
std::string_view encoding_name(environment& env, entry& e);

/// Measure of a list's size: by all its elements, up to a listpack's limit, or in O(1) by its
/// blocks and its first element, which may be an integer with a smaller encoding in a listpack.
enum class list_measure : std::uint8_t { exact, fast };

namespace detail {
/// At most so many elements are in half of a listpack, which has at most 64 KiB: each takes at
/// least two bytes.
inline constexpr std::size_t most_of_half_listpack = 16 * 1024;
void note_large_list(const environment& env, entry& list_entry, list_measure how);
void note_small_list(const environment& env, entry& list_entry, list_measure how);
}  // namespace detail

/// To be called before a command removes or replaces elements of a list: a list too large for a
/// listpack stays a quicklist in Redis.
inline void before_shrinking(const environment& env, entry& list_entry, list_measure how) {
    if (!list_entry.has(entry::large_list)) detail::note_large_list(env, list_entry, how);
}
/// To be called after it, if the list is not empty: a quicklist becomes a listpack again when it
/// fits half of one. Redis also requires a single node, which is unknown here.
inline void after_shrinking(const environment& env, entry& list_entry, list_measure how) {
    if (list_entry.has(entry::large_list) &&
        list_entry.pointer<list>()->size() <= detail::most_of_half_listpack)
        detail::note_small_list(env, list_entry, how);
}

}  // namespace eddy::cache
