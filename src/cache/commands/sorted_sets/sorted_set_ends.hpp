// Sorted set ends: the parts shared by the commands that pop members.
#pragma once

#include "cache/engine/call.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace eddy::cache {

enum class score_end : std::uint8_t { lowest, highest };

/// Layout of popped members in a reply.
enum class pop_shape : std::uint8_t {
    flat,       ///< member, score, member, score ..
    pairs,      ///< an array for each
    behind_key  ///< flat, and the key first
};

/// Replies with up to `count` members from one end and their scores, and removes them; removes the
/// key with the last one. The slot must hold a sorted set.
void pop_members(call& c, std::string_view key, std::uint64_t hash, call::slot* place,
                 score_end from, std::size_t count, pop_shape shape);

/// Arguments of ZMPOP and BZMPOP.
struct sorted_set_pop {
    std::size_t first_key;
    std::size_t keys;
    score_end from;
    std::size_t count;
};
/// Parses "numkeys key ... MIN|MAX [COUNT count]" from arg(first) on; none, with the error replied,
/// if malformed.
std::optional<sorted_set_pop> parse_zmpop(call& c, std::size_t first);
/// Pops from the first existing key, and replies; false, with no reply, when no key exists.
bool pop_from_first(call& c, const sorted_set_pop& what);

}  // namespace eddy::cache
