// The cache runtime: start, workers and counts.
#include "runtime/cache/cache_server.hpp"

#include <eddy/base/assert.hpp>

#include "cache/config/engine_settings.hpp"
#include "cache/persistence/engine_files.hpp"
#include "runtime/cache/cache_metrics.hpp"
#include "runtime/cache/config/protection.hpp"
#include "runtime/cache/files/dump_file.hpp"
#include "runtime/cache/files/handover.hpp"
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
    : served_runtime({.what = "the cache", .thread_prefix = "db-"},
                     // The keys are this type's alone.
                     creation{from.name, from.options, from.events, from.host, nullptr,
                              from.listeners, from.is_held}),
      inherited_(std::move(from.inherited)) {}

cache_server::~cache_server() = default;

const config& cache_server::chosen() const noexcept { return static_cast<const config&>(common()); }

outcome<served_runtime::config_pointer> cache_server::read(const settings& given) const {
    return shared(read_config(given));
}

outcome<> cache_server::prepare() {
    EDDY_ASSERT(!run_);
    start_given_up_ = false;
    run_ = std::make_unique<run>(chosen().engine, events(), counted(), options(), daemon());
    run_->context.settings = chosen().server;
    run_->context.max_queue = chosen().max_queue;
    run_->context.max_pending_reply = chosen().engine.max_pending_reply;
    run_->context.write_timeout = chosen().write_timeout;
    eddy::cache::engine_settings(run_->engine).set_server(run_->commands);
    return {};
}

/// The real ports, for commands that show them.
void cache_server::note_addresses() {
    eddy::cache::server_settings& to = run_->context.settings;
    const listeners& from = listening();
    const std::uint16_t port = from.first.socket.local().port();
    const bool is_secure = runtime::is_secure(chosen().where);
    to.port = is_secure ? 0 : port;
    if (is_secure) to.tls.port = port;
    to.listening = {as_listening(chosen().where, from.first)};
    if (!from.secure) return;
    to.tls.port = from.secure->socket.local().port();
    to.listening.push_back(as_listening(*chosen().secure, *from.secure));
}

serving::loop_pool::factory cache_server::worker_factory() {
    note_addresses();
    cache_context& context = run_->context;
    if (pool().has_threads()) context.lockable = std::make_unique<lockable_loop>(&context);
    context.pool = &pool();
    return [&context](const serving::worker_place& place) {
        return std::make_unique<cache_worker>(place, context, context.limits());
    };
}

task<outcome<>> cache_server::begin() {
    if (!chosen().server.acl_file.empty()) {
        if (auto loaded = co_await load_users(run_->engine, chosen().server.acl_file); !loaded)
            co_return loaded;
    }
    if (!chosen().hooks.file.empty()) {
        run_->hooks = std::make_unique<cache_hooks>(chosen().hooks, name(), events());
        if (auto ready = co_await run_->hooks->prepare(); !ready) co_return ready;
    }
    note_protection(chosen().where, chosen().server, chosen().engine.password, events());
    // Clients that connect while files are read may subscribe, too.
    spawn_supervised([this] { return run_->upkeep.check_outputs(); });
    const bool loads = !chosen().server.dir.empty() || inherited_;
    if (loads) {
        if (auto loaded = co_await load_beside_clients(); !loaded) co_return loaded;
    }
    begin_tasks();
    if (!loads) open_to_clients();
    // Clients that connected before got LOADING.
    eddy::cache::engine_files(run_->engine).set_starting(false);
    serve_scripts();
    co_return outcome<>();
}

void cache_server::serve_scripts() {
    EDDY_ASSERT(run_ && !run_->scripts);
    run_->scripts = std::make_shared<script_calls>(run_->context, name());
    daemon()->offer_cache(run_->scripts);
}

/// Reads the files, or the keys of the instance before. Clients get LOADING meanwhile.
task<outcome<>> cache_server::load_beside_clients() {
    EDDY_ASSERT(run_ && !run_->opening);
    eddy::cache::engine_files files(run_->engine);
    run_->context.update_time();
    files.begin_load(0);
    files.set_starting(true);
    open_to_clients();
    run_->opening.emplace(co_await current_source());
    if (start_given_up_) run_->opening->request();
    outcome<> opened = co_await open_files().under(*run_->opening);
    if (!opened && start_given_up_)
        opened = refuse(503, "it was stopped before it had read its files");
    run_->opening.reset();
    if (opened) inherited_.reset();
    co_return opened;
}

