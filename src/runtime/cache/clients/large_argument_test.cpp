// Tests of large arguments over connections: any split, other commands before and behind them, and
// clients that leave, wait or are refused in the middle.
#include "runtime/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace eddy::runtime {
namespace {

using namespace runtime::testing;
using ::testing::StartsWith;

EDDY_ON_EVERY_IO_BACKEND(cache_large_arguments);

const json admin = {{"port", 0}, {"mode", "admin"}};
constexpr std::size_t large = 300'000;

std::string bulk(const std::string& text) {
    return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
}

std::string text_of(std::size_t size) {
    std::string text(size, '\0');
    for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 131 >> 3);
    return text;
}

task<void> say_all(talker& to, std::string text) { co_await to.say(std::move(text)); }

/// Says `request` and reads the reply at the same time: neither fits between the two.
task<void> exchange_all(talker& client, std::string request, std::string reply) {
    scope tasks(co_await current_source());
    tasks.spawn(say_all(client, std::move(request)));
    EXPECT_TRUE(co_await client.bytes(reply.size()) == reply);
    co_await tasks.join();
}

TEST_P(cache_large_arguments, they_are_the_same_however_they_are_split) {
    run([&]() -> task<void> {
        subject cache("cache", admin);
        co_await cache.start();
        talker client = co_await talker::to(cache->local());
        const std::string value = text_of(large);
        const std::string other = text_of(large / 2);
        // Two in one command, with small ones around them, and commands before and behind.
        const std::string request =
            encoded({"PING"}) + encoded({"MSET", "a", value, "b", other, "c", "small"}) +
            encoded({"GET", "a"}) + encoded({"GET", "b"}) + encoded({"GET", "c"});
        const std::string reply = "+PONG\r\n+OK\r\n" + bulk(value) + bulk(other) + bulk("small");
        const std::size_t second = 14 + 27 + large;  // about
        std::vector<std::size_t> splits;
        for (std::size_t i = 1; i < 60; ++i) {
            splits.push_back(i);
            splits.push_back(second - 30 + i);
            splits.push_back(request.size() - i);
        }
        for (std::size_t at = 64 * 1024 - 3; at < request.size(); at += 21'001)
            splits.push_back(at);
        for (const std::size_t at : splits) {
            const std::uint64_t before = cache->count().bytes_in;
            co_await client.say(request.substr(0, at));
            co_await until([&] { return cache->count().bytes_in == before + at; });
            co_await exchange_all(client, request.substr(at), reply);
            EXPECT_EQ(client.unread, "") << "split at " << at;
        }
        EXPECT_EQ(cache->count().errors, 0U);
        co_await cache->stop(0s);
    });
}

TEST_P(cache_large_arguments, a_client_that_waits_sends_them_too) {
    run([&]() -> task<void> {
        subject cache("cache", admin);
        co_await cache.start();
        talker client = co_await talker::to(cache->local());
        talker other = co_await talker::to(cache->local());
        const std::string value = text_of(large);
        // The pause begins before the command is whole: it is executed behind it, and once.
        const std::uint64_t before = cache->count().bytes_in;
        const std::string set = encoded({"SET", "k", value});
        const std::string request = set + encoded({"APPEND", "k", value});
        co_await client.say(request.substr(0, 1000));
        co_await until([&] { return cache->count().bytes_in == before + 1000; });
        EXPECT_EQ(co_await ask(other, "CLIENT PAUSE 100000 WRITE"), "+OK");
        const std::uint64_t begun = cache->count().bytes_in;
        scope tasks(co_await current_source());
        tasks.spawn(say_all(client, request.substr(1000)));
        co_await until([&] { return cache->count().bytes_in >= begun + set.size() - 1000; });
        EXPECT_EQ(co_await ask(other, "EXISTS k"), ":0");
        EXPECT_EQ(co_await ask(other, "CLIENT UNPAUSE"), "+OK");
        EXPECT_EQ(co_await client.line(), "+OK\r");
        EXPECT_EQ(co_await client.line(), ":" + std::to_string(2 * large) + "\r");
        co_await tasks.join();
        // One that others send to is served in another way.
        co_await client.say("HELLO 3\r\nSUBSCRIBE news\r\nECHO begun\r\n");
        while (co_await client.line() != "begun\r") {
        }
        co_await exchange_all(client, encoded({"SET", "k", value}) + encoded({"GET", "k"}),
                              "+OK\r\n" + bulk(value));
        co_await cache->stop(0s);
    });
}

TEST_P(cache_large_arguments, clients_that_leave_in_the_middle_leave_nothing) {
    run([&]() -> task<void> {
        subject cache("cache", admin);
        co_await cache.start();
        const std::string request = encoded({"SET", "k", text_of(20U << 20)});
        for (int round = 0; round < 20; ++round) {
            talker client = co_await talker::to(cache->local());
            const std::size_t size = request.size() * static_cast<std::size_t>(round) / 20;
            co_await client.say(request.substr(0, size));
        }
        co_await until([&] { return cache->count().connections_now == 0; });
        talker client = co_await talker::to(cache->local());
        EXPECT_EQ(co_await ask(client, "EXISTS k"), ":0");
        co_await exchange_all(client, request, "+OK\r\n");
        co_await cache->stop(0s);
    });
}

TEST_P(cache_large_arguments, refused_ones_get_the_error_and_are_freed) {
    run([&]() -> task<void> {
        subject cache("cache", admin);
        co_await cache.start();
        talker client = co_await talker::to(cache->local());
        const std::string value = text_of(large);
        EXPECT_EQ(co_await ask(client, "SET number 1"), "+OK");
        for (const auto& args : {std::vector<std::string>{"NOSUCH", value},
                                 {"LPUSH", "number", value},
                                 {"SET", "k", value, "WHAT"},
                                 {"GET", "k", value},
                                 {"INCRBY", "number", value}}) {
            scope tasks(co_await current_source());
            tasks.spawn(say_all(client, encoded(args) + encoded({"PING"})));
            EXPECT_THAT(co_await client.line(), StartsWith("-"));
            EXPECT_EQ(co_await client.line(), "+PONG\r");
            co_await tasks.join();
        }
        EXPECT_EQ(co_await ask(client, "DBSIZE"), ":1");
        EXPECT_EQ(co_await ask(client, "CONFIG SET maxmemory 10mb"), "+OK");
        EXPECT_EQ(co_await ask(client, "CONFIG SET maxmemory-policy noeviction"), "+OK");
        co_await exchange_all(client, encoded({"SET", "k", text_of(12U << 20)}), "+OK\r\n");
        EXPECT_THAT(co_await ask(client, "SET more 1"), StartsWith("-OOM"));
        EXPECT_EQ(co_await ask(client, "DEL k"), ":1");
        co_await cache->stop(0s);
    });
}

/// A thread of its own has them from its clients, and the engine keeps them.
TEST_P(cache_large_arguments, other_threads_deliver_them) {
    if (simulated()) GTEST_SKIP() << "the simulator has no threads";
    run([&]() -> task<void> {
        json options = admin;
        options["threads"] = 2;
        subject cache("cache", options);
        co_await cache.start();
        std::vector<talker> clients;
        for (int i = 0; i < 4; ++i) clients.push_back(co_await talker::to(cache->local()));
        for (std::size_t i = 0; i < 20; ++i) {
            talker& client = clients[i % clients.size()];
            const std::string value = text_of(large + i * 1000);
            co_await exchange_all(client, encoded({"SET", "k", value}), "+OK\r\n");
            talker& reader = clients[(i + 1) % clients.size()];
            co_await exchange_all(reader, encoded({"GET", "k"}), bulk(value));
        }
        co_await cache->stop(0s);
    });
}

}  // namespace
}  // namespace eddy::runtime
