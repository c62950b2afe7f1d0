// Bit operations by loops over words; the compiler vectorises the simple ones.
#include "cache/types/bits.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace eddy::cache {
namespace {

// Eight bytes as a big-endian number: its highest bit is the first byte's highest.
std::uint64_t load_in_order(const char* from) noexcept {
    std::uint64_t word;
    std::memcpy(&word, from, sizeof word);
    if constexpr (std::endian::native == std::endian::little) word = __builtin_bswap64(word);
    return word;
}

void store_in_order(char* to, std::uint64_t word) noexcept {
    if constexpr (std::endian::native == std::endian::little) word = __builtin_bswap64(word);
    std::memcpy(to, &word, sizeof word);
}

[[gnu::always_inline]] inline std::uint64_t count_words(const char* from,
                                                        std::size_t words) noexcept {
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < words; ++i) {
        std::uint64_t word;
        std::memcpy(&word, from + i * sizeof word, sizeof word);
        count += static_cast<std::uint64_t>(__builtin_popcountll(word));
    }
    return count;
}

#if defined(__x86_64__)
[[gnu::target("avx2,popcnt")]] std::uint64_t count_words_wide(const char* from,
                                                              std::size_t words) noexcept {
    return count_words(from, words);
}
bool has_wide_count() noexcept {
    static const bool has =
        __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("popcnt") != 0;
    return has;
}
#endif

std::uint64_t count_bytes(const char* from, std::size_t size) noexcept {
    const std::size_t words = size / 8;
    std::uint64_t last = 0;
    if (size % 8 != 0) std::memcpy(&last, from + words * 8, size % 8);
    const auto count = static_cast<std::uint64_t>(__builtin_popcountll(last));
#if defined(__x86_64__)
    if (has_wide_count()) return count + count_words_wide(from, words);
#endif
    return count + count_words(from, words);
}

unsigned byte_at(std::string_view bytes, std::uint64_t at) noexcept {
    return static_cast<unsigned char>(bytes[at]);
}

// Mask of a byte's bits from `bit` on.
unsigned mask_from(std::uint64_t bit) noexcept { return 0xffU >> (bit % 8); }

// Blocks that are combined at a time.
constexpr std::size_t block_bytes = 2048;

void combine_block(bit_operation how, char* into, const char* with, std::size_t size) noexcept {
    switch (how) {
        case bit_operation::all_of:
            for (std::size_t i = 0; i < size; ++i) into[i] = static_cast<char>(into[i] & with[i]);
            break;
        case bit_operation::any_of:
            for (std::size_t i = 0; i < size; ++i) into[i] = static_cast<char>(into[i] | with[i]);
            break;
        case bit_operation::exclusive:
            for (std::size_t i = 0; i < size; ++i) into[i] = static_cast<char>(into[i] ^ with[i]);
            break;
        case bit_operation::negation:
        case bit_operation::without_others:
        case bit_operation::others_without:
        case bit_operation::shared:
        case bit_operation::exactly_one: break;
    }
}

// The others joined, and the first source applied to them at the end.
void apply_first(bit_operation how, char* others, const char* first, std::size_t size) noexcept {
    for (std::size_t i = 0; i < size; ++i) {
        const unsigned joined = static_cast<unsigned char>(others[i]);
        const unsigned own = static_cast<unsigned char>(first[i]);
        const unsigned made = how == bit_operation::without_others   ? own & ~joined
                              : how == bit_operation::others_without ? joined & ~own
                                                                     : joined & own;
        others[i] = static_cast<char>(made);
    }
}

// Bits that one source has had so far, and bits that more have had.
void note_ones(char* ones, char* more, const char* with, std::size_t size) noexcept {
    for (std::size_t i = 0; i < size; ++i) {
        more[i] = static_cast<char>(more[i] | (ones[i] & with[i]));
        ones[i] = static_cast<char>((ones[i] ^ with[i]) & ~more[i]);
    }
}

}  // namespace

std::uint64_t count_bits(std::string_view bytes, std::uint64_t first, std::uint64_t end) noexcept {
    if (first >= end) return 0;
    const std::uint64_t first_byte = first / 8;
    const std::uint64_t last_byte = (end - 1) / 8;
    const unsigned after_last =
        mask_from((end - 1) % 8) >> 1;  // the last byte's bits from `end` on
    if (first_byte == last_byte) {
        return static_cast<std::uint64_t>(
            __builtin_popcount(byte_at(bytes, first_byte) & mask_from(first) & ~after_last));
    }
    const int ends = __builtin_popcount(byte_at(bytes, first_byte) & mask_from(first)) +
                     __builtin_popcount(byte_at(bytes, last_byte) & ~after_last);
    return static_cast<std::uint64_t>(ends) +
           count_bytes(bytes.data() + first_byte + 1, last_byte - first_byte - 1);
}

