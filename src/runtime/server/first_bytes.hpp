// Recognition of what a client speaks by its first bytes: HTTP, or messages of the server's own
// framing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace eddy::runtime::server {

/// Protocol that a client speaks.
enum class speech : std::uint8_t {
    undecided,  ///< more bytes are needed
    raw,        ///< messages
    http,       ///< requests, one of which may be for a WebSocket
    web,        ///< WebSocket, once such a request was answered
};

/// Bytes of a first line that are judged before its end has come. What has a method, registered or
/// in capitals, and a target there is decided without the end.
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
    /// The bytes came by TLS.
    bool is_secure = false;
};

/// Judges all bytes that a client has sent so far; `is_end`: it sends no more. The first line that
/// is not blank makes them HTTP
/// - if it begins with GET, HEAD, POST, PUT, DELETE, CONNECT, OPTIONS, TRACE, PATCH or PRI and a
///   blank,
/// - if it begins with the name of any registered method, in any case, and a target behind it: a
///   path, "*" or a URL,
/// - or if its last word is a version of HTTP, "HTTP/" and a digit; here a bare CR ends a line,
/// too. What may still become one of these is undecided. With messages that are not lines, the
/// third rule holds for a line that has come whole, and is waited for behind a word in capitals and
/// a target only. Such a word and a target are a request, too, if the client ends within the line,
/// or the line is longer than `longest_first_line`. Any other line waits for its end, up to
/// `longest_message`. Bytes of HTTP must not reach other clients: they may have passwords and
/// cookies.
speech judge_first_bytes(std::string_view bytes, const first_bytes_rules& rules,
                         bool is_end = false) noexcept;

/// True when the bytes are blanks and empty lines only.
bool is_blank(std::string_view bytes) noexcept;

/// Protocols that are recognised to be refused: browsers and proxies send them unasked.
enum class foreign_protocol : std::uint8_t {
    none,
    undecided,  ///< more bytes are needed
    tls,        ///< a handshake: a browser begins one at a URL of https
    stun,       ///< a page's WebRTC (ICE over TCP, TURN); the page chooses text within it
    proxy,      ///< a PROXY protocol header, behind which a request may come
};

/// Judges all bytes that a client has sent so far. The name of a PROXY header and STUN's magic are
/// needed whole. Three bytes of TLS are enough with lines; else the whole start of a ClientHello is
/// needed, and with `is_secure` TLS within TLS is a message.
foreign_protocol judge_foreign_protocol(std::string_view bytes,
                                        const first_bytes_rules& rules) noexcept;

/// True when the bytes begin a STUN message (RFC 5389, 6), as in a datagram.
bool begins_stun(std::string_view bytes) noexcept;

/// True for the first datagram of a QUIC connection (RFC 9000, 14.1 and 17.2.2; RFC 9369): an
/// Initial, which fills 1,200 bytes, of a version that browsers have.
bool begins_quic(std::string_view datagram) noexcept;

}  // namespace eddy::runtime::server
