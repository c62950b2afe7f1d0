// Feed of the events of a daemon's runtimes, for `eddy events`: creations, starts, stops, failures
// and so on. The newest are kept in one bounded ring; a follower is a position in it, without a
// queue, so one that reads slowly misses events, and gets their number.
#pragma once

#include <eddy/http/body.hpp>
#include <eddy/http/sse.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::daemon {

/// Kind of an event. `restarted` stands for the stop and the start within.
enum class event_kind : std::uint8_t {
    created,
    started,
    stopped,
    failed,
    edited,
    renamed,
    reloaded,
    restarted,
    degraded,   ///< it runs, and lacks what it needs
    recovered,  ///< that has ended
    removed,
    // Events of members of the daemon's cluster.
    joined,
    leaving,  ///< it takes no new work
    left,
};
std::string_view to_string(event_kind kind) noexcept;
/// None for another name.
std::optional<event_kind> parse_event_kind(std::string_view name) noexcept;
/// The names of all.
std::span<const std::string_view> event_kind_names() noexcept;

/// An event of one runtime, or of a member of the cluster.
struct runtime_event {
    event_kind kind = event_kind::created;
    std::string name = {};
    std::string id = {};
    std::string type = {};
    std::string owner = {};
    std::string group = {};
    std::string detail = {};  ///< for people: where, why, or what
    // Set by the feed.
    std::uint64_t number = 0;
    std::chrono::system_clock::time_point when = {};
};

/// An event as JSON on one line, without a newline.
std::string event_json(const runtime_event& of);

/// Choice of events: one of each list that is not empty.
struct event_filter {
    std::vector<std::string> matches = {};  ///< names, ids, patterns and @groups
    std::vector<std::string> types = {};    ///< of runtimes
    std::vector<std::string> owners = {};
    std::vector<std::string> groups = {};
    std::vector<event_kind> kinds = {};
    std::optional<std::chrono::system_clock::time_point> since = {};
    std::optional<std::chrono::system_clock::time_point> until = {};

    bool has(const runtime_event& event) const;
};

/// A request for events.
struct event_query {
    event_filter filter = {};
    bool follows = false;
    /// Only those behind this number; none for all that are kept.
    std::optional<std::uint64_t> after = {};
};

/// The ring. The control loop's.
class event_feed final : public std::enable_shared_from_this<event_feed> {
public:
    static constexpr std::size_t event_limit = 1000;         ///< events kept
    static constexpr std::size_t detail_bytes_limit = 1024;  ///< a longer detail is cut
    /// Time for followers to take the last events at the end of the daemon.
    static constexpr duration close_patience = std::chrono::milliseconds(500);

    /// Numbers of a later daemon are greater: a client that asks for what is behind a number of the
    /// daemon before gets all.
    event_feed();

    /// Adds an event of now, and wakes followers.
    void note(runtime_event event);

    /// Number of the newest event; the next has one more.
    std::uint64_t last_number() const noexcept { return last_; }

    /// Events behind a number.
    struct part {
        std::vector<const runtime_event*> events = {};  ///< valid until the next note()
        std::uint64_t lost = 0;                         ///< events that are kept no more
        std::uint64_t last = 0;                         ///< number of the newest one
    };
    part read(std::uint64_t after) const;

    /// The events of a query as lines of JSON.
    std::unique_ptr<http::body_producer> lines(event_query query);
    /// The same as server-sent events.
    std::unique_ptr<http::event_producer> server_sent(event_query query);

    /// Awaits an event behind that number. errc::cancelled; errc::closed after close().
    task<result<>> changed(std::uint64_t after);

    /// Waits until there are followers.
    task<result<>> followed();
    bool has_followers() const noexcept { return followers_ > 0; }

    /// The daemon ends: followers come to their end. Waits for them, but at most
    /// `patience`: one may not read.
    task<void> close(duration patience = close_patience);

private:
    class cursor;
    class line_follower;
    class sse_follower;

    void begin_following() noexcept;
    void end_following() noexcept;

    std::deque<runtime_event> events_;
    const std::uint64_t first_;
    std::uint64_t last_;
    std::size_t followers_ = 0;
    event changed_;
    event followed_;
    event unfollowed_;
    bool is_closed_ = false;
};

}  // namespace eddy::daemon
