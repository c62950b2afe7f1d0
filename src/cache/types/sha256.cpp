// SHA-256's compression function over blocks of 64 bytes.
#include "cache/types/sha256.hpp"

#include <bit>
#include <cstddef>
#include <cstring>

namespace eddy::cache {
namespace {

constexpr std::size_t block_bytes = 64;

// The first 32 bits of the fractions of the cube roots of the first 64 primes.
constexpr std::uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

struct hash_state {
    // The same for the square roots of the first eight primes.
    std::uint32_t words[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                              0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

    void add(const unsigned char* block) noexcept {
        std::uint32_t w[64];
        for (std::size_t i = 0; i < 16; ++i) {
            w[i] = std::uint32_t{block[4 * i]} << 24 | std::uint32_t{block[4 * i + 1]} << 16 |
                   std::uint32_t{block[4 * i + 2]} << 8 | std::uint32_t{block[4 * i + 3]};
        }
        for (std::size_t i = 16; i < 64; ++i) {
            const std::uint32_t x = w[i - 15];
            const std::uint32_t y = w[i - 2];
            w[i] = w[i - 16] + (std::rotr(x, 7) ^ std::rotr(x, 18) ^ x >> 3) + w[i - 7] +
                   (std::rotr(y, 17) ^ std::rotr(y, 19) ^ y >> 10);
        }
        auto [a, b, c, d, e, f, g, h] = words;
        for (std::size_t i = 0; i < 64; ++i) {
            const std::uint32_t high = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
            const std::uint32_t one = h + high + ((e & f) ^ (~e & g)) + round_constants[i] + w[i];
            const std::uint32_t low = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
            const std::uint32_t two = low + ((a & b) ^ (a & c) ^ (b & c));
            h = g;
            g = f;
            f = e;
            e = d + one;
            d = c;
            c = b;
            b = a;
            a = one + two;
        }
        const std::uint32_t now[8] = {a, b, c, d, e, f, g, h};
        for (std::size_t i = 0; i < 8; ++i) words[i] += now[i];
    }
};

}  // namespace

sha256_digest sha256(std::string_view text) noexcept {
    hash_state state;
    const std::uint64_t bits = std::uint64_t{text.size()} * 8;
    const auto* at = reinterpret_cast<const unsigned char*>(text.data());
    std::size_t left = text.size();
    for (; left >= block_bytes; left -= block_bytes, at += block_bytes) state.add(at);
    // The rest of the text, a one bit, zeros, and the number of bits in the last eight bytes.
    unsigned char last[2 * block_bytes] = {};
    if (left > 0) std::memcpy(last, at, left);
    last[left] = 0x80;
    const std::size_t blocks = left + 9 <= block_bytes ? 1 : 2;
    for (std::size_t i = 0; i < 8; ++i) {
        last[blocks * block_bytes - 1 - i] = static_cast<unsigned char>(bits >> 8 * i);
    }
    for (std::size_t i = 0; i < blocks; ++i) state.add(last + i * block_bytes);
    sha256_digest digest;
    for (std::size_t i = 0; i < digest.size(); ++i) {
        digest[i] = static_cast<std::uint8_t>(state.words[i / 4] >> (24 - 8 * (i % 4)));
    }
    return digest;
}

bool same_digest(const sha256_digest& a, const sha256_digest& b) noexcept {
    unsigned differ = 0;
    for (std::size_t i = 0; i < a.size(); ++i) differ |= static_cast<unsigned>(a[i] ^ b[i]);
    return differ == 0;
}

std::string to_hex(const sha256_digest& digest) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string text;
    for (const std::uint8_t each : digest) {
        text += digits[each >> 4];
        text += digits[each & 15];
    }
    return text;
}

std::optional<sha256_digest> digest_from_hex(std::string_view text) noexcept {
    sha256_digest digest{};
    if (text.size() != 2 * digest.size()) return std::nullopt;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        const bool is_digit = c >= '0' && c <= '9';
        if (!is_digit && (c < 'a' || c > 'f')) return std::nullopt;
        const int value = is_digit ? c - '0' : c - 'a' + 10;
        digest[i / 2] = static_cast<std::uint8_t>(digest[i / 2] << 4 | value);
    }
    return digest;
}

}  // namespace eddy::cache
