// Asymmetric fences, membarrier(2), and the check of a large ring's first lap.
#include "shm/channel.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace eddy::shm {
namespace {

long membarrier(int command) noexcept { return ::syscall(SYS_membarrier, command, 0U, 0); }

}  // namespace

bool has_asymmetric_fence() noexcept {
    static const bool registered = membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) == 0;
    return registered;
}

void fence_everywhere() noexcept {
    const long failed = membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
    EDDY_ASSERT(failed == 0);
}

bool channel::are_pages_written(std::uint64_t to) noexcept {
    if (!pages_.reach(to)) return false;
    in_.written = pages_.known();
    return true;
}

}  // namespace eddy::shm
