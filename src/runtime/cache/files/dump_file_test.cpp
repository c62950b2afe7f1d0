// A cache that keeps its keys in a dump file: saving, loading, and what goes wrong with either.
#include "base/files/temporary_folder.hpp"
#include "runtime/cache/files/background_io.hpp"
#include "runtime/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace eddy::runtime {
namespace {

using namespace runtime::testing;
using ::testing::HasSubstr;
using ::testing::StartsWith;

EDDY_ON_EVERY_IO_BACKEND(cache_dump);

json kept_in(const temporary_folder& folder, json more = json::object()) {
    json options = {{"port", 0}, {"dir", folder.path()}};
    options.update(more);
    return options;
}

void write(const std::string& path, std::string_view text) {
    std::ofstream(path, std::ios::binary)
        .write(text.data(), static_cast<std::streamsize>(text.size()));
}

/// Sets so many keys.
task<void> fill(talker& client, int keys) {
    for (int i = 0; i < keys; ++i) {
        const std::string n = std::to_string(i);
        EXPECT_EQ(co_await ask(client, "SET key" + n + " value" + n), "+OK");
    }
}

// A dump that is copied to another place while the next one replaces it.
TEST_P(cache_dump, a_file_that_is_replaced_stays_whole_for_its_readers) {
    run([&]() -> task<void> {
        const std::string old(3 << 20, 'o');
        const temporary_folder folder;
        const std::string path = folder.path() + "/dump.rdb";
        write(path, old);
        write(path + ".tmp", "new");
        std::ifstream reading(path);
        EXPECT_EQ(reading.get(), 'o');
        EXPECT_TRUE((co_await cache::background_rename(path + ".tmp", path)).has_value());
        EXPECT_EQ(std::string(std::istreambuf_iterator<char>(reading), {}), old.substr(1));
        EXPECT_EQ(content(path), "new");
        EXPECT_TRUE((co_await cache::background_remove(path)).has_value());
        EXPECT_FALSE(std::filesystem::exists(path));
        EXPECT_EQ((co_await cache::background_remove(path)).error(),
                  std::errc::no_such_file_or_directory);
    });
}

TEST_P(cache_dump, keys_are_there_again_after_an_orderly_stop) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        subject cache("cache", kept_in(folder, {{"dbfilename", "mine.rdb"}}));
        co_await cache.start();
        EXPECT_TRUE(cache.events.has("there is no"));
        {
            talker client = co_await talker::to(cache->local());
            co_await fill(client, 2000);
            EXPECT_EQ(co_await ask(client, "RPUSH list a b c"), ":3");
            EXPECT_EQ(co_await ask(client, "PEXPIRE key5 100000"), ":1");
        }
        co_await cache->stop(1s);
        EXPECT_TRUE(cache.events.has("saved 2001 keys"));
        EXPECT_THAT(content(folder.file("mine.rdb")), StartsWith("REDIS0010"));
        EXPECT_FALSE(std::filesystem::exists(folder.file("mine.rdb.tmp")));

        co_await cache.start();
        EXPECT_TRUE(cache.events.has("loaded 2001 keys"));
        {
            talker client = co_await talker::to(cache->local());
            EXPECT_EQ(co_await ask(client, "DBSIZE"), ":2001");
            EXPECT_EQ(co_await ask(client, "STRLEN key77"), ":7");
            EXPECT_EQ(co_await ask(client, "LLEN list"), ":3");
            EXPECT_NE(co_await ask(client, "PTTL key5"), ":-1");
        }
        // Without changes there is nothing to save.
        cache.events.lines.clear();
        co_await cache->stop(1s);
        EXPECT_FALSE(cache.events.has("saved"));
    });
}

/// Starts it in a task of its own.
task<void> start(subject& cache, bool& has_started) {
    co_await cache.start();
    has_started = true;
}
task<void> fail_to_start(subject& cache, std::string& failure) {
    failure = co_await cache.failure_to_start();
}

/// Leaves files that take many turns to read.
task<void> leave_much(json options) {
    subject cache("cache", options);
    co_await cache.start();
    {
        talker client = co_await talker::to(cache->local());
        constexpr auto script = "for i = 1, 300000 do redis.call('SET', 'key:' .. i, i) end";
        EXPECT_EQ(co_await ask(client, "EVAL \"" + std::string(script) + "\" 0"), "$-1");
    }
    co_await cache->stop(1s);
}

