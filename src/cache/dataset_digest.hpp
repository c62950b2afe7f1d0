// DEBUG DIGEST: forty digits that are the same for the same keys and values, whatever their order
// and encoding, here and in Redis. Test suites compare data sets by them.
#pragma once

#include "cache/engine_state.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace eddy::cache {

using digest = std::array<std::uint8_t, 20>;

/// SHA-1 (FIPS 180-4), which is good for telling data apart, not for keeping secrets.
digest sha1(std::string_view bytes);

/// Of one value, with the fact that it has an expiry. O(its size).
digest value_digest(environment& env, const entry& of);
/// Of all databases. O(all there is).
digest dataset_digest(engine::state& of);

std::string hexadecimal(const digest& of);

}  // namespace eddy::cache
