// Taking and giving back of connections, and the order of those who wait.
#include "http/pool/connections.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/timeout.hpp>

#include <iterator>
#include <new>
#include <utility>

namespace eddy::http {

pool_connections::~pool_connections() {
    EDDY_ASSERT(busy_.empty() && waiting_.empty());
    if (armed()) loop::current().disarm(*this);
}

task<result<pool_connection*>> pool_connections::take(std::string key) {
    if (is_closed_) co_return fail(errc::closed);
    if (pool_connection* const found = try_take(key)) co_return found;
    if (waiting_.size() >= limits_.waiting) co_return fail(errc::limit_reached);
    waiter self{key, {}};
    const auto at = waiting_.insert(waiting_.end(), &self);
    const auto woken = co_await with_timeout(limits_.waiting_time, self.ready.wait());
    if (!self.ready.is_set()) {
        waiting_.erase(at);
        co_return fail(woken.error());
    }
    if (self.given == nullptr) co_return fail(errc::closed);
    if (!woken) {
        give_back(*self.given);
        co_return fail(woken.error());
    }
    co_return self.given;
}

/// Null at a limit.
pool_connection* pool_connections::try_take(const std::string& key) {
    for (auto each = idle_.end(); each != idle_.begin();) {
        --each;
        if (each->route->first != key) continue;
        if (each->through->is_reusable()) {
            busy_.splice(busy_.end(), idle_, each);
            return &busy_.back();
        }
        each = std::next(each);
        drop_idle(std::prev(each));
    }
    const auto same = routes_.find(key);
    if (same != routes_.end() && same->second.count >= limits_.of_key) return nullptr;
    if (size() >= limits_.of_all) {
        if (idle_.empty()) return nullptr;
        drop_idle(idle_.begin());
    }
    busy_.push_back({nullptr, nullptr});
    pool_connection& made = busy_.back();
    made.self = std::prev(busy_.end());
    try {
        made.route = &*routes_.try_emplace(key).first;
    } catch (...) {
        busy_.pop_back();
        throw;
    }
    ++made.route->second.count;
    return &made;
}

void pool_connections::forget(const pool_connection& ended) noexcept {
    if (--ended.route->second.count == 0) routes_.erase(routes_.find(ended.route->first));
}

void pool_connections::drop_idle(place which) noexcept {
    forget(*which);
    idle_.erase(which);
}

void pool_connections::give_back(pool_connection& used) noexcept {
    const place at = used.self;
    if (!is_closed_ && used.through && used.through->is_reusable()) {
        used.idle_since = loop::current().now();
        idle_.splice(idle_.end(), busy_, at);
        arm_timer();
    } else {
        forget(used);
        busy_.erase(at);
    }
    serve_waiting();
}

void pool_connections::serve_waiting() {
    for (auto each = waiting_.begin(); each != waiting_.end();) {
        if (busy_.size() >= limits_.of_all) return;
        waiter& first = **each;
        try {
            first.given = try_take(first.key);
        } catch (const std::bad_alloc&) {
            return;  // the next one that is given back tries again
        }
        if (first.given == nullptr) {
            ++each;
            continue;
        }
        each = waiting_.erase(each);
        first.ready.set();
    }
}

void pool_connections::close() noexcept {
    is_closed_ = true;
    while (!idle_.empty()) drop_idle(idle_.begin());
    for (waiter* const each : std::exchange(waiting_, {})) each->ready.set();
    if (armed()) loop::current().disarm(*this);
}

void pool_connections::arm_timer() noexcept {
    if (armed() || idle_.empty() || limits_.idle_time == duration::max()) return;
    loop::current().arm(*this, idle_.front().idle_since + limits_.idle_time);
}

void pool_connections::fire() noexcept {
    const time_point now = loop::current().now();
    while (!idle_.empty() && idle_.front().idle_since + limits_.idle_time <= now)
        drop_idle(idle_.begin());
    arm_timer();
}

}  // namespace eddy::http
