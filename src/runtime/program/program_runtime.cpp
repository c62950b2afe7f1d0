// Lives of a program: start, end and the pauses between.
#include "runtime/program/program_runtime.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/base/random.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/timeout.hpp>

#include "base/files/regular_file.hpp"
#include "io/posix/posix_datagram.hpp"
#include "io/posix/sockets.hpp"
#include "net/address.hpp"
#include "net/peer_process.hpp"
#include "runtime/options/units.hpp"
#include "runtime/program/environment.hpp"
#include "runtime/program/health.hpp"
#include "runtime/program/signal_names.hpp"
#include "runtime/programs/marked_processes.hpp"
#include "runtime/serving/passed_listeners.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <utility>

namespace eddy::runtime::program {
namespace {

constexpr metric running_metric{
    .name = "running", .kind = metric_kind::gauge, .help = "1 while the program runs, else 0."};
constexpr metric healthy_metric{.name = "healthy",
                                .kind = metric_kind::gauge,
                                .help = "1 unless --health-fall checks in a row have failed."};
constexpr metric restarts_metric{.name = "restarts_total",
                                 .kind = metric_kind::counter,
                                 .help = "Starts of the program after the first one."};

/// A status text of the program at most.
constexpr std::size_t longest_status = 200;
/// Read of a datagram to $NOTIFY_SOCKET; the rest of a longer one is dropped.
constexpr std::size_t longest_notification = 4096;

std::string random_name() { return fmt::format("{:016x}{:016x}", entropy_seed(), entropy_seed()); }

/// The guard of all programs of this thread.
result<std::shared_ptr<program_guard>> guard_of_this_thread() {
    thread_local std::weak_ptr<program_guard> shared;
    if (auto there = shared.lock()) return there;
    auto made = std::make_shared<program_guard>();
    if (auto started = made->start(); !started) return fail(started.error());
    shared = made;
    return made;
}

/// Listening sockets are this process's to accept from without a wait; the program decides anew.
void make_blocking(int socket) noexcept {
    const int flags = ::fcntl(socket, F_GETFL);
    if (flags >= 0) static_cast<void>(::fcntl(socket, F_SETFL, flags & ~O_NONBLOCK));
}

std::string seconds_text(duration time) {
    constexpr std::int64_t ns_a_millisecond = 1'000'000;
    const std::int64_t whole = std::max<std::int64_t>(time.count(), 0);
    if (time < std::chrono::seconds(1)) return fmt::format("{} ms", whole / ns_a_millisecond);
    return fmt::format("{} s", (whole + 500 * ns_a_millisecond) / (1000 * ns_a_millisecond));
}

}  // namespace

program_runtime::program_runtime(creation from)
    : name_(std::move(from.name)),
      given_(std::move(from.options)),
      events_(*from.events),
      host_(std::move(from.host)),
      marker_("EDDY_PROGRAM=" + random_name()),
      check_marker_("EDDY_CHECK=" + random_name()),
      inherited_(std::move(from.listeners)) {
    idle_.set();
    has_sockets_.set();
}

// --- Start and stop ------------------------------------------------------------------------------

task<outcome<>> program_runtime::start() {
    if (tasks_) co_return refuse(409, name_ + " runs already");
    auto read = read_config(given_);
    if (!read) co_return std::unexpected(std::move(read.error()));
    chosen_ = std::move(*read);
    is_stopping_ = is_given_up_ = is_waiting_ = ended_before_stop_ = false;
    restarts_in_a_row_ = 0;
    ending_.clear();
    renew_pauses();
    tasks_.emplace();
    auto ready = co_await prepare();
    if (ready) ready = co_await launch();
    is_starting_ = chosen_.notifies;
    if (ready) tasks_->spawn(supervise());
    if (ready && chosen_.notifies) ready = co_await await_ready();
    is_starting_ = false;
    is_started_ = ready.has_value();
    if (ready) {
        inherited_.reset();
        co_return outcome<>();
    }
    give_back_sockets();
    co_await stop(duration{});
    co_return ready;
}

task<outcome<>> program_runtime::prepare() {
    if (auto fine = check_files(chosen_); !fine) co_return fine;
    if (auto opened = open_sockets(); !opened) co_return opened;
    if (auto opened = output_.open(); !opened) co_return opened;
    if (chosen_.notifies)
        if (auto opened = open_notifications(); !opened) co_return opened;
    auto guard = guard_of_this_thread();
    if (!guard)
        co_return refuse(500, fmt::format("could not start /bin/sh, which ends programs when the "
                                          "daemon is killed: {}",
                                          guard.error().message()));
    guard_ = std::move(*guard);
    guard_->add_mark(marker_);
    co_return outcome<>();
}

/// READY=1 of the first program.
task<outcome<>> program_runtime::await_ready() {
    EDDY_ASSERT(tasks_ && chosen_.notifies);
    const auto woken = co_await with_timeout(ready_patience, started_.wait());
    if (is_ready_) co_return outcome<>();
    if (is_given_up_) co_return refuse(409, "its start was given up");
    if (!woken)
        co_return refuse(409, fmt::format("{} did not say READY=1 to $NOTIFY_SOCKET within {} "
                                          "(--notify)",
                                          chosen_.command, seconds_text(ready_patience)));
    co_return refuse(
        409, fmt::format("{} {} before it said READY=1 (--notify)", chosen_.command, ending_));
}

void program_runtime::give_up_start() noexcept {
    is_given_up_ = true;
    started_.set();
}

task<void> program_runtime::stop(duration /*drain*/) {
    if (!tasks_) co_return;
    is_stopping_ = true;
    ended_before_stop_ = std::exchange(is_started_, false) && has_ended();
    co_await end_program();
    tasks_->cancel();
    co_await tasks_->join();
    co_await close();
    tasks_.reset();
}

task<void> program_runtime::close() {
    EDDY_ASSERT(tasks_ && tasks_->children() == 0);
    co_await output_.close();
    notifications_.reset();
    sockets_.clear();
    if (guard_) guard_->remove_mark(marker_);
    guard_.reset();
    program_.reset();
}

/// It has ended, and supervise() does not know that yet.
bool program_runtime::has_ended() const noexcept {
    if (idle_.is_set()) return false;
    if (!program_) return true;
    siginfo_t found{};
    return ::waitid(P_PID, static_cast<id_t>(program_->pid()), &found,
                    WEXITED | WNOHANG | WNOWAIT) == 0 &&
           found.si_pid == program_->pid();
}

/// The stop signal, and SIGKILL later.
task<void> program_runtime::end_program() {
    if (!program_) co_return;
    signal_group(chosen_.stop_signal);
    // A stopped one does not take another signal.
    signal_group(SIGCONT);
    const auto ended = co_await with_timeout(chosen_.stop_timeout, idle_.wait());
    if (ended || ended.error() != errc::timed_out) co_return;
    if (program_)
        events_.write(fmt::format("it goes on after {} and {} (--stop-timeout): killed",
                                  signal_name(chosen_.stop_signal),
                                  format_duration(chosen_.stop_timeout.count())));
    signal_group(SIGKILL);
    static_cast<void>(co_await with_timeout(kill_patience, idle_.wait()));
}

void program_runtime::end_drain() noexcept { signal_group(SIGKILL); }

void program_runtime::signal_group(int number) noexcept {
    if (program_) static_cast<void>(program_->kill_group(number));
}

// --- Sockets -------------------------------------------------------------------------------------

int program_runtime::open_socket::native_handle() const noexcept {
    const auto* const stream = std::get_if<noted_listener>(&from);
    return stream != nullptr ? stream->socket.native_handle()
                             : std::get<datagram_socket>(from).socket.get();
}

endpoint program_runtime::open_socket::local() const {
    const auto* const stream = std::get_if<noted_listener>(&from);
    return stream != nullptr ? stream->socket.local() : std::get<datagram_socket>(from).local;
}

/// One that no instance before has.
outcome<program_runtime::open_socket> program_runtime::open_socket_at(
    const transport::address& where) {
    if (where.kind != transport::scheme::udp) {
        auto opened = listen_on(where, *host_);
        if (!opened) return std::unexpected(std::move(opened.error()));
        return open_socket{where, std::move(*opened)};
    }
    // No datagram of the loop: that would read what is the program's.
    const auto wanted = address_to_bind(where.host, where.port);
    result<unique_fd> opened = fail(errc::bad_address);
    if (wanted) opened = open_datagram(*wanted, endpoint(), datagram_options(), false);
    if (!opened) return std::unexpected(explain_listen_failure(where, opened.error(), host_.get()));
    const endpoint local = local_endpoint(opened->get());
    return open_socket{where, datagram_socket{where, std::move(*opened), local,
                                              host_->note_address(where, local)}};
}

outcome<> program_runtime::open_sockets() {
    for (const transport::address& where : chosen_.sockets) {
        if (inherited_ && where.kind == transport::scheme::udp) {
            if (auto taken = inherited_->take_unread(where)) {
                taken->note = host_->note_address(where, taken->local);
                sockets_.push_back({where, std::move(*taken)});
                continue;
            }
        } else if (inherited_) {
            auto taken = inherited_->take(where, false);
            if (!taken)
                return std::unexpected(explain_listen_failure(where, taken.error(), host_.get()));
            if (*taken) {
                (*taken)->note = host_->note_address(where, (*taken)->socket.local());
                sockets_.push_back({where, std::move(**taken)});
                continue;
            }
        }
        auto opened = open_socket_at(where);
        if (!opened) return std::unexpected(std::move(opened.error()));
        sockets_.push_back(std::move(*opened));
    }
    return {};
}

void program_runtime::move_sockets(inherited_listeners& to) {
    for (open_socket& each : sockets_) {
        const std::uint16_t port = each.local().port();
        if (auto* const stream = std::get_if<noted_listener>(&each.from)) {
            to.all.push_back({each.where, std::move(*stream), port});
            continue;
        }
        auto& socket = std::get<datagram_socket>(each.from);
        // The address of the options that are in force.
        socket.where = each.where;
        to.unread.push_back(std::move(socket));
    }
    sockets_.clear();
}

/// For the instance before, after a start that failed.
void program_runtime::give_back_sockets() {
    if (inherited_) move_sockets(*inherited_);
}

task<std::shared_ptr<inherited_listeners>> program_runtime::hand_over_listeners() {
    if (!tasks_ || sockets_.empty()) co_return nullptr;
    auto made = std::make_shared<inherited_listeners>();
    move_sockets(*made);
    has_sockets_.reset();
    co_return made;
}

outcome<> program_runtime::take_back(inherited_listeners& from) {
    EDDY_ASSERT(sockets_.empty() && !has_sockets_.is_set());
    outcome<> all_taken;
    for (const transport::address& where : chosen_.sockets) {
        if (where.kind == transport::scheme::udp) {
            if (auto taken = from.take_unread(where)) {
                sockets_.push_back({where, std::move(*taken)});
                continue;
            }
        } else if (auto taken = from.take_back(where)) {
            sockets_.push_back({where, std::move(*taken)});
            continue;
        }
        auto opened = open_socket_at(where);
        if (opened)
            sockets_.push_back(std::move(*opened));
        else
            all_taken = std::unexpected(std::move(opened.error()));
    }
    has_sockets_.set();
    return all_taken;
}

/// The program itself ends with this process: the other one starts it on these.
outcome<std::shared_ptr<passed_listeners>> program_runtime::share_listeners() {
    EDDY_ASSERT(tasks_);
    auto given = std::make_shared<passed_listeners>();
    for (const open_socket& each : sockets_) {
        auto copy = copy_of(each.native_handle());
        if (!copy)
            return refuse(503, fmt::format("{} cannot pass on its socket: {}", name_,
                                           copy.error().message()));
        passed_listener made;
        made.where = each.where;
        made.port = each.local().port();
        if (const auto* const stream = std::get_if<noted_listener>(&each.from))
            made.file = stream->file;
        else
            made.what = passed_listener::kind::unread;
        made.socket = std::move(*copy);
        given->all.push_back(std::move(made));
    }
    for (const open_socket& each : sockets_)
        if (const auto* const stream = std::get_if<noted_listener>(&each.from))
            share(stream->socket);
    return given;
}

void program_runtime::unshare_listeners() noexcept {
    for (const open_socket& each : sockets_)
        if (const auto* const stream = std::get_if<noted_listener>(&each.from))
            take_possession(stream->socket);
}

endpoint program_runtime::local() const {
    return sockets_.empty() ? endpoint() : sockets_.front().local();
}

outcome<> program_runtime::open_notifications() {
    const std::string name = "eddy-notify-" + random_name();
    sockaddr_un where{};
    where.sun_family = AF_UNIX;
    std::memcpy(where.sun_path + 1, name.data(), name.size());
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    unique_fd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    const int on = 1;
    if (!socket || ::setsockopt(socket.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) != 0 ||
        ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&where), size) != 0)
        return refuse(500, fmt::format("could not make the socket of --notify: {}",
                                       errno_code(errno).message()));
    notifications_ = std::move(socket);
    notify_socket_ = "@" + name;
    tasks_->spawn(read_notifications());
    return {};
}

