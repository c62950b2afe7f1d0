// Tests of a cache with several threads: clients on different ones see the same keys, in order and
// whole, and reach each other. The other tests of the cache are run with threads, too; see
// testing.hpp.
#include <eddy/io/scope.hpp>

#include "runtime/cache/clients/blocking_client.hpp"
#include "runtime/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::runtime {
namespace {

using namespace runtime::testing;
using ::testing::HasSubstr;
using ::testing::StartsWith;

EDDY_ON_EVERY_KERNEL_IO_BACKEND(cache_threads);
/// Also on the simulator, where all workers are on one loop.
EDDY_ON_EVERY_IO_BACKEND(cache_loops);

constexpr int threads = 3;

json on_workers(json options) {
    return with(std::move(options), {{"port", 0}, {"threads", threads}});
}

task<std::string> info(talker& by, std::string section, std::string name) {
    co_await by.say("INFO " + section + "\r\n");
    const std::string head = co_await by.line();
    const std::string text = co_await by.bytes(std::stoul(head.substr(1)) + 2);
    const std::size_t at = text.find("\r\n" + name + ":");
    if (at == std::string::npos) co_return "";
    const std::size_t begin = at + name.size() + 3;
    co_return text.substr(begin, text.find('\r', begin) - begin);
}

TEST_P(cache_threads, what_many_clients_change_at_once_adds_up) {
    run([&]() -> task<void> {
        subject cache("cache", on_workers({}));
        co_await cache.start();
        constexpr int clients = 8;
        constexpr int rounds = 400;
        const endpoint where = cache->local();
        co_await in_parallel(clients, [&](int number) {
            blocking_client c(where);
            for (int i = 0; i < rounds; ++i) {
                const std::string own = "own:" + std::to_string(number);
                // A pipeline's replies are in its order, whatever the others do between.
                c.say("INCR sum\r\nSET " + own + " " + std::to_string(i) + "\r\nGET " + own +
                      "\r\nRPUSH list " + std::to_string(number) + "\r\nHINCRBY hash f 2\r\n" +
                      "ZINCRBY zset 1 m\r\nSADD set " + std::to_string(number * rounds + i) +
                      "\r\n");
                EXPECT_THAT(c.reply(), StartsWith(":"));
                EXPECT_EQ(c.reply(), "+OK");
                EXPECT_EQ(c.reply(), std::to_string(i));
                for (int rest = 0; rest < 3; ++rest) c.reply();
                EXPECT_EQ(c.reply(), ":1");
            }
        });
        talker t = co_await talker::to(where);
        const std::string all = std::to_string(clients * rounds);
        co_await t.say("LLEN list\r\nSCARD set\r\n");
        EXPECT_EQ(co_await t.line(), ":" + all + "\r");
        EXPECT_EQ(co_await t.line(), ":" + all + "\r");
        co_await t.say("GET sum\r\nHGET hash f\r\nZSCORE zset m\r\n");
        EXPECT_THAT(co_await t.line(), StartsWith("$"));
        EXPECT_EQ(co_await t.line(), all + "\r");
        EXPECT_THAT(co_await t.line(), StartsWith("$"));
        EXPECT_EQ(co_await t.line(), std::to_string(2 * clients * rounds) + "\r");
        EXPECT_THAT(co_await t.line(), StartsWith("$"));
        EXPECT_EQ(co_await t.line(), all + "\r");
        EXPECT_EQ(cache->count().messages_in.value(), clients * rounds * 7U + 5U);
        co_await cache->stop(0s);
        EXPECT_EQ(cache->count().messages_in.value(), clients * rounds * 7U + 5U);
        EXPECT_EQ(cache->count().connections_now.value(), 0U);
    });
}

TEST_P(cache_threads, transactions_and_scripts_are_seen_whole_or_not_at_all) {
    run([&]() -> task<void> {
        subject cache("cache", on_workers({}));
        co_await cache.start();
        const endpoint where = cache->local();
        co_await in_parallel(6, [&](int number) {
            blocking_client c(where);
            for (int i = 0; i < 300; ++i) {
                if (number < 2) {
                    // In pieces: others have their turns in between.
                    for (const char* const each : {"MULTI", "INCR a", "INCR b"}) c.ask(each);
                    EXPECT_THAT(c.ask("EXEC"), StartsWith("[:"));
                } else if (number == 2) {
                    c.say("WATCH a\r\nMULTI\r\nINCR a\r\nINCR b\r\nEXEC\r\n");
                    for (int k = 0; k < 4; ++k) c.reply();
                    c.reply();  // or nil: another one was faster
                } else {
                    const std::string both = c.ask("MGET a b");
                    if (both == "[(nil) (nil)]") continue;
                    const std::size_t middle = both.find(' ');
                    EXPECT_EQ(both.substr(1, middle - 1),
                              both.substr(middle + 1, both.size() - middle - 2));
                }
            }
        });
        co_await cache->stop(0s);
    });
}

TEST_P(cache_threads, waits_and_messages_go_from_thread_to_thread) {
    run([&]() -> task<void> {
        subject cache("cache", on_workers({}));
        co_await cache.start();
        const endpoint where = cache->local();
        constexpr int items = 500;
        std::atomic<int> taken{0};
        std::atomic<int> listening{0};
        co_await in_parallel(8, [&](int number) {
            blocking_client c(where);
            if (number < 3) {
                // The client that takes an element has it alone.
                for (;;) {
                    const std::string got = c.ask("BLPOP queue 0");
                    if (got == "[queue end]") return;
                    ++taken;
                }
            } else if (number < 5) {
                EXPECT_EQ(c.ask("SUBSCRIBE news"), "[subscribe news :1]");
                ++listening;
                int last[2] = {-1, -1};
                // All messages of each publisher arrive, in its order.
                while (last[0] < items - 1 || last[1] < items - 1) {
                    const std::string got = c.reply();
                    const std::size_t from = got.rfind(' ') + 1;
                    const int who = got[from] - '0';
                    const int what = std::stoi(got.substr(from + 2));
                    EXPECT_EQ(what, last[who] + 1);
                    last[who] = what;
                }
            } else if (number < 7) {
                await([&] { return listening == 2; });
                for (int i = 0; i < items; ++i) {
                    const std::string text = std::to_string(number - 5) + ":" + std::to_string(i);
                    EXPECT_EQ(c.ask("PUBLISH news " + text), ":2");
                }
            } else {
                for (int i = 0; i < items; ++i) c.ask("RPUSH queue x");
                await([&] { return taken == items; });
                c.ask("RPUSH queue end end end");
            }
        });
        EXPECT_EQ(taken, items);
        co_await cache->stop(0s);
    });
}

TEST_P(cache_threads, many_subscribers_are_notified_of_much_at_once) {
    run([&]() -> task<void> {
        subject cache("cache", on_workers({{"threads", 2}}));
        co_await cache.start();
        const endpoint where = cache->local();
        constexpr int listeners = 300;
        constexpr int rounds = 20;
        // More messages than a worker delivers in one turn, from several publishers.
        std::vector<talker> all;
        for (int i = 0; i < listeners; ++i) {
            all.push_back(co_await talker::to(where));
            const std::string channel = "c" + std::to_string(i);
            co_await all.back().say("SUBSCRIBE " + channel + "\r\n");
            for (int line = 0; line < 6; ++line) co_await all.back().line();
        }
        co_await in_parallel(4, [&](int number) {
            blocking_client c(where);
            for (int round = 0; round < rounds; ++round) {
                std::string commands;
                for (int i = number; i < listeners; i += 4)
                    commands += "PUBLISH c" + std::to_string(i) + " x\r\n";
                c.say(commands);
                for (int i = number; i < listeners; i += 4) EXPECT_EQ(c.reply(), ":1");
            }
        });
        for (talker& each : all) {
            for (int line = 0; line < 7 * rounds; ++line) co_await each.line();
            EXPECT_EQ(each.unread, "");
        }
        co_await cache->stop(0s);
    });
}

TEST_P(cache_threads, clients_are_assigned_counted_and_closed_wherever_they_are) {
    run([&]() -> task<void> {
        const auto count_threads = [] {
            std::size_t count = 0;
            for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
                std::string name;
                std::getline(std::ifstream(task.path() / "comm"), name);
                count += name.starts_with("db-") ? 1 : 0;
            }
            return count;
        };
        const auto before = count_threads();
        subject cache("cache", on_workers({{"max_connections", 4}}));
        co_await cache.start();
        EXPECT_EQ(count_threads(), before + threads);
        std::vector<talker> all;
        for (int i = 0; i < 4; ++i) {
            all.push_back(co_await talker::to(cache->local()));
            co_await all.back().say("CLIENT SETNAME c" + std::to_string(i) + "\r\n");
            EXPECT_EQ(co_await all.back().line(), "+OK\r");
        }
        talker refused = co_await talker::to(cache->local());
        EXPECT_THAT(co_await refused.rest(), HasSubstr("max number of clients"));
        EXPECT_EQ(cache->count().connections_now.value(), 4U);
        // A watcher and a killed one on other threads.
        co_await all[1].say("BLPOP nothing 0\r\n");
        while (co_await info(all[0], "clients", "blocked_clients") != "1")
            static_cast<void>(co_await here().sleep_for(1ms));
        co_await all[0].say("CLIENT LIST\r\n");
        const std::string head = co_await all[0].line();
        const std::string list = co_await all[0].bytes(std::stoul(head.substr(1)) + 2);
        for (int i = 0; i < 4; ++i)
            EXPECT_THAT(list, HasSubstr("name=c" + std::to_string(i) + " "));
        const auto id_of = [&](const std::string& name) {
            const std::size_t at = list.rfind("id=", list.find("name=" + name));
            return list.substr(at + 3, list.find(' ', at) - at - 3);
        };
        co_await all[0].say("CLIENT UNBLOCK " + id_of("c1") + " ERROR\r\n");
        EXPECT_EQ(co_await all[0].line(), ":1\r");
        EXPECT_THAT(co_await all[1].line(), StartsWith("-UNBLOCKED"));
        for (const char* const name : {"c1", "c2", "c3"}) {
            co_await all[0].say("CLIENT KILL ID " + id_of(name) + "\r\n");
            EXPECT_EQ(co_await all[0].line(), ":1\r");
        }
        for (std::size_t i = 1; i < 4; ++i) EXPECT_EQ(co_await all[i].rest(), "");
        co_await until([&] { return cache->count().connections_now == 1; });
        talker late = co_await talker::to(cache->local());
        co_await late.say("PING\r\n");
        EXPECT_EQ(co_await late.line(), "+PONG\r");
        co_await cache->stop(0s);
        // The kernel takes an ended thread out of its list a moment later.
        co_await until([&] { return count_threads() == before; });
    });
}

