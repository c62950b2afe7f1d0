// Starting a cache, and what it does by itself.
#include "runtime/cache/cache_server.hpp"

#include <eddy/base/unique_fd.hpp>
#include <eddy/io/timeout.hpp>
#include <eddy/net/tcp.hpp>

#include "cache/persistence/persistence.hpp"
#include "runtime/cache/cache_metrics.hpp"
#include "runtime/cache/cache_server_parts.hpp"
#include "runtime/cache/dump_file.hpp"
#include "runtime/cache/give_way.hpp"
#include "runtime/cache/handing_over.hpp"
#include "runtime/cache/lasting.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <optional>
#include <utility>
#include <vector>

namespace eddy::runtime::cache {
namespace {

/// How long to leave those alone who come while too many shake hands, or there is no memory.
constexpr duration crowded_pause = std::chrono::milliseconds(5);

/// Keys that expire are looked for this often; less often while none is found.
constexpr duration shortest_upkeep = std::chrono::milliseconds(100);
constexpr duration longest_upkeep = std::chrono::seconds(1);
/// But so often that all have been looked at after about this time, where a slice of it every
/// soonest_upkeep is enough for that.
constexpr duration whole_sweep = std::chrono::seconds(60);
constexpr duration soonest_upkeep = std::chrono::milliseconds(5);

task<std::unique_ptr<worker>> make_worker(cache_context& of, worker::limits chosen) {
    co_return std::make_unique<worker>(of, chosen);
}

task<void> destroy(std::unique_ptr<worker> gone) {
    gone.reset();
    co_return;
}

task<void> drain_there(executor where, worker& its, duration limit) {
    static_cast<void>(co_await resume_on(where, its.drain(limit)));
}

}  // namespace

cache_server::cache_server(creation from)
    : name_(std::move(from.name)),
      options_(std::move(from.options)),
      events_(*from.events),
      above_(std::move(from.host)),
      inherited_(std::move(from.inherited)) {}

cache_server::~cache_server() = default;

task<outcome<>> cache_server::start() {
    if (running_) co_return refuse(409, name_ + " runs already");
    start_given_up_ = false;
    outcome<config> read = read_config(options_);
    if (!read) co_return std::unexpected(read.error());
    config_ = std::move(*read);

    outcome<listeners> opened = open_listeners(config_, above_.get());
    if (!opened) co_return std::unexpected(opened.error());
    running_ = std::make_unique<running>(std::move(*opened), config_.engine, events_, counted_);
    running_->address = running_->listening.first.socket.local();
    running_->context.max_queue = config_.max_queue;
    running_->context.max_pending_reply = config_.engine.max_pending_reply;
    running_->context.write_timeout = config_.write_timeout;
    running_->helper =
        std::make_unique<services>(running_->context, running_->background, options_, above_);
    running_->engine.internals().server = running_->helper.get();
    running_->engine.internals().forget_moved();
    if (auto made = co_await make_workers(); !made) co_return co_await give_up(std::move(made));
    if (!config_.engine.acl_file.empty()) {
        if (auto loaded = co_await load_users(running_->engine); !loaded)
            co_return co_await give_up(std::move(loaded));
    }
    if (!config_.hooks.file.empty()) {
        running_->hooks = std::make_unique<cache_hooks>(config_.hooks, events_);
        if (auto ready = co_await running_->hooks->prepare(); !ready)
            co_return co_await give_up(std::move(ready));
    }
    tell_of_protection(config_, events_);
    // Who comes while files are read may subscribe, too.
    spawn_lasting([this] { return check_outputs(); });
    eddy::cache::engine::state& state = running_->engine.internals();
    const bool loads = !config_.engine.dir.empty() || inherited_;
    if (loads) {
        running_->context.update_time();
        eddy::cache::note_load_began(state, 0);
        state.attention |= eddy::cache::attention::starting;
        open_door();
        running_->opening.emplace(co_await current_source());
        if (start_given_up_) running_->opening->request();
        outcome<> opened_files = co_await open_files().under(*running_->opening);
        if (!opened_files && start_given_up_)
            opened_files = refuse(503, "it was stopped before it had read its files");
        running_->opening.reset();
        if (!opened_files) co_return co_await give_up(std::move(opened_files));
        inherited_.reset();
    }
    if (running_->files) {
        cache_files& files = *running_->files;
        files.attach();
        spawn_lasting([its = &files] { return its->keep_saved(); });
        spawn_lasting([its = &files.append()] { return its->write_on(); });
        spawn_lasting([its = &files.append()] { return its->sync_on(); });
        spawn_lasting([its = &files.append()] { return its->rewrite_on(); });
        running_->context.append = &files.append();
    }
    running_->replicating = std::make_unique<replicator>(running_->context);
    running_->context.replicating = running_->replicating.get();
    running_->replicating->begin();
    spawn_lasting([its = running_->replicating.get()] { return its->make_copies(); });
    spawn_lasting([its = running_->replicating.get()] { return its->tend(); });
    spawn_lasting([its = running_->replicating.get()] { return its->follow(); });
    if (running_->hooks) {
        running_->context.update_time();
        running_->hooks->attach(running_->context);
        spawn_lasting([its = running_->hooks.get()] { return its->run(); });
    }
    spawn_lasting([this] { return keep_up(); });
    spawn_lasting([this] { return catch_up(); });
    spawn_lasting([this] { return running_->context.keep_limits(); });
    if (!loads) open_door();
    // Who has come before was told LOADING.
    state.attention &= static_cast<std::uint16_t>(~eddy::cache::attention::starting);
    co_return outcome<>();
}

void cache_server::give_up_start() noexcept {
    start_given_up_ = true;
    if (running_ && running_->opening) running_->opening->request();
}

void cache_server::open_door() {
    running_->accepting.spawn(
        accept_all(running_->listening.first, config_.where.kind == transport::scheme::tls));
    if (running_->listening.secure)
        running_->accepting.spawn(accept_all(*running_->listening.secure, true));
}

task<void> cache_server::close_door() {
    running_->accepting.cancel();
    co_await running_->accepting.join();
    running_->listening.close();
}

/// Has the clients of all threads leave, within `limit`.
task<void> cache_server::drain_workers(duration limit) {
    scope draining;
    for (running::remote_worker& each : running_->remote)
        draining.spawn(drain_there(each.where, *each.its, limit));
    if (running_->at_home) draining.spawn(running_->at_home->drain(limit));
    co_await draining.join();
}

void cache_server::spawn_lasting(std::function<task<void>()> make) {
    running_->background.spawn(lasting(std::move(make), counted_, events_));
}

/// Leaves nothing of a start that has failed.
task<outcome<>> cache_server::give_up(outcome<> why) {
    co_await close_door();
    co_await drain_workers(duration::zero());
    running_->background.cancel();
    co_await running_->background.join();
    co_await end_workers();
    co_await forget_keys();
    running_.reset();
    co_return why;
}

/// Frees the keys in slices, since there may be many.
task<void> cache_server::forget_keys() {
    try {
        while (running_->engine.wind_up()) co_await loop::current().yield();
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): it goes at once
    }
}

