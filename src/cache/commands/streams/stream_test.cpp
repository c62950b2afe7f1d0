// Tests of stream commands beyond the comparison with Redis 7.0: behaviour of Redis 7.2, the clock,
// and our own limits.
#include "cache/engine/engine.hpp"
#include "cache/testing/test_client.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace eddy::cache {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using testing::test_client;

constexpr std::string_view ok = "+OK\r\n";
constexpr std::string_view too_low =
    "-ERR The ID specified in XADD is equal or smaller than the target stream top item\r\n";

std::string bulk(std::string_view text) {
    return "$" + std::to_string(text.size()) + "\r\n" + std::string(text) + "\r\n";
}

// XREAD's reply with entries of one pair f v.
std::string read_reply(std::string_view key, const std::vector<std::string>& ids) {
    std::string all = "*1\r\n*2\r\n" + bulk(key) + "*" + std::to_string(ids.size()) + "\r\n";
    for (const std::string& id : ids) all += "*2\r\n" + bulk(id) + "*2\r\n" + bulk("f") + bulk("v");
    return all;
}

class streams : public ::testing::Test {
protected:
    void SetUp() override { at(now_); }
    void at(milliseconds time) {
        now_ = time;
        engine_.set_time(time);
    }

    milliseconds now_{1'700'000'000'000};
    engine engine_;
    test_client a_{engine_};
    test_client b_{engine_};
    test_client c_{engine_};
};

TEST_F(streams, ids_follow_the_clock_and_never_go_back) {
    EXPECT_EQ(a_("XADD s * f v"), bulk("1700000000000-0"));
    EXPECT_EQ(a_("XADD s * f v"), bulk("1700000000000-1"));
    at(milliseconds(1'699'999'999'000));
    EXPECT_EQ(a_("XADD s * f v"), bulk("1700000000000-2"));
    at(milliseconds(1'700'000'000'001));
    EXPECT_EQ(a_("XADD s * f v"), bulk("1700000000001-0"));
    EXPECT_EQ(a_("XADD s 1700000000001-18446744073709551615 f v"),
              bulk("1700000000001-18446744073709551615"));
    EXPECT_EQ(a_("XADD s * f v"), bulk("1700000000002-0"));
    EXPECT_EQ(a_("XADD s 1700000000002-18446744073709551615 f v"),
              bulk("1700000000002-18446744073709551615"));
    EXPECT_EQ(a_("XADD s 1700000000002-* f v"), too_low);
}

TEST_F(streams, an_entry_has_a_limit) {
    const std::string part(64U << 20, 'x');
    std::vector<std::string_view> args{"XADD", "s", "*", "f"};
    args.insert(args.end(), 17, part);
    const resp::command one{args.data(), args.size()};
    byte_buffer out;
    engine_.execute(a_.who(), {&one, 1}, out);
    EXPECT_EQ(out.text(), "-ERR Elements are too large to be stored\r\n");
    EXPECT_EQ(a_("EXISTS s"), ":0\r\n");
}

TEST_F(streams, words_of_unbalanced_lists) {
    EXPECT_EQ(a_("XREAD STREAMS a b 0"),
              "-ERR Unbalanced 'xread' list of streams: for each stream key an ID or '$' must be "
              "specified.\r\n");
    EXPECT_EQ(a_("XREADGROUP GROUP g c STREAMS a b >"),
              "-ERR Unbalanced 'xreadgroup' list of streams: for each stream key an ID or '>' must "
              "be specified.\r\n");
}

// Redis 7.0 would wait.
TEST_F(streams, a_deadline_beyond_all_times_is_refused) {
    EXPECT_EQ(a_("XREAD BLOCK 9223372036854775807 STREAMS s 0"),
              "-ERR timeout is out of range\r\n");
}

