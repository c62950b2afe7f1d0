// Session: one connection of an HTTP/1.1 server. Requests in, responses out, keep-alive and
// pipelining, with a limit on everything that a client could let grow or take for ever.
#pragma once

#include <eddy/base/byte_buffer.hpp>
#include <eddy/base/result.hpp>
#include <eddy/http/request.hpp>
#include <eddy/http/response.hpp>
#include <eddy/io/stream.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>
#include <eddy/wire/http1.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace eddy::http {

/// The application behind sessions. It must outlive them, and is called for many at a time on their
/// loop's thread.
class request_handler {
public:
    /// Answers a request, which lives until the response has been sent. Called once the head has
    /// arrived; the body is received as the handler reads it, and "100 Continue" sent before the
    /// first read. A body that fails for the client's fault is answered by reject(), whatever is
    /// returned, and so is a fault that request::set_fault() declares. In place of one that throws,
    /// reject() answers 500, or 503 without memory.
    ///
    /// One that has worked for 100 ms, and whose request has been read, is cancelled when the
    /// client resets the connection, and, with session_limits::end_is_hangup, when it finishes
    /// sending: its waits fail with errc::cancelled, and what it returns is dropped.
    virtual task<response> handle(request& incoming) = 0;
    /// The response to an invalid request; the connection closes after it, except after a declared
    /// fault of a request that has arrived whole.
    virtual response reject(int status, std::string_view what) = 0;
    /// True for a handler that passes targets on: requests have no query parameters then, and one
    /// whose query cannot be decoded is passed to it, too.
    virtual bool forwards() const noexcept { return false; }

protected:
    ~request_handler() = default;
};

/// Limits on the client of a session.
struct session_limits {
    /// Sizes of heads and bodies: 414, 431, 413, 400. A handler may set a body's limit anew.
    http1::limits parser{};
    /// From a request's first byte to the end of its head, and further to the end of the body if
    /// the handler takes that whole; without the time that the handler takes. A client that is
    /// slower gets 408.
    duration request_time = std::chrono::seconds(15);
    /// Time for `read_bytes` further bytes of a body, or its end, to arrive while the handler
    /// waits; 408.
    duration read_time = std::chrono::seconds(15);
    /// The least that a client sends of a body in that time. One that trickles is cut, as one that
    /// pauses is; 1 allows bodies whose bytes come now and then.
    std::size_t read_bytes = 4 * 1024;
    /// Longest time that a connection stays open without a request.
    duration idle_time = std::chrono::seconds(60);
    /// Time for the client to accept 256 KiB of a response, or the piece that a producer writes if
    /// that is smaller.
    duration write_time = std::chrono::seconds(15);
    /// Bytes that a client may send ahead while a response is streamed, or while a handler takes
    /// long; one read of the stream comes on top. Beyond them no more is read until the response
    /// has been sent, so that its leaving is noticed only when something is sent. A stream without
    /// an end is cut.
    std::size_t pipelined_bytes = 64 * 1024;
    /// Treat a client that finishes sending as gone, as Go's and hyper's servers do. Otherwise it
    /// gets its response, as a client expects that shuts down its half of the connection; until
    /// something is sent, the kernel does not distinguish that from a closed connection.
    bool end_is_hangup = false;
    /// Lingering close (RFC 9112, 9.6): after a response that ends the connection early, further
    /// bytes of the client are read and dropped for at most so long, so that the response reaches
    /// it; at most 2 s after a request that has arrived whole, or too slowly (408). A session that
    /// is ending (session_observer::is_ending()) does not linger.
    duration linger_time = std::chrono::seconds(30);
    /// Longest wait for a byte of the client meanwhile.
    duration linger_idle = std::chrono::seconds(5);
};

/// States of a session.
enum class session_state : unsigned char {
    idle,        ///< between requests: it may be closed without loss
    receiving,   ///< part of a request's head has arrived
    working,     ///< the handler answers, or the response is sent
    taken_over,  ///< another protocol has the connection, for good; cancelling ends it
};

/// A response that has been sent, or was cut off. One that waits so that it can be sent together
/// with later responses counts as sent.
struct exchange_record {
    const http1::request_head* request = nullptr;  ///< null for what was no valid request
    int status = 0;         ///< of the response; 499 if the connection ended before one began
    bool is_whole = false;  ///< false if it was cut off
    std::uint64_t content_bytes = 0;  ///< of the response's content that were sent
    duration time{};              ///< from the end of the request's head to the end of the response
    std::uint64_t bytes_in = 0;   ///< received since the last record
    std::uint64_t bytes_out = 0;  ///< sent since the last record
    const upstream_note* upstream = nullptr;  ///< null where no other server has answered
};

/// Observer of sessions, for counting them, for logs, and for ending them in order. It must outlive
/// the sessions. Called on their loop's thread.
class session_observer {
public:
    /// The session has entered a state; it begins idle.
    virtual void enter(session_state now) noexcept = 0;
    /// A response has ended. The record is valid during the call.
    virtual void note(const exchange_record& what) = 0;
    /// True if the session is to end: after the response at hand, which says "Connection: close".
    /// An idle session is ended by cancelling it.
    virtual bool is_ending() const noexcept = 0;
    /// True if an idle session waits for a request even so, since its last response did not say
    /// that the connection ends. By default a session that is ending does not.
    virtual bool awaits_request() const noexcept { return !is_ending(); }

protected:
    ~session_observer() = default;
};

/// Serves a connection until it ends, also under another protocol that a response 101 switches to
/// (response::takeover). `handler` must outlive the task. While a response is streamed and the
/// request has been read, a client that goes away cancels the producer; so does one that finishes
/// sending, unless the body's size is known and session_limits::end_is_hangup is not set. Yields
/// nothing: an error ends the session. After a response that broke off, also by cancellation, or
/// that the client was too slow to accept, the connection is reset (stream::abort()): one that ends
/// by the close must not look whole.
task<void> serve(stream peer, request_handler& handler, session_limits limits);

/// The same for a stream that stays the caller's, with an observer. All three must outlive the
/// task. A protocol that takes over has the stream itself: `peer` is closed then. Cancelling the
/// task ends it. `received` is what was read from the stream before. Throws std::bad_alloc.
task<void> serve_observed(stream& peer, request_handler& handler, session_limits limits,
                          session_observer& observer, byte_buffer received = {});

/// Sends a response with a text without having read a request, and closes, after what the client
/// still sends: for connections beyond a limit. It takes at most `time`. Yields a result<>:
/// errc::timed_out, or the stream's error.
task<result<>> send_and_close(stream peer, response answer, duration time);

}  // namespace eddy::http
