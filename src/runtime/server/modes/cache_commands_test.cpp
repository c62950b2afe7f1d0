// Tests of commands to a cache as lines, and of its replies as lines.
#include "runtime/server/modes/cache_commands.hpp"

#include "runtime/server/modes/line_commands.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace eddy::runtime::server {
namespace {

using ::testing::HasSubstr;

std::string encoded_line(std::string_view text) {
    byte_buffer out;
    const std::string refusal = encode_cache_command(text, out);
    return refusal.empty() ? std::string(out.text()) : "refused: " + refusal;
}

TEST(server_cache_commands, a_line_is_a_command_with_its_arguments) {
    EXPECT_EQ(encoded_line("get k"), "*2\r\n$3\r\nget\r\n$1\r\nk\r\n");
    EXPECT_EQ(encoded_line("  SET k \"two words\" EX 5"),
              "*5\r\n$3\r\nSET\r\n$1\r\nk\r\n$9\r\ntwo words\r\n$2\r\nEX\r\n$1\r\n5\r\n");
    EXPECT_EQ(encoded_line("set k ''"), "*3\r\n$3\r\nset\r\n$1\r\nk\r\n$0\r\n\r\n");
    EXPECT_EQ(encoded_line("size"), "*1\r\n$6\r\ndbsize\r\n");
}

TEST(server_cache_commands, what_is_no_command_is_refused) {
    EXPECT_THAT(encoded_line(""), HasSubstr("there is no command"));
    EXPECT_THAT(encoded_line("   "), HasSubstr("there is no command"));
    EXPECT_THAT(encoded_line("set k \"open"), HasSubstr("unbalanced quotes"));
    EXPECT_THAT(encoded_line("nonsense k"), HasSubstr("no command \"nonsense\""));
    EXPECT_THAT(encoded_line("*1"), HasSubstr("begins no command"));
    EXPECT_THAT(encoded_line(std::string(100, 'x')), HasSubstr("no command"));
}

TEST(server_cache_commands, commands_about_data_alone_are_taken) {
    for (const char* const good :
         {"incr n",       "mget a b",     "lpush l x",      "smembers s", "hgetall h",
          "zadd z 1 a",   "xadd s * f v", "expire k 5",     "ttl k",      "scan 0",
          "keys *",       "sort l",       "publish c m",    "dbsize",     "ping",
          "setbit b 1 1", "pfadd p a",    "geoadd g 1 1 a", "copy a b",   "object encoding k"})
        EXPECT_THAT(encoded_line(good), ::testing::StartsWith("*")) << good;
    for (const char* const bad : {"subscribe c",
                                  "psubscribe c",
                                  "monitor",
                                  "auth x",
                                  "hello 3",
                                  "select 1",
                                  "multi",
                                  "exec",
                                  "watch k",
                                  "blpop l 0",
                                  "xread block 0 streams s $",
                                  "client kill id 1",
                                  "config get *",
                                  "shutdown",
                                  "flushall",
                                  "flushdb",
                                  "debug sleep 1",
                                  "acl whoami",
                                  "replicaof no one",
                                  "save",
                                  "eval x 0",
                                  "script flush",
                                  "function list",
                                  "migrate h 1 k 0 1",
                                  "wait 1 0",
                                  "quit",
                                  "reset",
                                  "swapdb 0 1",
                                  "psync ? -1",
                                  "info",
                                  "slowlog get",
                                  "module list",
                                  "restore k 0 x",
                                  "memory usage k",
                                  "failover",
                                  "cluster info",
                                  "latency doctor"})
        EXPECT_THAT(encoded_line(bad), HasSubstr("refused")) << bad;
}

/// Lines of the replies in `bytes`.
std::string lines_of(std::string_view bytes, std::size_t most = 1000) {
    resp::reply_parser parser;
    reply_lines lines(most);
    byte_buffer out;
    for (;;) {
        const resp::reply_outcome next = parser.next(bytes);
        if (next.status != resp::parse_status::complete) break;
        static_cast<void>(lines.take(next.event, out));
        bytes.remove_prefix(next.consumed);
    }
    return std::string(out.text());
}

TEST(server_cache_commands, replies_are_lines) {
    EXPECT_EQ(lines_of("+OK\r\n$3\r\nbar\r\n$-1\r\n:7\r\n+PONG\r\n"), "ok\nbar\nnil\n7\nPONG\n");
    EXPECT_EQ(lines_of("-WRONGTYPE it is\r\n"), "error: WRONGTYPE it is\n");
    EXPECT_EQ(lines_of("*2\r\n$1\r\na\r\n$-1\r\n:1\r\n"), "a\nnil\nend\n1\n");
    EXPECT_EQ(lines_of("*0\r\n"), "end\n");
    EXPECT_EQ(lines_of("*2\r\n$1\r\n0\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n"), "0\na\nb\nend\n");
}

TEST(server_cache_commands, a_reply_that_would_be_several_lines_is_an_error) {
    EXPECT_THAT(lines_of("$3\r\na\nb\r\n:1\r\n"), HasSubstr("error: the value has line breaks"));
    EXPECT_THAT(lines_of("$3\r\na\nb\r\n:1\r\n"), ::testing::EndsWith("\n1\n"));
    EXPECT_THAT(lines_of("*2\r\n$1\r\na\r\n$1\r\n\r\r\n"), HasSubstr("line breaks"));
}

TEST(server_cache_commands, a_reply_is_limited) {
    EXPECT_EQ(lines_of("$3\r\nabc\r\n", 4), "abc\n");
    EXPECT_EQ(lines_of("$4\r\nabcd\r\n:1\r\n", 4), "error: the reply has more than 4 bytes\n1\n");
    EXPECT_EQ(lines_of("*2\r\n$1\r\na\r\n$1\r\nb\r\n", 7),
              "error: the reply has more than 7 bytes\n");
    EXPECT_EQ(lines_of("*2\r\n$1\r\na\r\n$1\r\nb\r\n", 8), "a\nb\nend\n");
}

TEST(server_line_commands, commands_are_split_from_messages) {
    const line_command_rules both{true, true, 20};
    const auto text = [&](std::string_view input, const line_command_rules& rules) {
        std::string seen;
        while (!input.empty()) {
            const line_command_split part = split_commands(input, rules);
            seen += part.what == line_command::none ? "[" + std::string(input.substr(0, part.size))
                    : part.what == line_command::master ? "{m:" + std::string(part.argument)
                                                        : "{c:" + std::string(part.argument);
            seen += '|';
            input.remove_prefix(part.size);
        }
        return seen;
    };
    EXPECT_EQ(text("a\nb\nmaster pw\r\nc\ncache get k\ncache x\nd", both),
              "[a\nb\n|{m:pw|[c\n|{c:get k|{c:x|[d|");
    EXPECT_EQ(text("master\ncache\nmasterful\n master x\n", both),
              "[master\ncache\nmasterful\n master x\n|");
    EXPECT_EQ(text("master \ncache \r\n", both), "{m:|{c:|");
    // Only whole lines, of the longest size at most.
    EXPECT_EQ(text("master pw", both), "[master pw|");
    EXPECT_EQ(text("cache " + std::string(14, 'x') + "\n", both),
              "{c:" + std::string(14, 'x') + "|");
    EXPECT_EQ(text("cache " + std::string(15, 'x') + "\n", both),
              "[cache " + std::string(15, 'x') + "\n|");
    EXPECT_EQ(text("master pw\ncache x\n", {false, true, 20}), "[master pw\n|{c:x|");
    EXPECT_EQ(text("master pw\ncache x\n", {true, false, 20}), "{m:pw|[cache x\n|");
}

}  // namespace
}  // namespace eddy::runtime::server