/// One at home, and as many others as --threads says when that is more than one.
task<outcome<>> cache_server::make_workers() {
    cache_context& context = running_->context;
    if (config_.threads > 1) {
        loop_group_options options;
        options.threads = config_.threads;
        options.loop.kind = loop::current().kind();
        options.name = "db-" + name_;
        auto started = loop_group::start(options);
        if (!started)
            co_return refuse(503, fmt::format("{} threads for the cache cannot be had: {}; give "
                                              "fewer --threads",
                                              config_.threads, started.error().message()));
        running_->threads = std::move(*started);
        context.lockable = std::make_unique<lockable_loop>(&context);
    }
    running_->at_home = std::make_unique<worker>(context, context.limits());
    context.workers.emplace_back(context.home, running_->at_home.get());
    for (std::size_t i = 0; running_->threads && i < running_->threads->size(); ++i) {
        const executor where = running_->threads->executor(i);
        auto made = co_await resume_on(where, make_worker(context, context.limits()));
        if (!made) co_return refuse(503, "a thread of the cache has ended");
        context.workers.emplace_back(where, made->get());
        running_->remote.push_back({where, std::move(*made)});
    }
    if (running_->threads)
        events_.write(fmt::format("{} threads serve its clients", running_->threads->size()));
    co_return outcome<>();
}

/// They have no clients any more.
task<void> cache_server::end_workers() {
    const auto take_counts = [this](const worker& of) {
        counted_.add(of.counted());
        counted_.connections_now = 0;
        latency_.merge(of.latency());
    };
    while (!running_->remote.empty()) {
        // Out of the list first: it may be counted and changed while this waits.
        running::remote_worker last = std::move(running_->remote.back());
        running_->remote.pop_back();
        running_->context.workers.pop_back();
        take_counts(*last.its);
        static_cast<void>(co_await resume_on(last.where, destroy(std::move(last.its))));
    }
    running_->threads.reset();
    if (running_->at_home) take_counts(*running_->at_home);
    running_->context.workers.clear();
    running_->at_home.reset();
    running_->context.lockable.reset();
}

