// The daemon as a whole: start, main task and end.
#include "daemon/daemon.hpp"

#include <eddy/base/assert.hpp>
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
#include "base/files/socket_owner.hpp"
#include "base/log_colour.hpp"
#include "base/text/terminal_text.hpp"
#include "daemon/cluster/cluster_service.hpp"
#include "daemon/cluster/engines.hpp"
#include "daemon/console/console.hpp"
#include "daemon/control/control_api.hpp"
#include "daemon/control/control_server.hpp"
#include "daemon/control/keyed_handler.hpp"
#include "daemon/control/metrics.hpp"
#include "daemon/idle_memory.hpp"
#include "daemon/journal/output_writer.hpp"
#include "daemon/process_setup.hpp"
#include "daemon/runtimes/runtime_parts.hpp"
#include "daemon/service/journal_lines.hpp"
#include "daemon/service/reporting_handler.hpp"
#include "daemon/service/service_manager.hpp"
#include "daemon/service/service_reports.hpp"
#include "daemon/service/socket_group.hpp"
#include "daemon/single_instance.hpp"
#include "daemon/state/state_folder.hpp"
#include "daemon/upgrade/incoming_upgrade.hpp"
#include "daemon/upgrade/new_program.hpp"
#include "daemon/upgrade/outgoing_upgrade.hpp"
#include "daemon/upgrade/upgrade_channel.hpp"
#include "io/uring/ring_entries.hpp"
#include "runtime/serving/passed_listeners.hpp"
#include "script/script_threads.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <utility>

