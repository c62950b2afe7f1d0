// DEBUG DIGEST: forty digits that depend on keys and values only, not on their order and encoding,
// and are the same in Redis. Test suites compare datasets by them.
#pragma once

#include "base/sha1.hpp"
#include "cache/keyspace/dataset.hpp"

namespace eddy::cache {

/// Digest of one value and whether it expires. O(its size).
sha1_digest value_digest(environment& env, const entry& of);
/// Digest of all databases. O(size of the dataset).
sha1_digest dataset_digest(dataset& of);

}  // namespace eddy::cache
