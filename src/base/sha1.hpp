// SHA-1 (FIPS 180-4): names of scripts, digests of data, the WebSocket handshake.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace eddy {

using sha1_digest = std::array<std::uint8_t, 20>;

/// SHA-1 (FIPS 180-4), which is good for telling data apart, not for keeping secrets.
sha1_digest sha1(std::string_view bytes);

/// The same of a text in pieces.
class sha1_sum {
public:
    static constexpr std::size_t block_bytes = 64;
    /// Takes whole blocks of the text.
    void add(std::string_view blocks) noexcept;
    /// Takes the rest of it, of any size. To be called once, as the last thing.
    sha1_digest end(std::string_view rest) noexcept;

private:
    std::array<std::uint32_t, 5> state_{0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    std::uint64_t bytes_ = 0;
};

/// Forty lower-case digits.
std::string hexadecimal(const sha1_digest& of);

}  // namespace eddy