TEST_P(cache_threads, a_stop_lets_clients_of_all_threads_finish_and_a_start_serves_anew) {
    run([&]() -> task<void> {
        subject cache("cache", on_workers({}));
        for (int round = 0; round < 3; ++round) {
            co_await cache.start();
            const endpoint where = cache->local();
            std::atomic<bool> stopping{false};
            scope tasks;
            // The clients continue until their connections end between two commands.
            tasks.spawn(in_parallel(6, [&](int) {
                blocking_client c(where);
                for (bool ended = false; !ended;) {
                    try {
                        EXPECT_EQ(c.ask("SET k v"), "+OK");
                    } catch (const std::exception&) {
                        EXPECT_TRUE(stopping);
                        ended = true;
                    }
                }
            }));
            const std::uint64_t before = cache->count().messages_in;
            co_await until([&] {
                const metrics now = cache->count();
                return now.connections_now == 6 && now.messages_in > before + 200;
            });
            stopping = true;
            co_await cache->stop(5s);
            co_await tasks.join();
        }
    });
}

TEST_P(cache_threads, it_can_be_counted_and_changed_all_through_a_stop) {
    run([&]() -> task<void> {
        subject cache("cache", on_workers({}));
        for (int round = 0; round < 20; ++round) {
            co_await cache.start();
            std::vector<talker> all;
            for (int i = 0; i < 2 * threads; ++i) {
                all.push_back(co_await talker::to(cache->local()));
                co_await all.back().say("PING\r\n");
                EXPECT_EQ(co_await all.back().line(), "+PONG\r");
            }
            const std::uint64_t before = cache->count().messages_in;
            EXPECT_GE(before, all.size());
            bool has_stopped = false;
            int looks = 0;
            scope tasks;
            tasks.spawn(
                [](subject& of, const bool& over, std::uint64_t least, int& count) -> task<void> {
                    while (!over) {
                        EXPECT_GE(of->count().messages_in.value(), least);
                        const int most = ++count % 2 == 0 ? 5 : 50;
                        must_do(of->apply(of.parse(on_workers({{"max_connections", most}}))));
                        co_await loop::current().yield();
                    }
                }(cache, has_stopped, before, looks));
            co_await cache->stop(0s);
            has_stopped = true;
            co_await tasks.join();
            EXPECT_GT(looks, 0);
            EXPECT_EQ(cache->count().messages_in.value(), before);
            must_do(cache->apply(cache.parse(on_workers({{"max_connections", 50}}))));
        }
    });
}

