// Hash slots of Redis Cluster.
#pragma once

#include <string_view>

namespace eddy::cache {

inline constexpr unsigned cluster_slot_count = 16384;

/// The slot of a key: of its hash tag, the text between the first braces, if there is one.
unsigned cluster_slot_of(std::string_view key) noexcept;

}  // namespace eddy::cache
