// Tests of a cache that finds an append-only file when it starts: whole, cut at any byte, damaged,
// or of an older Redis.
#include "base/files/temporary_folder.hpp"
#include "runtime/cache/files/append_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::runtime {
namespace {

using namespace runtime::testing;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

EDDY_ON_EVERY_IO_BACKEND(cache_append_load);

TEST_P(cache_append_load, what_its_commands_delete_is_freed_as_it_is_loaded) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        {
            subject made("cache", kept_in(folder));
            co_await made.start();
            co_await made->stop(1s);
        }
        std::vector<std::string> push{"RPUSH", "big"};
        push.resize(5'000, "element-of-some-length");
        constexpr int rounds = 100;
        std::string all;
        for (int i = 0; i < rounds; ++i) all += encoded(push) + encoded({"DEL", "big"});
        write(part(folder, 1), all);
        subject cache("cache", kept_in(folder));
        co_await cache.start();
        {
            talker client = co_await talker::to(cache->local());
            EXPECT_EQ(co_await ask(client, "DBSIZE"), ":0");
            // A list of them takes some 120 KB.
            EXPECT_LT(std::stoul(co_await info(client, "memory", "used_memory_peak")),
                      rounds / 3 * 120'000U);
        }
        co_await cache->stop(1s);
    });
}

// --- What is there again ----------------------------------------------------------------------

TEST_P(cache_append_load, what_is_longer_than_clients_may_send_now_is_loaded) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        {
            subject cache("cache", kept_in(folder));
            co_await cache.start();
            talker client = co_await talker::to(cache->local());
            EXPECT_EQ(co_await ask(client, "SETRANGE base 1500000 x"), ":1500001");
            EXPECT_THAT(co_await ask(client, "BGREWRITEAOF"), StartsWith("+Background"));
            co_await until_rewritten(client, 2);
            EXPECT_EQ(co_await ask(client, "SETRANGE behind 1500000 x"), ":1500001");
            EXPECT_EQ(co_await ask(client, "SETBIT bits 12000007 1"), ":0");
            EXPECT_EQ(co_await ask(client, "BITFIELD fields SET u8 12000000 1"), "*1");
            EXPECT_EQ(co_await line_of(client), ":0");
            EXPECT_EQ(co_await ask(client, "COPY base copy"), ":1");
            EXPECT_EQ(co_await ask(client, "APPEND copy yy"), ":1500003");
            co_await cache->stop(1s);
        }
        subject again("cache", kept_in(folder, {{"config", "proto-max-bulk-len 1mb"}}));
        co_await again.start();
        {
            talker client = co_await talker::to(again->local());
            for (const char* const key : {"base", "behind", "bits", "fields"})
                EXPECT_EQ(co_await ask(client, std::string("STRLEN ") + key), ":1500001") << key;
            EXPECT_EQ(co_await ask(client, "STRLEN copy"), ":1500003");
        }
        co_await again->stop(1s);
        // An argument of more than half a gigabyte, as they may be with a higher limit, of which a
        // crash has left the beginning: an incomplete end, and no damage.
        std::string cut = content(part(folder, 2));
        write(part(folder, 2), cut + "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$2000000000\r\nbegin");
        co_await again.start();
        EXPECT_TRUE(again.events.has("were cut off"));
        co_await again->stop(1s);
    });
}

TEST_P(cache_append_load, a_file_that_ends_at_any_byte_gives_its_whole_commands) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        const std::vector<std::string> commands = {
            encoded({"SELECT", "0"}), encoded({"SET", "a", "1"}), encoded({"INCR", "a"}),
            encoded({"MULTI"}),       encoded({"INCR", "a"}),     encoded({"INCR", "a"}),
            encoded({"EXEC"}),        encoded({"INCR", "a"})};
        // Values of `a` behind each command; a transaction counts when it is whole.
        const std::vector<std::string> values = {"", "1", "2", "2", "2", "2", "4", "5"};
        const std::vector<bool> ends = {true, true, true, false, false, false, true, true};
        {
            subject cache("cache", kept_in(folder));
            co_await cache.start();
            co_await cache->stop(1s);
        }
        std::string all;
        for (const std::string& each : commands) all += each;
        for (std::size_t size = 0; size <= all.size(); ++size) {
            write(part(folder, 1), all.substr(0, size));
            std::size_t whole = 0;
            std::size_t end = 0;
            std::string value;
            std::size_t at = 0;
            for (std::size_t i = 0; i < commands.size(); ++i) {
                at += commands[i].size();
                if (at > size) break;
                whole = i;
                if (!ends[i]) continue;
                end = at;
                value = values[i];
            }
            subject cache("cache", kept_in(folder));
            co_await cache.start();
            EXPECT_EQ(std::filesystem::file_size(part(folder, 1)), end) << size;
            EXPECT_EQ(cache.events.has("were cut off"), end != size) << size << " " << whole;
            {
                talker client = co_await talker::to(cache->local());
                if (value.empty()) {
                    EXPECT_EQ(co_await ask(client, "GET a"), "$-1") << size;
                } else {
                    EXPECT_EQ(co_await ask(client, "GET a"), "$1") << size;
                    EXPECT_EQ(co_await line_of(client), value) << size;
                }
            }
            co_await cache->stop(1s);
        }
    });
}

