// Strategies of choosing a backend.
#include "proxy/balancer.hpp"

#include <eddy/base/assert.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <numeric>

namespace eddy::proxy {
namespace {

/// Points of a backend of weight 1 on the ring of strategy::hash: shares differ by some 10 %.
constexpr std::uint32_t points_a_weight = 100;
/// A backend above this part of the average load passes its keys on (consistent hashing with
/// bounded loads, Mirrokni and others).
constexpr double most_load = 1.25;
/// Fewer open clients a weight are no load: a key stays where it is.
constexpr double least_load = 8;

/// Held while the ejected backends are counted and one is added: at most half may be, whatever
/// threads, routes and balancers of earlier rules they are ejected by.
std::mutex ejection_guard;

constexpr std::uint64_t bit(std::size_t index) noexcept { return std::uint64_t{1} << index; }
constexpr bool has(std::uint64_t set, std::size_t index) noexcept {
    return (set & bit(index)) != 0;
}

/// Spreads the bits of a hash (the finisher of MurmurHash3).
constexpr std::uint64_t mixed(std::uint64_t hash) noexcept {
    hash = (hash ^ (hash >> 33)) * 0xff51afd7ed558ccdU;
    hash = (hash ^ (hash >> 33)) * 0xc4ceb9fe1a85ec53U;
    return hash ^ (hash >> 33);
}

/// Indices, each as often as its weight and as evenly spread as that goes: each step adds the
/// weights to the credits, and the highest credit pays the sum.
std::vector<std::uint8_t> smooth_schedule(const backend_list& all) {
    std::vector<std::int64_t> credits(all.size(), 0);
    std::int64_t sum = 0;
    std::uint32_t divisor = 0;
    for (const balanced_backend& each : all) {
        divisor = std::gcd(divisor, each.weight);
        sum += each.weight;
    }
    std::vector<std::uint8_t> made;
    for (std::int64_t i = 0; divisor != 0 && i < sum / divisor; ++i) {
        for (std::size_t k = 0; k < all.size(); ++k) credits[k] += all[k].weight;
        const auto best = std::ranges::max_element(credits);
        *best -= sum;
        made.push_back(static_cast<std::uint8_t>(best - credits.begin()));
    }
    return made;
}

}  // namespace

std::uint64_t hash_key(std::string_view bytes) noexcept {
    std::uint64_t hash = 0xcbf29ce484222325U;
    for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
    return mixed(hash);
}

std::string sticky_id(std::string_view name) {
    std::string digits(16, '0');
    char* const end = digits.data() + digits.size();
    std::array<char, 16> made;
    const auto written = std::to_chars(made.data(), made.data() + made.size(), hash_key(name), 16);
    std::copy_backward(made.data(), written.ptr, end);
    return digits;
}

balancer::balancer(const balancing& rules, backend_list all)
    : rules_(rules), all_(std::move(all)), random_(entropy_seed()) {
    EDDY_ASSERT(all_.size() <= max_backends);
    for (const balanced_backend& each : all_)
        EDDY_ASSERT(each.weight >= 1 && each.weight <= max_weight);
    schedule_ = smooth_schedule(all_);
    if (rules_.chosen != strategy::hash) return;
    for (std::size_t i = 0; i < all_.size(); ++i) {
        const std::uint64_t seed = hash_key(all_[i].its->name());
        for (std::uint32_t k = 0; k < points_a_weight * all_[i].weight; ++k)
            ring_.push_back({mixed(seed + k), static_cast<std::uint8_t>(i)});
    }
    std::ranges::sort(ring_, {}, &ring_point::at);
}

/// The backends that take clients now, except for tried ones; backups only where no others do.
std::uint64_t balancer::available(std::uint64_t tried, time_point now) const noexcept {
    std::uint64_t main = 0;
    std::uint64_t backup = 0;
    for (std::size_t i = 0; i < all_.size(); ++i) {
        if (has(tried, i) || !all_[i].its->accepts(now)) continue;
        (all_[i].is_backup ? backup : main) |= bit(i);
    }
    return main != 0 ? main : backup;
}

bool balancer::has_available(time_point now) const noexcept { return available(0, now) != 0; }

std::uint64_t balancer::draw(std::uint64_t bound) noexcept {
    const std::lock_guard lock(random_guard_);
    return random_.below(bound);
}

/// Leaves backends out that came back a short time ago, more often the shorter it is.
std::uint64_t balancer::without_slow(std::uint64_t among, time_point now) noexcept {
    if (rules_.slow_start <= duration{}) return among;
    std::uint64_t kept = among;
    for (std::size_t i = 0; i < all_.size(); ++i) {
        const time_point since = all_[i].its->up_since();
        if (!has(among, i) || since == time_point{}) continue;
        const duration passed = now - since;
        if (passed >= rules_.slow_start) continue;
        const auto whole = static_cast<std::uint64_t>(rules_.slow_start.count());
        // A tenth of its share from the beginning, so that its failures show.
        const auto share =
            std::max(static_cast<std::uint64_t>(std::max(passed, duration{}).count()), whole / 10);
        if (draw(whole) >= share) kept &= ~bit(i);
    }
    return kept != 0 ? kept : among;
}

double balancer::load(std::size_t index) const noexcept {
    return static_cast<double>(all_[index].its->open()) / all_[index].weight;
}

/// The scheduled one. The clients of backends that take none are spread over all others: the one
/// behind would get them all.
std::size_t balancer::next_scheduled(std::uint64_t among, std::size_t start) noexcept {
    if (has(among, schedule_[start])) return schedule_[start];
    const auto places = static_cast<std::uint64_t>(std::ranges::count_if(
        schedule_, [among](std::uint8_t index) { return has(among, index); }));
    EDDY_ASSERT(places > 0);
    std::uint64_t skipped = spilled_.fetch_add(1, std::memory_order_relaxed) % places;
    for (const std::uint8_t index : schedule_)
        if (has(among, index) && skipped-- == 0) return index;
    EDDY_ASSERT(false);
    return 0;
}

std::size_t balancer::by_count(std::uint64_t among, std::size_t start) const noexcept {
    const std::size_t count = all_.size();
    std::size_t best = count;
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t index = (start + i) % count;
        if (has(among, index) && (best == count || load(index) < load(best))) best = index;
    }
    EDDY_ASSERT(best < count);
    return best;
}

