// Validation of UTF-8: words of ASCII, vectors by table lookup, and single bytes.
//
// The vector code follows "Validating UTF-8 In Less Than One Instruction Per Byte" (Keiser and
// Lemire, 2020): each pair of adjacent bytes is classified by three table lookups, one for each of
// the first byte's halves and one for the second byte's high half. A bit that is set in all three
// is an error that the pair shows. Third and fourth bytes of a character are checked apart.
#include <eddy/base/utf8.hpp>

#include <algorithm>
#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace eddy {
namespace {

/// The continuation of a character after its first byte.
struct lead {
    std::uint8_t missing;  // bytes that follow; 0xff for a byte that begins no character
    std::uint8_t least;    // the range of the next byte
    std::uint8_t most;
};

constexpr std::uint8_t no_lead = 0xff;

constexpr lead lead_of(unsigned char byte) noexcept {
    if (byte < 0x80) return {0, 0, 0};
    if (byte < 0xc2 || byte > 0xf4) return {no_lead, 0, 0};
    if (byte < 0xe0) return {1, 0x80, 0xbf};
    if (byte < 0xf0) {
        const std::uint8_t least = byte == 0xe0 ? 0xa0 : 0x80;  // no overlong form
        const std::uint8_t most = byte == 0xed ? 0x9f : 0xbf;   // no surrogate
        return {2, least, most};
    }
    const std::uint8_t least = byte == 0xf0 ? 0x90 : 0x80;  // no overlong form
    const std::uint8_t most = byte == 0xf4 ? 0x8f : 0xbf;   // at most U+10FFFF
    return {3, least, most};
}

constexpr std::array<lead, 256> leads = [] {
    std::array<lead, 256> made{};
    for (unsigned byte = 0; byte < 256; ++byte)
        made[byte] = lead_of(static_cast<unsigned char>(byte));
    return made;
}();

constexpr std::size_t ascii_block = 32;

/// True if the 32 bytes are ASCII.
bool is_ascii_block(const char* from) noexcept {
    std::uint64_t words[4];
    std::memcpy(words, from, sizeof words);
    return ((words[0] | words[1] | words[2] | words[3]) & 0x8080808080808080U) == 0;
}

/// True if the 8 bytes are ASCII.
bool is_ascii_word(const char* from) noexcept {
    std::uint64_t word;
    std::memcpy(&word, from, sizeof word);
    return (word & 0x8080808080808080U) == 0;
}

#if defined(__x86_64__)

// Errors that two adjacent bytes show, one bit for each.
constexpr std::uint8_t too_short = 1 << 0;      // a first byte, then none that continues it
constexpr std::uint8_t too_long = 1 << 1;       // ASCII, then a continuation
constexpr std::uint8_t overlong_3 = 1 << 2;     // e0, then below a0
constexpr std::uint8_t too_large = 1 << 3;      // f4 and above, then 90 and above
constexpr std::uint8_t surrogate = 1 << 4;      // ed, then a0 and above
constexpr std::uint8_t overlong_2 = 1 << 5;     // c0 or c1
constexpr std::uint8_t overlong_4 = 1 << 6;     // f0, then below 90
constexpr std::uint8_t too_large_8x = 1 << 6;   // f5 and above, then below 90
constexpr std::uint8_t continuations = 1 << 7;  // two; an error unless a character needs them
constexpr std::uint8_t any_low_half = too_short | too_long | continuations;

using nibble_table = std::array<std::uint8_t, 16>;

constexpr nibble_table first_high = [] {
    nibble_table made{};
    for (unsigned i = 0x0; i <= 0x7; ++i) made[i] = too_long;
    for (unsigned i = 0x8; i <= 0xb; ++i) made[i] = continuations;
    made[0xc] = too_short | overlong_2;
    made[0xd] = too_short;
    made[0xe] = too_short | overlong_3 | surrogate;
    made[0xf] = too_short | too_large | too_large_8x | overlong_4;
    return made;
}();

constexpr nibble_table first_low = [] {
    nibble_table made{};
    for (unsigned i = 0; i < 16; ++i) {
        unsigned bits = any_low_half;
        if (i <= 0x1) bits |= overlong_2;
        if (i == 0x0) bits |= overlong_3 | overlong_4;
        if (i >= 0x4) bits |= too_large;
        if (i >= 0x5) bits |= too_large_8x;
        if (i == 0xd) bits |= surrogate;
        made[i] = static_cast<std::uint8_t>(bits);
    }
    return made;
}();

constexpr nibble_table second_high = [] {
    nibble_table made{};
    for (unsigned i = 0; i < 16; ++i) {
        unsigned bits = too_short;
        if (i >= 0x8 && i <= 0xb) {
            bits = too_long | continuations | overlong_2;
            bits |= i == 0x8 ? overlong_4 | too_large_8x : too_large;
            bits |= i < 0xa ? overlong_3 : surrogate;
        }
        made[i] = static_cast<std::uint8_t>(bits);
    }
    return made;
}();

[[gnu::target("avx2")]] inline __m256i load_table(const nibble_table& table) noexcept {
    return _mm256_broadcastsi128_si256(
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(table.data())));
}

