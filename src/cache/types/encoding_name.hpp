// OBJECT ENCODING: the name of the encoding that Redis would use for a value.
#pragma once

#include "cache/keyspace/environment.hpp"

#include <string_view>

namespace eddy::cache {

/// O(elements), up to the most that Redis would hold packed.
std::string_view encoding_name(environment& env, entry& e);

}  // namespace eddy::cache
