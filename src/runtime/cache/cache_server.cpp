// The cache runtime: start, workers and counts.
#include "runtime/cache/cache_server.hpp"

#include <eddy/base/assert.hpp>

#include "cache/config/engine_settings.hpp"
#include "cache/persistence/engine_files.hpp"
#include "runtime/cache/cache_metrics.hpp"
#include "runtime/cache/cache_server_parts.hpp"
#include "runtime/cache/dump_file.hpp"
#include "runtime/cache/handover.hpp"
#include "runtime/cache/supervised.hpp"
#include "runtime/serving/threads.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <optional>
#include <utility>
#include <vector>

namespace eddy::runtime::cache {

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
    running_ = std::make_unique<running>(std::move(*opened), config_.engine, events_, counted_,
                                         static_cast<serving::admission&>(*this));
    running_->address = running_->listening.first.socket.local();
    running_->context.settings = config_.server;
    running_->context.max_queue = config_.max_queue;
    running_->context.max_pending_reply = config_.engine.max_pending_reply;
    running_->context.write_timeout = config_.write_timeout;
    running_->commands = std::make_unique<server_commands>(running_->context, running_->background,
                                                           options_, above_);
    eddy::cache::engine_settings(running_->engine).set_server(*running_->commands);
    if (auto made = co_await make_workers(); !made) co_return co_await give_up(std::move(made));
    if (!config_.server.acl_file.empty()) {
        if (auto loaded = co_await load_users(running_->engine, config_.server.acl_file); !loaded)
            co_return co_await give_up(std::move(loaded));
    }
    if (!config_.hooks.file.empty()) {
        running_->hooks = std::make_unique<cache_hooks>(config_.hooks, events_);
        if (auto ready = co_await running_->hooks->prepare(); !ready)
            co_return co_await give_up(std::move(ready));
    }
    note_protection(config_, events_);
    // Clients that connect while files are read may subscribe, too.
    spawn_supervised([this] { return check_outputs(); });
    const bool loads = !config_.server.dir.empty() || inherited_;
    if (loads) {
        if (auto loaded = co_await load_beside_clients(); !loaded)
            co_return co_await give_up(std::move(loaded));
    }
    begin_parts();
    if (!loads) open_listeners_to_clients();
    // Clients that connected before got LOADING.
    eddy::cache::engine_files(running_->engine).set_starting(false);
    co_return outcome<>();
}

/// Reads the files, or the keys of the instance before. Clients get LOADING meanwhile.
task<outcome<>> cache_server::load_beside_clients() {
    EDDY_ASSERT(running_ && !running_->opening);
    eddy::cache::engine_files files(running_->engine);
    running_->context.update_time();
    files.begin_load(0);
    files.set_starting(true);
    open_listeners_to_clients();
    running_->opening.emplace(co_await current_source());
    if (start_given_up_) running_->opening->request();
    outcome<> opened = co_await open_files().under(*running_->opening);
    if (!opened && start_given_up_)
        opened = refuse(503, "it was stopped before it had read its files");
    running_->opening.reset();
    if (opened) inherited_.reset();
    co_return opened;
}

/// The tasks beside the workers: files, replication, hooks, upkeep.
void cache_server::begin_parts() {
    EDDY_ASSERT(running_ && !running_->replicating && running_->context.append == nullptr);
    if (running_->files) {
        cache_files& files = *running_->files;
        files.attach();
        spawn_supervised([its = &files] { return its->keep_saved(); });
        spawn_supervised([its = &files.append()] { return its->write_on(); });
        spawn_supervised([its = &files.append()] { return its->sync_on(); });
        spawn_supervised([its = &files.append()] { return its->rewrite_on(); });
        running_->context.append = &files.append();
    }
    running_->replicating = std::make_unique<replicator>(running_->context);
    running_->context.replicating = running_->replicating.get();
    running_->replicating->begin();
    spawn_supervised([its = running_->replicating.get()] { return its->make_copies(); });
    spawn_supervised([its = running_->replicating.get()] { return its->tend(); });
    spawn_supervised([its = running_->replicating.get()] { return its->replicate(); });
    if (running_->hooks) {
        running_->context.update_time();
        running_->hooks->attach(running_->context);
        spawn_supervised([its = running_->hooks.get()] { return its->run(); });
    }
    spawn_supervised([this] { return keep_up(); });
    spawn_supervised([this] { return catch_up(); });
    spawn_supervised([this] { return running_->context.keep_limits(); });
}

