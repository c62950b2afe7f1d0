// The running daemon's side of an upgrade.
#include "daemon/upgrade/outgoing_upgrade.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/base/log.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/timeout.hpp>

#include "daemon/state/runtime_record.hpp"
#include "daemon/upgrade/new_program.hpp"
#include "daemon/upgrade/passed_socket.hpp"

#include <fmt/format.h>

#include <csignal>
#include <utility>

namespace eddy::daemon {
namespace {

/// Time for a program that has closed its channel to end, so that its status can be said.
constexpr duration end_patience = std::chrono::seconds(2);

using restart_clients = runtime::type::restart_clients;

/// It may need others for its start, so it starts while they serve.
bool is_first(const runtime::type& type) {
    return type.over_restart == restart_clients::none ||
           (type.over_restart == restart_clients::wait && type.uses_others);
}

bool has_data(const runtime::type& type) {
    return type.over_restart == restart_clients::wait && !type.uses_others;
}

/// Its work is done: it must not be started again. One that watches others finds their end again.
bool has_ended(const managed_runtime& which) noexcept {
    return which.has_ended() && which.desired.type->over_restart == restart_clients::wait;
}

bool is_beside(const managed_runtime& which) noexcept {
    return which.desired.type->over_restart == restart_clients::served;
}

}  // namespace

task<outcome<upgrade_report>> outgoing_upgrade::run() {
    EDDY_ASSERT(!channel_ && !program_ && passengers_.empty());
    const time_point begun = loop::current().now();
    auto program = check_program(wanted_.program);
    if (!program) co_return std::unexpected(std::move(program.error()));
    report_.program = std::move(*program);
    auto ready = co_await lock_all();
    if (!ready) {
        passengers_.clear();
        co_return std::unexpected(std::move(ready.error()));
    }
    log_info("daemon", fmt::format("upgrade: starts {}", report_.program));
    outcome<> done = start_program();
    if (done) done = co_await carry_out();
    if (!done) {
        const std::string why = co_await explain(std::move(done.error().message));
        const std::string lost = co_await take_all_back();
        log_error("daemon", fmt::format("upgrade failed: {}", why));
        if (!lost.empty()) co_return refuse(409, fmt::format("not upgraded: {}; {}", why, lost));
        co_return refuse(409,
                         fmt::format("not upgraded, and everything goes on as before: {}", why));
    }
    // The other messages come while the last clients finish.
    channel_->end_at(time_point::max());
    report_.took = loop::current().now() - begun;
    report_.pid = program_->pid();
    program_->release();
    // Their ends are the other process's to make known, and to store.
    for (passenger& each : passengers_) {
        each.left.clients.clear();
        each.which->end.reset();
    }
    co_return report_;
}

void outgoing_upgrade::give_up() noexcept {
    is_given_up_ = true;
    // Children of the program may have the other end, too.
    if (channel_) channel_->end();
    if (program_) static_cast<void>(program_->kill(SIGKILL));
}

/// No runtime changes from now on.
task<outcome<>> outgoing_upgrade::lock_all() {
    for (const runtime_ref& each : runtimes_.registry.all()) {
        auto held = co_await with_timeout(wanted_.patience, each->change_lock.lock());
        if (!held)
            co_return refuse(409, fmt::format("\"{}\" is being started, stopped or changed; try "
                                              "again after that",
                                              each->name()));
        passengers_.push_back({each, std::move(*held)});
    }
    std::erase_if(passengers_, [](const passenger& each) { return each.which->is_removed; });
    for (const passenger& each : passengers_)
        if (each.which->running.handover())
            co_return refuse(409, fmt::format("\"{}\": {}", each.which->name(), handover_text));
    for (const passenger& each : passengers_)
        if (each.which->running.has_instance() &&
            each.which->running.status() != runtime_status::running)
            co_return refuse(
                409, fmt::format("\"{}\" is {}; see `eddy get {}`", each.which->name(),
                                 to_string(each.which->running.status()), each.which->name()));
    co_return outcome<>();
}

outcome<> outgoing_upgrade::start_program() {
    auto pair = upgrade_channel::make_pair();
    if (!pair) return std::unexpected(std::move(pair.error()));
    process_options how;
    how.input = stdio::shared;
    how.descriptor = pair->second.get();
    how.environment = environment_for_upgrade();
    auto started = process::start(arguments_of_this_process(report_.program), how);
    if (!started)
        return refuse(500, fmt::format("{} could not be started: {}", report_.program,
                                       started.error().message()));
    channel_.emplace(std::move(pair->first));
    channel_->end_at(loop::current().after(wanted_.patience * upgrade_patiences));
    program_.emplace(std::move(*started));
    return {};
}

task<outcome<>> outgoing_upgrade::carry_out() {
    EDDY_ASSERT(channel_ && program_);
    auto done = co_await introduce();
    if (done) done = co_await check_files();
    if (done) done = co_await send_beside();
    if (done) done = co_await send_with_data();
    if (done) done = co_await open_all();
    if (done && is_given_up_) done = refuse(503, "it was given up");
    co_return done;
}

/// The next message but signs of life.
task<outcome<upgrade_message>> outgoing_upgrade::next_answer() {
    for (;;) {
        auto got = co_await channel_->receive(wanted_.patience);
        if (!got) co_return got;
        if (got->has("failed")) co_return refuse(500, got->text("failed"));
        if (!got->has("alive")) co_return got;
        if (report_.version.empty())
            co_return refuse(500, "it sent a sign of life before it was ready");
        // Others have the loop between those of a program that sends nothing else.
        co_await loop::current().yield();
    }
}

task<outcome<>> outgoing_upgrade::send_members() {
    auto file = write_passed(passed_.members, "what is known of the cluster");
    if (!file) co_return std::unexpected(std::move(file.error()));
    co_return co_await channel_->send({{"members", true}}, file->get());
}

task<outcome<>> outgoing_upgrade::introduce() {
    EDDY_ASSERT(passed_.lock >= 0);
    auto sent = co_await channel_->send({{"upgrade", upgrade_protocol},
                                         {"state_version", state_version},
                                         {"version", passed_.version},
                                         {"listeners", passed_.listeners.size()},
                                         {"member", passed_.membership.id},
                                         {"member_since", passed_.membership.started}},
                                        passed_.lock);
    for (const own_socket& each : passed_.listeners)
        if (sent)
            sent = co_await channel_->send({{"listener", each.name}, {"token", each.token}},
                                           each.descriptor);
    if (sent && !passed_.membership.id.empty()) sent = co_await send_members();
    if (!sent) co_return sent;
    auto ready = co_await next_answer();
    if (!ready) co_return std::unexpected(std::move(ready.error()));
    report_.version = ready->text("ready");
    if (report_.version.empty()) co_return refuse(500, "it did not say its version");
    co_return outcome<>();
}

/// Runtimes that stop before the other process has started them might find their socket files
/// taken both there and here.
task<outcome<>> outgoing_upgrade::check_files() {
    for (passenger& each : passengers_) {
        if (!each.which->running.has_instance() || is_beside(*each.which)) continue;
        auto shared = co_await runtime_lifecycle::share(each.which);
        if (!shared) co_return std::unexpected(std::move(shared.error()));
        if (!shared->sockets) continue;
        for (const runtime::passed_listener& socket : shared->sockets->all) {
            const auto present = runtime::socket_file::at(socket.where.path);
            if (present == runtime::socket_file() || present == socket.file) continue;
            co_return refuse(
                409, fmt::format("\"{0}\": another file is in the place of its socket {1}; remove "
                                 "that file, then `eddy restart {0}`",
                                 each.which->name(), socket.where.path));
        }
    }
    co_return outcome<>();
}

task<outcome<>> outgoing_upgrade::send(passenger& each) {
    EDDY_ASSERT(!each.is_sent);
    const std::string& name = each.which->name();
    outcome<> sent;
    if (each.left.sockets)
        for (const runtime::passed_listener& socket : each.left.sockets->all)
            if (sent)
                sent = co_await channel_->send({{"socket", show_passed(socket)}, {"of", name}},
                                               socket.socket.get());
    if (sent && each.left.data)
        sent = co_await channel_->send({{"data", each.left.data->has_new_files}, {"of", name}},
                                       each.left.data->file.get());
    if (sent && !each.left.clients.empty()) sent = co_await send_clients(name, each.left.clients);
    if (!sent) co_return sent;
    json start = {{"start", name}};
    if (each.left.sockets) start["chosen_port"] = each.left.sockets->chosen_port;
    each.is_sent = true;
    sent = co_await channel_->send(std::move(start));
    // Copies that the other process has got.
    each.left.sockets.reset();
    co_return sent;
}

task<outcome<>> outgoing_upgrade::send_clients(const std::string& name,
                                               const std::vector<runtime::passed_client>& clients) {
    auto file = write_clients(clients);
    if (!file) co_return std::unexpected(std::move(file.error()));
    auto sent = co_await channel_->send({{"clients", clients.size()}, {"of", name}}, file->get());
    for (std::size_t i = 0; sent && i < clients.size(); ++i)
        sent = co_await channel_->send({{"client", i}, {"of", name}}, clients[i].socket.get());
    if (sent) report_.clients += clients.size();
    co_return sent;
}

task<outcome<>> outgoing_upgrade::await_started(std::size_t count) {
    for (; count > 0; --count) {
        auto got = co_await next_answer();
        if (!got) co_return std::unexpected(std::move(got.error()));
        if (!got->has("started")) co_return refuse(500, "it sent an unexpected message");
    }
    co_return outcome<>();
}

task<outcome<>> outgoing_upgrade::send_beside() {
    std::size_t count = 0;
    for (passenger& each : passengers_) {
        if (!each.which->running.has_instance() || !is_beside(*each.which)) continue;
        auto shared = co_await runtime_lifecycle::share(each.which);
        if (!shared) co_return std::unexpected(std::move(shared.error()));
        each.left = std::move(*shared);
        auto sent = co_await send(each);
        if (!sent) co_return sent;
        report_.beside.push_back(each.which->name());
        ++count;
    }
    co_return co_await await_started(count);
}

task<void> outgoing_upgrade::depart(passenger& each, outcome<>& all) {
    EDDY_ASSERT(each.which->running.has_instance());
    auto left = co_await runtimes_.lifecycle.depart(each.which);
    if (left)
        each.left = std::move(*left);
    else if (all)
        all = std::unexpected(std::move(left.error()));
}

/// Types without clients, and programs, go first: the clients of the others wait for a moment only.
task<outcome<>> outgoing_upgrade::send_with_data() {
    auto sent = co_await send_stopped(is_first, report_.again);
    paused_at_ = loop::current().now();
    if (sent) sent = co_await send_stopped(has_data, report_.with_data);
    if (sent) sent = co_await send_ended();
    co_return sent;
}

/// Stops instances of these types, and has the other process start them.
task<outcome<>> outgoing_upgrade::send_stopped(bool (*which)(const runtime::type& type),
                                               std::vector<std::string>& names) {
    outcome<> all;
    std::vector<passenger*> leaving;
    for (passenger& each : passengers_)
        if (each.which->running.has_instance() && which(*each.which->desired.type))
            leaving.push_back(&each);
    {
        scope departing(co_await current_source());
        for (passenger* const each : leaving) departing.spawn(depart(*each, all));
        co_await departing.join();
    }
    for (passenger* const each : leaving)
        if (has_ended(*each->which)) co_await runtime_lifecycle::abandon(each->left);
    if (!all) co_return all;
    std::erase_if(leaving, [](const passenger* each) { return has_ended(*each->which); });
    for (passenger* const each : leaving) {
        auto sent = co_await send(*each);
        if (!sent) co_return sent;
        names.push_back(each->which->name());
    }
    co_return co_await await_started(leaving.size());
}

/// The store says of these that they are to run, and the other process has read it.
task<outcome<>> outgoing_upgrade::send_ended() {
    std::size_t count = 0;
    for (passenger& each : passengers_) {
        if (each.is_sent || !each.which->has_unsaved_end()) continue;
        const instance_end& end = *each.which->end;
        each.is_sent = true;
        auto sent = co_await channel_->send({{"start", each.which->name()},
                                             {"ended", end.how},
                                             {"is_failure", end.is_failure},
                                             {"has_stopped_owned", end.has_stopped_owned}});
        if (!sent) co_return sent;
        ++count;
    }
    co_return co_await await_started(count);
}

task<outcome<>> outgoing_upgrade::open_all() {
    auto sent = co_await channel_->send({{"serve", true}});
    if (!sent) co_return sent;
    auto got = co_await next_answer();
    if (!got) co_return std::unexpected(std::move(got.error()));
    if (!got->has("serving")) co_return refuse(500, "it sent an unexpected message");
    if (!report_.with_data.empty()) report_.longest_pause = loop::current().now() - paused_at_;
    co_return outcome<>();
}

/// The reason, and the end of the program if that has come.
task<std::string> outgoing_upgrade::explain(std::string why) {
    if (is_given_up_) co_return std::string("it was given up, since this daemon was to stop");
    if (!program_ || !channel_->is_at_end()) co_return why;
    const auto ended = co_await with_timeout(end_patience, program_->wait());
    if (!ended) co_return why;
    program_->release();
    co_return fmt::format("{} ended {} before it served; this daemon's log has what it printed",
                          report_.program,
                          ended->signal != 0 ? fmt::format("by signal {}", ended->signal)
                                             : fmt::format("with status {}", ended->code));
}

/// Returns the runtimes that could not come back; empty if there are none.
task<std::string> outgoing_upgrade::take_all_back() {
    std::string lost;
    if (program_) {
        // Its sockets and files are closed once it is gone.
        if (program_->kill(SIGKILL))
            static_cast<void>(co_await with_timeout(end_patience, program_->wait()));
    }
    program_.reset();
    channel_.reset();
    for (passenger& each : passengers_) {
        runtime_lifecycle::unshare(*each.which);
        const bool has_left = each.left.where != nullptr && !each.which->running.has_instance();
        if (!has_left || has_ended(*each.which)) continue;
        auto back = co_await runtimes_.lifecycle.come_back(each.which, std::move(each.left));
        if (back) continue;
        log_error(each.which->name(),
                  fmt::format("could not be started again: {}", back.error().message));
        lost += fmt::format(
            "{0}\"{1}\" could not be started again: when that is mended, `eddy "
            "start {1}` starts it with its data",
            lost.empty() ? "" : ", ", each.which->name());
    }
    passengers_.clear();
    co_return lost;
}

task<void> outgoing_upgrade::note_main() {
    EDDY_ASSERT(channel_);
    const auto alone = co_await passing_.lock();
    if (alone) static_cast<void>(co_await channel_->send({{"main", true}}));
}

task<void> outgoing_upgrade::note_own_sockets_left() {
    const auto alone = co_await passing_.lock();
    if (alone) static_cast<void>(co_await channel_->send({{"left", true}}));
}

/// The runtime accepts no more here. Its clients are for the other process; none are the last part.
task<void> outgoing_upgrade::pass_on(std::string name,
                                     std::vector<runtime::passed_client> clients) {
    EDDY_ASSERT(still_here_ > 0);
    const auto alone = co_await passing_.lock();
    if (!alone) co_return;
    const bool is_last = clients.empty();
    outcome<> sent;
    if (!is_last) sent = co_await send_clients(name, clients);
    if (sent) sent = co_await channel_->send({{"take", name}});
    if (!sent && !clients.empty())
        log_warn(name,
                 fmt::format("{} clients were cut off: {}", clients.size(), sent.error().message));
    if (is_last && --still_here_ == 0)
        static_cast<void>(co_await channel_->send({{"moved", true}}));
}

/// Its listeners stay until all have left: proxies of this process find the other's by its name.
task<void> outgoing_upgrade::leave_one(passenger& each) {
    each.left.listeners = co_await runtimes_.lifecycle.leave(
        each.which, [this](std::string name, std::vector<runtime::passed_client> clients) {
            return pass_on(std::move(name), std::move(clients));
        });
}

task<void> outgoing_upgrade::leave() {
    // After a run() with success.
    EDDY_ASSERT(channel_ && report_.pid > 0);
    for (const passenger& each : passengers_)
        if (each.which->running.has_instance()) ++still_here_;
    if (still_here_ == 0) static_cast<void>(co_await channel_->send({{"moved", true}}));
    scope leaving(co_await current_source());
    for (passenger& each : passengers_)
        if (each.which->running.has_instance())
            leaving.spawn(leave_one(each));
        else
            each.which->running.keep_handover(nullptr);
    co_await leaving.join();
    passengers_.clear();
}

}  // namespace eddy::daemon
