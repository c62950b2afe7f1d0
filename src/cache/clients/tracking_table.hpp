// Tables of CLIENT TRACKING: keys with their readers, prefixes with their subscribers.
#pragma once

#include "cache/clients/name_registry.hpp"
#include "cache/keyspace/dictionary.hpp"
#include "cache/keyspace/environment.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace eddy::cache {

/// Keys with the numbers of their reading sessions, in ascending order, in blocks of the engine's
/// memory. One thread.
class tracked_keys {
public:
    /// `env` must outlive it.
    explicit tracked_keys(environment& env) noexcept : env_(env), keys_(env.memory, env.hash) {}
    tracked_keys(const tracked_keys&) = delete;
    tracked_keys& operator=(const tracked_keys&) = delete;
    ~tracked_keys() { clear(); }

    std::size_t size() const noexcept { return keys_.size(); }
    /// Numbers of sessions, over all keys.
    std::size_t items() const noexcept { return items_; }

    /// Adds a session's number: O(log n), and a move of the numbers after it. When their count is a
    /// power of two, from 8 on, it first drops numbers for which is_gone(id) is true, so that
    /// short-lived clients do not accumulate.
    template <class F>
    void add(std::string_view key, std::uint64_t hash, std::uint64_t id, F&& is_gone) {
        dictionary::slot* place = keys_.find(key, hash);
        if (place == nullptr) {
            ++items_;
            entry* const made = make(key, sizeof id);
            std::memcpy(made->value(), &id, sizeof id);
            keys_.insert(made, hash);
            return;
        }
        entry* e = dictionary::entry_of(*place);
        std::size_t count = count_of(*e);
        std::size_t at = lower_bound(*e, id);
        if (at < count && id_at(*e, at) == id) return;
        constexpr std::size_t first_look = 8;
        if (count >= first_look && (count & (count - 1)) == 0) {
            std::size_t kept = 0;
            for (std::size_t i = 0; i < count; ++i) {
                const std::uint64_t each = id_at(*e, i);
                if (!is_gone(each)) set_id(*e, kept++, each);
            }
            items_ -= count - kept;
            e = resized(place, kept);
            count = kept;
            at = lower_bound(*e, id);
        }
        e = resized(place, count + 1);
        char* const to = e->value() + at * sizeof id;
        std::memmove(to + sizeof id, to, (count - at) * sizeof id);
        std::memcpy(to, &id, sizeof id);
        ++items_;
    }

    /// Removes the key and calls f(id) for each of its numbers; `key` may be a view into the table.
    template <class F>
    void take(std::string_view key, F&& f) {
        const std::uint64_t hash = keys_.hash(key);
        dictionary::slot* const place = keys_.find(key, hash);
        if (place == nullptr) return;
        entry* const gone = dictionary::entry_of(*place);
        keys_.erase(place, hash);
        const std::size_t count = count_of(*gone);
        items_ -= count;
        for (std::size_t i = 0; i < count; ++i) f(id_at(*gone, i));
        env_.memory.release(gone, gone->size());
    }

    /// Random key; the table must not be empty.
    std::string some_key() const { return std::string(keys_.random(env_.random)->key()); }

    /// Removes all keys; the memory is freed in slices.
    void clear() {
        env_.discard(std::move(keys_));
        items_ = 0;
    }

private:
    static std::size_t count_of(const entry& e) noexcept {
        return e.value_size / sizeof(std::uint64_t);
    }
    static std::uint64_t id_at(const entry& e, std::size_t i) noexcept {
        std::uint64_t id;
        std::memcpy(&id, e.value() + i * sizeof id, sizeof id);
        return id;
    }
    static void set_id(entry& e, std::size_t i, std::uint64_t id) noexcept {
        std::memcpy(e.value() + i * sizeof id, &id, sizeof id);
    }
    static std::size_t lower_bound(const entry& e, std::uint64_t id) noexcept {
        std::size_t low = 0;
        for (std::size_t high = count_of(e); low < high;) {
            const std::size_t middle = low + (high - low) / 2;
            id_at(e, middle) < id ? low = middle + 1 : high = middle;
        }
        return low;
    }
    entry* make(std::string_view key, std::size_t value_size) {
        void* const block = env_.memory.allocate(entry::size_for(key.size(), value_size, false));
        return entry::make(block, key, value_size, false);
    }
    // The entry reallocated for `count` numbers; it keeps the first ones.
    entry* resized(dictionary::slot* place, std::size_t count) {
        entry* const old = dictionary::entry_of(*place);
        const std::size_t value_size = count * sizeof(std::uint64_t);
        const std::size_t size = entry::size_for(old->key_size(), value_size, false);
        if (slab::same_class(size, old->size())) {
            old->value_size = static_cast<std::uint32_t>(value_size);
            return old;
        }
        entry* const made = make(old->key(), value_size);
        const std::size_t kept = old->value_size < value_size ? old->value_size : value_size;
        std::memcpy(made->value(), old->value(), kept);
        env_.memory.release(old, old->size());
        dictionary::replace(place, made);
        return made;
    }

    environment& env_;
    dictionary keys_;
    std::size_t items_ = 0;
};

/// Tracking state of the engine.
struct tracking_table {
    explicit tracking_table(environment& env) noexcept : keys(env), prefixes(env.hash) {}

    /// Change of a key below a prefix, until it is sent.
    struct change {
        std::string key;
        std::uint64_t by;  ///< a session's number, or 0
    };

    tracked_keys keys;
    name_registry prefixes;
    /// Length of prefixes and number of prefixes of that length.
    std::vector<std::pair<std::size_t, std::size_t>> prefix_lengths;
    std::vector<change> changes;
    std::size_t change_bytes = 0;
    /// Sessions that track, or are redirected to, by number.
    std::unordered_map<std::uint64_t, client_session*> sessions;
    std::size_t clients = 0;  ///< number that track
};

}  // namespace eddy::cache
