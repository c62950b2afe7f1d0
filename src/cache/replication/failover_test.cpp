// Tests of FAILOVER on both sides, as seen by clients and the two servers.
#include "cache/read_through/read_through.hpp"
#include "cache/replication/failover_plan.hpp"
#include "cache/testing/replication_fixture.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::cache {
namespace {

using cache::testing::master_engine;
using cache::testing::sent_to;
using cache::testing::test_client;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::string_view read_only = "-READONLY You can't write against a read only replica.\r\n";

/// Host that records its notifications.
struct recording_host final : replication_host {
    void copy_wanted() noexcept override {}
    void link_changed() noexcept override { ++changes; }
    void log(std::string_view what) override { logged.emplace_back(what); }
    int changes = 0;
    std::vector<std::string> logged;
};

/// A master with a client and a replica that is online.
class failovers : public ::testing::Test {
protected:
    failovers() {
        replica_("REPLCONF listening-port 7001");
        l_.join(replica_);
        its().host = &host_;
        client_("SET k v");
    }
    replication& its() { return *l_.home->internals().replication.replicating; }
    void at(int seconds) { l_.home->set_time(std::chrono::seconds(1'000'000 + seconds)); }
    /// The replica takes its output and acknowledges it.
    void catch_up(test_client& replica) {
        sent_to(*l_.home, replica.who());
        replica("REPLCONF ACK " + std::to_string(its().offset()));
        its().advance_failover();
    }
    std::string state() {
        const std::string all = client_("INFO replication");
        const std::size_t begin = all.find("master_failover_state:") + 22;
        return all.substr(begin, all.find('\r', begin) - begin);
    }
    /// The other server has become the master, by the link's reply.
    void accepted() {
        its().note_failover_asked();
        its().resumed(std::string(40, 'b'));
        its().end_failover();
    }

