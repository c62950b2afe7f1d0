// Bounds of the reserved descriptors, from the limit of open files.
#include "base/files/descriptors.hpp"

#include <fcntl.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <utility>

namespace eddy::descriptors {
namespace {

std::atomic<int> waiting{0};

/// Asked for each time, since prlimit(2) changes it from outside. Without any it is INT_MAX.
int limit() noexcept {
    rlimit now{};
    if (getrlimit(RLIMIT_NOFILE, &now) != 0) return INT_MAX;
    return static_cast<int>(std::min<rlim_t>(now.rlim_cur, INT_MAX));
}

/// The lowest free descriptor; none where all are taken.
unique_fd lowest_free() noexcept { return unique_fd(::open("/", O_PATH | O_CLOEXEC)); }

}  // namespace

std::string explain_shortage(std::error_code error) {
    if (error == std::errc::too_many_files_open)
        return "this process may have " + std::to_string(limit()) +
               " open files, and has them; raise the limit (LimitNOFILE= of its service, `ulimit "
               "-n` before it starts) or close connections";
    if (error == std::errc::too_many_files_open_in_system)
        return "this machine has as many open files as it may; raise that limit (sysctl "
               "fs.file-max)";
    return {};
}

int first_reserved(use kind) noexcept {
    const int all = limit();
    return kind == use::client ? all - std::min(reserved, all / 2)
                               : all - std::min(reserved_for_files, all / 4);
}

bool has_room(use kind) noexcept {
    const unique_fd probe = lowest_free();
    return probe && !in_reserve(probe.get(), kind);
}

void lower(unique_fd& client) noexcept {
    if (!client || !in_reserve(client.get(), use::client)) return;
    unique_fd copy(::fcntl(client.get(), F_DUPFD_CLOEXEC, 0));
    if (copy && copy.get() < client.get()) client = std::move(copy);
}

waiting_connection::waiting_connection() noexcept : may_wait_(++waiting <= most) {}

waiting_connection::~waiting_connection() { --waiting; }

}  // namespace eddy::descriptors
