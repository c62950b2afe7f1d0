// Guard of programs: the shell's script, and the notes that it reads.
#include "runtime/programs/program_guard.hpp"

#include <eddy/base/assert.hpp>

#include <fmt/format.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <utility>

namespace eddy::runtime {
namespace {

/// Reads "+ GROUP", "- GROUP", "m MARK" and "n MARK" until the end of its input, and kills the
/// groups and the marked processes that are left.
constexpr const char* script = R"(groups=' '
marks=' '
while read -r what group; do
    case $what in
        +) groups="$groups$group " ;;
        -) case $groups in *" $group "*) groups="${groups%% $group *} ${groups#* $group }" ;; esac ;;
        m) marks="$marks$group " ;;
        n) case $marks in *" $group "*) marks="${marks%% $group *} ${marks#* $group }" ;; esac ;;
    esac
done
for group in $groups; do kill -s KILL -- "-$group"; done
# Twice: a process that is within execve(2) has no environment for a moment.
for time in first second; do
    for mark in $marks; do
        for file in $(grep -lsxzF -e "$mark" /proc/[0-9]*/environ); do
            pid=${file#/proc/}
            kill -s KILL "${pid%/environ}"
        done
    done
    [ $time = second ] || sleep 0.2
done)";

/// Bytes of a note at most.
constexpr std::size_t longest_note = 128;

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

void program_guard::add(int group) noexcept { note('+', fmt::format_int(group).c_str()); }

void program_guard::remove(int group) noexcept { note('-', fmt::format_int(group).c_str()); }

void program_guard::add_mark(std::string_view variable) noexcept { note('m', variable); }

void program_guard::remove_mark(std::string_view variable) noexcept { note('n', variable); }

void program_guard::note(char what, std::string_view subject) noexcept {
    std::array<char, longest_note> line;
    EDDY_ASSERT(subject.size() + 3 <= line.size());
    const auto end = fmt::format_to_n(line.data(), line.size(), "{} {}\n", what, subject);
    // A shell that has ended, or does not read, guards nothing; the programs serve all the same.
    static_cast<void>(::send(notes_.get(), line.data(), end.size, MSG_DONTWAIT | MSG_NOSIGNAL));
}

}  // namespace eddy::runtime
