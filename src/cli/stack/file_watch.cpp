// Watch of folders by inotify.
#include "cli/stack/file_watch.hpp"

#include <eddy/base/assert.hpp>

#include <fmt/format.h>
#include <fnmatch.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

namespace eddy::cli {
namespace {

/// A file that is written in place is closed at the end; one that is replaced is renamed.
constexpr std::uint32_t followed_events =
    IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_CREATE | IN_ATTRIB | IN_MOVE_SELF;

/// Editors and tools write several files, or one in several steps.
constexpr int settled_ms = 100;

/// Between two attempts to follow a folder that is not there.
constexpr int lost_ms = 500;

std::unexpected<std::string> failure(std::string_view what) {
    return std::unexpected(fmt::format("{}: {}", what, std::generic_category().message(errno)));
}

std::string folder_of(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    return slash == 0 || slash == std::string::npos ? "/" : path.substr(0, slash);
}

}  // namespace

std::expected<void, std::string> file_watch::follow(const std::vector<std::string>& files,
                                                    const std::vector<std::string>& patterns) {
    // Watches of folders that are not needed any more do no harm.
    if (!inotify_) inotify_ = unique_fd(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    if (!inotify_) return failure("files cannot be watched");
    files_ = {files.begin(), files.end()};
    patterns_ = patterns;
    std::set<std::string> folders;
    for (const std::vector<std::string>* const all : {&files, &patterns})
        for (const std::string& each : *all) folders.insert(folder_of(each));
    seen_.clear();
    for (const std::string& each : files_) {
        seen_.emplace(each, fingerprint_of(each));
        std::error_code error;
        const std::filesystem::path real = std::filesystem::canonical(each, error);
        if (!error) folders.insert(folder_of(real.string()));
    }
    lost_.clear();
    for (const std::string& each : folders)
        if (auto followed = follow_folder(each); !followed) return followed;
    return {};
}

std::expected<void, std::string> file_watch::follow_folder(const std::string& path) {
    const int added = ::inotify_add_watch(inotify_.get(), path.c_str(), followed_events);
    if (added >= 0)
        folders_[added] = path;
    else if (errno == ENOENT || errno == ENOTDIR)
        lost_.insert(path);
    else
        return failure(fmt::format("the folder {} cannot be watched", path));
    return {};
}

/// Follows folders that are there again, which may have other files.
std::expected<void, std::string> file_watch::follow_lost(std::set<std::string>& changed) {
    for (const std::string& each : std::exchange(lost_, {})) {
        if (auto followed = follow_folder(each); !followed) return followed;
        if (!lost_.contains(each)) changed.insert(each);
    }
    return {};
}

file_watch::fingerprint file_watch::fingerprint_of(const std::string& path) {
    struct stat about{};
    if (::stat(path.c_str(), &about) != 0) return {};
    return {about.st_dev, about.st_ino, about.st_size,
            about.st_ctim.tv_sec * 1'000'000'000LL + about.st_ctim.tv_nsec};
}

/// Adds files that are other ones now, or others' content, by whatever name that happened.
void file_watch::add_replaced(std::set<std::string>& changed) {
    for (auto& [path, before] : seen_) {
        const fingerprint now = fingerprint_of(path);
        if (now == before) continue;
        before = now;
        changed.insert(path);
    }
}

bool file_watch::is_followed(const std::string& path) const {
    if (files_.contains(path)) return true;
    for (const std::string& each : patterns_)
        if (::fnmatch(each.c_str(), path.c_str(), FNM_PATHNAME) == 0) return true;
    return false;
}

std::expected<void, std::string> file_watch::read_events(std::set<std::string>& changed) {
    alignas(inotify_event) char buffer[16 * 1024];
    for (;;) {
        const ssize_t got = ::read(inotify_.get(), buffer, sizeof buffer);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && errno == EAGAIN) return {};
        if (got <= 0) return failure("the watch of the files ended");
        for (std::size_t at = 0; at < static_cast<std::size_t>(got);) {
            inotify_event about;
            std::memcpy(&about, buffer + at, sizeof about);
            const char* const name = buffer + at + sizeof about;
            at += sizeof about + about.len;
            if ((about.mask & IN_Q_OVERFLOW) != 0) changed.insert(files_.begin(), files_.end());
            const auto folder = folders_.find(about.wd);
            if (folder == folders_.end()) continue;
            // Its path leads to another folder, or to none.
            if ((about.mask & (IN_IGNORED | IN_MOVE_SELF)) != 0) lost_.insert(folder->second);
            if (about.len == 0) continue;
            const std::string path = folder->second == "/"
                                         ? fmt::format("/{}", name)
                                         : fmt::format("{}/{}", folder->second, name);
            if (is_followed(path)) changed.insert(path);
        }
    }
}

std::expected<std::set<std::string>, std::string> file_watch::wait() {
    EDDY_ASSERT(inotify_);
    std::set<std::string> changed;
    bool is_settling = false;
    for (;;) {
        pollfd on{.fd = inotify_.get(), .events = POLLIN, .revents = 0};
        const int ready = ::poll(&on, 1, is_settling ? settled_ms : lost_.empty() ? -1 : lost_ms);
        if (ready < 0 && errno != EINTR) return failure("the watch of the files ended");
        if (ready < 0) continue;
        is_settling = ready > 0;
        if (ready == 0)
            if (auto followed = follow_lost(changed); !followed)
                return std::unexpected(std::move(followed.error()));
        if (ready == 0) add_replaced(changed);
        if (ready == 0 && !changed.empty()) return changed;
        if (ready == 0) continue;
        if (auto read = read_events(changed); !read)
            return std::unexpected(std::move(read.error()));
    }
}

}  // namespace eddy::cli
