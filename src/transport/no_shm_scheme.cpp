// Scheme shm:// in a build without the layer shm: an error that says so.
#include "transport/schemes.hpp"

namespace eddy::transport {

constinit const scheme_entry shm_entry = {
    "shm",
    scheme::shm,
    true,
    nullptr,
    nullptr,
    nullptr,
    nullptr,
    nullptr,
    "shm:// needs the shm layer (shared memory), which this build does not have; use "
    "unix://"};

}  // namespace eddy::transport
