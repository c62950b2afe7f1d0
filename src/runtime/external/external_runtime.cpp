// Checks and watches of an external process.
#include "runtime/external/external_runtime.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/transport/transport.hpp>

#include "runtime/external/process_facts.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

namespace eddy::runtime::external {
namespace {

constexpr std::string_view this_machine = "127.0.0.1";

/// Between the first two looks at a port that is not served at the start; then twice as long, up to
/// --interval.
constexpr duration first_pause = std::chrono::milliseconds(50);

/// A handle of the process, none without --pid, or the fault of it and of the port. A process that
/// was watched before may have closed its port since.
outcome<unique_fd> checked(const config& of, bool was_watched) {
    unique_fd process;
    if (of.pid != 0) {
        const int pid = static_cast<int>(of.pid);
        // Opened before the checks, so that they are about the process that is watched.
        process.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
        if (!process && errno == ESRCH)
            return refuse(404, fmt::format("there is no process {}; `ss -ltnp 'sport = :{}'` shows "
                                           "which one listens on the port",
                                           pid, of.port));
        if (!process)
            return refuse(500, fmt::format("process {} cannot be watched: {}", pid,
                                           errno_code(errno).message()));
        const auto began = start_time_of(pid);
        if (of.start_time != 0 && began && *began != static_cast<std::uint64_t>(of.start_time))
            return refuse(409,
                          fmt::format("process {} is another one than that which was attached: "
                                      "that has ended, and its number was used again. Remove "
                                      "the runtime, and attach the process that serves now",
                                      pid));
        if (was_watched) return process;
    }
    const auto sockets = listening_sockets(of.port);
    if (sockets.empty())
        return refuse(409, fmt::format("nothing listens on TCP port {} of this machine; `ss -ltn` "
                                       "lists the ports that are served",
                                       of.port));
    if (of.pid == 0) return process;
    const int pid = static_cast<int>(of.pid);
    const auto has = has_socket(pid, sockets);
    if (!has && (has.error() == errno_code(EACCES) || has.error() == errno_code(EPERM)))
        return refuse(403, fmt::format("process {} is another user's: its sockets cannot be seen. "
                                       "Leave --pid out, and the port alone is watched; or run the "
                                       "daemon as root",
                                       pid));
    if (!has) return refuse(404, fmt::format("process {} has just ended", pid));
    if (!*has)
        return refuse(409, fmt::format("process {0} does not listen on TCP port {1}; `ss -ltnp "
                                       "'sport = :{1}'` shows which one does",
                                       pid, of.port));
    return process;
}

std::string fault_of_port(std::uint16_t port) {
    return fmt::format("nothing listens on port {} any more", port);
}

/// The process has ended, or the port is not served. The other refusals are of the check itself.
bool is_absence(const problem& of) { return of.status == 404 || of.status == 409; }

}  // namespace

external_runtime::external_runtime(creation from)
    : name_(std::move(from.name)),
      given_(std::move(from.options)),
      events_(*from.events),
      host_(std::move(from.host)),
      is_held_(from.is_held) {}

task<outcome<unique_fd>> external_runtime::check(config of, bool was_watched) {
    auto done = co_await run_blocking(disk_, [of = std::move(of), was_watched] {
        return std::make_shared<outcome<unique_fd>>(checked(of, was_watched));
    });
    if (!done) co_return refuse(503, "the check was cancelled");
    co_return std::move(**done);
}

task<outcome<>> external_runtime::start() {
    if (tasks_) co_return refuse(409, name_ + " runs already");
    auto read = read_config(given_);
    if (!read) co_return std::unexpected(std::move(read.error()));
    chosen_ = std::move(*read);
    auto process = co_await check(chosen_, is_held_);
    // A program of this daemon may not serve its port again yet.
    const bool is_absent = !process && is_held_ && is_absence(process.error());
    if (!process && !is_absent) co_return std::unexpected(std::move(process.error()));
    EDDY_ASSERT(chosen_.port != 0);
    fault_.clear();
    if (process)
        process_ = std::move(*process);
    else
        fault_ =
            chosen_.pid != 0 ? std::move(process.error().message) : fault_of_port(chosen_.port);
    if (auto where = endpoint::ip(this_machine, chosen_.port)) {
        local_ = *where;
        transport::address served;
        served.host = this_machine;
        served.port = chosen_.port;
        note_ = host_->note_address(served, local_);
    }
    events_.write(
        chosen_.pid != 0
            ? fmt::format("watches process {}, which Eddy did not start", chosen_.pid)
            : fmt::format("watches port {}, whose process Eddy did not start", chosen_.port));
    if (!fault_.empty()) events_.write(fault_);
    tasks_.emplace();
    if (!is_held_) begin_watch();
    co_return outcome<>();
}

void external_runtime::open() {
    if (std::exchange(is_held_, false) && tasks_) begin_watch();
}

void external_runtime::begin_watch() {
    EDDY_ASSERT(tasks_ && !is_held_);
    if (chosen_.pid == 0)
        tasks_->spawn(watch_port());
    else if (process_)
        tasks_->spawn(watch_process());
    else
        host_->request_end(fault_, true);
}

task<void> external_runtime::stop(duration /*drain*/) {
    if (!tasks_) co_return;
    tasks_->cancel();
    co_await tasks_->join();
    tasks_.reset();
    process_.reset();
    local_ = {};
    note_ = {};
    events_.write("no longer watched; the process goes on, since Eddy did not start it");
}

task<void> external_runtime::watch_process() {
    EDDY_ASSERT(process_);
    if (!co_await loop::current().wait_readable(process_.get())) co_return;
    fault_ = fmt::format("process {} has ended", chosen_.pid);
    events_.write(fault_);
    host_->request_end(fault_, true);
}

task<void> external_runtime::watch_port() {
    EDDY_ASSERT(!process_ && chosen_.pid == 0);
    duration pause = fault_.empty() ? chosen_.interval : first_pause;
    for (;; pause = std::min(pause, chosen_.interval / 2) * 2) {
        if (!co_await loop::current().sleep_for(std::min(pause, chosen_.interval))) co_return;
        const auto sockets =
            co_await run_blocking(disk_, [port = chosen_.port] { return listening_sockets(port); });
        if (!sockets) co_return;
        std::string fault = sockets->empty() ? fault_of_port(chosen_.port) : std::string();
        if (fault == fault_) continue;
        events_.write(fault.empty() ? fmt::format("port {} is served again", chosen_.port) : fault);
        fault_ = std::move(fault);
    }
}

std::string external_runtime::detail() const {
    if (!tasks_) return {};
    return chosen_.pid != 0 ? fmt::format("{}, process {}", chosen_.kind, chosen_.pid)
                            : chosen_.kind;
}

task<outcome<>> external_runtime::check_restart(settings next, bool /*discards_data*/) {
    auto read = read_config(next);
    if (!read) co_return std::unexpected(std::move(read.error()));
    auto fine = co_await check(std::move(*read), false);
    if (!fine) co_return std::unexpected(std::move(fine.error()));
    co_return outcome<>();
}

outcome<> external_runtime::apply(const settings& changed) {
    auto read = read_config(changed);
    if (!read) return std::unexpected(std::move(read.error()));
    given_ = changed;
    copy_live(option_rows(), *read, chosen_);
    return {};
}

}  // namespace eddy::runtime::external