TEST_P(cache_threads, no_element_is_lost_when_a_stop_comes_while_some_wait_for_it) {
    const auto each = [](std::string_view policy) -> task<void> {
        const temporary_folder folder;
        const json kept = {{"dir", folder.path()}, {"appendonly", "yes"}};
        subject cache("cache", on_workers(with(kept, {{"appendfsync", policy}})));
        std::atomic<int> taken{0};
        std::atomic<int> acknowledged{0};
        std::atomic<int> said{0};
        for (int round = 0; round < 10; ++round) {
            co_await cache.start();
            const endpoint where = cache->local();
            const int before = taken;
            constexpr int clients = 8;
            std::atomic<int> connected{0};
            scope tasks;
            tasks.spawn(in_parallel(clients, [&](int number) {
                blocking_client c(where);
                ++connected;
                try {
                    for (;;) {
                        if (number < 5) {
                            EXPECT_EQ(c.ask("BLPOP queue 0"), "[queue x]");
                            ++taken;
                        } else {
                            ++said;
                            EXPECT_THAT(c.ask("RPUSH queue x"), StartsWith(":"));
                            ++acknowledged;
                        }
                    }
                } catch (const std::exception&) {
                    // The end of its connection.
                }
            }));
            co_await until([&] { return connected == clients && taken > before + 100; });
            co_await cache->stop(5s);
            co_await tasks.join();
        }
        co_await cache.start();
        talker t = co_await talker::to(cache->local());
        co_await t.say("LLEN queue\r\n");
        const int left = std::stoi((co_await t.line()).substr(1));
        EXPECT_GE(taken + left, acknowledged);
        EXPECT_LE(taken + left, said);
        co_await cache->stop(0s);
    };
    // With "always" each reply waits for the disk, else the few that come during a sync.
    for (const std::string_view policy : {"always", "everysec"}) run([&] { return each(policy); });
}

