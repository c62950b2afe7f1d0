// Text of members: both directions, versions that differ, and hostile texts.
#include "cluster/member_codec.hpp"

#include <eddy/base/random.hpp>

#include "base/test_rounds.hpp"
#include "base/test_seed.hpp"
#include "cluster/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace eddy::cluster {
namespace {

using namespace cluster::testing;
using ::testing::HasSubstr;

std::string random_text(random_generator& random, std::size_t limit) {
    // Quotes and backslashes are escaped, the others are characters of 2, 3 and 4 bytes.
    static constexpr std::array<std::string_view, 12> pieces{"a",
                                                             "Z",
                                                             "0",
                                                             " ",
                                                             "-",
                                                             "\"",
                                                             "\\",
                                                             ":",
                                                             "}",
                                                             "\xC3\xA4",
                                                             "\xE2\x82\xAC",
                                                             "\xF0\x9F\x98\x80"};
    std::string text;
    for (auto count = random.below(20); count > 0; --count) {
        const std::string_view piece = pieces[random.below(pieces.size())];
        if (text.size() + piece.size() <= limit) text += piece;
    }
    return text;
}

runtime_info random_runtime(random_generator& random, std::string name) {
    runtime_info made;
    made.name = std::move(name);
    made.id = random_text(random, max_name);
    made.type = random_text(random, max_name);
    made.group = random_text(random, max_name);
    made.state = random_text(random, max_name);
    for (auto count = random.below(4); count > 0; --count)
        made.addresses.push_back(random_text(random, max_text));
    if (random.chance(0.5)) made.connections = random();
    return made;
}

member_info random_member(random_generator& random) {
    member_info made;
    made.name = "m" + random_text(random, max_name - 1);
    made.id = random_id(random);
    made.host = random_text(random, max_text);
    made.control = random_text(random, max_text);
    made.version = random_text(random, max_name);
    made.label = random_text(random, max_name);
    if (random.chance(0.5)) made.started = static_cast<std::int64_t>(random());
    made.is_leaving = random.chance(0.5);
    std::set<std::string> names;
    for (auto count = random.below(8); count > 0; --count)
        names.insert("r" + random_text(random, max_name - 1));
    for (const std::string& each : names) made.runtimes.push_back(random_runtime(random, each));
    return made;
}

std::string refusal(const outcome<member_info>& of) { return of ? "none" : of.error().message; }
std::string refusal_of(std::string_view text) { return refusal(decode_member(text)); }

/// A text with these members after a valid name and id.
std::string with(std::string_view rest) {
    return R"({"format":1,"name":"a","id":"1f",)" + std::string(rest) + "}";
}

TEST(member_codec, reads_back_each_member) {
    random_generator random(eddy::testing::seed_of_this_run());
    for (int i = 0; i < eddy::testing::rounds(2000); ++i) {
        const member_info member = random_member(random);
        const auto text = encode_member(member);
        ASSERT_TRUE(text) << text.error().message;
        const auto read = decode_member(*text);
        ASSERT_TRUE(read) << read.error().message << "\n" << *text;
        ASSERT_EQ(*read, member) << *text;
    }
}

TEST(member_codec, orders_runtimes_by_name) {
    random_generator random(1);
    member_info member = simple_member("a", random, 0);
    member.runtimes = {simple_runtime("z"), simple_runtime("b")};
    const auto read = decode_member(*encode_member(member));
    ASSERT_TRUE(read) << read.error().message;
    ASSERT_EQ(read->runtimes.size(), 2U);
    EXPECT_EQ(read->runtimes[0].name, "b");
    EXPECT_EQ(decode_member(with(R"("runtimes":[{"name":"z"},{"name":"b"}])"))->runtimes[0].name,
              "b");
}

TEST(member_codec, takes_texts_of_other_versions) {
    const auto older = decode_member(R"({"format":1,"name":"a","id":"1f"})");
    ASSERT_TRUE(older) << older.error().message;
    member_info expected;
    expected.name = "a";
    expected.id = "1f";
    EXPECT_EQ(*older, expected) << "all that is absent has its default";
    const auto newer = decode_member(
        with(R"("zone":{"of":["x",[1.5]]},"host":null,"runtimes":[{"name":"r","cost":-1}])"));
    ASSERT_TRUE(newer) << newer.error().message;
    ASSERT_EQ(newer->runtimes.size(), 1U);
    EXPECT_EQ(newer->runtimes[0].name, "r");
    EXPECT_THAT(refusal_of(R"({"format":2,"name":"a","id":"1f"})"), HasSubstr("its format is 2"));
    EXPECT_THAT(refusal_of(R"({"format":0,"name":"a","id":"1f"})"), HasSubstr("its format is 0"));
    EXPECT_THAT(refusal_of(R"({"name":"a","id":"1f"})"), HasSubstr("no \"format\""));
}

TEST(member_codec, refuses_what_is_no_member) {
    for (const std::string_view text : {"", "{", "nul", "{}}", "\"\xff\"", "[1,]"})
        EXPECT_EQ(refusal_of(text), "it is not valid JSON") << text;
    EXPECT_EQ(refusal_of("[]"), "it is no JSON object");
    EXPECT_THAT(refusal_of(with(R"("host":1)")), HasSubstr("its \"host\" must be a string"));
    EXPECT_THAT(refusal_of(with(R"("leaving":1)")), HasSubstr("true or false"));
    EXPECT_THAT(refusal_of(with(R"("started":1.5)")), HasSubstr("an integer"));
    EXPECT_THAT(refusal_of(with(R"("started":9223372036854775808)")), HasSubstr("an integer"));
    EXPECT_THAT(refusal_of(with(R"("runtimes":{})")), HasSubstr("an array"));
    EXPECT_THAT(refusal_of(with(R"("runtimes":[1])")), HasSubstr("no JSON object"));
    EXPECT_THAT(refusal_of(with(R"("runtimes":[{}])")), HasSubstr("empty name of a runtime"));
    EXPECT_THAT(refusal_of(with(R"("runtimes":[{"name":"r","addresses":[1]}])")),
                HasSubstr("an array of strings"));
    EXPECT_THAT(refusal_of(with(R"("runtimes":[{"name":"r","connections":-1}])")),
                HasSubstr("a number from 0"));
    EXPECT_THAT(refusal_of(with(R"("runtimes":[{"name":"r"},{"name":"r"}])")),
                HasSubstr("two runtimes with the name \"r\""));
    EXPECT_THAT(refusal_of(R"({"format":1,"id":"1f"})"), HasSubstr("empty name"));
    EXPECT_THAT(refusal_of(R"({"format":1,"name":"a"})"), HasSubstr("no id"));
    EXPECT_THAT(refusal_of(R"({"format":1,"name":"a","id":"x y"})"), HasSubstr("the id"));
    EXPECT_THAT(refusal_of(R"({"format":1,"name":"a","id":"1f","host":"a\u0007b"})"),
                HasSubstr("not printable"));
}

TEST(member_codec, names_are_safe_in_paths_and_logs) {
    for (const std::string_view name :
         {"", ".", "..", ".a", "a/b", "/", "a\n", "a\tb", "\x7f", "a\xff", "\xC2\x9B",
          "\xE2\x80\xAE"
          "a"})
        EXPECT_FALSE(check_member_name(name)) << name;
    for (const std::string_view name : {"a", "a.b", "web-1.example", "a b", "\xC3\xA4", "@", "~"})
        EXPECT_TRUE(check_member_name(name)) << name;
    EXPECT_TRUE(check_member_name(std::string(max_name, 'a')));
    EXPECT_FALSE(check_member_name(std::string(max_name + 1, 'a')));
}

TEST(member_codec, holds_each_bound) {
    random_generator random(1);
    const member_info good = simple_member("a", random);
    const auto refused = [&](auto change) {
        member_info other = good;
        change(other);
        const auto text = encode_member(other);
        return text ? std::string("none") : text.error().message;
    };
    EXPECT_EQ(refused([](member_info&) {}), "none");
    EXPECT_EQ(refused([](member_info& m) { m.host.assign(max_text, 'x'); }), "none");
    EXPECT_THAT(refused([](member_info& m) { m.host.assign(max_text + 1, 'x'); }),
                HasSubstr("host of 1025 bytes, at most 1024"));
    EXPECT_THAT(refused([](member_info& m) { m.id.assign(max_start_id + 1, 'f'); }),
                HasSubstr("id"));
    EXPECT_EQ(refused([](member_info& m) { m.runtimes[0].addresses.assign(max_addresses, "x"); }),
              "none");
    EXPECT_THAT(
        refused([](member_info& m) { m.runtimes[0].addresses.assign(max_addresses + 1, "x"); }),
        HasSubstr("65 addresses, at most 64"));
    EXPECT_THAT(refused([](member_info& m) { m.runtimes.push_back(m.runtimes[0]); }),
                HasSubstr("two runtimes"));
}

TEST(member_codec, bounds_runtimes_and_bytes) {
    random_generator random(1);
    member_info many = simple_member("a", random, max_runtimes);
    const auto text = encode_member(many);
    ASSERT_TRUE(text) << text.error().message;
    EXPECT_TRUE(decode_member(*text)) << "as many as there may be can be read";
    many.runtimes.push_back(simple_runtime("one-more"));
    EXPECT_THAT(encode_member(many).error().message, HasSubstr("16385 runtimes, at most 16384"));
    many.runtimes.pop_back();
    for (runtime_info& each : many.runtimes) each.addresses = {std::string(max_text, 'x')};
    EXPECT_THAT(encode_member(many).error().message, HasSubstr("bytes, at most 8388608"));

    EXPECT_THAT(refusal_of(std::string(max_member_bytes + 1, ' ')), HasSubstr("bytes, at most"));
    std::string arrays;
    for (std::size_t i = 0; i <= max_addresses; ++i) arrays += i == 0 ? "\"x\"" : ",\"x\"";
    EXPECT_THAT(refusal_of(with(R"("runtimes":[{"name":"r","addresses":[)" + arrays + "]}]")),
                HasSubstr("65 values, at most 64"));
    std::string runtimes;
    for (std::size_t i = 0; i <= max_runtimes; ++i) runtimes += i == 0 ? "1" : ",1";
    EXPECT_THAT(refusal_of(with("\"runtimes\":[" + runtimes + "]")),
                HasSubstr("16385 values, at most 16384"));
}

TEST(member_codec, refuses_deep_and_wide_texts_before_it_parses_them) {
    const auto nested = [](std::size_t levels) {
        return with("\"x\":" + std::string(levels, '[') + std::string(levels, ']'));
    };
    EXPECT_EQ(refusal_of(nested(max_member_depth - 1)), "none");
    EXPECT_THAT(refusal_of(nested(max_member_depth)), HasSubstr("nests deeper than 16 levels"));
    EXPECT_THAT(refusal_of(std::string(1'000'000, '[')), HasSubstr("nests deeper"));
    std::string wide = "{\"a\":0";
    while (wide.size() < max_member_bytes - 10) wide += ",\"a\":0";
    EXPECT_THAT(refusal_of(wide + "}"), HasSubstr("fields"));
}

/// Any bytes are a member or a sentence; a text that is read can be written.
void expect_no_crash(std::string_view text) {
    const auto read = decode_member(text);
    if (!read) {
        ASSERT_FALSE(read.error().message.empty());
        ASSERT_EQ(read.error().status, 400);
        return;
    }
    const auto again = encode_member(*read);
    ASSERT_TRUE(again) << again.error().message;
    ASSERT_EQ(*decode_member(*again), *read);
}

TEST(member_codec, survives_damage) {
    random_generator random(eddy::testing::seed_of_this_run());
    for (int i = 0; i < eddy::testing::rounds(3000); ++i) {
        std::string text = *encode_member(random_member(random));
        for (auto faults = 1 + random.below(4); faults > 0; --faults) {
            const auto at = random.below(text.size());
            switch (random.below(4)) {
                case 0: text[at] = static_cast<char>(random()); break;
                case 1: text.erase(at, 1 + random.below(10)); break;
                case 2: text.insert(at, text.substr(random.below(text.size()), 20)); break;
                default: text[at] = "{}[]\",:0\\-e"[random.below(11)];
            }
            if (text.empty()) text = "{";
        }
        expect_no_crash(text);
    }
    for (int i = 0; i < eddy::testing::rounds(3000); ++i) {
        std::string text(random.below(200), '\0');
        for (char& c : text) c = static_cast<char>(random());
        expect_no_crash(text);
    }
}

TEST(member_codec, any_cut_is_an_error) {
    random_generator random(1);
    const std::string text = *encode_member(simple_member("a", random, 2));
    for (std::size_t size = 0; size < text.size(); ++size)
        EXPECT_FALSE(decode_member(text.substr(0, size))) << size;
}

}  // namespace
}  // namespace eddy::cluster
