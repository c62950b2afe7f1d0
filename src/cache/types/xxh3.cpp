// XXH3: a formula for each range of lengths, and stripes of 64 bytes above 240.
#include "cache/types/xxh3.hpp"

#include <bit>
#include <cstddef>
#include <cstring>

namespace eddy::cache {
namespace {

constexpr std::uint64_t prime32_1 = 0x9E3779B1;
constexpr std::uint64_t prime32_2 = 0x85EBCA77;
constexpr std::uint64_t prime32_3 = 0xC2B2AE3D;
constexpr std::uint64_t prime64_1 = 0x9E3779B185EBCA87;
constexpr std::uint64_t prime64_2 = 0xC2B2AE3D27D4EB4F;
constexpr std::uint64_t prime64_3 = 0x165667B19E3779F9;
constexpr std::uint64_t prime64_4 = 0x85EBCA77C2B2AE63;
constexpr std::uint64_t prime64_5 = 0x27D4EB2F165667C5;
constexpr std::uint64_t prime_mx1 = 0x165667919E3779F9;
constexpr std::uint64_t prime_mx2 = 0x9FB21C651E98DF25;

// The specification's default secret.
constexpr unsigned char secret[192] = {
    0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad, 0x1c,
    0xde, 0xd4, 0x6d, 0xe9, 0x83, 0x90, 0x97, 0xdb, 0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3, 0x67, 0x1f,
    0xcb, 0x79, 0xe6, 0x4e, 0xcc, 0xc0, 0xe5, 0x78, 0x82, 0x5a, 0xd0, 0x7d, 0xcc, 0xff, 0x72, 0x21,
    0xb8, 0x08, 0x46, 0x74, 0xf7, 0x43, 0x24, 0x8e, 0xe0, 0x35, 0x90, 0xe6, 0x81, 0x3a, 0x26, 0x4c,
    0x3c, 0x28, 0x52, 0xbb, 0x91, 0xc3, 0x00, 0xcb, 0x88, 0xd0, 0x65, 0x8b, 0x1b, 0x53, 0x2e, 0xa3,
    0x71, 0x64, 0x48, 0x97, 0xa2, 0x0d, 0xf9, 0x4e, 0x38, 0x19, 0xef, 0x46, 0xa9, 0xde, 0xac, 0xd8,
    0xa8, 0xfa, 0x76, 0x3f, 0xe3, 0x9c, 0x34, 0x3f, 0xf9, 0xdc, 0xbb, 0xc7, 0xc7, 0x0b, 0x4f, 0x1d,
    0x8a, 0x51, 0xe0, 0x4b, 0xcd, 0xb4, 0x59, 0x31, 0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78, 0x73, 0x64,
    0xea, 0xc5, 0xac, 0x83, 0x34, 0xd3, 0xeb, 0xc3, 0xc5, 0x81, 0xa0, 0xff, 0xfa, 0x13, 0x63, 0xeb,
    0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0, 0xda, 0x49, 0xd3, 0x16, 0x55, 0x26, 0x29, 0xd4, 0x68, 0x9e,
    0x2b, 0x16, 0xbe, 0x58, 0x7d, 0x47, 0xa1, 0xfc, 0x8f, 0xf8, 0xb8, 0xd1, 0x7a, 0xd0, 0x31, 0xce,
    0x45, 0xcb, 0x3a, 0x8f, 0x95, 0x16, 0x04, 0x28, 0xaf, 0xd7, 0xfb, 0xca, 0xbb, 0x4b, 0x40, 0x7e,
};

std::uint64_t read64(const void* from) noexcept {
    std::uint64_t word;
    std::memcpy(&word, from, sizeof word);
    if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
    return word;
}
std::uint64_t read32(const void* from) noexcept {
    std::uint32_t word;
    std::memcpy(&word, from, sizeof word);
    if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap32(word);
    return word;
}
std::uint64_t secret64(std::size_t at) noexcept { return read64(secret + at); }

std::uint64_t fold_product(std::uint64_t a, std::uint64_t b) noexcept {
    const auto product = static_cast<unsigned __int128>(a) * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

std::uint64_t avalanche(std::uint64_t h) noexcept {
    h ^= h >> 37;
    h *= prime_mx1;
    return h ^ h >> 32;
}
// The one of XXH64.
std::uint64_t old_avalanche(std::uint64_t h) noexcept {
    h ^= h >> 33;
    h *= prime64_2;
    h ^= h >> 29;
    h *= prime64_3;
    return h ^ h >> 32;
}

std::uint64_t of_up_to_16(const char* in, std::size_t size) noexcept {
    if (size > 8) {
        const std::uint64_t low = read64(in) ^ (secret64(24) ^ secret64(32));
        const std::uint64_t high = read64(in + size - 8) ^ (secret64(40) ^ secret64(48));
        return avalanche(size + __builtin_bswap64(low) + high + fold_product(low, high));
    }
    if (size >= 4) {
        std::uint64_t h = read32(in + size - 4) + (read32(in) << 32);
        h ^= secret64(8) ^ secret64(16);
        h ^= std::rotl(h, 49) ^ std::rotl(h, 24);
        h *= prime_mx2;
        h ^= (h >> 35) + size;
        h *= prime_mx2;
        return h ^ h >> 28;
    }
    if (size == 0) return old_avalanche(secret64(56) ^ secret64(64));
    const auto byte = [in](std::size_t at) {
        return std::uint64_t{static_cast<unsigned char>(in[at])};
    };
    const std::uint64_t joined =
        byte(0) << 16 | byte(size / 2) << 24 | byte(size - 1) | std::uint64_t{size} << 8;
    return old_avalanche(joined ^ (read32(secret) ^ read32(secret + 4)));
}

std::uint64_t mix16(const char* in, std::size_t at) noexcept {
    return fold_product(read64(in) ^ secret64(at), read64(in + 8) ^ secret64(at + 8));
}

std::uint64_t of_up_to_128(const char* in, std::size_t size) noexcept {
    std::uint64_t sum = size * prime64_1;
    // Pairs from both ends towards the middle.
    for (std::size_t i = (size - 1) / 32 + 1; i-- > 0;) {
        sum += mix16(in + 16 * i, 32 * i);
        sum += mix16(in + size - 16 * (i + 1), 32 * i + 16);
    }
    return avalanche(sum);
}

std::uint64_t of_up_to_240(const char* in, std::size_t size) noexcept {
    constexpr std::size_t first_rounds = 8;
    std::uint64_t sum = size * prime64_1;
    for (std::size_t i = 0; i < first_rounds; ++i) sum += mix16(in + 16 * i, 16 * i);
    sum = avalanche(sum);
    for (std::size_t i = first_rounds; i < size / 16; ++i)
        sum += mix16(in + 16 * i, 16 * (i - first_rounds) + 3);
    sum += mix16(in + size - 16, 136 - 17);
    return avalanche(sum);
}

constexpr std::size_t stripe = 64;
constexpr std::size_t lanes = 8;
constexpr std::size_t block_stripes = (sizeof secret - stripe) / 8;

void accumulate(std::uint64_t* sums, const char* in, std::size_t secret_at) noexcept {
    for (std::size_t i = 0; i < lanes; ++i) {
        const std::uint64_t value = read64(in + 8 * i);
        const std::uint64_t key = value ^ secret64(secret_at + 8 * i);
        sums[i ^ 1] += value;
        sums[i] += (key & 0xffffffff) * (key >> 32);
    }
}

std::uint64_t of_long(const char* in, std::size_t size) noexcept {
    std::uint64_t sums[lanes] = {prime32_3, prime64_1, prime64_2, prime64_3,
                                 prime64_4, prime32_2, prime64_5, prime32_1};
    const std::size_t stripes = (size - 1) / stripe;
    for (std::size_t n = 0; n < stripes; ++n) {
        accumulate(sums, in + stripe * n, 8 * (n % block_stripes));
        if (n % block_stripes != block_stripes - 1) continue;
        for (std::size_t i = 0; i < lanes; ++i) {
            sums[i] ^= sums[i] >> 47;
            sums[i] ^= secret64(sizeof secret - stripe + 8 * i);
            sums[i] *= prime32_1;
        }
    }
    accumulate(sums, in + size - stripe, sizeof secret - stripe - 7);
    std::uint64_t sum = size * prime64_1;
    for (std::size_t i = 0; i < lanes / 2; ++i) {
        sum += fold_product(sums[2 * i] ^ secret64(11 + 16 * i),
                            sums[2 * i + 1] ^ secret64(11 + 16 * i + 8));
    }
    return avalanche(sum);
}

}  // namespace

std::uint64_t xxh3(std::string_view text) noexcept {
    const char* const in = text.data();
    const std::size_t size = text.size();
    if (size <= 16) return of_up_to_16(in, size);
    if (size <= 128) return of_up_to_128(in, size);
    if (size <= 240) return of_up_to_240(in, size);
    return of_long(in, size);
}

}  // namespace eddy::cache
