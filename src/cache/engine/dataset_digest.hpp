// DEBUG DIGEST: forty digits that are the same for the same keys and values, whatever their order
// and encoding, here and in Redis. Test suites compare data sets by them.
#pragma once

#include "cache/engine/engine_state.hpp"
#include "cache/types/sha1.hpp"

namespace eddy::cache {

/// Of one value, with the fact that it has an expiry. O(its size).
digest value_digest(environment& env, const entry& of);
/// Of all databases. O(all there is).
digest dataset_digest(engine::state& of);

}  // namespace eddy::cache
