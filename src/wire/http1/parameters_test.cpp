// Parameters of fields: tokens, quotes, and what is refused.
#include <eddy/wire/http1/parameters.hpp>

#include <gtest/gtest.h>

#include <string>

namespace eddy::http1 {
namespace {

std::string read(std::string_view field) {
    parameter_reader reader(field);
    std::string out(reader.value());
    while (const auto found = reader.next())
        out.append(" ").append(found->name).append("=<").append(found->value).append(">");
    return reader.malformed() ? out + " malformed" : out;
}

TEST(http1_parameters, reads_a_media_type) {
    EXPECT_EQ(read("text/html"), "text/html");
    EXPECT_EQ(read(" Text/HTML ; charset=utf-8;\tQ=\"1\" "), "Text/HTML charset=<utf-8> Q=<1>");
    EXPECT_EQ(read("a/b;;; x=y;"), "a/b x=<y>");
    EXPECT_EQ(read(""), "");
    EXPECT_EQ(read("a/b; x=\"\""), "a/b x=<>");
    EXPECT_TRUE(has_media_type("Application/JSON; charset=utf-8", "application/json"));
    EXPECT_FALSE(has_media_type("application/json5", "application/json"));
}

TEST(http1_parameters, takes_boundaries_without_quotes) {
    EXPECT_EQ(read("a/b; boundary=----=_Part_1.2:3"), "a/b boundary=<----=_Part_1.2:3>");
}

TEST(http1_parameters, reads_quoted_names_of_files) {
    EXPECT_EQ(read(R"(form-data; filename="a;b=c, d\"e")"), R"(form-data filename=<a;b=c, d"e>)");
    EXPECT_EQ(read(R"(x; filename="C:\dir\file.txt")"), R"(x filename=<C:\dir\file.txt>)");
    EXPECT_EQ(read(R"(x; filename="a\\b")"), R"(x filename=<a\b>)");
    EXPECT_EQ(read("x; filename=\"\xc3\xa9\""), "x filename=<\xc3\xa9>");
}

TEST(http1_parameters, refuses_what_is_malformed) {
    EXPECT_EQ(read("a; b"), "a malformed");
    EXPECT_EQ(read("a; b="), "a malformed");
    EXPECT_EQ(read("a; =c"), "a malformed");
    EXPECT_EQ(read("a; b c=d"), "a malformed");
    EXPECT_EQ(read("a; b=\"c"), "a malformed");
    EXPECT_EQ(read("a; b=c d=e"), "a b=<c> malformed");
    EXPECT_EQ(read("a; b=\"c\"d"), "a b=<c> malformed");
    EXPECT_EQ(read("a; b=c, d"), "a b=<c> malformed");
}

}  // namespace
}  // namespace eddy::http1