/// The tasks beside the workers: files, replication, hooks, upkeep.
void cache_server::begin_tasks() {
    EDDY_ASSERT(run_ && run_->context.replicas == nullptr && run_->context.append == nullptr);
    if (run_->files) {
        cache_files& files = *run_->files;
        files.attach();
        spawn_supervised([its = &files] { return its->keep_saved(); });
        spawn_supervised([its = &files.append()] { return its->write_on(); });
        spawn_supervised([its = &files.append()] { return its->sync_on(); });
        spawn_supervised([its = &files.append()] { return its->rewrite_on(); });
        run_->context.append = &files.append();
    }
    run_->context.replicas = &run_->replication.feed();
    run_->replication.begin();
    spawn_supervised([its = &run_->replication] { return its->make_copies(); });
    spawn_supervised([its = &run_->replication] { return its->tend(); });
    spawn_supervised([its = &run_->replication] { return its->replicate(); });
    if (run_->hooks) {
        run_->context.update_time();
        run_->hooks->attach(run_->context);
        spawn_supervised([its = run_->hooks.get()] { return its->run(); });
    }
    spawn_supervised([this] { return run_->upkeep.keep_up(); });
    spawn_supervised([this] { return run_->upkeep.catch_up(); });
    spawn_supervised([this] { return cache_worker::keep_limits(run_->context); });
}

void cache_server::give_up_start() noexcept {
    start_given_up_ = true;
    if (run_ && run_->opening) run_->opening->request();
    if (run_ && run_->hooks) run_->hooks->give_up_load();
    for (cache_hooks* const each : trials_) each->give_up_load();
}

void cache_server::spawn_supervised(std::function<task<void>()> make) {
    run_->background.spawn(supervised(std::move(make), counted(), events()));
}

/// Frees the keys in slices, since there may be many.
task<void> cache_server::forget_keys() {
    try {
        while (run_->engine.wind_up()) co_await loop::current().yield();
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): it goes at once
    }
}

void cache_server::retire(const serving::loop_worker& last) {
    latency_.merge(static_cast<const cache_worker&>(last).latency());
}

task<void> cache_server::end() {
    run_->context.lockable.reset();
    if (run_->scripts) last_script_commands_ += run_->scripts->count();
    last_stats_ = run_->engine.stats();
    last_max_memory_ = run_->engine.options().max_memory;
    last_stats_.keys = last_stats_.keys_with_expiry = 0;
    last_stats_.used_memory = last_stats_.reserved_memory = 0;
    co_await forget_keys();
    run_.reset();
}

void cache_server::add_counts(metrics& to) const {
    const eddy::cache::statistics now = run_ ? run_->engine.stats() : last_stats_;
    auto latency = std::make_shared<histogram>(latency_);
    for_each_worker([&](const serving::loop_worker& of) {
        latency->merge(static_cast<const cache_worker&>(of).latency());
    });
    to.errors += now.errors;
    add_samples(to, now);
    add_memory_limit(to, run_ ? run_->engine.options().max_memory : last_max_memory_);
    add_script_commands(
        to, last_script_commands_ + (run_ && run_->scripts ? run_->scripts->count() : 0));
    if (run_ && run_->hooks) run_->hooks->count(to);
    to.latency = std::move(latency);
}

task<outcome<std::uint64_t>> cache_server::send(std::string) {
    co_return refuse(400, fmt::format("{0} is a cache, which takes commands, not messages; use: "
                                      "eddy db {0}",
                                      name()));
}

/// Fills the engine.
task<outcome<>> cache_server::open_files() {
    if (chosen().server.dir.empty())
        co_return co_await load_handover(run_->engine, run_->context.settings, *inherited_,
                                         events());
    if (auto usable = co_await check_folder(chosen().server.dir); !usable) co_return usable;
    run_->files = std::make_unique<cache_files>(run_->context);
    run_->context.files = run_->files.get();
    co_return co_await run_->files->open(inherited_);
}

}  // namespace eddy::runtime::cache