/// The name is seen by all users of the machine, so each datagram's sender is looked at.
task<void> program_runtime::read_notifications() {
    EDDY_ASSERT(notifications_);
    std::array<char, longest_notification> bytes;
    while (co_await loop::current().wait_readable(notifications_.get())) {
        const auto sent = unix_socket::receive_with_sender(notifications_.get(), bytes);
        if (!sent) continue;
        const uid_t user = sent->sender.user;
        if (unix_socket::is_allowed(user, {}) || (chosen_.user && user == chosen_.user->user))
            take_notification({bytes.data(), sent->size});
    }
}

void program_runtime::take_notification(std::string_view text) {
    while (!text.empty()) {
        const std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(line.size() + 1, text.size()));
        constexpr std::string_view status = "STATUS=";
        if (line == "READY=1" && program_) {
            is_ready_ = true;
            started_.set();
        } else if (line.starts_with(status)) {
            status_text_ = line.substr(status.size(), longest_status);
        }
    }
}

// --- A program's life ----------------------------------------------------------------------------

task<outcome<process_options>> program_runtime::plan() {
    std::vector<std::string> variables;
    if (!chosen_.variables_file.empty()) {
        auto text = co_await run_blocking(disk_, [path = chosen_.variables_file] {
            return read_regular(path, max_environment_file);
        });
        if (!text)
            co_return refuse(400, fmt::format("--env-file {} cannot be read: {}",
                                              chosen_.variables_file, text.error().message()));
        auto read = read_variables(*text, chosen_.variables_file);
        if (!read) co_return std::unexpected(std::move(read.error()));
        variables = std::move(*read);
    }
    variables.insert(variables.end(), chosen_.variables.begin(), chosen_.variables.end());
    variables.push_back(marker_);
    process_options how;
    how.folder = chosen_.directory.empty() ? "/" : chosen_.directory;
    how.own_group = true;
    how.user = chosen_.user;
    how.death_signal = SIGKILL;
    how.limits = chosen_.limits();
    how.environment = environment_of(variables);
    co_return how;
}

