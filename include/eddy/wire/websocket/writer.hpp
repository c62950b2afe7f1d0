// Writer of WebSocket frames (RFC 6455, 5): heads alone, for writes that gather, and whole frames.
/// \file
/// Values and functions, for any thread; a buffer is used by one at a time.
#pragma once

#include <eddy/base/byte_buffer.hpp>
#include <eddy/base/result.hpp>
#include <eddy/wire/websocket/frame.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace eddy::websocket {

/// Fields of a frame's head except the size.
struct frame {
    opcode kind = opcode::text;  ///< of a message's further frames: continuation
    bool is_last = true;         ///< FIN: the message ends with this frame
    bool is_compressed = false;  ///< RSV1, for the first frame of a message that was deflated
    std::optional<mask_key> mask = {};  ///< clients must give one, servers none
};

/// The head of one frame, to be sent in front of its payload, which has to be masked already if the
/// frame has a mask.
class frame_head {
public:
    /// The most bytes of a head.
    static constexpr std::size_t size_limit = 14;

    /// A head for `payload_size` bytes, below 2^63. Control frames: is_last, not compressed, at
    /// most 125 bytes; anything else is an assertion.
    frame_head(const frame& of, std::uint64_t payload_size) noexcept;

    /// The bytes to send; a view into this object.
    std::string_view text() const noexcept { return {bytes_.data(), size_}; }

private:
    std::array<char, size_limit> bytes_{};
    std::uint8_t size_ = 0;
};

/// Appends a frame: head and payload, masked if `of` has a mask. The payload is copied; it must not
/// lie in `out`. The demands of frame_head hold. Throws std::bad_alloc, as everything that may grow
/// does.
void write_frame(byte_buffer& out, const frame& of, std::string_view payload);

/// Appends a ping or pong. errc::limit_reached for more than 125 bytes; `out` is then as it was.
[[nodiscard]] result<> write_control(byte_buffer& out, opcode kind, std::string_view payload,
                                     std::optional<mask_key> mask = {});

/// Appends a close frame: with close_code::none an empty one, else the code and the reason, whose
/// text beyond 123 bytes is cut off between two characters. errc::malformed for a code that may not
/// be sent, a reason that is no UTF-8, or one without a code; `out` is then as it was.
[[nodiscard]] result<> write_close(byte_buffer& out, close_code code, std::string_view reason = {},
                                   std::optional<mask_key> mask = {});

/// Frames of one message that is sent in pieces: text or binary first, then continuations.
class fragments {
public:
    /// Message of this kind, text or binary.
    explicit fragments(opcode kind, bool is_compressed = false) noexcept
        : kind_(kind), is_compressed_(is_compressed) {}

    /// The next frame; the message ends with the one that is_last.
    frame next(bool is_last, std::optional<mask_key> mask = {}) noexcept;

private:
    opcode kind_;
    bool is_compressed_;
};

}  // namespace eddy::websocket
