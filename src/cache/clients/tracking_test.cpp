// Tests of CLIENT TRACKING beyond the comparison with Redis: order, batches, limits.
#include "cache/engine/engine.hpp"
#include "cache/testing/test_client.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::cache {
namespace {

using ::testing::HasSubstr;
using testing::test_client;

std::string info_field(test_client& client, std::string_view name) {
    const std::string all = client("INFO");
    const std::size_t at = all.find("\n" + std::string(name) + ":");
    if (at == std::string::npos) return {};
    const std::size_t begin = at + name.size() + 2;
    return all.substr(begin, all.find('\r', begin) - begin);
}

constexpr std::string_view x_is_invalid = ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nx\r\n";

TEST(tracking, own_changes_are_told_behind_the_reply) {
    engine home;
    test_client a(home);
    a("HELLO 3");
    a("CLIENT TRACKING ON");
    a("GET x");
    EXPECT_EQ(a("SET x 1"), "+OK\r\n" + std::string(x_is_invalid));
    a("GET x");
    EXPECT_EQ(a("FLUSHALL"), "+OK\r\n>2\r\n$10\r\ninvalidate\r\n_\r\n");
    a("GET x");
    a("MULTI");
    a("SET x 1");
    a("PING");
    EXPECT_EQ(a("EXEC"), "*2\r\n+OK\r\n+PONG\r\n" + std::string(x_is_invalid));
}

// The whole pipeline is one message, with each key once.
TEST(tracking, a_batch_is_broadcast_at_once) {
    engine home;
    test_client a(home);
    test_client b(home);
    a("HELLO 3");
    a("CLIENT TRACKING ON BCAST PREFIX k");
    const std::vector<std::string_view> one{"SET", "k2", "v"};
    const std::vector<std::string_view> two{"SET", "k1", "v"};
    const std::vector<std::string_view> other{"SET", "other", "v"};
    const std::vector<resp::command> pipeline{
        {one.data(), 3}, {two.data(), 3}, {other.data(), 3}, {one.data(), 3}};
    byte_buffer out;
    EXPECT_EQ(home.execute(b.who(), pipeline, out), 4U);
    EXPECT_EQ(a.pushed(), ">2\r\n$10\r\ninvalidate\r\n*2\r\n$2\r\nk1\r\n$2\r\nk2\r\n");
}

TEST(tracking, changes_that_wait_for_a_batchs_end_are_limited) {
    engine home;
    test_client a(home);
    test_client b(home);
    a("HELLO 3");
    a("CLIENT TRACKING ON BCAST");
    testing::arguments all{"MSET"};
    for (int i = 0; i < 100; ++i) {
        all.push_back(std::string(20'000, 'k') + std::to_string(i));
        all.emplace_back("v");
    }
    b.ask(all);
    const std::string got = a.pushed();
    EXPECT_GT(got.size(), 2'000'000U);
    std::size_t messages = 0;
    for (std::size_t at = 0; (at = got.find("invalidate", at)) != std::string::npos; ++at)
        ++messages;
    EXPECT_GT(messages, 1U);
    EXPECT_LT(messages, 5U);
}

TEST(tracking, the_table_forgets_keys_over_its_limit_and_tells_so) {
    engine_options options;
    options.tracking_table_max_keys = 100;
    engine home(options);
    test_client a(home);
    a("HELLO 3");
    a("CLIENT TRACKING ON");
    std::size_t told = 0;
    for (int i = 0; i < 1'000; ++i) {
        if (a("GET k" + std::to_string(i)).find("invalidate") != std::string::npos) ++told;
    }
    EXPECT_EQ(told, 900U);
    EXPECT_EQ(info_field(a, "tracking_total_keys"), "100");
    EXPECT_EQ(info_field(a, "tracking_total_items"), "100");
    // The limit may shrink, and one command does not pay for all of it.
    a("CONFIG SET tracking-table-max-keys 10");
    a("GET k");
    while (home.upkeep()) {
    }
    EXPECT_EQ(info_field(a, "tracking_total_keys"), "10");
}

// The client has the value, and would not be notified of the next change.
TEST(tracking, noloop_hides_no_key_that_expires_or_leaves_the_table) {
    engine home;
    test_client a(home);
    a("HELLO 3");
    a("CLIENT TRACKING ON NOLOOP");
    for (const char* each : {"MSET x 1 y 2", "SET z 3 PX 10", "MGET x y z"}) a(each);
    EXPECT_EQ(a("SET x 2"), "+OK\r\n");
    a("GET x");
    home.set_time(std::chrono::hours(1'000'000));
    EXPECT_THAT(a("GET z"), HasSubstr("invalidate\r\n*1\r\n$1\r\nz\r\n"));
    EXPECT_THAT(a("CONFIG SET tracking-table-max-keys 1"), HasSubstr("invalidate\r\n*1\r\n$1\r\n"));
}

TEST(tracking, a_broadcast_names_no_keys_outside_the_patterns_of_its_user) {
    engine home;
    test_client reader(home);
    test_client writer(home);
    writer("ACL SETUSER some on nopass +@all ~mine:* %W~out:*");
    reader("HELLO 3 AUTH some x");
    reader("CLIENT TRACKING ON BCAST");
    writer("SET secret 1");
    EXPECT_EQ(reader.pushed(), "");
    writer("MSET secret 2 mine:1 1 out:1 1");
    EXPECT_EQ(reader.pushed(), ">2\r\n$10\r\ninvalidate\r\n*2\r\n$6\r\nmine:1\r\n$5\r\nout:1\r\n");
    writer("ACL SETUSER some ~*");
    writer("SET secret 3");
    EXPECT_EQ(reader.pushed(), ">2\r\n$10\r\ninvalidate\r\n*1\r\n$6\r\nsecret\r\n");
}

TEST(tracking, a_lowered_limit_of_the_table_holds_without_another_read) {
    engine home;
    test_client reader(home);
    test_client other(home);
    reader("HELLO 3");
    reader("CLIENT TRACKING ON");
    for (int i = 0; i < 1'000; ++i) reader("GET k" + std::to_string(i));
    other("CONFIG SET tracking-table-max-keys 10");
    while (home.upkeep()) {
    }
    EXPECT_EQ(info_field(other, "tracking_total_keys"), "10");
    const std::string all = reader.pushed();
    std::size_t invalidated = 0;
    for (std::size_t at = 0; (at = all.find("invalidate", at)) != std::string::npos; ++at)
        ++invalidated;
    EXPECT_EQ(invalidated, 990U);
}

TEST(tracking, a_target_waits_for_others_while_there_is_a_redirection_to_it) {
    engine home;
    test_client target(home);
    test_client one(home);
    const std::string to_target = "CLIENT TRACKING ON REDIRECT " + std::to_string(target.who().id);
    EXPECT_FALSE(target.who().waits_for_others());
    one(to_target);
    EXPECT_TRUE(target.who().waits_for_others());
    EXPECT_TRUE(target.woken());
    one(to_target + " OPTIN");
    {
        test_client two(home);
        two(to_target);
        one("CLIENT TRACKING OFF");
        EXPECT_TRUE(target.who().waits_for_others());
    }
    EXPECT_FALSE(target.who().waits_for_others());
    one(to_target);
    EXPECT_TRUE(target.who().waits_for_others());
    // It is another one's now.
    one("CLIENT TRACKING ON REDIRECT " + std::to_string(one.who().id));
    EXPECT_FALSE(target.who().waits_for_others());
    one(to_target);
    one("RESET");
    EXPECT_FALSE(target.who().waits_for_others());
    one(to_target);
    target("RESET");
    EXPECT_TRUE(target.who().waits_for_others());
}

TEST(tracking, clients_that_are_gone_do_not_add_up) {
    engine home;
    test_client stays(home);
    stays("CLIENT TRACKING ON");
    stays("GET x");
    for (int i = 0; i < 5'000; ++i) {
        test_client goes(home);
        goes("CLIENT TRACKING ON");
        goes("GET x");
    }
    EXPECT_LE(std::stoul(info_field(stays, "tracking_total_items")), 20U);
    EXPECT_EQ(info_field(stays, "tracking_clients"), "1");
}

TEST(tracking, many_clients_of_one_key_all_hear_of_it) {
    engine home;
    std::vector<std::unique_ptr<test_client>> readers;
    for (int i = 0; i < 300; ++i) {
        readers.push_back(std::make_unique<test_client>(home));
        (*readers.back())("HELLO 3");
        (*readers.back())("CLIENT TRACKING ON");
    }
    test_client writer(home);
    for (int round = 0; round < 3; ++round) {
        // In another order each time, and twice.
        for (std::size_t i = 0; i < readers.size(); ++i) {
            (*readers[(i * 7 + 13) % readers.size()])("GET x");
            (*readers[i])("GET x");
        }
        EXPECT_EQ(info_field(writer, "tracking_total_items"), "300");
        writer("SET x 1");
        for (const auto& each : readers) EXPECT_EQ(each->pushed(), x_is_invalid);
        EXPECT_EQ(info_field(writer, "tracking_total_items"), "0");
    }
}

TEST(tracking, nothing_is_kept_once_nobody_tracks) {
    engine home;
    test_client a(home);
    const std::size_t before = home.stats().used_memory;
    a("CLIENT TRACKING ON");
    for (int i = 0; i < 10'000; ++i) a("GET key:" + std::to_string(i));
    EXPECT_GT(home.stats().used_memory, before + 100'000);
    a("CLIENT TRACKING OFF");
    while (home.upkeep()) {
    }
    EXPECT_LT(home.stats().used_memory, before + 10'000);
    EXPECT_EQ(info_field(a, "tracking_total_keys"), "0");
}

TEST(tracking, evicted_and_expired_keys_are_told) {
    engine_options options;
    options.max_memory = 200'000;
    options.policy = eviction::allkeys_lru;
    engine home(options);
    test_client a(home);
    test_client b(home);
    a("HELLO 3");
    a("CLIENT TRACKING ON");
    b.ask(testing::arguments{"SET", "x", "1"});
    a("GET x");
    std::string told;
    for (int i = 0; i < 20'000 && told.empty(); ++i) {
        b.ask(testing::arguments{"SET", "k" + std::to_string(i), std::string(500, 'v')});
        told = a.pushed();
    }
    EXPECT_EQ(told, x_is_invalid);
    b("SET x 1 PX 5");
    a("GET x");
    home.set_time(std::chrono::hours(24 * 365 * 100));
    for (int i = 0; i < 100 && (told = a.pushed()).empty(); ++i) home.upkeep();
    EXPECT_EQ(told, x_is_invalid);
}

TEST(tracking, prefixes_are_limited) {
    engine home;
    test_client a(home);
    testing::arguments all{"CLIENT", "TRACKING", "ON", "BCAST"};
    for (int i = 10'000; i < 11'024; ++i) {
        all.emplace_back("PREFIX");
        all.push_back(std::to_string(i));
    }
    EXPECT_EQ(a.ask(all), "+OK\r\n");
    EXPECT_EQ(info_field(a, "tracking_total_prefixes"), "1024");
    EXPECT_TRUE(a("CLIENT TRACKING ON BCAST PREFIX other").starts_with("-ERR too many prefixes"));
    a("CLIENT TRACKING OFF");
    EXPECT_EQ(info_field(a, "tracking_total_prefixes"), "0");
}

TEST(tracking, a_client_that_does_not_read_is_closed) {
    engine_options options;
    options.clients.max_outbox = 1'000'000;
    engine home(options);
    test_client a(home);
    test_client b(home);
    a("HELLO 3");
    a("CLIENT TRACKING ON BCAST");
    const std::string key(10'000, 'k');
    int sent = 0;
    for (; sent < 1'000 && !a.closed(); ++sent) b.ask(testing::arguments{"SET", key, "v"});
    EXPECT_TRUE(a.closed());
    EXPECT_LT(sent, 200);
}

TEST(tracking, client_list_shows_it) {
    engine home;
    test_client a(home);
    test_client b(home);
    a("CLIENT TRACKING ON BCAST REDIRECT 2");
    EXPECT_NE(b("CLIENT LIST ID 1").find(" flags=tB "), std::string::npos);
    EXPECT_NE(b("CLIENT LIST ID 1").find(" redir=2 "), std::string::npos);
    EXPECT_NE(b("CLIENT LIST ID 2").find(" redir=-1 "), std::string::npos);
}

}  // namespace
}  // namespace eddy::cache