std::optional<std::uint64_t> find_bit(std::string_view bytes, std::uint64_t first,
                                      std::uint64_t end, bool wanted) noexcept {
    if (first >= end) return std::nullopt;
    const std::uint64_t flip = wanted ? 0 : ~std::uint64_t{0};
    const auto found = [end](std::uint64_t at) {
        return at < end ? std::optional(at) : std::nullopt;
    };
    const std::uint64_t end_byte = (end + 7) / 8;
    std::uint64_t at = first / 8;
    const unsigned begin =
        (byte_at(bytes, at) ^ static_cast<unsigned>(flip & 0xff)) & mask_from(first);
    if (begin != 0) return found(at * 8 + static_cast<unsigned>(__builtin_clz(begin)) - 24);
    ++at;
    // Four words at a time while they are zero.
    constexpr std::uint64_t step = 4 * sizeof(std::uint64_t);
    for (; at + step <= end_byte; at += step) {
        std::uint64_t words[4];
        std::memcpy(words, bytes.data() + at, step);
        if (((words[0] ^ flip) | (words[1] ^ flip) | (words[2] ^ flip) | (words[3] ^ flip)) != 0)
            break;
    }
    for (; at + 8 <= end_byte; at += 8) {
        const std::uint64_t word = load_in_order(bytes.data() + at) ^ flip;
        if (word != 0) return found(at * 8 + static_cast<unsigned>(__builtin_clzll(word)));
    }
    for (; at < end_byte; ++at) {
        const unsigned byte = byte_at(bytes, at) ^ static_cast<unsigned>(flip & 0xff);
        if (byte != 0) return found(at * 8 + static_cast<unsigned>(__builtin_clz(byte)) - 24);
    }
    return std::nullopt;
}

// A block at a time, which stays in the first-level cache during the pass over the sources. It is
// written after all are read, so the target may be a source.
void combine_bits(bit_operation how, std::span<const std::string_view> sources, char* to,
                  std::size_t size) noexcept {
    alignas(64) char block[block_bytes];
    alignas(64) char second[block_bytes];
    const bool joins_others = how == bit_operation::without_others ||
                              how == bit_operation::others_without || how == bit_operation::shared;
    for (std::size_t done = 0; done < size; done += block_bytes) {
        const std::size_t wanted = std::min(block_bytes, size - done);
        // Bytes of the source in this block.
        const auto part = [&](std::string_view source) {
            return source.size() > done ? std::min(wanted, source.size() - done) : 0;
        };
        const auto load = [&](char* into, std::string_view source) {
            const std::size_t got = part(source);
            if (got > 0) std::memcpy(into, source.data() + done, got);
            if (got < wanted) std::memset(into + got, 0, wanted - got);
        };
        if (joins_others || how == bit_operation::exactly_one) {
            load(second, joins_others ? sources[0] : std::string_view());
            std::memset(block, 0, wanted);
            for (const std::string_view source : sources.subspan(joins_others ? 1 : 0)) {
                const std::size_t has = part(source);
                if (has == 0) continue;
                if (joins_others)
                    combine_block(bit_operation::any_of, block, source.data() + done, has);
                else
                    note_ones(block, second, source.data() + done, has);
            }
            if (joins_others) apply_first(how, block, second, wanted);
            std::memcpy(to + done, block, wanted);
            continue;
        }
        load(block, sources[0]);
        for (const std::string_view source : sources.subspan(1)) {
            const std::size_t has = part(source);
            if (has > 0) combine_block(how, block, source.data() + done, has);
            if (how == bit_operation::all_of && has < wanted) {
                std::memset(block + has, 0, wanted - has);
            }
        }
        if (how == bit_operation::negation) {
            for (std::size_t i = 0; i < wanted; ++i) block[i] = static_cast<char>(~block[i]);
        }
        std::memcpy(to + done, block, wanted);
    }
}

std::uint64_t read_bits(std::string_view bytes, std::uint64_t offset, unsigned width) noexcept {
    char window[9] = {};
    const std::uint64_t first = offset / 8;
    if (first < bytes.size()) {
        std::memcpy(window, bytes.data() + first, std::min<std::size_t>(9, bytes.size() - first));
    }
    std::uint64_t word = load_in_order(window);
    if (const unsigned shift = offset % 8; shift != 0) {
        word = word << shift | static_cast<unsigned char>(window[8]) >> (8 - shift);
    }
    return word >> (64 - width);
}

void write_bits(char* bytes, std::size_t size, std::uint64_t offset, unsigned width,
                std::uint64_t value) noexcept {
    char window[16] = {};
    const std::uint64_t first = offset / 8;
    const std::size_t there = std::min<std::size_t>(9, size - first);
    std::memcpy(window, bytes + first, there);
    // Two words, as the field may span both: it begins in the first byte and ends in the ninth at
    // most.
    const unsigned shift = offset % 8;
    const std::uint64_t ones = ~std::uint64_t{0} << (64 - width);
    const std::uint64_t field = value << (64 - width);
    store_in_order(window, (load_in_order(window) & ~(ones >> shift)) | field >> shift);
    if (shift + width > 64) {
        const unsigned left = 64 - shift;
        store_in_order(window + 8, (load_in_order(window + 8) & ~(ones << left)) | field << left);
    }
    std::memcpy(bytes + first, window, there);
}

}  // namespace eddy::cache
