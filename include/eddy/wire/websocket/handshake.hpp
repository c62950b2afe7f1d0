// The opening handshake of WebSocket over HTTP/1.1 (RFC 6455, 4), both ends, and the negotiation of
// permessage-deflate (RFC 7692, 5 and 7).
/// \file
/// Values and functions, for any thread.
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/wire/http1.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::websocket {

/// Most subprotocols that a request may offer; 400.
inline constexpr std::size_t protocol_limit = 64;
/// Most extensions that a request may offer, unknown ones included; 400.
inline constexpr std::size_t extension_limit = 32;

/// The sizes of LZ77 windows that can be agreed on, as exponents of 2.
inline constexpr unsigned least_window_bits = 8;
/// The largest of them: 32 KiB.
inline constexpr unsigned most_window_bits = 15;

/// permessage-deflate as one end wants it: the bounds of its memory.
struct deflate_policy {
    /// This end compresses each message by itself, and keeps nothing in between.
    bool resets_own_context = false;
    /// The peer must do so, so that this end keeps no window for it.
    bool resets_peer_context = false;
    /// The largest window of this end's compressor, 8 to 15.
    unsigned own_window_bits = most_window_bits;
    /// The largest window of the peer's compressor, 8 to 15. Without an agreement on it, nothing is
    /// compressed.
    unsigned peer_window_bits = most_window_bits;
};

/// permessage-deflate as both ends agreed.
struct deflate_terms {
    bool server_no_context_takeover = false;             ///< the server compresses each by itself
    bool client_no_context_takeover = false;             ///< the client does
    unsigned server_max_window_bits = most_window_bits;  ///< of the server's compressor
    unsigned client_max_window_bits = most_window_bits;  ///< of the client's

    /// Compares all of them.
    bool operator==(const deflate_terms&) const = default;
};

/// Result of a handshake, for both ends.
struct agreement {
    /// Value of Sec-WebSocket-Accept.
    std::string accept = {};
    /// The subprotocol; empty for none.
    std::string protocol = {};
    /// Value of Sec-WebSocket-Extensions; empty for none.
    std::string extensions = {};
    /// The terms of compression, if there is any.
    std::optional<deflate_terms> deflate = {};
};

/// Reason for a failed handshake.
struct handshake_error {
    /// At a server: the status to answer, 400 or 426. At a client: the status that came.
    int status = 400;
    /// End of a sentence about the fault; a static text.
    std::string_view what;
};

/// Protocols and compression that a server supports.
struct server_policy {
    /// Subprotocols. The one is chosen that the client prefers.
    std::vector<std::string> protocols = {};
    /// Compression; none without.
    std::optional<deflate_policy> deflate = {};
};

/// Request of a client: key, protocols and compression.
struct client_offer {
    /// Value of Sec-WebSocket-Key: make_key().
    std::string key = {};
    /// Subprotocols, the preferred one first; tokens, each but once, at most protocol_limit.
    std::vector<std::string> protocols = {};
    /// Compression; none without.
    std::optional<deflate_policy> deflate = {};
};

/// True if a request asks for a WebSocket: "Upgrade: websocket" with "Connection: Upgrade", case
/// ignored. check_request() decides whether it is valid.
bool is_upgrade(const http1::request_head& request) noexcept;

/// Check of the requesting page by the request's Origin (RFC 6454), which browsers send with each
/// request for a WebSocket and scripts cannot change. True without Origin, since no page sends such
/// a request; if the origin's host and port are those of the Host field; and if `origins` contains
/// it, such as "https://example.org", or "*". Case is ignored. `is_secure`: the request came by
/// TLS; then an origin of http is not the server's own. Without it the origin may be of http or
/// https, since a proxy may have ended the TLS; a Host without a port then has the origin's default
/// port.
bool is_origin_allowed(const http1::request_head& request, std::span<const std::string> origins,
                       bool is_secure) noexcept;

/// Checks the request for a WebSocket and chooses subprotocol and compression. An offer of
/// compression that cannot be met is declined. The error is 426 for a request that is no upgrade,
/// or is of another version than 13, else 400.
std::expected<agreement, handshake_error> check_request(const http1::request_head& request,
                                                        const server_policy& policy);

/// Adds the fields of the response 101. Errors are those of header_list::add().
[[nodiscard]] result<> add_response_fields(http1::header_list& to, const agreement& agreed);

/// Adds the fields that a response with that error's status needs: at 426, Upgrade, Connection and
/// the version. Errors are those of header_list::add().
[[nodiscard]] result<> add_error_fields(http1::header_list& to, const handshake_error& error);

/// A value for Sec-WebSocket-Key, of 16 random bytes; a new one for each connection.
std::string make_key(const std::array<std::uint8_t, 16>& random);

/// The value of Sec-WebSocket-Accept that answers a key.
std::string accept_of(std::string_view key);

/// Adds the fields of a client's request, a GET without a body. errc::malformed for a key that is
/// no make_key()'s, protocols that are no tokens, or one that is there twice; errc::limit_reached
/// for too many.
[[nodiscard]] result<> add_request_fields(http1::header_list& to, const client_offer& offer);

/// Checks the server's answer to an offer. The error has the response's status; one other than 101
/// is such an error.
std::expected<agreement, handshake_error> check_response(const http1::response_head& response,
                                                         const client_offer& offer);

}  // namespace eddy::websocket
