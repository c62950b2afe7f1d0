// Substitute of the io_uring backend in a build with -DEDDY_URING=OFF.
#include "io/backend.hpp"

namespace eddy {

result<std::unique_ptr<backend>> make_uring_backend(const loop_options&) {
    return fail(errc::unsupported);
}

}  // namespace eddy