std::size_t balancer::by_random(std::uint64_t among) noexcept {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < all_.size(); ++i)
        if (has(among, i)) sum += all_[i].weight;
    std::uint64_t drawn = draw(sum);
    for (std::size_t i = 0; i < all_.size(); ++i) {
        if (!has(among, i)) continue;
        if (drawn < all_[i].weight) return i;
        drawn -= all_[i].weight;
    }
    EDDY_ASSERT(false);
    return 0;
}

std::size_t balancer::by_hash(std::uint64_t among, std::uint64_t hash) const noexcept {
    double open = 1;  // the client that is chosen for
    double weights = 0;
    for (std::size_t i = 0; i < all_.size(); ++i) {
        if (!has(among, i)) continue;
        open += static_cast<double>(all_[i].its->open());
        weights += all_[i].weight;
    }
    const double most = open / weights * most_load;
    const auto at = static_cast<std::size_t>(
        std::ranges::lower_bound(ring_, mixed(hash), {}, &ring_point::at) - ring_.begin());
    for (std::size_t i = 0; i < ring_.size(); ++i) {
        const std::size_t index = ring_[(at + i) % ring_.size()].index;
        if (!has(among, index)) continue;
        const double of_this = std::ceil(std::max(most, least_load) * all_[index].weight);
        if (static_cast<double>(all_[index].its->open()) < of_this) return index;
    }
    // Every one is at its bound only while they change on other threads.
    return static_cast<std::size_t>(std::countr_zero(among));
}

std::size_t balancer::choose(std::uint64_t among, const selection_key& key,
                             std::size_t start) noexcept {
    if (std::has_single_bit(among)) return static_cast<std::size_t>(std::countr_zero(among));
    switch (rules_.chosen) {
        case strategy::round_robin: return next_scheduled(among, start);
        case strategy::random: return by_random(among);
        case strategy::least_connections: return by_count(among, start);
        case strategy::hash: return by_hash(among, key.hash);
        case strategy::two_choices: {
            const std::size_t one = by_random(among);
            const std::size_t other = by_random(among & ~bit(one));
            return load(other) < load(one) ? other : one;
        }
    }
    EDDY_ASSERT(false);
    return 0;
}

/// True if `of` may be ejected, too. Under ejection_guard.
bool balancer::may_eject_slow(const backend& of, time_point now) const noexcept {
    std::size_t accepting = 0;
    std::size_t ejected = 0;
    for (const balanced_backend& each : all_) {
        if (each.its.get() == &of) continue;
        if (each.its->accepts(now)) ++accepting;
        if (each.its->is_ejected()) ++ejected;
    }
    return accepting > 0 && ejected < std::max<std::size_t>(all_.size() / 2, 1);
}

bool balancer::has_other(const backend& of, time_point now) const noexcept {
    return std::ranges::any_of(all_, [&](const balanced_backend& each) {
        return each.its.get() != &of && each.its->accepts(now);
    });
}

bool balancer::note_failure(backend& of, time_point now) noexcept {
    const std::lock_guard lock(ejection_guard);
    return of.note_failure(rules_.ejection, has_other(of, now), now);
}

