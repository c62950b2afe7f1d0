// Listening Unix sockets with a file: the name before the path, its lock, and the rename.
#include "io/posix/unix_listener.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <utility>

namespace eddy {
namespace {

constexpr std::size_t path_offset = offsetof(sockaddr_un, sun_path);
constexpr std::size_t longest_path = sizeof(sockaddr_un::sun_path) - 1;
constexpr std::string_view bound_suffix = ".eddy";
constexpr std::string_view lock_suffix = ".eddy-lock";

/// Bytes of a name that fits behind /proc/self/fd/NUMBER/, with any number.
constexpr std::size_t longest_bound_name = 82;

/// Attempts to lock a path; each but the last finds that another one has just been released.
constexpr int max_lock_attempts = 16;

/// A path's folder, with the '/' if there is one, and its last component.
struct path_parts {
    std::string_view folder;
    std::string_view base;
};

path_parts split(std::string_view path) noexcept {
    const std::size_t begin = path.rfind('/') + 1;
    return {path.substr(0, begin), path.substr(begin)};
}

/// FNV-1a.
std::uint64_t hash_of(std::string_view text) noexcept {
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const char each : text) hash = (hash ^ static_cast<unsigned char>(each)) * 0x100000001b3;
    return hash;
}

/// Name beside the path, of at most longest_bound_name bytes. It depends on the last component
/// alone, so that each spelling of a path has the same.
std::string hidden_name(std::string_view base) {
    if (base.size() + 1 + bound_suffix.size() <= longest_bound_name)
        return std::string(".").append(base).append(bound_suffix);
    char digits[17];
    std::snprintf(digits, sizeof(digits), "%016llx",
                  static_cast<unsigned long long>(hash_of(base)));
    return std::string(".eddy-").append(digits);
}

result<endpoint> hidden_address(int folder, const path_parts& path, const std::string& name) {
    std::string whole = std::string(path.folder).append(name);
    if (whole.size() > longest_path) whole = "/proc/self/fd/" + std::to_string(folder) + "/" + name;
    return endpoint::unix_path(whole);
}

/// True if no process has the socket of this file. The probe is of another type, so a bound socket,
/// even before it listens, refuses it with EPROTOTYPE; a probe of the same type would be a
/// connection to the listener.
bool is_dead(const endpoint& local) noexcept {
    const unique_fd probe(::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    return probe && ::connect(probe.get(), local.data(), local.size()) < 0 && errno == ECONNREFUSED;
}

/// EADDRINUSE unless the name is free, or names a dead socket: no other file may be replaced. `at`
/// is its address. Else stat(2)'s errors, such as EACCES for the folder.
result<> check_free(int folder, const std::string& name, const endpoint& at) noexcept {
    struct stat info;
    if (::fstatat(folder, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? result<>() : fail_errno();
    return S_ISSOCK(info.st_mode) && is_dead(at) ? result<>() : fail_errno(EADDRINUSE);
}

/// Lock on a path: a file beside it that goes with the lock. `folder` must outlive it.
class path_lock {
public:
    /// EADDRINUSE while another process, or thread, has it.
    static result<path_lock> take(int folder, std::string_view base) {
        std::string name = std::string(".").append(base).append(lock_suffix);
        for (int attempt = 0; attempt < max_lock_attempts; ++attempt) {
            unique_fd file(::openat(
                folder, name.c_str(),
                O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600));
            if (!file && (errno == ELOOP || errno == EISDIR)) return fail_errno(EADDRINUSE);
            if (!file) return fail_errno();
            // Without locks in the file system, only a simultaneous start goes undetected.
            if (::flock(file.get(), LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
                return fail_errno(EADDRINUSE);
            struct stat locked;
            struct stat there;
            if (::fstat(file.get(), &locked) < 0) return fail_errno();
            if (!S_ISREG(locked.st_mode) || locked.st_size > 0) return fail_errno(EADDRINUSE);
            if (::fstatat(folder, name.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0 &&
                there.st_dev == locked.st_dev && there.st_ino == locked.st_ino)
                return path_lock(folder, std::move(name), std::move(file));
        }
        return fail_errno(EADDRINUSE);
    }
    path_lock(path_lock&&) = default;
    path_lock& operator=(path_lock&&) = delete;
    ~path_lock() {
        if (file_) ::unlinkat(folder_, name_.c_str(), 0);
    }

private:
    path_lock(int folder, std::string name, unique_fd file) noexcept
        : folder_(folder), name_(std::move(name)), file_(std::move(file)) {}

    int folder_;
    std::string name_;
    unique_fd file_;
};

/// Gives the file its path, which is locked.
result<> publish(int folder, const std::string& hidden, const std::string& base,
                 const endpoint& local) noexcept {
    if (::renameat2(folder, hidden.c_str(), folder, base.c_str(), RENAME_NOREPLACE) == 0) return {};
    const bool is_unknown = errno == EINVAL || errno == ENOSYS;  // to the file system
    if (errno != EEXIST && !is_unknown) return fail_errno();
    if (auto free = check_free(folder, base, local); !free) return free;
    if (::renameat(folder, hidden.c_str(), folder, base.c_str()) == 0) return {};
    // A dead socket that is another user's, or mounted.
    const bool is_fixed = errno == EPERM || errno == EACCES || errno == EBUSY;
    return fail_errno(is_fixed ? EADDRINUSE : errno);
}

/// Binds, listens and publishes, with the path locked.
result<socket_file> listen_hidden(int socket, int folder, const path_parts& path,
                                  const endpoint& local, const listen_options& options) {
    const std::string base(path.base);
    const std::string hidden = hidden_name(base);
    const auto address = hidden_address(folder, path, hidden);
    if (!address) return fail(address.error());
    // Left by a process that was killed: the lock excludes all others.
    if (check_free(folder, hidden, *address)) ::unlinkat(folder, hidden.c_str(), 0);
    if (::bind(socket, address->data(), address->size()) < 0) return fail_errno();
    const auto complete = [&]() -> result<socket_file> {
        // Others that may write to the folder may have put a link in its place: it is opened
        // without following one, and changed by its descriptor, which chmod(2) alone can do with
        // O_PATH.
        const unique_fd file(::openat(folder, hidden.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
        struct stat info;
        if (!file || ::fstat(file.get(), &info) < 0) return fail_errno();
        if (!S_ISSOCK(info.st_mode)) return fail_errno(EADDRINUSE);
        const std::string opened = "/proc/self/fd/" + std::to_string(file.get());
        if (options.unix_mode >= 0 &&
            ::chmod(opened.c_str(), static_cast<mode_t>(options.unix_mode)) < 0)
            return fail_errno();
        if (::listen(socket, options.backlog) < 0) return fail_errno();
        if (auto done = publish(folder, hidden, base, local); !done) return fail(done.error());
        return socket_file{info.st_dev, info.st_ino};
    };
    auto file = complete();
    if (!file) ::unlinkat(folder, hidden.c_str(), 0);
    return file;
}

}  // namespace

std::string socket_path(const endpoint& local) {
    if (!local.is_unix() || local.size() <= path_offset) return {};
    sockaddr_un address;
    std::memcpy(&address, local.data(), sizeof(address));
    return {address.sun_path, ::strnlen(address.sun_path, local.size() - path_offset)};
}

bool is_abstract(const endpoint& local) noexcept {
    if (!local.is_unix() || local.size() <= path_offset) return false;
    sockaddr_un address;
    std::memcpy(&address, local.data(), sizeof(address));
    return address.sun_path[0] == '\0';
}

std::string bound_name(std::string_view path) {
    const path_parts parts = split(path);
    return std::string(parts.folder).append(hidden_name(parts.base));
}

endpoint published(const endpoint& bound) noexcept {
    if (!bound.is_unix() || bound.size() <= path_offset) return bound;
    sockaddr_un address;
    std::memcpy(&address, bound.data(), sizeof(address));
    const std::string_view path(address.sun_path,
                                ::strnlen(address.sun_path, bound.size() - path_offset));
    const path_parts parts = split(path);
    if (!parts.base.starts_with('.') || !parts.base.ends_with(bound_suffix) ||
        parts.base.size() < bound_suffix.size() + 2)
        return bound;
    const std::size_t begin = parts.folder.size();
    const std::size_t size = parts.base.size() - 1 - bound_suffix.size();
    std::memmove(address.sun_path + begin, address.sun_path + begin + 1, size);
    address.sun_path[begin + size] = '\0';
    return {reinterpret_cast<const sockaddr*>(&address),
            static_cast<socklen_t>(path_offset + begin + size + 1)};
}

result<socket_file> listen_at_path(int socket, const endpoint& local,
                                   const listen_options& options) {
    const std::string text = socket_path(local);
    const path_parts path = split(text);
    if (path.base.empty()) return fail_errno(ENOENT);
    if (path.base == "." || path.base == "..") return fail_errno(EADDRINUSE);
    const std::string opened = path.folder.empty() ? "." : std::string(path.folder);
    const unique_fd folder(::open(opened.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!folder) return fail_errno();
    // Before a file is made: as bind(2), it fails so also in a folder that cannot be written to.
    if (auto free = check_free(folder.get(), std::string(path.base), local); !free)
        return fail(free.error());
    const auto lock = path_lock::take(folder.get(), path.base);
    if (!lock) return fail(lock.error());
    return listen_hidden(socket, folder.get(), path, local, options);
}

}  // namespace eddy
