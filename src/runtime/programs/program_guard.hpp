// Guard of programs: a shell that kills their process groups when this process has ended without
// having done so, as after SIGKILL.
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/base/unique_fd.hpp>
#include <eddy/io/process.hpp>

#include <optional>
#include <string_view>

namespace eddy::runtime {

/// PR_SET_PDEATHSIG of prctl(2) would end the programs alone, without what they have started, and
/// with the thread that started them. A program that leaves its group (setsid(2)) is guarded by its
/// mark alone.
/// One loop's thread.
class program_guard {
public:
    /// Starts the shell. Errors are process::start()'s and socketpair(2)'s.
    result<> start();

    /// A process group that is to end with this process.
    void add(int group) noexcept;
    /// It has ended; its number may be another's.
    void remove(int group) noexcept;

    /// Processes whose environment has `variable`, of letters, digits, "_" and "=", are to end
    /// with this process, too: see kill_marked().
    void add_mark(std::string_view variable) noexcept;
    void remove_mark(std::string_view variable) noexcept;

private:
    void note(char what, std::string_view subject) noexcept;

    std::optional<process> shell_;
    unique_fd notes_;  // to the shell, which sees its end with this process's
};

}  // namespace eddy::runtime
