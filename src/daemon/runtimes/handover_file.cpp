// Creation of a handover's file.
#include "daemon/runtimes/handover_file.hpp"

#include <eddy/base/unique_fd.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>

namespace eddy::daemon {

runtime::handover open_handover_file(const std::string& folder) {
    runtime::handover made;
    made.folder = folder;
    made.file = unique_fd(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    if (!made.file) {
        // Not every file system has such files.
        std::string name = folder + "/handover-XXXXXX";
        made.file = unique_fd(::mkostemp(name.data(), O_CLOEXEC));
        if (made.file) ::unlink(name.c_str());
    }
    if (!made.file) made.fault = std::system_category().message(errno);
    made.path = fmt::format("/proc/self/fd/{}", made.file.get());
    return made;
}

}  // namespace eddy::daemon
