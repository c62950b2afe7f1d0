// Tests of the stream of changes, and of the replies of masters and replicas to clients.
#include "cache/replication/replication.hpp"

#include "cache/clients/waits.hpp"
#include "cache/persistence/save_host.hpp"
#include "cache/rdb/load.hpp"
#include "cache/testing/replication_fixture.hpp"
#include "cache/testing/test_client.hpp"
#include "cache/testing/test_server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace eddy::cache {
namespace {

using cache::testing::master_engine;
using cache::testing::sent_to;
using cache::testing::test_client;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string all_of(const replication_feed& feed, std::uint64_t from) {
    std::string text;
    while (from < feed.end()) {
        const replication_feed::piece next = feed.at(from);
        text += next.text;
        from += next.text.size();
    }
    return text;
}

TEST(replication_feed, keeps_what_it_is_told_to) {
    replication_feed feed;
    feed.restart(1000);
    std::string expected;
    for (int i = 0; i < 20'000; ++i) {
        const std::string one = std::to_string(i) + ' ';
        feed.append(one);
        expected += one;
    }
    EXPECT_EQ(feed.begin(), 1000U);
    EXPECT_EQ(feed.end(), 1000 + expected.size());
    EXPECT_EQ(all_of(feed, 1000), expected);
    for (const std::size_t gone :
         {std::size_t{1}, replication_feed::block_bytes - 1, replication_feed::block_bytes,
          2 * replication_feed::block_bytes + 7}) {
        feed.forget_before(1000 + gone);
        EXPECT_FALSE(feed.has(1000 + gone - 1));
        EXPECT_EQ(all_of(feed, 1000 + gone), expected.substr(gone));
    }
    // Bytes that are being sent are kept.
    const std::uint64_t at = feed.begin();
    const replication_feed::piece held = feed.at(at);
    const std::string text(held.text);
    feed.forget_before(feed.end());
    EXPECT_EQ(held.text, text);
    EXPECT_EQ(feed.at(feed.end()).text, "");
    feed.append("more");
    EXPECT_EQ(all_of(feed, feed.end() - 4), "more");
}

TEST(replication, changes_are_sent_once_and_kept_for_who_comes_back) {
    master_engine l;
    test_client client(*l.home);
    test_client first(*l.home);
    client("SET before 1");
    EXPECT_THAT(l.join(first), StartsWith("+FULLRESYNC "));
    client("SELECT 3");
    client("SET a 1");
    client("GET a");
    const std::string select = "*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n";
    const std::string set = "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n";
    EXPECT_EQ(sent_to(*l.home, first.who()), select + set);
    const replication& its = *l.home->internals().replication.replicating;
    EXPECT_EQ(its.offset(), select.size() + set.size());
    // Another server has the same begin.
    test_client second(*l.home);
    second("REPLCONF capa eof capa psync2");
    const std::string from = std::to_string(select.size() + 1);
    EXPECT_EQ(second("PSYNC " + its.id() + ' ' + from), "+CONTINUE " + its.id() + "\r\n");
    EXPECT_EQ(sent_to(*l.home, second.who()), set);
    EXPECT_THAT(client("INFO replication"), HasSubstr("connected_slaves:2\r\n"));
    // Unknown offsets cannot be continued.
    test_client third(*l.home);
    third("REPLCONF capa eof");
    EXPECT_EQ(third("PSYNC " + its.id() + " 100000"), "");
    for (const char* const each : {"sync_full:2", "sync_partial_ok:1", "sync_partial_err:1"})
        EXPECT_THAT(client("INFO stats"), HasSubstr(each + std::string("\r\n")));
    client("CONFIG RESETSTAT");
    for (const char* const each : {"sync_full:0", "sync_partial_ok:0", "sync_partial_err:0"})
        EXPECT_THAT(client("INFO stats"), HasSubstr(each + std::string("\r\n")));
    for (const char* const bad : {"PSYNC x y", "PSYNC x 99999999999999999999"}) {
        test_client other(*l.home);
        EXPECT_THAT(other(bad), StartsWith("-ERR value is not an integer"));
    }
}

TEST(replication, one_that_does_not_take_its_stream_is_closed_at_the_limit) {
    master_engine l;
    test_client client(*l.home);
    EXPECT_EQ(client({"CONFIG", "SET", "client-output-buffer-limit", "replica 1mb 0 0"}),
              "+OK\r\n");
    test_client lazy(*l.home);
    l.join(lazy);
    const std::string value(100'000, 'x');
    int before = 0;
    while (!lazy.closed()) {
        client({"SET", "a", value});
        ASSERT_LT(++before, 20);
    }
    EXPECT_EQ(before, 11);
    // Nor does it keep bytes that were not sent.
    const replication_feed& kept = l.home->internals().replication.replicating->kept();
    client({"SET", "a", value});
    EXPECT_LE(kept.end() - kept.begin(), 100'000U);
    EXPECT_THAT(client("INFO replication"), HasSubstr("connected_slaves:0\r\n"));
}

TEST(replication, one_that_stays_over_the_soft_limit_is_closed_though_nothing_more_is_written) {
    master_engine l;
    test_client client(*l.home);
    client({"CONFIG", "SET", "client-output-buffer-limit", "replica 0 10kb 5"});
    test_client lazy(*l.home);
    l.join(lazy);
    replication& its = *l.home->internals().replication.replicating;
    client({"SET", "a", std::string(20'000, 'x')});
    its.tick();
    l.home->set_time(std::chrono::seconds(1'000'005));
    its.tick();
    EXPECT_FALSE(lazy.closed());
    l.home->set_time(std::chrono::seconds(1'000'006));
    its.tick();
    EXPECT_TRUE(lazy.closed());
    EXPECT_THAT(client("INFO stats"), HasSubstr("client_output_buffer_limit_disconnections:1\r\n"));
}

TEST(replication, a_silent_one_is_closed_and_the_backlog_ends) {
    master_engine l;
    test_client client(*l.home);
    test_client silent(*l.home);
    l.join(silent);
    replication& its = *l.home->internals().replication.replicating;
    l.home->set_time(std::chrono::seconds(1'000'050));
    its.tick();
    EXPECT_FALSE(silent.closed());
    EXPECT_EQ(sent_to(*l.home, silent.who()), "*1\r\n$4\r\nPING\r\n");
    l.home->set_time(std::chrono::seconds(1'000'061));
    its.tick();
    EXPECT_TRUE(silent.closed());
    its.forget(silent.who());
    const std::string id = its.id();
    l.home->set_time(std::chrono::seconds(1'000'061 + 3601));
    its.tick();
    EXPECT_FALSE(its.is_active());
    EXPECT_NE(its.id(), id);
    EXPECT_THAT(client("INFO replication"), HasSubstr("repl_backlog_active:0\r\n"));
}

TEST(replication, a_clock_that_is_set_makes_no_replica_late) {
    for (const std::int64_t jump : {3600, -3600, 86'400, -86'400}) {
        master_engine l;
        test_client client(*l.home);
        test_client replica_client(*l.home);
        l.join(replica_client);
        replication& its = *l.home->internals().replication.replicating;
        const auto tell = [&](std::int64_t set_by, std::int64_t passed) {
            l.home->set_time(std::chrono::seconds(1'000'000 + set_by + passed),
                             std::chrono::seconds(1'000'000 + passed));
            its.tick();
        };
        client("SET k v");
        sent_to(*l.home, replica_client.who());
        tell(jump, 0);
        EXPECT_FALSE(replica_client.closed());
        EXPECT_THAT(client("INFO replication"), HasSubstr(",lag=0\r\n"));
        EXPECT_EQ(client("CONFIG SET min-replicas-to-write 1"), "+OK\r\n");
        EXPECT_EQ(client("SET k v"), "+OK\r\n");
        sent_to(*l.home, replica_client.who());
        // PINGs are sent as before, and a silent replica is closed at its timeout.
        tell(jump, 11);
        EXPECT_EQ(sent_to(*l.home, replica_client.who()), "*1\r\n$4\r\nPING\r\n");
        EXPECT_THAT(client("INFO replication"), HasSubstr(",lag=11\r\n"));
        EXPECT_THAT(client("SET k v"), StartsWith("-NOREPLICAS"));
        tell(jump, 60);
        EXPECT_FALSE(replica_client.closed());
        tell(jump, 61);
        EXPECT_TRUE(replica_client.closed());
    }
}

TEST(replication, a_replica_shows_no_expired_key_and_removes_none) {
    engine home;
    home.set_time(std::chrono::seconds(1'000'000));
    test_client client(home);
    EXPECT_EQ(client("SET gone 1 EX 10"), "+OK\r\n");
    EXPECT_EQ(client("SET kept 1 EX 100"), "+OK\r\n");
    EXPECT_EQ(client("REPLICAOF 127.0.0.1 1"), "+OK\r\n");
    EXPECT_EQ(client("REPLICAOF 127.0.0.1 1"), "+OK Already connected to specified master\r\n");
    EXPECT_EQ(client("CONFIG GET replicaof"), "*2\r\n$9\r\nreplicaof\r\n$11\r\n127.0.0.1 1\r\n");
    home.set_time(std::chrono::seconds(1'000'011));
    while (home.upkeep()) {
    }
    EXPECT_EQ(client("GET gone"), "$-1\r\n");
    EXPECT_EQ(client("EXISTS gone kept"), ":1\r\n");
    for (int i = 0; i < 20; ++i) EXPECT_EQ(client("RANDOMKEY"), "$4\r\nkept\r\n");
    EXPECT_EQ(client("DBSIZE"), ":2\r\n");
    EXPECT_EQ(client("DEL kept"), "-READONLY You can't write against a read only replica.\r\n");
    // It is visible to the master's own commands.
    struct master final : client_session {
        explicit master(engine& at) : client_session(at) { special |= client_session::master; }
    } from(home);
    const auto execute = [&](std::initializer_list<std::string_view> words) {
        const resp::command one{words.begin(), words.size()};
        byte_buffer out;
        home.execute(from, {&one, 1}, out);
        return std::string(out.text());
    };
    EXPECT_EQ(execute({"APPEND", "gone", "2"}), ":2\r\n");
    EXPECT_EQ(execute({"PERSIST", "gone"}), ":1\r\n");
    EXPECT_EQ(client("GET gone"), "$2\r\n12\r\n");
    EXPECT_EQ(client("REPLICAOF NO ONE"), "+OK\r\n");
    EXPECT_EQ(client("DEL gone"), ":1\r\n");
    // As a master its own clock decides, for every client.
    EXPECT_EQ(client("SET gone 1 EX 10"), "+OK\r\n");
    home.set_time(std::chrono::seconds(1'000'033));
    EXPECT_EQ(client("GET gone"), "$-1\r\n");
    EXPECT_EQ(client("DBSIZE"), ":1\r\n");
    // Both in a transaction as well.
    EXPECT_EQ(client("MULTI"), "+OK\r\n");
    EXPECT_EQ(client("REPLICAOF 127.0.0.1 1"), "+QUEUED\r\n");
    EXPECT_EQ(client("EXEC"), "*1\r\n+OK\r\n");
    EXPECT_EQ(home.internals().data.env.expired, expired_keys::hide);
    EXPECT_EQ(client("MULTI"), "+OK\r\n");
    EXPECT_EQ(client("REPLICAOF NO ONE"), "+QUEUED\r\n");
    EXPECT_EQ(client("EXEC"), "*1\r\n+OK\r\n");
    EXPECT_EQ(home.internals().data.env.expired, expired_keys::go);
    EXPECT_EQ(client("REPLICAOF 127.0.0.1 99999"), "-ERR Invalid master port\r\n");
    EXPECT_EQ(client("REPLICAOF 127.0.0.1 x"), "-ERR Invalid master port\r\n");
}

TEST(replication, a_writable_replica_removes_what_its_own_clients_let_expire) {
    engine home;
    home.set_time(std::chrono::seconds(1'000'000));
    test_client client(home);
    const auto tracked = [&] {
        const std::string all = client("INFO stats");
        const std::size_t at = all.find("slave_expires_tracked_keys:") + 27;
        return all.substr(at, all.find('\r', at) - at);
    };
    client("SET before 1 EX 10");
    client("REPLICAOF 127.0.0.1 1");
    EXPECT_EQ(client("CONFIG SET replica-read-only no"), "+OK\r\n");
    client("SET own 1 EX 10");
    client("SET longer 1");
    client("EXPIRE longer 10");
    client("SET kept 1 EX 10");
    client("SELECT 3");
    client("SET there 1");
    client("PEXPIRE there 10000");
    client("SELECT 0");
    EXPECT_EQ(tracked(), "4");
    client("EXPIRE longer 100");
    client("PERSIST kept");
    home.set_time(std::chrono::seconds(1'000'011));
    while (home.upkeep()) {
    }
    // The master's keys stay, hidden.
    EXPECT_EQ(client("EXISTS before own longer kept"), ":2\r\n");
    EXPECT_EQ(client("DBSIZE"), ":3\r\n");
    EXPECT_EQ(home.stats().expired_keys, 2U);
    EXPECT_EQ(tracked(), "1");
    home.set_time(std::chrono::seconds(1'000'101));
    while (home.upkeep()) {
    }
    EXPECT_EQ(client("DBSIZE"), ":2\r\n");
    EXPECT_EQ(tracked(), "0");
    // Its own clients' expirations are removed.
    client("SET own 1 EX 10");
    EXPECT_EQ(tracked(), "1");
    client("REPLICAOF NO ONE");
    EXPECT_EQ(tracked(), "0");
    home.set_time(std::chrono::seconds(1'000'200));
    while (home.upkeep()) {
    }
    EXPECT_EQ(client("DBSIZE"), ":1\r\n");
}

TEST(replication,
     a_writable_replica_removes_a_hash_with_the_last_field_that_its_clients_let_expire) {
    engine home;
    home.set_time(std::chrono::seconds(1'000'000));
    test_client client(home);
    client("REPLICAOF 127.0.0.1 1");
    client("CONFIG SET replica-read-only no");
    client("HSET one f v");
    client("HPEXPIRE one 1000 FIELDS 1 f");
    client("HSET two f v g v");
    client("HPEXPIRE two 1000 FIELDS 1 f");
    client("HPEXPIRE two 5000 FIELDS 1 g");
    client("HSET part f v g v");
    client("HPEXPIRE part 1000 FIELDS 1 f");
    client("HSET later f v");
    client("HPEXPIRE later 1000 FIELDS 1 f");
    client("HPERSIST later FIELDS 1 f");
    for (int i = 0; i < 200; ++i) client({"HSET", "large", "f" + std::to_string(i), "v"});
    for (int i = 0; i < 200; ++i)
        client({"HPEXPIRE", "large", "1000", "FIELDS", "1", "f" + std::to_string(i)});
    const auto at = [&](int seconds) {
        home.set_time(std::chrono::seconds(1'000'000 + seconds));
        while (home.upkeep()) {
        }
        return client("DBSIZE");
    };
    EXPECT_EQ(at(2), ":3\r\n");
    EXPECT_EQ(client("EXISTS one large two part later"), ":3\r\n");
    EXPECT_EQ(at(6), ":2\r\n");
    EXPECT_EQ(client("HLEN part"), ":1\r\n");
    client("HDEL part g");
    EXPECT_EQ(at(7), ":1\r\n");
}

TEST(replication, keys_of_a_replicas_own_are_recorded_up_to_a_limit) {
    engine home;
    home.set_time(std::chrono::seconds(1'000'000));
    test_client client(home);
    client("REPLICAOF 127.0.0.1 1");
    client("CONFIG SET replica-read-only no");
    own_expirations& its = home.internals().replication.replicating->expirations();
    for (std::size_t i = 0; i < own_expirations::most + 10; ++i)
        client({"SET", "k" + std::to_string(i), "v", "EX", "10"});
    EXPECT_EQ(its.size(), own_expirations::most);
    home.set_time(std::chrono::seconds(1'000'011));
    while (home.upkeep()) {
    }
    EXPECT_EQ(its.size(), 0U);
    // The others are hidden, and stay.
    EXPECT_EQ(client("DBSIZE"), ":10\r\n");
    EXPECT_EQ(client({"GET", "k" + std::to_string(own_expirations::most)}), "$-1\r\n");
}

TEST(replication, a_copy_begins_at_once_for_as_many_replicas_as_are_enough) {
    master_engine l;
    test_client client(*l.home);
    client("CONFIG SET repl-diskless-sync-delay 100 repl-diskless-sync-max-replicas 2");
    test_client first(*l.home);
    test_client second(*l.home);
    first("REPLCONF capa eof");
    first("PSYNC ? -1");
    replication& its = *l.home->internals().replication.replicating;
    EXPECT_FALSE(its.copy_is_due());
    second("REPLCONF capa eof");
    second("PSYNC ? -1");
    EXPECT_TRUE(its.copy_is_due());
    client("CONFIG SET repl-diskless-sync-max-replicas 3");
    EXPECT_FALSE(its.copy_is_due());
    l.home->set_time(std::chrono::seconds(1'000'100));
    EXPECT_TRUE(its.copy_is_due());
}

TEST(replication, a_copy_is_for_those_that_want_the_same) {
    master_engine l;
    test_client all(*l.home);
    test_client functions(*l.home);
    test_client nothing(*l.home);
    test_client without_size(*l.home);
    EXPECT_EQ(all("REPLCONF capa eof"), "+OK\r\n");
    EXPECT_EQ(functions("REPLCONF capa eof rdb-filter-only functions"), "+OK\r\n");
    EXPECT_EQ(nothing({"REPLCONF", "rdb-filter-only", ""}), "+OK\r\n");
    EXPECT_EQ(without_size({"REPLCONF", "rdb-filter-only", "functions keys"}),
              "-ERR Unsupported rdb-filter-only option: keys\r\n");
    for (test_client* const each : {&all, &functions, &nothing}) (*each)("PSYNC ? -1");
    replication& its = *l.home->internals().replication.replicating;
    const auto one = its.begin_copy();
    EXPECT_EQ(one->content, copy_content::everything);
    EXPECT_FALSE(one->is_sized);
    EXPECT_EQ(its.takers(*one), 1U);
    EXPECT_TRUE(its.copy_is_due());
    const auto other = its.begin_copy();
    EXPECT_EQ(other->content, copy_content::functions);
    const auto last = its.begin_copy();
    EXPECT_EQ(last->content, copy_content::nothing);
    EXPECT_TRUE(last->is_sized);
    EXPECT_FALSE(its.copy_is_due());
}

// Valkey 9 reads expiring fields in its own form alone.
TEST(replication, a_copy_has_the_form_that_its_replicas_read) {
    master_engine l;
    test_client redis(*l.home);
    test_client old_valkey(*l.home);
    test_client valkey(*l.home);
    test_client newer_valkey(*l.home);
    EXPECT_EQ(redis("REPLCONF capa eof"), "+OK\r\n");
    EXPECT_EQ(old_valkey("REPLCONF capa eof version 8.1.1"), "+OK\r\n");
    EXPECT_EQ(valkey("REPLCONF capa eof version 9.0.0"), "+OK\r\n");
    EXPECT_EQ(newer_valkey("REPLCONF capa eof version 10.2.3"), "+OK\r\n");
    for (test_client* const each : {&redis, &old_valkey, &valkey, &newer_valkey})
        (*each)("PSYNC ? -1");
    replication& its = *l.home->internals().replication.replicating;
    test_client writer(*l.home);
    EXPECT_EQ(writer("HSET h f v"), ":1\r\n");
    EXPECT_EQ(writer("HPEXPIRE h 100000 FIELDS 1 f"), "*1\r\n:1\r\n");
    const auto one = its.begin_copy();
    EXPECT_FALSE(one->has_valkeys_form);
    EXPECT_EQ(its.takers(*one), 2U);
    const auto other = its.begin_copy();
    EXPECT_TRUE(other->has_valkeys_form);
    EXPECT_EQ(its.takers(*other), 2U);
    for (const auto& each : its.part_copy(*other)) EXPECT_TRUE(each->has_valkeys_form);
    EXPECT_FALSE(its.copy_is_due());
}

TEST(replication, one_copy_is_for_all_where_no_field_expires) {
    master_engine l;
    test_client redis(*l.home);
    test_client valkey(*l.home);
    EXPECT_EQ(redis("REPLCONF capa eof"), "+OK\r\n");
    EXPECT_EQ(valkey("REPLCONF capa eof version 9.0.0"), "+OK\r\n");
    for (test_client* const each : {&redis, &valkey}) (*each)("PSYNC ? -1");
    replication& its = *l.home->internals().replication.replicating;
    const auto one = its.begin_copy();
    EXPECT_FALSE(one->has_valkeys_form);
    EXPECT_EQ(its.takers(*one), 2U);
    EXPECT_FALSE(its.copy_is_due());
}

TEST(replication, a_version_that_is_none_counts_as_unnamed) {
    master_engine l;
    for (const char* const version : {"", "x", "-9", "99999999999999999999"}) {
        test_client replica(*l.home);
        EXPECT_EQ(replica({"REPLCONF", "version", version}), "+OK\r\n");
        EXPECT_FALSE(replication::find(replica.who())->takes_valkeys_form()) << version;
    }
}

/// Keeps what is said to the operator.
struct told_operator final : replication_host {
    void copy_wanted() noexcept override {}
    void link_changed() noexcept override {}
    void log(std::string_view what) override { lines.emplace_back(what); }
    std::vector<std::string> lines;
};

TEST(replication, the_operator_learns_once_that_a_replica_lacks_expiring_fields) {
    master_engine l;
    test_client client(*l.home);
    test_client newest(*l.home);
    test_client valkey(*l.home);
    EXPECT_EQ(newest("REPLCONF listening-port 1 capa eof capa rdb-channel-repl"), "+OK\r\n");
    EXPECT_EQ(valkey("REPLCONF listening-port 2 version 9.1.2"), "+OK\r\n");
    for (test_client* const each : {&newest, &valkey}) (*each)("PSYNC ? -1");
    replication& its = *l.home->internals().replication.replicating;
    told_operator operators;
    its.host = &operators;
    client("HSET h f v g w");
    client("HPEXPIRE h 100000 FIELDS 1 f");
    its.tick();
    EXPECT_TRUE(operators.lines.empty());

    test_client old_valkey(*l.home);
    EXPECT_EQ(old_valkey("REPLCONF listening-port 3 version 8.1.1"), "+OK\r\n");
    old_valkey("PSYNC ? -1");
    for (int i = 0; i < 3; ++i) its.tick();
    ASSERT_EQ(operators.lines.size(), 1U);
    EXPECT_THAT(operators.lines[0], HasSubstr(":3 is Valkey 8, which cannot take the expiring "
                                              "fields of hashes that are here"));
    // Once more where there are some again, for one of which nothing is known.
    its.forget(old_valkey.who());
    test_client unknown(*l.home);
    EXPECT_EQ(unknown("REPLCONF listening-port 4 capa eof"), "+OK\r\n");
    unknown("PSYNC ? -1");
    its.tick();
    client("DEL h");
    its.tick();
    EXPECT_EQ(operators.lines.size(), 1U);
    client("HSET h f v g w");
    its.tick();
    client("HPEXPIRE h 100000 FIELDS 1 f");
    for (int i = 0; i < 3; ++i) its.tick();
    ASSERT_EQ(operators.lines.size(), 2U);
    EXPECT_THAT(operators.lines[1], HasSubstr(":4 does not say that it takes the expiring fields"));
    its.host = nullptr;
}

TEST(replication, a_copy_goes_on_when_its_slowest_taker_leaves) {
    master_engine master;
    const auto add = [](const std::shared_ptr<full_copy>& to, replication& by, bool is_last) {
        byte_buffer bytes;
        bytes.append(std::string_view("piece"));
        by.add_piece(*to, std::move(bytes), is_last);
    };
    test_client quick(*master.home);
    auto slow = std::make_unique<test_client>(*master.home);
    for (test_client* const each : {&quick, slow.get()}) {
        (*each)("REPLCONF capa eof");
        (*each)("PSYNC ? -1");
    }
    replication& its = *master.home->internals().replication.replicating;
    ASSERT_TRUE(its.copy_is_due());
    const auto copy = its.begin_copy();
    EXPECT_EQ(its.takers(*copy), 2U);
    for (std::size_t i = 0; i < full_copy::max_pieces; ++i) add(copy, its, false);
    sent_to(*master.home, quick.who());
    EXPECT_EQ(copy->pieces.size(), full_copy::max_pieces) << "the slow one has taken none";
    slow.reset();
    EXPECT_EQ(its.takers(*copy), 1U);
    EXPECT_TRUE(copy->pieces.empty()) << "there is room for the next";
    add(copy, its, true);
    EXPECT_THAT(sent_to(*master.home, quick.who()), StartsWith("piece"));
    EXPECT_EQ(its.takers(*copy), 0U);
}

TEST(replication, a_dump_says_where_its_data_stands_in_the_stream) {
    const std::string id(40, 'a');
    const auto dump_of = [](engine& home) {
        rdb::snapshot_options options;
        options.names_stream = true;
        rdb::snapshot* const image = rdb::snapshot::begin(home, options);
        byte_buffer out;
        while (image->step(out) == rdb::snapshot::status::writing) {
        }
        image->end();
        return std::string(out.text());
    };
    engine alone;
    EXPECT_EQ(dump_of(alone).find("repl-id"), std::string::npos);

    master_engine l;
    test_client client(*l.home);
    test_client replica_client(*l.home);
    client("SET gone 1 EX 10");
    l.join(replica_client);
    client("SELECT 3");
    client("SET a 1");
    const replication& its = *l.home->internals().replication.replicating;
    const std::string dump = dump_of(*l.home);

    engine again;
    again.set_time(std::chrono::seconds(1'000'100));
    rdb::load_options options;
    options.goes_on = true;
    rdb::loader into(again, options);
    into.feed(dump);
    ASSERT_EQ(into.now(), rdb::reader::status::done);
    // Its expiration is propagated.
    EXPECT_EQ(into.counts().keys, 2U);
    const auto position = into.position();
    ASSERT_TRUE(position.has_value());
    EXPECT_EQ(position->id, its.id());
    EXPECT_EQ(position->offset, its.offset());
    EXPECT_EQ(position->database, 3);

    replication& master = replication::of(again.internals());
    master.restore(*position, false);
    EXPECT_NE(master.id(), its.id());
    EXPECT_EQ(master.second_id(), its.id());
    EXPECT_TRUE(master.can_continue(its.id(), position->offset));
    EXPECT_FALSE(master.can_continue(its.id(), position->offset - 1));
    EXPECT_FALSE(master.can_continue(its.id(), position->offset + 1));
    test_client back(again);
    back("REPLCONF capa eof capa psync2");
    EXPECT_EQ(back("PSYNC " + its.id() + ' ' + std::to_string(position->offset + 1)),
              "+CONTINUE " + master.id() + "\r\n");
    while (again.upkeep()) {
    }
    EXPECT_THAT(sent_to(again, back.who()), HasSubstr("\r\nDEL\r\n$4\r\ngone\r\n"));

    engine follows;
    replication& replica = replication::of(follows.internals());
    replica.restore(*position, true);
    replica.become_replica("127.0.0.1", 1);
    EXPECT_TRUE(replica.may_resume());
    EXPECT_EQ(replica.id(), its.id());
    EXPECT_EQ(replica.offset(), position->offset);
    EXPECT_EQ(replica.stream_database, 3);
}

TEST(replication, a_dump_within_a_transaction_says_nothing_of_the_stream) {
    master_engine l;
    test_client client(*l.home);
    test_client replica_client(*l.home);
    l.join(replica_client);
    const replication& its = *l.home->internals().replication.replicating;
    EXPECT_TRUE(its.position().has_value());
    struct watcher final : save_host {
        explicit watcher(engine& of) : home(of) { home.internals().persistence.saves.host = this; }
        void save_began() noexcept override {
            has_position = home.internals().replication.replicating->position().has_value();
        }
        engine& home;
        bool has_position = true;
    } disk(*l.home);
    client("MULTI");
    client("SET a 1");
    client("BGSAVE");
    EXPECT_THAT(client("EXEC"), HasSubstr("Background saving started"));
    EXPECT_FALSE(disk.has_position);
    EXPECT_TRUE(its.position().has_value());
    l.home->internals().persistence.saves.snapshot->end();
    l.home->internals().persistence.saves.snapshot = nullptr;
}

TEST(replication, a_replica_tells_a_random_key_though_all_are_over) {
    engine home;
    home.set_time(std::chrono::seconds(1'000'000));
    test_client client(home);
    EXPECT_EQ(client("SET gone 1 EX 10"), "+OK\r\n");
    EXPECT_EQ(client("REPLICAOF 127.0.0.1 1"), "+OK\r\n");
    home.set_time(std::chrono::seconds(1'000'011));
    EXPECT_EQ(client("RANDOMKEY"), "$4\r\ngone\r\n");
    EXPECT_EQ(client("REPLICAOF NO ONE"), "+OK\r\n");
    EXPECT_EQ(client("RANDOMKEY"), "$-1\r\n");
}

// Queued commands are checked again at EXEC.
TEST(replication, transactions_that_began_before_see_nothing_that_commands_do_not) {
    engine home;
    test_client client(home);
    test_client other(home);
    client("SET a 1");
    client("REPLICAOF 127.0.0.1 1");
    replication& its = *home.internals().replication.replicating;
    its.set_link(link_state::connected);
    const auto begin = [&] {
        EXPECT_EQ(client("MULTI"), "+OK\r\n");
        EXPECT_EQ(client("ECHO x"), "+QUEUED\r\n");
        EXPECT_EQ(client("GET a"), "+QUEUED\r\n");
        EXPECT_EQ(other("MULTI"), "+OK\r\n");
        EXPECT_EQ(other("ECHO x"), "+QUEUED\r\n");
    };
    begin();
    its.begin_load();
    EXPECT_EQ(client("EXEC"),
              "-EXECABORT Transaction discarded because of: " + std::string(loading_text) + "\r\n");
    EXPECT_EQ(other("EXEC"), "*1\r\n$1\r\nx\r\n");
    its.end_load(std::string(40, 'a'), 1);
    EXPECT_EQ(client("CONFIG SET replica-serve-stale-data no"), "+OK\r\n");
    begin();
    its.set_link(link_state::connect);
    EXPECT_EQ(client("EXEC"),
              "-EXECABORT Transaction discarded because of: " + std::string(stale_text) + "\r\n");
    EXPECT_EQ(other("EXEC"), "*1\r\n$1\r\nx\r\n");
    // The transaction has ended.
    EXPECT_EQ(other("DISCARD"), "-ERR DISCARD without MULTI\r\n");
    its.set_link(link_state::connected);
    begin();
    EXPECT_EQ(client("EXEC"), "*2\r\n$1\r\nx\r\n$-1\r\n");
}

TEST(replication, a_masters_stream_waits_while_clients_are_paused) {
    engine home;
    home.set_time(std::chrono::seconds(1'000'000));
    test_client client(home);
    EXPECT_EQ(client("REPLICAOF 127.0.0.1 1"), "+OK\r\n");
    struct master final : client_session {
        explicit master(engine& at) : client_session(at, "test:1", "test:0") {
            special |= client_session::master | client_session::reply_off;
        }
        void wake() noexcept override { ++woken; }
        int woken = 0;
    } from(home);
    const auto execute = [&](std::initializer_list<std::string_view> words) {
        const resp::command one{words.begin(), words.size()};
        byte_buffer out;
        return home.execute(from, {&one, 1}, out) == 1;
    };
    EXPECT_EQ(client("CLIENT PAUSE 5000 WRITE"), "+OK\r\n");
    EXPECT_TRUE(execute({"PING"}));
    EXPECT_FALSE(execute({"SET", "a", "1"}));
    EXPECT_TRUE(from.blocked);
    EXPECT_EQ(client("GET a"), "$-1\r\n");
    EXPECT_EQ(client("CLIENT UNPAUSE"), "+OK\r\n");
    EXPECT_EQ(from.woken, 1);
    EXPECT_TRUE(execute({"SET", "a", "1"}));
    EXPECT_EQ(client("GET a"), "$1\r\n1\r\n");
    // At the deadline.
    EXPECT_EQ(client("CLIENT PAUSE 5000 ALL"), "+OK\r\n");
    EXPECT_FALSE(execute({"PING"}));
    home.set_time(std::chrono::seconds(1'000'005));
    home.end_wait(from);
    EXPECT_FALSE(from.blocked);
    EXPECT_TRUE(execute({"PING"}));
    // A hold on this server's own clients does not affect it.
    hold_writes(home.internals(), write_hold::file);
    EXPECT_TRUE(execute({"SET", "a", "2"}));
    let_write(home.internals(), write_hold::file);
}

TEST(replication, one_that_is_not_announced_says_so) {
    engine home;
    testing::test_server server(home);
    test_client client(home);
    EXPECT_EQ(client("REPLICAOF 127.0.0.1 1"), "+OK\r\n");
    EXPECT_THAT(client("INFO replication"), HasSubstr("\r\nreplica_announced:1\r\n"));
    EXPECT_EQ(client("CONFIG SET replica-announced no"), "+OK\r\n");
    EXPECT_EQ(client("CONFIG GET replica-announced"),
              "*2\r\n$17\r\nreplica-announced\r\n$2\r\nno\r\n");
    EXPECT_THAT(client("INFO replication"), HasSubstr("\r\nreplica_announced:0\r\n"));
    EXPECT_THAT(client("CONFIG SET replica-announced maybe"),
                HasSubstr("argument must be 'yes' or 'no'"));
}

TEST(replication, functions_are_not_changed_on_a_replica) {
    engine home;
    test_client client(home);
    if (client({"FUNCTION", "LIST"}).starts_with("-")) GTEST_SKIP() << "there are no scripts";
    client({"REPLICAOF", "127.0.0.1", "1"});
    for (const char* const form : {"load", "DELETE", "restore"}) {
        EXPECT_THAT(client({"FUNCTION", form, "x"}), StartsWith("-READONLY ")) << form;
    }
    EXPECT_THAT(client({"FUNCTION", "FLUSH"}), StartsWith("-READONLY "));
    EXPECT_EQ(client({"FUNCTION", "LIST"}), "*0\r\n");
}

TEST(replication, scripts_do_not_write_on_a_replica) {
    engine home;
    test_client client(home);
    if (client({"EVAL", "return 1", "0"}).starts_with("-")) GTEST_SKIP() << "there are no scripts";
    client("REPLICAOF 127.0.0.1 1");
    EXPECT_THAT(client({"EVAL", "return redis.call('SET', 'a', '1')", "0"}),
                HasSubstr("READONLY You can't write against a read only replica."));
    EXPECT_EQ(client({"EVAL", "return redis.call('GET', 'a')", "0"}), "$-1\r\n");
}

TEST(replication, scripts_show_no_stale_data_where_commands_do_not) {
    engine home;
    test_client client(home);
    if (client({"EVAL", "return 1", "0"}).starts_with("-")) GTEST_SKIP() << "there are no scripts";
    client("SET a 1");
    client({"FUNCTION", "LOAD",
            "#!lua name=l\nredis.register_function{function_name='f', flags={'no-writes'}, "
            "callback=function() return 1 end}"});
    client("CONFIG SET replica-serve-stale-data no");
    client("REPLICAOF 127.0.0.1 1");
    const std::string stale =
        "-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.\r\n";
    EXPECT_EQ(client("GET a"), stale);
    EXPECT_EQ(client({"EVAL", "return redis.call('GET', 'a')", "0"}), stale);
    EXPECT_EQ(client({"EVAL", "return 1", "0"}), stale);
    EXPECT_THAT(client({"EVALSHA", std::string(40, '0'), "0"}), StartsWith("-NOSCRIPT"));
    EXPECT_EQ(client({"EVAL", "#!lua flags=no-writes\nreturn 1", "0"}), stale);
    EXPECT_EQ(client({"FCALL", "f", "0"}), stale);
    EXPECT_EQ(client({"EVAL", "#!lua\nreturn 1", "0"}),
              "-READONLY You can't write against a read only replica.\r\n");
    const std::string allowed = "#!lua flags=allow-stale,no-writes\n";
    EXPECT_EQ(client({"EVAL", allowed + "return redis.call('ECHO', 'a')", "0"}), "$1\r\na\r\n");
    EXPECT_THAT(client({"EVAL", allowed + "return redis.call('GET', 'a')", "0"}),
                StartsWith("-ERR Can not execute the command on a stale replica script: "));
    client("CONFIG SET replica-serve-stale-data yes");
    EXPECT_THAT(client({"EVAL", "return redis.call('ECHO', 'a')", "0"}), HasSubstr("a"));
}

}  // namespace
}  // namespace eddy::cache
