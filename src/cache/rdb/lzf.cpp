// LZF codec: runs of literal bytes, and copies of earlier output.
//
//     000nnnnn                      n + 1 literal bytes follow
//     nnnddddd dddddddd             n + 2 bytes (n 1 to 6) from d + 1 bytes back
//     111ddddd nnnnnnnn dddddddd    n + 9 bytes from d + 1 bytes back
#include "cache/rdb/lzf.hpp"

#include <cstdint>
#include <cstring>

namespace eddy::cache::rdb {

bool expand_lzf(std::string_view packed, char* to, std::size_t size) noexcept {
    const char* from = packed.data();
    const char* const from_end = from + packed.size();
    char* const begin = to;
    char* const end = to + size;
    const auto left_in = [&] { return static_cast<std::size_t>(from_end - from); };
    const auto left_out = [&] { return static_cast<std::size_t>(end - to); };
    while (from < from_end) {
        const auto control = static_cast<std::uint8_t>(*from++);
        if (control < 32) {
            const std::size_t run = control + 1U;
            if (run > left_in() || run > left_out()) return false;
            std::memcpy(to, from, run);
            from += run;
            to += run;
            continue;
        }
        std::size_t run = (control >> 5U) + 2U;
        if (run == 9) {
            if (left_in() == 0) return false;
            run += static_cast<std::uint8_t>(*from++);
        }
        if (left_in() == 0) return false;
        const std::size_t distance =
            ((control & 31U) << 8U | static_cast<std::uint8_t>(*from++)) + std::size_t{1};
        if (distance > static_cast<std::size_t>(to - begin) || run > left_out()) return false;
        const char* source = to - distance;
        if (distance >= run) {
            std::memcpy(to, source, run);
            to += run;
        } else {
            // It overlaps: the bytes repeat.
            for (; run > 0; --run) *to++ = *source++;
        }
    }
    return to == end;
}

}  // namespace eddy::cache::rdb
