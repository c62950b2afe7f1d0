// Tests of MIGRATE in the engine: its arguments, the sent commands, and the waits meanwhile. The
// other server is a second engine, to which the test carries those commands.
#include "cache/replication/migration.hpp"

#include <eddy/base/byte_buffer.hpp>
#include <eddy/wire/resp/request.hpp>

#include "cache/clients/waits.hpp"
#include "cache/engine/engine.hpp"
#include "cache/engine/engine_state.hpp"
#include "cache/persistence/propagation.hpp"
#include "cache/replication/replication.hpp"
#include "cache/testing/hooks_fixture.hpp"
#include "cache/testing/test_client.hpp"
#include "cache/testing/test_server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::cache {
namespace {

using testing::arguments;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using testing::test_client;

// Records its requests.
struct keeping_host final : testing::test_server {
    using test_server::test_server;
    void migrate(std::uint64_t session, std::unique_ptr<migration> what) override {
        who = session;
        under_way.push_back(std::move(what));
    }

    std::uint64_t who = 0;
    std::vector<std::unique_ptr<migration>> under_way;
};

// Recorded changes for files and replicas.
struct noted_changes final : change_sink {
    void changed(std::span<const change> unit) noexcept override {
        for (const change& each : unit) text += each.commands;
    }
    void missed() noexcept override { text += "missed"; }
    std::string text;
};

class migrate : public ::testing::Test {
protected:
    migrate() { home.set_time(std::chrono::seconds(1'700'000'000)); }
    ~migrate() override { host.under_way.clear(); }

    const migration_order& order() { return host.under_way.back()->order(); }

    // Completes the migration as a server does, without failures.
    void finish() {
        const std::unique_ptr<migration> all = std::move(host.under_way.back());
        host.under_way.pop_back();
        byte_buffer out;
        std::vector<std::size_t> taken;
        for (std::size_t i = 0; i < all->order().keys.size(); ++i) {
            if (all->write(i, out) == migration::written::whole) taken.push_back(i);
        }
        there("SELECT " + std::to_string(all->order().database));
        resp::request_parser parser;
        std::size_t answered = 0;
        while (!out.empty()) {
            const resp::request_outcome parsed = parser.next(out.text());
            ASSERT_EQ(parsed.status, resp::parse_status::complete);
            const resp::command& one = parsed.request;
            EXPECT_EQ(there.ask(arguments(one.argv, one.argv + one.argc)), "+OK\r\n");
            out.consume(parsed.consumed);
            ++answered;
        }
        EXPECT_EQ(answered, taken.size());
        EXPECT_TRUE(all->may_remove());
        if (!all->order().copies) {
            EXPECT_EQ(all->remove(taken), "");
        }
        answer(home.internals(), host.who, {});
    }

    engine home;
    keeping_host host{home};
    engine target;
    test_client client{home};
    test_client other{home};
    test_client there{target};
};

TEST_F(migrate, moves_values_of_every_type_with_their_time) {
    client("SET text hello PX 100000");
    client("SET number 42");
    client("RPUSH list a b c");
    client("SADD set x y");
    client("ZADD zset 1.5 m 2 n");
    client("HSET hash f 1 g 2");
    client("XADD stream 1-1 a b");
    client("SET stays 1");
    EXPECT_EQ(
        client("MIGRATE 10.0.0.1 6379 '' 3 5000 KEYS text number list set zset hash stream no"),
        "");
    EXPECT_EQ(order().host, "10.0.0.1");
    EXPECT_EQ(order().port, "6379");
    EXPECT_EQ(order().database, 3);
    EXPECT_EQ(order().patience, std::chrono::seconds(5));
    EXPECT_THAT(order().keys,
                ElementsAre("text", "number", "list", "set", "zset", "hash", "stream"));
    finish();
    EXPECT_EQ(client.pushed(), "+OK\r\n");
    EXPECT_EQ(client("KEYS *"), "*1\r\n$5\r\nstays\r\n");
    EXPECT_EQ(there("GET text"), "$5\r\nhello\r\n");
    EXPECT_EQ(there("PTTL text"), ":100000\r\n");
    EXPECT_EQ(there("GET number"), "$2\r\n42\r\n");
    EXPECT_EQ(there("TTL number"), ":-1\r\n");
    EXPECT_EQ(there("LRANGE list 0 -1"), "*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n");
    EXPECT_EQ(there("SCARD set"), ":2\r\n");
    EXPECT_EQ(there("ZSCORE zset m"), "$3\r\n1.5\r\n");
    EXPECT_EQ(there("HGET hash g"), "$1\r\n2\r\n");
    EXPECT_EQ(there("XLEN stream"), ":1\r\n");
}

TEST_F(migrate, understands_its_options_and_refuses_others_as_redis_does) {
    client("SET a 1");
    client("SET '' 1");
    for (const auto& [line, reply] : std::initializer_list<std::pair<const char*, const char*>>{
             {"MIGRATE h 1 a 0", "-ERR wrong number of arguments for 'migrate' command\r\n"},
             {"MIGRATE h 1 a 0 5 OTHER", "-ERR syntax error\r\n"},
             {"MIGRATE h 1 a 0 5 AUTH", "-ERR syntax error\r\n"},
             {"MIGRATE h 1 a 0 5 AUTH2 x", "-ERR syntax error\r\n"},
             {"MIGRATE h 1 a x 5", "-ERR value is not an integer or out of range\r\n"},
             {"MIGRATE h 1 a 0 x", "-ERR value is not an integer or out of range\r\n"},
             {"MIGRATE h 1 a 0 5 KEYS a",
              "-ERR When using MIGRATE KEYS option, the key argument must be set to the empty "
              "string\r\n"},
             {"MIGRATE h 1 no 0 5", "+NOKEY\r\n"},
             {"MIGRATE h 1 '' 0 5 KEYS no none", "+NOKEY\r\n"},
             {"MIGRATE h 1 '' 0 5 KEYS", "+NOKEY\r\n"}}) {
        EXPECT_EQ(client(line), reply) << line;
    }
    const auto understood = [&](std::string_view line) {
        EXPECT_EQ(client(line), "") << line;
        const migration_order given = order();
        host.under_way.clear();
        answer(home.internals(), host.who, {});
        EXPECT_EQ(client.pushed(), "+OK\r\n");
        return given;
    };
    EXPECT_EQ(understood("MIGRATE h 1 a 0 0").patience, std::chrono::seconds(1));
    EXPECT_EQ(understood("MIGRATE h 1 a 0 -5").patience, std::chrono::seconds(1));
    EXPECT_EQ(understood("MIGRATE h 1 a 9223372036854775807 9223372036854775807").database,
              INT64_MAX);
    EXPECT_THAT(understood("MIGRATE h 1 '' 0 5").keys, ElementsAre(""));
    const auto all = understood("MIGRATE h 1 '' 0 5 replace copy auth x auth2 u keys keys a");
    EXPECT_TRUE(all.copies);
    EXPECT_TRUE(all.replaces);
    EXPECT_EQ(all.user, "u");
    EXPECT_EQ(all.password, "keys");
    EXPECT_THAT(all.keys, ElementsAre("a"));
    EXPECT_EQ(understood("MIGRATE h 1 a 0 5 AUTH2 u p AUTH q").user, "");
}

TEST_F(migrate, who_changes_its_keys_waits_and_who_reads_them_does_not) {
    client("SET a 1");
    client("SET b 1");
    EXPECT_EQ(client("MIGRATE h 1 a 0 5"), "");
    EXPECT_EQ(other("GET a"), "$1\r\n1\r\n");
    EXPECT_EQ(other("COPY a c"), ":1\r\n");
    EXPECT_EQ(other("INCR b"), ":2\r\n");
    EXPECT_EQ(other("MIGRATE h 1 b 0 5"), "") << "other keys go at the same time";
    EXPECT_EQ(host.under_way.size(), 2U);
    host.under_way.pop_back();
    answer(home.internals(), host.who, {});
    EXPECT_EQ(other.pushed(), "+OK\r\n");
    host.who = client.who().id;

    std::vector<std::unique_ptr<test_client>> waiting;
    for (const char* const line :
         {"INCR a", "DEL x a", "EXPIRE a 100", "RENAME b a", "COPY b a REPLACE", "GETDEL a",
          "LPOP a", "SORT x STORE a", "BLPOP x a 0", "XREADGROUP GROUP g c STREAMS a >",
          "MIGRATE h 1 a 0 5", "MIGRATE h 1 '' 0 5 KEYS b a", "MOVE a 1", "RESTORE a 0 x",
          "EVAL return(1) 2 x a", "GEORADIUS g 1 1 1 km STORE x STORE a",
          "XREADGROUP COUNT 1 GROUP g streams STREAMS a >"}) {
        waiting.push_back(std::make_unique<test_client>(home));
        EXPECT_EQ((*waiting.back())(line), "") << line;
        EXPECT_TRUE(waiting.back()->who().blocked) << line;
    }
    waiting.clear();
    EXPECT_EQ(other("EVAL return(1) 1 b"), ":1\r\n");
    EXPECT_EQ(other("GET a"), "$1\r\n1\r\n");
    // Also a key of another database, and commands from there.
    EXPECT_EQ(other("SELECT 1"), "+OK\r\n");
    for (const char* const line : {"COPY x a DB 0 REPLACE", "MOVE a 0"}) {
        test_client there(home);
        there("SELECT 1");
        EXPECT_EQ(there(line), "");
        EXPECT_TRUE(there.who().blocked) << line;
    }
    EXPECT_EQ(other("INCR a"), ":1\r\n");
    EXPECT_EQ(other("INCR a"), ":2\r\n");
    EXPECT_EQ(other("MULTI"), "+OK\r\n");
    EXPECT_EQ(other("SELECT 0"), "+QUEUED\r\n");
    EXPECT_EQ(other("INCR a"), "+QUEUED\r\n");
    EXPECT_EQ(other("EXEC"), "");
    test_client whole(home);
    for (const char* const line : {"MULTI", "GET a", "INCR b"}) whole(line);
    EXPECT_EQ(whole("EXEC"), "*2\r\n$1\r\n1\r\n:3\r\n");
    EXPECT_EQ(whole("APPEND a x"), "");
    EXPECT_EQ(whole("PING"), "") << "what is behind it waits, too";

    finish();
    EXPECT_EQ(client.pushed(), "+OK\r\n");
    EXPECT_TRUE(other.woken());
    EXPECT_EQ(other.pushed(), "*2\r\n+OK\r\n:1\r\n");
    EXPECT_EQ(whole.pushed(), ":2\r\n+PONG\r\n");
    EXPECT_EQ(there("GET a"), "$1\r\n1\r\n");
    EXPECT_EQ(home.internals().clients.slow_path, 0);
}

TEST_F(migrate, ends_for_those_who_wait_whatever_becomes_of_it) {
    client("SET a 1");
    EXPECT_EQ(client("MIGRATE h 1 a 0 5"), "");
    EXPECT_EQ(other("INCR a"), "");
    host.under_way.clear();
    answer_error(home.internals(), host.who, "IOERR error or timeout reading to target instance");
    EXPECT_EQ(client.pushed(), "-IOERR error or timeout reading to target instance\r\n");
    EXPECT_EQ(other.pushed(), ":2\r\n");
    EXPECT_THAT(client("INFO errorstats"), HasSubstr("errorstat_IOERR:count=1"));
    // The requesting client has disconnected.
    {
        test_client leaves(home);
        leaves("MIGRATE h 1 a 0 5");
        EXPECT_TRUE(host.under_way[0]->is_wanted());
    }
    EXPECT_FALSE(host.under_way[0]->is_wanted());
    finish();
    EXPECT_EQ(client("EXISTS a"), ":0\r\n");
    EXPECT_EQ(there("GET a"), "$1\r\n2\r\n");
}

TEST_F(migrate, keys_are_let_go_as_soon_as_they_have_gone) {
    client("MSET a 1 b 1");
    EXPECT_EQ(client("MIGRATE h 1 '' 0 5 KEYS a b a"), "");
    EXPECT_THAT(order().keys, ElementsAre("a", "b")) << "each once";
    test_client third(home);
    EXPECT_EQ(other("INCR a"), "");
    EXPECT_EQ(third("INCR b"), "");
    EXPECT_EQ(host.under_way[0]->remove({0}), "");
    EXPECT_EQ(other.pushed(), "") << "not yet";
    host.under_way[0]->release(1);
    EXPECT_EQ(other.pushed(), ":1\r\n");
    EXPECT_EQ(third.pushed(), "");
    EXPECT_TRUE(third.who().blocked);
    host.under_way.clear();
    EXPECT_EQ(third.pushed(), ":2\r\n");
    answer(home.internals(), host.who, {});
}

// A change that does not wait: the key stays, and MIGRATE replies with an error.
TEST_F(migrate, what_was_changed_after_all_is_not_removed) {
    const auto stays = [&](std::string_view what, const std::function<void()>& changes) {
        host.under_way.clear();
        client("FLUSHALL");
        client("SET k old");
        client("RPUSH l old");
        std::unique_ptr<test_client> mover = std::make_unique<test_client>(home);
        EXPECT_EQ((*mover)("MIGRATE h 1 '' 0 5 KEYS k l"), "") << what;
        changes();
        EXPECT_THAT(host.under_way[0]->remove({0, 1}), HasSubstr("changed")) << what;
        host.under_way.clear();
    };
    stays("a script", [&] { client({"EVAL", "redis.call('SET', 'k', 'new')", "0"}); });
    EXPECT_EQ(client("GET k"), "$3\r\nnew\r\n");
    EXPECT_EQ(client("EXISTS l"), ":0\r\n") << "that one has gone";
    // A client that waits for a key is served although its target is being moved.
    test_client waits(home);
    EXPECT_EQ(waits("BLMOVE q l LEFT RIGHT 0"), "");
    stays("BLMOVE", [&] { client("RPUSH q new"); });
    EXPECT_EQ(waits.pushed(), "$3\r\nnew\r\n");
    EXPECT_EQ(client("LRANGE l 0 -1"), "*2\r\n$3\r\nold\r\n$3\r\nnew\r\n");
    stays("FLUSHALL", [&] {
        client("FLUSHALL");
        client({"EVAL", "redis.call('SET', 'k', 'newer')", "0"});
    });
    EXPECT_EQ(client("GET k"), "$5\r\nnewer\r\n");
    stays("SWAPDB", [&] {
        client("SWAPDB 0 1");
        client({"EVAL", "redis.call('SET', 'k', 'newest')", "0"});
    });
    EXPECT_EQ(client("GET k"), "$6\r\nnewest\r\n");
    stays("another server's data", [&] {
        replication& its = replication::of(home.internals());
        client("REPLICAOF 127.0.0.1 1");
        its.begin_load();
        its.fail_load();
        client("REPLICAOF NO ONE");
        client({"EVAL", "redis.call('SET', 'k', 'theirs')", "0"});
    });
    EXPECT_EQ(client("GET k"), "$6\r\ntheirs\r\n");
}

TEST_F(migrate, what_was_changed_before_it_was_sent_goes_as_it_is) {
    client("SET k old");
    EXPECT_EQ(client("MIGRATE h 1 k 0 5"), "");
    other({"EVAL", "redis.call('SET', 'k', 'new')", "0"});
    finish();
    EXPECT_EQ(client.pushed(), "+OK\r\n");
    EXPECT_EQ(client("EXISTS k"), ":0\r\n");
    EXPECT_EQ(there("GET k"), "$3\r\nnew\r\n");
}

TEST_F(migrate, a_field_that_ends_is_no_change) {
    client("HSET h f 1 g 2");
    client("HPEXPIRE h 100 FIELDS 1 f");
    EXPECT_EQ(client("MIGRATE h 1 h 0 5"), "");
    home.set_time(std::chrono::seconds(1'700'000'001));
    while (home.upkeep()) {
    }
    EXPECT_EQ(other("HLEN h"), ":1\r\n");
    EXPECT_EQ(host.under_way[0]->remove({0}), "");
    EXPECT_EQ(other("EXISTS h"), ":0\r\n");
    host.under_way.clear();
}

TEST_F(migrate, so_many_keys_may_be_named) {
    arguments words{"MIGRATE", "h", "1", "", "0", "5", "KEYS"};
    words.resize(7 + migration::most_keys, "nothing");
    EXPECT_EQ(client.ask(words), "+NOKEY\r\n");
    words.emplace_back("nothing");
    EXPECT_THAT(client.ask(words), StartsWith("-ERR MIGRATE takes 65536 keys at most"));
}

TEST_F(migrate, what_waits_to_be_sent_is_counted) {
    client("MSET a 1 b 1");
    client("MIGRATE h 1 a 0 5");
    other("MIGRATE h 1 b 0 5");
    migration& first = *host.under_way[0];
    first.note_unsent(migration::most_unsent);
    EXPECT_TRUE(host.under_way[1]->is_crowded());
    first.note_unsent(migration::most_unsent - 1);
    EXPECT_FALSE(host.under_way[1]->is_crowded());
    host.under_way[1]->note_unsent(10);
    EXPECT_TRUE(first.is_crowded());
    host.under_way.pop_back();
    EXPECT_FALSE(first.is_crowded());
}

TEST_F(migrate, copies_stay_where_they_are) {
    client("SET a 1");
    EXPECT_EQ(client("MIGRATE h 1 a 0 5 COPY"), "");
    EXPECT_EQ(other("INCR a"), "") << "nobody sees it half done";
    finish();
    EXPECT_EQ(other.pushed(), ":2\r\n");
    EXPECT_EQ(there("GET a"), "$1\r\n1\r\n");
}

TEST_F(migrate, says_of_what_it_removes_as_del_does) {
    client("SET a 1");
    client("SET b 1");
    client("CONFIG SET notify-keyspace-events KEA");
    test_client listener(home);
    listener("SUBSCRIBE __keyevent@0__:del");
    test_client watcher(home);
    for (const char* const line : {"WATCH a", "MULTI", "GET b"}) watcher(line);
    noted_changes changes;
    add_sink(home.internals(), changes);
    EXPECT_EQ(client("MIGRATE h 1 a 0 5"), "");
    EXPECT_EQ(changes.text, "") << "nothing has happened yet";
    finish();
    EXPECT_EQ(changes.text, "*2\r\n$3\r\nDEL\r\n$1\r\na\r\n");
    EXPECT_EQ(listener.pushed(), "*3\r\n$7\r\nmessage\r\n$18\r\n__keyevent@0__:del\r\n$1\r\na\r\n");
    EXPECT_EQ(watcher("EXEC"), "*-1\r\n");
    changes.text.clear();
    EXPECT_EQ(client.pushed(), "+OK\r\n");
    EXPECT_EQ(client("MIGRATE h 1 b 0 5 COPY"), "");
    finish();
    EXPECT_EQ(changes.text, "");
    remove_sink(home.internals(), changes);
}

TEST_F(migrate, what_it_removes_is_broadcast_at_once) {
    test_client reader(home);
    reader("HELLO 3");
    reader("CLIENT TRACKING ON BCAST");
    client("SET a 1");
    reader.pushed();
    EXPECT_EQ(client("MIGRATE h 1 a 0 5"), "");
    finish();
    EXPECT_EQ(reader.pushed(), ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\na\r\n");
}

TEST_F(migrate, keys_that_end_meanwhile_are_not_sent) {
    client("SET a 1 PX 50");
    client("SET b 1 PX 100000");
    EXPECT_EQ(client("MIGRATE h 1 '' 0 5 KEYS a b"), "");
    home.set_time(std::chrono::seconds(1'700'000'001));
    byte_buffer out;
    EXPECT_EQ(host.under_way[0]->write(0, out), migration::written::gone);
    EXPECT_TRUE(out.empty());
    EXPECT_EQ(host.under_way[0]->write(1, out), migration::written::whole);
    EXPECT_THAT(std::string(out.text()),
                StartsWith("*4\r\n$7\r\nRESTORE\r\n$1\r\nb\r\n$5\r\n99000\r\n"));
    finish();
    EXPECT_EQ(there("DBSIZE"), ":1\r\n");
}

TEST_F(migrate, a_value_larger_than_a_reply_is_not_sent) {
    engine_options options;
    options.max_reply = 1U << 20;
    engine small(options);
    small.internals().server = &host;
    {
        test_client its(small);
        for (int i = 0; i < 40; ++i) its({"RPUSH", "a", std::string(100'000, 'x')});
        EXPECT_EQ(its("MIGRATE h 1 a 0 5"), "");
        byte_buffer out;
        EXPECT_EQ(host.under_way[0]->write(0, out), migration::written::too_large);
        EXPECT_TRUE(out.empty());
        host.under_way.clear();
    }
}

TEST_F(migrate, nothing_is_removed_while_writes_are_held_or_from_a_replica) {
    client("SET a 1");
    EXPECT_EQ(client("MIGRATE h 1 a 0 5"), "");
    EXPECT_EQ(other("CLIENT PAUSE 1000 WRITE"), "+OK\r\n");
    EXPECT_FALSE(host.under_way[0]->may_remove());
    EXPECT_EQ(other("CLIENT UNPAUSE"), "+OK\r\n");
    EXPECT_TRUE(host.under_way[0]->may_remove());
    EXPECT_EQ(other("REPLICAOF 127.0.0.1 1"), "+OK\r\n");
    EXPECT_THAT(host.under_way[0]->remove({0}), HasSubstr("follows another"));
    host.under_way.clear();
    answer(home.internals(), host.who, "it follows");
    client.pushed();
    EXPECT_THAT(client("MIGRATE h 1 a 0 5"), StartsWith("-READONLY"));
    EXPECT_EQ(other("CONFIG SET replica-read-only no"), "+OK\r\n");
    EXPECT_THAT(client("MIGRATE h 1 a 0 5"), HasSubstr("use MIGRATE with COPY"));
    EXPECT_EQ(other("REPLICAOF NO ONE"), "+OK\r\n");
}

TEST_F(migrate, nothing_waits_within_a_transaction_or_a_script) {
    client("SET a 1");
    client("MULTI");
    client("MIGRATE h 1 a 0 5");
    EXPECT_THAT(client("EXEC"), HasSubstr("-ERR MIGRATE waits"));
    EXPECT_THAT(client({"EVAL", "return redis.call('MIGRATE','h','1','a','0','5')", "0"}),
                HasSubstr("MIGRATE waits"));
    EXPECT_TRUE(host.under_way.empty());
}

TEST_F(migrate, so_many_are_under_way_at_most) {
    std::vector<std::unique_ptr<test_client>> clients;
    for (std::size_t i = 0; i <= migration::most; ++i) {
        const std::string key = std::to_string(i);
        other("SET " + key + " 1");
        clients.push_back(std::make_unique<test_client>(home));
        const std::string reply = (*clients.back())("MIGRATE h 1 " + key + " 0 5");
        if (i < migration::most)
            EXPECT_EQ(reply, "");
        else
            EXPECT_THAT(reply, StartsWith("-ERR 64 MIGRATE commands are under way"));
    }
    host.under_way.pop_back();
    EXPECT_EQ((*clients.back())("MIGRATE h 1 64 0 5"), "");
}

TEST_F(migrate, a_cluster_of_one_node_is_told_that_it_asks) {
    client("SET a 1");
    client("CONFIG SET cluster-enabled yes");
    home.internals().settings.options.emulates_cluster = true;
    EXPECT_EQ(client("MIGRATE h 1 a 0 5 REPLACE"), "");
    byte_buffer out;
    EXPECT_EQ(host.under_way[0]->write(0, out), migration::written::whole);
    EXPECT_THAT(std::string(out.text()), StartsWith("*5\r\n$14\r\nRESTORE-ASKING\r\n"));
    EXPECT_THAT(std::string(out.text()), ::testing::EndsWith("$7\r\nREPLACE\r\n"));
}

TEST_F(migrate, its_password_is_shown_to_nobody) {
    client("SET a 1");
    client("CONFIG SET slowlog-log-slower-than 0");
    test_client monitor(home);
    monitor("MONITOR");
    client("MIGRATE h 1 nothing 0 5 COPY AUTH secret");
    client("MIGRATE h 1 '' 0 5 AUTH2 someone secret KEYS nothing");
    EXPECT_EQ(monitor.pushed().find("secret"), std::string::npos);
    EXPECT_EQ(client("SLOWLOG GET").find("secret"), std::string::npos);
    EXPECT_THAT(client("SLOWLOG GET"), HasSubstr("nothing"));
}

TEST_F(migrate, its_keys_are_those_that_count_for_permissions) {
    client("ACL SETUSER eve on nopass +@all ~a*");
    client("SET a1 x");
    client("SET b1 x");
    other("AUTH eve x");
    EXPECT_THAT(other("MIGRATE h 1 b1 0 5"), StartsWith("-NOPERM"));
    EXPECT_THAT(other("MIGRATE h 1 '' 0 5 AUTH keys KEYS a1 b1"), StartsWith("-NOPERM"));
    EXPECT_EQ(other("MIGRATE h 1 '' 0 5 AUTH keys KEYS a1"), "");
    EXPECT_EQ(client("COMMAND GETKEYS MIGRATE h 1 '' 0 5 AUTH keys KEYS x y"),
              "*2\r\n$1\r\nx\r\n$1\r\ny\r\n");
    EXPECT_EQ(client("COMMAND GETKEYS MIGRATE h 1 k 0 5"), "*1\r\n$1\r\nk\r\n");
}

class migrate_beside_hooks : public testing::HooksTest {};

TEST_F(migrate_beside_hooks, what_goes_is_written_and_not_erased) {
    begin(all());
    test_client c(*home_);
    c("SET a 1");
    c("SET b 1");
    EXPECT_EQ(next(), "write a=1");
    give_none("write a=1");
    migration_order order;
    order.keys = {"a", "b"};
    EXPECT_EQ(migration(home_->internals(), c.who().id, order).remove({0, 1}), "");
    EXPECT_EQ(c("DBSIZE"), ":0\r\n");
    EXPECT_EQ(next(), "write b=1") << "nobody was told of it yet";
    give_none("write b=1");
    EXPECT_EQ(next(), "");
    EXPECT_TRUE(hooks_->flushed());
    EXPECT_EQ(c("GET a"), "");
    EXPECT_EQ(next(), "miss a");
}

}  // namespace
}  // namespace eddy::cache
