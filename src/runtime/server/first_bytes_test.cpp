// Tests of the recognition of what a client speaks: at each prefix, and at the limits.
#include "runtime/server/first_bytes.hpp"

#include "runtime/server/request_lines.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace eddy::runtime::server {
namespace {

constexpr first_bytes_rules lines{.by_line = true, .longest_message = 64 * 1024};
constexpr first_bytes_rules pieces{.by_line = false};

TEST(first_bytes, no_prefix_of_a_request_is_a_message) {
    for (const std::string& text : request_lines) {
        for (const first_bytes_rules& rules : {lines, pieces}) {
            speech last = speech::undecided;
            for (std::size_t size = 0; size <= text.size(); ++size) {
                const std::string_view begun = std::string_view(text).substr(0, size);
                if (!rules.by_line && is_of_unknown_method(begun)) continue;
                const speech now = judge_first_bytes(begun, rules);
                EXPECT_NE(now, speech::raw) << begun;
                if (last == speech::http) EXPECT_EQ(now, speech::http) << begun;
                last = now;
            }
            EXPECT_EQ(last, speech::http) << text;
            EXPECT_EQ(judge_first_bytes(text + "Host: x\r\n\r\n", rules), speech::http) << text;
        }
    }
}

TEST(first_bytes, other_lines_are_messages) {
    for (const std::string_view text : {"hello\n",
                                        "HELLO world\n",
                                        "G\n",
                                        "GET\n",
                                        "Get well soon\n",
                                        "post it\n",
                                        "GETX\n",
                                        "move over\r\n",
                                        "Search me\n",
                                        "options: none\n",
                                        "1\n",
                                        "PING 17\n",
                                        "cd /tmp\n",
                                        "SEE /tmp\n",
                                        "{\"GET\": 1}\n",
                                        "HTTP/1.1 is old\n",
                                        "a http:// b\n",
                                        "*\n",
                                        "put *x\n",
                                        "\n\nhello\n",
                                        "hello\nGET / HTTP/1.1\r\n"}) {
        EXPECT_EQ(judge_first_bytes(text, lines), speech::raw) << text;
        EXPECT_EQ(judge_first_bytes(text, pieces), speech::raw) << text;
    }
}

TEST(first_bytes, a_line_waits_for_its_end) {
    for (const std::string_view text : {"", "h", "hello", "hello world", "\r\n", "GET", "get w"})
        EXPECT_EQ(judge_first_bytes(text, lines), speech::undecided) << text;
    EXPECT_EQ(judge_first_bytes(std::string(longest_first_line, 'x'), lines), speech::undecided);
    EXPECT_EQ(judge_first_bytes(std::string(longest_first_line + 1, 'x'), lines), speech::raw);
    const first_bytes_rules shorter{.by_line = true, .longest_message = 10};
    EXPECT_EQ(judge_first_bytes("0123456789", shorter), speech::undecided);
    EXPECT_EQ(judge_first_bytes("0123456789x", shorter), speech::raw);
}

TEST(first_bytes, a_piece_waits_only_for_a_request) {
    for (const std::string_view text :
         {"", "g", "GET", "Get", "get ", "get h", "MOVE *", "\r\n", "FOO /", "FOO /x HTTP/1"})
        EXPECT_EQ(judge_first_bytes(text, pieces), speech::undecided) << text;
    for (const std::string_view text :
         {"hello", "hello world", "GETX", "FOO", "FOO x", "get w", "cd /", "\x01", "SSH-2.0"})
        EXPECT_EQ(judge_first_bytes(text, pieces), speech::raw) << text;
}

TEST(first_bytes, a_first_line_that_is_too_long_is_still_a_request) {
    const std::string path(longest_first_line, 'x');
    for (const first_bytes_rules& rules : {lines, pieces}) {
        EXPECT_EQ(judge_first_bytes("GET /" + path, rules), speech::http);
        EXPECT_EQ(judge_first_bytes("get /" + path, rules), speech::http);
        EXPECT_EQ(judge_first_bytes("FOO /" + path, rules), speech::http);
        EXPECT_EQ(judge_first_bytes("FOO " + path, rules), speech::raw);
    }
}

TEST(first_bytes, the_end_of_what_a_client_sends_is_the_end_of_its_line) {
    for (const std::string_view text : {"", "G", "GET", "get", "hello", "\r\n", "FOO /"})
        EXPECT_EQ(judge_first_bytes(text, lines, true), speech::raw) << text;
    for (const std::string_view text : {"GET ", "get /", "FOO / HTTP/1.1"})
        EXPECT_EQ(judge_first_bytes(text, lines, true), speech::http) << text;
}

TEST(first_bytes, a_tls_handshake_is_recognised) {
    EXPECT_TRUE(begins_tls("\x16\x03\x01\x02"));
    EXPECT_TRUE(begins_tls("\x16\x03\x03"));
    EXPECT_FALSE(begins_tls("\x16\x03"));
    EXPECT_FALSE(begins_tls("\x16\x02\x01"));
    EXPECT_FALSE(begins_tls("hello"));
}

}  // namespace
}  // namespace eddy::runtime::server
