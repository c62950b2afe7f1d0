// Programs that answer clients: one for each, with the client's socket as its standard input and
// output.
#pragma once

#include <eddy/base/unique_fd.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/process.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>

#include "base/problem.hpp"
#include "runtime/logs/failure_log.hpp"
#include "runtime/programs/program_guard.hpp"
#include "runtime/stream/sources/source.hpp"
#include "runtime/stream/stream_request.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::runtime::stream {

/// One loop's thread. close() must have ended before it dies.
class programs {
public:
    /// Programs at a time, at most.
    static constexpr std::size_t max_running = 1000;
    /// Name of the variable that has the handoff's message.
    static constexpr std::string_view variable = "HANDOFF_DATA";
    /// Bytes of a message, at most: execve(2) takes texts of 32 pages (MAX_ARG_STRLEN), their NUL
    /// and the variable's name with its '=' included.
    static constexpr std::size_t max_message = 32 * std::size_t{4096} - variable.size() - 2;
    /// Between SIGTERM and SIGKILL of a program whose client has left.
    static constexpr duration termination_patience = std::chrono::seconds(5);

    /// `command` is for sh(1). `hangup_patience` is the time for a program to end after its client
    /// has left. Failures are written to `lines`, at most one of a kind in failure_log_interval.
    /// `owner` and `lines` outlive it.
    programs(std::string command, duration hangup_patience, source::observer& owner,
             serving::journal& lines)
        : command_(std::move(command)),
          hangup_patience_(hangup_patience),
          owner_(owner),
          failures_(lines, failure_log_interval) {}

    /// Starts their guard. Before the first start(). Errors are process::start()'s.
    result<> open() { return guard_.start(); }

    std::size_t running() const noexcept { return tasks_.children(); }
    bool has_room() const noexcept { return running() < max_running; }

    /// Starts the program for a client, with the handoff's message as HANDOFF_DATA in its
    /// environment, which holds at most max_message. Fails with posix_spawn(3)'s errors, such as
    /// E2BIG; the client stays the caller's then. Otherwise it is taken, and its number returned,
    /// below max_running. At the program's end its connection ends, whatever other process has the
    /// socket, what it has left behind in its process group is killed, and the owner is notified
    /// with the number. The program and what it started get SIGHUP once the client has closed or
    /// shut its sending side down; what ignores that gets SIGTERM after hangup_patience, and
    /// SIGKILL after termination_patience more.
    result<std::uint32_t> start(unique_fd& client, const stream_request& from);
    /// Ends a program whose time has passed: SIGTERM, and SIGKILL after termination_patience. The
    /// owner is notified at its end, by overdue_reason.
    void end_overdue(std::uint32_t number) noexcept;
    /// Waits for the programs for at most `limit`; kills the ones that still run.
    task<void> close(duration limit);

private:
    /// Number of a program, for as long as its task runs.
    class place {
    public:
        explicit place(programs& of) : of_(of), number_(of.take_number()) {
            of_.places_[number_] = this;
        }
        place(const place&) = delete;
        place& operator=(const place&) = delete;
        ~place() { of_.places_[number_] = nullptr; }
        std::uint32_t number() const noexcept { return number_; }

        event overdue;

    private:
        programs& of_;
        std::uint32_t number_;
    };

    std::uint32_t take_number();
    task<void> serve(process program, unique_fd ended, unique_fd client, std::unique_ptr<place> at);

    task<void> watch(process& program, int client, bool& has_left);
    static task<void> watch_time(process& program, event& overdue);
    static task<void> terminate(process& program);
    void note_failure(std::uint32_t number, const result<exit_status>& status) noexcept;

    std::string command_;
    duration hangup_patience_;
    source::observer& owner_;
    failure_log failures_;
    program_guard guard_;
    event ended_;                 // one more
    std::vector<place*> places_;  // by their numbers; null: free
    scope tasks_;
};

}  // namespace eddy::runtime::stream
