// PROXY protocol without I/O: the header with which a proxy begins a connection, with the
// addresses of the connection's client. Versions 1 (a line of text) and 2 (binary).
//
// https://www.haproxy.org/download/2.9/doc/proxy-protocol.txt
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// PROXY protocol without I/O. Values, for any thread.
namespace eddy::proxy_protocol {

/// An IP address and port.
struct ip_address {
    bool is_v6 = false;
    std::array<std::uint8_t, 16> bytes{};  ///< of IPv4 the first 4; in network order
    std::uint16_t port = 0;

    friend bool operator==(const ip_address&, const ip_address&) = default;
};

/// Addresses of the client's connection to the proxy, both of one family.
struct addresses {
    ip_address source;       ///< the client's
    ip_address destination;  ///< that the client connected to

    friend bool operator==(const addresses&, const addresses&) = default;
};

/// Types of additional values (TLV) of version 2 that are known here.
inline constexpr std::uint8_t tlv_alpn = 0x01;
inline constexpr std::uint8_t tlv_authority = 0x02;
inline constexpr std::uint8_t tlv_crc32c = 0x03;
inline constexpr std::uint8_t tlv_noop = 0x04;
inline constexpr std::uint8_t tlv_unique_id = 0x05;
inline constexpr std::uint8_t tlv_tls = 0x20;  ///< with values of its own:
inline constexpr std::uint8_t tlv_tls_version = 0x21;
inline constexpr std::uint8_t tlv_tls_name = 0x22;
inline constexpr std::uint8_t tlv_tls_cipher = 0x23;

/// Additional value of version 2.
struct tlv {
    std::uint8_t type = 0;
    std::string_view value;
};

/// Removes the first one from `rest`, the TLVs of a header; none at the end of `rest`, and where it
/// is malformed, which those of a parser never are.
std::optional<tlv> take_tlv(std::string_view& rest) noexcept;

/// Longest line of version 1, with its line end, as the protocol limits it.
inline constexpr std::size_t max_line = 107;
/// Bytes before the addresses of version 2.
inline constexpr std::size_t binary_prefix = 16;
/// Most bytes of addresses and TLVs in a header of version 2 that is read.
inline constexpr std::size_t max_content = 4096;
/// Most bytes of addresses and TLVs in a header of version 2 that is written: receivers must take
/// as many, which is the size of Unix addresses.
inline constexpr std::size_t max_sent_content = 216;

/// CRC-32C (Castagnoli) of the bytes, as the TLV of that name has it.
std::uint32_t crc32c(std::string_view bytes) noexcept;

}  // namespace eddy::proxy_protocol
