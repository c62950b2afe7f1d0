// SHA-1 by the standard's own steps.
#include "base/sha1.hpp"

#include <bit>
#include <cstddef>
#include <cstring>

namespace eddy {
namespace {

std::uint32_t load_big_endian(const std::uint8_t* from) noexcept {
    std::uint32_t word = 0;
    for (int i = 0; i < 4; ++i) word = word << 8 | from[i];
    return word;
}

void store_big_endian(std::uint8_t* to, std::uint64_t value, int bytes) noexcept {
    for (int i = 0; i < bytes; ++i) {
        to[i] = static_cast<std::uint8_t>(value >> 8 * (bytes - 1 - i));
    }
}

void sha1_block(std::array<std::uint32_t, 5>& state, const std::uint8_t* block) noexcept {
    std::uint32_t words[80];
    for (int i = 0; i < 16; ++i) words[i] = load_big_endian(block + i * 4);
    for (int i = 16; i < 80; ++i) {
        words[i] = std::rotl(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
    }
    auto [a, b, c, d, e] = state;
    for (int i = 0; i < 80; ++i) {
        std::uint32_t mixed;
        std::uint32_t constant;
        if (i < 20) {
            mixed = (b & c) | (~b & d);
            constant = 0x5a827999;
        } else if (i < 40) {
            mixed = b ^ c ^ d;
            constant = 0x6ed9eba1;
        } else if (i < 60) {
            mixed = (b & c) | (b & d) | (c & d);
            constant = 0x8f1bbcdc;
        } else {
            mixed = b ^ c ^ d;
            constant = 0xca62c1d6;
        }
        const std::uint32_t next = std::rotl(a, 5) + mixed + e + constant + words[i];
        e = d;
        d = c;
        c = std::rotl(b, 30);
        b = a;
        a = next;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
}

}  // namespace

void sha1_sum::add(std::string_view blocks) noexcept {
    const auto* const from = reinterpret_cast<const std::uint8_t*>(blocks.data());
    for (std::size_t at = 0; at < blocks.size(); at += block_bytes) sha1_block(state_, from + at);
    bytes_ += blocks.size();
}

sha1_digest sha1_sum::end(std::string_view rest) noexcept {
    const std::size_t whole = rest.size() / block_bytes * block_bytes;
    add(rest.substr(0, whole));
    rest.remove_prefix(whole);
    bytes_ += rest.size();
    // The rest, a one, zeros, and the size in bits.
    std::uint8_t last[2 * block_bytes] = {};
    if (!rest.empty()) std::memcpy(last, rest.data(), rest.size());
    last[rest.size()] = 0x80;
    const std::size_t padded = rest.size() < block_bytes - 8 ? block_bytes : 2 * block_bytes;
    store_big_endian(last + padded - 8, bytes_ * 8, 8);
    for (std::size_t at = 0; at < padded; at += block_bytes) sha1_block(state_, last + at);
    sha1_digest made;
    for (std::size_t i = 0; i < state_.size(); ++i) {
        store_big_endian(made.data() + i * 4, state_[i], 4);
    }
    return made;
}

sha1_digest sha1(std::string_view bytes) { return sha1_sum().end(bytes); }

std::string hexadecimal(const sha1_digest& of) {
    std::string text;
    for (const std::uint8_t byte : of) {
        text += "0123456789abcdef"[byte >> 4];
        text += "0123456789abcdef"[byte & 15];
    }
    return text;
}

}  // namespace eddy
