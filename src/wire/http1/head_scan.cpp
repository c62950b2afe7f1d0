// Scan of a whole head. Each block of 64 bytes is classified once, with vector instructions where
// the processor has them; the delimiters are then the lowest bits of the masks.
#include "wire/http1/head_scan.hpp"

#include "wire/http1/text.hpp"

#include <algorithm>
#include <bit>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace eddy::http1 {
namespace {

constexpr std::size_t block_size = 64;
// Shorter heads are left to the line parser. No request of HTTP/1.1 is: it has a Host field.
constexpr std::size_t least_size = 16;

/// Bit i is the class of byte i.
struct block_masks {
    std::uint64_t delimiters = 0;  // no byte of a token
    std::uint64_t controls = 0;    // no byte of a field's value
    std::uint64_t target_end = 0;  // no byte of a target
};

enum class wanted : unsigned char { fields, target_also };

// --- Classification without vector instructions ---

enum byte_class : unsigned char { is_delimiter = 1, is_control = 2, ends_target = 4 };

constexpr std::array<unsigned char, 256> byte_classes = [] {
    std::array<unsigned char, 256> classes{};
    for (std::size_t i = 0; i < classes.size(); ++i) {
        unsigned of = 0;
        if (!token_bytes.has(static_cast<char>(i))) of |= is_delimiter;
        if ((i < 0x20 && i != '\t') || i == 0x7f) of |= is_control;
        if (i <= 0x20 || i >= 0x7f || i == '#') of |= ends_target;
        classes[i] = static_cast<unsigned char>(of);
    }
    return classes;
}();

struct plain_blocks {
    template <wanted What>
    static block_masks classify(const char* data, std::size_t size) noexcept {
        block_masks masks;
        for (std::size_t i = 0; i < size; ++i) {
            const std::uint64_t of = byte_classes[static_cast<unsigned char>(data[i])];
            masks.delimiters |= (of & 1) << i;
            masks.controls |= (of >> 1 & 1) << i;
            masks.target_end |= (of >> 2) << i;
        }
        return masks;
    }
    template <wanted What>
    static block_masks classify_block(const char* data) noexcept {
        return classify<What>(data, block_size);
    }
    // An input of 16 to 63 bytes.
    template <wanted What>
    static block_masks classify_short(const char* data, std::size_t size) noexcept {
        return classify<What>(data, size);
    }
};

#if defined(__x86_64__)

#define EDDY_WIDE [[gnu::target("avx2,bmi,bmi2")]] static inline

// A byte is of a token when the bit that its high half names is set in the entry of its low half.
struct avx2_blocks {
    struct half_masks {
        std::uint32_t delimiters;
        std::uint32_t controls;
        std::uint32_t target_end;
    };

    // Bits of the rows of ASCII by the high half: six for tokens, the highest two for controls.
    static constexpr unsigned char row_bits[16] = {0x40, 0x80, 1, 2, 4, 8, 16, 32};
    // By the low half: the rows in which the byte is of a token or a control.
    static constexpr std::array<unsigned char, 16> rows_of = [] {
        std::array<unsigned char, 16> rows{};
        for (std::size_t i = 0; i < 128; ++i) {
            const unsigned bit = row_bits[i >> 4];
            const bool has = bit >= 0x40 ? (byte_classes[i] & is_control) != 0
                                         : (byte_classes[i] & is_delimiter) == 0;
            if (has) rows[i & 15] = static_cast<unsigned char>(rows[i & 15] | bit);
        }
        return rows;
    }();

