// Tests of the forms of replies, and of lines as words. The output of redis-cli is that of version
// 7.0.
#include "cli/text/reply_text.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace eddy::cli {
namespace {

reply read(std::string_view stream, std::size_t piece = 0) {
    reply_reader reader;
    reply got;
    if (piece == 0) piece = stream.size();
    for (std::size_t at = 0; at < stream.size(); at += piece) {
        EXPECT_FALSE(reader.next(got).value());
        reader.feed(stream.substr(at, piece));
    }
    EXPECT_TRUE(reader.next(got).value());
    return got;
}

std::string for_people(std::string_view stream) { return reply_for_people(read(stream)); }

TEST(reply_text, looks_as_in_redis_cli) {
    EXPECT_EQ(for_people("+OK\r\n"), "OK\n");
    EXPECT_EQ(for_people("-ERR no\r\n"), "(error) ERR no\n");
    EXPECT_EQ(for_people(":-7\r\n"), "(integer) -7\n");
    EXPECT_EQ(for_people("$-1\r\n"), "(nil)\n");
    EXPECT_EQ(for_people("*0\r\n"), "(empty array)\n");
    EXPECT_EQ(for_people("$9\r\na\"\\\n\t\r\a\x01\xff\r\n"),
              "\"a\\\"\\\\\\n\\t\\r\\a\\x01\\xff\"\n");
    EXPECT_EQ(for_people("*2\r\n$1\r\na\r\n*2\r\n:1\r\n$-1\r\n"),
              "1) \"a\"\n2) 1) (integer) 1\n   2) (nil)\n");
    EXPECT_EQ(for_people("%1\r\n$1\r\nk\r\n,1.5\r\n"), "1# \"k\" => (double) 1.5\n");
    EXPECT_EQ(for_people("~1\r\n#t\r\n"), "1~ (true)\n");
    std::string ten = "*10\r\n";
    for (int i = 0; i < 10; ++i) ten += ":1\r\n";
    EXPECT_TRUE(for_people(ten).starts_with(" 1) (integer) 1\n 2) "));
}

TEST(reply_text, raw_is_the_bytes) {
    using namespace std::string_view_literals;
    EXPECT_EQ(raw_reply(read("$3\r\n\0\xff\n\r\n"sv)), "\0\xff\n\n"sv);
    EXPECT_EQ(raw_reply(read("*3\r\n$1\r\na\r\n$-1\r\n*1\r\n:5\r\n")), "a\n\n5\n");
    EXPECT_EQ(raw_reply(read("*0\r\n")), "\n");
    EXPECT_EQ(raw_reply(read("*2\r\n:1\r\n*0\r\n")), "1\n\n");
}

TEST(reply_text, json_is_json) {
    EXPECT_EQ(json_reply(read("*3\r\n$1\r\na\r\n$-1\r\n:5\r\n")), "[\"a\",null,5]\n");
    EXPECT_EQ(json_reply(read("%1\r\n$1\r\nk\r\n#f\r\n")), "{\"k\":false}\n");
    EXPECT_EQ(json_reply(read("$2\r\n\xff\xfe\r\n")), "{\"base64\":\"//4=\"}\n");
    EXPECT_EQ(json_reply(read("-ERR no\r\n")), "{\"error\":\"ERR no\"}\n");
}

TEST(reply_text, pieces_of_any_size_and_attributes) {
    const std::string_view stream =
        "|1\r\n+ttl\r\n:3600\r\n*2\r\n$5\r\nhello\r\n%1\r\n+a\r\n~2\r\n:1\r\n_\r\n";
    const std::string whole = json_reply(read(stream));
    EXPECT_EQ(whole, "[\"hello\",{\"a\":[1,null]}]\n");
    for (std::size_t piece = 1; piece < stream.size(); ++piece)
        EXPECT_EQ(json_reply(read(stream, piece)), whole) << piece;
    reply_reader broken;
    reply none;
    broken.feed("HTTP/1.1 400 Bad Request\r\n");
    EXPECT_FALSE(broken.next(none).has_value());
}

TEST(reply_text, lines_are_taken_apart_as_by_redis_cli) {
    using list = std::vector<std::string>;
    EXPECT_EQ(split_line("  set a  b\r").value(), (list{"set", "a", "b"}));
    EXPECT_EQ(split_line("set 'a b' \"\\x00\\n\\\"\" ''").value(),
              (list{"set", "a b", std::string("\0\n\"", 3), ""}));
    EXPECT_EQ(split_line("").value(), list{});
    EXPECT_FALSE(split_line("get \"a").has_value());
    EXPECT_FALSE(split_line("get 'a'b").has_value());
}

}  // namespace
}  // namespace eddy::cli