namespace eddy::daemon {
namespace {

constexpr int exit_fatal = 2;

/// Time for threads of scripts to end after all runtimes have stopped.
constexpr duration script_patience = std::chrono::seconds(2);

/// Time for control connections to get their answers after an upgrade.
constexpr duration last_answer_time = std::chrono::seconds(2);
constexpr duration last_answer_pause = std::chrono::milliseconds(5);
/// Time for a cluster to answer before runtimes start. One that is away is joined later; a name
/// that another member has is refused within it.
constexpr duration join_patience = std::chrono::milliseconds(1500);
/// Between two looks at changes that are under way, before an upgrade.
constexpr duration changes_pause = std::chrono::milliseconds(10);

std::string environment(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

/// All that the daemon prints: none of it waits for a reader.
struct outputs {
    output_writer standard{STDOUT_FILENO, "standard output"};
    output_writer error{STDERR_FILENO, "standard error"};

    void complain(std::string_view message) {
        error.write(fmt::format("{}eddy daemon: {}\n", stderr_is_journal() ? "<3>" : "",
                                escaped_for_terminal(message)));
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

/// An abstract socket and a key for the daemon's own runtimes; none where there are no random
/// bytes. The names of sockets can be read by each user, so the name alone is not enough.
runtime::control_access own_access() {
    std::array<std::uint64_t, 4> bits{};
    if (::getrandom(bits.data(), sizeof bits, 0) != static_cast<ssize_t>(sizeof bits)) return {};
    return {fmt::format("@eddy-{:016x}{:016x}", bits[0], bits[1]),
            fmt::format("{:016x}{:016x}", bits[2], bits[3])};
}

/// Everything that lives as long as the daemon; the members end in the reverse order.
class daemon_process {
public:
    daemon_process(const daemon_options& options, signal_set signals, service_manager manager,
                   outputs& out, std::optional<upgrade_channel> from)
        : options_(options),
          out_(out),
          signals_(std::move(signals)),
          manager_(std::move(manager)),
          store_(options.state) {
        if (from) incoming_.emplace(std::move(*from));
    }

    int run();

private:
    outcome<> prepare();
    task<outcome<>> serve();
    task<outcome<>> open_control_socket();
    void open_own_socket();
    task<outcome<>> open_metrics_port();
    task<void> await_end(scope& services);
    task<void> await_signals(scope& services);
    task<void> reread();
    task<void> force_end();
    task<void> stop();
    task<void> start_runtimes();
    task<outcome<>> load_or_take_over();
    result<listener> control_listener();
    result<listener> metrics_listener();
    task<outcome<>> serve_in_its_place(outcome<> opened);
    /// An upgrade, on behalf of a request that may be gone before its end.
    struct upgrade_result {
        outcome<upgrade_report> value;
        event is_there;
    };
    task<outcome<upgrade_report>> upgrade(upgrade_request wanted);
    task<void> run_upgrade(upgrade_request wanted, std::shared_ptr<upgrade_result> into);
    task<outcome<upgrade_report>> try_upgrade(upgrade_request wanted);
    task<void> pass_on(int to);
    task<void> pass_on_service(int to);
    task<outcome<>> join_cluster();
    void take_membership_over();
    cluster_service::engine_factory engine_of_cluster() const;
    void refuse_membership(problem why);
    void own_sockets() noexcept;
    void share_sockets() noexcept;
    void take_console_over();
    task<void> end_after_upgrade(scope& services);
    task<void> await_scripts();
    int give_up(const problem& why);
    std::string status_text() const;
    [[noreturn]] void end_at_once();
    void announce() const;

    const daemon_options& options_;
    outputs& out_;
    signal_set signals_;
    service_manager manager_;
    state_folder store_;
    std::optional<state_lock> lock_;
    std::optional<gid_t> group_;
    daemon_facts facts_;
    daemon_counters counted_;
    bool is_asked_to_stop_ = false;  // and not given up
    bool is_stopping_ = false;
    std::optional<incoming_upgrade> incoming_;  // it took another daemon's place
    std::unique_ptr<outgoing_upgrade> outgoing_;
    bool is_passed_on_ = false;            // to the process of an upgrade
    std::optional<problem> refusal_ = {};  // of the cluster, which does not take this daemon
    cancel_source ended_;                  // requested in both cases
    scope* services_ = nullptr;            // while it serves
    int rereads_ = 0;
    blocking_pool disk_;
    std::unique_ptr<loop> loop_;
    std::unique_ptr<loop_group> loops_;
    std::unique_ptr<runtime_parts> runtimes_;
    std::unique_ptr<service_reports> reports_;
    std::unique_ptr<control_api> api_;
    std::unique_ptr<reporting_handler> reported_api_;
    std::unique_ptr<console> console_;
    std::unique_ptr<metrics_page> metrics_;
    std::unique_ptr<cluster_service> cluster_;  // null: it is in none
    std::unique_ptr<control_server> control_;
    const runtime::control_access own_access_ = own_access();
    std::unique_ptr<keyed_handler> own_handler_;
    std::unique_ptr<control_server> own_control_;  // of runtimes
    std::unique_ptr<control_server> metrics_server_;
};

outcome<> daemon_process::prepare() {
    for (const std::string& path : {options_.socket, options_.state})
        if (auto ready = prepare_folder_in_tmp(path); !ready) return ready;
    if (!options_.socket_group.empty()) {
        auto group = find_group(options_.socket_group, "--socket-group");
        if (!group) return std::unexpected(std::move(group.error()));
        group_ = *group;
    }
    if (auto ready = store_.prepare(); !ready) return ready;
    // In an upgrade both are the other daemon's still.
    if (!incoming_) {
        auto lock = state_lock::take(store_.directory());
        if (!lock) return std::unexpected(std::move(lock.error()));
        lock_ = std::move(*lock);
        if (auto free = check_socket_is_free(options_.socket); !free) return free;
    }
    if (auto ready = prepare_socket_folder(options_.socket); !ready) return ready;

    static_assert(least_ring_entries == eddy::detail::least_ring_entries &&
                  most_ring_entries == eddy::detail::most_ring_entries);
    if (options_.ring_entries > 0)
        eddy::detail::ring_entries = static_cast<unsigned>(options_.ring_entries);
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
    if (EDDY_HAS_URING && options_.io_backend == io_backend_kind::automatic &&
        loop_->kind() == io_backend_kind::epoll) {
        for_control.kind = io_backend_kind::uring;
        const auto refused = loop::create(for_control);
        log_warn("daemon", fmt::format("io_uring cannot be used here ({}): epoll takes its place, "
                                       "which costs speed and nothing else. --io-backend epoll "
                                       "chooses it without this line",
                                       refused ? "not at first" : refused.error().message()));
    }

    loop_group_options group;
    group.threads = choose_loops(options_.loops);
    group.loop = on_loop;
    group.loop.kind = loop_->kind();
    group.loop.sqpoll = options_.sqpoll && loop_->kind() == io_backend_kind::uring;
    if (loop_->kind() != io_backend_kind::uring && (options_.sqpoll || options_.ring_entries > 0))
        log_warn("daemon",
                 "--sqpoll and --ring-entries have no effect: they are for io_uring, and "
                 "the kernel refuses it here, so the io-backend is epoll");
    auto started = loop_group::start(group);
    if (!started)
        return refuse(500, fmt::format("could not start {} loops: {}{}", group.threads,
                                       started.error().message(),
                                       group.loop.sqpoll ? "; try without --sqpoll" : ""));
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
    if (auto ready = prepare(); !ready) return give_up(ready.error());
    runtime_parts_options how;
    how.types = options_.types;
    how.journal_folder = store_.journal_folder();
    how.handover_folder = store_.directory();
    how.control = own_access_;
    how.drain = options_.drain;
    if (options_.runtimes > 0) how.runtimes = options_.runtimes;
    if (lock_ && lock_->after_a_crash()) how.address_grace = crash_grace;
    runtimes_ = std::make_unique<runtime_parts>(store_, disk_, *loops_, how);
    reports_ =
        std::make_unique<service_reports>(manager_, *loops_, [this] { return status_text(); });
    if (incoming_) reports_->await_main();
    api_ = std::make_unique<control_api>(*runtimes_, facts_, counted_);
    reported_api_ = std::make_unique<reporting_handler>(*api_, *reports_);
    console_ = std::make_unique<console>(*reported_api_, counted_);
    api_->set_console(*console_);
    api_->set_upgrader([this](upgrade_request wanted) { return upgrade(std::move(wanted)); });
    metrics_ = std::make_unique<metrics_page>(*runtimes_, facts_, counted_);
    if (options_.cluster) {
        cluster_ = std::make_unique<cluster_service>(*options_.cluster, facts_.name, facts_.version,
                                                     *runtimes_);
        api_->set_cluster(*cluster_);
    }
    auto served = loop_->run(serve());
    if (!served) return give_up(served.error());
    return 0;
}

/// The daemon could not start.
int daemon_process::give_up(const problem& why) {
    out_.complain(why.message);
    // In an upgrade the other process is the service.
    if (!incoming_)
        static_cast<void>(manager_.notify("STATUS=" + escaped_for_terminal(why.message)));
    return exit_fatal;
}

std::string daemon_process::status_text() const {
    std::size_t running = 0;
    std::size_t failed = 0;
    for (const runtime_ref& each : runtimes_->registry.all()) {
        running += each->running.status() == runtime_status::running ? 1U : 0U;
        failed += each->running.status() == runtime_status::failed ? 1U : 0U;
    }
    const char* doing = is_asked_to_stop_ ? "Stopping" : facts_.ready ? "Serving" : "Starting";
    const std::size_t all = runtimes_->registry.size();
    return fmt::format("{}: {} runtime{}, {} running, {} failed", doing, all, all == 1 ? "" : "s",
                       running, failed);
}

task<outcome<>> daemon_process::serve() {
    auto opened = co_await load_or_take_over();
    if (opened) opened = co_await open_control_socket();
    if (opened) opened = co_await open_metrics_port();
    if (incoming_) opened = co_await serve_in_its_place(std::move(opened));
    if (opened && cluster_ && !incoming_) opened = co_await join_cluster();
    if (opened) {
        scope services(co_await current_source());
        reports_->starting();
        services.spawn(reports_->run());
        services_ = &services;
        if (incoming_)
            services.spawn(
                incoming_->take_clients(*runtimes_, {.own_left = [this] { own_sockets(); },
                                                     .became_main =
                                                         [this] {
                                                             reports_->become_main();
                                                             if (cluster_) take_membership_over();
                                                         }}));
        services.spawn(control_->run());
        if (own_control_) services.spawn(own_control_->run());
        if (metrics_server_) services.spawn(metrics_server_->run());
        // Files may be large: requests and signals are served meanwhile.
        services.spawn(start_runtimes());
        services.spawn(runtimes_->lifecycle.watch_faults());
        services.spawn(runtimes_->lifecycle.save_ends());
        services.spawn(return_idle_memory(disk_));
        co_await await_end(services);
        is_stopping_ = true;
        services.spawn(force_end());
        if (is_passed_on_) {
            co_await end_after_upgrade(services);
        } else {
            control_->stop_accepting();
            if (own_control_) own_control_->stop_accepting();
            if (cluster_) co_await cluster_->changes()->close();
            co_await stop();
        }
        services.cancel();
        co_await services.join();
        co_await console_->close();
        services_ = nullptr;
        if (refusal_) opened = std::unexpected(*refusal_);
    } else {
        co_await stop();
    }
    if (cluster_) co_await cluster_->end();
    // The threads end while this loop still runs: what they report last finds a listener.
    loop_group& loops = *loops_;
    static_cast<void>(co_await run_blocking(disk_, [&loops] { loops.stop(); }));
    co_await loop_->yield();
    co_await await_scripts();
    if (opened || refusal_) {
        if (lock_) lock_->release();
        log_info("daemon", is_passed_on_ ? "stopped after the upgrade" : "stopped");
    }
    co_return opened;
}

// --- Cluster --------------------------------------------------------------------------------

/// Begins to join, and waits a short time for the answer.
task<outcome<>> daemon_process::join_cluster() {
    auto begun = cluster_->begin(engine_of_cluster(), begin_member(),
                                 [this](problem why) { refuse_membership(std::move(why)); });
    if (!begun) co_return begun;
    co_await cluster_->await_answer(join_patience);
    if (refusal_) co_return std::unexpected(*refusal_);
    co_return outcome<>();
}

/// In an upgrade, once the other process has passed it on. Nothing that happens there ends this
/// daemon.
void daemon_process::take_membership_over() {
    member_start as = incoming_->membership();
    if (as.id.empty()) as = begin_member();
    const auto begun = cluster_->begin(engine_of_cluster(), std::move(as), nullptr);
    if (!begun) log_error("daemon", fmt::format("not in the cluster: {}", begun.error().message));
}

cluster_service::engine_factory daemon_process::engine_of_cluster() const {
    return [this](cluster::observer& to) { return make_engine(options_.cluster->engine, to); };
}

void daemon_process::refuse_membership(problem why) {
    refusal_ = std::move(why);
    ended_.request();
}

/// The stored state; in an upgrade also what the other daemon passes on.
task<outcome<>> daemon_process::load_or_take_over() {
    if (incoming_) {
        auto begun = co_await incoming_->begin();
        if (!begun) co_return begun;
        lock_ = state_lock::adopt(incoming_->take_lock());
    }
    if (incoming_ && cluster_) cluster_->inherit(decode_members(incoming_->members()));
    auto loaded = co_await runtimes_->restore.load();
    if (!loaded || !incoming_) co_return loaded;
    co_return co_await incoming_->take_over(*runtimes_, facts_.version);
}

/// The last step of an upgrade on the new daemon's side. On failure the process ends: the other
/// daemon continues, and nothing here may touch what it has.
task<outcome<>> daemon_process::serve_in_its_place(outcome<> opened) {
    if (opened) opened = co_await incoming_->serve(*runtimes_);
    if (!opened) {
        out_.complain(opened.error().message);
        co_await incoming_->fail(std::move(opened.error().message));
        end_at_once();
    }
    lock_->note_holder();
    take_console_over();
    own_sockets();
    co_return outcome<>();
}

/// Takes over the console of the other daemon, if one is open: its pages find this one.
void daemon_process::take_console_over() {
    EDDY_ASSERT(incoming_);
    unique_fd passed = incoming_->take_listener("console");
    if (!passed) return;
    outcome<> taken;
    auto adopted = loop_->adopt_listener(std::move(passed));
    if (adopted)
        taken = console_->take_over(std::move(*adopted), incoming_->console_token());
    else
        taken = refuse(500, adopted.error().message());
    if (!taken)
        log_warn("daemon", fmt::format("the console is closed: {}; `eddy console` opens it again",
                                       taken.error().message));
}

/// No other process accepts from the daemon's own sockets.
void daemon_process::own_sockets() noexcept {
    runtime::take_possession(control_->socket());
    if (metrics_server_) runtime::take_possession(metrics_server_->socket());
    if (console_->socket() != nullptr) runtime::take_possession(*console_->socket());
}

/// Another process has copies of the daemon's own sockets.
void daemon_process::share_sockets() noexcept {
    runtime::share(control_->socket());
    if (metrics_server_) runtime::share(metrics_server_->socket());
    if (console_->socket() != nullptr) runtime::share(*console_->socket());
}

task<outcome<upgrade_report>> daemon_process::upgrade(upgrade_request wanted) {
    auto result = std::make_shared<upgrade_result>();
    if (services_ == nullptr || is_stopping_) co_return refuse(503, "the daemon is stopping");
    services_->spawn(run_upgrade(std::move(wanted), result));
    if (!co_await result->is_there.wait()) co_return refuse(503, "the daemon is stopping");
    co_return std::move(result->value);
}

task<void> daemon_process::run_upgrade(upgrade_request wanted,
                                       std::shared_ptr<upgrade_result> into) {
    into->value = co_await try_upgrade(std::move(wanted));
    into->is_there.set();
    if (into->value) ended_.request();
}

task<outcome<upgrade_report>> daemon_process::try_upgrade(upgrade_request wanted) {
    if (outgoing_ || is_passed_on_)
        co_return refuse(409, "another upgrade of the daemon is under way");
    if (!facts_.ready)
        co_return refuse(409,
                         "the daemon is still starting its runtimes; try again when it is "
                         "ready");
    if (::getpid() == 1)
        co_return refuse(409,
                         "the daemon is the first process of its container, which ends with "
                         "it: start a container of the new version instead");
    const time_point until = loop_->after(wanted.patience);
    while (incoming_ && !incoming_->is_settled() && loop_->now() < until)
        if (!co_await loop_->sleep_for(changes_pause)) break;
    if (incoming_ && !incoming_->is_settled())
        co_return refuse(409,
                         "the upgrade before has not ended: the daemon of before still passes "
                         "clients on; try again in a moment");
    if (outgoing_) co_return refuse(409, "another upgrade of the daemon is under way");
    passed_daemon passed;
    passed.version = facts_.version;
    passed.lock = lock_->descriptor();
    passed.listeners.emplace_back("control", control_->socket().native_handle());
    if (metrics_server_)
        passed.listeners.emplace_back("metrics", metrics_server_->socket().native_handle());
    if (const auto place = console_->place())
        passed.listeners.emplace_back("console", console_->socket()->native_handle(), place->token);
    if (cluster_) {
        passed.membership = cluster_->start();
        passed.members = encode_members(*cluster_->current());
    }
    outgoing_ =
        std::make_unique<outgoing_upgrade>(*runtimes_, std::move(passed), std::move(wanted));
    api_->refuse_changes(true);
    while (api_->changes_under_way() > 0 && loop_->now() < until)
        if (!co_await loop_->sleep_for(changes_pause)) break;
    // The other process reads them.
    static_cast<void>(
        co_await run_blocking(disk_, [runtimes = runtimes_.get()] { runtimes->flush_journals(); }));
    share_sockets();
    // For the others these runtimes serve without a pause.
    if (cluster_) cluster_->hold_published(true);
    auto done = co_await outgoing_->run();
    if (done) {
        co_await pass_on(done->pid);
        co_return done;
    }
    own_sockets();
    outgoing_.reset();
    if (cluster_) cluster_->hold_published(false);
    api_->refuse_changes(false);
    co_return done;
}

/// The service manager takes reports of the new process from then on, and of no other.
task<void> daemon_process::pass_on_service(int to) {
    EDDY_ASSERT(to > 0 && outgoing_);
    reports_->hand_over();
    const time_point until = loop_->after(last_answer_time);
    for (;;) {
        const auto told = manager_.notify(fmt::format("MAINPID={}\n", to));
        if (told) break;
        const bool is_full = told.error() == std::errc::resource_unavailable_try_again;
        if (is_full && loop_->now() < until && co_await loop_->sleep_for(changes_pause)) continue;
        log_error("daemon", fmt::format("the service manager was not told that pid {} is the "
                                        "service's process now: {}",
                                        to, told.error().message()));
        break;
    }
    co_await outgoing_->note_main();
}

/// The new daemon serves: this one accepts no more.
task<void> daemon_process::pass_on(int to) {
    EDDY_ASSERT(outgoing_ && services_ != nullptr && !is_passed_on_);
    is_passed_on_ = true;
    if (cluster_) co_await cluster_->pass_on();
    co_await pass_on_service(to);
    control_->end_accepting();
    if (metrics_server_) metrics_server_->end_accepting();
    console_->end_accepting();
    services_->spawn(outgoing_->leave());
    const time_point until = loop_->after(last_answer_time);
    while (loop_->now() < until && (control_->is_accepting() || console_->is_accepting() ||
                                    (metrics_server_ && metrics_server_->is_accepting())))
        if (!co_await loop_->sleep_for(last_answer_pause)) break;
    co_await outgoing_->note_own_sockets_left();
    // Its descriptor alone: the other process has the lock, and shall be the only one.
    lock_.reset();
    static_cast<void>(
        co_await run_blocking(disk_, [runtimes = runtimes_.get()] { runtimes->stop_journals(); }));
    log_info("daemon",
             fmt::format("upgraded: pid {} serves; this daemon ends when its clients have "
                         "finished",
                         to));
}

task<void> daemon_process::end_after_upgrade(scope& services) {
    for (const runtime_ref& each : runtimes_->registry.all()) each->end_followers();
    // Events from now on are the other daemon's.
    co_await runtimes_->registry.events()->close();
    if (cluster_) co_await cluster_->changes()->close();
    const time_point until = loop_->after(last_answer_time);
    while (loop_->now() < until &&
           (control_->sessions() > 0 || (metrics_server_ && metrics_server_->sessions() > 0)))
        if (!co_await loop_->sleep_for(last_answer_pause)) break;
    control_->stop_accepting();
    if (metrics_server_) metrics_server_->stop_accepting();
    // Pages ask again, and find the other daemon.
    co_await console_->close();
    static_cast<void>(services);
    co_await stop();
}

/// A listener of the other daemon in an upgrade; else a new one.
result<listener> daemon_process::control_listener() {
    if (incoming_) return loop_->adopt_listener(incoming_->take_listener("control"));
    // An abstract name has no permissions: there the server checks the peer's user alone.
    listen_options how;
    if (!options_.socket.starts_with('@')) how.unix_mode = 0600;
    return unix_socket::listen(options_.socket, how);
}

result<listener> daemon_process::metrics_listener() {
    if (incoming_)
        if (unique_fd passed = incoming_->take_listener("metrics"); passed)
            return loop_->adopt_listener(std::move(passed));
    return tcp::listen("127.0.0.1", *options_.metrics_port);
}

// --- Its parts ------------------------------------------------------------------------------

/// A thread that hangs in a library of C cannot be ended.
task<void> daemon_process::await_scripts() {
    const auto stuck = co_await run_blocking(
        disk_, [] { return script::script_threads::await_all(script_patience); });
    if (!stuck) co_return;
    for (const std::string& each : *stuck)
        log_warn(each, "a call of its script does not return; the daemon ends without it");
}

task<void> daemon_process::start_runtimes() {
    co_await runtimes_->restore.start_loaded();
    if (is_stopping_) co_return;
    facts_.ready = true;
    announce();
    if (!is_asked_to_stop_) reports_->ready();
}

task<outcome<>> daemon_process::open_control_socket() {
    auto opened = control_listener();
    if (!opened)
        co_return refuse(500, fmt::format("could not listen on {}: {}. Choose another path with "
                                          "--socket or EDDY_SOCKET",
                                          options_.socket, opened.error().message()));
    if (group_ && !options_.socket.starts_with('@'))
        if (auto given = give_to_group(options_.socket, *group_); !given) co_return given;
    unix_socket::refuse_descriptors(opened->native_handle());
    server_limits limits;
    limits.refuses_own_process = true;
    limits.group = group_;
    control_ = std::make_unique<control_server>(std::move(*opened), *reported_api_, counted_,
                                                limits, true);
    open_own_socket();
    co_return outcome<>();
}

/// The socket of runtimes with --lua-admin. Without it their requests fail, and nothing else does.
void daemon_process::open_own_socket() {
    if (own_access_.socket.empty()) return;
    auto opened = unix_socket::listen(own_access_.socket, {});
    if (!opened) {
        log_warn("daemon", fmt::format("scripts cannot change runtimes: could not listen on {}: {}",
                                       own_access_.socket, opened.error().message()));
        return;
    }
    unix_socket::refuse_descriptors(opened->native_handle());
    server_limits limits;
    limits.refuses_other_processes = true;
    own_handler_ = std::make_unique<keyed_handler>(*reported_api_, own_access_.key);
    own_control_ =
        std::make_unique<control_server>(std::move(*opened), *own_handler_, counted_, limits, true);
}

task<outcome<>> daemon_process::open_metrics_port() {
    if (!options_.metrics_port) co_return outcome<>();
    auto opened = metrics_listener();
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
        co_await await_signals(services).under(ended_);
        // An upgrade that is under way ends without success, or has just had it.
        if (outgoing_ && !is_passed_on_) outgoing_->give_up();
        if (!is_passed_on_) {
            is_asked_to_stop_ = true;
            reports_->stopping();
        }
        if (is_last || is_passed_on_) co_return;
        scope watching(co_await current_source());
        watching.spawn(force_end());
        if (cluster_) co_await cluster_->begin_leaving();
        auto ready = co_await runtimes_->lifecycle.prepare_shutdown(options_.drain);
        watching.cancel();
        co_await watching.join();
        if (ready) co_return;
        is_asked_to_stop_ = false;
        if (cluster_) cluster_->stay();
        if (facts_.ready) reports_->ready();
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
        if (!signal && (is_passed_on_ || refusal_)) co_return;
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
        if (outgoing_) {
            log_warn("daemon", "SIGHUP: ignored, since an upgrade is under way");
            continue;
        }
        log_info("daemon", "SIGHUP: reading the state again");
        // One that waits reads what all of them are for.
        if (rereads_ < 2) services.spawn(reread());
    }
}

task<void> daemon_process::reread() {
    ++rereads_;
    if (facts_.ready && !is_asked_to_stop_) reports_->reloading();
    const struct ended {
        int& rereads;
        ~ended() { --rereads; }
    } at_the_end{rereads_};
    auto summary = co_await runtimes_->restore.reread();
    if (!summary) log_error("daemon", summary.error().message);
    if (rereads_ == 1 && facts_.ready && !is_asked_to_stop_) reports_->ready();
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
    auto from = upgrade_channel::take_from_environment();
    auto signals = set_up_process();
    service_manager manager = service_manager::take_from_environment();
    outputs out;
    if (!signals) {
        out.complain(fmt::format("cannot receive signals: {}", signals.error().message()));
        return exit_fatal;
    }
    set_log_sink([&out, to_journal = stderr_is_journal()](log_level level, std::string_view line) {
        if (to_journal) return out.error.write(journal_line(level, line));
        out.error.write(log_line_for_stderr(level, line));
    });
    const int status =
        daemon_process(options, std::move(*signals), std::move(manager), out, std::move(from))
            .run();
    set_log_sink({});
    // A thread that hangs may hold a lock that exit() waits for, such as that of a FILE.
    if (!script::script_threads::await_all({}).empty()) out.end_at_once(status);
    return status;
}

}  // namespace eddy::daemon
