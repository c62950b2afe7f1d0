// Child processes: started, written to, read from and awaited by coroutines.
//
//     auto sort = process::start({"sort", "-n"},
//                                {.input = stdio::stream, .output = stdio::stream});
//     if (!co_await sort->input.write_all("2\n1\n")) co_return;
//     sort->input.close();
//     auto line = co_await sort->output.read();
//     auto status = co_await sort->wait();
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/base/unique_fd.hpp>
#include <eddy/io/stream.hpp>
#include <eddy/io/task.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace eddy {

/// Kind of a child's standard descriptor.
enum class stdio : std::uint8_t {
    inherit,  ///< this process's own
    null,     ///< /dev/null
    stream,   ///< the other end of a stream of the process object, a Unix socket
    pipe,     ///< the same, a pipe: the child may open /dev/stdout
    shared,   ///< process_options::descriptor
};

/// Limit of a child and of what it starts, each for itself: setrlimit(2), soft and hard.
struct process_limit {
    int resource = 0;        ///< such as RLIMIT_NOFILE
    std::uint64_t most = 0;  ///< in the resource's unit
};

/// User and groups of a child.
struct process_user {
    std::uint32_t user = 0;                  ///< its number
    std::uint32_t group = 0;                 ///< its first group
    std::vector<std::uint32_t> groups = {};  ///< supplementary ones

    /// The same user and groups.
    friend bool operator==(const process_user&, const process_user&) = default;
};

/// Options of process::start().
struct process_options {
    /// The child's descriptor 0.
    stdio input = stdio::inherit;
    /// The child's descriptor 1.
    stdio output = stdio::inherit;
    /// The child's descriptor 2.
    stdio error = stdio::inherit;
    /// The descriptor of stdio::shared, which stays the caller's; the child has a copy.
    int descriptor = -1;
    std::string folder = {};  ///< to start in; empty: this process's own

    /// The child leads a process group of its own, with what it starts (setpgid(2)): the end of the
    /// process object kills all of them. A terminal's signals, such as Ctrl-C, do not reach it.
    bool own_group = false;

    /// "NAME=value" each; without one, this process's own.
    std::optional<std::vector<std::string>> environment = std::nullopt;

    // With one of the following the program needs a slash: it is not looked up in $PATH.

    /// The child's descriptors 3, 4, …: copies of these, which stay the caller's. Not inherited
    /// standard descriptors beside it.
    std::vector<int> descriptors = {};
    /// A variable of its environment that has its process number, such as LISTEN_PID of
    /// sd_listen_fds(3); empty: none.
    std::string number_variable = {};
    /// Limits; a higher one than this process's needs a privilege (EPERM).
    std::vector<process_limit> limits = {};
    /// Another user than this process's, which needs a privilege (EPERM).
    std::optional<process_user> user = std::nullopt;
    /// Signal that it gets at the end of the thread that started it (PR_SET_PDEATHSIG of prctl(2)),
    /// not what it started itself; 0: none. A program with set-user-ID gets none.
    int death_signal = 0;
};

/// End of a child.
struct exit_status {
    int code = 0;    ///< what it returned, where no signal ended it
    int signal = 0;  ///< the signal that ended it, or 0

    /// True if it returned 0.
    bool success() const noexcept { return code == 0 && signal == 0; }
};

/// A child of this process. Only its loop's thread. The child has no descriptor of this process but
/// the standard ones; no signal is blocked or ignored in it.
class process {
public:
    /// Starts the program `arguments[0]`, looked up in $PATH unless it has a slash, with those
    /// arguments. Errors are posix_spawnp(3)'s, such as ENOENT, and those of the calls behind the
    /// options; ESRCH where this process ignores
    /// SIGCHLD and the child has ended already. Call it on a loop's thread.
    [[nodiscard]] static result<process> start(const std::vector<std::string>& arguments,
                                               const process_options& options = {});
    /// `other` has no child afterwards. Not while one of them is awaited.
    process(process&& other) noexcept;
    /// Ends the child that this had, as the destructor does.
    process& operator=(process&& other) noexcept;
    /// Kills the child, and its group if it leads one, if it was not awaited, and reaps it. It
    /// waits at most some milliseconds for the child's end. A child that survives, such as a
    /// set-user-ID program that only its own user may kill, is reaped when another child starts or
    /// ends.
    ~process();

    /// Its standard descriptors, where process_options requested streams or pipes.
    /// Close `input` to end what the child reads.
    stream input;
    /// The child's standard output.
    stream output;
    /// The child's standard error.
    stream error;

    /// The child's process number; it may be another's once the child was awaited.
    int pid() const noexcept { return pid_; }

    /// Sends a signal; errno ESRCH once it was awaited.
    [[nodiscard]] result<> kill(int signal) noexcept;
    /// The same to all of the group that it leads (process_options::own_group).
    [[nodiscard]] result<> kill_group(int signal) noexcept;

    /// Leaves the child to itself: the end of this object has no effect on it.
    void release() noexcept;

    /// Awaits its end and reaps it. Yields a result<exit_status>: errc::cancelled, or waitid(2)'s
    /// errors: ECHILD once it has ended where this process ignores SIGCHLD, since the kernel then
    /// keeps no status. Call it again after it was cancelled, but not after it succeeded.
    task<result<exit_status>> wait();

private:
    process() = default;
    void end() noexcept;

    unique_fd handle_;  // a pidfd, until the child is reaped
    int pid_ = 0;
    bool leads_group_ = false;
};

}  // namespace eddy
