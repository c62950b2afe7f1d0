// Reading of /proc.
#include "runtime/external/process_facts.hpp"

#include <eddy/base/unique_fd.hpp>

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <memory>
#include <string>
#include <system_error>

namespace eddy::runtime::external {
namespace {

/// Bytes of a table of sockets at most: some 400,000 connections.
constexpr std::size_t longest_table = std::size_t{64} << 20;

result<std::string> content_of(const std::string& path, std::size_t most) {
    const unique_fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) return fail_errno();
    std::string text;
    std::array<char, 32 * 1024> piece;
    while (text.size() < most) {
        const ssize_t got = ::read(file.get(), piece.data(), piece.size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return fail_errno();
        if (got == 0) break;
        text.append(piece.data(), static_cast<std::size_t>(got));
    }
    return text;
}

/// The field number `index` of a line whose fields spaces separate.
std::string_view field(std::string_view line, int index) {
    for (;;) {
        line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
        const std::size_t end = std::min(line.find(' '), line.size());
        if (index-- == 0) return line.substr(0, end);
        if (end == line.size()) return {};
        line.remove_prefix(end);
    }
}

template <class Number>
bool read_number(std::string_view text, Number& to, int base = 10) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), to, base);
    return error == std::errc{} && end == text.data() + text.size();
}

}  // namespace

result<std::uint64_t> start_time_in(std::string_view stat) {
    // Fields of the state and what follows: the name before may have spaces and parentheses.
    constexpr int field_of_start = 19;
    const std::size_t name_end = stat.rfind(')');
    std::uint64_t time = 0;
    if (name_end == std::string_view::npos ||
        !read_number(field(stat.substr(name_end + 1), field_of_start), time))
        return fail(errc::malformed);
    return time;
}

result<std::uint64_t> start_time_of(int pid) {
    auto text = content_of("/proc/" + std::to_string(pid) + "/stat", 4096);
    if (!text) return fail(text.error());
    return start_time_in(*text);
}

void add_listening(std::string_view table, std::uint16_t port, std::vector<std::uint64_t>& to) {
    constexpr int field_of_address = 1;
    constexpr int field_of_state = 3;
    constexpr int field_of_inode = 9;
    constexpr std::string_view listening = "0A";
    while (!table.empty()) {
        const std::string_view line = table.substr(0, table.find('\n'));
        table.remove_prefix(std::min(line.size() + 1, table.size()));
        if (field(line, field_of_state) != listening) continue;
        const std::string_view address = field(line, field_of_address);
        std::uint16_t its = 0;
        std::uint64_t inode = 0;
        if (read_number(address.substr(std::min(address.find(':') + 1, address.size())), its, 16) &&
            its == port && read_number(field(line, field_of_inode), inode))
            to.push_back(inode);
    }
}

std::vector<std::uint64_t> listening_sockets(std::uint16_t port) {
    std::vector<std::uint64_t> all;
    for (const char* const path : {"/proc/net/tcp", "/proc/net/tcp6"})
        if (const auto table = content_of(path, longest_table)) add_listening(*table, port, all);
    return all;
}

result<bool> has_socket(int pid, const std::vector<std::uint64_t>& sockets) {
    struct closer {
        void operator()(DIR* of) const { ::closedir(of); }
    };
    const std::string folder = "/proc/" + std::to_string(pid) + "/fd";
    const std::unique_ptr<DIR, closer> all(::opendir(folder.c_str()));
    if (!all) return fail_errno();
    std::array<char, 64> target;
    while (const dirent* const each = ::readdir(all.get())) {
        const ssize_t size =
            ::readlinkat(::dirfd(all.get()), each->d_name, target.data(), target.size());
        if (size <= 0) {
            if (size < 0 && errno == EACCES) return fail_errno(EACCES);
            continue;
        }
        std::string_view text(target.data(), static_cast<std::size_t>(size));
        constexpr std::string_view begin = "socket:[";
        if (!text.starts_with(begin) || !text.ends_with(']')) continue;
        text.remove_prefix(begin.size());
        text.remove_suffix(1);
        std::uint64_t inode = 0;
        if (read_number(text, inode) && std::ranges::find(sockets, inode) != sockets.end())
            return true;
    }
    return false;
}

}  // namespace eddy::runtime::external
