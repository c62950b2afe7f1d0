// Tests of a cache that appends its changes to a file: crashes at any time, rewrites, and clients
// that wait for the disk together.
#include <eddy/base/unique_fd.hpp>

#include "base/files/temporary_folder.hpp"
#include "runtime/cache/files/append_folder.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>

namespace eddy::runtime {
namespace {

using namespace runtime::testing;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

EDDY_ON_EVERY_IO_BACKEND(cache_append);

constexpr const char* policies[] = {"always", "everysec", "no"};

TEST_P(cache_append, what_was_answered_is_there_after_a_crash_at_any_time) {
    run([&]() -> task<void> {
        for (const char* const policy : policies) {
            SCOPED_TRACE(policy);
            const temporary_folder folder;
            subject cache("cache", kept_in(folder, {{"appendfsync", policy}}));
            co_await cache.start();
            {
                talker client = co_await talker::to(cache->local());
                constexpr int rounds = 12;
                constexpr int commands = 60;
                for (int round = 0; round < rounds; ++round) {
                    std::string batch;
                    for (int i = 0; i < commands; ++i) {
                        const std::string n = std::to_string((round * 37 + i * 11) % 97);
                        switch (i % 4) {
                            case 0:
                                batch += "SET key" + n + " " + std::to_string(round) + "\r\n";
                                break;
                            case 1:
                                batch += "RPUSH list" + n + " " + std::to_string(i) + "\r\n";
                                break;
                            case 2: batch += "INCR count\r\n"; break;
                            default:
                                batch += "HSET hash f" + n + " " + std::to_string(round) + "\r\n";
                        }
                    }
                    // The rewrite runs beside the next rounds.
                    if (round % 3 == 1) batch += "BGREWRITEAOF\r\n";
                    co_await client.say(batch);
                    for (int i = 0; i < commands + (round % 3 == 1 ? 1 : 0); ++i)
                        static_cast<void>(co_await client.line());
                    const temporary_folder crashed;
                    copy(folder, crashed);
                    const std::string digest = co_await ask(client, "DEBUG DIGEST");
                    EXPECT_EQ(co_await digest_in(crashed), digest) << "round " << round;
                }
            }
            co_await cache->stop(1s);
        }
    });
}

TEST_P(cache_append, an_orderly_stop_writes_all_with_every_policy) {
    run([&]() -> task<void> {
        for (const char* const policy : policies) {
            const temporary_folder folder;
            subject cache("cache", kept_in(folder, {{"appendfsync", policy}}));
            co_await cache.start();
            std::string digest;
            {
                talker client = co_await talker::to(cache->local());
                std::string batch;
                for (int i = 0; i < 300; ++i) batch += "SET key" + std::to_string(i) + " v\r\n";
                co_await client.say(batch);
                for (int i = 0; i < 300; ++i) EXPECT_EQ(co_await line_of(client), "+OK");
                EXPECT_EQ(co_await ask(client, "SELECT 3"), "+OK");
                EXPECT_EQ(co_await ask(client, "MULTI"), "+OK");
                EXPECT_EQ(co_await ask(client, "SADD s a b c"), "+QUEUED");
                EXPECT_EQ(co_await ask(client, "SPOP s"), "+QUEUED");
                EXPECT_EQ(co_await ask(client, "EXEC"), "*2");
                EXPECT_EQ(co_await line_of(client), ":3");
                EXPECT_EQ(co_await line_of(client), "$1");
                static_cast<void>(co_await line_of(client));
                digest = co_await ask(client, "DEBUG DIGEST");
            }
            co_await cache->stop(1s);
            EXPECT_EQ(co_await digest_in(folder), digest) << policy;
        }
    });
}

// proto-max-bulk-len is for what clients send.
TEST_P(cache_append, functions_are_kept_by_a_rewrite) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        subject cache("cache", kept_in(folder, at_once));
        co_await cache.start();
        {
            talker client = co_await talker::to(cache->local());
            const std::string probe = co_await ask(client, "FUNCTION STATS");
            if (probe.starts_with("-ERR this eddy was built without")) {
                co_await cache->stop(0s);
                co_return;
            }
            client = co_await talker::to(cache->local());
            for (const std::string name : {"one", "two"}) {
                co_await client.say(
                    encoded({"FUNCTION", "LOAD",
                             "#!lua name=" + name + "\nredis.register_function('" + name +
                                 "', function(keys, args) return args[1] end)"}));
                EXPECT_EQ(co_await line_of(client), "$3");
                EXPECT_EQ(co_await line_of(client), name);
                if (name == "two") continue;
                EXPECT_THAT(co_await ask(client, "BGREWRITEAOF"), StartsWith("+Background"));
                co_await until_rewritten(client, 2);
            }
        }
        co_await cache->stop(1s);
        co_await cache.start();
        {
            talker client = co_await talker::to(cache->local());
            for (const std::string name : {"one", "two"}) {
                EXPECT_EQ(co_await ask(client, "FCALL " + name + " 0 hello"), "$5");
                EXPECT_EQ(co_await line_of(client), "hello");
            }
        }
        co_await cache->stop(1s);
    });
}