    EDDY_WIDE __m256i table(const unsigned char* of_16) noexcept {
        return _mm256_broadcastsi128_si256(
            _mm_loadu_si128(reinterpret_cast<const __m128i*>(of_16)));
    }
    template <wanted What>
    EDDY_WIDE half_masks classify_half(__m256i bytes) noexcept {
        const __m256i high = _mm256_and_si256(_mm256_srli_epi16(bytes, 4), _mm256_set1_epi8(15));
        const __m256i row = _mm256_and_si256(_mm256_shuffle_epi8(table(rows_of.data()), bytes),
                                             _mm256_shuffle_epi8(table(row_bits), high));
        const __m256i del = _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(0x7f));
        // The highest bit: doubled with saturation, only the two bits of controls reach it.
        const __m256i control = _mm256_or_si256(_mm256_adds_epu8(row, row), del);
        const __m256i none = _mm256_cmpeq_epi8(row, _mm256_setzero_si256());
        half_masks masks{};
        masks.controls = bits_of(control);
        masks.delimiters = bits_of(_mm256_or_si256(control, none));
        if constexpr (What == wanted::target_also) {
            // Signed, so bytes beyond ASCII are below the space, too.
            const __m256i below = _mm256_cmpgt_epi8(_mm256_set1_epi8(0x21), bytes);
            const __m256i fragment = _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8('#'));
            masks.target_end = bits_of(_mm256_or_si256(_mm256_or_si256(below, fragment), del));
        }
        return masks;
    }
    EDDY_WIDE std::uint32_t bits_of(__m256i mask) noexcept {
        return static_cast<std::uint32_t>(_mm256_movemask_epi8(mask));
    }
    EDDY_WIDE __m256i load(const char* data) noexcept {
        return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(data));
    }
    EDDY_WIDE std::uint64_t join(std::uint32_t low, std::uint32_t high) noexcept {
        return std::uint64_t{high} << 32 | low;
    }
    template <wanted What>
    EDDY_WIDE block_masks classify_block(const char* data) noexcept {
        const half_masks low = classify_half<What>(load(data));
        const half_masks high = classify_half<What>(load(data + 32));
        return {join(low.delimiters, high.delimiters), join(low.controls, high.controls),
                join(low.target_end, high.target_end)};
    }
    // An input of 16 to 63 bytes: the second load overlaps the first in place of reading beyond it.
    template <wanted What>
    EDDY_WIDE block_masks classify_short(const char* data, std::size_t size) noexcept {
        if (size >= 32) {
            const half_masks low = classify_half<What>(load(data));
            const half_masks high = classify_half<What>(load(data + size - 32));
            const unsigned shift = static_cast<unsigned>(size - 32);
            return {low.delimiters | std::uint64_t{high.delimiters} << shift,
                    low.controls | std::uint64_t{high.controls} << shift,
                    low.target_end | std::uint64_t{high.target_end} << shift};
        }
        // Two halves of 16 bytes in one vector.
        const __m128i first = _mm_loadu_si128(reinterpret_cast<const __m128i*>(data));
        const __m128i second = _mm_loadu_si128(reinterpret_cast<const __m128i*>(data + size - 16));
        const half_masks both = classify_half<What>(_mm256_set_m128i(second, first));
        const unsigned shift = static_cast<unsigned>(size - 16);
        const auto merge = [shift](std::uint32_t mask) {
            return std::uint64_t{mask & 0xffffU} | std::uint64_t{mask >> 16} << shift;
        };
        return {merge(both.delimiters), merge(both.controls), merge(both.target_end)};
    }
};

#endif

// --- The walk over the delimiters ---

// The first letters of the names that kind_of() knows, by their sizes, of which no two are equal.
constexpr std::array<char, 32> known_first = [] {
    std::array<char, 32> first{};
    for (const std::string_view name :
         {"connection", "content-length", "expect", "host", "transfer-encoding", "upgrade"})
        first[name.size()] = name[0];
    return first;
}();

// False of most names: the others have to be compared.
constexpr bool may_be_known(char first, std::size_t size) noexcept {
    return known_first[size % known_first.size()] == (first | 0x20);
}

/// Masks of the block at hand. The last block of an input ends with it, so it overlaps the one
/// before it; only an input shorter than a block has a shorter one.
template <class Blocks>
struct block_cursor {
    const char* data;
    std::size_t size;
    std::size_t base = 0;
    block_masks masks{};

    template <wanted What>
    [[gnu::always_inline]] inline void load_first() noexcept {
        if (size >= block_size) [[likely]]
            masks = Blocks::template classify_block<What>(data);
        else
            masks = Blocks::template classify_short<What>(data, size);
    }
    template <wanted What>
    [[gnu::always_inline]] inline void load_at(std::size_t place) noexcept {
        base = place;
        masks = Blocks::template classify_block<What>(data + base);
    }
    // False at the end of the input.
    template <wanted What>
    [[gnu::always_inline]] inline bool load_next() noexcept {
        if (base + block_size >= size) return false;
        load_at<What>(std::min(base + block_size, size - block_size));
        return true;
    }
};

