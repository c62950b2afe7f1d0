// Tests of rows of a list.
#include "cli/text/list_rows.hpp"

#include <gtest/gtest.h>

#include <array>

namespace eddy::cli {
namespace {

std::string text_of_all(const list_rows& rows, std::initializer_list<std::string_view> fields) {
    std::string all;
    for (std::size_t row = 0; row < rows.size(); ++row) {
        for (const std::string_view field : fields)
            all.append(rows.at(row, rows.column(field))).append("|");
        all += '\n';
    }
    return all;
}

TEST(list_rows, have_the_texts_of_all_values) {
    const auto rows = list_rows::parse(
        R"({"fields":["name","port","up","on"],"rows":[["a",80,1.5,true],["b",null,-1,false]]})");
    ASSERT_TRUE(rows);
    EXPECT_EQ(text_of_all(*rows, {"up", "name", "port", "on", "none"}),
              "1.5|a|80|true||\n-1|b||false||\n");
}

TEST(list_rows, of_no_runtimes_are_none) {
    const auto rows = list_rows::parse(R"({"fields":["name"],"rows":[]})");
    ASSERT_TRUE(rows);
    EXPECT_EQ(rows->size(), 0U);
}

TEST(list_rows, are_the_same_however_they_are_written) {
    const std::initializer_list<std::string_view> fields = {"name", "port", "up"};
    const std::string expected = "a b|0|0.25|\n|4711|10.0|\n";
    for (const char* const text :
         {R"({"fields":["name","port","up"],"rows":[["a b",0,0.25],[null,4711,10.0]]})",
          R"({"fields":["name","port","up"],"rows":[["a b",0,0.25],["",4711,10.0]]})",
          R"({"fields":["name","port","up"],"rows":[["a\u0020b",0,0.25],[null,4711,10.0]]})",
          R"( {"fields":["name","port","up"], "rows":[["a b",0,0.25] ,[null,4711,10.0]]} )"}) {
        const auto rows = list_rows::parse(text);
        ASSERT_TRUE(rows) << text;
        EXPECT_EQ(text_of_all(*rows, fields), expected) << text;
    }
    const auto other = list_rows::parse(
        R"({"fields":["v","w"],"rows":[["ä",-0],["\"",1e3],[true,12345678901234567890123],["\n",7]]})");
    ASSERT_TRUE(other);
    EXPECT_EQ(text_of_all(*other, {"v", "w"}),
              "ä|0|\n\"|1e3|\ntrue|12345678901234567890123|\n\n|7|\n");
}

TEST(list_rows, refuse_what_is_no_list) {
    for (const char* const text : {"",
                                   "{}",
                                   "[]",
                                   "null",
                                   R"({"fields":["a"]})"
                                   "x",
                                   R"({"runtimes":[{"name":"a"}]})",
                                   R"({"rows":[["a"]],"fields":["a"]})",
                                   R"({"fields":["a"],"rows":[["a","b"]]})",
                                   R"({"fields":["a","b"],"rows":[["a"]]})",
                                   R"({"fields":["a"],"rows":[[]]})",
                                   R"({"fields":["a"],"rows":["a"]})",
                                   R"({"fields":["a"],"rows":[[["a"]]]})",
                                   R"({"fields":["a"],"rows":[[{"a":1}]]})",
                                   R"({"fields":["a"],"rows":[["a"]]}})",
                                   R"({"fields":["a"],"more":1,"rows":[]})",
                                   R"({"fields":[["a"]],"rows":[]})",
                                   R"({"fields":[],"rows":[]})",
                                   R"({"fields":["a"],"rows":[[01]]})",
                                   R"({"fields":["a"],"rows":[[1.]]})",
                                   R"({"fields":["a"],"rows":[[.5]]})",
                                   R"({"fields":["a"],"rows":[["a"],]})",
                                   R"({"fields":["a"],"rows":[["a"])",
                                   R"({"fields":["a"],"rows":[["a]]})",
                                   R"({"fields":["a"],"rows":[[nul]]})",
                                   R"({"fields":["a","a"],"rows":[["a",]]})"})
        EXPECT_FALSE(list_rows::parse(text)) << text;
}

TEST(list_rows, are_filtered_in_their_order) {
    auto rows = list_rows::parse(R"({"fields":["n","v"],"rows":[["a",1],["b",2],["c",3]]})");
    ASSERT_TRUE(rows);
    rows->filter([&](std::size_t row) { return rows->at(row, 0) != "b"; });
    EXPECT_EQ(text_of_all(*rows, {"n", "v"}), "a|1|\nc|3|\n");
}

TEST(list_rows, are_made_of_objects) {
    constexpr std::array<std::string_view, 2> fields = {"name", "port"};
    const auto rows =
        list_rows::of(json::parse(R"([{"name":"a","port":80},{"name":"b"}])"), fields);
    EXPECT_EQ(text_of_all(rows, {"port", "name"}), "80|a|\n|b|\n");
}

}  // namespace
}  // namespace eddy::cli