/// The bytes of `at`, moved up by `Count`, behind the last ones of the vector `before`.
template <int Count>
[[gnu::target("avx2")]] inline __m256i shifted(__m256i at, __m256i before) noexcept {
    return _mm256_alignr_epi8(at, _mm256_permute2x128_si256(before, at, 0x21), 16 - Count);
}

/// Where the last character begins if the text before `at`, valid so far, ends within one; else
/// `at`.
std::size_t character_start(std::string_view text, std::size_t at) noexcept {
    for (std::size_t back = 1; back <= std::min<std::size_t>(3, at); ++back) {
        const auto byte = static_cast<unsigned char>(text[at - back]);
        if (byte < 0x80) return at;
        if (byte >= 0xc0) return leads[byte].missing >= back ? at - back : at;
    }
    return at;
}

/// Bytes at the front that are valid whole characters, at least up to the block of the first
/// invalid one. The text begins with a character.
[[gnu::target("avx2")]] std::size_t valid_front(std::string_view text) noexcept {
    constexpr std::size_t vector = 32;
    constexpr std::size_t block = 2 * vector;
    const __m256i high_of_first = load_table(first_high);
    const __m256i low_of_first = load_table(first_low);
    const __m256i high_of_second = load_table(second_high);
    const __m256i low_half = _mm256_set1_epi8(0x0f);
    const __m256i high_bit = _mm256_set1_epi8(static_cast<char>(0x80));
    const __m256i third_bias = _mm256_set1_epi8(static_cast<char>(0xe0 - 0x80));
    const __m256i fourth_bias = _mm256_set1_epi8(static_cast<char>(0xf0 - 0x80));
    __m256i before = _mm256_setzero_si256();
    std::size_t at = 0;
    bool in_character = false;
    for (; text.size() - at >= block; at += block) {
        const auto* const from = reinterpret_cast<const __m256i*>(text.data() + at);
        const __m256i both[2] = {_mm256_loadu_si256(from), _mm256_loadu_si256(from + 1)};
        if (_mm256_movemask_epi8(_mm256_or_si256(both[0], both[1])) == 0) {
            if (in_character) break;
            before = both[1];
            continue;
        }
        __m256i errors = _mm256_setzero_si256();
        for (const __m256i here : both) {
            const __m256i first = shifted<1>(here, before);
            const __m256i shown = _mm256_and_si256(
                _mm256_and_si256(
                    _mm256_shuffle_epi8(high_of_first,
                                        _mm256_and_si256(_mm256_srli_epi16(first, 4), low_half)),
                    _mm256_shuffle_epi8(low_of_first, _mm256_and_si256(first, low_half))),
                _mm256_shuffle_epi8(high_of_second,
                                    _mm256_and_si256(_mm256_srli_epi16(here, 4), low_half)));
            // The high bit is left where a third or fourth byte must stand.
            const __m256i third = _mm256_subs_epu8(shifted<2>(here, before), third_bias);
            const __m256i fourth = _mm256_subs_epu8(shifted<3>(here, before), fourth_bias);
            const __m256i continued = _mm256_and_si256(_mm256_or_si256(third, fourth), high_bit);
            errors = _mm256_or_si256(errors, _mm256_xor_si256(continued, shown));
            before = here;
        }
        if (_mm256_testz_si256(errors, errors) == 0) break;
        in_character = character_start(text, at + block) != at + block;
    }
    return character_start(text, at);
}

bool has_vectors() noexcept {
    static const bool has = __builtin_cpu_supports("avx2") != 0;
    return has;
}

#endif

}  // namespace

std::size_t utf8_validator::check_bytewise(std::string_view piece, std::size_t from,
                                           std::size_t end) noexcept {
    for (std::size_t at = from; at < end; ++at) {
        const auto byte = static_cast<unsigned char>(piece[at]);
        if (missing_ > 0) {
            if (byte < least_ || byte > most_) return at;
            --missing_;
            least_ = 0x80;
            most_ = 0xbf;
            continue;
        }
        if (byte < 0x80) {
            while (end - at > ascii_block && is_ascii_block(piece.data() + at)) at += ascii_block;
            while (end - at > sizeof(std::uint64_t) && is_ascii_word(piece.data() + at))
                at += sizeof(std::uint64_t);
            if (static_cast<unsigned char>(piece[at]) < 0x80) continue;
        }
        const lead first = leads[static_cast<unsigned char>(piece[at])];
        if (first.missing == no_lead) return at;
        missing_ = first.missing;
        least_ = first.least;
        most_ = first.most;
    }
    return end;
}

std::size_t utf8_validator::check(std::string_view piece) noexcept {
    std::size_t at = 0;
#if defined(__x86_64__)
    constexpr std::size_t worth_vectors = 64;
    if (piece.size() >= worth_vectors && has_vectors()) {
        constexpr std::size_t rest_of_character = 3;
        while (missing_ > 0 && at < rest_of_character) {
            if (check_bytewise(piece, at, at + 1) == at) return at;
            ++at;
        }
        at += valid_front(piece.substr(at));
    }
#endif
    return check_bytewise(piece, at, piece.size());
}

bool is_utf8(std::string_view text) noexcept {
    utf8_validator validator;
    return validator.check(text) == text.size() && validator.is_complete();
}

}  // namespace eddy
