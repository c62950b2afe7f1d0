// Server-sent events: a response that a producer writes events to for as long as its client stays
// (WHATWG HTML, 9.2; `EventSource` in browsers).
//
//     task<http::response> clock(http::request&) {
//         co_return http::sse([](http::event_writer& out) -> task<result<>> {
//             for (;;) {
//                 if (auto sent = co_await out.write(time_of_day()); !sent) co_return sent;
//                 if (auto slept = co_await loop::current().sleep_for(1s); !slept) co_return slept;
//             }
//         });
//     }
#pragma once

#include <eddy/base/byte_buffer.hpp>
#include <eddy/base/result.hpp>
#include <eddy/http/body.hpp>
#include <eddy/http/request.hpp>
#include <eddy/http/response.hpp>
#include <eddy/io/semaphore.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>
#include <eddy/wire/sse.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

namespace eddy::http {

/// Options of an event stream.
struct sse_options {
    /// After so long without a write, a comment is sent: it keeps proxies from closing the
    /// connection, and detects clients that vanished silently. duration::max(): none.
    duration heartbeat = std::chrono::seconds(15);
    /// Time before the client connects again; none: its own default, some seconds.
    std::optional<std::chrono::milliseconds> retry = {};
};

/// Writer of the events of one stream. One write at a time. One loop's thread.
class event_writer {
public:
    /// Writer of events to `to`, which must outlive it.
    explicit event_writer(body_writer& to) noexcept : to_(to) {}

    /// Sends an event, which is copied in this call, and awaits until the kernel has taken it: a
    /// client that reads slowly slows its producer down, and nothing is queued. Yields a result<>.
    /// Fails with errc::malformed for an event that cannot be written (see sse::write_event()),
    /// which is not final; else as body_writer::write(): errc::cancelled when the client is gone,
    /// errc::timed_out when it takes too little in session_limits::write_time.
    task<result<>> write(const sse::event& event);
    /// The same for one of data alone, which is copied in this call. Yields the same.
    task<result<>> write(std::string_view data);
    /// The same for a comment, which clients ignore. Yields the same.
    task<result<>> comment(std::string_view text);
    /// The same for text in the format of event streams, as of sse::write_event(); it must live
    /// until then. Yields the same.
    task<result<>> write_encoded(std::string_view events);

private:
    friend class event_body;
    task<result<>> flush(result<> encoded);
    task<result<>> beat(duration interval);

    body_writer& to_;
    byte_buffer out_;      // encoded, and not sent
    async_mutex writing_;  // the producer or the heartbeat
    time_point written_{};
};

/// Content that writes events for as long as its client stays. One loop's thread.
class event_producer {
public:
    virtual ~event_producer() = default;

    /// Writes events to `out` and returns when there will be no more: the stream ends, and the
    /// client connects again. Yields a result<>; any error cuts the connection. Called once.
    /// Cancelled when the client goes away.
    virtual task<result<>> produce(event_writer& out) = 0;
};

/// A response of type text/event-stream, with "Cache-Control: no-store" and "X-Accel-Buffering:
/// no", which keep caches and proxies from holding events back. Its head goes out at once.
/// response(204) makes a client stop connecting again.
response sse(std::unique_ptr<event_producer> producer, const sse_options& options = {});

namespace detail {

/// Producer that calls `work`, which lives as long.
template <class Produce>
class called_event_producer final : public event_producer {
public:
    explicit called_event_producer(Produce work) : work_(std::move(work)) {}
    task<result<>> produce(event_writer& out) override { return work_(out); }

private:
    Produce work_;
};

}  // namespace detail

/// The same by a callable: it takes an event_writer& and returns task<result<>>. It lives until the
/// task has ended, so it may be a lambda that captures and is a coroutine.
template <class Produce>
    requires std::is_invocable_r_v<task<result<>>, Produce&, event_writer&>
response sse(Produce producer, const sse_options& options = {}) {
    return sse(std::make_unique<detail::called_event_producer<Produce>>(std::move(producer)),
               options);
}

/// The id of the last event that the client received before it connected again; empty for a new
/// one. It is the client's claim. Valid as long as the request.
std::string_view last_event_id(const request& incoming) noexcept;

}  // namespace eddy::http
