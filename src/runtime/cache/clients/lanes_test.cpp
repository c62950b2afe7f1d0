// Tests of a cache with several threads and so many keys that commands run at the same time: what
// clients see is the same.
#include <eddy/io/scope.hpp>

#include "base/files/temporary_folder.hpp"
#include "cache/engine/lane.hpp"
#include "runtime/cache/clients/blocking_client.hpp"
#include "runtime/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

namespace eddy::runtime {
namespace {

using namespace runtime::testing;
using ::testing::StartsWith;

EDDY_ON_EVERY_KERNEL_IO_BACKEND(cache_threads_many_keys);

constexpr int threads = 3;

void fill(blocking_client& c) {
    constexpr std::size_t keys = 2 * eddy::cache::lane::least_keys;
    std::string commands;
    for (std::size_t i = 0; i < keys; ++i) commands += "SET fill:" + std::to_string(i) + " x\r\n";
    std::thread sends([&] { c.say(commands); });
    for (std::size_t i = 0; i < keys; ++i) EXPECT_EQ(c.reply(), "+OK");
    sends.join();
}

std::uint64_t info(blocking_client& c, std::string_view name) {
    const std::string all = c.ask("INFO everything");
    const std::size_t at = all.find("\r\n" + std::string(name) + ":");
    return at == std::string::npos ? 0 : std::stoull(all.substr(at + name.size() + 3));
}

TEST_P(cache_threads_many_keys, what_many_clients_change_at_once_adds_up) {
    run([&]() -> task<void> {
        subject cache("cache", {{"port", 0}, {"threads", threads}});
        co_await cache.start();
        const endpoint where = cache->local();
        constexpr int clients = 6;
        constexpr int rounds = 300;
        constexpr int keys = 50;
        std::array<std::atomic<int>, keys> sums{};
        co_await in_parallel(1, [&](int) {
            blocking_client c(where);
            fill(c);
        });
        const std::uint64_t before = cache->count().messages_in.value();
        co_await in_parallel(clients, [&](int number) {
            blocking_client c(where);
            for (int i = 0; i < rounds; ++i) {
                const int which = (i * 7 + number) % keys;
                const std::string k = std::to_string(which);
                const std::string own = std::to_string(number) + ":" + std::to_string(i);
                // Own ones and those of all, in order; an error among them.
                c.say("INCR sum" + k + "\r\nSET own:" + own + " " + own +
                      " EX 100\r\nGET own:" + own + "\r\nRPUSH list" + k + " " + own +
                      "\r\nINCR own:" + own + "\r\nHINCRBY hash" + k + " f 2\r\nZINCRBY zset" + k +
                      " 1 m\r\nSADD set" + k + " " + own + "\r\nTTL own:" + own +
                      "\r\nEXISTS own:" + own + " sum" + k + " no\r\n");
                EXPECT_THAT(c.reply(), StartsWith(":"));
                EXPECT_EQ(c.reply(), "+OK");
                EXPECT_EQ(c.reply(), own);
                EXPECT_THAT(c.reply(), StartsWith(":"));
                EXPECT_EQ(c.reply(), "-ERR value is not an integer or out of range");
                for (int rest = 0; rest < 2; ++rest) c.reply();
                EXPECT_EQ(c.reply(), ":1");
                EXPECT_EQ(c.reply(), ":100");
                EXPECT_EQ(c.reply(), ":2");
                ++sums[static_cast<std::size_t>(which)];
            }
        });
        EXPECT_EQ(cache->count().messages_in.value() - before, clients * rounds * 10U);
        co_await in_parallel(1, [&](int) {
            blocking_client c(where);
            for (std::size_t i = 0; i < keys; ++i) {
                const std::string k = std::to_string(i);
                const std::string sum = std::to_string(sums[i]);
                EXPECT_EQ(c.ask("GET sum" + k), sum);
                EXPECT_EQ(c.ask("LLEN list" + k), ":" + sum);
                EXPECT_EQ(c.ask("HGET hash" + k + " f"), std::to_string(2 * sums[i]));
                EXPECT_EQ(c.ask("ZSCORE zset" + k + " m"), sum);
                EXPECT_EQ(c.ask("SCARD set" + k), ":" + sum);
            }
            EXPECT_GT(info(c, "parallel_commands"), clients * rounds);
            EXPECT_EQ(info(c, "total_error_replies"), clients * rounds);
            EXPECT_EQ(c.ask("DBSIZE"), ":" + std::to_string(2 * eddy::cache::lane::least_keys +
                                                            clients * rounds + 5 * keys));
        });
        co_await cache->stop(0s);
    });
}

TEST_P(cache_threads_many_keys, transactions_and_scripts_are_seen_whole_or_not_at_all) {
    run([&]() -> task<void> {
        subject cache("cache", {{"port", 0}, {"threads", threads}});
        co_await cache.start();
        const endpoint where = cache->local();
        co_await in_parallel(1, [&](int) {
            blocking_client c(where);
            fill(c);
            c.ask("MSET a 0 b 0");
        });
        std::atomic<int> writing{3};
        co_await in_parallel(6, [&](int number) {
            blocking_client c(where);
            for (int i = 0; number < 3 && i < 200; ++i) {
                if (number == 0) {
                    for (const char* const each : {"MULTI", "INCR a", "INCR b"}) c.ask(each);
                    EXPECT_THAT(c.ask("EXEC"), StartsWith("[:"));
                } else if (number == 1) {
                    EXPECT_THAT(c.ask("EVAL \"redis.call('INCR', 'a') return redis.call('INCR', "
                                      "'b')\" 0"),
                                StartsWith(":"));
                } else {
                    c.say("MULTI\r\nINCR a\r\nINCR b\r\nEXEC\r\nGET fill:7\r\n");
                    for (int k = 0; k < 4; ++k) c.reply();
                    EXPECT_EQ(c.reply(), "x");
                }
            }
            if (number < 3) {
                --writing;
                return;
            }
            while (writing > 0) {
                const std::string both = c.ask("MGET a b");
                const std::size_t middle = both.find(' ');
                EXPECT_EQ(both.substr(1, middle - 1),
                          both.substr(middle + 1, both.size() - middle - 2));
            }
        });
        co_await in_parallel(1, [&](int) {
            blocking_client c(where);
            EXPECT_EQ(c.ask("GET a"), "600");
            EXPECT_GT(info(c, "parallel_commands"), 0U);
        });
        co_await cache->stop(0s);
    });
}

// Commands on lanes do not wake the sweep of expired keys.
TEST_P(cache_threads_many_keys, keys_end_however_they_were_set) {
    run([&]() -> task<void> {
        subject cache("cache", {{"port", 0}, {"threads", threads}});
        co_await cache.start();
        const endpoint where = cache->local();
        const auto keys = [&] { return sample_of(*cache, "keys").value_or(0); };
        constexpr double filled = 2.0 * eddy::cache::lane::least_keys;
        std::optional<blocking_client> c;
        co_await in_parallel(1, [&](int) {
            c.emplace(where);
            fill(*c);
        });
        // So many that the search, which takes a minute for all keys, soon finds one.
        constexpr int ends = 64;
        std::string sets;
        std::string removal = "DEL";
        for (int i = 0; i < ends; ++i) {
            const std::string key = "ends:" + std::to_string(i);
            sets += "SET " + key + " v PX 20\r\n";
            removal += " " + key;
        }
        // Just before and just after the sweep finds that nothing is left to do.
        for (int i = 0; i < 6; ++i) {
            co_await in_parallel(1, [&](int) {
                EXPECT_EQ(c->ask("PING"), "+PONG");
                std::this_thread::sleep_for(99ms + i * 500us);
                c->say(sets);
                for (int k = 0; k < ends; ++k) EXPECT_EQ(c->reply(), "+OK");
            });
            co_await until([&] { return keys() < filled + ends; });
            co_await in_parallel(1, [&](int) { c->ask(removal); });
            co_await until([&] { return keys() == filled; });
        }
        c.reset();
        co_await cache->stop(0s);
    });
}

TEST_P(cache_threads_many_keys, files_have_what_was_changed_before_and_after_they_began) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        constexpr int keys = 40;
        std::array<std::atomic<int>, keys> sums{};
        const json options = {
            {"port", 0}, {"threads", threads}, {"dir", folder.path()}, {"save", "off"}};
        {
            subject cache("cache", options);
            co_await cache.start();
            const endpoint where = cache->local();
            co_await in_parallel(1, [&](int) {
                blocking_client c(where);
                fill(c);
            });
            std::atomic<bool> stops{false};
            co_await in_parallel(4, [&](int number) {
                blocking_client c(where);
                if (number == 0) {
                    for (int i = 0; i < 5; ++i) {
                        EXPECT_EQ(c.ask("CONFIG SET appendonly yes"), "+OK");
                        await([&] { return info(c, "aof_rewrite_in_progress") == 0; });
                        EXPECT_EQ(c.ask("CONFIG SET appendonly no"), "+OK");
                    }
                    EXPECT_EQ(c.ask("CONFIG SET appendonly yes"), "+OK");
                    await([&] { return info(c, "aof_rewrite_in_progress") == 0; });
                    stops = true;
                    return;
                }
                std::array<long long, keys> last{};
                for (int i = number; number == 3 && !stops; ++i) {
                    // A value that was read once is never undone.
                    const std::string got = c.ask("GET sum" + std::to_string(i % keys));
                    const long long now = got == "(nil)" ? 0 : std::stoll(got);
                    long long& before = last[static_cast<std::size_t>(i % keys)];
                    EXPECT_GE(now, before);
                    before = now;
                }
                for (int i = number; !stops; ++i) {
                    std::string commands;
                    for (int k = 0; k < 10; ++k)
                        commands += "INCR sum" + std::to_string((i + k) % keys) + "\r\n";
                    c.say(commands);
                    for (int k = 0; k < 10; ++k) {
                        EXPECT_THAT(c.reply(), StartsWith(":"));
                        ++sums[static_cast<std::size_t>((i + k) % keys)];
                    }
                }
            });
            co_await in_parallel(1, [&](int) {
                blocking_client c(where);
                EXPECT_GT(info(c, "parallel_commands"), 0U);
            });
            co_await cache->stop(0s);
        }
        json again = options;
        again["appendonly"] = "yes";
        subject cache("cache", again);
        co_await cache.start();
        const endpoint where = cache->local();
        co_await in_parallel(1, [&](int) {
            blocking_client c(where);
            for (std::size_t i = 0; i < keys; ++i)
                EXPECT_EQ(c.ask("GET sum" + std::to_string(i)), std::to_string(sums[i]));
        });
        co_await cache->stop(0s);
    });
}

}  // namespace
}  // namespace eddy::runtime