TEST_F(streams, plus_reads_the_last_entry) {
    a_("XADD s 1 f v");
    a_("XADD s 2 f v");
    EXPECT_EQ(a_("XREAD STREAMS s +"), read_reply("s", {"2-0"}));
    a_("XDEL s 2");
    EXPECT_EQ(a_("XREAD STREAMS s +"), read_reply("s", {"1-0"}));
    EXPECT_EQ(a_("XREAD STREAMS none +"), "*-1\r\n");
    a_("XDEL s 1");
    EXPECT_EQ(a_("XREAD STREAMS s +"), "*-1\r\n");
    EXPECT_EQ(a_("XREAD BLOCK 0 STREAMS s +"), "");
    b_("XADD s 3 f v");
    EXPECT_EQ(a_.pushed(), read_reply("s", {"3-0"}));
}

TEST_F(streams, who_waits_for_several_is_given_all_that_have_come) {
    EXPECT_EQ(a_("XREAD BLOCK 0 STREAMS s t $ $"), "");
    b_("MULTI");
    b_("XADD s 1 f v");
    b_("XADD t 1 f v");
    b_("EXEC");
    const std::string one = read_reply("s", {"1-0"}).substr(4);
    const std::string other = read_reply("t", {"1-0"}).substr(4);
    EXPECT_EQ(a_.pushed(), "*2\r\n" + one + other);
}

TEST_F(streams, an_entry_that_is_gone_at_once_wakes_nobody) {
    EXPECT_EQ(a_("XREAD BLOCK 0 STREAMS s $"), "");
    b_("MULTI");
    b_("XADD s 1 f v");
    b_("XDEL s 1");
    b_("EXEC");
    EXPECT_EQ(a_.pushed(), "");
    EXPECT_TRUE(a_.who().blocked);
    b_("XADD s 2 f v");
    EXPECT_EQ(a_.pushed(), read_reply("s", {"2-0"}));
}

TEST_F(streams, who_waits_with_a_group_is_told_of_its_end) {
    constexpr std::string_view no_group =
        "-NOGROUP No such key 's' or consumer group 'g' in XREADGROUP with GROUP option\r\n";
    const auto wait = [&] {
        b_("XGROUP CREATE s g $ MKSTREAM");
        EXPECT_EQ(a_("XREADGROUP GROUP g c BLOCK 0 STREAMS s >"), "");
        EXPECT_EQ(c_("XREAD BLOCK 0 STREAMS s $"), "");
    };
    const auto free_c = [&] {
        EXPECT_EQ(c_.pushed(), "");
        EXPECT_EQ(b_("CLIENT UNBLOCK " + std::to_string(c_.who().id)), ":1\r\n");
        EXPECT_EQ(c_.pushed(), "*-1\r\n");
    };
    wait();
    EXPECT_EQ(b_("XGROUP DESTROY s g"), ":1\r\n");
    EXPECT_EQ(a_.pushed(), no_group);
    free_c();
    for (const std::string_view end : {"DEL s", "UNLINK s", "RENAME s other", "FLUSHDB", "FLUSHALL",
                                       "SWAPDB 0 1", "MOVE s 1", "PEXPIREAT s 1"}) {
        wait();
        b_(end);
        EXPECT_EQ(a_.pushed(), no_group) << end;
        free_c();
        b_("FLUSHALL");
    }
    wait();
    EXPECT_EQ(b_("SET s x"), ok);
    EXPECT_THAT(a_.pushed(), StartsWith("-WRONGTYPE"));
    free_c();
    b_("DEL s");
    // Also when the key expires without an access.
    wait();
    b_("PEXPIRE s 100");
    at(now_ + milliseconds(200));
    EXPECT_EQ(a_.pushed(), "");
    engine_.upkeep();
    EXPECT_EQ(a_.pushed(), no_group);
    free_c();
    // Waits without a group, and for a list, are unchanged.
    EXPECT_EQ(c_("BLPOP s 0"), "");
    wait();
}

