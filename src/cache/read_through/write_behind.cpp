// Bookkeeping of the queue: an item is in due_, in paused_, or running, never in two of them.
#include "cache/read_through/write_behind.hpp"

#include <eddy/base/assert.hpp>

#include <algorithm>
#include <utility>

namespace eddy::cache {

bool write_behind::add(std::string_view key, key_change change) {
    auto found = items_.find(key);
    const bool is_new = found == items_.end();
    const std::size_t added = cost(change) + (is_new ? key.size() + overhead : 0);
    const bool is_state = change.what != key_change::kind::expire;
    std::size_t replaced = 0;
    if (is_state && !is_new) {
        for (const key_change& each : found->second.waiting) replaced += cost(each);
    }
    // An expiration may be lost, a state must not; the last state within the limit may be of any
    // size.
    const bool fits = is_state ? bytes_ <= options_.max_bytes * slack || added <= replaced
                               : bytes_ + added <= options_.max_bytes;
    if (!fits) {
        ++counts_.lost;
        if (is_state && !is_new) counts_.lost += drop_waiting(found->second);
        return false;
    }
    if (is_new) found = items_.emplace(std::string(key), item{}).first;
    item& of = found->second;
    if (!is_new && was_dropped(of)) --dropped_;
    if (!is_state) {
        if (!of.waiting.empty() && of.waiting.back().what == key_change::kind::expire) {
            ++counts_.coalesced;
            return true;
        }
    } else {
        bytes_ -= replaced;
        counts_.coalesced += of.waiting.size();
        of.waiting.clear();
    }
    bytes_ += added;
    of.waiting.push_back(std::move(change));
    if (is_new) due_.push_back(&found->first);
    return true;
}

void write_behind::drop(std::string_view key) {
    const auto found = items_.find(key);
    if (found != items_.end()) counts_.coalesced += drop_waiting(found->second);
}

/// Returns the number of dropped changes.
std::size_t write_behind::drop_waiting(item& of) noexcept {
    const std::size_t count = of.waiting.size();
    if (count == 0) return 0;
    for (const key_change& each : of.waiting) bytes_ -= cost(each);
    of.waiting.clear();
    if (!of.running) {
        of.failures = 0;
        ++dropped_;
    }
    return count;
}

const key_change* write_behind::find(std::string_view key) const noexcept {
    const auto found = items_.find(key);
    if (found == items_.end() || was_dropped(found->second)) return nullptr;
    return found->second.waiting.empty() ? &found->second.delivering
                                         : &found->second.waiting.back();
}

void write_behind::fill(std::string_view key, std::shared_ptr<const std::string> value) {
    const auto found = items_.find(key);
    if (found == items_.end()) return;
    item& of = found->second;
    const auto give = [&](key_change& to) {
        bytes_ -= cost(to);
        to.value = value;
        bytes_ += cost(to);
    };
    if (of.running && lacks_value(of.delivering)) give(of.delivering);
    for (key_change& each : of.waiting) {
        if (lacks_value(each)) give(each);
    }
}

bool write_behind::take(std::string& key, key_change& change) {
    while (!due_.empty()) {
        key = *due_.front();
        due_.pop_front();
        const auto found = items_.find(key);
        item& of = found->second;
        EDDY_ASSERT(!of.running);
        if (was_dropped(of)) {
            --dropped_;
            bytes_ -= key.size() + overhead;
            items_.erase(found);
            continue;
        }
        of.running = true;
        of.delivering = std::move(of.waiting.front());
        of.waiting.erase(of.waiting.begin());
        change = of.delivering;
        return true;
    }
    return false;
}

bool write_behind::finish(std::string_view key, bool succeeded, std::int64_t now_us) {
    const auto found = items_.find(key);
    EDDY_ASSERT(found != items_.end() && found->second.running);
    item& of = found->second;
    of.running = false;
    key_change delivered = std::exchange(of.delivering, {});
    bool kept = false;
    if (succeeded) {
        ++counts_.done;
        of.failures = 0;
    } else {
        ++of.failures;
        // A newer state replaces it.
        const bool replaced =
            !of.waiting.empty() && of.waiting.front().what != key_change::kind::expire;
        if (replaced) {
            ++counts_.coalesced;
        } else if (options_.max_retries != 0 && of.failures > options_.max_retries) {
            ++counts_.lost;
            of.failures = 0;
        } else {
            ++counts_.retries;
            kept = true;
        }
    }
    if (kept)
        of.waiting.insert(of.waiting.begin(), std::move(delivered));
    else
        bytes_ -= cost(delivered);
    if (of.waiting.empty()) {
        bytes_ -= key.size() + overhead;
        items_.erase(found);
        return true;
    }
    schedule(found->first, of, now_us);
    return false;
}

void write_behind::schedule(const std::string& key, const item& of, std::int64_t now_us) {
    if (of.failures == 0) return due_.push_back(&key);
    constexpr std::uint32_t most_doublings = 20;
    const std::int64_t pause =
        std::min(options_.retry_pause_us << std::min(of.failures - 1, most_doublings),
                 options_.longest_retry_pause_us);
    paused_.emplace(now_us + pause, &key);
}

void write_behind::release(std::int64_t now_us) {
    while (!paused_.empty() && paused_.begin()->first <= now_us) {
        due_.push_back(paused_.begin()->second);
        paused_.erase(paused_.begin());
    }
}

}  // namespace eddy::cache
