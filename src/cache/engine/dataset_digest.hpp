// DEBUG DIGEST: forty digits that are the same for the same keys and values, whatever their order
// and encoding, here and in Redis. Test suites compare data sets by them.
#pragma once

#include "base/sha1.hpp"
#include "cache/keyspace/dataset.hpp"

namespace eddy::cache {

/// Of one value, with the fact that it has an expiry. O(its size).
sha1_digest value_digest(environment& env, const entry& of);
/// Of all databases. O(all there is).
sha1_digest dataset_digest(dataset& of);

}  // namespace eddy::cache
