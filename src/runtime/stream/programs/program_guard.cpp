// Guard of programs: the shell's script, and the notes that it reads.
#include "runtime/stream/programs/program_guard.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <utility>

namespace eddy::runtime::stream {
namespace {

/// Reads "+ GROUP" and "- GROUP" until the end of its input, and kills the groups that are left.
constexpr const char* script = R"(groups=' '
while read -r what group; do
    case $what in
        +) groups="$groups$group " ;;
        -) case $groups in *" $group "*) groups="${groups%% $group *} ${groups#* $group }" ;; esac ;;
    esac
done
for group in $groups; do kill -s KILL -- "-$group"; done)";

}  // namespace

result<> program_guard::start() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return fail_errno();
    notes_.reset(ends[0]);
    const unique_fd theirs(ends[1]);
    process_options how;
    how.input = stdio::shared;
    how.descriptor = theirs.get();
    how.output = how.error = stdio::null;
    how.own_group = true;  // a terminal's signals are this process's to act on
    auto started = process::start({"/bin/sh", "-c", script}, how);
    if (!started) return fail(started.error());
    shell_.emplace(std::move(*started));
    return {};
}

void program_guard::add(int group) noexcept { note('+', group); }

void program_guard::remove(int group) noexcept { note('-', group); }

void program_guard::note(char what, int group) noexcept {
    std::array<char, 16> line;
    const auto end = fmt::format_to_n(line.data(), line.size(), "{} {}\n", what, group);
    // A shell that has ended, or does not read, guards nothing; the programs serve all the same.
    static_cast<void>(::send(notes_.get(), line.data(), end.size, MSG_DONTWAIT | MSG_NOSIGNAL));
}

}  // namespace eddy::runtime::stream
