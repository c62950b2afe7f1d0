// Owner and group of a Unix socket's file.
#include "base/files/socket_owner.hpp"

#include <eddy/base/unique_fd.hpp>

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <system_error>
#include <vector>

namespace eddy {
namespace {

/// Room for the members of a large group.
constexpr std::size_t largest_entry = std::size_t{1024} * 1024;

std::optional<std::uint32_t> number_of(std::string_view name) noexcept {
    std::uint32_t number = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (error != std::errc{} || end != name.data() + name.size() || number == UINT32_MAX) return {};
    return number;
}

/// Looks an entry up by getpwnam_r(3) or getgrnam_r(3); false where there is none.
template <class Entry, class LookUp>
bool look_up(const std::string& name, Entry& found, std::vector<char>& room, LookUp by) {
    Entry* result = nullptr;
    int status = ERANGE;
    room.resize(16 * 1024);
    while ((status = by(name.c_str(), &found, room.data(), room.size(), &result)) == ERANGE &&
           room.size() < largest_entry)
        room.resize(room.size() * 2);
    return status == 0 && result != nullptr;
}

}  // namespace

outcome<uid_t> find_user(std::string_view name, std::string_view flag) {
    if (const auto number = number_of(name)) return uid_t{*number};
    passwd found{};
    std::vector<char> room;
    if (look_up(std::string(name), found, room, ::getpwnam_r)) return found.pw_uid;
    return refuse(400,
                  std::string(flag) + ": this machine has no user \"" + std::string(name) + "\"");
}

outcome<gid_t> find_group(std::string_view name, std::string_view flag) {
    if (const auto number = number_of(name)) return gid_t{*number};
    group found{};
    std::vector<char> room;
    if (look_up(std::string(name), found, room, ::getgrnam_r)) return found.gr_gid;
    const std::string shown(name);
    return refuse(400, std::string(flag) + ": this machine has no group \"" + shown +
                           "\". Make it with `groupadd --system " +
                           (shown.empty() ? "NAME" : shown) + "`, or name another");
}

result<> give_socket(const std::string& path, std::optional<uid_t> owner,
                     std::optional<gid_t> group, std::optional<mode_t> mode) {
    // Not through a link that another may have put there.
    const unique_fd file(::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    struct stat info{};
    if (!file || ::fstat(file.get(), &info) != 0) return fail_errno();
    if (!S_ISSOCK(info.st_mode) || (info.st_uid != ::geteuid() && info.st_uid != owner))
        return fail(errc::bad_address);
    // In this order, so that no other group may use it in between. A service may have no permission
    // to change groups, and needs none for its own.
    const bool is_owned = !owner || info.st_uid == *owner;
    const bool is_in_group = !group || info.st_gid == *group;
    if ((!is_owned || !is_in_group) &&
        ::fchownat(file.get(), "", is_owned ? static_cast<uid_t>(-1) : *owner,
                   is_in_group ? static_cast<gid_t>(-1) : *group, AT_EMPTY_PATH) != 0)
        return fail_errno();
    // chmod(2) alone takes what was opened in this way, by its other name.
    const std::string name = "/proc/self/fd/" + std::to_string(file.get());
    if (mode && ::chmod(name.c_str(), *mode) != 0) return fail_errno();
    return {};
}

}  // namespace eddy
