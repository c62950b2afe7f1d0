// Tasks of the upkeep of a cache.
#include "runtime/cache/cache_upkeep.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/timeout.hpp>

#include "runtime/cache/clients/cache_worker.hpp"
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

task<void> cache_upkeep::keep_up() {
    EDDY_ASSERT(context_.pool != nullptr);
    eddy::cache::engine& engine = context_.engine;
    duration pause = shortest_upkeep;
    std::uint64_t expired = 0;
    for (;;) {
        const eddy::cache::statistics now = engine.stats();
        if (now.keys_with_expiry == 0 && now.fields_with_expiry == 0) {
            context_.work_done.reset();
            pause = shortest_upkeep;
            if (!co_await context_.work_done.wait()) co_return;
        }
        if (!co_await loop::current().sleep_for(pause)) co_return;
        static_cast<cache_worker*>(context_.pool->here())->trim();
        for (const auto& each : context_.pool->others())
            static_cast<cache_worker&>(*each.its).trim_later();
        context_.update_time();
        while (engine.upkeep()) {
            co_await yield();
            if (is_ending()) co_return;
            context_.update_time();
        }
        if (engine.is_behind()) context_.is_behind.set();
        const std::uint64_t now_expired = engine.stats().expired_keys;
        pause = now_expired != expired ? shortest_upkeep : std::min(pause * 2, longest_upkeep);
        const auto fair = std::chrono::duration<double>(whole_sweep) * engine.swept_share();
        pause = std::clamp(std::chrono::duration_cast<duration>(fair), soonest_upkeep, pause);
        expired = now_expired;
    }
}

task<void> cache_upkeep::catch_up() {
    eddy::cache::engine& engine = context_.engine;
    for (;;) {
        context_.is_behind.reset();
        if (!engine.is_behind() && !co_await context_.is_behind.wait()) co_return;
        while (engine.is_behind()) {
            engine.go_on();
            co_await yield();
            if (is_ending()) co_return;
            context_.update_time();
        }
    }
}

task<void> cache_upkeep::check_outputs() {
    constexpr duration longest_wait = std::chrono::hours(1);
    eddy::cache::engine& engine = context_.engine;
    for (;;) {
        context_.outputs_due.reset();
        context_.update_time();
        engine.check_outputs();
        const std::int64_t due_us = engine.outputs_due_us();
        result<> woken;
        if (due_us == eddy::cache::client_session::no_deadline) {
            woken = co_await context_.outputs_due.wait();
        } else {
            const duration left = std::chrono::microseconds(due_us) - context_.clock.steady();
            woken =
                co_await with_timeout(std::min(left, longest_wait), context_.outputs_due.wait());
            if (!woken && woken.error() == errc::timed_out) woken = {};
        }
        if (!woken) co_return;
    }
}

}  // namespace eddy::runtime::cache