metrics cache_server::count() const {
    const eddy::cache::statistics now = running_ ? running_->engine.stats() : last_stats_;
    metrics copy(counted_);
    auto latency = std::make_shared<histogram>(latency_);
    if (running_) {
        const auto add = [&](const worker& of) {
            copy.add(of.counted());
            latency->merge(of.latency());
        };
        if (running_->at_home) add(*running_->at_home);
        for (const running::remote_worker& each : running_->remote) add(*each.its);
    }
    copy.errors += now.errors;
    add_samples(copy, now);
    if (running_ && running_->hooks) running_->hooks->count(copy);
    copy.latency = std::move(latency);
    return copy;
}

endpoint cache_server::local() const { return running_ ? running_->address : endpoint(); }

task<outcome<std::uint64_t>> cache_server::send(std::string) {
    co_return refuse(400, fmt::format("{} is a cache, which takes commands, not messages; use "
                                      "redis-cli -p {}",
                                      name_, local().port()));
}

task<void> cache_server::accept_all(noted_listener& from, bool is_secure) {
    worker& here = *running_->at_home;
    // One who has yet to shake hands is closed without a word: others would wait for the handshake.
    const std::string_view refusal = is_secure ? "" : worker::refusal;
    for (;;) {
        // Those who say nothing must not hold all places.
        bool is_crowded = from.finish != nullptr && running_->context.handshakes >= max_handshakes;
        try {
            if (!is_crowded) {
                result<stream> peer = co_await here.clients().accept(from.socket, refusal);
                if (!peer) co_return;
                admit(std::move(*peer), from);
            }
        } catch (const std::bad_alloc&) {
            running_->context.note_no_memory(counted_);
            is_crowded = true;
        }
        if (is_crowded && !co_await loop::current().sleep_for(crowded_pause)) co_return;
    }
}

/// Has the kernel ask a silent TCP peer whether it is still there, as Redis does. One that is gone
/// already is found when it is read from.
void cache_server::watch_peer(const stream& accepted) const noexcept {
    const std::chrono::seconds idle = running_->engine.options().tcp_keepalive;
    if (idle.count() == 0) return;
    tcp::socket_options options;
    options.keepalive = true;
    options.keepalive_idle = idle;
    options.keepalive_interval = std::max(idle / 3, std::chrono::seconds(1));
    options.keepalive_probes = 3;
    static_cast<void>(tcp::apply(accepted, options));
}

/// Serves one here, on another thread, or not at all.
void cache_server::admit(stream accepted, noted_listener& from) {
    watch_peer(accepted);
    if (is_denied(running_->engine, accepted.peer())) {
        ++counted_.connections_refused;
        if (from.finish != nullptr)
            deny_after_handshake(std::move(accepted), from);
        else
            deny(std::move(accepted));
    } else if (!running_->remote.empty()) {
        deal(std::move(accepted), from);
    } else {
        running_->at_home->take(std::move(accepted));
    }
}

/// Tells one whom protected mode keeps out.
void cache_server::deny(stream accepted) {
    worker& here = *running_->at_home;
    auto away =
        std::make_unique<denied_client>(here.clients(), std::move(accepted), here.tasks().source());
    cancel_source& cancel = away->cancel;
    here.tasks().spawn(turn_away(std::move(away)).under(cancel));
}

/// The same with TLS. They must not hold the places of those who may come in.
void cache_server::deny_after_handshake(stream accepted, noted_listener& from) {
    if (running_->context.handshakes >= max_handshakes / 4) return;
    running_->accepting.spawn(deny_later(std::move(accepted), from, note_handshake()));
}

/// The same after the handshake, for which it has little time.
task<void> cache_server::deny_later(stream accepted, noted_listener& from, handshake under_way) {
    try {
        result<stream> peer = co_await from.finish(std::move(accepted), pressed_handshake_timeout);
        under_way.reset();
        if (peer) deny(std::move(*peer));
    } catch (const std::bad_alloc&) {
        running_->context.note_no_memory(counted_);
    }
}

/// Counts one that begins.
handshake cache_server::note_handshake() noexcept {
    ++running_->context.handshakes;
    return handshake(&running_->context.handshakes);
}

