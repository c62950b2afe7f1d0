// Session: one connection of an HTTP/1.1 server. Requests in, responses out, keep-alive and
// pipelining, with a limit on everything that a client could let grow or take for ever.
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/http/request.hpp>
#include <eddy/http/response.hpp>
#include <eddy/io/stream.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>
#include <eddy/wire/http1.hpp>

#include <chrono>
#include <cstddef>
#include <string_view>

namespace eddy::http {

/// The application behind sessions. It must outlive them, and is called for many at a time on their
/// loop's thread.
class request_handler {
public:
    /// Answers a request, which lives until the response has been sent. Called once the head has
    /// arrived; the body is received as the handler reads it, and "100 Continue" sent before the
    /// first read. A body that fails for the client's fault is answered by reject(), whatever is
    /// returned. An exception ends the session and comes out of serve().
    virtual task<response> handle(request& incoming) = 0;
    /// The response to what is no valid request; the connection closes behind it.
    virtual response reject(int status, std::string_view what) = 0;

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
    /// At most so long a body may pause before it has ended; 408.
    duration read_time = std::chrono::seconds(15);
    /// At most so long a connection stays open without a request.
    duration idle_time = std::chrono::seconds(60);
    /// At most so long the client may take to accept 256 KiB of a response, or the piece that a
    /// producer writes if that is smaller.
    duration write_time = std::chrono::seconds(15);
    /// Bytes that a client may send ahead while a response is streamed; beyond them the response is
    /// cut.
    std::size_t pipelined_bytes = 64 * 1024;
    /// After a response that ends the connection early, at most this much that the client still
    /// sends is read and dropped, so that the response reaches it.
    std::size_t linger_bytes = 4 * 1024 * 1024;
    /// At most so long.
    duration linger_time = std::chrono::seconds(2);
};

/// Serves a connection until it ends. `handler` must outlive the task. While a response is streamed
/// and the request has been read, a client that goes away, or finishes sending, cancels the
/// producer.
task<void> serve(stream peer, request_handler& handler, session_limits limits);

/// Sends a response with a text without having read a request, and closes: for connections beyond a
/// limit. It takes at most `time`. Yields a result<>: errc::timed_out, or the stream's error.
task<result<>> send_and_close(stream peer, response answer, duration time);

}  // namespace eddy::http
