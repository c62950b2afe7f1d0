// Terms of WebSocket frames (RFC 6455, 5): roles, opcodes, close codes, and the mask.
/// \file
/// Values and functions, for any thread.
#pragma once

#include <eddy/base/bytes.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace eddy::websocket {

/// The two ends of a connection. Clients mask what they send, servers do not.
enum class role : unsigned char { server, client };

/// The kinds of frames.
enum class opcode : unsigned char {
    continuation = 0x0,  ///< a further frame of a message
    text = 0x1,          ///< the first frame of a message of UTF-8
    binary = 0x2,        ///< the first frame of a message of any bytes
    close = 0x8,         ///< the last frame of its direction
    ping = 0x9,          ///< to be answered by a pong with the same payload
    pong = 0xa,          ///< answers a ping, or none
};

/// True for close, ping and pong, which may stand between the frames of a message.
constexpr bool is_control(opcode kind) noexcept {
    return (static_cast<unsigned char>(kind) & 0x8U) != 0;
}

/// Reasons to close a connection (RFC 6455, 7.4, and IANA's registry). 3000 to 3999 are for
/// libraries, 4000 to 4999 for applications: `close_code{4001}`.
enum class close_code : std::uint16_t {
    normal = 1000,             ///< the purpose is fulfilled
    going_away = 1001,         ///< the server stops, or the page was left
    protocol_error = 1002,     ///< the peer broke the protocol
    unsupported_data = 1003,   ///< a kind of message that this end does not take
    none = 1005,               ///< the close frame has no code; never in a frame
    abnormal = 1006,           ///< the connection ended without a close frame; never in a frame
    invalid_payload = 1007,    ///< text that is no UTF-8, or data that cannot be inflated
    policy_violation = 1008,   ///< refused for a reason of its own
    message_too_big = 1009,    ///< beyond a limit on size
    extension_missing = 1010,  ///< the server did not agree on an extension that the client needs
    internal_error = 1011,     ///< the server cannot continue
    service_restart = 1012,    ///< the server restarts
    try_again_later = 1013,    ///< the server is overloaded
    bad_gateway = 1014,        ///< a server behind this one failed
};

/// True for a code that a close frame may have: 1000 to 1014 without 1004 to 1006, and 3000 to
/// 4999.
bool is_sendable(close_code code) noexcept;

/// The most bytes that a control frame may carry.
inline constexpr std::size_t control_payload_limit = 125;

/// The most bytes of text behind the code of a close frame.
inline constexpr std::size_t close_reason_limit = control_payload_limit - 2;

/// The key that a client masks one frame with. A new one for each frame, from a source that the
/// application cannot predict (RFC 6455, 5.3): the mask keeps scripts from choosing the bytes on
/// the wire.
using mask_key = std::array<std::uint8_t, 4>;

/// Masks or unmasks in place. `offset` is the position of the first byte in the frame's payload, so
/// that a payload can be treated in pieces.
void apply_mask(mutable_bytes payload, mask_key key, std::uint64_t offset = 0) noexcept;

/// The same from one place to another: writes payload.size() bytes to `to`, which must not overlap
/// them.
void copy_masked(std::byte* to, const_bytes payload, mask_key key,
                 std::uint64_t offset = 0) noexcept;

}  // namespace eddy::websocket
