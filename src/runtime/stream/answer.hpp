// Answers of a stream runtime to the clients that are handed over: heads of responses, refusals.
// Each has a Date.
#pragma once

#include <eddy/base/unique_fd.hpp>

#include "runtime/stream/stream_request.hpp"

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace eddy::runtime::stream {

/// Head of a response that is streamed until its end, with the request's own fields.
std::string response_head(std::span<const response_header> extra, int status = 200,
                          std::string_view content_type = "text/event-stream");

/// An event of JSON, `data: {"content":"…"}` and an empty line, with an `index` for other choices
/// than the first. Bytes that are no UTF-8 become U+FFFD.
std::string content_event(std::string_view content, std::uint32_t choice = 0);

/// The last event of a stream that is whole.
inline constexpr std::string_view done_event = "data: [DONE]\n\n";
/// A comment, which clients ignore.
inline constexpr std::string_view heartbeat_event = ": heartbeat\n\n";
/// The first event of an answer that begins anew, since what a client missed is not kept any more.
inline constexpr std::string_view reset_event = "event: reset\nid: 0\ndata: {}\n\n";
/// The last event of a stream that failed, `data: {"error":"…"}` and an empty line.
std::string error_event(std::string_view reason);

/// Bytes of the request's own fields in a refusal at most; further fields are dropped. Refusals are
/// sent without a wait, so they should fit into any socket's buffer.
inline constexpr std::size_t max_refusal_fields = 8 * 1024;

/// Refusal of a client: a whole response of this status, with the request's own fields, such as
/// those of CORS, without which a page cannot read it. With 429 and 503 there is a Retry-After of
/// that time. It has no content for a request of HEAD.
std::string refusal(int status, std::string_view reason, const stream_request& to = {},
                    std::chrono::seconds retry_after = std::chrono::seconds(1));
/// Response to a client that has the whole of its stream: 204, which ends an EventSource (WHATWG
/// HTML, 9.2.3).
std::string no_content(const stream_request& to);

/// The Date of a response that is made now. The view ends with the next call.
std::string_view date_now() noexcept;

/// Sends a short response without waiting, and closes. What the client has sent is read before, up
/// to 64 KiB, so that TCP does not reset the connection before the client has read the answer.
void send_and_close(unique_fd client, std::string_view response) noexcept;

}  // namespace eddy::runtime::stream