std::uint64_t number_in(const std::string& info, const std::string& field) {
    const std::size_t at = info.find("\r\n" + field + ":");
    if (at == std::string::npos) throw std::runtime_error("no " + field);
    return std::stoull(info.substr(at + field.size() + 3));
}

// By eviction alone: no key has an expiry.
TEST_P(cache_threads, memory_stays_below_its_limit_under_load) {
    run([&]() -> task<void> {
        subject cache("cache", on_workers({{"maxmemory", "4M"}, {"eviction", "allkeys-lru"}}));
        co_await cache.start();
        const endpoint where = cache->local();
        constexpr int writers = 6;
        std::atomic<int> ended{0};
        std::atomic<int> samples{0};
        std::atomic<std::uint64_t> most{0};
        co_await in_parallel(writers + 1, [&](int number) {
            blocking_client c(where);
            if (number == writers) {
                while (ended < writers) {
                    most = std::max<std::uint64_t>(most,
                                                   number_in(c.ask("INFO memory"), "used_memory"));
                    ++samples;
                }
                return;
            }
            const std::string value(500, 'v');
            for (int i = 0; i < 3000; ++i) {
                std::string key = "k" + std::to_string(number);
                key += ":";
                key += std::to_string(i);
                EXPECT_EQ(c.ask("SET " + key + " " + value), "+OK");
            }
            ++ended;
        });
        EXPECT_GT(samples, 10);
        EXPECT_GT(most, 3U << 20);
        EXPECT_LT(most, 4.2 * (1U << 20));
        talker t = co_await talker::to(where);
        EXPECT_GT(std::stoi(co_await info(t, "stats", "evicted_keys")), 5'000);
        EXPECT_EQ(co_await info(t, "stats", "expired_keys"), "0");
        co_await cache->stop(0s);
    });
}

TEST_P(cache_threads, keys_end_in_time_under_load) {
    run([&]() -> task<void> {
        subject cache("cache", on_workers({}));
        co_await cache.start();
        const endpoint where = cache->local();
        co_await in_parallel(6, [&](int number) {
            blocking_client c(where);
            for (int i = 0; i < 1500; ++i) {
                std::string key = "k" + std::to_string(number);
                key += ":";
                key += std::to_string(i);
                EXPECT_EQ(c.ask("SET " + key + " value PX 20"), "+OK");
            }
        });
        talker t = co_await talker::to(where);
        // They go by themselves.
        while (co_await info(t, "stats", "expired_keys") == "0")
            must(co_await here().sleep_for(5ms));
        for (;;) {
            co_await t.say("DBSIZE\r\n");
            if (co_await t.line() == ":0\r") break;
            static_cast<void>(co_await here().sleep_for(5ms));
        }
        co_await cache->stop(0s);
    });
}

TEST_P(cache_threads, what_is_written_while_threads_change_it_is_of_one_instant) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        const json options = on_workers({{"dir", folder.path()}, {"appendonly", "yes"}});
        {
            subject cache("cache", options);
            co_await cache.start();
            const endpoint where = cache->local();
            co_await in_parallel(5, [&](int number) {
                blocking_client c(where);
                for (int i = 0; i < 400; ++i) {
                    if (number == 0) {
                        if (i % 100 == 0) c.ask(i % 200 == 0 ? "BGREWRITEAOF" : "BGSAVE");
                        continue;
                    }
                    c.say("MULTI\r\nINCR a\r\nINCR b\r\nRPUSH l x\r\nEXEC\r\n");
                    for (int k = 0; k < 5; ++k) c.reply();
                }
            });
            co_await cache->stop(5s);
        }
        subject again("cache", options);
        co_await again.start();
        talker t = co_await talker::to(again->local());
        co_await t.say("MGET a b\r\nLLEN l\r\n");
        EXPECT_EQ(co_await t.line(), "*2\r");
        for (int i = 0; i < 2; ++i) {
            EXPECT_EQ(co_await t.line(), "$4\r");
            EXPECT_EQ(co_await t.line(), "1600\r");
        }
        EXPECT_EQ(co_await t.line(), ":1600\r");
        co_await again->stop(0s);
    });
}