void cache_server::give_up_start() noexcept {
    start_given_up_ = true;
    if (running_ && running_->opening) running_->opening->request();
}

void cache_server::open_listeners_to_clients() {
    serving::acceptor& to = running_->accepting;
    to.open(running_->listening.first, worker::refusal, is_secure(config_.where));
    if (running_->listening.secure) to.open(*running_->listening.secure, worker::refusal, true);
    if (running_->listening.shared) to.open(*running_->listening.shared, {}, true);
}

task<void> cache_server::close_listeners() {
    co_await running_->accepting.close();
    running_->listening.close();
}

void cache_server::spawn_supervised(std::function<task<void>()> make) {
    running_->background.spawn(supervised(std::move(make), counted_, events_));
}

/// Leaves nothing of a start that has failed.
task<outcome<>> cache_server::give_up(outcome<> why) {
    EDDY_ASSERT(running_ && !why);
    co_await close_listeners();
    co_await running_->pool.drain(duration::zero());
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

/// One here, and as many others as --threads says when that is more than one.
task<outcome<>> cache_server::make_workers() {
    cache_context& context = running_->context;
    serving::loop_pool& pool = running_->pool;
    if (auto started = start_threads(pool, config_.server.threads, "db-" + name_, "the cache");
        !started)
        co_return started;
    if (pool.has_threads()) context.lockable = std::make_unique<lockable_loop>(&context);
    context.pool = &pool;
    auto made =
        co_await runtime::make_workers(pool, [&context](const serving::worker_place& place) {
            return std::make_unique<worker>(place, context, context.limits());
        });
    if (made && pool.assigned_workers() > 0)
        events_.write(fmt::format("{} threads serve its clients", pool.assigned_workers()));
    co_return made;
}

/// They have no clients any more.
task<void> cache_server::end_workers() {
    co_await running_->pool.end([this](const serving::loop_worker& last) {
        counted_.add(last.counted());
        counted_.connections_now = 0;
        latency_.merge(static_cast<const worker&>(last).latency());
    });
    running_->context.lockable.reset();
}

metrics cache_server::count() const {
    const eddy::cache::statistics now = running_ ? running_->engine.stats() : last_stats_;
    metrics copy(counted_);
    auto latency = std::make_shared<histogram>(latency_);
    if (running_) {
        const auto add = [&](const serving::loop_worker& of) {
            copy.add(of.counted());
            latency->merge(static_cast<const worker&>(of).latency());
        };
        if (running_->pool.here() != nullptr) add(*running_->pool.here());
        for (const auto& each : running_->pool.others()) add(*each.its);
    }
    copy.errors += now.errors;
    add_samples(copy, now);
    add_memory_limit(copy, (running_ ? running_->engine.options() : config_.engine).max_memory);
    if (running_ && running_->hooks) running_->hooks->count(copy);
    copy.latency = std::move(latency);
    return copy;
}

endpoint cache_server::local() const { return running_ ? running_->address : endpoint(); }

task<outcome<std::uint64_t>> cache_server::send(std::string) {
    co_return refuse(400, fmt::format("{0} is a cache, which takes commands, not messages; use: "
                                      "eddy db {0}",
                                      name_));
}

/// Fills the engine.
task<outcome<>> cache_server::open_files() {
    if (config_.server.dir.empty())
        co_return co_await load_handover(running_->engine, running_->context.settings, *inherited_,
                                         events_);
    if (auto usable = co_await check_folder(config_.server.dir); !usable) co_return usable;
    running_->files = std::make_unique<cache_files>(running_->context);
    running_->context.files = running_->files.get();
    co_return co_await running_->files->open(inherited_);
}

}  // namespace eddy::runtime::cache
