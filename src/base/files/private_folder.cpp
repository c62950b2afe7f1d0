// Checks of a folder by its descriptor.
#include "base/files/private_folder.hpp"

#include <eddy/base/unique_fd.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace eddy {

std::string own_folder_in_tmp() { return "/tmp/eddy-" + std::to_string(::geteuid()); }

std::string private_folder_fault(const std::string& path) {
    // The folder itself is looked at, not what its name may mean a moment later; no permission is
    // needed for that.
    const unique_fd folder(::open(path.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!folder) {
        if (errno == ENOENT) return {};
        if (errno == ENOTDIR || errno == ELOOP) return "is a link or no folder";
        return "cannot be opened: " + std::generic_category().message(errno);
    }
    struct stat info{};
    if (::fstat(folder.get(), &info) != 0)
        return "cannot be examined: " + std::generic_category().message(errno);
    if (info.st_uid != ::geteuid()) return "belongs to user id " + std::to_string(info.st_uid);
    if ((info.st_mode & 077U) != 0) return "lets other users in (chmod 700 mends that)";
    return {};
}

}  // namespace eddy