// As in Redis: a key of another type ends a wait for a group, and a wait for several streams once
// another one of them has an entry.
TEST_F(streams, a_key_that_becomes_another_type_ends_no_read_without_a_group) {
    constexpr std::string_view wrong_type =
        "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n";
    a_("XADD s 1 f v");
    EXPECT_EQ(b_("XREAD BLOCK 0 STREAMS s $"), "");
    EXPECT_EQ(c_("XREAD BLOCK 0 STREAMS s t $ $"), "");
    a_("SET s x");
    EXPECT_EQ(b_.pushed(), "");
    EXPECT_EQ(c_.pushed(), "");
    a_("XADD t 1 f v");
    EXPECT_EQ(c_.pushed(), wrong_type);
    a_("DEL s");
    a_("XADD s 2 f v");
    EXPECT_EQ(b_.pushed(), read_reply("s", {"2-0"}));
    a_("XGROUP CREATE s g $");
    EXPECT_EQ(b_("XREADGROUP GROUP g c BLOCK 0 STREAMS s >"), "");
    a_("SET s x");
    EXPECT_EQ(b_.pushed(), wrong_type);
}

TEST_F(streams, a_wait_ends_at_its_deadline) {
    EXPECT_EQ(a_("XREAD BLOCK 1500 STREAMS s $"), "");
    EXPECT_EQ(engine::deadline_us(a_.who()), microseconds(now_ + milliseconds(1500)).count());
    at(now_ + milliseconds(1499));
    engine_.end_wait(a_.who());
    EXPECT_TRUE(a_.who().blocked);
    at(now_ + milliseconds(1));
    engine_.end_wait(a_.who());
    EXPECT_EQ(a_.pushed(), "*-1\r\n");
    EXPECT_EQ(a_("HELLO 3").substr(0, 1), "%");
    EXPECT_EQ(a_("XREAD BLOCK 1 STREAMS s $"), "");
    at(now_ + milliseconds(1));
    engine_.end_wait(a_.who());
    EXPECT_EQ(a_.pushed(), "_\r\n");
}

TEST_F(streams, consumers_are_seen_when_they_try_and_active_when_they_succeed) {
    a_("XGROUP CREATE s g 0 MKSTREAM");
    EXPECT_EQ(a_("XREADGROUP GROUP g c STREAMS s >"), "*-1\r\n");
    const auto consumers = [&] { return testing::parse_reply(a_("XINFO CONSUMERS s g")); };
    const auto figures = [&] {
        const auto reply = consumers();
        const auto& of = reply.children.at(0).children;
        return of.at(3).text + " " + of.at(5).text + " " + of.at(7).text;  // pending idle inactive
    };
    EXPECT_EQ(figures(), "0 0 -1");
    at(now_ + milliseconds(50));
    EXPECT_EQ(figures(), "0 50 -1");
    a_("XADD s 1 f v");
    a_("XREADGROUP GROUP g c STREAMS s >");
    EXPECT_EQ(figures(), "1 0 0");
    at(now_ + milliseconds(70));
    a_("XREADGROUP GROUP g c STREAMS s >");
    EXPECT_EQ(figures(), "1 0 70");
    a_("XCLAIM s g c 1000 1");
    EXPECT_EQ(figures(), "1 0 70");
    a_("XAUTOCLAIM s g c 10 0");
    EXPECT_EQ(figures(), "1 0 0");
    at(now_ + milliseconds(5));
    const std::string full = a_("XINFO STREAM s FULL");
    EXPECT_THAT(full, HasSubstr(bulk("active-time") + ":" + std::to_string(now_.count() - 5)));
    // XCLAIM and XAUTOCLAIM create the consumer, even with nothing to claim.
    a_("XCLAIM s g d 1000 1");
    a_("XAUTOCLAIM s g e 1000 0");
    EXPECT_EQ(consumers().children.size(), 3U);
}

