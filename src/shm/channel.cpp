// Asymmetric fences: membarrier(2).
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

}  // namespace eddy::shm
