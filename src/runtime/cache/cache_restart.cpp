// Restarts of a cache, and changes that need none: keys pass to the next instance, options that
// CONFIG SET changes and files that are read again take effect at once.
#include <eddy/base/assert.hpp>
#include <eddy/io/loop.hpp>

#include "base/rollback.hpp"
#include "cache/clients/engine_clients.hpp"
#include "cache/config/config.hpp"
#include "cache/config/engine_settings.hpp"
#include "cache/persistence/engine_files.hpp"
#include "cache/rdb/snapshot.hpp"
#include "cache/replication/replication.hpp"
#include "runtime/cache/cache_server.hpp"
#include "runtime/cache/config/protection.hpp"
#include "runtime/cache/files/dump_file.hpp"
#include "runtime/cache/files/handover.hpp"
#include "runtime/cache/files/yield.hpp"
#include "runtime/scripting/script_options.hpp"
#include "runtime/serving/tls_options.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <new>
#include <utility>
#include <vector>

namespace eddy::runtime::cache {
namespace {

using eddy::cache::rdb::snapshot;

bool exists(const std::string& path) noexcept { return ::access(path.c_str(), F_OK) == 0; }

/// The file in the folder that such a cache would begin with; empty if there is none.
std::string loaded_from(const eddy::cache::server_settings& by, bool appends) {
    const eddy::cache::append_file_settings& append = by.append_file;
    if (appends) {
        const std::string manifest =
            fmt::format("{}/{}/{}.manifest", by.dir, append.dirname, append.filename);
        if (exists(manifest)) return manifest;
        const std::string single = by.dir + "/" + append.filename;
        if (exists(single)) return single;
    }
    std::string dump = by.dir + "/" + by.dbfilename;
    return exists(dump) ? dump : std::string();
}

bool have_same_dump(const eddy::cache::server_settings& a, const eddy::cache::server_settings& b) {
    return a.dir == b.dir && a.dbfilename == b.dbfilename;
}

}  // namespace

// --- Before a restart ------------------------------------------------------------------------

task<outcome<>> cache_server::check(config_pointer next, bool discards_data) {
    const auto& wanted = static_cast<const cache::config&>(*next);
    if (!run_) co_return outcome<>();
    if (!wanted.server.acl_file.empty()) {
        eddy::cache::engine trial(wanted.engine);
        if (auto loaded = co_await load_users(trial, wanted.server.acl_file); !loaded)
            co_return loaded;
    }
    if (!wanted.hooks.file.empty()) {
        if (auto good = co_await try_hooks(wanted.hooks); !good) co_return good;
        if (!run_) co_return refuse(409, "it is not running");
    }
    if (wanted.server.dir.empty()) co_return outcome<>();
    if (auto usable = co_await check_folder(wanted.server.dir); !usable) co_return usable;
    if (discards_data) co_return outcome<>();
    co_return check_new_folder(wanted);
}

/// Loads the script on trial: its backend may be down by now.
task<outcome<>> cache_server::try_hooks(const hook_config& chosen) {
    cache_hooks trial(chosen, name(), events());
    trials_.push_back(&trial);
    const rollback ended([this, &trial] { std::erase(trials_, &trial); });
    co_return co_await trial.check();
}

/// Fails where two sets of keys exist: the user chooses between them.
outcome<> cache_server::check_new_folder(const cache::config& next) const {
    const std::uint64_t keys = run_->engine.stats().keys;
    if (keys == 0 || have_same_dump(next.server, run_->context.settings)) return {};
    const std::string found = loaded_from(next.server, next.engine.append.enabled);
    if (found.empty()) return {};
    return refuse(
        409, fmt::format("{} exists already, and \"{}\" has {} keys: move the file away to keep "
                         "the keys, or replace them by the file's with --discard-keys",
                         found, name(), keys));
}

bool cache_server::has_new_files(const cache::config& next) const {
    return !run_->files || !have_same_dump(next.server, run_->context.settings);
}

/// A restart begins with the users of its options and files. A cache that a password protected must
/// not be open behind it.
outcome<> cache_server::check_users_stay(const cache::config& next) const {
    const eddy::cache::engine_clients clients(run_->engine);
    const std::string& now = run_->engine.options().password;
    if (now != chosen().engine.password && next.engine.password == chosen().engine.password)
        return refuse(409, fmt::format("CONFIG SET has changed the password of \"{}\", which a "
                                       "restart would forget: keep it with CONFIG REWRITE first",
                                       name()));
    if (!next.server.acl_file.empty() || !chosen().server.acl_file.empty()) return {};
    const bool is_closed = clients.need_password();
    const bool would_be_open = next.engine.password.empty() && chosen().engine.password.empty();
    if (clients.users() > 1 || (is_closed && would_be_open))
        return refuse(409, fmt::format("ACL SETUSER has made or changed users of \"{}\", which a "
                                       "restart would forget: write them to a file, and name it "
                                       "with --aclfile",
                                       name()));
    return {};
}

/// True when a cache with those options finds all of its data in its files.
bool cache_server::finds_all(const cache::config& next) const {
    const eddy::cache::engine_files files(run_->engine);
    const bool appends = run_->engine.options().append.enabled;
    const eddy::cache::append_file_settings& now = run_->context.settings.append_file;
    const eddy::cache::append_file_settings& later = next.server.append_file;
    // The data in memory is not whole.
    if (files.is_loading() || files.lacks_data()) return true;
    if (has_new_files(next)) return !files.has_data();
    if (next.engine.append.enabled != appends || later.dirname != now.dirname ||
        later.filename != now.filename)
        return false;
    // The append-only file got what it lacked by save_before_end().
    return appends || !run_->files->lacks_dump();
}

task<outcome<>> cache_server::hand_over(settings next, std::shared_ptr<handover> to,
                                        duration patience) {
    outcome<cache::config> wanted = read_config(next);
    if (!wanted) co_return std::unexpected(wanted.error());
    if (!run_) co_return outcome<>();
    if (auto stay = check_users_stay(*wanted); !stay) co_return stay;
    co_await end_preparation();
    const std::uint64_t own = preparation_;
    EDDY_ASSERT(!is_preparing_ && !to->is_used);
    is_preparing_ = true;
    eddy::cache::engine_clients(run_->engine).hold_writes(eddy::cache::write_hold::stop);
    outcome<> ready = co_await save_before_end(patience, own);
    // Where an append-only file cannot be written, an instance that has one does not start.
    const bool may_start = ready.has_value() || !wanted->engine.append.enabled;
    try {
        if (preparation_ == own && may_start && (!ready || !finds_all(*wanted))) {
            to->has_new_files = has_new_files(*wanted);
            ready = co_await write_keys(*to, patience, own);
            to->is_used = is_handed_over_ = ready.has_value();
            if (!ready)
                ready.error().message =
                    fmt::format("its {} keys cannot be carried over: {}", run_->engine.stats().keys,
                                ready.error().message);
        }
    } catch (const std::bad_alloc&) {
        ready = refuse(503, std::string(no_memory_text));
    }
    co_return finish_preparation(own, std::move(ready));
}

task<outcome<>> cache_server::write_keys(const handover& to, duration patience, std::uint64_t own) {
    eddy::cache::engine& engine = run_->engine;
    snapshot* data = nullptr;
    last_save how;
    how.patience = patience;
    how.is_given_up = [this, own] { return preparation_ != own; };
    auto begun = co_await await_instant(run_->context, how, [&] {
        // Drops the rest of a snapshot that was given up.
        static_cast<void>(engine.upkeep());
        eddy::cache::rdb::snapshot_options options;
        options.names_stream = true;
        data = snapshot::begin(engine, options);
        return data != nullptr;
    });
    if (!begun) co_return begun;
    outcome<> written;
    try {
        written = co_await write_handover(run_->context.settings, *data, to);
    } catch (const std::bad_alloc&) {
        written = refuse(503, std::string(no_memory_text));
    }
    data->end();
    try {
        while (snapshot::is_clearing(engine)) {
            static_cast<void>(engine.upkeep());
            co_await yield();
        }
    } catch (const std::bad_alloc&) {  // keep_up() continues
    }
    run_->context.ask_upkeep();
    co_return written;
}

// --- Without a restart -----------------------------------------------------------------------

task<outcome<bool>> cache_server::reread_files() {
    if (run_->hooks) {
        auto reloaded = co_await run_->hooks->reload();
        if (!reloaded || !*reloaded) co_return reloaded;
    }
    run_->context.update_time();
    if (chosen().server.acl_file.empty()) co_return true;
    auto loaded = co_await load_users(run_->engine, run_->context.settings.acl_file);
    if (!loaded) co_return std::unexpected(loaded.error());
    co_return true;
}

task<outcome<>> cache_server::reload_script() {
    if (!run_ || !run_->hooks) co_return has_no_script(name());
    auto reloaded = co_await run_->hooks->reload();
    if (!reloaded) co_return std::unexpected(reloaded.error());
    if (!*reloaded)
        co_return refuse(400, fmt::format("--hooks: it has other functions than before; `eddy "
                                          "reload {}` restarts the cache for that, with its keys",
                                          name()));
    co_return outcome<>();
}

outcome<> cache_server::apply(const settings& changed) {
    outcome<cache::config> next = read_config(changed);
    if (!next) return std::unexpected(next.error());
    // CONFIG REWRITE may have changed the options since they were read.
    const outcome<cache::config> before = read_config(options());
    if (!before) return std::unexpected(before.error());
    if (run_) {
        // Parameters that CONFIG SET has changed meanwhile stay, unless this option changes them.
        run_->context.update_time();
        eddy::cache::engine_settings now(run_->engine);
        const auto parameters = eddy::cache::changed_parameters({next->engine, next->server},
                                                                {before->engine, before->server});
        if (auto set = now.set(parameters); !set) return refuse(400, set.error());
        // Parts of a second are lost on CONFIG SET; a mode it does not know.
        if (next->server.client_timeout != before->server.client_timeout)
            run_->context.settings.client_timeout = next->server.client_timeout;
        now.set_mode(next->engine.mode);
    }
    if (next->server.protected_mode && !before->server.protected_mode)
        note_protection(next->where, next->server, next->engine.password, events());
    auto now = std::make_shared<cache::config>(chosen());
    now->write_timeout = next->write_timeout;
    now->rules = std::move(next->rules);
    set_config(std::move(now), changed);
    if (run_) {
        listening().set_rules(chosen().rules);
        run_->context.write_timeout = chosen().write_timeout;
        cache_worker::apply_limits(run_->context);
    }
    return {};
}

}  // namespace eddy::runtime::cache