TEST_F(streams, idle_times_are_of_the_last_delivery) {
    a_("XGROUP CREATE s g 0 MKSTREAM");
    a_("XADD s 1 f v");
    a_("XREADGROUP GROUP g c STREAMS s >");
    at(now_ + milliseconds(300));
    EXPECT_EQ(a_("XPENDING s g - + 10"),
              "*1\r\n*4\r\n" + bulk("1-0") + bulk("c") + ":300\r\n:1\r\n");
    EXPECT_EQ(a_("XPENDING s g IDLE 301 - + 10"), "*0\r\n");
    EXPECT_EQ(a_("XCLAIM s g d 301 1 JUSTID"), "*0\r\n");
    EXPECT_EQ(a_("XAUTOCLAIM s g d 301 0 JUSTID"), "*3\r\n" + bulk("0-0") + "*0\r\n*0\r\n");
    EXPECT_EQ(a_("XCLAIM s g d 300 1 JUSTID"), "*1\r\n" + bulk("1-0"));
    EXPECT_EQ(a_("XPENDING s g - + 10"), "*1\r\n*4\r\n" + bulk("1-0") + bulk("d") + ":0\r\n:1\r\n");
    a_("XREADGROUP GROUP g d STREAMS s 0");
    EXPECT_EQ(a_("XPENDING s g - + 10"), "*1\r\n*4\r\n" + bulk("1-0") + bulk("d") + ":0\r\n:2\r\n");
    // A clock that goes back makes nothing older than now.
    at(now_ - milliseconds(1000));
    EXPECT_EQ(a_("XPENDING s g - + 10"), "*1\r\n*4\r\n" + bulk("1-0") + bulk("d") + ":0\r\n:2\r\n");
}

TEST_F(streams, what_a_group_has_still_to_read_is_unknown_behind_what_was_deleted) {
    const auto lag = [&] {
        const auto groups = testing::parse_reply(a_("XINFO GROUPS s"));
        return groups.children[0].children.back().text;
    };
    for (const char* const id : {"1", "2", "3", "4"}) a_({"XADD", "s", id, "f", "v"});
    a_("XGROUP CREATE s g 1 ENTRIESREAD 1");
    EXPECT_EQ(lag(), "3");
    // All that is left is still to be read, and nothing is missing in it.
    a_("XDEL s 1 2");
    EXPECT_EQ(lag(), "2");
    a_("XREADGROUP GROUP g c COUNT 1 STREAMS s >");
    EXPECT_EQ(lag(), "1");
    a_("XDEL s 4");
    EXPECT_EQ(lag(), "");
    a_("XADD s 5 f v");
    a_("XREADGROUP GROUP g c STREAMS s >");
    EXPECT_EQ(lag(), "0");
    // Trimmed entries do not count.
    for (const char* const id : {"6", "7", "8"}) a_({"XADD", "s", id, "f", "v"});
    EXPECT_EQ(lag(), "3");
    a_("XTRIM s MAXLEN 1");
    EXPECT_EQ(lag(), "1");
    a_("XREADGROUP GROUP g c STREAMS s >");
    EXPECT_EQ(lag(), "0");
}

TEST_F(streams, a_group_has_not_read_more_entries_than_there_were) {
    a_("XADD s 1 f v");
    a_("XADD s 2 f v");
    a_("XGROUP CREATE s g 1 ENTRIESREAD 100");
    const auto fields = [&] {
        const auto group = testing::parse_reply(a_("XINFO GROUPS s")).children[0];
        return group.children[9].text + " " + group.children[11].text;
    };
    EXPECT_EQ(fields(), "2 0");
    a_("XGROUP SETID s g 1 ENTRIESREAD 0");
    EXPECT_EQ(fields(), "0 2");
    a_("XGROUP SETID s g 1 ENTRIESREAD 9223372036854775807");
    EXPECT_EQ(fields(), "2 0");
}

TEST_F(streams, counts_at_their_ends_do_not_overflow) {
    a_("XADD s 1 f v");
    a_("XSETID s 1 ENTRIESADDED 9223372036854775807");
    a_("XGROUP CREATE s g 1 ENTRIESREAD 9223372036854775807");
    a_("XADD s 2 f v");
    a_("XREADGROUP GROUP g c STREAMS s >");
    EXPECT_THAT(a_("XINFO GROUPS s"), HasSubstr(":-9223372036854775808"));
    EXPECT_EQ(a_("XCLAIM s g c 0 2 RETRYCOUNT 9223372036854775807 JUSTID"), "*1\r\n" + bulk("2-0"));
    a_("XCLAIM s g c 0 2");
    EXPECT_THAT(a_("XPENDING s g - + 1"), HasSubstr(":-9223372036854775808"));
    const std::string dump = testing::parse_reply(a_("DUMP s")).text;
    EXPECT_EQ(a_({"RESTORE", "t", "0", dump}), ok);
    EXPECT_EQ(a_("XINFO STREAM t FULL"), a_("XINFO STREAM s FULL"));
}

