// Tests of the text of `eddy stats`.
#include "cli/text/stats_text.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace eddy::cli {
namespace {

using nlohmann::json;

TEST(stats_text, values_of_all_types_come_before_those_of_the_type) {
    const json stats = {{"name", "db"},        {"type", "cache"},
                        {"status", "running"}, {"uptime_s", 61.0},
                        {"connections", 2},    {"bytes_in", 2048},
                        {"a_total", 7.0},      {"used_memory_bytes", 4096.0},
                        {"latency", nullptr}};
    const std::string text = stats_text(stats);
    EXPECT_EQ(text.find("  uptime "), 0U) << text;
    EXPECT_NE(text.find("\n  connections           2\n"), std::string::npos) << text;
    EXPECT_LT(text.find("  bytes in"), text.find("  a total               7\n")) << text;
    EXPECT_NE(text.find("  used memory bytes     4"), std::string::npos) << text;
    EXPECT_EQ(text.find("latency"), std::string::npos) << text;
    EXPECT_EQ(text.find("cache"), std::string::npos) << text;
}

TEST(stats_text, a_long_name_does_not_touch_its_value) {
    const std::string text =
        stats_text({{"connections", 2}, {"parallel_commands_total", 0.0}, {"x_total", 3.0}});
    EXPECT_EQ(text,
              "  connections             2\n"
              "  parallel commands total 0\n"
              "  x total                 3\n");
}

TEST(stats_text, a_memory_limit_of_0_is_none) {
    EXPECT_EQ(stats_text({{"maxmemory_bytes", 0.0}}), "  maxmemory             no limit\n");
    EXPECT_NE(stats_text({{"maxmemory_bytes", 4194304.0}}).find(" 4.0 MiB\n"), std::string::npos);
}

TEST(stats_text, times_name_their_units_and_one_sample_is_one) {
    const auto times = [](int count, double most) {
        return json{{"count", count},
                    {"p50_us", 400556.0},
                    {"p99_us", most},
                    {"p999_us", most},
                    {"max_us", most}};
    };
    EXPECT_EQ(stats_text({{"request_seconds", times(2, 2'500'000)}}),
              "  request time          p50 400.6 ms, p99 2.5 s, p99.9 2.5 s, max 2.5 s\n");
    EXPECT_EQ(stats_text({{"latency", times(1, 37.25)}}),
              "  latency               37.2 µs (one sample)\n");
    const json sizes = {{"count", 2}, {"p50", 3}, {"p99", 2048}, {"p999", 2048}, {"max", 2048}};
    EXPECT_EQ(stats_text({{"batch", sizes}}),
              "  batch                 p50 3, p99 2,048, p99.9 2,048, max 2,048\n");
    EXPECT_EQ(stats_text({{"batch_bytes", sizes}}),
              "  batch bytes           p50 3 B, p99 2.0 KiB, p99.9 2.0 KiB, max 2.0 KiB\n");
}

TEST(stats_text, labels_stand_behind_the_name) {
    const json empty = {{"count", 0}, {"p50", 0}, {"p99", 0}, {"p999", 0}, {"max", 0}};
    const json times = {
        {"count", 3}, {"p50_us", 1.5}, {"p99_us", 2.0}, {"p999_us", 2.0}, {"max_us", 2.25}};
    const json stats = {{"answers_total",
                         {{{"labels", {{"code", "200"}, {"kind", "page"}}}, {"value", 5.0}},
                          {{"labels", {{"code", "\x1b[31m"}}}, {"value", 1.0}}}},
                        {"sizes_bytes", {{{"labels", {{"code", "200"}}}, {"value", empty}}}},
                        {"wait_seconds", {{{"labels", {{"code", "200"}}}, {"value", times}}}}};
    const std::string text = stats_text(stats);
    EXPECT_NE(text.find("  answers total {code=200,kind=page} 5\n"), std::string::npos) << text;
    EXPECT_EQ(text.find('\x1b'), std::string::npos) << text;
    EXPECT_EQ(text.find("sizes"), std::string::npos) << text;
    EXPECT_NE(text.find("{code=200}  p50 1.5 µs, p99 2.0 µs, p99.9 2.0 µs, max 2.2 µs"),
              std::string::npos)
        << text;
}

TEST(stats_text, a_table_says_that_all_are_down_and_names_its_columns_apart) {
    const auto of = [](double a, double b) {
        return json{{{"labels", {{"backend", "a"}}}, {"value", a}},
                    {{"labels", {{"backend", "b"}}}, {"value", b}}};
    };
    const std::string text = stats_text({{"backend_up", of(0, 0)},
                                         {"backend_connections", of(1, 0)},
                                         {"backend_connections_total", of(7, 8)},
                                         {"backend_failures_total", of(0, 0)}});
    EXPECT_EQ(text,
              "\nbackend  up  connections  connections total\n"
              "a        0   1            7\n"
              "b        0   0            8\n");
}

TEST(stats_text, values_of_another_kind_are_no_error) {
    const std::string text = stats_text({{"uptime_s", "long"}, {"answers_total", {1, nullptr}}});
    EXPECT_NE(text.find("uptime"), std::string::npos) << text;
    EXPECT_EQ(text.find("answers"), std::string::npos) << text;
}

}  // namespace
}  // namespace eddy::cli
