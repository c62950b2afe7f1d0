// The daemon as a whole: start, main task and end.
#include "daemon/daemon.hpp"

#include <eddy/base/log.hpp>
#include <eddy/base/unique_fd.hpp>
#include <eddy/io/blocking.hpp>
#include <eddy/io/loop_group.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/signals.hpp>
#include <eddy/net/descriptors.hpp>
#include <eddy/net/tcp.hpp>
#include <eddy/net/unix.hpp>

#include "base/files/private_folder.hpp"
#include "base/log_colour.hpp"
#include "base/text/terminal_text.hpp"
#include "daemon/control/control_api.hpp"
#include "daemon/control/control_server.hpp"
#include "daemon/control/metrics.hpp"
#include "daemon/journal/output_writer.hpp"
#include "daemon/process_setup.hpp"
#include "daemon/runtimes/runtime_parts.hpp"
#include "daemon/single_instance.hpp"
#include "daemon/state/state_folder.hpp"
#include "script/workers.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <utility>

namespace eddy::daemon {
namespace {

constexpr int exit_fatal = 2;

/// Time for threads of scripts to end after all runtimes have stopped.
constexpr duration script_patience = std::chrono::seconds(2);

std::string environment(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

/// All that the daemon prints: none of it waits for a reader.
struct outputs {
    output_writer standard{STDOUT_FILENO, "standard output"};
    output_writer error{STDERR_FILENO, "standard error"};

    void complain(std::string_view message) {
        error.write(fmt::format("eddy daemon: {}\n", escaped_for_terminal(message)));
    }
    /// Ends the process without waiting for anything but these.
    [[noreturn]] void end_at_once(int status) const {
        static_cast<void>(standard.flush());
        static_cast<void>(error.flush());
        std::_Exit(status);
    }
};

std::size_t choose_loops(std::size_t asked) {
    if (asked > 0) return std::min(asked, loop_limit);
    cpu_set_t usable;
    if (sched_getaffinity(0, sizeof usable, &usable) != 0) return 1;
    return std::clamp<std::size_t>(static_cast<std::size_t>(CPU_COUNT(&usable)), 1,
                                   automatic_loop_limit);
}

/// Makes this user's folder in /tmp if `path` is below it, and sees that it is not another user's
/// trap: once it is known to be this user's own, others cannot replace it.
outcome<> prepare_folder_in_tmp(const std::string& path) {
    const std::string folder = own_folder_in_tmp();
    if (!path.starts_with(folder + "/")) return {};
    static_cast<void>(::mkdir(folder.c_str(), 0700));  // what is there then decides
    const std::string fault = private_folder_fault(folder);
    if (fault.empty()) return {};
    return refuse(403, fmt::format("the folder {} {}, so another user could take the place of this "
                                   "daemon. Remove it, or choose other paths with --socket and "
                                   "--state",
                                   folder, fault));
}

/// Makes the folder of the socket where it is missing, by the umask for this user alone.
outcome<> prepare_socket_folder(const std::string& socket) {
    if (socket.starts_with('@')) return {};
    const std::filesystem::path folder = std::filesystem::path(socket).parent_path();
    if (folder.empty()) return {};
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error)
        return refuse(500, fmt::format("could not make the folder {}: {}. Choose another socket "
                                       "with --socket or EDDY_SOCKET",
                                       folder.string(), error.message()));
    return {};
}

/// Everything that lives as long as the daemon; the members end in the reverse order.
class daemon_process {
public:
    daemon_process(const daemon_options& options, signal_set signals, outputs& out)
        : options_(options), out_(out), signals_(std::move(signals)), store_(options.state) {}

    int run();

private:
    outcome<> prepare();
    task<outcome<>> serve();
    task<outcome<>> open_control_socket();
    task<outcome<>> open_metrics_port();
    task<void> await_end(scope& services);
    task<void> await_signals(scope& services);
    task<void> reread();
    task<void> force_end();
    task<void> stop();
    task<void> start_runtimes();
    task<void> await_scripts();
    [[noreturn]] void end_at_once();
    void announce() const;

