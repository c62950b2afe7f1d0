// Remembered values for misses: expired ones (stale reads), and keys that the backend does not
// have.
#pragma once

#include "base/text/text.hpp"
#include "cache/read_through/write_behind.hpp"

#include <cstddef>
#include <cstdint>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace eddy::cache {

/// Values that have expired, up to a number of bytes; beyond it the oldest are dropped.
class stale_values {
public:
    static constexpr std::size_t overhead = 192;

    struct value {
        std::string key;
        std::string text;
        std::int64_t until_us = 0;
        bool is_back = false;  ///< it was put back as the key's value
    };

    stale_values(std::size_t max_bytes, std::int64_t for_us)
        : max_bytes_(max_bytes), for_us_(for_us) {}

    bool empty() const noexcept { return by_key_.empty(); }
    /// True if one of them is a key's value now.
    bool any_back() const noexcept { return back_ > 0; }
    std::size_t bytes() const noexcept { return bytes_; }

    /// A value that was put back is kept: it has expired once more.
    void keep(std::string_view key, std::string_view text, std::int64_t now_us) {
        if (value* const there = find(key)) {
            if (there->is_back) {
                set_back(*there, false);
                return;
            }
            forget(key);
        }
        const std::size_t cost = key.size() * 2 + text.size() + overhead;
        if (cost > max_bytes_) return;
        while (bytes_ + cost > max_bytes_) forget(std::string(values_.front().key));
        values_.push_back({std::string(key), std::string(text), now_us + for_us_, false});
        by_key_.emplace(std::string(key), std::prev(values_.end()));
        bytes_ += cost;
    }
    value* find(std::string_view key) {
        const auto found = by_key_.find(key);
        return found == by_key_.end() ? nullptr : &*found->second;
    }
    /// The same, unless it is too old.
    value* find_usable(std::string_view key, std::int64_t now_us) {
        value* const there = find(key);
        return there != nullptr && there->until_us > now_us ? there : nullptr;
    }
    void set_back(value& of, bool is_back) noexcept {
        if (of.is_back != is_back) back_ += is_back ? 1 : std::size_t(-1);
        of.is_back = is_back;
    }
    /// Copies of their keys, as the work on one may drop others.
    std::vector<std::string> keys_back() const {
        std::vector<std::string> keys;
        keys.reserve(back_);
        for (const value& each : values_) {
            if (each.is_back) keys.push_back(each.key);
        }
        return keys;
    }
    void forget(std::string_view key) {
        const auto found = by_key_.find(key);
        if (found == by_key_.end()) return;
        set_back(*found->second, false);
        bytes_ -= key.size() * 2 + found->second->text.size() + overhead;
        values_.erase(found->second);
        by_key_.erase(found);
    }

private:
    std::size_t max_bytes_;
    std::int64_t for_us_;
    std::list<value> values_;  // the oldest first
    std::unordered_map<std::string, std::list<value>::iterator, string_hash, std::equal_to<>>
        by_key_;
    std::size_t bytes_ = 0;
    std::size_t back_ = 0;
};

/// Keys that the backend does not have, each for its time, up to a number of bytes; beyond it the
/// oldest are dropped.
class absent_keys {
public:
    static constexpr std::size_t overhead = 160;

    explicit absent_keys(std::size_t max_bytes) : max_bytes_(max_bytes) {}

    void add(std::string_view key, std::int64_t until_us) {
        remove(key);
        const std::size_t cost = key.size() * 2 + overhead;
        if (cost > max_bytes_) return;
        while (bytes_ + cost > max_bytes_) remove(std::string(order_.front().key));
        order_.push_back({std::string(key), until_us});
        by_key_.emplace(std::string(key), std::prev(order_.end()));
        bytes_ += cost;
    }
    bool has(std::string_view key, std::int64_t now_us) {
        const auto found = by_key_.find(key);
        if (found == by_key_.end()) return false;
        if (found->second->until_us > now_us) return true;
        remove(key);
        return false;
    }
    void remove(std::string_view key) {
        const auto found = by_key_.find(key);
        if (found == by_key_.end()) return;
        bytes_ -= key.size() * 2 + overhead;
        order_.erase(found->second);
        by_key_.erase(found);
    }
    bool empty() const noexcept { return by_key_.empty(); }

private:
    struct absence {
        std::string key;
        std::int64_t until_us;
    };
    std::size_t max_bytes_;
    std::list<absence> order_;
    std::unordered_map<std::string, std::list<absence>::iterator, string_hash, std::equal_to<>>
        by_key_;
    std::size_t bytes_ = 0;
};

}  // namespace eddy::cache