TEST_P(cache_append, it_is_switched_off_and_on_while_clients_write) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        subject cache("cache", kept_in(folder, at_once));
        co_await cache.start();
        std::string digest;
        {
            talker client = co_await talker::to(cache->local());
            for (int round = 0; round < 4; ++round) {
                const std::string n = std::to_string(round);
                EXPECT_EQ(co_await ask(client, "SET before" + n + " 1"), "+OK");
                EXPECT_EQ(co_await ask(client, "CONFIG SET appendonly no"), "+OK");
                for (int i = 0; i < round * 5; ++i)
                    EXPECT_EQ(co_await ask(client, "APPEND off" + n + " 1"),
                              ":" + std::to_string(i + 1));
                EXPECT_EQ(co_await ask(client, "CONFIG SET appendonly yes"), "+OK");
                EXPECT_EQ(co_await ask(client, "SET after" + n + " 1"), "+OK");
                if (round % 2 == 0) continue;
                while (co_await info(client, "aof_enabled") != "1")
                    must(co_await loop::current().sleep_for(1ms));
            }
            while (co_await info(client, "aof_enabled") != "1" ||
                   co_await info(client, "aof_rewrite_in_progress") != "0")
                must(co_await loop::current().sleep_for(1ms));
            EXPECT_EQ(co_await ask(client, "SET last 1"), "+OK");
            digest = co_await ask(client, "DEBUG DIGEST");
            const temporary_folder crashed;
            copy(folder, crashed);
            EXPECT_EQ(co_await digest_in(crashed), digest);
        }
        co_await cache->stop(1s);
        EXPECT_EQ(co_await digest_in(folder), digest);
    });
}

/// A master's full copy is not propagated as commands.
TEST_P(cache_append, a_masters_data_replaces_what_was_there) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        subject master("cache", {{"port", 0}, {"mode", "admin"}}, "master");
        co_await master.start();
        subject cache("cache", kept_in(folder, at_once));
        co_await cache.start();
        std::string digest;
        {
            talker above = co_await talker::to(master->local());
            talker client = co_await talker::to(cache->local());
            EXPECT_EQ(co_await ask(above, "CONFIG SET repl-diskless-sync-delay 0"), "+OK");
            EXPECT_EQ(co_await ask(above, "SET mine 1"), "+OK");
            EXPECT_EQ(co_await ask(client, "SET old 1"), "+OK");
            EXPECT_THAT(co_await ask(client, "REPLICAOF 127.0.0.1 " +
                                                 std::to_string(master->local().port())),
                        StartsWith("+OK"));
            // It may say that it loads.
            for (;;) {
                const std::string said = co_await ask(client, "EXISTS mine");
                if (said == ":1") break;
                must(co_await loop::current().sleep_for(1ms));
            }
            EXPECT_EQ(co_await ask(above, "SET next 1"), "+OK");
            while (co_await ask(client, "EXISTS next") != ":1")
                must(co_await loop::current().sleep_for(1ms));
            while (co_await info(client, "aof_enabled") != "1" ||
                   co_await info(client, "aof_rewrite_in_progress") != "0")
                must(co_await loop::current().sleep_for(1ms));
            EXPECT_EQ(co_await ask(client, "REPLICAOF NO ONE"), "+OK");
            EXPECT_EQ(co_await ask(client, "SET own 1"), "+OK");
            digest = co_await ask(client, "DEBUG DIGEST");
            const temporary_folder crashed;
            copy(folder, crashed);
            EXPECT_EQ(co_await digest_in(crashed), digest);
        }
        co_await cache->stop(1s);
        co_await master->stop(1s);
        EXPECT_EQ(co_await digest_in(folder), digest);
    });
}

