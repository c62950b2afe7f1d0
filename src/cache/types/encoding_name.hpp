// OBJECT ENCODING: the name of the encoding that Redis would use for a value.
#pragma once

#include "cache/keyspace/environment.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace eddy::cache {

/// O(elements) of a list, up to the most that Redis would hold in one listpack, and of a hash with
/// expiring fields; otherwise O(1).
std::string_view encoding_name(environment& env, entry& e);

/// How a list's size is found: by all its elements, up to a listpack's, or in O(1) by its blocks
/// and its first element, which may be an integer that takes less room in a listpack.
enum class list_measure : std::uint8_t { exact, fast };

namespace detail {
/// No half of a listpack, of 64 KiB at most, has more: each takes at least two bytes.
inline constexpr std::size_t most_of_half_listpack = 16 * 1024;
void note_large_list(const environment& env, entry& list_entry, list_measure how);
void note_small_list(const environment& env, entry& list_entry, list_measure how);
}  // namespace detail

/// Before a command removes elements of a list or replaces one: Redis keeps one that was too large
/// for a listpack as a quicklist.
inline void before_shrinking(const environment& env, entry& list_entry, list_measure how) {
    if (!list_entry.has(entry::large_list)) detail::note_large_list(env, list_entry, how);
}
/// After it, where the list is not empty: a quicklist becomes a listpack again when it fits half of
/// one. Redis also wants it to be in one node, which is not known here.
inline void after_shrinking(const environment& env, entry& list_entry, list_measure how) {
    if (list_entry.has(entry::large_list) &&
        list_entry.pointer<list>()->size() <= detail::most_of_half_listpack)
        detail::note_small_list(env, list_entry, how);
}

}  // namespace eddy::cache
