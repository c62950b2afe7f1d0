// Context of a running server: what its workers share.
#pragma once

#include <eddy/io/loop.hpp>
#include <eddy/net/rate_limit.hpp>

#include "runtime/host/host.hpp"
#include "runtime/logs/shared_log.hpp"
#include "runtime/server/exchange.hpp"
#include "runtime/server/modes/claim.hpp"
#include "runtime/server/script/server_script.hpp"
#include "runtime/server/upstreams.hpp"
#include "serving/journal.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace eddy::runtime::server {

/// A limiter of so many messages a second, which starts full; 0 is no limit. On the running loop.
inline rate_limiter limiter_for(std::uint64_t per_second) noexcept {
    const auto rate = static_cast<double>(per_second);
    return rate_limiter(rate, rate, loop::current().now());
}

/// --global-rate-limit, of the clients of all loops together. With one loop it takes no lock.
class global_pace {
public:
    /// `is_shared`: several loops use it. Then from any thread, else from one.
    explicit global_pace(bool is_shared) noexcept : is_shared_(is_shared) {}

    void set(std::uint64_t per_second) noexcept {
        const auto lock = locked();
        limiter_ = limiter_for(per_second);
        is_limited_.store(!limiter_.unlimited(), std::memory_order_relaxed);
    }
    bool unlimited() const noexcept { return !is_limited_.load(std::memory_order_relaxed); }
    /// As rate_limiter::take_later().
    duration take_later(std::uint64_t count, time_point now) noexcept {
        const auto lock = locked();
        return limiter_.take_later(count, now);
    }

private:
    std::unique_lock<std::mutex> locked() noexcept {
        std::unique_lock lock(guard_, std::defer_lock);
        if (is_shared_) lock.lock();
        return lock;
    }

    bool is_shared_;
    std::mutex guard_;
    rate_limiter limiter_{0, 0, {}};
    std::atomic<bool> is_limited_{false};
};

/// One for each start of a server; it outlives the workers.
struct server_context {
    /// `loops` serve clients.
    server_context(std::string its_name, host& its_daemon, serving::journal& its_events,
                   shared_log& its_log, std::size_t loops, std::size_t max_queue)
        : name(std::move(its_name)),
          daemon(its_daemon),
          events(its_events),
          log(its_log),
          pace(loops > 1) {
        if (loops > 1) between_loops = std::make_unique<exchange>(max_queue);
    }

    const std::string name;  // of the server
    host& daemon;
    serving::journal& events;
    shared_log& log;
    bool has_log = false;
    global_pace pace;
    master_claim claim;                            // of --mode master
    std::shared_ptr<upstreams> upstream_links;     // null without --upstream
    std::unique_ptr<exchange> between_loops;       // null with one loop
    std::atomic<std::uint32_t> web_clients{0};     // WebSockets of all loops
    script_identity identity = {};                 // for scripts
    std::atomic<std::uint64_t> script_clients{0};  // that scripts of all loops know
    std::mutex script_guard;
    std::string script_fault;  // why a loop has no script; under the guard
};

}  // namespace eddy::runtime::server