/// The files are of before the copy until they are rewritten, and the replica may be promoted at
/// once.
TEST_P(cache_append, what_a_replica_writes_once_promoted_is_there_after_a_crash) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        subject master("cache", {{"port", 0}, {"mode", "admin"}}, "master");
        co_await master.start();
        subject cache("cache", kept_in(folder, at_once));
        co_await cache.start();
        {
            talker above = co_await talker::to(master->local());
            talker client = co_await talker::to(cache->local());
            EXPECT_EQ(co_await ask(above, "CONFIG SET repl-diskless-sync-delay 0"), "+OK");
            // Their snapshot takes a while.
            EXPECT_THAT(co_await ask(above, "DEBUG POPULATE 50000 key 100"), StartsWith("+OK"));
            EXPECT_EQ(co_await ask(client, "SET old 1"), "+OK");
            EXPECT_THAT(co_await ask(client, "REPLICAOF 127.0.0.1 " +
                                                 std::to_string(master->local().port())),
                        StartsWith("+OK"));
            while (co_await ask(client, "EXISTS key:49999") != ":1")
                must(co_await loop::current().sleep_for(1ms));
            co_await client.say("REPLICAOF NO ONE\r\nSET own 1\r\n");
            EXPECT_EQ(co_await line_of(client), "+OK");
            EXPECT_EQ(co_await line_of(client), "+OK");
            const std::string digest = co_await ask(client, "DEBUG DIGEST");
            const temporary_folder crashed;
            copy(folder, crashed);
            EXPECT_EQ(co_await digest_in(crashed), digest);
        }
        co_await cache->stop(1s);
        co_await master->stop(1s);
    });
}

// --- Waiting for the disk ---------------------------------------------------------------------

TEST_P(cache_append, no_reply_overtakes_its_change) {
    run([&]() -> task<void> {
        for (const char* const policy : policies) {
            SCOPED_TRACE(policy);
            const temporary_folder folder;
            subject cache("cache", kept_in(folder, {{"appendfsync", policy}}));
            co_await cache.start();
            {
                talker plain = co_await talker::to(cache->local());
                talker other = co_await talker::to(cache->local());
                // Served by two tasks from now on.
                talker subscriber = co_await talker::to(cache->local());
                co_await subscriber.say("HELLO 3\r\nSUBSCRIBE news\r\nSET begun 1\r\n");
                while (co_await line_of(subscriber) != "+OK") {
                }
                for (int i = 0; i < 50; ++i) {
                    const std::string n = std::to_string(1000 + i);
                    // More than is written in the loop's turn. The last one: the file is read
                    // often.
                    if (i == 49)
                        co_await other.say(encoded({"SET", "much", std::string(1'100'000, 'x')}));
                    // All three wait for the same writes, or for different ones.
                    co_await subscriber.say("SET a" + n + " 1\r\n");
                    co_await plain.say("SET p" + n + " 1\r\n");
                    co_await other.say("RPUSH l" + n + " 1\r\nLPOP l" + n + "\r\nGET a" + n +
                                       "\r\n");
                    EXPECT_EQ(co_await line_of(subscriber), "+OK");
                    EXPECT_THAT(content(part(folder, 1)), HasSubstr("a" + n));
                    EXPECT_EQ(co_await line_of(plain), "+OK");
                    EXPECT_THAT(content(part(folder, 1)), HasSubstr("p" + n));
                    if (i == 49) EXPECT_EQ(co_await line_of(other), "+OK");
                    EXPECT_EQ(co_await line_of(other), ":1");
                    EXPECT_THAT(content(part(folder, 1)), HasSubstr("l" + n));
                    EXPECT_EQ(co_await line_of(other), "$1");
                    EXPECT_EQ(co_await line_of(other), "1");
                    if (co_await line_of(other) != "$-1") EXPECT_EQ(co_await line_of(other), "1");
                }
            }
            co_await cache->stop(1s);
        }
    });
}