task<outcome<>> program_runtime::launch() {
    EDDY_ASSERT(tasks_ && guard_ && !program_);
    auto how = co_await plan();
    if (!how) co_return std::unexpected(std::move(how.error()));
    how->input = stdio::null;
    how->output = how->error = stdio::pipe;
    if (!sockets_.empty()) {
        std::string names;
        for (const open_socket& each : sockets_) {
            how->descriptors.push_back(each.native_handle());
            make_blocking(how->descriptors.back());
            names += (names.empty() ? "" : ":") + name_;
        }
        how->environment->push_back(fmt::format("LISTEN_FDS={}", sockets_.size()));
        how->environment->push_back("LISTEN_FDNAMES=" + names);
        how->number_variable = "LISTEN_PID";
    }
    if (notifications_) how->environment->push_back("NOTIFY_SOCKET=" + notify_socket_);
    std::vector<std::string> words = {chosen_.command};
    words.insert(words.end(), chosen_.arguments.begin(), chosen_.arguments.end());
    auto started = process::start(words, *how);
    if (!started) {
        std::string remedy;
        if (started.error() == errno_code(ENOEXEC))
            remedy = "; a script begins with a line such as #!/bin/sh";
        if (started.error() == errno_code(EACCES))
            remedy = fmt::format(
                "; its user must be allowed to execute it, and to enter {} "
                "(--directory)",
                how->folder);
        if (started.error() == errno_code(EPERM) && !how->limits.empty())
            remedy = "; a limit may not be above the daemon's own (`prlimit --pid PID`)";
        co_return refuse(400, fmt::format("{} could not be started: {}{}", chosen_.command,
                                          started.error().message(), remedy));
    }
    program_.emplace(std::move(*started));
    guard_->add(program_->pid());
    exempt_process(program_->pid());
    idle_.reset();
    started_.reset();
    begun_ = loop::current().now();
    failed_checks_ = 0;
    health_fault_.clear();
    status_text_.clear();
    is_unhealthy_ = is_ready_ = is_waiting_ = was_checked_ = false;
    events_.write(fmt::format("runs as process {}", program_->pid()));
    co_return outcome<>();
}

