// JSON texts that are written.
#include <eddy/wire/json.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace eddy {
namespace {

std::string written(std::string_view text) {
    json_writer out;
    out.value(text);
    return out.take();
}

TEST(json_writer, writes_objects_and_arrays) {
    json_writer out;
    out.begin_object().member("a", 1).key("b").begin_array();
    out.value(true).null().value("x").begin_object().end_object().begin_array().end_array();
    out.end_array().member("c", -2.5).member("d", "e").key("f").raw("[1]").end_object();
    EXPECT_EQ(out.take(), R"({"a":1,"b":[true,null,"x",{},[]],"c":-2.5,"d":"e","f":[1]})");
}

TEST(json_writer, writes_numbers_that_read_back) {
    json_writer out;
    out.begin_array();
    out.value(std::numeric_limits<std::int64_t>::min());
    out.value(std::numeric_limits<std::uint64_t>::max());
    out.value(0.1).value(1e300).value(INFINITY).value(NAN);
    out.end_array();
    EXPECT_EQ(out.take(), "[-9223372036854775808,18446744073709551615,0.1,1e+300,null,null]");
}

TEST(json_writer, escapes_texts) {
    EXPECT_EQ(written("a\"b\\c/\b\f\n\r\t\x01\x1f\x7f"),
              "\"a\\\"b\\\\c/\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\"");
    EXPECT_EQ(written(std::string_view("\0", 1)), "\"\\u0000\"");
    EXPECT_EQ(written("\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80"),
              "\"\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80\"");
}

TEST(json_writer, replaces_what_is_no_utf8) {
    constexpr std::string_view fffd = "\xEF\xBF\xBD";
    const auto quoted = [&](std::string_view before, int count, std::string_view after) {
        std::string text = "\"" + std::string(before);
        for (int i = 0; i < count; ++i) text += fffd;
        return text + std::string(after) + "\"";
    };
    EXPECT_EQ(written("a\xff z"), quoted("a", 1, " z"));
    EXPECT_EQ(written("a\xC3"), quoted("a", 1, ""));
    EXPECT_EQ(written("a\xE2\x82"), quoted("a", 2, ""));
    EXPECT_EQ(written("\xE2\x82z"), quoted("", 2, "z"));
    EXPECT_EQ(written("\xED\xA0\x80"), quoted("", 3, ""));
    EXPECT_EQ(written("\xC0\x80"), quoted("", 2, ""));
}

TEST(json_writer, writes_the_same_wherever_its_memory_grows) {
    json_writer out;
    out.begin_array();
    std::string expected = "[";
    for (std::size_t i = 0; i < 1000; ++i) {
        const std::string text(i % 40, 'x');
        out.value(text);
        expected.append(i > 0 ? ",\"" : "\"").append(text).append("\"");
    }
    EXPECT_EQ(out.end_array().take(), expected + "]");
}

TEST(json_writer, nests_to_its_limit) {
    json_writer out;
    for (unsigned i = 0; i < json_writer::depth_limit; ++i) out.begin_array();
    EXPECT_DEATH(out.begin_array(), "");
    for (unsigned i = 0; i < json_writer::depth_limit; ++i) out.end_array();
    EXPECT_EQ(out.take().size(), 2 * json_writer::depth_limit);
}

TEST(json_writer, refuses_what_is_out_of_order) {
    EXPECT_DEATH(json_writer().begin_object().value(1), "");
    EXPECT_DEATH(json_writer().key("a"), "");
    EXPECT_DEATH(json_writer().begin_array().key("a"), "");
    EXPECT_DEATH(json_writer().begin_object().key("a").key("b"), "");
    EXPECT_DEATH(json_writer().begin_object().key("a").end_object(), "");
    EXPECT_DEATH(json_writer().begin_object().end_array(), "");
    EXPECT_DEATH(json_writer().value(1).value(2), "");
    EXPECT_DEATH(json_writer().begin_array().take(), "");
    EXPECT_DEATH(json_writer().take(), "");
}

}  // namespace
}  // namespace eddy