/// Gives a client to the thread that has the fewest, in turn where they have as many.
void cache_server::deal(stream accepted, noted_listener& from) {
    std::vector<running::remote_worker>& all = running_->remote;
    std::size_t chosen = running_->next_remote++ % all.size();
    for (std::size_t i = 1; i < all.size(); ++i) {
        const std::size_t other = (chosen + i) % all.size();
        if (all[other].its->places().taken < all[chosen].its->places().taken) chosen = other;
    }
    running::remote_worker& next = all[chosen];
    seat taken = take_seat(next.its->places());
    handshake begun = from.finish != nullptr ? note_handshake() : nullptr;
    result<unique_fd> socket = accepted.detach();
    if (!socket) {
        ++counted_.errors;
        events_.write(
            fmt::format("a client was closed: its socket cannot be given to another thread: {}",
                        socket.error().message()));
        return;
    }
    worker* const its = next.its.get();
    const result<> posted =
        next.where.post([its, &from, fd = std::move(*socket), place = std::move(taken),
                         shaking = std::move(begun)]() mutable {
            its->take(std::move(fd), from, std::move(place), std::move(shaking));
        });
    if (!posted) {
        ++counted_.errors;
        events_.write(fmt::format("a client was closed: its thread cannot take more: {}",
                                  posted.error().message()));
    }
}

/// Has expired keys removed while there are any that expire, and memory given back after commands.
/// Without either it sleeps until a client does something.
task<void> cache_server::keep_up() {
    eddy::cache::engine& engine = running_->engine;
    duration pause = shortest_upkeep;
    std::uint64_t expired = 0;
    for (;;) {
        const eddy::cache::statistics now = engine.stats();
        if (now.keys_with_expiry == 0 && now.fields_with_expiry == 0) {
            running_->context.work_done.reset();
            pause = shortest_upkeep;
            if (!co_await running_->context.work_done.wait()) co_return;
        }
        if (!co_await loop::current().sleep_for(pause)) co_return;
        trim_workers();
        running_->context.update_time();
        while (engine.upkeep()) {
            co_await give_way();
            if (running_->background.source().requested()) co_return;
            running_->context.update_time();
        }
        if (engine.is_behind()) running_->context.is_behind.set();
        const std::uint64_t now_expired = engine.stats().expired_keys;
        pause = now_expired != expired ? shortest_upkeep : std::min(pause * 2, longest_upkeep);
        const auto fair = std::chrono::duration<double>(whole_sweep) * engine.swept_share();
        pause = std::clamp(std::chrono::duration_cast<duration>(fair), soonest_upkeep, pause);
        expired = now_expired;
    }
}

void cache_server::trim_workers() {
    running_->at_home->trim();
    for (running::remote_worker& each : running_->remote) each.its->trim_later();
}

/// Fills the engine.
task<outcome<>> cache_server::open_files() {
    if (config_.engine.dir.empty())
        co_return co_await load_handover(running_->engine, *inherited_, events_);
    if (auto usable = co_await check_folder(config_.engine.dir); !usable) co_return usable;
    running_->files = std::make_unique<cache_files>(running_->context);
    running_->context.files = running_->files.get();
    co_return co_await running_->files->open(inherited_);
}

/// Runs a script that takes too long, and writes huge values into a snapshot before they change, a
/// little in each turn.
task<void> cache_server::catch_up() {
    eddy::cache::engine& engine = running_->engine;
    for (;;) {
        running_->context.is_behind.reset();
        if (!engine.is_behind() && !co_await running_->context.is_behind.wait()) co_return;
        while (engine.is_behind()) {
            engine.go_on();
            co_await give_way();
            if (running_->background.source().requested()) co_return;
            running_->context.update_time();
        }
    }
}

/// Closes clients that have been over their soft limit for too long. While none is over it this
/// sleeps.
task<void> cache_server::check_outputs() {
    constexpr duration longest_wait = std::chrono::hours(1);
    eddy::cache::engine& engine = running_->engine;
    for (;;) {
        running_->context.outputs_due.reset();
        running_->context.update_time();
        engine.check_outputs();
        const std::int64_t due_us = engine.outputs_due_us();
        result<> woken;
        if (due_us == eddy::cache::session::no_deadline) {
            woken = co_await running_->context.outputs_due.wait();
        } else {
            const duration left =
                std::chrono::microseconds(due_us) - running_->context.clock.steady();
            woken = co_await with_timeout(std::min(left, longest_wait),
                                          running_->context.outputs_due.wait());
            if (!woken && woken.error() == errc::timed_out) woken = {};
        }
        if (!woken) co_return;
    }
}

}  // namespace eddy::runtime::cache
