// Counts of a worker's users, in memory that all workers of a stream daemon map: the worker writes
// its own, and the others read them.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace eddy::runtime::stream {

/// Streams of a user, and events in a minute.
struct user_count {
    std::uint64_t streams = 0;
    std::uint64_t events = 0;
};

/// Hash table of buckets without overflow; zeros are an empty one. Where a user's bucket is full,
/// the worker counts it for itself alone. One thread of the worker writes, any thread reads.
class user_table {
public:
    static constexpr std::size_t buckets = std::size_t{1} << 14;
    static constexpr std::size_t ways = 8;

    struct entry {
        std::atomic<std::uint64_t> user;  ///< its hash; 0: free
        std::atomic<std::uint32_t> streams;
        std::atomic<std::uint32_t> minute;  ///< of its events
        std::atomic<std::uint32_t> events;
    };

    /// An entry for a user without one, by a hash that is not 0. Null where its bucket is full.
    entry* add(std::uint64_t user) noexcept {
        for (entry& each : buckets_[user % buckets]) {
            if (each.user.load() != 0) continue;
            each.streams.store(0);
            each.events.store(0);
            each.user.store(user);
            return &each;
        }
        return nullptr;
    }
    static void remove(entry& of) noexcept { of.user.store(0); }

    /// Counts of a user, with the events of that minute.
    user_count of(std::uint64_t user, std::uint32_t minute) const noexcept {
        for (const entry& each : buckets_[user % buckets]) {
            if (each.user.load() != user) continue;
            const user_count read = {each.streams.load(),
                                     each.minute.load() == minute ? each.events.load() : 0};
            // Else it is another user's meanwhile.
            return each.user.load() == user ? read : user_count();
        }
        return {};
    }
    void clear() noexcept {
        for (auto& bucket : buckets_)
            for (entry& each : bucket) each.user.store(0);
    }

private:
    std::array<std::array<entry, ways>, buckets> buckets_;
};

}  // namespace eddy::runtime::stream
