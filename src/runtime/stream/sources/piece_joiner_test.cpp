// Halves of characters: marks, joining, and what has no other half.
#include "runtime/stream/sources/piece_joiner.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace eddy::runtime::stream {
namespace {

using nlohmann::json;

/// The pieces of texts in JSON, each {"t": …}, joined.
std::vector<std::string> joined(const std::vector<std::string>& texts) {
    piece_joiner joiner;
    std::vector<std::string> made;
    for (const std::string& each : texts) {
        const std::string text = R"({"t":")" + each + "\"}";
        const marked_text marked = mark_halves(text);
        const json parsed = json::parse(marked.text.empty() ? text : marked.text, nullptr, false);
        if (parsed.is_discarded()) {
            made.emplace_back("no JSON");
            continue;
        }
        made.push_back(joiner.join("t", parsed["t"].get<std::string>(), marked.has_marks));
    }
    if (joiner.take_half("t")) made.emplace_back("a half");
    EXPECT_FALSE(joiner.has_halves());
    return made;
}

using pieces = std::vector<std::string>;

TEST(piece_joiner, leaves_other_texts_alone) {
    EXPECT_EQ(mark_halves(R"({"t":"Gr\u00fc\u00dfe, \\ud83d, 😀"})").text,
              R"({"t":"Gr\u00fc\u00dfe, \\ud83d, 😀"})");
    EXPECT_EQ(mark_halves(R"({"t":"plain \u0000 \"x\""})").text, "");
    EXPECT_EQ(joined({"a", "", R"(\ud83d\ude00)", "ä", R"(\\)"}),
              (pieces{"a", "", "😀", "ä", "\\"}));
}

TEST(piece_joiner, joins_halves_of_surrogate_pairs) {
    EXPECT_EQ(joined({R"(a\ud83d)", R"(\ude00b)"}), (pieces{"a", "😀b"}));
    EXPECT_EQ(joined({R"(\uD83D)", "", R"(\uDE00\ud83d)", R"(\ude01)"}),
              (pieces{"", "", "😀", "😁"}));
    EXPECT_EQ(joined({R"(a\ud83d)"}), (pieces{"a", "a half"}));
}

TEST(piece_joiner, replaces_surrogates_without_another_half) {
    EXPECT_EQ(joined({R"(a\ud83db)", R"(\ude00)"}), (pieces{"a\uFFFDb", "\uFFFD"}));
    EXPECT_EQ(joined({R"(\ud83d)", "x"}), (pieces{"", "\uFFFDx"}));
    EXPECT_EQ(joined({R"(\ud83d)", R"(\ud83d\ude00)"}), (pieces{"", "\uFFFD😀"}));
    EXPECT_EQ(joined({R"(\ud83d\ud83d)", R"(\ude00)"}), (pieces{"\uFFFD", "😀"}));
    EXPECT_EQ(joined({R"(\ud83d\u0041)"}), (pieces{"\uFFFD"
                                                   "A"}));
}

TEST(piece_joiner, joins_bytes_of_one_character) {
    const std::string whole = "😀";
    for (std::size_t cut = 1; cut < whole.size(); ++cut)
        EXPECT_EQ(joined({"a" + whole.substr(0, cut), whole.substr(cut) + "b"}),
                  (pieces{"a", whole + "b"}))
            << cut;
    EXPECT_EQ(joined({whole.substr(0, 1), whole.substr(1, 1), whole.substr(2, 1), whole.substr(3)}),
              (pieces{"", "", "", whole}));
    EXPECT_EQ(joined({"\xC3", "\xA4"}), (pieces{"", "ä"}));
}

TEST(piece_joiner, replaces_bytes_that_are_no_text) {
    EXPECT_EQ(joined({"a\xFF\xFE"}), (pieces{"a\uFFFD\uFFFD"}));
    EXPECT_EQ(joined({"\xF0\x9F", "x"}), (pieces{"", "\uFFFDx"}));
    EXPECT_EQ(joined({"\xF0\x9Fy"}), (pieces{"\uFFFD\uFFFDy"}));
    EXPECT_EQ(joined({"\xF0\x9F", R"(\ude00)"}), (pieces{"", "\uFFFD\uFFFD\uFFFD"}));
    EXPECT_EQ(joined({"\xED\xA0\x80"}), (pieces{"\uFFFD\uFFFD\uFFFD"})) << "a surrogate in UTF-8";
    EXPECT_EQ(valid_utf8("a\xFFä"), "a\uFFFDä");
}

TEST(piece_joiner, keeps_the_characters_of_its_marks) {
    const std::string own = "\U0010F83D";
    EXPECT_EQ(joined({own, R"(\udbff\udffd)"}), (pieces{own, "\U0010FFFD"}));
    EXPECT_EQ(joined({own + "\xFF"}), (pieces{own + "\uFFFD"}));
    EXPECT_EQ(joined({R"(\udbff\udffd\ud83d)", R"(\ude00)"}),
              (pieces{"\U0010FFFD\uFFFD", "\uFFFD"}))
        << "such a text has no marks";
    EXPECT_EQ(joined({R"(\ud83d)", own}), (pieces{"", "\uFFFD" + own}));
}

TEST(piece_joiner, keeps_texts_apart_and_at_most_so_many_halves) {
    piece_joiner joiner;
    const std::string high = json::parse(mark_halves(R"(["\ud83d"])").text)[0];
    const std::string low = json::parse(mark_halves(R"(["\ude00"])").text)[0];
    for (std::size_t i = 0; i < piece_joiner::max_halves; ++i)
        EXPECT_EQ(joiner.join(std::to_string(i), high, true), "");
    EXPECT_EQ(joiner.join("one more", high, true), "\uFFFD");
    EXPECT_EQ(joiner.join("0", low, true), "😀");
    EXPECT_EQ(joiner.join("one more", high, true), "");
    EXPECT_EQ(joiner.join("1", low, true), "😀");
}

TEST(piece_joiner, keeps_halves_of_names_up_to_the_limit) {
    piece_joiner joiner;
    const std::string high = json::parse(mark_halves(R"(["\ud83d"])").text)[0];
    const std::string low = json::parse(mark_halves(R"(["\ude00"])").text)[0];
    const std::string longest(piece_joiner::max_name, 'n');
    EXPECT_EQ(joiner.join(longest, high, true), "");
    EXPECT_EQ(joiner.join(longest, low, true), "😀");
    EXPECT_EQ(joiner.join(longest + "n", high, true), "\uFFFD");
    EXPECT_FALSE(joiner.has_halves());
}

TEST(piece_joiner, is_not_needed_for_a_text_alone) {
    const std::string marked = json::parse(mark_halves("[\"a\\ud83d\\ude00\\ud83d\"]").text)[0];
    EXPECT_EQ(without_marks(marked), "a😀\uFFFD");
}

}  // namespace
}  // namespace eddy::runtime::stream
