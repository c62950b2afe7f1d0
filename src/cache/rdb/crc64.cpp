// CRC-64 by eight bytes a step: each has a table of its own for its share of the remainder.
#include "cache/rdb/crc64.hpp"

#include <array>
#include <cstddef>
#include <cstring>

namespace eddy::cache::rdb {
namespace {

// x^64 + ... in reversed order of bits, as the sum is kept.
constexpr std::uint64_t polynomial = 0x95ac'9329'ac4b'c9b5ULL;

constexpr std::size_t slices = 8;
using slice = std::array<std::uint64_t, 256>;

// tables[n][b] is the remainder of the byte b with n zero bytes behind it.
constexpr std::array<slice, slices> tables = [] {
    std::array<slice, slices> made{};
    for (std::size_t byte = 0; byte < 256; ++byte) {
        std::uint64_t rest = byte;
        for (int bit = 0; bit < 8; ++bit) rest = (rest >> 1) ^ ((rest & 1) != 0 ? polynomial : 0);
        made[0][byte] = rest;
    }
    for (std::size_t n = 1; n < slices; ++n) {
        for (std::size_t byte = 0; byte < 256; ++byte) {
            const std::uint64_t rest = made[n - 1][byte];
            made[n][byte] = (rest >> 8) ^ made[0][rest & 0xff];
        }
    }
    return made;
}();

}  // namespace

std::uint64_t crc64(std::uint64_t sum, std::string_view bytes) noexcept {
    const char* at = bytes.data();
    const char* const end = at + bytes.size();
    for (; end - at >= 8; at += 8) {
        std::uint64_t word;
        std::memcpy(&word, at, 8);
        sum ^= word;
        sum = tables[7][sum & 0xff] ^ tables[6][sum >> 8 & 0xff] ^ tables[5][sum >> 16 & 0xff] ^
              tables[4][sum >> 24 & 0xff] ^ tables[3][sum >> 32 & 0xff] ^
              tables[2][sum >> 40 & 0xff] ^ tables[1][sum >> 48 & 0xff] ^ tables[0][sum >> 56];
    }
    for (; at < end; ++at) {
        sum = (sum >> 8) ^ tables[0][(sum ^ static_cast<std::uint8_t>(*at)) & 0xff];
    }
    return sum;
}

}  // namespace eddy::cache::rdb
