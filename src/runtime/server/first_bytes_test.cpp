// Tests of the recognition of what a client speaks: at each prefix, and at the limits.
#include "runtime/server/first_bytes.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace eddy::runtime::server {
namespace {

constexpr std::string_view upgrade =
    "GET /chat HTTP/1.1\r\nHost: x\r\nupgrade: WEBSOCKET\r\nConnection: keep-alive, "
    "Upgrade\r\n\r\n";

TEST(first_bytes, a_request_for_a_websocket_is_http_once_its_head_is_whole) {
    for (std::size_t size = 0; size < upgrade.size(); ++size)
        EXPECT_EQ(judge_first_bytes(upgrade.substr(0, size), false), speech::undecided) << size;
    EXPECT_EQ(judge_first_bytes(upgrade, false), speech::http);
    EXPECT_EQ(judge_first_bytes(std::string(upgrade) + "\x81", false), speech::http);
}

TEST(first_bytes, what_cannot_become_one_is_raw_at_once) {
    for (const std::string_view text :
         {"hello", "G\n", "GETX", "get / HTTP/1.1\r\n", "GET / HTTP/1.1\n", "GET /\n", "\r\n",
          "GET hello", "GET ?", "GET  /", "GET h0", "POST /", "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
          "GET / HTTP/1.1\r\nbroken\r\n\r\n"})
        EXPECT_EQ(judge_first_bytes(text, false), speech::raw) << text;
    EXPECT_EQ(judge_first_bytes("GET " + std::string(longest_first_head, 'x'), false), speech::raw);
}

TEST(first_bytes, requests_are_http_from_their_first_line_where_they_are_taken) {
    for (const std::string_view text :
         {"GET / HTTP/1.1\r\n", "POST /x HTTP/1.0\r\nA: b", "OPTIONS * HTTP/1.1\r\n",
          "GET HTTP://x/ HTTP/1.1\r\n", "CONNECT x:443 HTTP/1.1\r\n"})
        EXPECT_EQ(judge_first_bytes(text, true), speech::http) << text;
    for (const std::string_view text : {"", "P", "POST", "POST ", "HELLO ", "GET ht",
                                        "GET / HTTP/1.1\r", "HELLO /", "HELLO *", "CONNECT x"})
        EXPECT_EQ(judge_first_bytes(text, true), speech::undecided) << text;
    for (const std::string_view text : {" ", "hello", "HELLO w", "HELLO  ", "GET hy", "CONNECTS x",
                                        "GET / HTTP/2\r\n", "ABCDEFGHIJKLMNOPQ", "1", "\n"})
        EXPECT_EQ(judge_first_bytes(text, true), speech::raw) << text;
}

}  // namespace
}  // namespace eddy::runtime::server