task<void> program_runtime::read_output(stream from, std::string_view mark) {
    co_await output_.read(std::move(from), mark);
    EDDY_ASSERT(readers_ > 0);
    if (--readers_ == 0) output_ended_.set();
}

/// From its start to the end of it and of what it leaves behind.
task<void> program_runtime::run_once() {
    EDDY_ASSERT(program_ && !idle_.is_set());
    loop& here = loop::current();
    const int group = program_->pid();
    const unique_fd ended(static_cast<int>(::syscall(SYS_pidfd_open, group, 0)));
    scope beside(co_await current_source());
    output_ended_.reset();
    readers_ = 2;
    beside.spawn(read_output(std::move(program_->output), "out: "));
    beside.spawn(read_output(std::move(program_->error), "err: "));
    beside.spawn(watch_health());
    result<exit_status> status = fail(errc::cancelled);
    const bool is_over = ended && co_await here.wait_readable(ended.get());
    // Processes that it leaves behind are in its group, whose number no other group gets before it
    // is reaped.
    signal_group(SIGKILL);
    include_process(group);
    if (is_over || !ended) status = co_await program_->wait();
    program_.reset();
    guard_->remove(group);
    const auto others =
        co_await run_blocking(disk_, [variable = marker_] { return kill_marked(variable); });
    if (others && *others > 0)
        events_.write(fmt::format("{} process{} that it had left behind {} killed", *others,
                                  *others == 1 ? "" : "es", *others == 1 ? "was" : "were"));
    static_cast<void>(co_await with_timeout(output_patience, output_ended_.wait()));
    beside.cancel();
    co_await beside.join();
    output_.report_left_out();
    note_end(status);
    idle_.set();
    started_.set();
}

