// The keyed hash of the cache's keys, members and fields.
//
// Clients choose the keys, so the hash has a secret: without it keys that fall into one bucket
// cannot be prepared. Each 16 bytes are multiplied 64 × 64 -> 128 bits, both factors masked by the
// secret, and the halves are folded; a key of up to 16 bytes costs two such multiplications.
#pragma once

#include <eddy/base/random.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace eddy::cache {

/// A function from bytes to 64 evenly spread bits, different for every secret. Immutable.
class key_hash {
public:
    /// The secret is drawn from `seed`; take it from entropy_seed() where strangers choose the
    /// keys.
    explicit key_hash(std::uint64_t seed) noexcept {
        random_generator random(seed);
        for (std::uint64_t& word : secret_) word = random() | 1;
    }

    std::uint64_t operator()(std::string_view key) const noexcept {
        const char* at = key.data();
        std::size_t left = key.size();
        std::uint64_t state = secret_[3] ^ left;
        if (left <= 16) {
            if (left >= 8) return finish(load8(at), load8(at + left - 8), state);
            if (left >= 4) return finish(load4(at), load4(at + left - 4), state);
            if (left == 0) return finish(0, 0, state);
            const std::uint64_t three = static_cast<std::uint64_t>(byte(at[0])) << 16 |
                                        static_cast<std::uint64_t>(byte(at[left / 2])) << 8 |
                                        byte(at[left - 1]);
            return finish(three, 0, state);
        }
        for (; left > 16; left -= 16, at += 16) {
            state = fold(load8(at) ^ secret_[0], load8(at + 8) ^ state);
        }
        // The last 16 bytes, which may overlap what is mixed in already.
        return finish(load8(at + left - 16), load8(at + left - 8), state);
    }

private:
    static unsigned char byte(char c) noexcept { return static_cast<unsigned char>(c); }
    static std::uint64_t load8(const char* at) noexcept {
        std::uint64_t word;
        std::memcpy(&word, at, 8);
        return word;
    }
    static std::uint64_t load4(const char* at) noexcept {
        std::uint32_t word;
        std::memcpy(&word, at, 4);
        return word;
    }
    static std::uint64_t fold(std::uint64_t a, std::uint64_t b) noexcept {
        __extension__ using wide = unsigned __int128;
        const wide product = static_cast<wide>(a) * b;
        return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
    }
    std::uint64_t finish(std::uint64_t a, std::uint64_t b, std::uint64_t state) const noexcept {
        return fold(fold(a ^ secret_[1], b ^ state) ^ secret_[2], secret_[0] ^ state);
    }

    std::array<std::uint64_t, 4> secret_;
};

}  // namespace eddy::cache
