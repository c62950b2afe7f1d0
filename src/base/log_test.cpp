// The log's lines, threshold and sink.
#include <eddy/base/log.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace eddy {
namespace {

using namespace std::chrono;

// 2026-11-21T21:22:04.123Z
const system_clock::time_point some_time =
    sys_days(year(2026) / 11 / 21) + 21h + 22min + 4s + 123ms;
constexpr std::string_view some_prefix = "2026-11-21T21:22:04.123Z info  ";

struct log_test : testing::Test {
    void SetUp() override {
        set_log_level(log_level::info);
        set_log_sink([this](log_level level, std::string_view line) {
            levels.push_back(level);
            lines.emplace_back(line);
        });
    }
    void TearDown() override {
        set_log_sink({});
        set_log_level(log_level::info);
    }
    std::vector<log_level> levels;
    std::vector<std::string> lines;
};

TEST(log_line, has_time_level_subject_and_text) {
    EXPECT_EQ(format_log_line(some_time, log_level::info, "daemon", "ready"),
              "2026-11-21T21:22:04.123Z info  daemon  ready\n");
    EXPECT_EQ(format_log_line(some_time, log_level::error, "db", "port 6379 is taken"),
              "2026-11-21T21:22:04.123Z error db  port 6379 is taken\n");
    EXPECT_EQ(format_log_line(system_clock::time_point(), log_level::warn, "x", ""),
              "1970-01-01T00:00:00.000Z warn  x  \n");
}

TEST(log_line, rounds_times_before_1970_down) {
    EXPECT_EQ(format_log_line(system_clock::time_point(-1ms), log_level::debug, "x", "y"),
              "1969-12-31T23:59:59.999Z debug x  y\n");
}

TEST(log_line, keeps_a_record_on_one_line) {
    const std::string_view evil("a\r\n2026 info  forged\x1b[2J\t\0\x7f", 27);
    const std::string line = format_log_line(some_time, log_level::info, "s\n", evil);
    EXPECT_EQ(line,
              std::string(some_prefix) + "s\\n  a\\r\\n2026 info  forged\\x1b[2J\\t\\x00\\x7f\n");
}

TEST(log_line, fills_the_limit_and_is_cut_beyond_it) {
    const std::size_t fixed = some_prefix.size() + 1 + 2 + 1;  // subject "s", gap, newline
    const std::string fits(log_line_limit - fixed, 'm');
    const std::string whole = format_log_line(some_time, log_level::info, "s", fits);
    EXPECT_EQ(whole.size(), log_line_limit);
    EXPECT_TRUE(whole.ends_with("mmmm\n"));
    const std::string over = format_log_line(some_time, log_level::info, "s", fits + "m");
    EXPECT_EQ(over.size(), log_line_limit);
    EXPECT_TRUE(over.ends_with("m...\n"));
    const std::string huge(1 << 20, '\x01');
    EXPECT_LE(format_log_line(some_time, log_level::info, huge, huge).size(), log_line_limit);
}

TEST(log_line, is_never_cut_inside_a_character) {
    for (std::size_t pad = 0; pad < 4; ++pad) {
        std::string text(pad, 'x');
        while (text.size() < log_line_limit) text += "\xf0\x9f\x8c\x80";
        const std::string line = format_log_line(some_time, log_level::info, "s", text);
        const std::size_t body = line.size() - 4 - some_prefix.size() - 3 - pad;
        EXPECT_EQ(body % 4, 0u) << pad;
        EXPECT_GE(line.size(), log_line_limit - 3);
    }
}

TEST_F(log_test, writes_at_and_above_the_threshold_only) {
    log_debug("a", "no");
    log_info("a", "yes");
    set_log_level(log_level::error);
    EXPECT_FALSE(log_enabled(log_level::warn));
    EXPECT_TRUE(log_enabled(log_level::error));
    log_warn("a", "no");
    log_error("a", "yes");
    set_log_level(log_level::debug);
    log_debug("a", "yes");
    EXPECT_EQ(levels, (std::vector{log_level::info, log_level::error, log_level::debug}));
    for (const std::string& line : lines) EXPECT_TRUE(line.ends_with("a  yes\n")) << line;
}

TEST_F(log_test, survives_a_sink_that_throws) {
    set_log_sink([](log_level, std::string_view) { throw std::runtime_error("full"); });
    log_info("a", "b");
}

TEST_F(log_test, writes_plain_lines_to_stderr_without_a_sink) {
    set_log_sink({});
    testing::internal::CaptureStderr();
    log_error("daemon", "on stderr");
    const std::string text = testing::internal::GetCapturedStderr();
    EXPECT_TRUE(text.ends_with("Z error daemon  on stderr\n")) << text;
    EXPECT_EQ(text.find('\x1b'), std::string::npos) << "colour in a file";
}

TEST_F(log_test, never_runs_the_sink_twice_at_once) {
    // The sink writes to unguarded vectors: a race is what the thread sanitizer would report.
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([] {
            for (int i = 0; i < 250; ++i) log_info("thread", "whole line");
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(lines.size(), 1000u);
    EXPECT_TRUE(std::all_of(lines.begin(), lines.end(), [](const std::string& line) {
        return line.ends_with("Z info  thread  whole line\n");
    }));
}

TEST(log_level, has_names_both_ways) {
    for (const log_level level :
         {log_level::debug, log_level::info, log_level::warn, log_level::error}) {
        EXPECT_EQ(parse_log_level(to_string(level)), level);
    }
    EXPECT_FALSE(parse_log_level("INFO"));
    EXPECT_FALSE(parse_log_level(""));
}

}  // namespace
}  // namespace eddy
