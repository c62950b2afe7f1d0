// Tests of the table of `eddy ls`.
#include "cli/text/list_text.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

namespace eddy::cli {
namespace {

const auto noon = std::chrono::system_clock::from_time_t(1'795'867'200);  // 2026-11-28T12:00:00Z

json some_runtimes() {
    return {{{"id", "0123456789ab"},
             {"name", "db"},
             {"type", "cache"},
             {"port", 6379},
             {"status", "running"},
             {"uptime_s", 7500.0},
             {"connections", 12},
             {"owner", ""},
             {"group", ""},
             {"created", "2026-11-28T11:58:00Z"}},
            {{"id", "ba9876543210"},
             {"name", "a-name-of-some-length"},
             {"type", "server"},
             {"port", nullptr},
             {"status", "failed"},
             {"reason", "no such address"},
             {"uptime_s", nullptr},
             {"connections", 0},
             {"owner", ""},
             {"group", ""},
             {"created", "2025-11-01T11:58:00Z"}}};
}

std::string shown(const json& list, std::size_t width, bool is_wide = false) {
    return list_text(list, {.width = width, .is_wide = is_wide, .now = noon});
}

TEST(list_text, has_ages_and_no_column_that_is_empty) {
    EXPECT_EQ(shown(some_runtimes(), 0),
              "NAME                   TYPE    PORT  STATUS   UPTIME  CONNECTIONS  CREATED\n"
              "db                     cache   6379  running  2h 5m   12           2 minutes ago\n"
              "a-name-of-some-length  server  -     failed   -       0            1 year ago\n");
}

TEST(list_text, marks_one_that_runs_and_has_lost_an_address) {
    json list = some_runtimes();
    list.erase(1);
    EXPECT_EQ(shown(list, 0, true).find("REASON"), std::string::npos);
    const auto colours = [&] {
        return list_text(list, {.width = 0, .colours = true, .now = noon});
    };
    const std::string before = colours();
    list[0]["reason"] = "not listening on tcp://127.0.0.1:6379: it is in use";
    EXPECT_NE(colours(), before);
    EXPECT_NE(shown(list, 0, true).find("not listening on tcp://127.0.0.1:6379: it is in use"),
              std::string::npos);
}

TEST(list_text, shows_what_else_holds_the_places_of_connections) {
    json list = some_runtimes();
    list[0]["handshakes"] = 3;
    list[1]["handshakes"] = 0;
    const std::string text = shown(list, 0);
    EXPECT_NE(text.find("  12 (3 in handshake)  "), std::string::npos) << text;
    EXPECT_NE(text.find("  0                    "), std::string::npos) << text;
}

TEST(list_text, fits_any_terminal) {
    json list = some_runtimes();
    list[0]["owner"] = "a-name-of-some-length";
    list[0]["group"] = "web";
    for (std::size_t width = 20; width < 150; ++width) {
        std::istringstream lines(shown(list, width));
        std::size_t count = 0;
        for (std::string line; std::getline(lines, line); ++count) {
            // An ellipsis has three bytes.
            const std::size_t cut = line.contains("…") ? 2 : 0;
            EXPECT_LE(line.size() - cut, width) << line;
        }
        EXPECT_EQ(count, 3U);
        EXPECT_NE(shown(list, width).find("running"), std::string::npos) << width;
    }
    EXPECT_NE(shown(list, 150).find("OWNER"), std::string::npos);
    EXPECT_EQ(shown(list, 80).find("OWNER"), std::string::npos);
    EXPECT_NE(shown(list, 80).find("CONNECTIONS"), std::string::npos);
    EXPECT_NE(shown(list, 40).find("a-name-of-some-length"), std::string::npos);
    EXPECT_NE(shown(list, 24).find("…"), std::string::npos);
}

TEST(list_text, wide_shows_all_on_any_terminal) {
    const std::string text = shown(some_runtimes(), 40, true);
    EXPECT_EQ(text.find("ID "), 0U);
    for (const char* const part : {"OWNER", "GROUP", "2026-11-28T11:58:00Z", "no such address"})
        EXPECT_NE(text.find(part), std::string::npos) << part;
    json list = some_runtimes();
    list.erase(1);
    EXPECT_EQ(shown(list, 40, true).find("REASON"), std::string::npos) << "nothing failed";
}

TEST(list_text, of_no_runtimes_is_a_header) {
    EXPECT_EQ(shown(json::array(), 80), "NAME  TYPE  PORT  STATUS  UPTIME  CONNECTIONS  CREATED\n");
}

TEST(age_text, says_the_largest_unit) {
    EXPECT_EQ(age_text("2026-11-28T12:00:00Z", noon), "just now");
    EXPECT_EQ(age_text("2026-11-28T12:00:05Z", noon), "just now") << "of another clock";
    EXPECT_EQ(age_text("2026-11-28T11:59:59Z", noon), "1 second ago");
    EXPECT_EQ(age_text("2026-11-28T11:58:01Z", noon), "1 minute ago");
    EXPECT_EQ(age_text("2026-11-28T09:00:00Z", noon), "3 hours ago");
    EXPECT_EQ(age_text("2026-11-26T12:00:00Z", noon), "2 days ago");
    EXPECT_EQ(age_text("2026-08-28T12:00:00Z", noon), "3 months ago");
    EXPECT_EQ(age_text("2020-08-28T12:00:00Z", noon), "6 years ago");
    EXPECT_EQ(age_text("some day", noon), "some day");
}

}  // namespace
}  // namespace eddy::cli