void program_runtime::note_end(const result<exit_status>& status) {
    EDDY_ASSERT(!program_ && pauses_);
    if (!status)
        ending_ = "was lost: " + status.error().message();
    else if (status->signal > 0)
        ending_ = "was ended by " + signal_name(status->signal);
    else
        ending_ = fmt::format("exited with status {}", status->code);
    has_failed_ = !status || !status->success() || is_unhealthy_;
    if (is_unhealthy_) ending_ = fmt::format("was unhealthy ({}) and {}", health_fault_, ending_);
    if (loop::current().now() - begun_ >= chosen_.reset_after) {
        restarts_in_a_row_ = 0;
        pauses_->reset();
    }
    if (has_failed_ && !is_stopping_) ++counted_.errors;
    events_.write(fmt::format("the program {}", ending_));
}

bool program_runtime::may_restart() const noexcept {
    using after = restart_rule::after;
    const restart_rule& rule = chosen_.restart;
    const bool is_meant =
        rule.which == after::any_end || (rule.which == after::failure && has_failed_);
    return is_meant && (!rule.most || restarts_in_a_row_ < *rule.most);
}

void program_runtime::renew_pauses() {
    pauses_.emplace(chosen_.first_pause, chosen_.longest_pause, entropy_seed());
}

/// Before the next start; false when the instance stops meanwhile.
task<bool> program_runtime::pause() {
    EDDY_ASSERT(!program_ && idle_.is_set());
    loop& here = loop::current();
    ++restarts_in_a_row_;
    const duration time = pauses_->next();
    next_start_ = here.after(time);
    is_waiting_ = true;
    if (!co_await here.sleep_for(time)) co_return false;
    if (!co_await has_sockets_.wait()) co_return false;
    co_return !is_stopping_;
}

