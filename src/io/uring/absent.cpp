// Substitute of the io_uring io-backend in a build with -DEDDY_URING=OFF.
#include "io/io_backend.hpp"

namespace eddy {

result<std::unique_ptr<io_backend>> make_uring_backend(const loop_options&) {
    return fail(errc::unsupported);
}

}  // namespace eddy
