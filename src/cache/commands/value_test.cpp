// Tests of bits, HyperLogLog, LCS and SORT: their limits, and internals that must not show outside.
// Their replies are compared with Redis in differential_test.cpp.
#include "cache/engine/engine.hpp"
#include "cache/engine/engine_state.hpp"
#include "cache/testing/test_client.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace eddy::cache {
namespace {

using testing::parse_reply;
using testing::test_client;

constexpr std::string_view wrong_type =
    "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n";

engine_options small_limits() {
    engine_options options;
    options.max_text = 1 << 20;
    options.max_reply = 1 << 20;
    return options;
}

class value_commands : public ::testing::Test {
protected:
    void expect(std::string_view line, std::string_view reply) {
        EXPECT_EQ(client_(line), reply) << line;
    }
    std::uint64_t changes() { return engine_.internals().data.changes; }

    engine engine_{small_limits()};
    test_client client_{engine_};
};

TEST_F(value_commands, refuse_other_types) {
    client_("RPUSH list a");
    for (const std::string_view line :
         {"SETBIT list 0 1", "GETBIT list 0", "BITCOUNT list", "BITPOS list 1", "BITOP NOT d list",
          "BITFIELD list GET u8 0", "BITFIELD list SET u8 0 1", "PFADD list a", "PFCOUNT list",
          "PFCOUNT list list", "PFMERGE d list", "PFMERGE list d"}) {
        expect(line, wrong_type);
    }
    client_("HSET hash a 1");
    expect("SORT hash", wrong_type);
    expect("SORT_RO hash", wrong_type);
    expect("LCS list hash", "-ERR The specified keys must contain string values\r\n");
}

TEST_F(value_commands, bits_reach_as_far_as_a_string_may) {
    constexpr std::string_view out_of_range =
        "-ERR bit offset is not an integer or out of range\r\n";
    expect("SETBIT a 8388608 1", out_of_range);
    expect("GETBIT a 8388608", out_of_range);
    expect("BITFIELD a SET u8 8388608 1", out_of_range);
    expect("BITFIELD a SET u8 #1048576 1", out_of_range);
    expect("BITFIELD a GET u63 #9223372036854775807", out_of_range);
    expect("EXISTS a", ":0\r\n");
    expect("SETBIT a 8388607 1", ":0\r\n");
    expect("STRLEN a", ":1048576\r\n");
    expect("BITCOUNT a", ":1\r\n");
    expect("BITPOS a 1", ":8388607\r\n");
    expect("BITOP NOT b a", ":1048576\r\n");
    expect("BITCOUNT b", ":8388607\r\n");
    expect("BITPOS b 0", ":8388607\r\n");
}

TEST_F(value_commands, a_shorter_result_of_bitop_takes_less_memory) {
    client_("SETBIT big 8388607 1");
    client_("SETBIT small 7 1");
    const auto usage = [&](const std::string& key) {
        return std::stoi(parse_reply(client_("MEMORY USAGE " + key)).text.c_str());
    };
    EXPECT_GT(usage("big"), 1'000'000);
    expect("BITOP OR big small", ":1\r\n");
    EXPECT_LT(usage("big"), 1'000);
}

TEST_F(value_commands, changes_are_told_only_where_something_changed) {
    const auto changes_by = [&](std::string_view line) {
        const std::uint64_t before = changes();
        client_(line);
        return changes() - before;
    };
    EXPECT_EQ(changes_by("SETBIT a 7 0"), 1U);
    EXPECT_EQ(changes_by("SETBIT a 7 0"), 0U);
    EXPECT_EQ(changes_by("SETBIT a 7 1"), 1U);
    EXPECT_EQ(changes_by("SETBIT a 15 0"), 1U);
    EXPECT_EQ(changes_by("BITFIELD a SET u8 0 1"), 0U);
    EXPECT_EQ(changes_by("BITFIELD a SET u8 0 2"), 1U);
    EXPECT_EQ(changes_by("BITFIELD a GET u8 0"), 0U);
    EXPECT_EQ(changes_by("BITFIELD a OVERFLOW FAIL SET u8 0 256"), 0U);
    EXPECT_EQ(changes_by("BITOP NOT b a"), 1U);
    EXPECT_EQ(changes_by("BITOP NOT b nosuch"), 1U);
    EXPECT_EQ(changes_by("BITOP NOT b nosuch"), 0U);
    EXPECT_EQ(changes_by("PFADD h a b"), 1U);
    EXPECT_EQ(changes_by("PFADD h a b"), 0U);
    EXPECT_EQ(changes_by("PFCOUNT h"), 1U);
    EXPECT_EQ(changes_by("PFCOUNT h"), 0U);
    EXPECT_EQ(changes_by("PFMERGE h h"), 1U);
    EXPECT_EQ(changes_by("RPUSH l 2 1"), 2U);
    EXPECT_EQ(changes_by("SORT l"), 0U);
    EXPECT_EQ(changes_by("SORT l STORE m"), 1U);
    EXPECT_EQ(changes_by("SORT nosuch STORE m"), 1U);
    EXPECT_EQ(changes_by("SORT nosuch STORE m"), 0U);
}

TEST_F(value_commands, a_hyperloglog_becomes_dense_above_its_limit) {
    expect("CONFIG SET hll-sparse-max-bytes 30", "+OK\r\n");
    expect("PFADD h a", ":1\r\n");
    expect("PFDEBUG ENCODING h", "+sparse\r\n");
    for (int i = 0; i < 20; ++i) client_({"PFADD", "h", std::to_string(i)});
    expect("PFDEBUG ENCODING h", "+dense\r\n");
    expect("STRLEN h", ":12304\r\n");
    expect("PFCOUNT h", ":21\r\n");
    expect("CONFIG GET hll-sparse-max-bytes", "*2\r\n$20\r\nhll-sparse-max-bytes\r\n$2\r\n30\r\n");
}

TEST_F(value_commands, lcs_has_the_limit_of_redis) {
    // A table of so many cells would pass proto-max-bulk-len.
    client_({"SET", "a", std::string(600, 'a')});
    client_({"SET", "b", std::string(600, 'b')});
    client_({"SET", "c", std::string(300, 'a')});
    expect("LCS a b",
           "-ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len\r\n");
    expect("LCS a c LEN", ":300\r\n");
}

TEST_F(value_commands, sort_has_limits) {
    client_({"SET", "big", std::string(100'000, 'x')});
    for (int i = 0; i < 20; ++i) client_({"RPUSH", "l", std::to_string(i)});
    EXPECT_TRUE(client_("SORT l BY nosort GET bi*g").starts_with("*20\r\n$-1"));
    client_("RENAME big big0");
    for (int i = 1; i < 20; ++i) client_({"COPY", "big0", "big" + std::to_string(i)});
    EXPECT_TRUE(client_("SORT l GET big*").starts_with("-ERR the reply is larger than the limit"));
    EXPECT_TRUE(client_("SORT l GET big* STORE d").starts_with("-ERR the list is larger than"));
    expect("EXISTS d", ":0\r\n");
    expect("SORT l LIMIT 0 5 GET big* STORE d", ":5\r\n");
    expect("LLEN d", ":5\r\n");
}

TEST_F(value_commands, sorted_elements_are_ordered_by_what_they_name) {
    client_("RPUSH l a b c");
    client_("MSET w:a 3 w:b 1 w:c 2");
    client_("HSET h:a n x");
    expect("SORT l BY w:* GET #", "*3\r\n$1\r\nb\r\n$1\r\nc\r\n$1\r\na\r\n");
    expect("SORT l BY w:* GET h:*->n", "*3\r\n$-1\r\n$-1\r\n$1\r\nx\r\n");
    expect("SORT l BY w:* STORE l", ":3\r\n");
    expect("LRANGE l 0 -1", "*3\r\n$1\r\nb\r\n$1\r\nc\r\n$1\r\na\r\n");
}

}  // namespace
}  // namespace eddy::cache