    const daemon_options& options_;
    outputs& out_;
    signal_set signals_;
    state_folder store_;
    std::optional<state_lock> lock_;
    daemon_facts facts_;
    daemon_counters counted_;
    bool is_stopping_ = false;
    int rereads_ = 0;
    blocking_pool disk_;
    std::unique_ptr<loop> loop_;
    std::unique_ptr<loop_group> loops_;
    std::unique_ptr<runtime_parts> runtimes_;
    std::unique_ptr<control_api> api_;
    std::unique_ptr<metrics_page> metrics_;
    std::unique_ptr<control_server> control_;
    std::unique_ptr<control_server> metrics_server_;
};

outcome<> daemon_process::prepare() {
    for (const std::string& path : {options_.socket, options_.state})
        if (auto ready = prepare_folder_in_tmp(path); !ready) return ready;
    if (auto ready = store_.prepare(); !ready) return ready;
    auto lock = state_lock::take(store_.directory());
    if (!lock) return std::unexpected(std::move(lock.error()));
    lock_ = std::move(*lock);
    if (auto free = check_socket_is_free(options_.socket); !free) return free;
    if (auto ready = prepare_socket_folder(options_.socket); !ready) return ready;

    loop_options on_loop;
    on_loop.kind = options_.io_backend;
    loop_options for_control = on_loop;
    // Requests are few and short.
    for_control.buffer_count = 16;
    auto made = loop::create(for_control);
    if (!made)
        return refuse(
            500, fmt::format("the io-backend {} cannot be used here: {}. Try --io-backend epoll",
                             to_string(options_.io_backend), made.error().message()));
    loop_ = std::move(*made);

    loop_group_options group;
    group.threads = choose_loops(options_.loops);
    group.loop = on_loop;
    group.loop.kind = loop_->kind();
    auto started = loop_group::start(group);
    if (!started)
        return refuse(500, fmt::format("could not start {} loops: {}", group.threads,
                                       started.error().message()));
    loops_ = std::move(*started);

    facts_.name = options_.name;
    facts_.version = version();
    facts_.socket = options_.socket;
    facts_.state = options_.state;
    facts_.io_backend = to_string(loop_->kind());
    facts_.loops = loops_->size();
    facts_.started_at = loop_->now();
    return {};
}

int daemon_process::run() {
    if (auto ready = prepare(); !ready) {
        out_.complain(ready.error().message);
        return exit_fatal;
    }
    runtime_parts_options how;
    how.types = options_.types;
    how.journal_folder = store_.journal_folder();
    how.handover_folder = store_.directory();
    how.drain = options_.drain;
    if (lock_->after_a_crash()) how.address_grace = crash_grace;
    runtimes_ = std::make_unique<runtime_parts>(store_, disk_, *loops_, how);
    api_ = std::make_unique<control_api>(*runtimes_, facts_, counted_);
    metrics_ = std::make_unique<metrics_page>(*runtimes_, facts_, counted_);
    auto served = loop_->run(serve());
    if (!served) {
        out_.complain(served.error().message);
        return exit_fatal;
    }
    return 0;
}

task<outcome<>> daemon_process::serve() {
    auto opened = co_await runtimes_->restore.load();
    if (opened) opened = co_await open_control_socket();
    if (opened) opened = co_await open_metrics_port();
    if (opened) {
        scope services(co_await current_source());
        services.spawn(control_->run());
        if (metrics_server_) services.spawn(metrics_server_->run());
        // Files may be large: requests and signals are served meanwhile.
        services.spawn(start_runtimes());
        co_await await_end(services);
        is_stopping_ = true;
        control_->stop_accepting();
        services.spawn(force_end());
        co_await stop();
        services.cancel();
        co_await services.join();
    } else {
        co_await stop();
    }
    // The threads end while this loop still runs: what they report last finds a listener.
    loop_group& loops = *loops_;
    static_cast<void>(co_await run_blocking(disk_, [&loops] { loops.stop(); }));
    co_await loop_->yield();
    co_await await_scripts();
    if (opened) {
        lock_->release();
        log_info("daemon", "stopped");
    }
    co_return opened;
}

/// A thread that hangs in a library of C cannot be ended.
task<void> daemon_process::await_scripts() {
    const auto stuck =
        co_await run_blocking(disk_, [] { return script::workers::await_all(script_patience); });
    if (!stuck) co_return;
    for (const std::string& each : *stuck)
        log_warn(each, "a call of its script does not return; the daemon ends without it");
}

task<void> daemon_process::start_runtimes() {
    co_await runtimes_->restore.start_loaded();
    if (is_stopping_) co_return;
    facts_.ready = true;
    announce();
}

task<outcome<>> daemon_process::open_control_socket() {
    // An abstract name has no permissions: there the server checks the peer's user alone.
    listen_options how;
    if (!options_.socket.starts_with('@')) how.unix_mode = 0600;
    auto opened = unix_socket::listen(options_.socket, how);
    if (!opened)
        co_return refuse(500, fmt::format("could not listen on {}: {}. Choose another path with "
                                          "--socket or EDDY_SOCKET",
                                          options_.socket, opened.error().message()));
    unix_socket::refuse_descriptors(opened->native_handle());
    control_ = std::make_unique<control_server>(std::move(*opened), *api_, counted_,
                                                server_limits(), true);
    co_return outcome<>();
}

task<outcome<>> daemon_process::open_metrics_port() {
    if (!options_.metrics_port) co_return outcome<>();
    auto opened = tcp::listen("127.0.0.1", *options_.metrics_port);
    if (!opened)
        co_return refuse(500,
                         fmt::format("could not listen on 127.0.0.1:{} for metrics: {}. Choose "
                                     "another port with --metrics-port",
                                     *options_.metrics_port, opened.error().message()));
    log_info("daemon", fmt::format("metrics on http://{}/metrics", opened->local().to_string()));
    metrics_server_ = std::make_unique<control_server>(std::move(*opened), *metrics_, counted_,
                                                       server_limits(), false);
    co_return outcome<>();
}

void daemon_process::announce() const {
    out_.standard.write(
        fmt::format("eddy daemon ready: socket {}, state {}, io-backend {}, pid {}\n",
                    options_.socket, options_.state, facts_.io_backend, ::getpid()));
}

/// Returns when the daemon is to end: at a signal, once all that must last is written; at the next
/// one in any case.
task<void> daemon_process::await_end(scope& services) {
    for (bool is_last = false;; is_last = true) {
        co_await await_signals(services);
        if (is_last) co_return;
        scope watching(co_await current_source());
        watching.spawn(force_end());
        auto ready = co_await runtimes_->lifecycle.prepare_shutdown(options_.drain);
        watching.cancel();
        co_await watching.join();
        if (ready) co_return;
        log_error("daemon", fmt::format("not stopped, and goes on as before: {}. Fix that and send "
                                        "SIGTERM again: the second one stops the daemon in any "
                                        "case, and data that still cannot be saved is lost",
                                        ready.error().message));
    }
}

/// Returns at the signal that ends the daemon.
task<void> daemon_process::await_signals(scope& services) {
    for (;;) {
        const auto signal = co_await signals_.next();
        if (!signal) {
            log_error("daemon",
                      fmt::format("cannot wait for signals: {}", signal.error().message()));
            co_return;
        }
        if (*signal != SIGHUP) {
            log_info("daemon",
                     fmt::format("{}: stopping", *signal == SIGINT ? "SIGINT" : "SIGTERM"));
            co_return;
        }
        log_info("daemon", "SIGHUP: reading the state again");
        // One that waits reads what all of them are for.
        if (rereads_ < 2) services.spawn(reread());
    }
}

task<void> daemon_process::reread() {
    ++rereads_;
    const struct ended {
        int& rereads;
        ~ended() { --rereads; }
    } at_the_end{rereads_};
    auto summary = co_await runtimes_->restore.reread();
    if (!summary) log_error("daemon", summary.error().message);
}

/// A second signal during the drain: the user is in a hurry, and the state is saved already.
task<void> daemon_process::force_end() {
    for (;;) {
        const auto signal = co_await signals_.next();
        if (!signal) co_return;
        if (*signal == SIGHUP) continue;
        log_warn("daemon", "a second signal: ending without waiting for connections");
        end_at_once();
    }
}

task<void> daemon_process::stop() {
    const bool complete = co_await runtimes_->lifecycle.shut_down(options_.drain);
    if (complete) co_return;
    // A thread that does not answer cannot be joined. Everything that must last is on the disk.
    log_error("daemon", "a loop does not answer; ending without it");
    end_at_once();
}

/// The listener removes the control socket's file, if it still is its own.
void daemon_process::end_at_once() {
    if (control_) control_->stop_accepting();
    out_.end_at_once(exit_fatal);
}

}  // namespace

std::string default_socket() {
    if (::geteuid() == 0) return std::string(control_socket_of_root);
    std::error_code error;
    // The system's folders for this user. After su(1) the variable may still name another user's.
    for (const std::string& folder :
         {environment("XDG_RUNTIME_DIR"), fmt::format("/run/user/{}", ::geteuid())}) {
        if (folder.starts_with('/') && std::filesystem::exists(folder, error) &&
            private_folder_fault(folder).empty())
            return folder + "/eddy.sock";
    }
    return own_folder_in_tmp() + "/eddy.sock";
}

std::string default_state() {
    if (::geteuid() == 0) return "/var/lib/eddy";
    const std::string state = environment("XDG_STATE_HOME");
    if (!state.empty()) return state + "/eddy";
    const std::string home = environment("HOME");
    return home.empty() ? own_folder_in_tmp() + "/state" : home + "/.local/state/eddy";
}

std::string version() { return EDDY_VERSION; }

std::vector<std::string> parts() {
    std::vector<std::string> made;
    if (EDDY_HAS_URING) made.emplace_back("io_uring");
    if (EDDY_HAS_TLS) made.emplace_back("tls");
    if (EDDY_HAS_SCRIPTS) made.emplace_back("scripts");
    return made;
}

int run_daemon(const daemon_options& options) {
    auto signals = set_up_process();
    outputs out;
    if (!signals) {
        out.complain(fmt::format("cannot receive signals: {}", signals.error().message()));
        return exit_fatal;
    }
    set_log_sink([&out](log_level level, std::string_view line) {
        out.error.write(log_line_for_stderr(level, line));
    });
    const int status = daemon_process(options, std::move(*signals), out).run();
    set_log_sink({});
    // A thread that hangs may hold a lock that exit() waits for, such as that of a FILE.
    if (!script::workers::await_all({}).empty()) out.end_at_once(status);
    return status;
}

}  // namespace eddy::daemon
