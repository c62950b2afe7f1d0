// Tests of a cache whose loop runs out of memory again and again: it closes clients, and keeps
// serving. Its replies and its files stay consistent.
#include "base/counted_memory.hpp"
#include "cache/memory/slab.hpp"
#include "runtime/cache/clients/blocking_client.hpp"
#include "runtime/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#if EDDY_COUNTS_ALLOCATIONS

namespace eddy::runtime {
namespace {

using namespace runtime::testing;
using eddy::testing::no_memory;
using ::testing::StartsWith;

EDDY_ON_EVERY_KERNEL_IO_BACKEND(cache_memory);

std::string random_command(random_generator& dice) {
    static constexpr std::array forms = {"SET s%d %v",
                                         "APPEND s%d %v",
                                         "INCR n%d",
                                         "LPUSH l%d %v %v",
                                         "LPOP l%d",
                                         "SADD t%d %v %v",
                                         "ZADD z%d 1 %v",
                                         "HSET h%d %v %v",
                                         "DEL s%d",
                                         "EXPIRE t%d 1000",
                                         "RENAME s%d s%d",
                                         "GETSET s%d %v",
                                         "XADD x%d * f %v",
                                         "SETRANGE s%d 900 x",
                                         "HGETALL h%d",
                                         "LRANGE l%d 0 -1",
                                         "PFADD p%d %v",
                                         "BITFIELD b%d SET u8 #90 7",
                                         "SUBSCRIBE c%d",
                                         "UNSUBSCRIBE",
                                         "MULTI",
                                         "EXEC",
                                         "BGSAVE",
                                         "BGREWRITEAOF",
                                         "EVAL \"return redis.call('set','s%d','%v')\" 0",
                                         "CLIENT SETNAME %v",
                                         "INFO",
                                         "SUNIONSTORE t%d t%d t%d",
                                         "CONFIG GET *",
                                         "BLPOP l%d 0.01",
                                         "CLIENT TRACKING ON",
                                         "FLUSHDB"};
    // The last one would leave little to compare.
    const std::size_t one = dice.below(dice.below(50) == 0 ? forms.size() : forms.size() - 1);
    std::string made;
    for (const char* at = forms[one]; *at != 0; ++at) {
        if (*at != '%') {
            made += *at;
        } else if (*++at == 'd') {
            made += std::to_string(dice.below(20));
        } else {
            made += std::string(1 + dice.below(dice.below(10) == 0 ? 3000 : 30), 'v') +
                    std::to_string(dice.below(1000));
        }
    }
    return made;
}

/// Sends random commands and reads the replies, until it is closed or `over` is set.
void trouble(const endpoint& where, random_generator dice, const std::atomic<bool>& over) {
    while (!over) {
        try {
            blocking_client c(where);
            while (!over) {
                c.say(random_command(dice) + "\r\nPING mark\r\n");
                // Pushes and replies of any shape, up to the mark; in a transaction "+QUEUED".
                for (;;) {
                    const std::string got = c.reply();
                    if (got == "mark" || got == "+QUEUED" || got.starts_with("-")) break;
                    if (got.find("pong mark") != std::string::npos) break;
                }
            }
        } catch (const std::exception&) {
            // It was closed: there was no memory for it.
        }
    }
}

/// While clients change what they can, the loop's allocations fail at any place. `replicas` are
/// connections that stay.
task<void> starve(subject& cache, random_generator& dice, std::uint64_t replicas = 0) {
    std::atomic<bool> over{false};
    scope tasks;
    tasks.spawn(in_parallel(4, [&over, where = cache->local(), seed = dice()](int number) {
        trouble(where, random_generator(seed + static_cast<std::uint64_t>(number)), over);
    }));
    for (int round = 0; round < 400; ++round) {
        const std::uint64_t turns = 1 + dice.below(4);
        {
            // Larger blocks may be the store's own, which ends the program without them.
            const no_memory now(dice.below(40), cache::slab::max_small);
            for (std::uint64_t i = 0; i < turns; ++i) co_await loop::current().yield();
        }
        static_cast<void>(co_await loop::current().sleep_for(std::chrono::microseconds(200)));
    }
    over = true;
    co_await tasks.join();
    // Commands that were sent last are executed even after their clients have gone.
    co_await until([&] { return cache->count().connections_now <= replicas; });
}

TEST_P(cache_memory, goes_on_and_its_files_say_the_same) {
    run([&]() -> task<void> {
        random_generator& dice = random();
        for (const char* const fsync : {"everysec", "always"}) {
            const temporary_folder folder;
            const json options{{"port", 0},
                               {"dir", folder.path()},
                               {"appendonly", "yes"},
                               {"appendfsync", fsync},
                               {"mode", "admin"}};
            std::string digest;
            std::vector<std::string> said;
            {
                subject cache("cache", options);
                co_await cache.start();
                co_await starve(cache, dice);
                talker t = co_await talker::to(cache->local());
                // After a change, or a snapshot, that found no memory it writes its files anew.
                for (;;) {
                    co_await t.say("BGSAVE\r\nSET last 1\r\n");
                    co_await t.line();
                    if (co_await t.line() == "+OK\r") break;
                    static_cast<void>(co_await here().sleep_for(10ms));
                }
                co_await t.say("DEBUG DIGEST\r\n");
                digest = co_await t.line();
                EXPECT_THAT(digest, StartsWith("+"));
                co_await cache->stop(5s);
                said = cache.events.lines;
            }
            subject again("cache", options);
            co_await again.start();
            talker t = co_await talker::to(again->local());
            co_await t.say("DEBUG DIGEST\r\n");
            EXPECT_EQ(co_await t.line(), digest) << fsync << ::testing::PrintToString(said)
                                                 << ::testing::PrintToString(again.events.lines);
            co_await again->stop(0s);
        }
    });
}

TEST_P(cache_memory, is_replicated_all_the_same) {
    run([&]() -> task<void> {
        subject master("cache", {{"port", 0}, {"mode", "admin"}});
        co_await master.start();
        {
            talker to_master = co_await talker::to(master->local());
            co_await to_master.say("CONFIG SET repl-diskless-sync-delay 0\r\n");
            EXPECT_EQ(co_await to_master.line(), "+OK\r");
        }
        const std::string where = "127.0.0.1:" + std::to_string(master->local().port());
        subject replica("cache", {{"port", 0}, {"mode", "admin"}, {"replicate", where}});
        co_await replica.start();
        // Both live on the loop.
        co_await starve(master, random(), 1);
        talker to_master = co_await talker::to(master->local());
        talker to_replica = co_await talker::to(replica->local());
        for (;;) {
            co_await to_master.say("DEBUG DIGEST\r\n");
            co_await to_replica.say("DEBUG DIGEST\r\n");
            const std::string digest = co_await to_master.line();
            EXPECT_THAT(digest, StartsWith("+"));
            if (co_await to_replica.line() == digest) break;
            static_cast<void>(co_await here().sleep_for(10ms));
        }
        // Later changes arrive, too.
        co_await to_master.say("SET last 1\r\n");
        EXPECT_EQ(co_await to_master.line(), "+OK\r");
        for (std::string got; got != "$1\r";) {
            static_cast<void>(co_await here().sleep_for(10ms));
            co_await to_replica.say("GET last\r\n");
            got = co_await to_replica.line();
            if (got == "$1\r") EXPECT_EQ(co_await to_replica.line(), "1\r");
        }
        co_await replica->stop(0s);
        co_await master->stop(0s);
    });
}

}  // namespace
}  // namespace eddy::runtime

#endif
