// Dates: the form that is written, and the three that are read.
#include "http/fields/http_date.hpp"

#include <eddy/base/random.hpp>

#include "base/test_rounds.hpp"
#include "base/test_seed.hpp"

#include <gtest/gtest.h>
#include <time.h>

#include <array>
#include <string>

namespace eddy::http {
namespace {

constexpr std::int64_t example = 784'111'777;  // of RFC 9110

std::string written(std::int64_t seconds) { return std::string(http_date_writer().write(seconds)); }

TEST(http_date, the_written_form_is_the_one_of_the_standard) {
    EXPECT_EQ(written(example), "Sun, 06 Nov 1994 08:49:37 GMT");
    EXPECT_EQ(written(0), "Thu, 01 Jan 1970 00:00:00 GMT");
    EXPECT_EQ(written(-1), "Wed, 31 Dec 1969 23:59:59 GMT");
    EXPECT_EQ(written(951'782'400), "Tue, 29 Feb 2000 00:00:00 GMT");
    EXPECT_EQ(written(latest_http_date), "Fri, 31 Dec 9999 23:59:59 GMT");
    EXPECT_EQ(written(earliest_http_date), "Sat, 01 Jan 0000 00:00:00 GMT");
}

TEST(http_date, years_beyond_four_digits_become_the_nearest_that_has_them) {
    EXPECT_EQ(written(latest_http_date + 1), written(latest_http_date));
    EXPECT_EQ(written(INT64_MAX), written(latest_http_date));
    EXPECT_EQ(written(INT64_MIN), written(earliest_http_date));
}

TEST(http_date, a_writer_is_used_for_many_dates) {
    http_date_writer writer;
    for (const std::int64_t each : {example, example, example + 1, example})
        EXPECT_EQ(writer.write(each), written(each));
}

TEST(http_date, all_three_forms_are_read) {
    for (const char* text : {"Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT",
                             "Sun Nov  6 08:49:37 1994"})
        EXPECT_EQ(parse_http_date(text, example), example) << text;
    EXPECT_EQ(parse_http_date("Sun Nov 16 08:49:37 1994", 0), example + 10 * 86400);
    EXPECT_EQ(parse_http_date("Sat, 31 Dec 2016 23:59:60 GMT", 0), 1'483'228'800) << "leap second";
}

TEST(http_date, a_year_of_two_digits_is_at_most_fifty_years_ahead) {
    const auto year = [](const char* digits, std::int64_t now) {
        const auto read =
            parse_http_date(std::string("Sunday, 06-Nov-") + digits + " 08:49:37 GMT", now);
        return read ? written(*read).substr(12, 4) : "none";
    };
    const std::int64_t in_2026 = 1'795'000'000;
    EXPECT_EQ(year("26", in_2026), "2026");
    EXPECT_EQ(year("76", in_2026), "2076");
    EXPECT_EQ(year("77", in_2026), "1977");
    EXPECT_EQ(year("94", in_2026), "1994");
    EXPECT_EQ(year("00", in_2026), "2000");
    EXPECT_EQ(year("94", example), "1994");
    EXPECT_EQ(year("44", example), "2044");
    EXPECT_EQ(year("45", example), "1945");
}

TEST(http_date, what_is_no_date_is_refused) {
    for (const char* text : {"",
                             "0",
                             "-1",
                             "Sun",
                             "Sun,",
                             "Sun, 06 Nov 1994 08:49:37",
                             "Sun, 06 Nov 1994 08:49:37 UTC",
                             "Sun, 06 Nov 1994 08:49:37 GMT ",
                             " Sun, 06 Nov 1994 08:49:37 GMT",
                             "Sun, 6 Nov 1994 08:49:37 GMT",
                             "Sun, 06 nov 1994 08:49:37 GMT",
                             "sun, 06 Nov 1994 08:49:37 GMT",
                             "Sun, 06 Nov 94 08:49:37 GMT",
                             "Sun, 31 Feb 1994 08:49:37 GMT",
                             "Sun, 00 Nov 1994 08:49:37 GMT",
                             "Sun, 06 Nov 1994 24:00:00 GMT",
                             "Sun, 06 Nov 1994 08:60:37 GMT",
                             "Sun, 06 Nov 1994 08:49:61 GMT",
                             "Sunday, 06 Nov 1994 08:49:37 GMT",
                             "Sun, 06-Nov-94 08:49:37 GMT",
                             "Sun Nov 6 08:49:37 1994",
                             "Sun Nov  6 08:49:37 94",
                             "Sun, +6 Nov 1994 08:49:37 GMT",
                             "Sun, 06 Nov 1994 8:49:37 GMT",
                             "1994-11-06T08:49:37Z"})
        EXPECT_EQ(parse_http_date(text, example), std::nullopt) << text;
    EXPECT_EQ(parse_http_date(std::string_view("Sun\0 06 Nov", 11), example), std::nullopt);
}

TEST(http_date, dates_are_those_of_the_c_library) {
    random_generator dice(testing::seed_of_this_run());
    for (int i = 0; i < testing::rounds(10'000); ++i) {
        const std::int64_t seconds =
            earliest_http_date +
            static_cast<std::int64_t>(
                dice.below(static_cast<std::uint64_t>(latest_http_date - earliest_http_date) + 1));
        const time_t when = seconds;
        tm parts{};
        ASSERT_NE(::gmtime_r(&when, &parts), nullptr);
        std::array<char, 64> text{};
        ::strftime(text.data(), text.size(), "%a, %d %b ", &parts);
        std::string expected = text.data();
        const std::string year = std::to_string(parts.tm_year + 1900);
        expected += std::string(4 - year.size(), '0') + year;
        ::strftime(text.data(), text.size(), " %H:%M:%S GMT", &parts);
        expected += text.data();
        ASSERT_EQ(written(seconds), expected);
        ASSERT_EQ(parse_http_date(expected, 0), seconds);
    }
}

}  // namespace
}  // namespace eddy::http
