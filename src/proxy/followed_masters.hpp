// Followed masters: the servers that Redis's Sentinels name as masters now.
//
// For each name one Sentinel at a time is asked (SENTINEL GET-MASTER-ADDR-BY-NAME): at once, every
// poll_interval, and when it announces a switch (+switch-master). Its messages are hints alone. A
// new address counts once the server there says by ROLE that it is a master, since a Sentinel that
// was cut off names a former one. The next Sentinel is asked when one fails, or its word is
// doubtful for a while.
#pragma once

#include <eddy/base/random.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>
#include <eddy/transport/transport.hpp>

#include "base/problem.hpp"
#include "proxy/backend.hpp"
#include "proxy/redis_link.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::proxy {

/// Sentinels of a group at most.
inline constexpr std::size_t max_sentinels = 16;

/// Sentinels that watch the same masters.
struct sentinel_group {
    std::vector<transport::address> all;  ///< at most max_sentinels
    std::string password = {};            ///< that they ask for by AUTH; empty: none

    friend bool operator==(const sentinel_group&, const sentinel_group&) = default;
};

/// Master, and its source.
struct known_master {
    transport::address where;  ///< of TCP
    std::string source;        ///< URI of the Sentinel that has named it first

    friend bool operator==(const known_master&, const known_master&) = default;
};

/// Observer of masters. Called on their loop's thread.
class master_observer {
public:
    /// True for an address of the observer's own, to which clients must not be passed.
    virtual bool is_own(const transport::address& where) const = 0;
    /// A master has changed, or the first answers are there. Not while is_waiting().
    virtual void note_changed_masters() = 0;
    /// `now` is the master of a name, and `before`, if it is not null, was it. Also when the same
    /// one can be used again after note_no_master(); `before` is null then.
    virtual void note_master(std::string_view name, const known_master& now,
                             const transport::address* before) noexcept = 0;
    /// A name has no master that can be used, `why` names the Sentinel; the last one, if it
    /// `has_master`, stays in use. Noted once until there is one, and no more often than
    /// followed_masters::report_interval.
    virtual void note_no_master(std::string_view name, std::string_view why,
                                bool has_master) noexcept = 0;
    /// A Sentinel cannot be used, and `why` names it. Noted once until it can, and no more often
    /// than that.
    virtual void note_lost_sentinel(std::string_view why) noexcept = 0;
    /// A Sentinel that was noted answers again.
    virtual void note_found_sentinel(std::string_view sentinel) noexcept = 0;

protected:
    ~master_observer() = default;
};

/// Masters of a proxy, and their last addresses: they stay in use until others are known. end()
/// before the destructor. One loop's thread.
class followed_masters {
public:
    /// Limit of a connection, and of an answer, of a Sentinel or a server.
    static constexpr duration patience = std::chrono::seconds(2);
    /// Time between two questions to a Sentinel that announces nothing.
    static constexpr duration poll_interval = std::chrono::seconds(2);
    /// Least time between two questions, however many messages come.
    static constexpr duration least_pause = std::chrono::milliseconds(20);
    /// Time before a server that is no master yet is asked again, and the times that it is before
    /// another Sentinel is.
    static constexpr duration check_pause = std::chrono::milliseconds(200);
    static constexpr std::size_t checks = 5;
    /// Pauses after a round in which no Sentinel was of use: each is twice as long as the one
    /// before, and drawn from the upper half of its length.
    static constexpr duration first_pause = std::chrono::milliseconds(250);
    static constexpr duration longest_pause = std::chrono::seconds(3);
    /// A new name is awaited for so long.
    static constexpr duration first_wait = std::chrono::seconds(1);
    static constexpr duration report_interval = std::chrono::seconds(10);
    /// Names at most: backends, and as many backups.
    static constexpr std::size_t max_names = 2 * max_backends;

    /// The observer must outlive it.
    explicit followed_masters(master_observer& observer);
    followed_masters(const followed_masters&) = delete;
    followed_masters& operator=(const followed_masters&) = delete;
    ~followed_masters();

    /// Follows these names, and none else, by a group that has Sentinels if there are names. The
    /// names that stay keep their masters. False: there are more than max_names; the last ones are
    /// not followed.
    bool follow(const std::vector<std::string>& names, sentinel_group by);

    /// The master of a name; none until one is known.
    std::optional<known_master> master_of(std::string_view name) const;

    /// True while a new name has no master, for at most first_wait.
    bool is_waiting() const noexcept { return waiting_ > 0; }
    /// Awaits that time, or cancellation.
    task<void> wait();
    /// Ends all questions.
    task<void> end();

private:
    struct followed;
    using followed_pointer = std::shared_ptr<followed>;
    using group_pointer = std::shared_ptr<const sentinel_group>;
    /// Failures of a Sentinel.
    struct failure_note {
        bool is_noted = false;  // of the present one
        std::optional<time_point> reported_at = {};
    };

    followed_pointer find(std::string_view name) const noexcept;
    void begin(const followed_pointer& its);
    task<void> limit_wait(followed_pointer its);
    task<void> run(followed_pointer its, group_pointer by);
    task<bool> follow_at(followed_pointer its, group_pointer by, std::size_t sentinel);
    task<bool> poll(followed_pointer its, redis_link& over, std::size_t sentinel, std::string uri);
    task<bool> check(followed_pointer its, transport::address named, std::string uri);
    task<void> listen(followed_pointer its, group_pointer by, std::size_t sentinel);
    duration jittered(duration length) noexcept;
    void adopt(followed& its, transport::address named, std::string uri);
    void note_no_master(followed& its, std::string_view why) noexcept;
    void note_master_in_use(followed& its);
    void note_lost(const followed& its, std::size_t sentinel, std::string_view why) noexcept;
    void note_found(std::size_t sentinel, std::string_view uri) noexcept;
    void end_wait(followed& its) noexcept;
    void notify();

    master_observer& observer_;
    group_pointer group_;
    std::vector<failure_note> failures_;  // of each Sentinel
    std::vector<followed_pointer> names_;
    std::size_t waiting_ = 0;
    event answered_;  // set while none waits
    bool has_changed_ = false;
    random_generator random_;
    scope tasks_;
};

/// Host and port of an address of TCP, such as "10.0.0.7:6379" or "[::1]:6379".
std::string host_and_port(const transport::address& of);

}  // namespace eddy::proxy