bool balancer::note_cut(backend& of, time_point now) noexcept {
    const std::lock_guard lock(ejection_guard);
    return of.note_cut(rules_.ejection, has_other(of, now), now);
}

std::optional<slow_backend> balancer::note_response_time(backend& of, duration took,
                                                         time_point now) {
    if (rules_.ejection.slow_factor == 0) return std::nullopt;
    of.note_response_time(took, now);
    const std::int64_t window = window_of(now);
    std::int64_t last = compared_.load(std::memory_order_relaxed);
    // One thread compares.
    if (window <= last || !compared_.compare_exchange_strong(last, window)) return std::nullopt;
    std::optional<slow_backend> found = find_slow(window - 1);
    if (!found) return found;
    const std::lock_guard lock(ejection_guard);
    if (!may_eject_slow(*found->its, now) || !found->its->eject_slow(rules_.ejection, now))
        found.reset();
    return found;
}

/// The slowest one that was too slow for long enough.
std::optional<slow_backend> balancer::find_slow(std::int64_t window) const noexcept {
    std::array<duration, max_backends> medians{};
    std::array<const balanced_backend*, max_backends> compared{};
    std::size_t count = 0;
    for (const balanced_backend& each : all_) {
        if (each.its->state() != backend_state::up) continue;
        const std::optional<duration> median = each.its->median_of(window);
        if (!median) continue;
        compared.at(count) = &each;
        medians.at(count++) = *median;
    }
    std::optional<slow_backend> found;
    for (std::size_t i = 0; count > 1 && i < count; ++i) {
        std::array<duration, max_backends> others = medians;
        std::swap(others.at(i), others.at(count - 1));
        const auto end = others.begin() + static_cast<std::ptrdiff_t>(count - 1);
        const auto middle = others.begin() + static_cast<std::ptrdiff_t>((count - 1) / 2);
        std::nth_element(others.begin(), middle, end);
        const bool is_slow =
            medians[i] >= least_slow_time && medians[i] / rules_.ejection.slow_factor > *middle;
        const std::uint32_t in_a_row = compared[i]->its->note_window(window, is_slow);
        if (is_slow && in_a_row >= slow_windows && (!found || medians[i] > found->median))
            found = {compared[i]->its, medians[i], *middle};
    }
    return found;
}

balancer::selection::selection(balancer& from, const selection_key& key) noexcept
    : from_(from), key_(key) {
    const std::size_t turn = from.turns_.fetch_add(1, std::memory_order_relaxed);
    if (!from.schedule_.empty()) start_ = turn % from.schedule_.size();
}

backend_use balancer::selection::next(time_point now) noexcept {
    if (tries_ == 0 && !key_.sticky.empty()) {
        for (std::size_t i = 0; i < from_.all_.size(); ++i) {
            if (sticky_id(from_.all_[i].its->name()) != key_.sticky) continue;
            tried_ |= bit(i);
            const backend::admission as = from_.all_[i].its->admit(now);
            if (as == backend::admission::refused) break;
            ++tries_;
            is_sticky_ = true;
            return backend_use(from_.all_[i].its, as == backend::admission::trial);
        }
    }
    is_sticky_ = false;
    for (;;) {
        std::uint64_t among = from_.available(tried_, now);
        if (among == 0) return {};
        if (tries_ == 0) among = from_.without_slow(among, now);
        // After a failed try the next one in the schedule.
        if (tries_ > 0 && from_.rules_.chosen == strategy::round_robin)
            while (!has(among, from_.schedule_[start_]))
                start_ = (start_ + 1) % from_.schedule_.size();
        const std::size_t index = from_.choose(among, key_, start_);
        tried_ |= bit(index);
        // Another thread may have taken the one trial.
        const backend::admission as = from_.all_[index].its->admit(now);
        if (as == backend::admission::refused) continue;
        ++tries_;
        return backend_use(from_.all_[index].its, as == backend::admission::trial);
    }
}

backend_list update_backends(const backend_list& known, std::span<const wanted_backend> wanted,
                             std::size_t workers) {
    backend_list all;
    for (const wanted_backend& each : wanted) {
        const std::string name = each.name.empty() ? each.where.to_string() : each.name;
        const auto found = std::ranges::find_if(known, [&](const balanced_backend& old) {
            return old.its->where() == each.where && old.its->name() == name &&
                   old.its->workers() == workers && (!each.at || old.its->numeric() == each.at);
        });
        auto its = found != known.end()
                       ? found->its
                       : std::make_shared<backend>(each.where, workers, name, each.at);
        its->set_drained(each.is_drained);
        all.push_back({std::move(its), each.weight, each.is_backup, each.keeps_clients});
    }
    return all;
}

}  // namespace eddy::proxy