TEST_P(cache_append, clients_that_write_at_once_share_a_sync) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        subject cache("cache", kept_in(folder, at_once));
        co_await cache.start();
        constexpr int clients = 30;
        constexpr int rounds = 20;
        {
            struct writing {
                static task<void> all(endpoint where, std::string key) {
                    talker client = co_await talker::to(where);
                    for (int i = 0; i < rounds; ++i)
                        EXPECT_EQ(co_await ask(client, "SET " + key + " 1"), "+OK");
                }
            };
            talker observer = co_await talker::to(cache->local());
            const int before = std::stoi(co_await info(observer, "aof_fsyncs"));
            scope tasks;
            for (int i = 0; i < clients; ++i)
                tasks.spawn(writing::all(cache->local(), "k" + std::to_string(i)));
            co_await tasks.join();
            const int syncs = std::stoi(co_await info(observer, "aof_fsyncs")) - before;
            EXPECT_GE(syncs, rounds) << "each waits for one of its own";
            EXPECT_LT(syncs, clients * rounds / 2);
        }
        co_await cache->stop(1s);
    });
}

/// A stop wakes waiting clients, and what they were given meanwhile is in no list any more.
TEST_P(cache_append, what_is_given_at_a_stop_is_written_before_its_reply) {
    run([&]() -> task<void> {
        struct reading {
            static task<void> all(talker& from) {
                static_cast<void>(co_await from.rest());
                from = talker();
            }
        };
        for (int turns = 0; turns < 48; ++turns) {
            const temporary_folder folder;
            subject cache("cache", kept_in(folder, {{"appendfsync", policies[turns % 2]}}));
            co_await cache.start();
            talker waiting = co_await talker::to(cache->local());
            talker other = co_await talker::to(cache->local());
            co_await waiting.say("BLPOP list 0\r\n");
            while (co_await info(other, "clients", "blocked_clients") != "1")
                must(co_await loop::current().sleep_for(1ms));
            // Its commands are executed after the stop has begun, up to the push at their end.
            std::string requests;
            for (int i = 0; i < 20; ++i) requests += encoded({"ECHO", std::string(40'000, 'x')});
            scope tasks;
            tasks.spawn(reading::all(other));
            co_await other.say(requests + encoded({"RPUSH", "list", "given"}));
            for (int i = 0; i < turns / 2; ++i) co_await loop::current().yield();
            tasks.spawn(cache->stop(1s));
            if (const auto got = co_await waiting.socket.read()) {
                EXPECT_EQ(got->text(), encoded({"list", "given"}));
                EXPECT_THAT(content(part(folder, 1)), HasSubstr(encoded({"LPOP", "list"})));
            }
            waiting = talker();
            co_await tasks.join();
        }
    });
}

/// The element that was taken out for the client is in no list any more.
TEST_P(cache_append, a_client_that_is_killed_while_the_disk_writes_gets_its_reply) {
    run([&]() -> task<void> {
        for (int turns = 0; turns < 16; ++turns) {
            const temporary_folder folder;
            subject cache("cache", kept_in(folder, {{"appendfsync", "always"}}));
            co_await cache.start();
            talker taking = co_await talker::to(cache->local());
            talker other = co_await talker::to(cache->local());
            co_await taking.say("CLIENT ID\r\n");
            const std::string id = (co_await taking.line()).substr(1);
            co_await other.say("RPUSH list given\r\n");
            EXPECT_EQ(co_await other.line(), ":1\r");
            co_await taking.say("LPOP list\r\n");
            for (int i = 0; i < turns; ++i) co_await loop::current().yield();
            co_await other.say("CLIENT KILL ID " + id + "\n");
            const std::string got = co_await taking.rest();
            EXPECT_THAT(got, AnyOf("", "$5\r\ngiven\r\n"));
            EXPECT_EQ(co_await other.line(), ":1\r");
            co_await other.say("LLEN list\r\n");
            // Unless the kill came first.
            EXPECT_EQ(co_await other.line(), got.empty() ? ":1\r" : ":0\r");
            co_await cache->stop(1s);
        }
    });
}

TEST_P(cache_append, all_waiting_clients_get_replies_whatever_the_others_do) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        subject cache("cache", kept_in(folder, at_once));
        co_await cache.start();
        {
            constexpr int clients = 30;
            constexpr int rounds = 20;
            co_await with_scope([&](scope& all) -> task<void> {
                for (int which = 0; which < clients; ++which) {
                    all.spawn([](subject& to, int number) -> task<void> {
                        talker client = co_await talker::to(to->local());
                        const std::string n = std::to_string(number);
                        for (int i = 0; i < rounds; ++i) {
                            if (number % 5 == 1) {
                                // Waits for what the one before it pushes.
                                co_await client.say("BLPOP to" + n + " 0\r\n");
                                EXPECT_EQ(co_await line_of(client), "*2");
                                for (int lines = 0; lines < 4; ++lines)
                                    static_cast<void>(co_await line_of(client));
                            } else if (number % 5 == 0) {
                                const std::string next = std::to_string(number + 1);
                                EXPECT_THAT(co_await ask(client, "RPUSH to" + next + " x"),
                                            StartsWith(":"));
                            } else if (number % 5 == 2) {
                                // Leaves before it is answered.
                                co_await client.say("INCR left" + n + "\r\n");
                                client = co_await talker::to(to->local());
                            } else if (number % 5 == 3) {
                                co_await client.say("INCR c" + n + "\r\nINCR c" + n +
                                                    "\r\nPING\r\n");
                                EXPECT_EQ(co_await line_of(client),
                                          ":" + std::to_string(2 * i + 1));
                                EXPECT_EQ(co_await line_of(client),
                                          ":" + std::to_string(2 * i + 2));
                                EXPECT_EQ(co_await line_of(client), "+PONG");
                            } else {
                                EXPECT_EQ(co_await ask(client, "INCR e" + n),
                                          ":" + std::to_string(i + 1));
                            }
                        }
                    }(cache, which));
                }
                co_await all.join();
            });
        }
        std::string digest;
        {
            talker client = co_await talker::to(cache->local());
            digest = co_await ask(client, "DEBUG DIGEST");
        }
        co_await cache->stop(1s);
        EXPECT_EQ(co_await digest_in(folder), digest);
    });
}

