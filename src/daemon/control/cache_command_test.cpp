// Replies of caches as JSON.
#include "daemon/control/cache_command.hpp"

#include <gtest/gtest.h>

#include <string>

namespace eddy::daemon {
namespace {

TEST(reply_as_json, has_each_kind_of_reply) {
    EXPECT_EQ(reply_as_json("+OK\r\n").value(), json("OK"));
    EXPECT_EQ(reply_as_json(":-7\r\n").value(), json(-7));
    EXPECT_EQ(reply_as_json("$5\r\nhello\r\n").value(), json("hello"));
    EXPECT_EQ(reply_as_json("$-1\r\n").value(), json(nullptr));
    EXPECT_EQ(reply_as_json("-ERR no\r\n").value(), (json{{"error", "ERR no"}}));
    EXPECT_EQ(reply_as_json("*3\r\n$1\r\na\r\n:1\r\n*1\r\n$-1\r\n").value(),
              json::parse(R"(["a", 1, [null]])"));
}

TEST(reply_as_json, refuses_what_is_too_much_or_no_reply) {
    EXPECT_EQ(reply_as_json("").error().status, 500);
    EXPECT_EQ(reply_as_json("*1\r\n").error().status, 500);
    EXPECT_EQ(reply_as_json(std::string(max_shown_reply + 1, 'x')).error().status, 507);
    EXPECT_EQ(reply_as_json("*" + std::to_string(max_shown_elements + 1) + "\r\n").error().status,
              507);
}

}  // namespace
}  // namespace eddy::daemon