TEST_P(cache_append_load, damage_is_reported_with_its_place_and_left_alone) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        {
            subject cache("cache", kept_in(folder));
            co_await cache.start();
            {
                talker client = co_await talker::to(cache->local());
                for (int i = 0; i < 50; ++i)
                    EXPECT_EQ(co_await ask(client, "SET key" + std::to_string(i) + " 1"), "+OK");
            }
            co_await cache->stop(1s);
        }
        const auto refusal = [&]() -> task<std::string> {
            subject cache("cache", kept_in(folder));
            co_return co_await cache.failure_to_start();
        };
        const std::string good = content(part(folder, 1));
        const std::string one = encoded({"SET", "key7", "1"});
        const std::size_t place = good.find(one);
        if (place == std::string::npos) throw std::runtime_error("no such command");
        std::string bad = good;
        bad[place] = '!';
        write(part(folder, 1), bad);
        EXPECT_THAT(co_await refusal(),
                    AllOf(HasSubstr(part(folder, 1)), HasSubstr("byte " + std::to_string(place))));
        EXPECT_EQ(content(part(folder, 1)), bad);
        bad = good;
        bad.replace(place, one.size(), encoded({"SOT", "key7", "1"}));
        write(part(folder, 1), bad);
        EXPECT_THAT(co_await refusal(), HasSubstr("unknown command 'SOT'"));
        EXPECT_EQ(content(part(folder, 1)), bad);
        // Only the last part that anything was appended to may end early.
        write(part(folder, 1), good.substr(0, good.size() - 3));
        write(part(folder, 2), one);
        const std::string list = folder.file("appendonlydir/appendonly.aof.manifest");
        const std::string names = content(list);
        write(list, names + "file appendonly.aof.2.incr.aof seq 2 type i\n");
        // Nor would the later part fit what is left without the end.
        EXPECT_THAT(co_await refusal(),
                    AllOf(HasSubstr("it ends within a command"), HasSubstr("move the folder"),
                          ::testing::Not(HasSubstr("truncate"))));
        write(list, names + "file appendonly.aof.1.incr.aof seq 1 type h\n");
        EXPECT_THAT(co_await refusal(), HasSubstr("for the second time"));
        EXPECT_EQ(content(part(folder, 1)), good.substr(0, good.size() - 3));
        write(list, names + "file nonsense\n");
        EXPECT_THAT(co_await refusal(), HasSubstr("its line 3"));
        write(list, names);
        std::filesystem::remove(folder.file("appendonlydir/appendonly.aof.1.base.rdb"));
        EXPECT_THAT(co_await refusal(), HasSubstr("appendonly.aof.1.base.rdb"));
    });
}

// A base of a later Valkey or Redis is in order, but only another program can read it.
TEST_P(cache_append_load, a_base_of_an_unknown_version_is_named_and_not_called_damaged) {
    run([&]() -> task<void> {
        for (const auto& [magic, name] :
             {std::pair{"VALKEY081", "RDB version 81 of Valkey (VALKEY081)"},
              std::pair{"REDIS0014", "RDB version 14 (REDIS0014)"}}) {
            const temporary_folder folder;
            {
                subject cache("cache", kept_in(folder));
                co_await cache.start();
                co_await cache->stop(1s);
            }
            const std::string base = folder.file("appendonlydir/appendonly.aof.1.base.rdb");
            const std::string bytes = magic + std::string("\xfa\x0avalkey-ver\x05") + "9.1.2";
            write(base, bytes);
            subject cache("cache", kept_in(folder));
            const std::string why = co_await cache.failure_to_start();
            EXPECT_THAT(why, AllOf(HasSubstr(base), HasSubstr(name), HasSubstr("left as it is"),
                                   HasSubstr("move the folder " + folder.file("appendonlydir") +
                                             " away to begin without it")));
            EXPECT_THAT(why,
                        ::testing::Not(::testing::AnyOf(HasSubstr("wrong at"), HasSubstr("--fix"),
                                                        HasSubstr("truncate"))));
            EXPECT_EQ(content(base), bytes);
            // The advice.
            std::filesystem::rename(folder.file("appendonlydir"), folder.file("away"));
            co_await cache.start();
            co_await cache->stop(1s);
        }
    });
}

TEST_P(cache_append_load, nothing_is_cut_where_nothing_would_be_left) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        {
            subject cache("cache", kept_in(folder));
            co_await cache.start();
            co_await cache->stop(1s);
        }
        const std::string base = folder.file("appendonlydir/appendonly.aof.1.base.rdb");
        const std::string good = content(base);
        for (const std::string& bad : {std::string("garbage"), "REDIS" + std::string(9, '!'),
                                       good.substr(0, good.size() / 2)}) {
            write(base, bad);
            subject cache("cache", kept_in(folder));
            EXPECT_THAT(co_await cache.failure_to_start(),
                        AllOf(HasSubstr("wrong at byte"), HasSubstr("move the folder"),
                              ::testing::Not(HasSubstr("truncate"))));
            EXPECT_EQ(content(base), bad);
        }
        write(base, good);
        write(part(folder, 1), "*1\r\n$5\r\nMULTI\r\n" + encoded({"SOT", "a", "1"}));
        subject cache("cache", kept_in(folder));
        EXPECT_THAT(co_await cache.failure_to_start(),
                    AllOf(HasSubstr("move the folder"), ::testing::Not(HasSubstr("truncate"))));
    });
}

