// System calls of a cluster's folder, and the form of a beat.
#include "cluster/folder/folder_files.hpp"

#include "cluster/member_codec.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <utility>

namespace eddy::cluster {
namespace {

/// First word and format of a beat. Fields that a newer Eddy appends are ignored.
constexpr std::string_view beat_head = "eddy-beat 1";

/// A file server may say so of a file that was replaced between its lookup and its use.
constexpr int stale_retries = 3;

/// Files are read by the daemons of other users.
constexpr mode_t shared_mode = 0644;

using cause = unreadable::cause;

std::unexpected<unreadable> unfit(std::string reason) {
    return std::unexpected(unreadable{cause::unfit, std::move(reason)});
}

std::unexpected<unreadable> unfit_by(int error) {
    switch (error) {
        case ENOENT: return std::unexpected(unreadable{cause::absent, "is absent"});
        case ESTALE: return std::unexpected(unreadable{cause::replaced, "was replaced meanwhile"});
        case ELOOP: return unfit("is a symbolic link");
        case ENXIO: return unfit("is a socket or a device");
        default:
            return unfit(fmt::format("cannot be read: {}", std::generic_category().message(error)));
    }
}

std::string_view kind_of(mode_t mode) noexcept {
    switch (mode & S_IFMT) {
        case S_IFDIR: return "is a folder";
        case S_IFIFO: return "is a FIFO";
        case S_IFLNK: return "is a symbolic link";
        case S_IFSOCK: return "is a socket";
        default: return "is a device";
    }
}

/// The reason against reading a file, empty for none.
std::string fault_of(const struct stat& about, std::size_t limit, const trusted_owners& owners) {
    if (!S_ISREG(about.st_mode)) return std::string(kind_of(about.st_mode));
    if (!owners.contains(about.st_uid))
        return fmt::format("belongs to user id {}, which is not trusted", about.st_uid);
    if ((about.st_mode & S_IWOTH) != 0) return "may be written by every user";
    if (about.st_nlink > 1) return "has another name, too (a hard link)";
    if (about.st_size > static_cast<off_t>(limit))
        return fmt::format("has {} bytes, at most {} may be", about.st_size, limit);
    return {};
}

int open_shared(int folder, const std::string& name) noexcept {
    int opened = -1;
    int retries = 0;
    do
        opened = ::openat(folder, name.c_str(),
                          O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    while (opened < 0 && (errno == EINTR || (errno == ESTALE && ++retries < stale_retries)));
    return opened;
}

/// Writes all; false with errno.
bool write_text(int to, std::string_view text) noexcept {
    while (!text.empty()) {
        const ssize_t written = ::write(to, text.data(), text.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return false;
        text.remove_prefix(static_cast<std::size_t>(written));
    }
    return true;
}

/// The next field of a line, and a number.
std::string_view next_field(std::string_view& line) noexcept {
    const std::size_t end = std::min(line.find(' '), line.size());
    const std::string_view field = line.substr(0, end);
    line.remove_prefix(std::min(end + 1, line.size()));
    return field;
}

bool parse_number(std::string_view field, std::uint64_t& to) noexcept {
    const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), to);
    return error == std::errc() && end == field.data() + field.size() && !field.empty();
}

}  // namespace

trusted_owners::trusted_owners(std::vector<uid_t> others) : all_(std::move(others)) {
    all_.push_back(::geteuid());
    all_.push_back(0);
}

bool trusted_owners::contains(uid_t owner) const noexcept {
    return std::ranges::find(all_, owner) != all_.end();
}

void trusted_owners::add(uid_t owner) {
    if (!contains(owner)) all_.push_back(owner);
}

file_stamp stamp_of(const struct stat& about) noexcept {
    constexpr std::int64_t second = 1'000'000'000;
    return {.inode = about.st_ino,
            .size = about.st_size,
            .modified = about.st_mtim.tv_sec * second + about.st_mtim.tv_nsec,
            .owner = about.st_uid,
            .mode = about.st_mode};
}

std::expected<file_content, unreadable> read_shared(int folder, const std::string& name,
                                                    std::size_t limit,
                                                    const trusted_owners& owners) {
    const unique_fd file(open_shared(folder, name));
    if (!file) return unfit_by(errno);
    struct stat about{};
    if (::fstat(file.get(), &about) != 0) return unfit_by(errno);
    if (auto fault = fault_of(about, limit, owners); !fault.empty()) return unfit(std::move(fault));
    file_content made;
    made.stamp = stamp_of(about);
    // One byte more shows the end, and growth. A short read of a regular file ends it, too.
    made.text.resize(static_cast<std::size_t>(about.st_size) + 1);
    std::size_t size = 0;
    for (bool has_more = true; has_more && size < made.text.size();) {
        const std::size_t wanted = made.text.size() - size;
        const ssize_t got = ::read(file.get(), made.text.data() + size, wanted);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return unfit_by(errno == ENOENT ? EIO : errno);
        size += static_cast<std::size_t>(got);
        has_more = static_cast<std::size_t>(got) == wanted;
    }
    if (size > static_cast<std::size_t>(about.st_size)) return unfit("grows while it is read");
    made.text.resize(size);
    return made;
}

std::optional<file_stamp> stamp_at(int folder, const std::string& name) noexcept {
    struct stat about{};
    if (::fstatat(folder, name.c_str(), &about, AT_SYMLINK_NOFOLLOW) != 0) return std::nullopt;
    return stamp_of(about);
}

result<file_stamp> replace_file(int folder, const std::string& fresh, const std::string& name,
                                std::string_view text) {
    // A file that a killed process, or another user, has left is not written to.
    constexpr int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    unique_fd file(::openat(folder, fresh.c_str(), flags, shared_mode));
    if (!file && errno == EEXIST) {
        ::unlinkat(folder, fresh.c_str(), 0);
        file.reset(::openat(folder, fresh.c_str(), flags, shared_mode));
    }
    if (!file) return fail_errno();
    struct stat about{};
    bool is_good = write_text(file.get(), text) && ::fstat(file.get(), &about) == 0;
    int error = errno;
    // A file server may say only now that it is full.
    if (::close(file.release()) != 0 && is_good && errno != EINTR) {
        is_good = false;
        error = errno;
    }
    if (is_good && ::renameat(folder, fresh.c_str(), folder, name.c_str()) == 0)
        return stamp_of(about);
    if (is_good) error = errno;
    ::unlinkat(folder, fresh.c_str(), 0);
    return fail(errno_code(error));
}

void announce_change(int folder, const std::string& name) noexcept {
    // Setting the same permissions again is an event. By a descriptor they are the file's own, also
    // if another user has put another file there.
    const unique_fd file(open_shared(folder, name));
    struct stat about{};
    if (file && ::fstat(file.get(), &about) == 0 && S_ISREG(about.st_mode))
        static_cast<void>(::fchmod(file.get(), about.st_mode & 07777U));
}

std::string format_beat(const beat& its) {
    return fmt::format("{} {} {} {} {}\n", beat_head, its.id, its.term, its.count, its.sequence);
}

outcome<beat> parse_beat(std::string_view text) {
    const auto refused = [] { return refuse(400, "it is no beat of a member"); };
    if (!text.starts_with(beat_head) || !text.ends_with('\n')) return refused();
    text.remove_prefix(beat_head.size());
    text.remove_suffix(1);
    if (!text.starts_with(' ') || text.find('\n') != std::string_view::npos) return refused();
    text.remove_prefix(1);
    beat made;
    made.id = next_field(text);
    if (!is_start_id(made.id)) return refused();
    for (std::uint64_t* const each : {&made.term, &made.count, &made.sequence})
        if (!parse_number(next_field(text), *each)) return refused();
    return made;
}

}  // namespace eddy::cluster
