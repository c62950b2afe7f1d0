// Tests of masters that send what no master sends: broken protocol, and commands that would stop
// the replica, change its settings or stall its link.
#include "cache/testing/test_client.hpp"
#include "runtime/cache/cache_context.hpp"
#include "runtime/cache/replication/replication_servers.hpp"
#include "runtime/cache/replication/replicator.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::runtime {
namespace {

using namespace runtime::testing;

EDDY_ON_EVERY_IO_BACKEND(cache_masters);

TEST_P(cache_masters, what_a_broken_master_sends_does_no_harm) {
    run([&]() -> task<void> {
        server replica;
        co_await replica.start();
        const std::string id(40, 'a');
        const std::string full = "+FULLRESYNC " + id + " 0\r\n";
        const std::string mark(40, 'b');
        // Refused before any data is dropped for it.
        std::vector<std::string> bad = {
            "+FULLRESYNC short 0\r\n",
            "+FULLRESYNC " + id + "\r\n",
            "+FULLRESYNC " + id + " -5\r\n",
            "+FULLRESYNC " + id + " 99999999999999999999\r\n",
            "+CONTINUE\r\n*1\r\n$8\r\nFLUSHALL\r\n",
            std::string(100'000, 'x'),
            "\r\n\r\n" + std::string(5000, 'y') + "\r\n",
            "-ERR no\r\n",
            full + "$-1\r\n",
            full + "$EOF:short\r\n",
            full + "$99999999999999999999\r\n",
            full + "-ERR disk\r\n",
            full + "$5\r\nREDIS0011",
            full + "$18\r\nREDIS0014\xff" + std::string(8, '\0'),
            full + "$EOF:" + mark + "\r\nVALKEY081\xff" + std::string(8, '\0') + mark,
            full + "$EOF:" + mark + "\r\n" + std::string(1000, '\xfa'),
        };
        const std::size_t harmless = bad.size();
        bad.push_back(full + "$10000000000\r\nREDIS0011\xff");
        bad.push_back(full + "$EOF:" + mark + "\r\nREDIS0009\xff" + std::string(8, '\0') +
                      std::string(40, 'c'));
        const std::string good =
            full + "$EOF:" + mark + "\r\nREDIS0009\xff" + std::string(8, '\0') + mark;
        bad.push_back(good + "*1\r\n$x\r\n");
        bad.push_back(good + "*2000000\r\n");
        bad.push_back(good + "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$3000000000\r\n");
        bad.push_back(good + "*1\r\n$5\r\nMULTI\r\n*2\r\n$4\r\nINCR\r\n$1\r\nn\r\n");
        listener at = must(loop::current().listen(must(endpoint::ip("127.0.0.1", 0))));
        const std::string port = std::to_string(at.local().port());
        for (std::size_t i = 0; i < bad.size(); ++i) {
            EXPECT_EQ(co_await replica.ask("REPLICAOF NO ONE"), "+OK");
            EXPECT_EQ(co_await replica.ask("SET own value"), "+OK");
            replica.cache->events.lines.clear();
            std::size_t served = 0;
            scope tasks(co_await current_source());
            tasks.spawn(pretend_master(at, bad[i], served));
            co_await replica.replicate(port);
            co_await until([&] { return replica.cache->events.has("is lost"); });
            EXPECT_EQ(served, 1U);
            EXPECT_EQ(co_await replica.text("GET own"), i < harmless ? "value" : "$-1") << bad[i];
            EXPECT_EQ(co_await replica.info("replication", "master_link_status"), "down");
            tasks.cancel();
            co_await tasks.join();
        }
        EXPECT_EQ(co_await replica.ask("REPLICAOF NO ONE"), "+OK");
        EXPECT_EQ(co_await replica.text("GET n"), "$-1");
        EXPECT_EQ(co_await replica.ask("SET own value"), "+OK");
        co_await replica.stop();
    });
}

std::string encoded_words(std::string_view command) {
    std::vector<std::string> words;
    while (!command.empty()) {
        const std::string_view word = command.substr(0, command.find(' '));
        command.remove_prefix(std::min(command.size(), word.size() + 1));
        words.emplace_back(word);
    }
    return encoded(words);
}

/// Reply to PSYNC of a master without keys: its stream follows.
std::string no_data() {
    return "+FULLRESYNC " + std::string(40, 'a') + " 100\r\n$18\r\n" +
           std::string("REDIS0009\xff\0\0\0\0\0\0\0\0", 18);
}

// They are well-formed, and would stop the replica, change its settings, or stall its link.
TEST_P(cache_masters, what_no_master_sends_ends_the_link_and_nothing_else) {
    run([&]() -> task<void> {
        server replica;
        co_await replica.start();
        const std::vector<std::string_view> strays = {"SHUTDOWN NOSAVE",
                                                      "DEBUG SLEEP 1000",
                                                      "CONFIG SET maxmemory 1",
                                                      "ACL SETUSER evil on",
                                                      "PSYNC ? -1",
                                                      "SYNC",
                                                      "REPLICAOF NO ONE",
                                                      "FAILOVER",
                                                      "MONITOR",
                                                      "SUBSCRIBE channel",
                                                      "PSUBSCRIBE *",
                                                      "CLIENT PAUSE 100000",
                                                      "CLIENT REPLY ON",
                                                      "BLPOP list 0",
                                                      "BZPOPMIN zset 0",
                                                      "BLMOVE list other LEFT LEFT 0",
                                                      "XREAD BLOCK 0 STREAMS stream $",
                                                      "WAIT 1 0",
                                                      "WATCH before",
                                                      "HELLO 3",
                                                      "AUTH user password",
                                                      "QUIT",
                                                      "RESET",
                                                      "SAVE",
                                                      "REPLCONF ACK 1",
                                                      "SCRIPT KILL"};
        listener at = must(loop::current().listen(must(endpoint::ip("127.0.0.1", 0))));
        const std::string port = std::to_string(at.local().port());
        for (std::size_t i = 0; i <= strays.size(); ++i) {
            // The last one within a transaction.
            const bool queued = i == strays.size();
            const std::string_view stray = queued ? "CONFIG SET maxmemory 1" : strays[i];
            SCOPED_TRACE(stray);
            replica.cache->events.lines.clear();
            std::size_t served = 0;
            scope tasks(co_await current_source());
            tasks.spawn(pretend_master(at,
                                       no_data() + encoded_words("SET before 1") +
                                           (queued ? encoded_words("MULTI") : "") +
                                           encoded_words(stray) + encoded_words("SET behind 1") +
                                           (queued ? encoded_words("EXEC") : ""),
                                       served));
            co_await replica.replicate(port);
            co_await until([&] { return replica.cache->events.has(", which no master sends"); });
            std::string name(stray.substr(0, stray.find(' ')));
            std::ranges::transform(name, name.begin(), [](char c) {
                return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
            });
            EXPECT_TRUE(replica.cache->events.has("it sent '" + name));
            EXPECT_EQ(co_await replica.text("GET before"), "1");
            EXPECT_EQ(co_await replica.text("GET behind"), "$-1");
            EXPECT_EQ(co_await replica.ask("CONFIG GET maxmemory"), "*2");
            for (const char* const each : {"$9", "maxmemory", "$1", "0"})
                EXPECT_EQ(co_await replica.line(), each);
            EXPECT_EQ(co_await replica.ask("ACL LIST"), "*1");
            static_cast<void>(co_await replica.line());
            static_cast<void>(co_await replica.line());
            EXPECT_EQ(co_await replica.info("replication", "role"), "slave");
            EXPECT_EQ(co_await replica.info("replication", "connected_slaves"), "0");
            EXPECT_EQ(co_await replica.info("replication", "master_link_status"), "down");
            tasks.cancel();
            co_await tasks.join();
            if (i < strays.size()) EXPECT_EQ(co_await replica.ask("REPLICAOF NO ONE"), "+OK");
        }
        // It is tried again, from the beginning: the same would come again.
        std::size_t served = 0;
        scope tasks(co_await current_source());
        tasks.spawn(pretend_master(
            at, no_data() + encoded_words("SET now 1") + encoded_words("SET stay 1"), served));
        co_await replica.until_up();
        while (co_await replica.text("GET stay") != "1")
            must(co_await loop::current().sleep_for(2ms));
        EXPECT_EQ(co_await replica.text("GET before"), "$-1");
        co_await replica.stop();
        tasks.cancel();
        co_await tasks.join();
    });
}

TEST_P(cache_masters, a_masters_script_without_end_can_be_killed) {
    run([&]() -> task<void> {
        server replica;
        co_await replica.start();
        if ((co_await replica.ask("SCRIPT EXISTS x"))
                .starts_with("-ERR this eddy was built without")) {
            co_await replica.stop();
            co_return;
        }
        static_cast<void>(co_await replica.line());
        EXPECT_EQ(co_await replica.ask("CONFIG SET busy-reply-threshold 1"), "+OK");
        const std::string endless = "*3\r\n$4\r\nEVAL\r\n$17\r\nwhile true do end\r\n$1\r\n0\r\n";
        listener at = must(loop::current().listen(must(endpoint::ip("127.0.0.1", 0))));
        std::size_t served = 0;
        scope tasks(co_await current_source());
        tasks.spawn(pretend_master(at, no_data() + endless + encoded_words("SET stay 1"), served));
        co_await replica.replicate(std::to_string(at.local().port()));
        while (!(co_await replica.ask("GET stay")).starts_with("-BUSY"))
            must(co_await loop::current().sleep_for(2ms));
        EXPECT_EQ(co_await replica.ask("SCRIPT KILL"), "+OK");
        // Commands behind it are executed.
        for (;;) {
            const std::string got = co_await replica.text("GET stay");
            if (got == "1") break;
            must(co_await loop::current().sleep_for(2ms));
        }
        EXPECT_EQ(co_await replica.info("replication", "master_link_status"), "up");
        co_await replica.stop();
        tasks.cancel();
        co_await tasks.join();
    });
}

TEST_P(cache_masters, a_masters_transaction_that_does_not_end_has_no_effect) {
    run([&]() -> task<void> {
        server replica;
        co_await replica.start();
        std::string begin = no_data() + encoded_words("SET before 1") + encoded_words("MULTI");
        for (int i = 0; i < 20'000; ++i) begin += encoded_words("INCR stay");
        listener at = must(loop::current().listen(must(endpoint::ip("127.0.0.1", 0))));
        std::size_t served = 0;
        scope tasks(co_await current_source());
        tasks.spawn(pretend_master(at, begin, served));
        co_await replica.replicate(std::to_string(at.local().port()));
        while (co_await replica.text("GET before") != "1")
            must(co_await loop::current().sleep_for(2ms));
        // Clients are served meanwhile, and the offset does not count the unfinished transaction.
        EXPECT_EQ(co_await replica.text("GET stay"), "$-1");
        EXPECT_EQ(co_await replica.info("replication", "master_link_status"), "up");
        EXPECT_EQ(co_await replica.info("replication", "slave_repl_offset"),
                  std::to_string(100 + encoded_words("SET before 1").size()));
        EXPECT_EQ(co_await replica.ask("REPLICAOF NO ONE"), "+OK");
        EXPECT_EQ(co_await replica.text("GET stay"), "$-1");
        EXPECT_EQ(co_await replica.ask("INCR stay"), ":1");
        co_await replica.stop();
        tasks.cancel();
        co_await tasks.join();
    });
}

/// A replica's engine, without clients or files.
struct small_replica {
    static constexpr std::size_t limit = 64 * 1024;

    explicit small_replica(scope& tasks)
        : context(engine, events, counted), replicating(context), client(engine) {
        context.settings.replica.max_transaction = limit;
        context.update_time();
        replicating.begin();
        tasks.spawn(replicating.replicate());
    }
    std::uint64_t offset() { return eddy::cache::replication::of(engine).offset(); }
    bool is_up() {
        return eddy::cache::replication::of(engine).link() == eddy::cache::link_state::connected;
    }

    eddy::cache::engine engine;
    recorder events;
    serving::counters counted;
    cache::cache_context context;
    cache::replicator replicating;
    eddy::cache::testing::test_client client;
};

/// Answers a replica up to its PSYNC. Yields the id of the stream that it asks for.
task<std::string> asked_stream(talker& replica) {
    for (;;) {
        const std::string line = co_await replica.line();
        if (line == "PING\r") co_await replica.say("+PONG\r\n");
        if (line == "REPLCONF\r") co_await replica.say("+OK\r\n");
        if (line == "PSYNC\r") break;
    }
    static_cast<void>(co_await replica.line());
    std::string stream = co_await replica.line();
    for (int i = 0; i < 2; ++i) static_cast<void>(co_await replica.line());
    co_return stream;
}

/// Serves one replica after the other: sends each the first part, and the second on request.
struct slow_master {
    listener at = must(loop::current().listen(must(endpoint::ip("127.0.0.1", 0))));
    std::vector<std::string> asked;  // for which stream
    std::string first;
    std::string second;
    event go_on;

    task<void> serve() {
        for (;;) {
            result<stream> peer = co_await at.accept();
            if (!peer) co_return;
            talker replica(std::move(*peer));
            try {
                co_await serve_one(replica);
            } catch (const std::exception&) {
                // It has left.
            }
        }
    }
    task<void> serve_one(talker& replica) {
        asked.push_back(co_await asked_stream(replica));
        co_await replica.say(first);
        if (!co_await go_on.wait()) co_return;
        co_await replica.say(second);
        static_cast<void>(co_await replica.rest());
    }
};

// Also where it says MULTI again and again, which begins nothing.
TEST_P(cache_masters, a_transaction_beyond_the_limit_ends_the_link_and_nothing_else) {
    run([&]() -> task<void> {
        for (const bool nested : {false, true}) {
            SCOPED_TRACE(nested);
            const std::string before = encoded_words("SET before 1");
            const std::string piece = encoded_words("SET queued " + std::string(1000, 'x')) +
                                      (nested ? encoded_words("MULTI") : "");
            // Up to the limit, to the byte.
            std::string transaction = encoded_words("MULTI");
            while (transaction.size() + 2 * piece.size() <= small_replica::limit)
                transaction += piece;
            std::size_t size = small_replica::limit - transaction.size();
            std::string last;
            do {
                last = encoded_words("SET last " + std::string(size--, 'x'));
            } while (transaction.size() + last.size() > small_replica::limit);
            transaction += last;
            EXPECT_EQ(transaction.size(), small_replica::limit);

            slow_master master;
            master.first = no_data() + before + transaction;
            master.second = encoded_words("PING");
            scope tasks(co_await current_source());
            small_replica replica(tasks);
            tasks.spawn(master.serve());
            replica.client("REPLICAOF 127.0.0.1 " + std::to_string(master.at.local().port()));
            std::uint64_t received = 0;
            co_await until([&] {
                received = replica.counted.bytes_in;
                return received >= master.first.size() && replica.is_up();
            });
            // All of it has been received, and its end is awaited; earlier commands count.
            EXPECT_EQ(replica.client("GET before"), "$1\r\n1\r\n");
            EXPECT_EQ(replica.client("EXISTS queued last"), ":0\r\n");
            EXPECT_EQ(replica.offset(), 100 + before.size());
            EXPECT_FALSE(replica.events.has("is lost"));

            master.go_on.set();
            co_await until([&] { return replica.events.has("is lost"); });
            EXPECT_TRUE(
                replica.events.has("is lost: it sent a transaction of more than 65536 "
                                   "bytes; it is tried again every second"));
            EXPECT_FALSE(replica.is_up());
            EXPECT_EQ(replica.client("GET before"), "$1\r\n1\r\n");
            EXPECT_EQ(replica.client("EXISTS queued last"), ":0\r\n");
            EXPECT_EQ(replica.offset(), 100 + before.size());

            // The next time all data is asked for: the same would come again.
            master.first = no_data() + encoded_words("SET now 1") + encoded_words("MULTI") +
                           encoded_words("SET both 1") + encoded_words("EXEC");
            master.second.clear();
            co_await until([&] { return replica.client("GET both") == "$1\r\n1\r\n"; });
            EXPECT_EQ(master.asked, (std::vector<std::string>{"?\r", "?\r"}));
            EXPECT_EQ(replica.client("EXISTS before queued last"), ":0\r\n");
            EXPECT_EQ(replica.client("GET now"), "$1\r\n1\r\n");
            EXPECT_TRUE(replica.is_up());
            tasks.cancel();
            co_await tasks.join();
        }
    });
}

// A copy costs its master much, and the next one would be refused as well.
TEST_P(cache_masters, a_copy_that_cannot_be_read_costs_no_keys_and_is_asked_for_ever_more_rarely) {
    run([&]() -> task<void> {
        server replica;
        co_await replica.start();
        EXPECT_EQ(co_await replica.ask("SET own value"), "+OK");
        slow_master master;
        master.first = "+FULLRESYNC " + std::string(40, 'a') + " 100\r\n$18\r\nREDIS0014\xff" +
                       std::string(8, '\0');
        master.go_on.set();
        scope tasks(co_await current_source());
        tasks.spawn(master.serve());
        co_await replica.replicate(std::to_string(master.at.local().port()));
        co_await until([&] { return master.asked.size() >= 2; });
        EXPECT_EQ(co_await replica.text("GET own"), "value");
        EXPECT_TRUE(replica.cache->events.has(
            "is lost: its data cannot be read: it has RDB version 14 "
            "(REDIS0014), and versions 1 to 13 of Redis and 80 of Valkey "
            "are read; it is tried again after pauses of up to a minute"));
        EXPECT_FALSE(replica.cache->events.has("takes all data"));
        if (simulated()) {
            must(co_await loop::current().sleep_for(25s));
            EXPECT_GE(master.asked.size(), 4U);
            EXPECT_LE(master.asked.size(), 7U);
            EXPECT_EQ(co_await replica.text("GET own"), "value");
        }
        // Another master is asked at once.
        server other;
        co_await other.start();
        EXPECT_EQ(co_await other.ask("SET theirs value"), "+OK");
        co_await replica.replicate(other.port());
        co_await replica.until_up();
        EXPECT_EQ(co_await replica.text("GET theirs"), "value");
        EXPECT_EQ(co_await replica.text("GET own"), "$-1");
        co_await replica.stop();
        co_await other.stop();
        tasks.cancel();
        co_await tasks.join();
    });
}

// Valkey 9 sends its expiring fields to replicas of such a version alone.
TEST_P(cache_masters, a_replica_names_the_version_of_valkey_that_it_reads) {
    run([&]() -> task<void> {
        server replica;
        co_await replica.start();
        std::vector<std::string> words;
        struct listens {
            static task<void> to(listener& at, std::vector<std::string>& words) {
                result<stream> peer = co_await at.accept();
                if (!peer) co_return;
                talker replica(std::move(*peer));
                try {
                    for (;;) {
                        words.push_back(co_await replica.line());
                        if (words.back() == "PING\r") co_await replica.say("+PONG\r\n");
                        // As Redis, which does not know it.
                        if (words.back() == "version\r")
                            co_await replica.say("-ERR Unrecognized REPLCONF option: version\r\n");
                        else if (words.back() == "listening-port\r" || words.back() == "psync2\r")
                            co_await replica.say("+OK\r\n");
                        if (words.back() == "PSYNC\r") break;
                    }
                    co_await replica.say(no_data() + encoded_words("SET stay 1"));
                    static_cast<void>(co_await replica.rest());
                } catch (const std::exception&) {
                    // It has left.
                }
            }
        };
        listener at = must(loop::current().listen(must(endpoint::ip("127.0.0.1", 0))));
        scope tasks(co_await current_source());
        tasks.spawn(listens::to(at, words));
        co_await replica.replicate(std::to_string(at.local().port()));
        co_await replica.until_up();
        const auto named = std::ranges::find(words, "version\r");
        EXPECT_NE(named, words.end());
        if (words.end() - named > 2) EXPECT_EQ(named[2], "9.0.0\r");
        co_await replica.stop();
        tasks.cancel();
        co_await tasks.join();
    });
}

// The same bytes would come again, and be wrong again.
TEST_P(cache_masters, a_stream_that_breaks_the_protocol_is_not_taken_up_again) {
    run([&]() -> task<void> {
        server replica;
        co_await replica.start();
        server master;
        co_await master.start();
        std::vector<std::string> asked;
        listener at = must(loop::current().listen(must(endpoint::ip("127.0.0.1", 0))));
        struct breaks {
            static task<void> all(listener& at, std::vector<std::string>& asked) {
                while (asked.size() < 2) {
                    result<stream> peer = co_await at.accept();
                    if (!peer) co_return;
                    talker replica(std::move(*peer));
                    try {
                        co_await one(replica, asked);
                    } catch (const std::exception&) {
                        // It has left.
                    }
                }
            }
            static task<void> one(talker& replica, std::vector<std::string>& asked) {
                asked.push_back(co_await asked_stream(replica));
                const std::string empty("REDIS0009\xff\0\0\0\0\0\0\0\0", 18);
                co_await replica.say("+FULLRESYNC " + std::string(40, 'a') + " 100\r\n$18\r\n" +
                                     empty + "*9999999999\r\n");
                static_cast<void>(co_await replica.rest());
            }
        };
        scope tasks(co_await current_source());
        tasks.spawn(breaks::all(at, asked));
        co_await replica.replicate(std::to_string(at.local().port()));
        co_await until([&] { return asked.size() == 2; });
        EXPECT_EQ(asked[1], "?\r");
        co_await replica.stop();
        co_await master.stop();
        tasks.cancel();
        co_await tasks.join();
    });
}

}  // namespace
}  // namespace eddy::runtime
