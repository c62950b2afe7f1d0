// Bits and bytes of a frame's head (RFC 6455, 5.2), which parser and writer share.
#pragma once

#include <cstddef>
#include <cstdint>

namespace eddy::websocket {

// Bits of the first byte.
inline constexpr unsigned fin_bit = 0x80;
inline constexpr unsigned rsv1_bit = 0x40;
inline constexpr unsigned other_reserved_bits = 0x30;
inline constexpr unsigned opcode_bits = 0x0f;
// Bits of the second byte.
inline constexpr unsigned mask_bit = 0x80;
inline constexpr unsigned length_bits = 0x7f;

/// Values of the seven bits of length that stand for a longer field behind them.
inline constexpr unsigned length_of_16_bits = 126;
inline constexpr unsigned length_of_64_bits = 127;

/// The bytes of length behind the second byte of the head.
constexpr std::size_t extended_length_size(unsigned length) noexcept {
    return length == length_of_64_bits ? 8 : length == length_of_16_bits ? 2 : 0;
}

/// The most bytes of payload; lengths have 63 bits.
inline constexpr std::uint64_t payload_limit = UINT64_MAX >> 1;

}  // namespace eddy::websocket
