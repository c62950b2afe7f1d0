// Programs that answer clients.
#include "runtime/stream/programs/programs.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/timeout.hpp>

#include "base/environment.hpp"
#include "io/posix/sockets.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <new>
#include <string_view>
#include <utility>

namespace eddy::runtime::stream {

std::uint32_t programs::take_number() {
    const auto free = std::ranges::find(places_, nullptr);
    if (free == places_.end()) {
        EDDY_ASSERT(places_.size() < max_running);
        places_.push_back(nullptr);
        return static_cast<std::uint32_t>(places_.size() - 1);
    }
    return static_cast<std::uint32_t>(free - places_.begin());
}

result<std::uint32_t> programs::start(unique_fd& client, const stream_request& from) {
    EDDY_ASSERT(has_room());
    auto at = std::make_unique<place>(*this);
    const std::uint32_t number = at->number();
    process_options how;
    how.input = how.output = stdio::shared;
    how.descriptor = client.get();
    // Programs do not expect what an event-driven web server sets on its sockets.
    const int flags = ::fcntl(client.get(), F_GETFL);
    if (flags >= 0) static_cast<void>(::fcntl(client.get(), F_SETFL, flags & ~O_NONBLOCK));
    how.own_group = true;  // the shell's programs end with it
    how.environment = environment_with(variable, from.message);
    auto started = process::start({"/bin/sh", "-c", command_}, how);
    if (!started) {
        failures_.write("program_not_started",
                        "the program could not be started: " + started.error().message());
        return fail(started.error());
    }
    unique_fd ended(static_cast<int>(::syscall(SYS_pidfd_open, started->pid(), 0)));
    if (!ended) return fail_errno();
    tasks_.spawn(serve(std::move(*started), std::move(ended), std::move(client), std::move(at)));
    return number;
}

void programs::end_overdue(std::uint32_t number) noexcept {
    EDDY_ASSERT(number < places_.size());
    if (places_[number] != nullptr) places_[number]->overdue.set();
}

task<void> programs::terminate(process& program) {
    static_cast<void>(program.kill_group(SIGTERM));
    if (auto slept = co_await loop::current().sleep_for(termination_patience); !slept) co_return;
    static_cast<void>(program.kill_group(SIGKILL));
}

task<void> programs::watch_time(process& program, event& overdue) {
    if (auto set = co_await overdue.wait(); set) co_await terminate(program);
}

/// A program's client, whose end is the program's, as a terminal's is.
task<void> programs::watch(process& program, int client, bool& has_left) {
    loop& here = loop::current();
    if (auto ended = co_await here.wait_hangup(client); !ended) co_return;
    // It may have ended meanwhile.
    has_left = program.kill_group(SIGHUP).has_value();
    // A client that has shut its sending side down may read for a while yet.
    if (auto slept = co_await here.sleep_for(hangup_patience_); !slept) co_return;
    co_await terminate(program);
}

/// `ended` is a pidfd of the program, readable before program.wait() reaps it.
task<void> programs::serve(process program, unique_fd ended, unique_fd client,
                           std::unique_ptr<place> at) {
    /// At the task's end, however that comes.
    struct notification {
        event& of;
        ~notification() { of.set(); }
    };
    const notification at_end{ended_};
    loop& here = loop::current();
    const time_point begun = here.now();
    const int group = program.pid();
    guard_.add(group);
    bool has_left = false;
    scope beside;
    beside.spawn(watch(program, client.get(), has_left));
    beside.spawn(watch_time(program, at->overdue));
    // Processes that it leaves behind are in its group, whose number no other group gets before it
    // is reaped.
    if (auto over = co_await here.wait_readable(ended.get()); over)
        static_cast<void>(program.kill_group(SIGKILL));
    const auto status = co_await program.wait();
    beside.cancel();
    co_await beside.join();
    // Also where the web server has its copy still, or what has left the program's group. An answer
    // of a program that was killed, or that crashed, broke off and must not look whole.
    if (!status || status->signal != 0) reset_connection(client.get());
    ::shutdown(client.get(), SHUT_WR);
    drop_unread(client.get());
    client.reset();
    guard_.remove(group);
    const std::uint32_t number = at->number();
    const bool is_overdue = at->overdue.is_set();
    // Killed by close(), with its object.
    if (!status && status.error() == errc::cancelled)
        owner_.on_fault(number, "program_killed");
    else if (is_overdue)
        owner_.on_fault(number, overdue_reason);
    else if (status && status->success())
        owner_.on_end(number, here.now() - begun);
    else if (has_left)
        owner_.on_fault(number, "client_hung_up");
    else
        note_failure(number, status);
}

void programs::note_failure(std::uint32_t number, const result<exit_status>& status) noexcept {
    constexpr std::string_view reason = "program_failed";
    try {
        failures_.write(reason,
                        !status ? "the program was lost: " + status.error().message()
                        : status->signal > 0
                            ? fmt::format("the program was ended by signal {}", status->signal)
                            : fmt::format("the program ended with status {}", status->code));
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): it is counted
    }
    owner_.on_fault(number, reason);
}

task<void> programs::close(duration limit) {
    loop& here = loop::current();
    const time_point until = here.after(limit);
    while (running() > 0 && here.now() < until) {
        ended_.reset();
        const result<> woken = co_await with_deadline(until, ended_.wait());
        if (!woken && woken.error() != errc::timed_out) break;
    }
    tasks_.cancel();
    co_await tasks_.join();
}

}  // namespace eddy::runtime::stream
