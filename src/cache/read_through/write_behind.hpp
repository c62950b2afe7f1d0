// Write-behind queue: clients' changes for a script, one entry a key, in order, with a limit.
//
// Only the last state of a key is kept until its delivery. One worker at a time delivers a key, so
// its states arrive in order; a failure is retried after a pause, which doubles.
#pragma once

#include "base/text/text.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace eddy::cache {

/// Change of a key, with its new string.
struct key_change {
    enum class kind : std::uint8_t { write, erase, expire };
    kind what = kind::write;
    std::shared_ptr<const std::string> value;  ///< of a write; null: the key's value at delivery
    std::int64_t expires_at_ms = 0;            ///< of a write, since 1970; 0: never
    std::size_t size = 0;                      ///< of the value, if that is null
};

struct write_behind_options {
    std::size_t max_bytes = 64U << 20;  ///< of keys and values, with their bookkeeping
    std::int64_t retry_pause_us = 100'000;
    std::int64_t longest_retry_pause_us = 5'000'000;
    std::uint64_t max_retries = 0;  ///< of one change; 0: until it succeeds
};

/// One thread. Keys are any bytes; the owner puts the database's number in front.
class write_behind {
public:
    /// Bytes counted for one key in addition to key and value.
    static constexpr std::size_t overhead = 256;
    /// Factor of max_bytes up to which add() takes changes: callers check is_full() before a
    /// command, and may exceed it by that command, whose value may be of any size.
    static constexpr std::size_t slack = 4;

    struct counts {
        std::uint64_t done = 0;
        std::uint64_t coalesced = 0;  ///< replaced by a later state before delivery
        std::uint64_t retries = 0;
        std::uint64_t lost = 0;  ///< dropped after max_retries, or for lack of room
    };

    explicit write_behind(const write_behind_options& options) : options_(options) {}
    write_behind(const write_behind&) = delete;
    write_behind& operator=(const write_behind&) = delete;

    bool is_full() const noexcept { return bytes_ >= options_.max_bytes; }
    bool empty() const noexcept { return keys() == 0; }
    std::size_t keys() const noexcept { return items_.size() - dropped_; }
    std::size_t bytes() const noexcept { return bytes_; }
    const counts& count() const noexcept { return counts_; }
    const write_behind_options& options() const noexcept { return options_; }

    /// False, with the change lost, when there is no room; a lost state also discards the older one
    /// in the queue, which is outdated. There is always room for a state that replaces a larger
    /// one.
    bool add(std::string_view key, key_change change);

    /// Drops the key's queued state, unless a worker delivers it: the key was removed, and nothing
    /// is delivered.
    void drop(std::string_view key);

    /// The key's last undelivered change, or null.
    const key_change* find(std::string_view key) const noexcept;

    /// Sets the value of a write without one. The owner of the keys calls it before the key is
    /// removed, and for a change from take().
    void fill(std::string_view key, std::shared_ptr<const std::string> value);
    /// Calls f(key) for each write without its value.
    template <class F>
    void for_each_unfilled(F&& f) {
        for (auto& [key, each] : items_) {
            if (std::any_of(each.waiting.begin(), each.waiting.end(), lacks_value)) f(key);
        }
    }

    /// True if the last delivery of the key has failed.
    bool is_failing(std::string_view key) const noexcept {
        const auto found = items_.find(key);
        return found != items_.end() && found->second.failures > 0;
    }

    /// Takes a due change; false when there is none. finish() must be called for each.
    bool take(std::string& key, key_change& change);
    /// True if take() may return one: it skips dropped keys.
    bool has_due() const noexcept { return !due_.empty(); }
    /// Result of a change from take(). True when the queue has nothing more of the key.
    bool finish(std::string_view key, bool succeeded, std::int64_t now_us);

    /// End of the next pause, or INT64_MAX; release() makes expired pauses due.
    std::int64_t next_retry_us() const noexcept {
        return paused_.empty() ? INT64_MAX : paused_.begin()->first;
    }
    void release(std::int64_t now_us);

    /// Calls f(key, change) for all undelivered changes.
    template <class F>
    void for_each(F&& f) const {
        for (const auto& [key, each] : items_) {
            if (each.running) f(key, each.delivering);
            for (const key_change& change : each.waiting) f(key, change);
        }
    }

private:
    struct item {
        // At most two: a state, and its expiration. Empty while not running: it was dropped, and is
        // removed, with the memory that it counts for, when it becomes due.
        std::vector<key_change> waiting;
        key_change delivering;  // while it runs
        bool running = false;
        std::uint32_t failures = 0;
    };
    using table = std::unordered_map<std::string, item, string_hash, std::equal_to<>>;

    static bool lacks_value(const key_change& of) noexcept {
        return of.what == key_change::kind::write && of.value == nullptr;
    }
    std::size_t drop_waiting(item& of) noexcept;
    static bool was_dropped(const item& of) noexcept { return of.waiting.empty() && !of.running; }
    static std::size_t cost(const key_change& of) noexcept {
        return sizeof(key_change) + (of.value ? of.value->size() : of.size);
    }
    void schedule(const std::string& key, const item& of, std::int64_t now_us);

    write_behind_options options_;
    table items_;
    std::deque<const std::string*> due_;                      // keys of items_
    std::multimap<std::int64_t, const std::string*> paused_;  // the same
    std::size_t bytes_ = 0;
    std::size_t dropped_ = 0;  // of items_
    counts counts_;
};

}  // namespace eddy::cache
