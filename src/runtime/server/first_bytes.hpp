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

/// Bytes of a first line whose end has not come that are judged; a longer one is decided without
/// its end.
inline constexpr std::size_t longest_first_line = 16 * 1024;
/// Blanks and empty lines before the first line that wait for it. More of them are messages; the
/// line behind them is still judged.
inline constexpr std::size_t longest_blank_start = 64;

/// Rules of the recognition.
struct first_bytes_rules {
    /// A message is a line, so a client that has sent none can wait for the end of its first.
    bool by_line = true;
    /// Bytes of a message at most, if `by_line`.
    std::size_t longest_message = longest_first_line;
};

/// Judges all bytes that a client has sent so far; `is_end`: it sends no more. The first line that
/// is not blank makes them HTTP
/// - if it begins with GET, HEAD, POST, PUT, DELETE, CONNECT, OPTIONS, TRACE, PATCH or PRI and a
///   blank,
/// - if it begins with the name of any registered method, in any case, and a target behind it: a
///   path, "*" or a URL,
/// - or if its last word is a version of HTTP, "HTTP/" and a digit.
/// What may still become one of these is undecided. With messages that are not lines, the third
/// rule holds for a line that has come whole, and is waited for behind a word in capitals and a
/// target only. Bytes of HTTP must not reach other clients: they may have passwords and cookies.
speech judge_first_bytes(std::string_view bytes, const first_bytes_rules& rules,
                         bool is_end = false) noexcept;

/// Whether the bytes are blanks and empty lines only.
bool is_blank(std::string_view bytes) noexcept;

/// Whether the bytes begin a TLS handshake (RFC 8446, 5.1): a browser does so at a URL of https.
bool begins_tls(std::string_view bytes) noexcept;

}  // namespace eddy::runtime::server