// One store of 16 bytes, which the copy of the fields reads at once. It would wait for four.
inline head_scan::field as_field(std::uint64_t name_at, std::uint64_t name_size,
                                 std::uint64_t value_at, std::uint64_t value_size) noexcept {
    using pair = std::uint64_t __attribute__((vector_size(16)));
    static_assert(sizeof(pair) == sizeof(head_scan::field));
    static_assert(std::endian::native == std::endian::little);
    const pair both = {name_at | name_size << 32, value_at | value_size << 32};
    return std::bit_cast<head_scan::field>(both);
}

// In a value and the byte behind it, tab is the only byte below the space.
constexpr bool is_blank_or_end(char c) noexcept { return static_cast<unsigned char>(c) <= ' '; }

// `out` is complete only when true.
template <class Blocks>
[[gnu::always_inline]] inline bool walk_fields(block_cursor<Blocks> blocks, std::size_t at,
                                               head_scan& out) noexcept {
    const char* const data = blocks.data;
    const std::size_t size = blocks.size;
    const std::size_t fields_at = at;
    head_scan::field* field = out.fields.data();
    std::uint64_t candidates = 0;  // the last field's bit is the lowest
    for (;;) {
        // The line ends at its first control byte. The first delimiter is there at the latest.
        std::uint64_t delimiters = 0;
        std::uint64_t controls = 0;
        if (at - blocks.base < block_size) {
            delimiters = blocks.masks.delimiters >> (at - blocks.base);
            controls = blocks.masks.controls >> (at - blocks.base);
        }
        std::size_t colon = at + static_cast<unsigned>(std::countr_zero(delimiters));
        std::size_t end = at + static_cast<unsigned>(std::countr_zero(controls));
        if (controls == 0) {
            bool found = delimiters != 0;
            std::size_t from = 0;
            do {
                if (at == size || !blocks.template load_next<wanted::fields>()) return false;
                from = std::max(at, blocks.base);
                controls = blocks.masks.controls >> (from - blocks.base);
                delimiters = blocks.masks.delimiters >> (from - blocks.base);
                if (!found && delimiters != 0) {
                    colon = from + static_cast<unsigned>(std::countr_zero(delimiters));
                    found = true;
                }
            } while (controls == 0);
            end = from + static_cast<unsigned>(std::countr_zero(controls));
        }
        if (end + 1 == size ||
            load_word<std::uint16_t>(data + end) != load_word<std::uint16_t>("\r\n"))
            return false;
        if (data[colon] != ':') {
            if (end != at) return false;
            break;
        }
        if (colon == at || field == out.fields.data() + head_scan::field_limit) return false;
        std::size_t first = colon + 1;
        std::size_t last = end;
        // Most values follow one space.
        first += data[first] == ' ' ? 1 : 0;
        if (is_blank_or_end(data[first])) [[unlikely]] {
            while (first < end && is_blank_or_end(data[first])) ++first;
        }
        if (is_blank_or_end(data[last - 1])) [[unlikely]] {
            while (last > first && is_blank_or_end(data[last - 1])) --last;
        }
        *field++ = as_field(at - fields_at, colon - at, first - fields_at, last - first);
        candidates = candidates << 1 | (may_be_known(data[at], colon - at) ? 1U : 0U);
        at = end + 2;
    }
    out.fields_at = fields_at;
    out.fields_size = at + 2 - fields_at;
    out.field_count = static_cast<std::size_t>(field - out.fields.data());
    out.candidates = candidates == 0 ? 0 : candidates << (head_scan::field_limit - out.field_count);
    return true;
}

