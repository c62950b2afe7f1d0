// Channel between a stream daemon's supervisor and a worker: a pair of seqpacket sockets, on which
// both have messages of text.
//
//     supervisor: "board" and "listener", each with its descriptor, before the worker starts
//                 "page N": request for the worker's metrics
//     worker:     "ready": it accepts clients
//                 "page N" and a line feed, and the page
//
// The worker's end is its descriptor 0.
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/base/unique_fd.hpp>
#include <eddy/io/task.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace eddy::daemon {

/// Variable of the environment of a worker: its number, from 0, and its parent's process number, as
/// "2:1234".
inline constexpr const char* worker_variable = "EDDY_STREAM_WORKER";

/// Bytes of a message at most, less than what a socket's buffer has by default (212,992).
inline constexpr std::size_t max_worker_message = 192 * 1024;

/// A worker by that variable.
struct worker_identity {
    std::size_t number = 0;
    int parent = 0;
};
std::string to_text(worker_identity of);
/// Empty for what is none, such as a number that is too large.
std::optional<worker_identity> parse_worker_identity(std::string_view text);

/// Both ends, close-on-exec and non-blocking. Errors are socketpair(2)'s.
struct channel_ends {
    unique_fd supervisor;
    unique_fd worker;
};
result<channel_ends> make_worker_channel();

/// Sends a message without waiting. Errors are send(2)'s: EAGAIN while the other side does not
/// read, EMSGSIZE for more than the socket's buffer has.
result<> send_worker_message(int channel, std::string_view message) noexcept;
/// Awaits the next message; empty at the end, when the other process has gone. Errors are
/// errc::cancelled, errc::limit_reached for more than max_worker_message, and recv(2)'s. The loop's
/// thread; the channel stays the caller's and open meanwhile.
task<result<std::string>> receive_worker_message(int channel);

/// A request for a page, or the beginning of the response to it.
std::string page_request(std::uint64_t number);
/// A response, or a request, whose page is empty. The page is a view of the message.
struct numbered_page {
    std::uint64_t number = 0;
    std::string_view page;
};
std::optional<numbered_page> parse_page(std::string_view message);

}  // namespace eddy::daemon
