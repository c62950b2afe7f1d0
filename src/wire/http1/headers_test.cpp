// Lookup, order, replacement and limits of header fields.
#include <eddy/wire/http1/headers.hpp>

#include <gtest/gtest.h>

#include <string>

namespace eddy::http1 {
namespace {

std::string render(const header_list& list) {
    std::string out;
    for (const header h : list) out.append(h.name).append("=").append(h.value).append(";");
    return out;
}

TEST(http_headers, keep_order_and_spelling_and_ignore_case_in_lookups) {
    header_list list;
    EXPECT_TRUE(list.empty());
    ASSERT_TRUE(list.add("Content-Type", "text/plain"));
    ASSERT_TRUE(list.add("X-Empty", ""));
    ASSERT_TRUE(list.add("content-type", "second"));
    EXPECT_EQ(render(list), "Content-Type=text/plain;X-Empty=;content-type=second;");
    EXPECT_EQ(list.find("CONTENT-TYPE"), "text/plain");
    EXPECT_EQ(list.find("x-empty"), "");
    EXPECT_FALSE(list.find("x"));
    EXPECT_TRUE(list.contains("X-EMPTY"));
    EXPECT_EQ(list[2].value, "second");
    EXPECT_EQ(list.remove("Content-type"), 2u);
    EXPECT_EQ(list.remove("Content-type"), 0u);
    EXPECT_EQ(render(list), "X-Empty=;");
    list.clear();
    EXPECT_EQ(list.size(), 0u);
}

TEST(http_headers, set_replaces_all_of_a_name) {
    header_list list;
    ASSERT_TRUE(list.set("a", "1"));
    ASSERT_TRUE(list.add("b", "2"));
    ASSERT_TRUE(list.add("A", "3"));
    ASSERT_TRUE(list.set("a", "4"));
    EXPECT_EQ(render(list), "b=2;a=4;");
    EXPECT_FALSE(list.set("b", "x\ny"));
    EXPECT_EQ(render(list), "b=2;a=4;");
}

TEST(http_headers, take_their_own_views_as_arguments) {
    header_list list;
    ASSERT_TRUE(list.add("name", "a value that is long enough to live outside of the string"));
    for (int i = 0; i < 200; ++i) ASSERT_TRUE(list.add(list[0].name, list[0].value));
    EXPECT_EQ(list[200].value, list[0].value);
    ASSERT_TRUE(list.set(list[7].name, list[9].value));
    EXPECT_EQ(render(list), "name=a value that is long enough to live outside of the string;");
    ASSERT_TRUE(list.add("other", "x"));
    EXPECT_EQ(list.remove(list[0].name), 1u);
    EXPECT_EQ(render(list), "other=x;");
}

TEST(http_headers, refuse_what_could_forge_a_line) {
    header_list list;
    for (const char* name : {"", "a b", "a:", "a\r\n", "ä", "a\t", "(a)", "\"a\""}) {
        EXPECT_EQ(list.add(name, "v").error(), errc::malformed) << name;
    }
    using namespace std::string_view_literals;
    for (const std::string_view value :
         {"a\r\nb: c"sv, "a\nb"sv, "a\rb"sv, "\0"sv, "\x7f"sv, "\x1b"sv}) {
        EXPECT_EQ(list.add("n", value).error(), errc::malformed);
    }
    EXPECT_TRUE(list.empty());
    EXPECT_TRUE(list.add("n", "tab\tspace ü \xff"));
}

TEST(http_headers, find_tokens_in_lists) {
    header_list list;
    ASSERT_TRUE(list.add("Connection", "keep-alive , Upgrade,,"));
    ASSERT_TRUE(list.add("connection", "\tx-y"));
    EXPECT_TRUE(list.contains_token("connection", "upgrade"));
    EXPECT_TRUE(list.contains_token("connection", "keep-alive"));
    EXPECT_TRUE(list.contains_token("connection", "X-Y"));
    EXPECT_FALSE(list.contains_token("connection", "keep"));
    EXPECT_FALSE(list.contains_token("connection", "close"));
    EXPECT_FALSE(list.contains_token("upgrade", "upgrade"));
}

TEST(http_headers, stop_at_the_size_limit) {
    header_list list;
    const std::string half(header_list::size_limit / 2 - 1, 'v');
    ASSERT_TRUE(list.add("a", half));
    ASSERT_TRUE(list.add("b", half));
    EXPECT_EQ(list.add("c", "").error(), errc::limit_reached);
    EXPECT_EQ(list.size(), 2u);
    EXPECT_EQ(list.remove("a"), 1u);
    EXPECT_TRUE(list.add("c", "there is room again"));
    header_list many;
    for (int i = 0; i < 100000; ++i) ASSERT_TRUE(many.set("same", "name again and again"));
    EXPECT_EQ(many.size(), 1u);
}

TEST(http_headers, know_the_reasons) {
    EXPECT_EQ(reason_phrase(200), "OK");
    EXPECT_EQ(reason_phrase(431), "Request Header Fields Too Large");
    EXPECT_EQ(reason_phrase(799), "Unknown");
}

}  // namespace
}  // namespace eddy::http1
