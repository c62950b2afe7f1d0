// Taking and giving back of connections, and the order of the requests that wait.
#include "http/client/connection_pool.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/timeout.hpp>

#include <algorithm>
#include <chrono>
#include <functional>
#include <iterator>
#include <new>

namespace eddy::http {
namespace {

/// Between two looks at the idle connections.
constexpr std::chrono::seconds sweep_time{1};

std::string texts_of(const connection_key& key) {
    std::string all;
    for (const std::string_view each : {key.place, key.server, key.proxy_user, key.variant})
        all += each;
    return all;
}

/// The key with views of the same texts in `texts`.
connection_key key_within(std::string_view texts, connection_key key) noexcept {
    for (std::string_view* each : {&key.place, &key.server, &key.proxy_user, &key.variant}) {
        const std::size_t size = each->size();
        *each = texts.substr(0, size);
        texts.remove_prefix(size);
    }
    return key;
}

}  // namespace

std::size_t connection_pool::hash::operator()(const connection_key& of) const noexcept {
    std::uint64_t made = std::uint64_t{static_cast<std::uint8_t>(of.kind)} << 48U |
                         std::uint64_t{static_cast<std::uint8_t>(of.through)} << 40U |
                         std::uint64_t{of.is_secure} << 32U | std::uint64_t{of.port} << 16U |
                         of.server_port;
    for (const std::string_view each : {of.place, of.server, of.proxy_user, of.variant}) {
        if (each.empty()) continue;
        made = made * 0x9e3779b97f4a7c15U + std::hash<std::string_view>()(each);
    }
    return static_cast<std::size_t>(made);
}

pool_upstream::pool_upstream(const connection_key& of)
    : texts(texts_of(of)), key(key_within(texts, of)) {}

connection_pool::~connection_pool() {
    EDDY_ASSERT(all_.size() == idle_count_ && waiting_.empty());
    while (!idle_.empty()) drop_idle(idle_.front());
    if (armed()) loop::current().disarm(*this);
}

void connection_pool::set_limits(const limits& bounds) {
    limits_ = bounds;
    if (armed()) loop::current().disarm(*this);
    arm_timer();
    serve_waiting();
}

task<result<pool_connection*>> connection_pool::take(connection_key key) {
    co_return co_await take_any(std::span(&key, 1));
}

pool_connection* connection_pool::try_any(std::span<const connection_key> keys) {
    for (const connection_key& each : keys)
        if (pool_connection* const found = try_take(each)) return found;
    return nullptr;
}

task<result<pool_connection*>> connection_pool::take_any(std::span<const connection_key> keys) {
    if (is_closed_) co_return fail(errc::closed);
    if (pool_connection* const found = try_any(keys)) co_return found;
    if (waiting_.size() >= limits_.waiting) co_return fail(errc::limit_reached);
    waiter self{keys, {}};
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

pool_connection* connection_pool::try_take(const connection_key& key) {
    if (is_closed_) return nullptr;
    const auto same = backends_.find(key);
    pool_upstream* to = same == backends_.end() ? nullptr : same->second.get();
    if (to != nullptr) {
        if (pool_connection* const found = take_idle(*to)) return found;
        if (to->count >= limits_.of_upstream) return nullptr;
    }
    if (size() >= limits_.of_all) {
        if (idle_.empty()) return nullptr;
        drop_idle(idle_.front());  // of another backend: this one has none
    }
    return &add(to, key);
}

/// The idle connection that was used last. Unusable ones are closed; the last of the backend is
/// returned without its connection, so that the backend remains.
pool_connection* connection_pool::take_idle(pool_upstream& from) noexcept {
    while (!from.idle.empty()) {
        pool_connection& last = from.idle.back();
        const bool is_fresh = limits_.idle_time == duration::max() ||
                              loop::current().now() - last.idle_since <= limits_.idle_time;
        const bool is_good = is_fresh && last.through->is_reusable();
        if (!is_good && from.count > 1) {
            drop_idle(last);
            continue;
        }
        leave_idle(last);
        if (!is_good) last.through.reset();
        return &last;
    }
    return nullptr;
}

/// A new one, for a backend that there is, or for a new one of the key.
pool_connection& connection_pool::add(pool_upstream* to, const connection_key& key) {
    std::unique_ptr<pool_upstream> fresh;
    if (to == nullptr) {
        fresh = std::make_unique<pool_upstream>(key);
        to = fresh.get();
    }
    pool_connection& made = all_.emplace_back(*to);
    made.self = std::prev(all_.end());
    if (fresh) {
        try {
            backends_.try_emplace(to->key, std::move(fresh));
        } catch (...) {
            all_.pop_back();
            throw;
        }
    }
    ++to->count;
    return made;
}

void connection_pool::leave_idle(pool_connection& which) noexcept {
    static_cast<list_link<pool_upstream>&>(which).unlink();
    static_cast<list_link<connection_pool>&>(which).unlink();
    --idle_count_;
    which.shows_input = false;
}

void connection_pool::drop_idle(pool_connection& which) noexcept {
    leave_idle(which);
    remove(which);
}

void connection_pool::remove(pool_connection& which) noexcept {
    pool_upstream& from = which.of;
    all_.erase(which.self);
    if (--from.count == 0) backends_.erase(backends_.find(from.key));
}

void connection_pool::give_back(pool_connection& used) noexcept {
    if (!is_closed_ && used.through && used.through->is_reusable()) {
        used.idle_since = loop::current().now();
        used.shows_input = !used.through->may_have_input();
        used.of.idle.push_back(used);
        idle_.push_back(used);
        ++idle_count_;
        arm_timer();
    } else {
        remove(used);
    }
    serve_waiting();
}

void connection_pool::serve_waiting() {
    for (auto each = waiting_.begin(); each != waiting_.end();) {
        if (size() - idle_count_ >= limits_.of_all) return;
        waiter& first = **each;
        try {
            first.given = try_any(first.keys);
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

void connection_pool::close() noexcept {
    is_closed_ = true;
    while (!idle_.empty()) drop_idle(idle_.front());
    for (waiter* const each : std::exchange(waiting_, {})) each->ready.set();
    if (armed()) loop::current().disarm(*this);
}

void connection_pool::arm_timer() noexcept {
    if (armed() || idle_.empty()) return;
    loop& here = loop::current();
    time_point next = here.after(sweep_time);
    if (limits_.idle_time != duration::max())
        next = std::min(next, idle_.front().idle_since + limits_.idle_time);
    here.arm(*this, next);
}

void connection_pool::fire() noexcept {
    const time_point now = loop::current().now();
    while (!idle_.empty() && limits_.idle_time != duration::max() &&
           idle_.front().idle_since + limits_.idle_time <= now)
        drop_idle(idle_.front());
    // A server that has closed one has sent its end.
    for (auto each = all_.begin(); each != all_.end();) {
        pool_connection& which = *each++;
        if (which.shows_input && which.through->may_have_input()) drop_idle(which);
    }
    arm_timer();
}

}  // namespace eddy::http
