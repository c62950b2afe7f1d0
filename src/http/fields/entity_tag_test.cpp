// Lists of entity tags.
#include "http/fields/entity_tag.hpp"

#include <gtest/gtest.h>

#include <string>

namespace eddy::http {
namespace {

/// The tags of a list, each in brackets, and "!" where it is malformed.
std::string tags_of(std::string_view list) {
    std::string seen;
    entity_tag_reader reader(list);
    while (const auto tag = reader.next())
        seen += std::string(tag->is_weak ? "[W " : "[") + std::string(tag->opaque) + "]";
    return seen + (reader.is_malformed() ? "!" : "");
}

TEST(http_entity_tag, lists_are_read_tag_by_tag) {
    EXPECT_EQ(tags_of(R"("a")"), R"(["a"])");
    EXPECT_EQ(tags_of(R"("a", W/"b" ,"c")"), R"(["a"][W "b"]["c"])");
    EXPECT_EQ(tags_of(R"(,, "a" , ,)"), R"(["a"])");
    EXPECT_EQ(tags_of(R"("a,b", "")"), R"(["a,b"][""])");
    EXPECT_EQ(tags_of("\"\xc3\xa4\""), "[\"\xc3\xa4\"]");
    EXPECT_EQ(tags_of(""), "");
}

TEST(http_entity_tag, what_is_no_tag_ends_a_list) {
    EXPECT_EQ(tags_of("a"), "!");
    EXPECT_EQ(tags_of(R"("a)"), "!");
    EXPECT_EQ(tags_of(R"("a"x, "b")"), "!");
    EXPECT_EQ(tags_of(R"("a" "b")"), "!");
    EXPECT_EQ(tags_of(R"("a", w/"b", "c")"), R"(["a"]!)");
    EXPECT_EQ(tags_of(R"("a b")"), "!");
    EXPECT_EQ(tags_of(R"(W/)"), "!");
    EXPECT_EQ(tags_of("*"), "!");
}

TEST(http_entity_tag, a_single_tag_is_the_whole_text) {
    EXPECT_TRUE(parse_entity_tag(R"("a")"));
    EXPECT_TRUE(parse_entity_tag(R"(W/"a")")->is_weak);
    for (const char* text : {"", "a", "\"a", "\"a\",", "\"a\" ", " \"a\"", "W/a", "*"})
        EXPECT_FALSE(parse_entity_tag(text)) << text;
}

TEST(http_entity_tag, comparison_is_that_of_the_standard) {
    const entity_tag strong1{"\"1\"", false};
    const entity_tag weak1{"\"1\"", true};
    const entity_tag weak2{"\"2\"", true};
    EXPECT_FALSE(is_same_strongly(weak1, weak1));
    EXPECT_TRUE(is_same_weakly(weak1, weak1));
    EXPECT_FALSE(is_same_strongly(weak1, weak2));
    EXPECT_FALSE(is_same_weakly(weak1, weak2));
    EXPECT_FALSE(is_same_strongly(weak1, strong1));
    EXPECT_TRUE(is_same_weakly(weak1, strong1));
    EXPECT_TRUE(is_same_strongly(strong1, strong1));
}

}  // namespace
}  // namespace eddy::http
