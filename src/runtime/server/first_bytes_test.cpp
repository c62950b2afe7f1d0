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
    for (const std::string_view start : {"", "see /", "see http:", "- * ", "1 /", "SEE x"}) {
        std::string text(start);
        text.resize(lines.longest_message, 'x');
        EXPECT_EQ(judge_first_bytes(text, lines), speech::undecided) << start;
        EXPECT_EQ(judge_first_bytes(text + "\n", lines), speech::raw) << start;
        EXPECT_EQ(judge_first_bytes(text + " HTTP/1.1\n", lines), speech::http) << start;
        EXPECT_EQ(judge_first_bytes(text + "x", lines), speech::raw) << start;
    }
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
        EXPECT_EQ(judge_first_bytes("FOO " + path + "\n", rules), speech::raw);
        EXPECT_EQ(judge_first_bytes("see /" + path + "\n", rules), speech::raw);
    }
    EXPECT_EQ(judge_first_bytes("FOO " + path, pieces), speech::raw);
    EXPECT_EQ(judge_first_bytes("see /" + path, pieces), speech::raw);
}

TEST(first_bytes, the_end_of_what_a_client_sends_is_the_end_of_its_line) {
    for (const first_bytes_rules& rules : {lines, pieces}) {
        for (const std::string_view text :
             {"", "G", "GET", "get", "hello", "\r\n", "FOO", "FOO x", "see /", "- * x", "1 /"})
            EXPECT_EQ(judge_first_bytes(text, rules, true), speech::raw) << text;
        for (const std::string_view text :
             {"GET ", "get /", "FOO / HTTP/1.1", "FOO /", "FOO /x?token=secret",
              "FOO /x?token=secret HTT", "FOO http://x/secret",
              "FOO / HTTP/1.1\rCookie: secret\r\r"})
            EXPECT_EQ(judge_first_bytes(text, rules, true), speech::http) << text;
    }
}

TEST(first_bytes, a_bare_carriage_return_ends_a_line_with_a_version) {
    for (const std::string_view text :
         {"FOO / HTTP/1.1\rCookie: secret\r\r\n", "foo / HTTP/1.1 \rCookie: secret\n",
          "hello\rGET / HTTP/1.1\rCookie: secret\n"})
        EXPECT_EQ(judge_first_bytes(text, lines), speech::http) << text;
    EXPECT_EQ(judge_first_bytes("hello\rHTTP/1.1 is old\r\n", lines), speech::raw);
}

TEST(first_bytes, foreign_protocols_are_recognised_at_each_prefix) {
    for (const foreign_start& each : foreign_starts()) {
        for (const first_bytes_rules& rules : {lines, pieces}) {
            foreign_protocol last = foreign_protocol::undecided;
            for (std::size_t size = 0; size <= each.bytes.size(); ++size) {
                const std::string_view begun = std::string_view(each.bytes).substr(0, size);
                const foreign_protocol now = judge_foreign_protocol(begun, rules);
                if (each.waits) EXPECT_NE(now, foreign_protocol::none) << each.name << size;
                const bool is_known =
                    last != foreign_protocol::undecided && last != foreign_protocol::none;
                if (is_known) EXPECT_EQ(now, last) << each.name << size;
                last = now;
            }
            EXPECT_EQ(last, each.is_tls           ? foreign_protocol::tls
                            : each.name == "STUN" ? foreign_protocol::stun
                                                  : foreign_protocol::proxy);
        }
    }
}

TEST(first_bytes, other_bytes_are_of_no_foreign_protocol) {
    using namespace std::string_literals;
    for (const std::string& text :
         {"hello"s, "PROXY\n"s, "PROXYING "s, "proxy TCP4 "s, " PROXY TCP4"s, "\r\n\r\n\0\n"s,
          "\n"s, "\x16\x02\x01"s, "\x16\n"s, "\x16\x03\x05"s, "\x80\x46\x02\x03\x01"s, "1\n"s,
          "\x01"s, "\0\x04ping"s, "\0\0\0\x05hello"s, "\0\x01\0\0\x21\x12\xa4\x43"s,
          "\x40\x01\0\0\x21\x12\xa4\x42"s, "\0\x14\x80\x01\0\0\x21\x12\xa4\x42"s}) {
        EXPECT_EQ(judge_foreign_protocol(text, lines), foreign_protocol::none) << text;
        EXPECT_EQ(judge_foreign_protocol(text, pieces), foreign_protocol::none) << text;
    }
}

TEST(first_bytes, a_tls_handshake_is_recognised) {
    using namespace std::string_literals;
    EXPECT_EQ(judge_foreign_protocol("\x16\x03\x01", lines), foreign_protocol::tls);
    EXPECT_EQ(judge_foreign_protocol("\x16\x03", lines), foreign_protocol::undecided);
    const std::string record = "\x16\x03\x01\x02\0"s;
    EXPECT_EQ(judge_foreign_protocol(record, pieces), foreign_protocol::undecided);
    EXPECT_EQ(judge_foreign_protocol(record + "\x01", pieces), foreign_protocol::tls);
    EXPECT_EQ(judge_foreign_protocol(record + "\x02", pieces), foreign_protocol::none);
    const first_bytes_rules within_tls{.by_line = false, .is_secure = true};
    EXPECT_EQ(judge_foreign_protocol(record + "\x01", within_tls), foreign_protocol::none);
}

}  // namespace
}  // namespace eddy::runtime::server
