// Tests of suspended scripts: other sessions wait or get BUSY, and see no partial state.
#include "cache/engine/engine.hpp"
#include "cache/engine/engine_state.hpp"
#include "cache/engine/slow_log.hpp"
#include "cache/persistence/engine_files.hpp"
#include "cache/persistence/propagation.hpp"
#include "cache/rdb/snapshot.hpp"
#include "cache/script/scripts_fixture.hpp"
#include "cache/testing/mirror.hpp"
#include "cache/testing/test_client.hpp"
#include "cache/testing/test_server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::cache {
namespace {

using testing::arguments;
using testing::bulk;
using testing::busy;
using ::testing::HasSubstr;
using testing::scripting;
using ::testing::StartsWith;
using testing::test_client;

/// Thresholds of BUSY that are longer than a slice.
class late_scripts : public scripting {
protected:
    void set_threshold(const std::string& ms) {
        EXPECT_EQ(b_("CONFIG SET busy-reply-threshold " + ms), "+OK\r\n") << ms;
    }
    std::string begin(test_client& by, const arguments& args) { return by.begin(args); }
    std::string begin(test_client& by, const std::string& script) {
        return by.begin(arguments{"EVAL", script, "0"});
    }
    // Until no session waits for a script.
    void finish_all() {
        while (engine_.is_behind()) engine_.go_on();
    }
    test_client c_{engine_};
    test_client d_{engine_};
};

constexpr const char* some_slices = "for i = 1, 1e6 do math.abs(i) end ";

TEST_F(late_scripts, one_is_left_in_the_middle_whatever_the_threshold_is) {
    for (const char* const ms : {"0", "1", "2", "5000", "9223372036854", "9223372036855",
                                 "18446744073709", "9223372036854775807"}) {
        set_threshold(ms);
        const bool is_busy = std::string_view(ms).size() == 1 && *ms != '0';
        EXPECT_EQ(begin(a_, "while true do end"), "") << ms;
        EXPECT_TRUE(engine_.script_is_late()) << ms;
        EXPECT_EQ(engine_.script_is_busy(), is_busy) << ms;
        EXPECT_EQ(begin(b_, arguments{"GET", "x"}), is_busy ? busy : "") << ms;
        for (int i = 0; i < 10; ++i) engine_.go_on();
        EXPECT_EQ(engine_.script_is_busy(), is_busy) << ms;
        EXPECT_EQ(c_("SCRIPT KILL"), "+OK\r\n") << ms;
        finish_all();
        EXPECT_THAT(a_.pushed(), HasSubstr("Script killed by user")) << ms;
        EXPECT_EQ(b_.pushed(), is_busy ? "" : "$-1\r\n") << ms;
    }
}

TEST_F(late_scripts, others_wait_until_the_threshold_and_are_told_busy_then) {
    set_threshold("100");
    EXPECT_EQ(begin(a_, "while true do end"), "");
    EXPECT_EQ(b_("MULTI"), "+OK\r\n");
    EXPECT_EQ(begin(b_, arguments{"GET", "x"}), "");
    EXPECT_EQ(begin(c_, "return 1"), "");
    EXPECT_EQ(begin(d_, arguments{"PING"}), "");
    EXPECT_EQ(d_.begin(arguments{"PING"}), "");
    int slices = 0;
    for (; !engine_.script_is_busy(); ++slices) engine_.go_on();
    EXPECT_GT(slices, 10);
    EXPECT_TRUE(b_.woken() && c_.woken() && d_.woken());
    EXPECT_EQ(b_.pushed(), busy);
    EXPECT_EQ(c_.pushed(), busy);
    EXPECT_EQ(d_.pushed(), std::string(busy) + std::string(busy));
    EXPECT_EQ(begin(d_, arguments{"PING"}), busy);
    EXPECT_EQ(c_("SCRIPT KILL"), "+OK\r\n");
    finish_all();
    EXPECT_THAT(a_.pushed(), HasSubstr("Script killed by user"));
    // The next script has its own time.
    EXPECT_EQ(begin(a_, "while true do end"), "");
    EXPECT_FALSE(engine_.script_is_busy());
    EXPECT_EQ(begin(d_, arguments{"PING"}), "");
    EXPECT_EQ(c_("SCRIPT KILL"), "+OK\r\n");
    finish_all();
    EXPECT_EQ(d_.pushed(), "+PONG\r\n");
}

TEST_F(late_scripts, a_shutdown_that_saves_is_refused) {
    engine_.internals().settings.options.mode = access_mode::admin;
    set_threshold("1");
    EXPECT_EQ(begin(a_, "while true do end"), "");
    while (!engine_.script_is_busy()) engine_.go_on();
    EXPECT_EQ(begin(b_, arguments{"SHUTDOWN"}), busy);
    EXPECT_EQ(begin(b_, arguments{"SHUTDOWN", "SAVE", "NOW"}), busy);
    // This engine has no server to stop.
    EXPECT_THAT(begin(b_, arguments{"SHUTDOWN", "NOSAVE"}), HasSubstr("eddy stop"));
    EXPECT_EQ(b_("SCRIPT KILL"), "+OK\r\n");
    finish_all();
}

TEST_F(late_scripts, a_killed_script_ends_wherever_its_error_is_caught) {
    set_threshold("0");
    for (const std::string catches :
         {"pcall(f)", "xpcall(f, f)", "load(f)", "load(function() load(f) end)",
          "load(function() coroutine.wrap(f)() end)", "pcall(load, f)",
          "coroutine.resume(coroutine.create(f))", "pcall(coroutine.wrap(f))",
          "pcall(string.gsub, 'a', 'a', f)", "pcall(table.sort, {2, 1}, f)",
          "xpcall(error, function() load(f) end)"}) {
        const std::string script =
            "local function f() while true do end end " + catches + " while true do end";
        EXPECT_EQ(begin(a_, script), "") << catches;
        EXPECT_EQ(b_("SCRIPT KILL"), "+OK\r\n") << catches;
        finish_all();
        EXPECT_THAT(a_.pushed(), HasSubstr("Script killed by user")) << catches;
    }
    // A library has no pcall() while it is loaded, except a method that calls back.
    EXPECT_THAT(a_({"FUNCTION", "LOAD",
                    "#!lua name=l\nlocal function f() while true do end end ('a'):gsub('a', f)"}),
                HasSubstr("FUNCTION LOAD timeout"));
}

TEST_F(late_scripts, a_key_that_expires_within_a_transaction_serves_no_client) {
    set_threshold("0");
    engine_.set_time(std::chrono::seconds(1'700'000'000));
    test_client waiter(engine_);
    EXPECT_EQ(waiter("BLPOP l 0"), "");
    a_("MULTI");
    a_("RPUSH l v");
    a_("PEXPIRE l 100");
    a_.ask(arguments{"EVAL", "for i = 1, 1e7 do math.abs(i) end return redis.call('EXISTS', 'l')",
                     "0"});
    EXPECT_EQ(begin(a_, arguments{"EXEC"}), "");
    engine_.set_time(std::chrono::seconds(1'700'000'001));
    finish_all();
    EXPECT_EQ(a_.pushed(), "*3\r\n:1\r\n:1\r\n:1\r\n");
    EXPECT_EQ(waiter.pushed(), "");
    a_("RPUSH l w");
    EXPECT_EQ(waiter.pushed(), "*2\r\n$1\r\nl\r\n$1\r\nw\r\n");
}

TEST_F(late_scripts, nothing_of_the_cache_changes_meanwhile) {
    set_threshold("0");
    b_("SET short v PX 1");
    b_("CONFIG SET maxmemory-policy allkeys-random");
    b_("SET big " + std::string(100'000, 'x'));
    EXPECT_EQ(begin(a_, std::string("local before = redis.call('DBSIZE') "
                                    "redis.call('SET', 'x', 1) ") +
                            some_slices +
                            "return {before, redis.call('DBSIZE'), "
                            "redis.call('GET', 'x'), #redis.call('KEYS', '*')}"),
              "");
    engine_.set_time(std::chrono::hours(24 * 365 * 100));
    // Below the used memory, so that other clients' commands would evict keys.
    engine_.internals().settings.options.max_memory = 1;
    EXPECT_EQ(begin(b_, arguments{"SET", "x", "2"}), "");
    EXPECT_EQ(begin(c_, arguments{"FLUSHALL"}), "");
    engine_.upkeep();
    finish();
    EXPECT_EQ(a_.pushed(), "*4\r\n:2\r\n:3\r\n$1\r\n1\r\n:3\r\n");
    engine_.internals().settings.options.max_memory = 0;
    finish_all();
    EXPECT_EQ(b_.pushed(), "+OK\r\n");
    EXPECT_EQ(c_.pushed(), "+OK\r\n");
}

TEST_F(late_scripts, those_that_wait_are_served_in_order) {
    set_threshold("0");
    const std::string script = some_slices + std::string("return redis.call('INCR', 'n')");
    EXPECT_EQ(begin(a_, script), "");
    EXPECT_EQ(begin(b_, script), "");
    EXPECT_EQ(begin(c_, script), "");
    EXPECT_EQ(begin(d_, arguments{"INCR", "n"}), "");
    struct client {
        test_client& of;
        std::string replies;
    };
    client first{a_, ""};
    client second{b_, ""};
    client third{c_, ""};
    client fourth{d_, ""};
    std::size_t replied = 0;
    // After its reply a client sends the next command behind the woken ones. Replies are read in
    // any order: a script's end wakes the next client too.
    client* const all[] = {&fourth, &third, &second, &first};
    for (int round = 0; round < 1000 && replied < 5; ++round) {
        engine_.go_on();
        for (client* const each : all) {
            if (!each->of.woken()) continue;
            const std::string reply = each->of.pushed();
            if (reply.empty()) continue;
            each->replies += reply;
            ++replied;
            // Its second script queues behind the waiting commands.
            if (each == &first && replied < 5) EXPECT_EQ(begin(a_, script), "");
        }
    }
    EXPECT_EQ(first.replies, ":1\r\n:5\r\n");
    EXPECT_EQ(second.replies, ":2\r\n");
    EXPECT_EQ(third.replies, ":3\r\n");
    EXPECT_EQ(fourth.replies, ":4\r\n");
}

TEST_F(late_scripts, many_that_wait_are_all_served) {
    set_threshold("0");
    std::vector<std::unique_ptr<test_client>> all;
    EXPECT_EQ(begin(a_, some_slices), "");
    constexpr int many = 1000;
    for (int i = 0; i < many; ++i) {
        all.push_back(std::make_unique<test_client>(engine_));
        EXPECT_EQ(begin(*all.back(), arguments{"INCR", "n"}), "");
    }
    all.erase(all.begin() + 10, all.begin() + 20);
    finish();
    EXPECT_TRUE(engine_.is_behind());
    int calls = 0;
    for (; engine_.is_behind(); ++calls) engine_.go_on();
    EXPECT_LT(calls, 100);
    for (const auto& each : all) EXPECT_THAT(each->pushed(), StartsWith(":"));
    EXPECT_EQ(b_("GET n"), bulk("990"));
}

TEST_F(late_scripts, a_transaction_is_left_in_the_middle_and_its_scripts_are_one) {
    set_threshold("9223372036854775807");
    EXPECT_EQ(a_("MULTI"), "+OK\r\n");
    for (int i = 0; i < 2; ++i) {
        EXPECT_EQ(eval(some_slices + std::string("return redis.call('INCR', 'n')")), "+QUEUED\r\n");
        EXPECT_EQ(a_("INCR n"), "+QUEUED\r\n");
    }
    EXPECT_EQ(begin(a_, arguments{"EXEC"}), "");
    EXPECT_EQ(begin(b_, arguments{"GET", "n"}), "");
    int slices = 0;
    for (; engine_.script_is_late(); ++slices) engine_.go_on();
    EXPECT_GT(slices, 2);
    finish_all();
    EXPECT_EQ(a_.pushed(), "*4\r\n:1\r\n:2\r\n:3\r\n:4\r\n");
    EXPECT_EQ(b_.pushed(), bulk("4"));
}

TEST_F(late_scripts, the_host_is_notified_of_the_end) {
    testing::test_server host(engine_);
    set_threshold("0");
    EXPECT_EQ(begin(a_, some_slices), "");
    engine_.go_on();
    ASSERT_TRUE(engine_.script_is_late());
    EXPECT_EQ(host.obstacles_ended, 0);
    finish_all();
    EXPECT_EQ(host.obstacles_ended, 1);
    // It ends with its client, too.
    auto leaving = std::make_unique<test_client>(engine_);
    EXPECT_EQ(begin(*leaving, "while true do end"), "");
    leaving.reset();
    EXPECT_FALSE(engine_.script_is_late());
    EXPECT_EQ(host.obstacles_ended, 2);
    engine_.internals().server = nullptr;
}

TEST_F(late_scripts, many_short_scripts_of_a_transaction_are_left_in_the_middle) {
    set_threshold("0");
    EXPECT_EQ(a_("MULTI"), "+OK\r\n");
    for (int i = 0; i < 100; ++i) eval("for i = 1, 1e5 do math.abs(i) end");
    EXPECT_EQ(begin(a_, arguments{"EXEC"}), "");
    EXPECT_TRUE(engine_.script_is_late());
    finish_all();
    EXPECT_THAT(a_.pushed(), StartsWith("*100\r\n"));
}

TEST_F(late_scripts, the_slow_log_and_the_statistics_have_their_whole_time) {
    set_threshold("0");
    EXPECT_EQ(b_("CONFIG SET slowlog-log-slower-than 0"), "+OK\r\n");
    EXPECT_EQ(b_("SLOWLOG RESET"), "+OK\r\n");
    EXPECT_EQ(
        begin(a_, arguments{"EVAL", std::string("-- ") + "long\n" + some_slices, "0", "argument"}),
        "");
    // SLOWLOG RESET is itself logged after it, as in Redis.
    EXPECT_EQ(engine_.internals().slow.records().size(), 1);
    finish_all();
    ASSERT_EQ(engine_.internals().slow.records().size(), 2);
    const slow_log::record& its = engine_.internals().slow.records().front();
    ASSERT_EQ(its.args.size(), 4);
    EXPECT_EQ(its.args[0], "EVAL");
    EXPECT_EQ(its.args[3], "argument");
    EXPECT_GT(its.amount, 0);
    EXPECT_THAT(b_("INFO commandstats"), HasSubstr("cmdstat_eval:calls=1,"));
}

TEST_F(late_scripts, the_logs_of_sizes_have_them_too) {
    set_threshold("0");
    b_("CONFIG SET commandlog-request-larger-than 100 commandlog-reply-larger-than 100");
    const std::string text =
        std::string("-- ") + "long\n" + some_slices + " return {string.rep('x', 200), 'y'}";
    EXPECT_EQ(begin(a_, arguments{"EVAL", text, "0"}), "");
    finish_all();
    const slow_log& log = engine_.internals().slow;
    // Beside CONFIG SET.
    ASSERT_EQ(log.records(command_log::large_request).size(), 2);
    EXPECT_GT(log.records(command_log::large_request).front().amount,
              static_cast<std::int64_t>(text.size()));
    ASSERT_EQ(log.records(command_log::large_reply).size(), 1);
    EXPECT_EQ(log.records(command_log::large_reply).front().amount,
              static_cast<std::int64_t>(a_.pushed().size()));
}

constexpr const char* half_done = "redis.call('SET', 'x', 1) ";
constexpr const char* whole = "redis.call('SET', 'y', 2)";

TEST_F(late_scripts, one_goes_on_to_its_end_when_its_client_is_closed) {
    set_threshold("0");
    b_({"CONFIG", "SET", "client-output-buffer-limit", "normal 1000 0 0"});
    begin(a_, std::string(half_done) + some_slices + whole);
    ASSERT_TRUE(engine_.script_is_late());
    engine_.set_unsent(a_.who(), 5000);
    EXPECT_TRUE(a_.who().closing);
    EXPECT_FALSE(a_.closed());
    finish_all();
    EXPECT_TRUE(a_.closed());
    EXPECT_EQ(a_.pushed(), "");
    EXPECT_EQ(b_("MGET x y"), "*2\r\n$1\r\n1\r\n$1\r\n2\r\n");
    EXPECT_THAT(b_("INFO clients"), HasSubstr("connected_clients:3\r\n"));
}

// Scripts that are cut off by the end of their server.
class cut_scripts : public late_scripts {
protected:
    cut_scripts() { add_sink(engine_.internals(), sink_); }
    ~cut_scripts() override { remove_sink(engine_.internals(), sink_); }

    /// `runs` is the script's client; the script ends with it.
    void expect_nothing_of_it(std::unique_ptr<test_client> runs) {
        ASSERT_TRUE(engine_.script_is_late());
        EXPECT_TRUE(files_.script_has_changed());
        EXPECT_EQ(files_.script_remedy(), "wait for its end");
        EXPECT_TRUE(rdb::snapshot::may_begin(engine_));
        files_.begin_end();
        runs.reset();
        EXPECT_FALSE(engine_.script_is_late());
        EXPECT_EQ(sink_.take(), "");
        EXPECT_TRUE(files_.has_half_script());
        EXPECT_FALSE(rdb::snapshot::may_begin(engine_));
        EXPECT_EQ(rdb::snapshot::begin(engine_), nullptr);
        EXPECT_FALSE(files_.begin_save());
    }

    testing::kept_changes sink_;
    engine_files files_{engine_};
};

TEST_F(cut_scripts, nothing_of_one_gets_to_files_and_replicas) {
    b_("SET before 1");
    static_cast<void>(sink_.take());
    auto runs = std::make_unique<test_client>(engine_);
    begin(*runs, std::string(half_done) + "while true do end");
    expect_nothing_of_it(std::move(runs));
}

TEST_F(cut_scripts, nothing_of_a_transaction_with_one_gets_to_files_and_replicas) {
    auto runs = std::make_unique<test_client>(engine_);
    (*runs)("MULTI");
    (*runs)("SET t 1");
    begin(*runs, "while true do end");
    (*runs)("SET u 1");
    runs->begin(arguments{"EXEC"});
    expect_nothing_of_it(std::move(runs));
}

TEST_F(cut_scripts, clients_that_wait_get_nothing_of_one) {
    EXPECT_EQ(b_("XGROUP CREATE s g $ MKSTREAM"), "+OK\r\n");
    EXPECT_EQ(c_.begin(arguments{"BLPOP", "queue", "0"}), "");
    EXPECT_EQ(
        d_.begin(arguments{"XREADGROUP", "GROUP", "g", "d", "BLOCK", "0", "STREAMS", "s", ">"}),
        "");
    static_cast<void>(sink_.take());
    begin(a_,
          "redis.call('RPUSH', 'queue', 1) redis.call('XADD', 's', '5-1', 'f', 'v') while true do "
          "end");
    files_.begin_end();
    files_.cut_script();
    for (test_client* each : {&c_, &d_}) {
        EXPECT_TRUE(each->closed());
        EXPECT_EQ(each->pushed(), "");
    }
    EXPECT_EQ(sink_.take(), "");
}

TEST_F(cut_scripts, one_that_has_changed_nothing_is_in_the_way_of_no_file) {
    begin(a_, "while true do end");
    EXPECT_FALSE(files_.script_has_changed());
    EXPECT_EQ(files_.script_remedy(), "end it with SCRIPT KILL");
    files_.begin_end();
    files_.cut_script();
    EXPECT_FALSE(engine_.script_is_late());
    EXPECT_FALSE(files_.has_half_script());
    EXPECT_TRUE(rdb::snapshot::may_begin(engine_));
    // Other clients are served to the end.
    EXPECT_EQ(b_("SET k 1"), "+OK\r\n");
    EXPECT_NE(sink_.take(), "");
}

TEST_F(cut_scripts, its_client_is_closed_without_a_reply) {
    begin(a_, std::string(half_done) + "while true do end");
    files_.begin_end();
    files_.cut_script();
    EXPECT_TRUE(a_.closed());
    EXPECT_EQ(a_.pushed(), "");
    EXPECT_TRUE(files_.has_half_script());
    EXPECT_EQ(sink_.take(), "");
    EXPECT_TRUE(b_.closed()) << "what others do now may be made of half the script";
}

TEST_F(cut_scripts, functions_have_a_remedy_of_their_own) {
    EXPECT_EQ(b_({"FUNCTION", "LOAD",
                  "#!lua name=l\nredis.register_function('f', function() while true do end end)"}),
              "$1\r\nl\r\n");
    a_.begin(arguments{"FCALL", "f", "0"});
    ASSERT_TRUE(engine_.script_is_late());
    EXPECT_EQ(files_.script_remedy(), "end it with FUNCTION KILL");
    EXPECT_EQ(c_("FUNCTION KILL"), "+OK\r\n");
    finish_all();
}

}  // namespace
}  // namespace eddy::cache