task<void> program_runtime::supervise() {
    for (;;) {
        co_await run_once();
        bool is_up = false;
        while (!is_up && !is_stopping_ && may_restart()) {
            if (!co_await pause()) co_return;
            auto launched = co_await launch();
            is_up = launched.has_value();
            if (is_up) {
                ++restarts_;
            } else if (launched.error().message != ending_) {
                ending_ = std::move(launched.error().message);
                has_failed_ = true;
                events_.write(ending_);
            }
        }
        if (is_stopping_) {
            // Started in the moment of the stop.
            if (is_up) signal_group(SIGKILL);
            if (is_up) co_await run_once();
            // An upgrade of the daemon must not start it again elsewhere.
            if (ended_before_stop_ && !may_restart()) request_end();
            co_return;
        }
        if (is_up) continue;
        is_waiting_ = false;
        if (!is_starting_) request_end();  // else the start fails
        co_return;
    }
}

void program_runtime::request_end() {
    EDDY_ASSERT(!program_ && !ending_.empty());
    const bool is_limit = has_failed_ && chosen_.restart.most && *chosen_.restart.most > 0;
    host_->request_end(
        is_limit ? fmt::format("{}, after {} restarts (--restart)", ending_, restarts_in_a_row_)
                 : ending_,
        has_failed_);
}

/// Why a check failed. What its command leaves behind where it takes too long is killed.
task<std::string> program_runtime::check_once() {
    auto how = co_await plan();
    if (!how) co_return std::move(how.error().message);
    EDDY_ASSERT(how->environment);
    how->environment->push_back(check_marker_);
    health_result done =
        co_await check_health(chosen_.health, chosen_.health_timeout, std::move(*how));
    if (done.was_killed)
        static_cast<void>(co_await run_blocking(
            disk_, [variable = check_marker_] { return kill_marked(variable); }));
    co_return std::move(done.fault);
}

