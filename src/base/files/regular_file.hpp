// Regular files named by users: opened without blocking; every other kind of file is refused.
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/base/unique_fd.hpp>

#include <fcntl.h>
#include <sys/types.h>

#include <cstddef>
#include <string>
#include <system_error>

namespace eddy {

/// open(2) of a regular file, with O_CLOEXEC and O_NOCTTY. It never waits, as the open of a FIFO
/// does, and neither do reads and writes of what it yields, but for the disk. Other kinds of files
/// are not opened at all, except /dev/null, and /dev/full for writing. Errors are open(2)'s, EISDIR
/// for a folder, and not_regular(). Any thread.
result<unique_fd> open_regular(const char* path, int flags, mode_t mode = 0666);

/// openat2(2) below the folder that the descriptor `folder` is of: no "..", symbolic link or mount
/// of /proc in `path` leads out of it (EXDEV), whatever is renamed meanwhile. `flags` are open(2)'s
/// without O_CREAT; O_CLOEXEC is added. With `cached` it does not wait for the disk, and fails with
/// EAGAIN where that would be needed. Fails with ENOSYS before Linux 5.6. Any thread.
result<unique_fd> open_beneath(int folder, const char* path, int flags, bool cached);

/// The same for a regular file alone. Other kinds are not opened at all, since a FIFO's writers,
/// for one, would notice; errors are EISDIR for a folder, and not_regular(). Any thread.
result<unique_fd> open_regular_beneath(int folder, const char* path, int flags, bool cached);

/// The content of a regular file, at most `most` bytes; errc::limit_reached for a larger one. Other
/// errors are open_regular()'s and read(2)'s: EAGAIN for a file of /proc that waits for events. It
/// waits for the disk. Any thread.
result<std::string> read_regular(const std::string& path, std::size_t most);

/// The error that names the kind of a file which is none of a regular one: "it is a FIFO, and ...".
/// `mode` is stat(2)'s.
std::error_code not_regular(mode_t mode) noexcept;

}  // namespace eddy
