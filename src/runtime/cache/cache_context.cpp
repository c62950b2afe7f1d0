// Context of a running cache: functions that several parts share.
#include "runtime/cache/cache_context.hpp"

#include <eddy/io/timeout.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <new>

namespace eddy::runtime::cache {

void cache_context::note_no_memory(serving::counters& its, std::uint64_t client_id) const noexcept {
    ++its.errors;
    try {
        events.write(client_id == 0
                         ? "a client was closed: there is no memory for it"
                         : fmt::format("client {} closed: no memory for its commands or replies",
                                       client_id));
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): it is counted
    }
}

eddy::cache::traffic cache_context::traffic() const noexcept {
    eddy::cache::traffic sum;
    const auto add = [&sum](const serving::counters& of) {
        sum.bytes_in += of.bytes_in;
        sum.bytes_out += of.bytes_out;
        sum.reads += of.reads;
        sum.writes += of.writes;
        sum.refused += of.connections_refused;
    };
    if (pool != nullptr) {
        for (const auto& each : pool->others()) add(each.its->counted());
    }
    sum.threaded_reads = sum.reads;
    sum.threaded_writes = sum.writes;
    add(counted);
    if (pool != nullptr && pool->here() != nullptr) add(pool->here()->counted());
    return sum;
}

worker_limits cache_context::limits() const noexcept {
    worker_limits chosen;
    chosen.of_connections.most = settings.max_clients;
    chosen.of_connections.idle = settings.client_timeout;
    chosen.of_connections.stuck = write_timeout;
    chosen.max_argument = engine.options().max_text;
    chosen.max_query_buffer = settings.max_query_buffer;
    return chosen;
}

task<bool> cache_context::await_progress(duration limit) {
    progress.reset();
    const result<> woken = co_await with_timeout(limit, progress.wait());
    co_return woken || woken.error() == errc::timed_out;
}

task<bool> cache_context::await_progress_until(std::int64_t steady_us) {
    using std::chrono::microseconds;
    const microseconds left = microseconds(steady_us) - clock.steady();
    const auto longest = std::chrono::duration_cast<microseconds>(longest_wait);
    co_return co_await await_progress(std::clamp(left, microseconds(1), longest));
}

}  // namespace eddy::runtime::cache
