// End of a cache: unsaved data is written while clients are still served, so that a stop can be
// refused.
#include <eddy/base/assert.hpp>
#include <eddy/io/loop.hpp>

#include "cache/clients/engine_clients.hpp"
#include "cache/persistence/engine_files.hpp"
#include "cache/replication/replication.hpp"
#include "runtime/cache/cache_server.hpp"
#include "runtime/cache/files/dump_file.hpp"
#include "runtime/cache/replication/master_side.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

namespace eddy::runtime::cache {

task<outcome<>> cache_server::prepare_stop(duration patience) {
    if (!run_ || is_prepared_) co_return outcome<>();
    co_await end_preparation();
    // A client has asked for this end, whatever it loses.
    if (run_->commands.is_forced()) co_return outcome<>();
    const std::uint64_t own = preparation_;
    EDDY_ASSERT(!is_preparing_);
    is_preparing_ = true;
    // Without files there is nothing that a change could be late for.
    if (run_->files)
        eddy::cache::engine_clients(run_->engine).hold_writes(eddy::cache::write_hold::stop);
    outcome<> ready = co_await save_before_end(patience, own);
    co_return finish_preparation(own, std::move(ready));
}

/// Replicas and files get what they lack.
task<outcome<>> cache_server::save_before_end(duration patience, std::uint64_t own) {
    const auto is_given_up = [this, own] { return preparation_ != own; };
    try {
        const std::chrono::seconds longest(run_->context.settings.replica.shutdown_timeout_s);
        co_await await_replicas(run_->context, std::min<duration>(patience, longest), is_given_up);
        last_save how;
        how.wanted = run_->commands.at_end();
        how.patience = patience;
        how.is_given_up = is_given_up;
        co_return co_await save_all(run_->context, std::move(how));
    } catch (const std::bad_alloc&) {
        ++counted().errors;
    }
    co_return refuse(503, std::string(no_memory_text));
}

outcome<> cache_server::finish_preparation(std::uint64_t own, outcome<> ready) {
    EDDY_ASSERT(is_preparing_);
    is_preparing_ = false;
    run_->context.progress.set();
    if (preparation_ != own) return stop_given_up();
    is_prepared_ = ready.has_value();
    if (ready) return ready;
    ++counted().errors;
    resume();
    try {
        events().write(fmt::format("does not stop: {}", ready.error().message));
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): the caller reports it
    }
    return ready;
}

void cache_server::resume() noexcept {
    ++preparation_;
    is_prepared_ = is_handed_over_ = false;
    if (!run_) return;
    run_->context.progress.set();
    eddy::cache::engine_clients(run_->engine).let_write(eddy::cache::write_hold::stop);
    run_->commands.stop_refused();
}

/// Ends a prepare_stop() whose caller has left, at its next wait.
task<void> cache_server::end_preparation() {
    ++preparation_;
    run_->context.progress.set();
    // Also a caller that is cancelled waits for it.
    while (is_preparing_) {
        if (!co_await run_->context.await_progress()) co_await loop::current().yield();
    }
}

task<void> cache_server::begin_stop() {
    co_await end_preparation();
    EDDY_ASSERT(!is_preparing_);
    daemon()->offer_cache(nullptr);
    lost_.clear();
    eddy::cache::engine_files files(run_->engine);
    files.begin_end();
    // SHUTDOWN NOSAVE is what ends a script that has written.
    if (run_->commands.at_end() == eddy::cache::shutdown_request::saving::never) files.cut_script();
}

task<void> cache_server::accepting_ended(duration drain) {
    if (is_prepared_) co_return;
    try {
        const std::chrono::seconds patience(run_->context.settings.replica.shutdown_timeout_s);
        co_await await_replicas(run_->context, std::min<duration>(drain, patience));
    } catch (const std::bad_alloc&) {
        ++counted().errors;
    }
}

task<void> cache_server::clients_ended(bool has_started) {
    const bool is_prepared = std::exchange(is_prepared_, false);
    if (has_started) {
        try {
            if (eddy::cache::engine_files(run_->engine).has_half_script())
                events().write(
                    "a script that had changed keys was cut off: nothing of it was stored");
            if (run_->hooks) co_await run_->hooks->flush();
        } catch (const std::bad_alloc&) {
            ++counted().errors;
            events().write("not all changes were passed to --hooks: there was no memory");
        }
    }
    if (run_->scripts) {
        daemon()->offer_cache(nullptr);
        co_await run_->scripts->end();
    }
    run_->background.cancel();
    co_await run_->background.join();
    if (!has_started) co_return;
    if (run_->files) co_await run_->files->close(run_->commands.at_end(), is_prepared);
    note_loss();
}

/// A replica loses nothing: its master has the data.
void cache_server::note_loss() {
    if (std::exchange(is_handed_over_, false)) return;
    const auto* const links = eddy::cache::replication::find(run_->engine);
    if (links != nullptr && links->is_replica()) return;
    try {
        const std::uint64_t keys = run_->engine.stats().keys;
        if (run_->files)
            lost_ = run_->files->lost();
        else if (keys > 0)
            lost_ = fmt::format("{} {}: it has no --dir", keys, keys == 1 ? "key" : "keys");
    } catch (const std::bad_alloc&) {
        ++counted().errors;
    }
}

}  // namespace eddy::runtime::cache
