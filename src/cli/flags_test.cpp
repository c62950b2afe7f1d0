// Tests of parsing command lines.
#include "cli/flags.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace eddy::cli {
namespace {

const std::vector<flag> table = {
    {.name = "port", .letter = 'p', .value_name = "PORT", .help = "where", .default_value = "6379"},
    {.name = "start", .letter = 's', .help = "at once"},
    {.name = "udp", .letter = 'u', .help = "datagrams", .negatable = true},
    {.name = "mode", .value_name = "MODE", .help = "how", .choices = {"in", "out"}},
};

std::expected<arguments, std::string> parse(std::vector<std::string> words) {
    return parse_arguments(words, table);
}

TEST(flags, takes_values_in_every_form) {
    for (const auto& words : std::vector<std::vector<std::string>>{
             {"--port", "80"}, {"--port=80"}, {"-p", "80"}, {"-p80"}, {"-p=80"}, {"-sp80"}}) {
        const auto parsed = parse(words);
        ASSERT_TRUE(parsed) << words[0];
        EXPECT_EQ(parsed->value("port"), "80") << words[0];
    }
}

TEST(flags, takes_names_with_one_dash_where_a_command_wants_it) {
    const auto parse_single = [](const std::vector<std::string>& words) {
        return parse_arguments(words, table, static_cast<std::size_t>(-1), true);
    };
    for (const auto& words : std::vector<std::vector<std::string>>{
             {"-port", "80", "-udp"}, {"-port=80", "-udp=true"}, {"--port", "80", "-u"}}) {
        const auto parsed = parse_single(words);
        ASSERT_TRUE(parsed) << words[0];
        EXPECT_EQ(parsed->value("port"), "80") << words[0];
        EXPECT_TRUE(parsed->is_set("udp")) << words[0];
    }
    EXPECT_EQ(parse_single({"-p80"})->value("port"), "80") << "letters stay";
    EXPECT_FALSE(parse_single({"-none", "80"}));
    EXPECT_EQ(parse({"-port", "80"})->value("port"), "ort") << "other commands have letters alone";
}

TEST(flags, mixes_flags_and_words) {
    const auto parsed = parse({"cache", "-s", "db", "-p", "1"});
    ASSERT_TRUE(parsed);
    EXPECT_EQ(parsed->positional(), (std::vector<std::string>{"cache", "db"}));
    EXPECT_TRUE(parsed->is_set("start"));
    EXPECT_FALSE(parsed->is_set("udp"));
}

TEST(flags, names_of_other_programs_lead_to_the_flag) {
    const std::vector<flag> with_foreign = {
        {.name = "config",
         .value_name = "PARAMETERS",
         .foreign_names = {{"password", "--config \"password WORD\""}, {"hz", "--config"}}}};
    const auto refused = [&](const std::vector<std::string>& words) {
        return parse_arguments(words, with_foreign).error();
    };
    EXPECT_EQ(refused({"--password", "x"}),
              "there is no flag --password; did you mean --config \"password WORD\"?");
    EXPECT_EQ(refused({"--hz=5"}), "there is no flag --hz; did you mean --config?");
    EXPECT_EQ(refused({"--confi", "x"}), "there is no flag --confi; did you mean --config?");
}

TEST(flags, former_names_stand_for_the_flag) {
    const std::vector<flag> renamed = {
        {.name = "source", .value_name = "KIND", .former_name = "backend"}};
    EXPECT_EQ(
        parse_arguments(std::vector<std::string>{"--backend", "lua"}, renamed)->value("source"),
        "lua");
    EXPECT_EQ(describe_flags(renamed).find("backend"), std::string::npos);
}

TEST(flags, the_last_value_counts) { EXPECT_EQ(parse({"-p", "1", "-p", "2"})->value("port"), "2"); }

TEST(flags, two_dashes_end_the_flags) {
    const auto parsed = parse({"--", "-p", "--start"});
    EXPECT_EQ(parsed->positional(), (std::vector<std::string>{"-p", "--start"}));
}

TEST(flags, a_lone_dash_and_an_empty_word_are_words) {
    EXPECT_EQ(parse({"-", ""})->positional(), (std::vector<std::string>{"-", ""}));
}

TEST(flags, values_may_look_like_flags_or_be_empty) {
    EXPECT_EQ(parse({"--mode", "-x"})->value("mode"), "-x");
    EXPECT_TRUE(parse({"--mode="})->has("mode"));
    EXPECT_EQ(parse({"--mode", ""})->value("mode"), "");
}

TEST(flags, takes_back_what_can_be_taken_back) {
    EXPECT_FALSE(parse({"--udp", "--no-udp"})->is_set("udp"));
    EXPECT_FALSE(parse({"--udp=false"})->is_set("udp"));
    EXPECT_TRUE(parse({"--udp=true"})->is_set("udp"));
    EXPECT_FALSE(parse({"--no-start"}));
    EXPECT_FALSE(parse({"--no-port"}));
}

TEST(flags, errors_name_the_flag_and_what_was_meant) {
    EXPECT_NE(parse({"--prot", "1"}).error().find("did you mean --port?"), std::string::npos);
    EXPECT_NE(parse({"--dashboard"}).error().find("there is no flag --dashboard"),
              std::string::npos);
    EXPECT_NE(parse({"-x"}).error().find("there is no flag -x"), std::string::npos);
    EXPECT_NE(parse({"--port"}).error().find("--port PORT"), std::string::npos);
    EXPECT_NE(parse({"-p"}).error().find("--port PORT"), std::string::npos);
    EXPECT_NE(parse({"--start=1"}).error().find("takes no value"), std::string::npos);
}

TEST(flags, help_shows_every_flag_with_its_default_and_choices) {
    const std::string text = describe_flags(table);
    EXPECT_NE(text.find("-p, --port PORT"), std::string::npos);
    EXPECT_NE(text.find("where [6379]"), std::string::npos);
    EXPECT_NE(text.find("how (in, out)"), std::string::npos);
    std::size_t begin = 0;
    for (std::size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
        EXPECT_LE(end - begin, 100U);
}

TEST(flags, help_wraps_long_texts) {
    std::string words;
    for (int i = 0; i < 60; ++i) words += "word ";
    const std::string text = describe_flags(std::vector<flag>{{.name = "a", .help = words}});
    EXPECT_NE(text.find("\n                                word"), std::string::npos);
}

}  // namespace
}  // namespace eddy::cli