template <class Blocks>
[[gnu::always_inline]] inline bool walk_request(std::string_view input, head_scan& out) noexcept {
    block_cursor<Blocks> blocks{input.data(), input.size()};
    blocks.template load_first<wanted::target_also>();
    const char* const data = input.data();
    // The space behind the method ends a target, too. A method that is longer than a block, or has
    // a '#', is left to the line parser.
    const auto space = static_cast<std::size_t>(std::countr_zero(blocks.masks.delimiters));
    const std::uint64_t spaces = blocks.masks.target_end;
    if (space - 1 >= block_size - 1 || data[space] != ' ' ||
        space != static_cast<std::size_t>(std::countr_zero(spaces))) {
        return false;
    }
    std::uint64_t ends = spaces & (spaces - 1);
    while (ends == 0) {
        const std::size_t seen = blocks.base + block_size;
        if (!blocks.template load_next<wanted::target_also>()) return false;
        ends = blocks.masks.target_end & (~std::uint64_t{0} << (seen - blocks.base));
    }
    const std::size_t end = blocks.base + static_cast<unsigned>(std::countr_zero(ends));
    constexpr std::string_view version = " HTTP/1.1\r\n";
    if (end == space + 1 || input.size() - end < version.size()) return false;
    // The minor version's digit is byte 8 of these 11.
    const char digit = data[end + 8];
    if (load_word<std::uint64_t>(data + end) != load_word<std::uint64_t>(version.data()) ||
        !is_digit(digit) || data[end + 9] != '\r' || data[end + 10] != '\n') {
        return false;
    }
    out.method_size = space;
    out.target_size = end - space - 1;
    out.minor_version = digit == '0' ? 0 : 1;
    return walk_fields(blocks, end + version.size(), out);
}

template <class Blocks>
[[gnu::always_inline]] inline bool walk_from(std::string_view input, std::size_t at,
                                             head_scan& out) noexcept {
    block_cursor<Blocks> blocks{input.data(), input.size()};
    if (at < block_size)
        blocks.template load_first<wanted::fields>();
    else
        blocks.template load_at<wanted::fields>(std::min(at, input.size() - block_size));
    return walk_fields(blocks, at, out);
}

#if defined(__x86_64__)
EDDY_WIDE bool walk_request_wide(std::string_view input, head_scan& out) noexcept {
    return walk_request<avx2_blocks>(input, out);
}
EDDY_WIDE bool walk_from_wide(std::string_view input, std::size_t at, head_scan& out) noexcept {
    return walk_from<avx2_blocks>(input, at, out);
}
#undef EDDY_WIDE
#endif

}  // namespace

bool has_kernel(scan_kernel kernel) noexcept {
#if defined(__x86_64__)
    if (kernel == scan_kernel::avx2) {
        return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("bmi") != 0 &&
               __builtin_cpu_supports("bmi2") != 0;
    }
#endif
    return kernel == scan_kernel::plain;
}

namespace {

// False until it is initialised, which is right, too.
const bool has_avx2 = has_kernel(scan_kernel::avx2);
const auto fastest = [] { return has_avx2 ? scan_kernel::avx2 : scan_kernel::plain; };

}  // namespace

bool scan_request(std::string_view input, head_scan& out) noexcept {
    return scan_request_with(fastest(), input, out);
}

bool scan_fields(std::string_view input, std::size_t at, head_scan& out) noexcept {
    return scan_fields_with(fastest(), input, at, out);
}

bool scan_request_with(scan_kernel kernel, std::string_view input, head_scan& out) noexcept {
    if (input.size() < least_size) return false;
    input = input.substr(0, head_scan::size_limit);
#if defined(__x86_64__)
    if (kernel == scan_kernel::avx2) return walk_request_wide(input, out);
#endif
    static_cast<void>(kernel);
    return walk_request<plain_blocks>(input, out);
}

bool scan_fields_with(scan_kernel kernel, std::string_view input, std::size_t at,
                      head_scan& out) noexcept {
    if (input.size() < least_size) return false;
    input = input.substr(0, head_scan::size_limit);
    if (at > input.size()) return false;
#if defined(__x86_64__)
    if (kernel == scan_kernel::avx2) return walk_from_wide(input, at, out);
#endif
    static_cast<void>(kernel);
    return walk_from<plain_blocks>(input, at, out);
}

}  // namespace eddy::http1
