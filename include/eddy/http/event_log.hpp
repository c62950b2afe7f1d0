// Event log: broadcast of server-sent events from one publisher to many clients, with replay after
// a lost connection.
//
//     http::event_log news;
//     ...
//     auto id = news.publish("the shop is open", "notice");
//     ...
//     co_return news.subscribe(http::last_event_id(incoming));  // in a handler
#pragma once

#include <eddy/base/byte_buffer.hpp>
#include <eddy/base/intrusive_list.hpp>
#include <eddy/base/result.hpp>
#include <eddy/http/response.hpp>
#include <eddy/http/sse.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/task.hpp>
#include <eddy/net/queued_writer.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

namespace eddy::http {

/// Limits of an event_log. Beyond them the oldest events are dropped; `policy` applies to a
/// subscriber that has not read one of these.
struct event_log_options {
    /// Events kept, for replay and for subscribers that are behind.
    std::size_t max_events = 1024;
    /// Bytes of them, in the format of event streams.
    std::size_t max_bytes = 1024 * 1024;
    /// Behaviour for slow subscribers. `wait`: publish() refuses the new event until they have read
    /// on. `drop_oldest`: they miss events, see event_log::missed(). `disconnect`: their connection
    /// is cut; they may connect again and continue with the kept events.
    slow_reader_policy policy = slow_reader_policy::disconnect;
};

/// A bounded log of events, each with an id, and the streams of its subscribers. A subscriber holds
/// no queue: it reads the log at its own pace, and copies at most a batch. Ids are valid for one
/// log: an id of another one, such as of an earlier run of the program, replays all kept events. It
/// must outlive the responses of subscribe(). One loop's thread: with several loops, each has a log
/// of its own.
class event_log {
public:
    /// At most so many bytes of events go out in one write, or one event if that is larger.
    static constexpr std::size_t batch_bytes = 16 * 1024;

    /// An empty log.
    explicit event_log(const event_log_options& options = {});
    event_log(const event_log&) = delete;
    event_log& operator=(const event_log&) = delete;
    /// No subscriber may be left; see close().
    ~event_log();

    /// Appends an event, which is copied, and wakes all subscribers. Returns its id. Fails with
    /// errc::malformed for a type with CR or LF, errno EMSGSIZE for an event beyond max_bytes,
    /// errc::limit_reached under `wait`, see progress(), and errc::closed after close().
    [[nodiscard]] result<std::string> publish(std::string_view data, std::string_view type = {});

    /// Awaits that a subscriber reads or leaves: then publish() may succeed. Yields a result<>,
    /// whose only error is errc::cancelled.
    awaiting<event_operation> progress() noexcept { return progress_.wait(); }

    /// The stream of all events behind the one of this id, as far as they are kept, and of all to
    /// come; with an empty id of those to come alone. The id is copied.
    response subscribe(std::string_view last_event_id, const sse_options& options = {});

    /// Takes no more events and ends the streams once they have sent what is there.
    void close() noexcept;

    /// Events kept.
    std::size_t size() const noexcept { return entries_.size(); }
    /// Bytes of them.
    std::size_t bytes() const noexcept { return bytes_; }
    /// Streams that are open.
    std::size_t subscribers() const noexcept { return subscribers_; }
    /// Events that subscribers have missed under `drop_oldest`, counted for each of them.
    std::uint64_t missed() const noexcept { return missed_; }

private:
    class subscriber;

    std::string id_of(std::uint64_t number) const;
    std::uint64_t position_behind(std::string_view id) const noexcept;
    bool make_room(std::size_t size) noexcept;
    bool is_unread(std::uint64_t number) noexcept;
    task<result<>> follow(event_writer& out, subscriber& at);
    result<> catch_up(subscriber& at) noexcept;
    std::uint64_t end() const noexcept { return first_ + entries_.size(); }

    event_log_options options_;
    std::uint64_t life_;       // stands in ids
    std::uint64_t first_ = 1;  // number of the oldest event that is kept
    std::deque<std::string> entries_;
    std::size_t bytes_ = 0;
    intrusive_list<subscriber> following_;
    std::size_t subscribers_ = 0;
    std::uint64_t missed_ = 0;
    bool is_closed_ = false;
    event news_;      // set and reset at each event
    event progress_;  // the same when a subscriber moves
};

}  // namespace eddy::http
