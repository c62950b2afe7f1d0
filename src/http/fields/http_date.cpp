// Calendar without locale and time zone: strftime(3) and timegm(3) would depend on both.
#include "http/fields/http_date.hpp"

#include <eddy/base/assert.hpp>

#include "base/text/text.hpp"

#include <algorithm>
#include <chrono>
#include <ctime>

namespace eddy::http {
namespace {

using namespace std::string_view_literals;

constexpr std::array days{"Sunday"sv,   "Monday"sv, "Tuesday"sv, "Wednesday"sv,
                          "Thursday"sv, "Friday"sv, "Saturday"sv};
constexpr std::array months{"Jan"sv, "Feb"sv, "Mar"sv, "Apr"sv, "May"sv, "Jun"sv,
                            "Jul"sv, "Aug"sv, "Sep"sv, "Oct"sv, "Nov"sv, "Dec"sv};
constexpr std::size_t short_day = 3;

char* put_text(char* to, std::string_view text) noexcept { return std::ranges::copy(text, to).out; }

char* put_number(char* to, unsigned number, int digits) noexcept {
    for (int i = digits; i-- > 0; number /= 10) to[i] = static_cast<char>('0' + number % 10);
    return to + digits;
}

/// Reader of a text from its front; after a mismatch nothing more is read.
class scanner {
public:
    explicit scanner(std::string_view text) noexcept : rest_(text) {}

    bool has_matched_all() const noexcept { return good_ && rest_.empty(); }

    void skip(std::string_view text) noexcept {
        good_ = good_ && rest_.starts_with(text);
        if (good_) rest_.remove_prefix(text.size());
    }
    bool skip_if(std::string_view text) noexcept {
        if (!good_ || !rest_.starts_with(text)) return false;
        rest_.remove_prefix(text.size());
        return true;
    }
    int number(std::size_t digits) noexcept {
        good_ = good_ && rest_.size() >= digits &&
                std::ranges::all_of(rest_.substr(0, digits), is_digit);
        if (!good_) return 0;
        int value = 0;
        for (const char c : rest_.substr(0, digits)) value = value * 10 + (c - '0');
        rest_.remove_prefix(digits);
        return value;
    }
    unsigned month() noexcept {
        for (unsigned i = 0; i < months.size(); ++i)
            if (skip_if(months[i])) return i + 1;
        good_ = false;
        return 0;
    }

private:
    std::string_view rest_;
    bool good_ = true;
};

struct civil_time {
    int year = 0;
    unsigned month = 0;
    unsigned day = 0;
    int hour = 0;
    int minute = 0;
    int second = 0;

    void read_clock(scanner& from) noexcept {
        hour = from.number(2);
        from.skip(":");
        minute = from.number(2);
        from.skip(":");
        second = from.number(2);
    }
};

std::optional<std::int64_t> seconds_of(const civil_time& when) noexcept {
    using namespace std::chrono;
    const year_month_day date{year(when.year), month(when.month), day(when.day)};
    // A leap second is the 60th.
    if (!date.ok() || when.hour > 23 || when.minute > 59 || when.second > 60) return std::nullopt;
    const auto midnight = sys_days(date).time_since_epoch();
    return duration_cast<seconds>(midnight).count() + when.hour * 3600 + when.minute * 60 +
           when.second;
}

int year_of(std::int64_t seconds) noexcept {
    using namespace std::chrono;
    const sys_seconds at{std::chrono::seconds(seconds)};
    return static_cast<int>(year_month_day(floor<std::chrono::days>(at)).year());
}

}  // namespace

std::string_view http_date_writer::write_field(std::int64_t seconds) noexcept {
    using namespace std::chrono;
    seconds = std::clamp(seconds, earliest_http_date, latest_http_date);
    if (written_ != seconds) {
        const sys_seconds at{std::chrono::seconds(seconds)};
        const auto midnight = floor<std::chrono::days>(at);
        const year_month_day date(midnight);
        const hh_mm_ss clock(at - midnight);
        char* to = text_.data();
        to = put_text(to, "Date: ");
        to = put_text(to, days[weekday(midnight).c_encoding()].substr(0, short_day));
        to = put_text(to, ", ");
        to = put_number(to, static_cast<unsigned>(date.day()), 2);
        to = put_text(to, " ");
        to = put_text(to, months[static_cast<unsigned>(date.month()) - 1]);
        to = put_text(to, " ");
        to = put_number(to, static_cast<unsigned>(static_cast<int>(date.year())), 4);
        to = put_text(to, " ");
        to = put_number(to, static_cast<unsigned>(clock.hours().count()), 2);
        to = put_text(to, ":");
        to = put_number(to, static_cast<unsigned>(clock.minutes().count()), 2);
        to = put_text(to, ":");
        to = put_number(to, static_cast<unsigned>(clock.seconds().count()), 2);
        put_text(to, " GMT\r\n");
        written_ = seconds;
    }
    return {text_.data(), text_.size()};
}

std::optional<std::int64_t> parse_http_date(std::string_view text, std::int64_t now) noexcept {
    const auto* const day = std::ranges::find_if(
        days, [&](std::string_view each) { return text.starts_with(each.substr(0, short_day)); });
    if (day == days.end()) return std::nullopt;
    civil_time when;
    scanner from(text);
    // RFC 850: "Sunday, 06-Nov-94 08:49:37 GMT".
    if (from.skip_if(*day)) {
        from.skip(", ");
        when.day = static_cast<unsigned>(from.number(2));
        from.skip("-");
        when.month = from.month();
        from.skip("-");
        when.year = from.number(2);
        from.skip(" ");
        when.read_clock(from);
        from.skip(" GMT");
        const int latest = year_of(std::clamp(now, earliest_http_date, latest_http_date)) + 50;
        when.year += latest - latest % 100;
        if (when.year > latest) when.year -= 100;
    } else {
        from.skip(day->substr(0, short_day));
        if (from.skip_if(", ")) {  // "Sun, 06 Nov 1994 08:49:37 GMT"
            when.day = static_cast<unsigned>(from.number(2));
            from.skip(" ");
            when.month = from.month();
            from.skip(" ");
            when.year = from.number(4);
            from.skip(" ");
            when.read_clock(from);
            from.skip(" GMT");
        } else {  // asctime(3): "Sun Nov  6 08:49:37 1994"
            from.skip(" ");
            when.month = from.month();
            from.skip(" ");
            when.day = static_cast<unsigned>(from.skip_if(" ") ? from.number(1) : from.number(2));
            from.skip(" ");
            when.read_clock(from);
            from.skip(" ");
            when.year = from.number(4);
        }
    }
    if (!from.has_matched_all()) return std::nullopt;
    return seconds_of(when);
}

std::int64_t wall_clock_seconds() noexcept {
    // The time of the kernel's last tick, which costs a fifth of reading the clock.
    timespec now{};
    EDDY_ASSERT(::clock_gettime(CLOCK_REALTIME_COARSE, &now) == 0);
    return now.tv_sec;
}

}  // namespace eddy::http