/// Replies to clients that connect while a start reads its files, and after it.
task<void> come_early(subject& cache) {
    bool has_started = false;
    co_await with_scope([&](scope& tasks) -> task<void> {
        tasks.spawn(start(cache, has_started));
        co_await until([&] { return cache->local().family() != AF_UNSPEC; });
        talker client = co_await talker::to(cache->local());
        constexpr auto loading = "-LOADING Redis is loading the dataset in memory";
        for (const char* command : {"GET key:1", "PING", "FLUSHALL", "DEBUG RELOAD", "BGSAVE",
                                    "BGREWRITEAOF", "REPLICAOF NO ONE", "EVAL \"return 1\" 0"})
            EXPECT_EQ(co_await ask(client, command), loading) << command;
        EXPECT_EQ(co_await ask(client, "CLIENT SETNAME early"), "+OK");
        EXPECT_EQ(co_await ask(client, "CLIENT PAUSE 1 ALL"), "+OK");
        EXPECT_EQ(co_await ask(client, "MULTI"), "+OK");
        EXPECT_EQ(co_await ask(client, "SET key:1 mine"), loading);
        EXPECT_THAT(co_await ask(client, "EXEC"), StartsWith("-EXECABORT"));
        EXPECT_FALSE(has_started);
        co_await until([&] { return has_started; });
        // The same connection is served from now on.
        EXPECT_EQ(co_await ask(client, "DBSIZE"), ":300000");
        EXPECT_EQ(co_await ask(client, "STRLEN key:77"), ":2");
        client.socket.close();
    });
}

TEST_P(cache_dump, clients_get_loading_while_the_file_is_read) {
    if (simulated()) GTEST_SKIP() << "its time stands still while it reads";
    run([&]() -> task<void> {
        const temporary_folder folder;
        const json options = kept_in(folder, {{"mode", "admin"}});
        co_await leave_much(options);
        subject cache("cache", options);
        co_await come_early(cache);
        co_await cache->stop(1s);
    });
}

TEST_P(cache_dump, clients_get_loading_while_the_append_only_file_is_read) {
    if (simulated()) GTEST_SKIP() << "its time stands still while it reads";
    run([&]() -> task<void> {
        const temporary_folder folder;
        const json options = kept_in(folder, {{"mode", "admin"}, {"appendonly", "yes"}});
        co_await leave_much(options);
        subject cache("cache", options);
        co_await come_early(cache);
        co_await cache->stop(1s);
    });
}

TEST_P(cache_dump, early_clients_are_closed_when_the_file_is_damaged) {
    if (simulated()) GTEST_SKIP() << "its time stands still while it reads";
    run([&]() -> task<void> {
        const temporary_folder folder;
        const std::string path = folder.file("dump.rdb");
        const json options = kept_in(folder);
        co_await leave_much(options);
        std::string damaged = content(path);
        damaged[damaged.size() - 20] = static_cast<char>(damaged[damaged.size() - 20] ^ 1);
        write(path, damaged);
        subject cache("cache", options);
        std::string failure;
        co_await with_scope([&](scope& tasks) -> task<void> {
            tasks.spawn(fail_to_start(cache, failure));
            co_await until([&] { return cache->local().family() != AF_UNSPEC; });
            talker client = co_await talker::to(cache->local());
            EXPECT_THAT(co_await ask(client, "PING"), StartsWith("-LOADING"));
            EXPECT_EQ(co_await client.rest(), "");
        });
        EXPECT_THAT(failure, HasSubstr(path));
        EXPECT_EQ(cache->local().family(), AF_UNSPEC);
        EXPECT_EQ(content(path), damaged);
    });
}

// proto-max-bulk-len is for what clients send.
TEST_P(cache_dump, what_is_longer_than_clients_may_send_now_is_loaded) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        const json low = {{"config", "proto-max-bulk-len 1mb"}};
        {
            subject cache("cache", kept_in(folder));
            co_await cache.start();
            talker client = co_await talker::to(cache->local());
            EXPECT_EQ(co_await ask(client, "SETRANGE big 1500000 x"), ":1500001");
            co_await cache->stop(1s);
        }
        subject again("cache", kept_in(folder, low));
        co_await again.start();
        {
            talker client = co_await talker::to(again->local());
            EXPECT_EQ(co_await ask(client, "STRLEN big"), ":1500001");
            EXPECT_THAT(co_await ask(client, "SETRANGE other 1500000 x"), StartsWith("-ERR"));
        }
        co_await again->stop(1s);
    });
}

