// Upkeep of a cache: expired keys, memory, late scripts, and slow clients, in slices beside the
// commands.
#include <eddy/io/loop.hpp>
#include <eddy/io/timeout.hpp>

#include "runtime/cache/cache_server_parts.hpp"
#include "runtime/cache/files/yield.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace eddy::runtime::cache {
namespace {

/// Period of the search for expired keys; less often while none is found.
constexpr duration shortest_upkeep = std::chrono::milliseconds(100);
constexpr duration longest_upkeep = std::chrono::seconds(1);
/// Time after which all keys have been visited, about, where a slice every soonest_upkeep is enough
/// for that.
constexpr duration whole_sweep = std::chrono::seconds(60);
constexpr duration soonest_upkeep = std::chrono::milliseconds(5);

}  // namespace

/// Removes expired keys while there are any with a TTL, and gives memory back after commands.
/// Without either it sleeps until a client does something.
task<void> cache_server::keep_up() {
    eddy::cache::engine& engine = parts_->engine;
    duration pause = shortest_upkeep;
    std::uint64_t expired = 0;
    for (;;) {
        const eddy::cache::statistics now = engine.stats();
        if (now.keys_with_expiry == 0 && now.fields_with_expiry == 0) {
            parts_->context.work_done.reset();
            pause = shortest_upkeep;
            if (!co_await parts_->context.work_done.wait()) co_return;
        }
        if (!co_await loop::current().sleep_for(pause)) co_return;
        static_cast<worker*>(pool().here())->trim();
        for (const auto& each : pool().others()) static_cast<worker&>(*each.its).trim_later();
        parts_->context.update_time();
        while (engine.upkeep()) {
            co_await yield();
            if (parts_->background.source().requested()) co_return;
            parts_->context.update_time();
        }
        if (engine.is_behind()) parts_->context.is_behind.set();
        const std::uint64_t now_expired = engine.stats().expired_keys;
        pause = now_expired != expired ? shortest_upkeep : std::min(pause * 2, longest_upkeep);
        const auto fair = std::chrono::duration<double>(whole_sweep) * engine.swept_share();
        pause = std::clamp(std::chrono::duration_cast<duration>(fair), soonest_upkeep, pause);
        expired = now_expired;
    }
}

/// Continues a script that takes too long, and writes huge values into a snapshot before they
/// change: one slice a turn.
task<void> cache_server::catch_up() {
    eddy::cache::engine& engine = parts_->engine;
    for (;;) {
        parts_->context.is_behind.reset();
        if (!engine.is_behind() && !co_await parts_->context.is_behind.wait()) co_return;
        while (engine.is_behind()) {
            engine.go_on();
            co_await yield();
            if (parts_->background.source().requested()) co_return;
            parts_->context.update_time();
        }
    }
}

/// Closes clients that have exceeded their soft limit for too long. Sleeps while no client does.
task<void> cache_server::check_outputs() {
    constexpr duration longest_wait = std::chrono::hours(1);
    eddy::cache::engine& engine = parts_->engine;
    for (;;) {
        parts_->context.outputs_due.reset();
        parts_->context.update_time();
        engine.check_outputs();
        const std::int64_t due_us = engine.outputs_due_us();
        result<> woken;
        if (due_us == eddy::cache::session::no_deadline) {
            woken = co_await parts_->context.outputs_due.wait();
        } else {
            const duration left =
                std::chrono::microseconds(due_us) - parts_->context.clock.steady();
            woken = co_await with_timeout(std::min(left, longest_wait),
                                          parts_->context.outputs_due.wait());
            if (!woken && woken.error() == errc::timed_out) woken = {};
        }
        if (!woken) co_return;
    }
}

}  // namespace eddy::runtime::cache
