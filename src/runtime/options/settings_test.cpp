// Tests of checking options: each kind, its limits, and the messages to the user.
#include "runtime/options/settings.hpp"

#include "base/text/text.hpp"
#include "runtime/options/option.hpp"
#include "runtime/options/units.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <array>
#include <chrono>
#include <string>

namespace eddy::runtime {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

const std::array table{
    option{.name = "verbose", .letter = 'v', .kind = option_kind::flag},
    option{.name = "max-connections",
           .kind = option_kind::integer,
           .default_value = "100",
           .minimum = 1,
           .maximum = 1000},
    option{.name = "queue",
           .kind = option_kind::size,
           .default_value = "64KiB",
           .minimum = 1024,
           .maximum = 1 << 30},
    option{.name = "idle-timeout", .kind = option_kind::duration},
    option{.name = "path", .kind = option_kind::text, .former_name = "old-path"},
    option{.name = "mode",
           .kind = option_kind::choice,
           .default_value = "inout",
           .choices = {"inout", "in", "out"}},
};

settings parsed(const json& given) {
    auto made = settings::parse(table, given);
    if (!made) throw std::runtime_error(made.error().message);
    return *made;
}

std::string complaint(const json& given) {
    const auto made = settings::parse(table, given);
    if (made) return "nothing";
    EXPECT_EQ(made.error().status, 400);
    return made.error().message;
}

TEST(settings, defaults_hold_where_nothing_is_given) {
    for (const json& nothing : {json::object(), json()}) {
        const settings s = parsed(nothing);
        EXPECT_FALSE(s.flag("verbose"));
        EXPECT_EQ(s.number("max-connections"), 100);
        EXPECT_EQ(s.number("queue"), 65536);
        EXPECT_EQ(s.number("idle-timeout"), 0);
        EXPECT_EQ(s.text("path"), "");
        EXPECT_EQ(s.text("mode"), "inout");
        EXPECT_TRUE(s.has("max-connections"));
        EXPECT_FALSE(s.given("max-connections"));
        EXPECT_FALSE(s.has("path"));
        EXPECT_FALSE(s.has("idle-timeout"));
        EXPECT_EQ(s.to_json(), json::object());
    }
}

TEST(settings, options_have_their_former_names_too) {
    EXPECT_EQ(parsed({{"old_path", "/a"}}).to_json(), json({{"path", "/a"}}));
    EXPECT_THAT(complaint({{"old_path", "/a"}, {"path", "/b"}}), HasSubstr("\"old_path\""));
    json given = {{"old_path", "/a"}, {"mode", "in"}};
    use_current_names(table, given);
    EXPECT_EQ(given, json({{"path", "/a"}, {"mode", "in"}}));
}

TEST(settings, every_kind_is_taken_as_json_and_as_text) {
    const settings from_json = parsed({{"verbose", true},
                                       {"max_connections", 7},
                                       {"queue", 2048},
                                       {"idle_timeout", 1.5},
                                       {"path", "/tmp/x"},
                                       {"mode", "in"}});
    const settings from_text = parsed({{"verbose", "yes"},
                                       {"max_connections", "7"},
                                       {"queue", "2k"},
                                       {"idle_timeout", "1500ms"},
                                       {"path", "/tmp/x"},
                                       {"mode", "in"}});
    for (const settings& s : {from_json, from_text}) {
        EXPECT_TRUE(s.flag("verbose"));
        EXPECT_EQ(s.number("max-connections"), 7);
        EXPECT_EQ(s.number("queue"), 2048);
        EXPECT_EQ(s.number("idle-timeout"), 1'500'000'000);
        EXPECT_EQ(s.text("path"), "/tmp/x");
        EXPECT_EQ(s.text("mode"), "in");
        EXPECT_TRUE(s.given("mode"));
    }
}

TEST(settings, what_was_given_survives_a_round_trip_through_json) {
    const settings first = parsed({{"verbose", true},
                                   {"max_connections", "7"},
                                   {"queue", 2048},
                                   {"idle_timeout", 0.1},
                                   {"path", "/tmp/ü"},
                                   {"mode", "out"}});
    const settings second = parsed(json::parse(first.to_json().dump()));
    EXPECT_EQ(first.to_json(), second.to_json());
    EXPECT_EQ(second.number("max-connections"), 7);
    EXPECT_EQ(second.number("queue"), 2048);
    EXPECT_EQ(second.number("idle-timeout"), 100'000'000);
    EXPECT_EQ(second.text("path"), "/tmp/ü");
    EXPECT_EQ(second.to_json().size(), 6U);
}

TEST(settings, null_and_an_empty_text_take_an_option_back) {
    const settings s = parsed({{"max_connections", nullptr}, {"path", ""}});
    EXPECT_EQ(s.number("max-connections"), 100);
    EXPECT_FALSE(s.has("path"));
    EXPECT_EQ(s.to_json(), json::object());
}

TEST(settings, values_of_an_option_are_the_same_however_they_are_written) {
    const auto same = [](std::string_view name, const json& one, const json& other) {
        const std::string key = option_key(name);
        return parsed({{key, one}}).has_same(name, parsed({{key, other}}));
    };
    EXPECT_TRUE(same("max-connections", nullptr, 100)) << "by default and given";
    EXPECT_TRUE(same("max-connections", 7, "7"));
    EXPECT_FALSE(same("max-connections", nullptr, 7));
    EXPECT_TRUE(same("queue", "1MiB", 1 << 20));
    EXPECT_FALSE(same("queue", "1MiB", "2MiB"));
    EXPECT_TRUE(same("idle-timeout", "1m", 60));
    EXPECT_FALSE(same("idle-timeout", nullptr, 0)) << "none is no zero";
    EXPECT_TRUE(same("verbose", nullptr, false)) << "a flag that is not given is off";
    EXPECT_FALSE(same("verbose", nullptr, true));
    EXPECT_TRUE(same("mode", nullptr, "inout"));
    EXPECT_FALSE(same("mode", "in", "out"));
    EXPECT_TRUE(same("path", nullptr, ""));
    EXPECT_FALSE(same("path", nullptr, "a"));
    EXPECT_FALSE(same("path", "a", "A"));
}

TEST(settings, limits_are_inclusive) {
    EXPECT_EQ(parsed({{"max_connections", 1}}).number("max-connections"), 1);
    EXPECT_EQ(parsed({{"max_connections", 1000}}).number("max-connections"), 1000);
    EXPECT_EQ(complaint({{"max_connections", 0}}),
              "--max-connections cannot be 0; it must be from 1 to 1000");
    EXPECT_EQ(complaint({{"max_connections", "1001"}}),
              "--max-connections cannot be \"1001\"; it must be from 1 to 1000");
    EXPECT_EQ(parsed({{"queue", "1k"}}).number("queue"), 1024);
    EXPECT_EQ(complaint({{"queue", "1023"}}),
              "--queue cannot be \"1023\"; it must be from 1KiB to 1GiB");
    EXPECT_EQ(complaint({{"queue", (1 << 30) + 1}}),
              "--queue cannot be 1073741825; it must be from 1KiB to 1GiB");
    EXPECT_EQ(complaint({{"idle_timeout", -1}}),
              "--idle-timeout cannot be -1; write a time, such as 30 (seconds), 1.5s, 100ms or 5m");
}

TEST(settings, numbers_beyond_64_bits_are_out_of_range) {
    EXPECT_THAT(complaint({{"max_connections", UINT64_MAX}}), HasSubstr("from 1 to 1000"));
    EXPECT_THAT(complaint({{"max_connections", "99999999999999999999"}}),
                HasSubstr("from 1 to 1000"));
    EXPECT_THAT(complaint({{"idle_timeout", 1e300}}), HasSubstr("from 0s to 876600h"));
    EXPECT_THAT(complaint({{"queue", "9999999T"}}), HasSubstr("from 1KiB to 1GiB"));
}

TEST(settings, a_duration_has_a_largest_value_that_no_deadline_overflows) {
    constexpr std::int64_t largest_s = largest_duration / 1'000'000'000;
    EXPECT_EQ(parsed({{"idle_timeout", largest_s}}).number("idle-timeout"), largest_duration);
    EXPECT_EQ(parsed({{"idle_timeout", "876600h"}}).number("idle-timeout"), largest_duration);
    for (const json& longer :
         {json(largest_s + 1), json("876600.000000001h"), json("9223372036s"), json(1e10)})
        EXPECT_THAT(complaint({{"idle_timeout", longer}}), HasSubstr("from 0s to 876600h"));
    const time_point now = std::chrono::steady_clock::now();
    EXPECT_GT(now + duration(largest_duration), now);
}

TEST(settings, a_wrong_kind_is_refused_with_what_would_be_right) {
    EXPECT_EQ(complaint({{"verbose", "perhaps"}}),
              "--verbose cannot be \"perhaps\"; it takes no value, or true or false");
    EXPECT_EQ(complaint({{"max_connections", "many"}}),
              "--max-connections cannot be \"many\"; write a whole number, such as 100");
    EXPECT_EQ(complaint({{"max_connections", 1.5}}),
              "--max-connections cannot be 1.5; write a whole number, such as 100");
    EXPECT_EQ(complaint({{"queue", "big"}}),
              "--queue cannot be \"big\"; write a number of bytes, such as 4096, 64k, 10M or 1GiB");
    EXPECT_EQ(
        complaint({{"idle_timeout", "soon"}}),
        "--idle-timeout cannot be \"soon\"; write a time, such as 30 (seconds), 1.5s, 100ms or "
        "5m");
    EXPECT_EQ(complaint({{"path", 5}}), "--path cannot be 5; write a text");
    EXPECT_EQ(complaint({{"path", json::array()}}), "--path cannot be a list; write a text");
    EXPECT_EQ(complaint({{"max_connections", json::object()}}),
              "--max-connections cannot be an object; write a whole number, such as 100");
}

TEST(settings, a_choice_names_its_alternatives) {
    EXPECT_EQ(complaint({{"mode", "inot"}}),
              "--mode cannot be \"inot\"; did you mean inout? It may be inout, in or out");
    EXPECT_EQ(complaint({{"mode", "sideways"}}),
              "--mode cannot be \"sideways\"; it may be inout, in or out");
    EXPECT_EQ(complaint({{"mode", 1}}), "--mode cannot be 1; it may be inout, in or out");
}

TEST(settings, an_unknown_option_names_the_nearest) {
    EXPECT_EQ(complaint({{"max_conections", 5}}),
              "unknown option \"max_conections\"; did you mean --max-connections?");
    EXPECT_EQ(complaint({{"colour", 5}}),
              "unknown option \"colour\"; there are --verbose, --max-connections, --queue, "
              "--idle-timeout, --path or --mode");
    EXPECT_EQ(complaint({{"max-connections", 5}}),
              "unknown option \"max-connections\": in JSON it is \"max_connections\"");
    EXPECT_EQ(complaint(json::array({1})),
              "options must be a JSON object such as {\"port\": 9000}");
}

TEST(settings, texts_are_bounded_and_hold_no_control_bytes) {
    EXPECT_EQ(parsed({{"path", std::string(4096, 'x')}}).text("path").size(), 4096U);
    EXPECT_EQ(complaint({{"path", std::string(4097, 'x')}}),
              "--path is too long: it has 4097 bytes, and may have at most 4096");
    EXPECT_EQ(complaint({{"path", "a\nb"}}),
              "--path cannot be \"a?b\": leave out its control characters");
    EXPECT_THAT(complaint({{"path", std::string("a\0b", 3)}}), HasSubstr("control character"));
}

TEST(settings, a_message_repeats_only_the_start_of_a_long_value) {
    const std::string message = complaint({{"mode", std::string(10'000, 'm')}});
    EXPECT_THAT(message, AllOf(HasSubstr(std::string(60, 'm') + "...\""),
                               ::testing::SizeIs(::testing::Lt(200U))));
    EXPECT_LT(complaint({{std::string(10'000, 'n'), 1}}).size(), 250U);
}

}  // namespace
}  // namespace eddy::runtime