task<void> program_runtime::watch_health() {
    if (chosen_.health.by == health_check::kind::none) co_return;
    loop& here = loop::current();
    for (;;) {
        if (!co_await here.sleep_for(chosen_.health_interval)) co_return;
        if (!program_) co_return;
        std::string fault = co_await check_once();
        if ((co_await current_source())->requested() || !program_) co_return;
        was_checked_ = true;
        if (fault.empty()) {
            if (is_unhealthy_) events_.write("healthy again");
            failed_checks_ = 0;
            is_unhealthy_ = false;
            health_fault_.clear();
            continue;
        }
        health_fault_ = std::move(fault);
        if (here.now() - begun_ < chosen_.health_grace) continue;
        if (++failed_checks_ < chosen_.health_fall || is_unhealthy_) continue;
        is_unhealthy_ = true;
        events_.write(fmt::format("unhealthy: {} check{} in a row failed, the last one by: {}",
                                  failed_checks_, failed_checks_ == 1 ? "" : "s", health_fault_));
        has_failed_ = true;
        if (!may_restart()) continue;
        co_await end_program();
        co_return;
    }
}

// --- Vitals and changes --------------------------------------------------------------------------

metrics program_runtime::count() const {
    metrics made(counted_);
    made.add_sample(running_metric, program_ ? 1 : 0);
    made.add_sample(healthy_metric, is_unhealthy_ ? 0 : 1);
    made.add_sample(restarts_metric, static_cast<double>(restarts_.value()));
    return made;
}

std::string program_runtime::fault() const {
    if (!tasks_ || is_stopping_) return {};
    if (program_)
        return is_unhealthy_ ? fmt::format("unhealthy: {}", health_fault_) : std::string();
    if (is_waiting_)
        return fmt::format("the program {}; it is started again in {}", ending_,
                           seconds_text(next_start_ - loop::current().now()));
    return ending_.empty() ? std::string() : fmt::format("the program {}", ending_);
}

std::string program_runtime::detail() const {
    if (!program_) return {};
    std::string text = fmt::format("process {}", program_->pid());
    if (chosen_.notifies && !is_ready_) text += ", not ready yet";
    if (is_unhealthy_)
        text += ", unhealthy";
    else if (was_checked_)
        text += health_fault_.empty() ? ", healthy" : ", a check failed";
    if (restarts_.value() > 0) text += fmt::format(", restarted {} times", restarts_.value());
    if (!status_text_.empty()) text += fmt::format(": {}", status_text_);
    return text;
}

task<outcome<>> program_runtime::check_restart(settings next, bool /*discards_data*/) {
    auto read = read_config(next);
    if (!read) co_return std::unexpected(std::move(read.error()));
    if (auto fine = check_files(*read); !fine) co_return fine;
    std::vector<endpoint> own;
    for (const open_socket& each : sockets_) own.push_back(each.local());
    for (const transport::address& each : read->sockets)
        if (auto fine = try_address(each, own, *host_); !fine) co_return fine;
    if (!read->log.empty() && read->log != chosen_.log) co_return line_log::check(read->log);
    co_return outcome<>();
}

task<outcome<bool>> program_runtime::reread() {
    if (chosen_.reload_signal == 0 || !program_) co_return false;
    if (auto again = output_.reopen(); !again) co_return std::unexpected(std::move(again.error()));
    if (auto sent = program_->kill(chosen_.reload_signal); !sent)
        co_return refuse(500,
                         fmt::format("{} could not be sent: {}", signal_name(chosen_.reload_signal),
                                     sent.error().message()));
    events_.write(
        fmt::format("{} sent to process {}", signal_name(chosen_.reload_signal), program_->pid()));
    co_return true;
}

outcome<> program_runtime::apply(const settings& changed) {
    auto read = read_config(changed);
    if (!read) return std::unexpected(std::move(read.error()));
    given_ = changed;
    const bool has_new_pauses =
        read->first_pause != chosen_.first_pause || read->longest_pause != chosen_.longest_pause;
    copy_live(option_rows(), *read, chosen_);
    if (has_new_pauses) renew_pauses();
    return {};
}

}  // namespace eddy::runtime::program
