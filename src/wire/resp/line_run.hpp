// Skipping of a run of one-line replies ("+OK", ":7"), the commonest answers to a pipeline of
// writes. Two versions of one contract: SSE2, which takes sixteen bytes in about a nanosecond, and
// plain C++.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace eddy::resp::detail {

struct line_run {
    const char* at;       ///< the first byte not skipped
    std::uint64_t lines;  ///< lines whose end was skipped
    bool within_line;     ///< `at` is not a line's first byte
};

inline bool is_line_reply(char type) noexcept { return type == '+' || type == ':'; }

/// `at` is the first byte of a status or integer reply. Skips some of the complete lines that are
/// such replies, as many as suits the method; what is left is for the caller.
inline line_run skip_lines_portable(const char* at, const char* end) noexcept {
    line_run run{at, 0, false};
    while (run.at < end && is_line_reply(*run.at)) {
        const void* newline = std::memchr(run.at, '\n', static_cast<std::size_t>(end - run.at));
        if (!newline) break;
        run.at = static_cast<const char*>(newline) + 1;
        ++run.lines;
    }
    return run;
}

#if defined(__SSE2__)

/// A line's end is the byte before a type, so one block is compared with itself, shifted by one: as
/// long as each newline in it has a status's or an integer's type behind it, newlines are counted.
inline line_run skip_lines_sse2(const char* at, const char* end) noexcept {
    constexpr std::ptrdiff_t block = 16;
    constexpr int counter_limit = 255;  // a lane counts at most one line a block
    const __m128i newlines = _mm_set1_epi8('\n');
    const __m128i statuses = _mm_set1_epi8('+');
    const __m128i integers = _mm_set1_epi8(':');
    line_run run{at, 0, false};
    bool only_lines = true;
    while (only_lines && end - run.at > block) {
        __m128i counters = _mm_setzero_si128();
        for (int i = 0; i < counter_limit && end - run.at > block; ++i) {
            const __m128i here = _mm_loadu_si128(reinterpret_cast<const __m128i*>(run.at));
            const __m128i next = _mm_loadu_si128(reinterpret_cast<const __m128i*>(run.at + 1));
            const __m128i ends = _mm_cmpeq_epi8(here, newlines);
            const __m128i lines =
                _mm_or_si128(_mm_cmpeq_epi8(next, statuses), _mm_cmpeq_epi8(next, integers));
            if (_mm_movemask_epi8(_mm_andnot_si128(lines, ends)) != 0) {
                only_lines = false;
                break;
            }
            counters = _mm_sub_epi8(counters, ends);
            run.at += block;
        }
        const __m128i sums = _mm_sad_epu8(counters, _mm_setzero_si128());
        run.lines += static_cast<std::uint64_t>(_mm_cvtsi128_si64(sums)) +
                     static_cast<std::uint64_t>(_mm_cvtsi128_si64(_mm_srli_si128(sums, 8)));
    }
    run.within_line = run.at != at && run.at[-1] != '\n';
    return run;
}

inline line_run skip_lines(const char* at, const char* end) noexcept {
    return skip_lines_sse2(at, end);
}

/// The first newline in [at, end), or null. Short lines cost no call.
inline const char* find_newline(const char* at, const char* end) noexcept {
    if (end - at >= 16) {
        const __m128i here = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
        const int ends = _mm_movemask_epi8(_mm_cmpeq_epi8(here, _mm_set1_epi8('\n')));
        if (ends != 0) return at + __builtin_ctz(static_cast<unsigned>(ends));
    }
    return static_cast<const char*>(std::memchr(at, '\n', static_cast<std::size_t>(end - at)));
}

#else

inline line_run skip_lines(const char* at, const char* end) noexcept {
    return skip_lines_portable(at, end);
}

inline const char* find_newline(const char* at, const char* end) noexcept {
    return static_cast<const char*>(std::memchr(at, '\n', static_cast<std::size_t>(end - at)));
}

#endif

}  // namespace eddy::resp::detail
