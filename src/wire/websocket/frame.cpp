// Close codes, and the mask by words, which compilers turn into vectors.
#include <eddy/wire/websocket/frame.hpp>

#include <bit>
#include <cstring>

namespace eddy::websocket {
namespace {

constexpr std::size_t word_size = sizeof(std::uint64_t);

[[gnu::always_inline]] inline void mask_words(std::byte* at, std::size_t words,
                                              std::uint64_t key) noexcept {
    for (std::size_t i = 0; i < words; ++i) {
        std::uint64_t word;
        std::memcpy(&word, at + i * word_size, word_size);
        word ^= key;
        std::memcpy(at + i * word_size, &word, word_size);
    }
}

[[gnu::always_inline]] inline void copy_words(std::byte* __restrict to,
                                              const std::byte* __restrict from, std::size_t words,
                                              std::uint64_t key) noexcept {
    for (std::size_t i = 0; i < words; ++i) {
        std::uint64_t word;
        std::memcpy(&word, from + i * word_size, word_size);
        word ^= key;
        std::memcpy(to + i * word_size, &word, word_size);
    }
}

#if defined(__x86_64__)
[[gnu::target("avx2")]] void mask_words_wide(std::byte* at, std::size_t words,
                                             std::uint64_t key) noexcept {
    mask_words(at, words, key);
}

[[gnu::target("avx2")]] void copy_words_wide(std::byte* to, const std::byte* from,
                                             std::size_t words, std::uint64_t key) noexcept {
    copy_words(to, from, words, key);
}

bool is_wide(std::size_t words) noexcept {
    static const bool has = __builtin_cpu_supports("avx2") != 0;
    constexpr std::size_t worth_it = 32;
    return words >= worth_it && has;
}
#endif

/// The key as it falls on eight bytes that begin at `offset`.
std::uint64_t key_at(mask_key key, std::uint64_t offset) noexcept {
    std::uint32_t half;
    std::memcpy(&half, key.data(), sizeof half);
    const int bits = static_cast<int>(offset % key.size() * 8);
    half =
        std::endian::native == std::endian::little ? std::rotr(half, bits) : std::rotl(half, bits);
    return half | std::uint64_t{half} << 32;
}

// The last bytes, fewer than eight. The key falls on them as on the words before.
void copy_rest(std::byte* to, const std::byte* from, std::size_t size, std::uint64_t key) noexcept {
    std::byte bytes[word_size];
    std::memcpy(bytes, &key, word_size);
    for (std::size_t i = 0; i < size; ++i) to[i] = from[i] ^ bytes[i];
}

}  // namespace

bool is_sendable(close_code code) noexcept {
    const auto number = static_cast<unsigned>(code);
    if (number >= 3000) return number < 5000;
    return number >= 1000 && number <= 1014 && (number < 1004 || number > 1006);
}

void apply_mask(mutable_bytes payload, mask_key key, std::uint64_t offset) noexcept {
    const std::uint64_t word = key_at(key, offset);
    const std::size_t words = payload.size() / word_size;
#if defined(__x86_64__)
    if (is_wide(words))
        mask_words_wide(payload.data(), words, word);
    else
#endif
        mask_words(payload.data(), words, word);
    std::byte* const rest = payload.data() + words * word_size;
    copy_rest(rest, rest, payload.size() % word_size, word);
}

void copy_masked(std::byte* to, const_bytes payload, mask_key key, std::uint64_t offset) noexcept {
    const std::uint64_t word = key_at(key, offset);
    const std::size_t words = payload.size() / word_size;
#if defined(__x86_64__)
    if (is_wide(words))
        copy_words_wide(to, payload.data(), words, word);
    else
#endif
        copy_words(to, payload.data(), words, word);
    copy_rest(to + words * word_size, payload.data() + words * word_size,
              payload.size() % word_size, word);
}

}  // namespace eddy::websocket