TEST_P(cache_threads, replies_wait_for_the_disk_on_every_thread) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        subject cache(
            "cache",
            on_workers({{"dir", folder.path()}, {"appendonly", "yes"}, {"appendfsync", "always"}}));
        co_await cache.start();
        const endpoint where = cache->local();
        co_await in_parallel(6, [&](int) {
            blocking_client c(where);
            for (int i = 0; i < 50; ++i) {
                EXPECT_THAT(c.ask("INCR n"), StartsWith(":"));
                // Acknowledged and on the disk are the same.
                EXPECT_EQ(c.ask("WAITAOF 1 0 0"), "[:1 :0]");
            }
        });
        co_await cache->stop(0s);
    });
}

TEST_P(cache_threads, without_always_replies_wait_for_the_kernel_on_every_thread) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        subject cache("cache", on_workers({{"dir", folder.path()},
                                           {"appendonly", "yes"},
                                           {"appendfsync", "everysec"}}));
        co_await cache.start();
        const endpoint where = cache->local();
        co_await in_parallel(6, [&](int number) {
            blocking_client c(where);
            for (int i = 0; i < 50; ++i) {
                const std::string key = "k" + std::to_string(number) + "-" + std::to_string(i);
                EXPECT_EQ(c.ask("SET " + key + " 1"), "+OK");
                std::ifstream file(folder.file("appendonlydir/appendonly.aof.1.incr.aof"));
                const std::string written{std::istreambuf_iterator<char>(file), {}};
                EXPECT_THAT(written, HasSubstr("\r\n" + key + "\r\n"));
            }
        });
        co_await cache->stop(0s);
    });
}

TEST_P(cache_loops, clients_of_different_workers_reach_each_other) {
    run([&]() -> task<void> {
        subject cache("cache", on_workers({{"max_connections", 6}}));
        co_await cache.start();
        std::vector<talker> all;
        for (int i = 0; i < 6; ++i) {
            all.push_back(co_await talker::to(cache->local()));
            co_await all.back().say("INCR n\r\n");
            EXPECT_EQ(co_await all.back().line(), ":" + std::to_string(i + 1) + "\r");
        }
        talker late = co_await talker::to(cache->local());
        EXPECT_THAT(co_await late.rest(), HasSubstr("max number of clients"));
        co_await all[0].say("BLPOP list 0\r\n");
        co_await all[1].say("SUBSCRIBE news\r\n");
        EXPECT_EQ(co_await all[1].line(), "*3\r");
        for (int i = 0; i < 5; ++i) co_await all[1].line();
        co_await all[2].say("PUBLISH news hello\r\nRPUSH list x\r\n");
        EXPECT_EQ(co_await all[2].line(), ":1\r");
        EXPECT_EQ(co_await all[2].line(), ":1\r");
        for (int i = 0; i < 5; ++i) co_await all[0].line();
        for (int i = 0; i < 6; ++i) co_await all[1].line();
        EXPECT_EQ(co_await all[1].line(), "hello\r");
        EXPECT_TRUE(cache.events.has("3 threads serve its clients"));
        co_await cache->stop(0s);
        EXPECT_EQ(cache->count().connections_now.value(), 0U);
        EXPECT_EQ(cache->count().connections_refused.value(), 1U);
    });
}

}  // namespace
}  // namespace eddy::runtime