    master_engine l_;
    recording_host host_;
    test_client client_{*l_.home};
    test_client replica_{*l_.home};
};

TEST_F(failovers, writes_wait_until_the_replica_has_everything_and_are_refused_then) {
    EXPECT_EQ(state(), "no-failover");
    EXPECT_EQ(client_("FAILOVER"), "+OK\r\n");
    EXPECT_EQ(state(), "waiting-for-sync");
    test_client writer(*l_.home);
    EXPECT_EQ(writer("SET k late"), "");
    EXPECT_EQ(client_("GET k"), "$1\r\nv\r\n");
    EXPECT_EQ(writer.pushed(), "");
    its().advance_failover();
    EXPECT_FALSE(its().is_replica()) << "it has not acknowledged";
    catch_up(replica_);
    EXPECT_EQ(state(), "failover-in-progress");
    EXPECT_TRUE(replica_.closed()) << "it hears of it on another connection";
    EXPECT_EQ(its().master_host(), "test");
    EXPECT_EQ(its().master_port(), 7001);
    EXPECT_EQ(writer.pushed(), "") << "nobody knows yet whether the other leads";
    test_client later(*l_.home);
    EXPECT_EQ(later("SET k later"), "");
    accepted();
    EXPECT_EQ(state(), "no-failover");
    EXPECT_EQ(writer.pushed(), read_only);
    EXPECT_EQ(later.pushed(), read_only);
    EXPECT_EQ(client_("GET k"), "$1\r\nv\r\n");
    EXPECT_THAT(client_("ROLE"), StartsWith("*5\r\n$5\r\nslave\r\n"));
}

TEST_F(failovers, a_replica_that_has_everything_is_not_asked) {
    catch_up(replica_);
    const std::uint64_t before = its().offset();
    const int changes = host_.changes;
    EXPECT_EQ(client_("FAILOVER TO test 7001"), "+OK\r\n");
    EXPECT_EQ(its().offset(), before);
    // The owner of the connections is notified at once.
    EXPECT_GT(host_.changes, changes);
    its().advance_failover();
    EXPECT_EQ(state(), "failover-in-progress");
}

// The other's "+CONTINUE" with the new ID may still be in flight when the connection closes.
TEST_F(failovers, one_that_comes_back_does_not_take_over_before_it_has_acknowledged) {
    catch_up(replica_);
    const std::string id = its().id();
    const std::string from = std::to_string(its().offset() + 1);
    EXPECT_EQ(client_("FAILOVER"), "+OK\r\n");
    its().advance_failover();
    its().abort_failover("the replica cannot be reached");
    EXPECT_EQ(its().second_id(), id);

    test_client again(*l_.home);
    again("REPLCONF listening-port 7001 capa eof capa psync2");
    EXPECT_EQ(again("PSYNC " + id + ' ' + from), "+CONTINUE " + its().id() + "\r\n");
    EXPECT_EQ(client_("FAILOVER"), "+OK\r\n");
    its().advance_failover();
    EXPECT_EQ(state(), "waiting-for-sync");
    EXPECT_FALSE(again.closed());
    catch_up(again);
    EXPECT_EQ(state(), "failover-in-progress");
}

TEST_F(failovers, one_that_lacks_something_is_asked) {
    test_client second(*l_.home);
    second("REPLCONF listening-port 7002 ip-address 10.0.0.2");
    l_.join(second);
    catch_up(second);
    // It has all changes, but is not the requested one.
    EXPECT_EQ(client_("FAILOVER TO test 7001"), "+OK\r\n");
    EXPECT_THAT(sent_to(*l_.home, replica_.who()), ::testing::EndsWith("GETACK\r\n$1\r\n*\r\n"));
}

TEST_F(failovers, one_that_is_aborted_lets_writes_go_on) {
    for (const bool is_handing_over : {false, true}) {
        EXPECT_EQ(client_("FAILOVER"), "+OK\r\n");
        test_client writer(*l_.home);
        EXPECT_EQ(writer("SET k late"), "");
        const std::string before = its().id();
        if (is_handing_over) catch_up(replica_);
        EXPECT_EQ(client_("FAILOVER ABORT"), "+OK\r\n");
        EXPECT_EQ(writer.pushed(), "+OK\r\n");
        EXPECT_EQ(state(), "no-failover");
        EXPECT_FALSE(its().is_replica());
        EXPECT_EQ(client_("GET k"), "$4\r\nlate\r\n");
        // Reconnecting replicas continue at their offset.
        EXPECT_EQ(is_handing_over ? its().second_id() : its().id(), before);
        EXPECT_THAT(host_.logged.back(), HasSubstr("given up: FAILOVER ABORT"));
    }
    EXPECT_EQ(client_("FAILOVER ABORT"), "-ERR No failover in progress.\r\n");
}

TEST_F(failovers, a_timeout_gives_up_or_goes_on_without_the_rest) {
    EXPECT_EQ(client_("FAILOVER TIMEOUT 2000"), "+OK\r\n");
    test_client writer(*l_.home);
    EXPECT_EQ(writer("SET k late"), "");
    at(1);
    its().tick();
    EXPECT_EQ(state(), "waiting-for-sync");
    at(2);
    its().tick();
    EXPECT_EQ(state(), "no-failover");
    EXPECT_EQ(writer.pushed(), "+OK\r\n");
    EXPECT_THAT(host_.logged, ElementsAre(HasSubstr("no replica had everything in time")));

    EXPECT_EQ(client_("FAILOVER TO test 7001 FORCE TIMEOUT 1000"), "+OK\r\n");
    at(4);
    its().tick();
    EXPECT_EQ(state(), "failover-in-progress");
    EXPECT_EQ(its().master_port(), 7001);
}

TEST_F(failovers, the_one_that_was_named_takes_over_and_no_other) {
    test_client second(*l_.home);
    second("REPLCONF listening-port 7002 ip-address 10.0.0.2");
    l_.join(second);
    EXPECT_EQ(client_("FAILOVER TO 10.0.0.2 7002"), "+OK\r\n");
    catch_up(replica_);
    EXPECT_EQ(state(), "waiting-for-sync");
    catch_up(second);
    EXPECT_EQ(state(), "failover-in-progress");
    EXPECT_EQ(its().master_host(), "10.0.0.2");
    EXPECT_EQ(its().master_port(), 7002);
}

TEST_F(failovers, what_cannot_be_done_is_refused) {
    const auto refuses = [&](std::string_view what, std::string_view why) {
        EXPECT_EQ(client_("FAILOVER" + std::string(what)), "-ERR " + std::string(why) + "\r\n");
    };
    refuses(" TO test 7001 FORCE",
            "FAILOVER with force option requires both a timeout and target HOST and IP.");
    refuses(" TIMEOUT 5 FORCE",
            "FAILOVER with force option requires both a timeout and target HOST and IP.");
    refuses(" TO test 7002", "FAILOVER target HOST and PORT is not a replica.");
    refuses(" TO other 7001", "FAILOVER target HOST and PORT is not a replica.");
    refuses(" TO test 72537", "FAILOVER target HOST and PORT is not a replica.");
    refuses(" TO test x", "value is not an integer or out of range");
    refuses(" TIMEOUT 0", "FAILOVER timeout must be greater than 0");
    refuses(" TIMEOUT x", "value is not an integer or out of range");
    for (const char* const wrong :
         {" TIMEOUT", " TO test", " ABORT x", " FORCE FORCE", " TIMEOUT 1 TIMEOUT 1", " x"})
        refuses(wrong, "syntax error");
    EXPECT_EQ(client_("FAILOVER"), "+OK\r\n");
    refuses("", "FAILOVER already in progress.");
    EXPECT_EQ(client_("REPLICAOF NO ONE"), "-ERR REPLICAOF not allowed while failing over.\r\n");
    test_client late(*l_.home);
    late("REPLCONF capa eof");
    EXPECT_EQ(late("PSYNC ? -1"), "-NOMASTERLINK Can't SYNC while failing over\r\n");
    client_("FAILOVER ABORT");

    test_client waiting(*l_.home);
    waiting("REPLCONF listening-port 7003 capa eof");
    EXPECT_EQ(waiting("PSYNC ? -1"), "");
    refuses(" TO test 7003", "FAILOVER target replica is not online.");
    client_("REPLICAOF 127.0.0.1 1");
    refuses("", "FAILOVER is not valid when server is a replica.");
    client_("REPLICAOF NO ONE");
    refuses("", "FAILOVER requires connected replicas.");
}

TEST_F(failovers, a_pause_of_clients_and_one_of_writes_are_two) {
    test_client writer(*l_.home);
    test_client reader(*l_.home);
    EXPECT_EQ(client_("CLIENT PAUSE 5000"), "+OK\r\n");
    // No client could request it now.
    its().begin_failover({});
    EXPECT_EQ(writer("SET k w"), "");
    EXPECT_EQ(reader("GET k"), "");
    at(5);
    l_.home->end_wait(reader.who());
    EXPECT_EQ(reader.pushed(), "$1\r\nv\r\n");
    EXPECT_EQ(writer.pushed(), "");
    // Nor does the end of one hold end the other.
    EXPECT_EQ(client_("CLIENT UNPAUSE"), "+OK\r\n");
    EXPECT_EQ(writer.pushed(), "");
    EXPECT_EQ(client_("CLIENT PAUSE 5000 WRITE"), "+OK\r\n");
    its().abort_failover("for the test");
    EXPECT_EQ(writer.pushed(), "");
    EXPECT_EQ(client_("CLIENT UNPAUSE"), "+OK\r\n");
    EXPECT_EQ(writer.pushed(), "+OK\r\n");
}

TEST_F(failovers, keys_neither_end_nor_are_evicted_meanwhile) {
    const auto wait = [&] {
        at(30);
        for (int i = 0; i < 100; ++i) l_.home->upkeep();
        its().tick();
    };
    client_("SET short v EX 1");
    EXPECT_EQ(client_("FAILOVER"), "+OK\r\n");
    const std::uint64_t before = its().offset();
    client_("CONFIG SET maxmemory 1 maxmemory-policy allkeys-lru");
    wait();
    EXPECT_EQ(client_("DBSIZE"), ":2\r\n");
    EXPECT_EQ(its().offset(), before) << "nor is there a PING";
    EXPECT_EQ(client_("FAILOVER ABORT"), "+OK\r\n");
    wait();
    EXPECT_EQ(client_("DBSIZE"), ":0\r\n");
}

TEST_F(failovers, reads_add_nothing_to_the_stream_meanwhile) {
    client_("SET short v EX 1");
    client_("HSET fields a 1 b 2");
    client_("HEXPIRE fields 1 FIELDS 1 a");
    test_client waiting(*l_.home);
    waiting("SET w 1");
    EXPECT_EQ(client_("FAILOVER"), "+OK\r\n");
    const std::uint64_t before = its().offset();
    at(5);
    EXPECT_EQ(client_("GET short"), "$-1\r\n");
    EXPECT_EQ(client_("EXISTS short"), ":0\r\n");
    EXPECT_EQ(client_("HGETALL fields"), "*2\r\n$1\r\nb\r\n$1\r\n2\r\n");
    EXPECT_EQ(waiting("WAIT 1 0"), "");
    EXPECT_EQ(its().offset(), before);
    EXPECT_EQ(client_("DBSIZE"), ":4\r\n");
    catch_up(replica_);
    EXPECT_EQ(waiting.pushed(), ":1\r\n");
    EXPECT_EQ(state(), "failover-in-progress");
    EXPECT_EQ(client_("FAILOVER ABORT"), "+OK\r\n");
    EXPECT_EQ(client_("GET short"), "$-1\r\n");
    EXPECT_EQ(client_("HLEN fields"), ":1\r\n");
    EXPECT_EQ(client_("DBSIZE"), ":3\r\n");
}

TEST_F(failovers, what_begins_or_ends_one_in_a_transaction_may_write_there) {
    client_("SET short v EX 1");
    at(5);
    client_("MULTI");
    client_("FAILOVER");
    client_("SET short w");
    client_("INCR n");
    EXPECT_EQ(client_("EXEC"), "*3\r\n+OK\r\n+OK\r\n:1\r\n");
    EXPECT_EQ(client_("DBSIZE"), ":3\r\n");
    EXPECT_EQ(client_("GET short"), "$1\r\nw\r\n");
    client_("FAILOVER ABORT");
    EXPECT_EQ(client_("DEL short"), ":1\r\n");
    EXPECT_EQ(client_("DBSIZE"), ":2\r\n");
}

TEST_F(failovers, what_hooks_answer_meanwhile_waits_for_the_end) {
    struct : hook_host {
        void hook_work_came() noexcept override {}
    } host;
    hook_options options;
    options.has_miss = true;
    read_through& hooked = read_through::attach(*l_.home, options, host);
    EXPECT_EQ(client_("FAILOVER"), "+OK\r\n");
    const std::uint64_t before = its().offset();
    test_client reader(*l_.home);
    EXPECT_EQ(reader("GET missing"), "");
    hook_job job;
    ASSERT_TRUE(hooked.take(job));
    hook_result result;
    result.id = job.id;
    result.value = "brought";
    hooked.finish(std::move(result));
    hooked.tick();
    EXPECT_EQ(its().offset(), before);
    EXPECT_EQ(reader.pushed(), "");
    EXPECT_EQ(client_("GET k"), "$1\r\nv\r\n");
    EXPECT_EQ(client_("FAILOVER ABORT"), "+OK\r\n");
    hooked.tick();
    EXPECT_EQ(reader.pushed(), "$7\r\nbrought\r\n");
    EXPECT_GT(its().offset(), before);
}

TEST_F(failovers, a_replica_leads_when_its_master_asks) {
    recording_host host;
    engine home;
    test_client client(home);
    test_client master(home);
    EXPECT_THAT(master("PSYNC x 1 FAILOVER"),
                StartsWith("-ERR PSYNC FAILOVER can't be sent to a master."));
    client("REPLICAOF 127.0.0.1 1");
    replication& links = *home.internals().replication.replicating;
    links.host = &host;
    const std::string id(40, 'a');
    links.begin_load();
    links.end_load(id, 100);
    links.feed_from_master("PING\r\n");
    const std::string from = std::to_string(links.offset() + 1);
    master("REPLCONF listening-port 7001 capa eof capa psync2");
    EXPECT_EQ(master("PSYNC " + std::string(40, 'c') + ' ' + from + " FAILOVER"),
              "-ERR PSYNC FAILOVER replid must match my replid.\r\n");
    EXPECT_TRUE(links.is_replica());
    // The link to it is closed by then.
    links.set_link(link_state::connect);
    EXPECT_EQ(master("PSYNC " + id + ' ' + from + " FAILOVER"), "+CONTINUE " + links.id() + "\r\n");
    EXPECT_FALSE(links.is_replica());
    EXPECT_NE(links.id(), id);
    EXPECT_EQ(client("SET k v"), "+OK\r\n");
    EXPECT_THAT(sent_to(home, master.who()), HasSubstr("SET"));
    EXPECT_THAT(host.logged, ElementsAre(HasSubstr("is master from now on")));
}

TEST_F(failovers, a_replica_with_another_master_is_not_promoted) {
    engine_options options;
    options.mode = access_mode::readonly;
    engine home(options);
    test_client client(home);
    test_client master(home);
    replication& links = replication::of(home.internals());
    links.become_replica("127.0.0.1", 1);
    const std::string id(40, 'a');
    links.begin_load();
    links.end_load(id, 100);
    EXPECT_EQ(master("PSYNC " + id + " 101 FAILOVER"),
              "-ERR PSYNC FAILOVER can't be sent to a cache in readonly mode: its option "
              "--replicate names its master\r\n");
    EXPECT_TRUE(links.is_replica());
    EXPECT_THAT(client("SET k v"), StartsWith("-READONLY"));
}

}  // namespace
}  // namespace eddy::cache
