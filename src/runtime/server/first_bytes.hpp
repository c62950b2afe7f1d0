// Recognition of what a client speaks by its first bytes: HTTP, or messages of the server's own
// framing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace eddy::runtime::server {

/// What a client speaks.
enum class speech : std::uint8_t {
    undecided,  ///< more bytes are needed
    raw,        ///< messages
    http,       ///< requests, one of which may be for a WebSocket
    web,        ///< WebSocket, once such a request was answered
};

/// First lines and heads that are longer are raw.
inline constexpr std::size_t longest_first_head = 16 * 1024;

/// Judges all bytes that have come. With `takes_requests` whatever begins with a request line is
/// HTTP; without, only a whole head that asks for a WebSocket is.
speech judge_first_bytes(std::string_view bytes, bool takes_requests);

/// Whether bytes that are not decided begin a request line: a method, a space and the begin of a
/// target. Others must not get them as messages: what follows may have a password.
bool begins_request(std::string_view bytes, bool takes_requests);

}  // namespace eddy::runtime::server