/// While it lives there is no room on the disk for what is written to the file.
class full_disk {
public:
    explicit full_disk(const std::string& of) {
        for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) {
            std::error_code gone;
            const auto path = std::filesystem::read_symlink(each.path(), gone);
            if (!gone && path == of) fd_ = std::stoi(each.path().filename());
        }
        if (fd_ < 0) throw std::runtime_error(of + " is not open");
        const unique_fd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
        kept_ = unique_fd(::dup(fd_));
        EXPECT_EQ(::dup2(full.get(), fd_), fd_);
    }
    ~full_disk() { EXPECT_EQ(::dup2(kept_.get(), fd_), fd_); }
    full_disk(const full_disk&) = delete;
    full_disk& operator=(const full_disk&) = delete;

private:
    int fd_ = -1;
    unique_fd kept_;
};

/// It is served at once, but notified when all before has been sent, and the disk has refused by
/// then.
TEST_P(cache_append, a_client_given_what_the_disk_refused_gets_no_success) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        subject cache("cache", kept_in(folder, at_once));
        co_await cache.start();
        {
            talker waiting = co_await talker::to(cache->local());
            talker giving = co_await talker::to(cache->local());
            talker other = co_await talker::to(cache->local());
            co_await waiting.say("HELLO 3\r\nSUBSCRIBE news\r\nBLPOP list 0\r\nQUIT\r\n");
            while (co_await info(other, "clients", "blocked_clients") != "1")
                must(co_await loop::current().sleep_for(1ms));
            EXPECT_EQ(co_await ask(other, "SET before 1"), "+OK");
            // More than a connection takes of itself.
            const std::string news(20'000'000, 'n');
            co_await giving.say(encoded({"PUBLISH", "news", news}));
            EXPECT_EQ(co_await line_of(giving), ":1");
            // They are on their way.
            while (co_await line_of(waiting) != "$20000000") {
            }
            {
                const full_disk refusing(part(folder, 1));
                co_await giving.say("RPUSH list given\r\n");
                EXPECT_EQ(co_await giving.rest(), "");
                EXPECT_THAT(co_await ask(other, "SET after 1"), StartsWith("-MISCONF"));
                const std::string told = co_await waiting.rest();
                EXPECT_TRUE(told.contains(news));
                EXPECT_FALSE(told.contains("given"));
            }
            while (co_await ask(other, "SET after 1") != "+OK")
                must(co_await loop::current().sleep_for(1ms));
        }
        co_await cache->stop(1s);
    });
}

