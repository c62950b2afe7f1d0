// Dates of HTTP (RFC 9110, 5.6.7): a writer of the one form that is sent, and a parser of all
// three.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace eddy::http {

/// The years that a date can have, as seconds since 1970: 0000 to 9999.
inline constexpr std::int64_t earliest_http_date = -62'167'219'200;
inline constexpr std::int64_t latest_http_date = 253'402'300'799;

/// Writer of dates such as "Sun, 06 Nov 1994 08:49:37 GMT". Writing the second of the last call
/// again costs a comparison. One thread.
class http_date_writer {
public:
    /// The date of a second since 1970; the nearest that can be written for one beyond the years.
    /// The view ends with the next call.
    std::string_view write(std::int64_t seconds) noexcept {
        return write_field(seconds).substr(name_size, date_size);
    }
    /// The field line "Date: Sun, 06 Nov 1994 08:49:37 GMT" with its CRLF; otherwise as write().
    std::string_view write_field(std::int64_t seconds) noexcept;

private:
    static constexpr std::size_t name_size = 6;
    static constexpr std::size_t date_size = 29;
    std::array<char, name_size + date_size + 2> text_{};
    std::optional<std::int64_t> written_;
};

/// The second since 1970 of a date in one of the three forms; none when it has none of them. The
/// name of the day is not compared with the date. `now`, a second since 1970, decides about years
/// of two digits: they are at most 50 years ahead. Any thread.
std::optional<std::int64_t> parse_http_date(std::string_view text, std::int64_t now) noexcept;

/// The second since 1970 that the system's clock shows. Any thread.
std::int64_t wall_clock_seconds() noexcept;

}  // namespace eddy::http
