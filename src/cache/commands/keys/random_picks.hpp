// Random elements (SRANDMEMBER, HRANDFIELD) and scans (SSCAN, HSCAN) of a collection, as replies.
#pragma once

#include "cache/types/collection.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace eddy::cache {

struct call;

enum class picked : std::uint8_t { fields, fields_and_values };

/// The argument as a count; negative if elements may repeat. None with the error replied.
std::optional<std::int64_t> random_count(call& c, std::size_t at);

/// Replies with `count` distinct random elements, or all; a negative count means -`count` elements
/// that may repeat. O(count) with repetition and for few of many, else O(size).
void reply_random(call& c, const collection& from, std::int64_t count, picked what);

/// The cursor "0" and no elements.
void reply_empty_scan(call& c);

/// One step of SSCAN or HSCAN, with the options from args[3] on.
void reply_scan(call& c, const collection& over, std::uint64_t cursor);

}  // namespace eddy::cache
