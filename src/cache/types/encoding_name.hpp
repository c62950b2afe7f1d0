// OBJECT ENCODING: the name of the encoding that Redis would use for a value.
#pragma once

#include "cache/keyspace/environment.hpp"

#include <cstdint>
#include <string_view>

namespace eddy::cache {

/// O(elements) of a list, up to the most that Redis would hold in one listpack, and of a hash with
/// expiring fields; otherwise O(1).
std::string_view encoding_name(environment& env, entry& e);

/// How a list's size is found: by all its elements, up to a listpack's, or in O(1) by its blocks
/// and its first element, which may be an integer that takes less room in a listpack.
enum class list_measure : std::uint8_t { exact, fast };

/// Before a command removes elements of a list or replaces one: Redis keeps one that was too large
/// for a listpack as a quicklist.
void before_shrinking(const environment& env, entry& list_entry, list_measure how);
/// After it, where the list is not empty: a quicklist becomes a listpack again when it fits half of
/// one. Redis also wants it to be in one node, which is not known here.
void after_shrinking(const environment& env, entry& list_entry, list_measure how);

}  // namespace eddy::cache
