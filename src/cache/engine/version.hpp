// The Redis version whose behaviour the cache follows, by which clients choose features.
#pragma once

#include <string_view>

namespace eddy::cache {

inline constexpr std::string_view compatible_version = "7.2.4";

}  // namespace eddy::cache