// A rewrite begins with the next part, to which nothing is appended before its snapshot has begun.
TEST_P(cache_append_load, a_crash_while_a_rewrite_begins_loses_no_whole_command) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        {
            subject cache("cache", kept_in(folder));
            co_await cache.start();
            co_await cache->stop(1s);
        }
        const std::string list = folder.file("appendonlydir/appendonly.aof.manifest");
        write(list, content(list) + "file appendonly.aof.2.incr.aof seq 2 type i\n");
        write(part(folder, 1), encoded({"SET", "a", "1"}) + "*2\r\n$4\r\nINC");
        write(part(folder, 2), "");
        for (const std::string_view expected : {":2", ":3"}) {
            subject cache("cache", kept_in(folder));
            co_await cache.start();
            EXPECT_EQ(cache.events.has("were cut off"), expected == ":2");
            {
                talker client = co_await talker::to(cache->local());
                EXPECT_EQ(co_await ask(client, "INCR a"), expected);
            }
            co_await cache->stop(1s);
        }
    });
}

TEST_P(cache_append_load, a_script_that_takes_its_time_is_followed_by_the_rest) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        const json options = kept_in(folder, {{"config", "busy-reply-threshold 1"}});
        {
            subject cache("cache", options);
            co_await cache.start();
            const bool has_scripts = co_await [](endpoint at) -> task<bool> {
                talker client = co_await talker::to(at);
                co_return (co_await ask(client, "EVAL 'return 1' 0")) == ":1";
            }(cache->local());
            co_await cache->stop(1s);
            if (!has_scripts) co_return;
        }
        write(part(folder, 1), encoded({"EVAL",
                                        "local i = 0 while i < 3e7 do i = i + 1 end "
                                        "return redis.call('SET', 'a', '1')",
                                        "0"}) +
                                   encoded({"INCR", "a"}));
        subject cache("cache", options);
        co_await cache.start();
        {
            talker client = co_await talker::to(cache->local());
            EXPECT_EQ(co_await ask(client, "INCR a"), ":3");
        }
        co_await cache->stop(1s);
    });
}

TEST_P(cache_append_load, a_file_with_a_command_that_waits_is_refused) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        {
            subject cache("cache", kept_in(folder));
            co_await cache.start();
            co_await cache->stop(1s);
        }
        write(part(folder, 1), encoded({"WAIT", "1", "0"}) + encoded({"SET", "a", "1"}));
        subject cache("cache", kept_in(folder));
        EXPECT_THAT(co_await cache.failure_to_start(),
                    HasSubstr("it has 'wait', which no server writes there"));
    });
}

/// Redis 6 and older have one file beside the dump file.
TEST_P(cache_append_load, the_single_file_of_an_older_redis_is_taken_over) {
    run([&]() -> task<void> {
        for (const bool is_cut : {false, true}) {
            const temporary_folder folder;
            const std::string old = folder.file("appendonly.aof");
            write(old, encoded({"SELECT", "0"}) + encoded({"SET", "a", "1"}) +
                           encoded({"RPUSH", "list", "1", "2"}));
            if (is_cut) {
                // The list names it, and the crash came before it was moved.
                std::filesystem::create_directory(folder.file("appendonlydir"));
                write(folder.file("appendonlydir/appendonly.aof.manifest"),
                      "file appendonly.aof seq 1 type b\n");
            }
            for (int start = 0; start < 2; ++start) {
                subject cache("cache", kept_in(folder, at_once));
                co_await cache.start();
                {
                    talker client = co_await talker::to(cache->local());
                    EXPECT_EQ(co_await ask(client, "STRLEN a"), ":1");
                    EXPECT_EQ(co_await ask(client, "LLEN list"), ":" + std::to_string(2 + start));
                    EXPECT_EQ(co_await ask(client, "RPUSH list more"),
                              ":" + std::to_string(3 + start));
                }
                co_await cache->stop(1s);
                EXPECT_FALSE(std::filesystem::exists(old));
                EXPECT_TRUE(std::filesystem::exists(folder.file("appendonlydir/appendonly.aof")));
            }
            // A rewrite ends it.
            subject cache("cache", kept_in(folder, at_once));
            co_await cache.start();
            {
                talker client = co_await talker::to(cache->local());
                EXPECT_THAT(co_await ask(client, "BGREWRITEAOF"), StartsWith("+Background"));
                co_await until_rewritten(client, 1);
                EXPECT_EQ(co_await ask(client, "LLEN list"), ":4");
            }
            co_await cache->stop(1s);
            EXPECT_FALSE(std::filesystem::exists(folder.file("appendonlydir/appendonly.aof")));
        }
    });
}

}  // namespace
}  // namespace eddy::runtime
