// Tests of the table of traffic: rates, orders, and terminals that are too small.
#include "cli/text/traffic_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

namespace eddy::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

traffic made(std::string name, double requests) {
    traffic row;
    row.name = std::move(name);
    row.type = "cache";
    row.status = "running";
    row.messages_in = requests;
    row.bytes_out = requests * 10;
    return row;
}

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> all;
    std::istringstream from(text);
    for (std::string line; std::getline(from, line);) all.push_back(line);
    return all;
}

TEST(traffic_text, counts_of_statistics) {
    const traffic row = traffic_of({{"name", "db"},
                                    {"type", "cache"},
                                    {"status", "running"},
                                    {"connections", 2},
                                    {"messages_in", 7},
                                    {"latency", {{"count", 3}, {"p50_us", 1.5}, {"p99_us", 9.0}}},
                                    {"used_memory_bytes", 4096}});
    EXPECT_EQ(row.messages_in, 7);
    EXPECT_EQ(row.p99_us, 9.0);
    EXPECT_EQ(row.memory_bytes, 4096);
    EXPECT_FALSE(traffic_of({{"name", "x"}, {"latency", nullptr}}).p50_us);
    EXPECT_FALSE(traffic_of({{"name", "x"}, {"latency", {{"count", 0}}}}).p50_us);
}

TEST(traffic_text, rates_are_of_the_time_between) {
    const auto rates = rates_between({made("a", 10), made("b", 50)},
                                     {made("a", 30), made("b", 4), made("c", 6)}, 2);
    ASSERT_EQ(rates.size(), 3U);
    EXPECT_EQ(rates[0].messages_in, 10);
    EXPECT_EQ(rates[0].bytes_out, 100);
    EXPECT_EQ(rates[1].messages_in, 2) << "it began anew";
    EXPECT_EQ(rates[2].messages_in, 3) << "it is new";
    EXPECT_EQ(rates_json(rates)[0].at("messages_in_per_s"), 10);
}

TEST(traffic_text, orders) {
    std::vector<traffic> rows = {made("b", 1), made("a", 1), made("c", 5)};
    EXPECT_TRUE(sort_traffic(rows, "name"));
    EXPECT_EQ(rows[0].name, "a");
    EXPECT_TRUE(sort_traffic(rows, "requests"));
    EXPECT_EQ(rows[0].name, "c");
    EXPECT_EQ(rows[1].name, "a") << "equal ones by name";
    for (const std::string& key : traffic_orders()) EXPECT_TRUE(sort_traffic(rows, key)) << key;
    EXPECT_FALSE(sort_traffic(rows, "beauty"));
}

TEST(traffic_text, fits_a_terminal_of_any_size) {
    std::vector<traffic> rows;
    for (int i = 0; i < 100; ++i) rows.push_back(made("a-long-name-" + std::to_string(i), i));
    for (const std::size_t width : {20U, 40U, 80U, 132U, 300U}) {
        for (const std::size_t height : {3U, 24U, 101U, 200U}) {
            const auto lines = lines_of(traffic_text(rows, {.width = width, .height = height}));
            EXPECT_LE(lines.size(), height);
            for (const std::string& line : lines) EXPECT_LE(line.size(), width + 2) << line;
        }
    }
    EXPECT_EQ(lines_of(traffic_text(rows, {.height = 24})).back(), "... and 78 more");
    EXPECT_THAT(traffic_text(rows, {}), HasSubstr("a-long-name-99"));
    EXPECT_THAT(traffic_text(rows, {.height = 101}), Not(HasSubstr("more")));
}

TEST(traffic_text, rates_have_their_unit) {
    const std::string text = traffic_text({made("a", 2.25)}, {.is_rate = true});
    EXPECT_THAT(text, HasSubstr("IN/S"));
    EXPECT_THAT(text, HasSubstr("2.2"));
    EXPECT_THAT(traffic_text({made("a", 1234)}, {}), HasSubstr("1,234"));
}

}  // namespace
}  // namespace eddy::cli