TEST_P(cache_dump, without_save_points_only_commands_save) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        const std::string path = folder.file("dump.rdb");
        subject cache("cache", kept_in(folder, {{"save", "off"}}));
        co_await cache.start();
        {
            talker client = co_await talker::to(cache->local());
            co_await fill(client, 10);
            EXPECT_EQ(co_await ask(client, "SAVE"), "+OK");
            EXPECT_TRUE(std::filesystem::exists(path));
            co_await fill(client, 20);
            EXPECT_EQ(co_await ask(client, "BGSAVE"), "+Background saving started");
            co_await until([&] { return cache.events.has("saved 20 keys"); });
            co_await fill(client, 30);
        }
        co_await cache->stop(1s);
        subject other("cache", kept_in(folder));
        co_await other.start();
        {
            talker client = co_await talker::to(other->local());
            EXPECT_EQ(co_await ask(client, "DBSIZE"), ":20");
        }
        co_await other->stop(1s);
    });
}

TEST_P(cache_dump, the_others_are_served_while_one_waits_for_save) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        subject cache("cache", kept_in(folder));
        co_await cache.start();
        talker one = co_await talker::to(cache->local());
        talker two = co_await talker::to(cache->local());
        co_await fill(one, 3000);
        co_await one.say("SAVE\r\nDBSIZE\r\n");
        for (int i = 0; i < 200; ++i) {
            EXPECT_EQ(co_await ask(two, "SET new" + std::to_string(i) + " 1"), "+OK");
            const std::size_t digits = std::to_string(i).size();
            EXPECT_EQ(co_await ask(two, "APPEND key" + std::to_string(i) + " +"),
                      ":" + std::to_string(std::string("value+").size() + digits));
        }
        EXPECT_EQ(co_await one.line(), "+OK\r");
        EXPECT_THAT(co_await one.line(), StartsWith(":3"));
        co_await cache->stop(1s);
    });
}

TEST_P(cache_dump, it_saves_by_itself_after_so_many_changes) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        subject cache("cache", kept_in(folder, {{"save", "1 5"}}));
        co_await cache.start();
        talker client = co_await talker::to(cache->local());
        co_await fill(client, 5);
        co_await until([&] { return cache.events.has("saved 5 keys"); });
        EXPECT_TRUE(std::filesystem::exists(folder.file("dump.rdb")));
        co_await cache->stop(1s);
    });
}

TEST_P(cache_dump, a_damaged_file_is_reported_and_left_alone) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        const std::string path = folder.file("dump.rdb");
        {
            subject cache("cache", kept_in(folder));
            co_await cache.start();
            talker client = co_await talker::to(cache->local());
            co_await fill(client, 100);
            co_await cache->stop(1s);
        }
        const std::string good = content(path);
        std::string flipped = good;
        flipped[good.size() / 2] = static_cast<char>(flipped[good.size() / 2] ^ 1);
        for (const std::string& bad : {flipped, good.substr(0, good.size() / 2), good.substr(0, 3),
                                       std::string("no dump file at all"), std::string()}) {
            write(path, bad);
            subject cache("cache", kept_in(folder));
            const std::string why = co_await cache.failure_to_start();
            EXPECT_THAT(why, HasSubstr(path));
            EXPECT_THAT(why, HasSubstr("it is wrong at byte "));
            EXPECT_EQ(content(path), bad);
        }
        write(path, good);
        subject cache("cache", kept_in(folder));
        co_await cache.start();
        EXPECT_TRUE(cache.events.has("loaded 100 keys"));
        co_await cache->stop(1s);
    });
}

TEST_P(cache_dump, a_save_that_fails_is_reported_and_leaves_the_old_file) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        const std::string path = folder.file("dump.rdb");
        subject cache("cache", kept_in(folder, {{"save", "3600 1"}}));
        co_await cache.start();
        {
            talker client = co_await talker::to(cache->local());
            co_await fill(client, 10);
            EXPECT_EQ(co_await ask(client, "SAVE"), "+OK");
            const std::string good = content(path);
            EXPECT_EQ(co_await ask(client, "SET more 1"), "+OK");
            std::filesystem::create_directories(path + ".tmp/x");
            EXPECT_THAT(co_await ask(client, "SAVE"), StartsWith("-ERR could not create"));
            EXPECT_TRUE(cache.events.has("the last file stays"));
            EXPECT_EQ(content(path), good);
            EXPECT_EQ(co_await ask(client, "SET more 2"), "+OK");
            EXPECT_EQ(co_await ask(client, "BGSAVE"), "+Background saving started");
            std::string refusal;
            while ((refusal = co_await ask(client, "SET more 3")) == "+OK") {
            }
            EXPECT_THAT(refusal, StartsWith("-MISCONF"));
            EXPECT_EQ(co_await ask(client, "EXISTS more"), ":1");
            std::filesystem::remove_all(path + ".tmp");
            EXPECT_EQ(co_await ask(client, "SAVE"), "+OK");
            EXPECT_EQ(co_await ask(client, "SET more 3"), "+OK");
            EXPECT_NE(content(path), good);
        }
        co_await cache->stop(1s);
    });
}

