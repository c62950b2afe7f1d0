// Closing of an owned descriptor.
#include <eddy/base/unique_fd.hpp>

#include <unistd.h>

namespace eddy {

void unique_fd::reset(int fd) noexcept {
    // Linux frees the descriptor even when close reports EINTR or EIO: never retry.
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
}

}  // namespace eddy
