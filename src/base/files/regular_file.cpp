// Kinds of files, and the checks before and after open(2).
#include "base/files/regular_file.hpp"

#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace eddy {
namespace {

constexpr std::size_t read_step = 64 * 1024;

/// openat2(2) fails with EAGAIN when a rename meets its way through a "..": so often it is
/// repeated.
constexpr int rename_retries = 16;

/// Devices of memory that take and yield at once, and never block: see null(4) and full(4).
constexpr unsigned memory_devices = 1;
constexpr unsigned null_device = 3;
constexpr unsigned full_device = 7;

class kinds final : public std::error_category {
public:
    const char* name() const noexcept override { return "eddy.file"; }
    std::string message(int kind) const override {
        return std::string("it is a ") + noun(static_cast<mode_t>(kind)) +
               ", and a regular file is needed";
    }

private:
    static const char* noun(mode_t kind) noexcept {
        switch (kind) {
            case S_IFIFO: return "FIFO";
            case S_IFSOCK: return "socket";
            case S_IFCHR: return "character device";
            case S_IFBLK: return "block device";
            default: return "special file";
        }
    }
};

bool is_harmless(const struct stat& about, int flags) noexcept {
    if (S_ISREG(about.st_mode)) return true;
    if (!S_ISCHR(about.st_mode) || major(about.st_rdev) != memory_devices) return false;
    const unsigned device = minor(about.st_rdev);
    return device == null_device || (device == full_device && (flags & O_ACCMODE) == O_WRONLY);
}

}  // namespace

std::error_code not_regular(mode_t mode) noexcept {
    static const kinds category;
    if (S_ISDIR(mode)) return errno_code(EISDIR);
    return {static_cast<int>(mode & S_IFMT), category};
}

result<unique_fd> open_regular(const char* path, int flags, mode_t mode) {
    struct stat about{};
    // First by name: opening some devices has an effect of its own.
    if (::stat(path, &about) == 0 && !is_harmless(about, flags))
        return fail(not_regular(about.st_mode));
    int opened = -1;
    do opened = ::open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, mode);
    while (opened < 0 && errno == EINTR);
    unique_fd fd(opened);
    if (!fd) return fail_errno();
    // Another file may have taken the name meanwhile.
    if (::fstat(fd.get(), &about) != 0) return fail_errno();
    if (!is_harmless(about, flags)) return fail(not_regular(about.st_mode));
    // io_uring would fail with EAGAIN where a file with this flag has to wait for the disk.
    const int status = ::fcntl(fd.get(), F_GETFL);
    if (status < 0 || ::fcntl(fd.get(), F_SETFL, status & ~O_NONBLOCK) < 0) return fail_errno();
    return fd;
}

result<unique_fd> open_beneath(int folder, const char* path, int flags, bool cached) {
    open_how how{};
    how.flags = static_cast<unsigned>(flags | O_CLOEXEC);
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
    if (cached) how.resolve |= RESOLVE_CACHED;
    for (int tries = 0;;) {
        const long opened = ::syscall(SYS_openat2, folder, path, &how, sizeof how);
        if (opened >= 0) return unique_fd(static_cast<int>(opened));
        const bool again = errno == EINTR || (errno == EAGAIN && !cached);
        if (!again || ++tries > rename_retries) return fail_errno();
    }
}

result<unique_fd> open_regular_beneath(int folder, const char* path, int flags, bool cached) {
    struct stat about{};
    const auto seen = open_beneath(folder, path, O_PATH, cached);
    if (!seen) return fail(seen.error());
    if (::fstat(seen->get(), &about) != 0) return fail_errno();
    if (!S_ISREG(about.st_mode)) return fail(not_regular(about.st_mode));
    auto opened = open_beneath(folder, path, flags | O_NONBLOCK | O_NOCTTY, cached);
    if (!opened) return fail(opened.error());
    // Another file may have taken the name meanwhile.
    if (::fstat(opened->get(), &about) != 0) return fail_errno();
    if (!S_ISREG(about.st_mode)) return fail(not_regular(about.st_mode));
    // As in open_regular().
    if (::fcntl(opened->get(), F_SETFL, flags) < 0) return fail_errno();
    return opened;
}

result<std::string> read_regular(const std::string& path, std::size_t most) {
    const result<unique_fd> file = open_regular(path.c_str(), O_RDONLY);
    if (!file) return fail(file.error());
    // Some files of /proc are regular by their mode, and wait for events.
    if (::fcntl(file->get(), F_SETFL, O_RDONLY | O_NONBLOCK) < 0) return fail_errno();
    std::string text;
    while (text.size() <= most) {
        const std::size_t before = text.size();
        text.resize(std::min(before + read_step, most + 1));
        const ssize_t got = ::read(file->get(), text.data() + before, text.size() - before);
        const int error = errno;
        text.resize(before + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
        if (got == 0) return text;
        if (got < 0 && error != EINTR) return fail_errno(error);
    }
    return fail(errc::limit_reached);
}

}  // namespace eddy
