// Limits of users: the streams that one user has at a time, and the events that it is sent in a
// minute. A user is a handoff's user_id. No sockets and no clock.
//
// Workers of one daemon have one limit together: each publishes its users' counts to the others.
#pragma once

#include <eddy/base/intrusive_list.hpp>
#include <eddy/io/timer.hpp>

#include "runtime/stream/limits/user_table.hpp"
#include "runtime/stream/worker_share.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace eddy::runtime::stream {

/// Events of a user in a minute that a limit may have, at most.
inline constexpr std::uint32_t most_user_events = 1'000'000'000;

/// One thread.
class user_limits {
public:
    /// Users without a stream whose events of the minute are kept, at most; beyond it the ones that
    /// have been without for longest are forgotten. Users with streams are as many as these.
    static constexpr std::size_t max_idle_users = 65'536;
    /// Bytes of a user's id that are kept; of longer ones the digest.
    static constexpr std::size_t max_name = 64;
    static constexpr duration minute = std::chrono::minutes(1);

    /// 0: none.
    struct limits {
        std::uint32_t streams = 0;
        std::uint32_t events = 0;
    };
    enum class verdict : std::uint8_t { fits, too_many_streams, too_many_events };

    /// `share` is null for one that is alone; it outlives the users.
    explicit user_limits(worker_share* share = nullptr) noexcept : share_(share) {}
    user_limits(const user_limits&) = delete;
    user_limits& operator=(const user_limits&) = delete;

    /// Streams that have begun while there was no limit are not counted.
    void set(limits to) noexcept;
    /// Counts one more stream of the user for the next begin(), if it is within the limits. One
    /// without an id has none. Throws std::bad_alloc; nothing is counted then.
    verdict admit(std::string_view id, time_point now);
    /// Takes back the last admit() if no begin() has followed.
    void drop(time_point now) noexcept;
    /// The stream that was admitted last begins. Throws std::bad_alloc; it is not counted then.
    void begin(std::uint32_t stream);
    /// It has ended. Without effect for one that is not counted.
    void end(std::uint32_t stream, time_point now) noexcept;
    /// It is sent events.
    void note_events(std::uint32_t stream, std::uint32_t count, time_point now) noexcept;

    bool limits_events() const noexcept { return limits_.events > 0; }
    /// Users that are known: with streams, or with events of this minute.
    std::size_t users() const noexcept { return users_.size(); }
    /// Time until the next minute begins, at least a second.
    static std::chrono::seconds until_next_minute(time_point now) noexcept;

private:
    struct user : list_link<user_limits> {
        const std::string* name = nullptr;
        user_table::entry* shared = nullptr;
        std::uint64_t hash = 0;
        std::uint32_t streams = 0;
        std::uint32_t minute = 0;  // of its events
        std::uint32_t events = 0;
    };

    static std::uint32_t minute_of(time_point now) noexcept;
    user& find_or_add(std::string_view id);
    user_count count_of(const user& its, std::uint32_t in_minute) const noexcept;
    void leave(user& its, time_point now) noexcept;
    void forget(user& its) noexcept;
    void forget_idle(std::uint32_t in_minute, std::size_t most) noexcept;
    static void publish_streams(const user& its) noexcept;

    worker_share* share_;
    limits limits_;
    std::unordered_map<std::string, user> users_;
    intrusive_list<user, user_limits> idle_;  // the longest one first
    std::size_t idle_count_ = 0;
    user* admitted_ = nullptr;      // until begin()
    std::vector<user*> by_stream_;  // null: not counted
};

}  // namespace eddy::runtime::stream
