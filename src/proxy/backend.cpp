// State of a backend: health, ejection by failures, and trials.
#include "proxy/backend.hpp"

#include <algorithm>

namespace eddy::proxy {
namespace {

std::optional<endpoint> numeric_of(const transport::address& where) {
    result<endpoint> read = fail(errc::unsupported);
    using enum transport::scheme;
    if (where.kind == tcp || where.kind == tls || where.kind == udp)
        read = endpoint::ip(where.host, where.port);
    else if (where.kind == unix_socket)
        read = endpoint::unix_path(where.path);
    if (!read) return std::nullopt;
    return *read;
}

std::int64_t ticks(time_point at) noexcept { return at.time_since_epoch().count(); }

constexpr auto relaxed = std::memory_order_relaxed;

std::optional<duration> median(const histogram& of) {
    if (of.count() < least_responses) return std::nullopt;
    return duration(static_cast<std::int64_t>(of.percentile(50)));
}

}  // namespace

std::string_view to_string(backend_state state) noexcept {
    switch (state) {
        case backend_state::up: return "up";
        case backend_state::down: return "down";
        case backend_state::ejected: return "ejected";
        case backend_state::drained: return "drained";
    }
    return "";
}

backend::backend(transport::address where, std::size_t workers, std::string name,
                 std::optional<endpoint> at)
    : where_(std::move(where)),
      name_(name.empty() ? where_.to_string() : std::move(name)),
      numeric_(at ? at : numeric_of(where_)),
      counted_(workers) {}

std::uint64_t backend::sum(serving::tally backend_counters::* of) const noexcept {
    std::uint64_t all = 0;
    for (const backend_counters& each : counted_) all += each.*of;
    return all;
}

void backend::note_latency(duration took) {
    const std::lock_guard lock(latency_guard_);
    latency_.record(static_cast<std::uint64_t>(std::max(took, duration{}).count()));
}

histogram backend::latency() const {
    const std::lock_guard lock(latency_guard_);
    return latency_;
}

void backend::note_response_time(duration took, time_point now) {
    const std::lock_guard lock(latency_guard_);
    if (!times_) times_ = std::make_unique<histogram>();
    const std::int64_t window = window_of(now);
    // Threads may be a little apart.
    if (window > window_) {
        last_ = {window_, median(*times_)};
        window_ = window;
        times_->reset();
    }
    times_->record(static_cast<std::uint64_t>(std::max(took, duration{}).count()));
}

std::optional<duration> backend::median_of(std::int64_t window) const {
    const std::lock_guard lock(latency_guard_);
    if (times_ && window == window_) return median(*times_);
    return window == last_.window ? last_.median : std::nullopt;
}

std::uint32_t backend::note_window(std::int64_t window, bool is_slow) noexcept {
    const std::lock_guard lock(latency_guard_);
    if (window <= judged_window_) return slow_windows_;
    judged_window_ = window;
    slow_windows_ = is_slow ? slow_windows_ + 1 : 0;
    if (!is_slow && was_slow_.exchange(false, relaxed)) ejections_in_a_row_.store(0, relaxed);
    return slow_windows_;
}

backend_state backend::state() const noexcept {
    if (is_drained()) return backend_state::drained;
    if (!is_healthy_.load(relaxed)) return backend_state::down;
    return ejected_until_.load(relaxed) != 0 ? backend_state::ejected : backend_state::up;
}

bool backend::accepts(time_point now) const noexcept {
    if (is_drained() || !is_healthy_.load(relaxed)) return false;
    const std::int64_t until = ejected_until_.load(relaxed);
    return until == 0 || (until <= ticks(now) && !is_tried_.load(relaxed));
}

backend::admission backend::admit(time_point now) noexcept {
    if (!accepts(now)) return admission::refused;
    if (ejected_until_.load(relaxed) == 0) return admission::taken;
    return is_tried_.exchange(true, relaxed) ? admission::refused : admission::trial;
}

bool backend::note_failure(const ejection_rules& rules, bool may_eject, time_point now) noexcept {
    const std::uint32_t failures = failures_in_a_row_.fetch_add(1, relaxed) + 1;
    const std::int64_t until = ejected_until_.load(relaxed);
    const bool is_after_pause = until != 0 && until <= ticks(now);
    if (rules.failures == 0 || (!is_after_pause && failures < rules.failures)) return false;
    if (!is_after_pause && (until != 0 || !may_eject)) return false;
    return eject(until, rules, now) && !is_after_pause;
}

bool backend::note_cut(const ejection_rules& rules, bool may_eject, time_point now) noexcept {
    const std::uint32_t cuts = cuts_in_a_row_.fetch_add(1, relaxed) + 1;
    if (rules.failures == 0 || cuts < rules.failures || !may_eject) return false;
    return !is_ejected() && eject(0, rules, now);
}

void backend::note_whole() noexcept {
    if (cuts_in_a_row_.load(relaxed) == 0) return;
    cuts_in_a_row_.store(0, relaxed);
    if (!is_ejected() && !was_slow_.load(relaxed)) ejections_in_a_row_.store(0, relaxed);
}

bool backend::is_failing(const ejection_rules& rules) const noexcept {
    const std::uint32_t most = rules.failures != 0 ? rules.failures : ejection_rules().failures;
    return failures_in_a_row_.load(relaxed) >= most || cuts_in_a_row_.load(relaxed) >= most;
}

/// One of several threads does, if `until_before` is still the end of its pause.
bool backend::eject(std::int64_t until_before, const ejection_rules& rules,
                    time_point now) noexcept {
    const std::uint32_t before = std::min(ejections_in_a_row_.load(relaxed), 30U);
    const duration pause = rules.first_pause > rules.longest_pause / (std::int64_t{1} << before)
                               ? rules.longest_pause
                               : rules.first_pause * (std::int64_t{1} << before);
    if (!ejected_until_.compare_exchange_strong(until_before, ticks(now + pause), relaxed))
        return false;
    ejections_in_a_row_.fetch_add(1, relaxed);
    ejections_.fetch_add(1, relaxed);
    return true;
}

bool backend::eject_slow(const ejection_rules& rules, time_point now) noexcept {
    if (!eject(0, rules, now)) return false;
    const std::lock_guard lock(latency_guard_);
    was_slow_.store(true, relaxed);
    slow_windows_ = slow_windows - 1;
    return true;
}

bool backend::note_success(time_point now) noexcept {
    if (failures_in_a_row_.load(relaxed) != 0) failures_in_a_row_.store(0, relaxed);
    std::int64_t until = ejected_until_.load(relaxed);
    // A request from before the ejection says nothing about the time after it.
    if (until == 0 || until > ticks(now)) return false;
    if (!ejected_until_.compare_exchange_strong(until, 0, relaxed)) return false;
    // A slow one has to be fast for a window first, and one that cuts responses to end one.
    if (!was_slow_.load(relaxed) && cuts_in_a_row_.load(relaxed) == 0)
        ejections_in_a_row_.store(0, relaxed);
    up_since_.store(ticks(now), relaxed);
    return true;
}

bool backend::set_healthy(bool is_healthy, time_point now) noexcept {
    if (is_healthy_.exchange(is_healthy, relaxed) == is_healthy) return false;
    if (!is_healthy) return true;
    failures_in_a_row_.store(0, relaxed);
    cuts_in_a_row_.store(0, relaxed);
    ejected_until_.store(0, relaxed);
    ejections_in_a_row_.store(0, relaxed);
    up_since_.store(ticks(now), relaxed);
    return true;
}

}  // namespace eddy::proxy