TEST_F(streams, a_reply_that_is_too_large_is_refused_and_nothing_of_it_is_sent) {
    engine_options options;
    options.max_reply = 10'000;
    engine small(options);
    test_client a(small);
    a("XGROUP CREATE s g 0 MKSTREAM");
    for (int i = 1; i <= 1'000; ++i) a({"XADD", "s", std::to_string(i), "f", "value"});
    for (int i = 0; i < 3; ++i) a("XREADGROUP GROUP g c COUNT 200 STREAMS s >");
    for (const std::string_view command :
         {"XRANGE s - +", "XREVRANGE s + -", "XREAD STREAMS s 0", "XREAD STREAMS s s 0 0",
          "XINFO STREAM s FULL COUNT 0", "XREADGROUP GROUP g c STREAMS s >",
          "XREADGROUP GROUP g c STREAMS s 0", "XPENDING s g - + 1000",
          "XAUTOCLAIM s g c 0 0 COUNT 500"}) {
        EXPECT_THAT(a(command), StartsWith("-ERR the reply is larger than the limit")) << command;
    }
    EXPECT_THAT(a("XRANGE s - + COUNT 3"), StartsWith("*3\r\n"));
}

TEST_F(streams, memory_is_counted_and_given_back) {
    const auto used = [&] { return engine_.stats().used_memory; };
    a_("PING");
    const std::size_t before = used();
    for (int i = 0; i < 1'000; ++i) a_("XADD s * field value");
    a_("XGROUP CREATE s g 0");
    a_("XREADGROUP GROUP g c STREAMS s >");
    const std::size_t with = used();
    EXPECT_GT(with, before + 20'000);
    const std::string usage = a_("MEMORY USAGE s SAMPLES 0");
    EXPECT_NEAR(static_cast<double>(std::stoul(usage.substr(1))),
                static_cast<double>(with - before), 2'000);
    EXPECT_EQ(a_("DEL s"), ":1\r\n");
    while (engine_.upkeep()) {
    }
    EXPECT_LE(used(), before + 1'000);
}

TEST_F(streams, the_size_of_blocks_can_be_set) {
    EXPECT_EQ(a_("CONFIG SET stream-node-max-entries 2 stream-node-max-bytes 1kb"), ok);
    EXPECT_THAT(a_("CONFIG GET stream-node-max-bytes"), HasSubstr("1024"));
    EXPECT_THAT(a_("CONFIG SET stream-node-max-entries -1"), StartsWith("-ERR CONFIG SET failed"));
    EXPECT_THAT(a_("CONFIG SET stream-node-max-entries x"), StartsWith("-ERR CONFIG SET failed"));
    for (int i = 0; i < 10; ++i) a_("XADD s * f v");
    EXPECT_THAT(a_("XINFO STREAM s"), HasSubstr(bulk("radix-tree-keys") + ":5\r\n"));
}

TEST_F(streams, large_ones_of_a_flushed_database_are_freed) {
    a_("CONFIG SET stream-node-max-entries 1");
    for (int i = 0; i < 400; ++i) a_({"SET", "k" + std::to_string(i), "v"});
    for (int i = 1; i <= 2000; ++i)
        a_({"XADD", "s", std::to_string(i), "f", std::string(100, 'v')});
    a_("FLUSHALL");
    while (engine_.upkeep()) {
    }
    EXPECT_LT(engine_.stats().used_memory, 64U << 10);
}

}  // namespace
}  // namespace eddy::cache