TEST_P(cache_dump, a_folder_that_is_missing_is_made) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        subject cache("cache", {{"port", 0}, {"dir", folder.file("lib/eddy/db")}});
        co_await cache.start();
        {
            talker client = co_await talker::to(cache->local());
            EXPECT_EQ(co_await ask(client, "SET a 1"), "+OK");
        }
        co_await cache->stop(1s);
        EXPECT_TRUE(std::filesystem::exists(folder.file("lib/eddy/db/dump.rdb")));
    });
}

TEST_P(cache_dump, what_cannot_work_is_refused) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        const auto refusal = [](json options) -> task<std::string> {
            subject cache("cache", options);
            co_return co_await cache.failure_to_start();
        };
        std::ofstream(folder.file("file")) << "in the way";
        EXPECT_THAT(co_await refusal({{"port", 0}, {"dir", folder.file("file/none")}}),
                    HasSubstr("cannot be made"));
        std::filesystem::remove(folder.file("file"));
        EXPECT_THAT(co_await refusal({{"port", 0}, {"dir", "here"}}), HasSubstr("the whole path"));
        EXPECT_THAT(co_await refusal({{"port", 0}, {"save", "1 1"}}), HasSubstr("without --dir"));
        EXPECT_THAT(co_await refusal({{"port", 0}, {"dbfilename", "a"}}),
                    HasSubstr("without --dir"));
        EXPECT_THAT(co_await refusal(kept_in(folder, {{"save", "1"}})),
                    HasSubstr("pairs of seconds"));
        EXPECT_THAT(co_await refusal(kept_in(folder, {{"dbfilename", "../a"}})),
                    HasSubstr("a file's name"));
        EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
    });
}

TEST_P(cache_dump, a_change_of_a_huge_value_in_a_save_waits_and_others_are_served) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        subject cache("cache", kept_in(folder));
        co_await cache.start();
        talker one = co_await talker::to(cache->local());
        talker two = co_await talker::to(cache->local());
        std::string elements;
        for (int i = 0; i < 500; ++i) elements += " element" + std::to_string(i);
        for (int i = 1; i <= 100; ++i)
            EXPECT_EQ(co_await ask(one, "RPUSH list" + elements), ":" + std::to_string(500 * i));
        co_await one.say("BGSAVE\r\nLPUSH list new\r\nLLEN list\r\n");
        EXPECT_EQ(co_await one.line(), "+Background saving started\r");
        for (int i = 0; i < 20; ++i) EXPECT_EQ(co_await ask(two, "PING"), "+PONG");
        EXPECT_EQ(co_await one.line(), ":50001\r");
        EXPECT_EQ(co_await one.line(), ":50001\r");
        EXPECT_EQ(co_await ask(two, "LINDEX list 0"), "$3");
        co_await until([&] { return cache.events.has("saved 1 keys"); });
        co_await cache->stop(1s);
    });
}

TEST_P(cache_dump, what_a_killed_daemon_left_half_written_is_removed) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        write(folder.file("dump.rdb.tmp"), "half");
        subject cache("cache", kept_in(folder));
        co_await cache.start();
        EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
        co_await cache->stop(1s);
    });
}

TEST_P(cache_dump, a_stop_in_the_middle_of_a_save_leaves_a_whole_file) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        subject cache("cache", kept_in(folder));
        co_await cache.start();
        {
            talker client = co_await talker::to(cache->local());
            co_await fill(client, 3000);
            EXPECT_EQ(co_await ask(client, "BGSAVE"), "+Background saving started");
            EXPECT_EQ(co_await ask(client, "SET last 1"), "+OK");
        }
        co_await cache->stop(1s);
        cache.events.lines.clear();
        co_await cache.start();
        EXPECT_TRUE(cache.events.has("loaded 3001 keys"));
        EXPECT_FALSE(std::filesystem::exists(folder.file("dump.rdb.tmp")));
        co_await cache->stop(1s);
    });
}

}  // namespace
}  // namespace eddy::runtime