TEST_P(cache_append, without_always_what_the_disk_refuses_is_answered_and_the_next_refused) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        subject cache("cache", kept_in(folder, {{"appendfsync", "everysec"}}));
        co_await cache.start();
        {
            talker client = co_await talker::to(cache->local());
            EXPECT_EQ(co_await ask(client, "SET before 1"), "+OK");
            // It is synced: nothing is to be until something else was written.
            EXPECT_EQ(co_await ask(client, "WAITAOF 1 0 0"), "*2");
            EXPECT_EQ(co_await line_of(client), ":1");
            EXPECT_EQ(co_await line_of(client), ":0");
            {
                const full_disk refusing(part(folder, 1));
                EXPECT_EQ(co_await ask(client, "SET meanwhile 1"), "+OK");
                EXPECT_THAT(co_await ask(client, "SET after 1"), StartsWith("-MISCONF"));
                EXPECT_EQ(co_await ask(client, "EXISTS before meanwhile after"), ":2");
            }
            while (co_await ask(client, "SET after 1") != "+OK")
                must(co_await loop::current().sleep_for(1ms));
        }
        co_await cache->stop(1s);
        // The time of its sync decides between appending to the file and a rewrite.
        co_await cache.start();
        {
            talker client = co_await talker::to(cache->local());
            EXPECT_EQ(co_await ask(client, "EXISTS before meanwhile after"), ":3");
        }
        co_await cache->stop(1s);
    });
}

TEST_P(cache_append, waitaof_waits_until_the_disk_takes_it) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        subject cache("cache", kept_in(folder, {{"appendfsync", "everysec"}}));
        co_await cache.start();
        {
            talker waiting = co_await talker::to(cache->local());
            talker other = co_await talker::to(cache->local());
            {
                const full_disk refusing(part(folder, 1));
                co_await waiting.say("SET a 1\r\nWAITAOF 1 0 0\r\n");
                EXPECT_EQ(co_await line_of(waiting), "+OK");
                while (!(co_await ask(other, "SET b 1")).starts_with("-MISCONF"))
                    must(co_await loop::current().sleep_for(1ms));
            }
            for (const char* const reply : {"*2", ":1", ":0"})
                EXPECT_EQ(co_await line_of(waiting), reply);
            EXPECT_EQ(co_await ask(other, "SET b 1"), "+OK");
        }
        co_await cache->stop(1s);
    });
}

/// One transaction may be larger than what may wait; its client waits until it is written.
TEST_P(cache_append, a_value_beyond_the_limit_of_what_waits_is_written) {
    if (GetParam() != io_backend_kind::sim) GTEST_SKIP() << "64 MiB are a lot where time is real";
    run([&]() -> task<void> {
        const temporary_folder folder;
        subject cache("cache", kept_in(folder, {{"appendfsync", "no"}}));
        co_await cache.start();
        constexpr std::size_t size = (64U << 20) + 12345;
        {
            talker client = co_await talker::to(cache->local());
            co_await client.say("*3\r\n$3\r\nSET\r\n$3\r\nbig\r\n$" + std::to_string(size) +
                                "\r\n");
            const std::string piece(1U << 20, 'x');
            for (std::size_t left = size; left > 0; left -= std::min(left, piece.size()))
                co_await client.say(piece.substr(0, std::min(left, piece.size())));
            co_await client.say("\r\nSET small 1\r\n");
            EXPECT_EQ(co_await line_of(client), "+OK");
            EXPECT_EQ(co_await line_of(client), "+OK");
        }
        co_await cache->stop(1s);
        EXPECT_GT(std::filesystem::file_size(part(folder, 1)), size);
        co_await cache.start();
        {
            talker client = co_await talker::to(cache->local());
            EXPECT_EQ(co_await ask(client, "STRLEN big"), ":" + std::to_string(size));
            EXPECT_EQ(co_await ask(client, "EXISTS small"), ":1");
        }
        co_await cache->stop(1s);
    });
}

TEST_P(cache_append, two_caches_do_not_share_a_folder) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        subject cache("cache", kept_in(folder));
        co_await cache.start();
        subject other("cache", kept_in(folder), "other");
        EXPECT_THAT(co_await other.failure_to_start(), HasSubstr("in use by another cache"));
        co_await cache->stop(1s);
        co_await other.start();
        co_await other->stop(1s);
    });
}

}  // namespace
}  // namespace eddy::runtime
