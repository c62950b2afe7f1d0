// Replay logs: the events of recent streams, for clients that lost their connection and come again
// with the id of the last one that they got (WHATWG HTML, 9.2.4). No sockets and no clock.
//
// A stream's log has the user and the request as its name, so that no user is passed another one's
// events. All logs together have a limit; what has ended first goes first.
#pragma once

#include "runtime/stream/stream_request.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>

namespace eddy::runtime::stream {

/// Stages of a stream that has a log.
enum class log_stage : std::uint8_t {
    followed,  ///< a client is sent its events
    awaited,   ///< the stream runs without a client
    replayed,  ///< it has ended, and a client is sent its events
    ended,     ///< it has ended, and no client is sent its events
};

/// Log of one stream.
struct replay_log {
    std::string name;
    std::deque<std::string> events;  ///< as they were sent, with their ids
    std::uint64_t first = 1;         ///< id of the oldest one that is kept, or of the next
    std::string
        last;  ///< sent behind all events of a stream that has ended, short; its id is next()
    bool is_over = false;
    log_stage stage = log_stage::followed;
    std::uint32_t session = UINT32_MAX;  ///< its stream's or follower's, as the owner has it
    std::uint32_t due_ms = 0;            ///< of one that is not followed
    std::list<replay_log>::iterator self;

    std::uint64_t next() const noexcept { return first + events.size(); }
    /// True when all events behind that id are kept.
    bool covers(std::uint64_t id) const noexcept { return id + 1 >= first && id < next(); }
};

/// One thread.
class replay_logs {
public:
    /// Bytes that a log and an event count beside their own.
    static constexpr std::size_t log_overhead = 512;
    static constexpr std::size_t event_overhead = 64;

    /// At most `max_bytes` in all logs.
    explicit replay_logs(std::size_t max_bytes) noexcept : max_bytes_(max_bytes) {}
    replay_logs(const replay_logs&) = delete;
    replay_logs& operator=(const replay_logs&) = delete;

    /// Name of a request's log; empty for one without a user or an id, which has none.
    static std::string name_of(const stream_request& from);

    /// Null if there is none.
    replay_log* find(const std::string& name) noexcept;
    /// A new log, followed. There is none of that name. Null at the limit. Throws std::bad_alloc.
    replay_log* make(std::string name);
    /// Gives an event its id and keeps it. At the limit logs of streams that have ended go, the
    /// oldest first, then this log's oldest events. Returns the event as it is to be sent; nothing
    /// is kept when std::bad_alloc is thrown.
    std::string append(replay_log& to, std::string_view event);
    /// All events behind that id, and the last bytes of a stream that has ended.
    std::string read_behind(const replay_log& from, std::uint64_t id) const;
    void erase(replay_log& what) noexcept;

    /// Moves a log to a stage; until `due_ms` unless it is followed. One that is moved is due no
    /// earlier than those of its stage.
    void move(replay_log& what, log_stage to, std::uint32_t due_ms = 0) noexcept;
    /// The one of a stage that is due first; null if there is none.
    replay_log* first_of(log_stage stage) noexcept;
    std::size_t count(log_stage stage) const noexcept { return of(stage).size(); }

    std::size_t used_bytes() const noexcept { return used_; }

private:
    bool make_room(std::size_t bytes, replay_log* own) noexcept;
    void drop_first(replay_log& of) noexcept;
    static std::size_t size_of(const std::string& event) noexcept {
        return event.size() + event_overhead;
    }
    static std::size_t base_size_of(const replay_log& each) noexcept {
        return log_overhead + 2 * each.name.size();
    }
    std::list<replay_log>& of(log_stage stage) noexcept {
        return stages_[static_cast<std::size_t>(stage)];
    }
    const std::list<replay_log>& of(log_stage stage) const noexcept {
        return stages_[static_cast<std::size_t>(stage)];
    }

    std::size_t max_bytes_;
    std::size_t used_ = 0;
    std::list<replay_log> stages_[4];
    std::unordered_map<std::string, replay_log*> by_name_;
};

}  // namespace eddy::runtime::stream
