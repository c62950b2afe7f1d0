// Tests of FAILOVER between servers that die, send wrong replies, or lose their connections.
#include "base/test_rounds.hpp"
#include "runtime/cache/replication/replication_servers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::runtime {
namespace {

using namespace runtime::testing;
using ::testing::HasSubstr;
using ::testing::StartsWith;

EDDY_ON_EVERY_IO_BACKEND(cache_failover);

constexpr std::string_view read_only = "-READONLY You can't write against a read only replica.";
constexpr std::string_view is_master_text = "-ERR PSYNC FAILOVER can't be sent to a master.\r\n";
constexpr std::string_view is_replica_text = "-ERR PSYNC FAILOVER replid must match my replid.\r\n";
const std::string other_id(40, 'f');

/// Full copy of a server without keys.
std::string empty_copy(std::uint64_t offset) {
    const std::string mark(40, 'b');
    return "+FULLRESYNC " + other_id + ' ' + std::to_string(offset) + "\r\n$EOF:" + mark +
           "\r\nREDIS0009\xff" + std::string(8, '\0') + mark;
}

/// A replica that acknowledges everything at once, and to which the master then connects.
class pretender {
public:
    pretender() { listening_ = must(loop::current().listen(must(endpoint::ip("127.0.0.1", 0)))); }

    /// Answers to its PSYNCs, in order; an empty one closes the connection.
    std::deque<std::string> answers;
    /// The arguments of each.
    std::vector<std::string> asked;

    /// Replicates until it is closed.
    task<void> replicate(endpoint master) {
        talker link = co_await talker::to(master);
        co_await link.say("REPLCONF listening-port " + std::to_string(listening_.local().port()) +
                          " capa eof capa psync2\r\nPSYNC ? -1\r\n");
        // It is closed in the end.
        while (co_await link.socket.write_all("REPLCONF ACK 1000000000\r\n")) {
            if (!co_await loop::current().sleep_for(5ms)) co_return;
        }
    }

    /// Serves its replicas, one after the other.
    task<void> serve() {
        for (;;) {
            result<stream> peer = co_await listening_.accept();
            if (!peer) co_return;
            talker replica(std::move(*peer));
            try {
                while (co_await serve_one(replica)) {
                }
            } catch (const std::exception&) {
                // It has left.
            }
        }
    }

private:
    task<bool> serve_one(talker& replica) {
        const std::string head = co_await replica.line();
        std::vector<std::string> words;
        for (int left = std::stoi(head.substr(1)); left > 0; --left) {
            static_cast<void>(co_await replica.line());
            words.push_back(co_await replica.line());
            words.back().pop_back();
        }
        if (words[0] == "PING") co_await replica.say("+PONG\r\n");
        if (words[0] == "REPLCONF" && words[1] != "ACK") co_await replica.say("+OK\r\n");
        if (words[0] != "PSYNC") co_return true;
        asked.emplace_back(words.size() > 3 ? words[3] : "");
        std::string answer = answers.empty() ? "" : answers.front();
        if (!answers.empty()) answers.pop_front();
        if (answer.empty()) co_return false;
        co_await replica.say(std::move(answer));
        co_return true;
    }

    listener listening_;
};

/// A master with a key, a pretended replica, and a client that writes.
struct scene {
    server master;
    pretender target;
    talker writer;
    scope tasks;

    explicit scene(cancel_source* parent) : tasks(parent) {}

    task<void> begin(std::deque<std::string> answers) {
        target.answers = std::move(answers);
        co_await master.start();
        EXPECT_EQ(co_await master.ask("SET k v"), "+OK");
        tasks.spawn(target.serve());
        tasks.spawn(target.replicate((*master.cache)->local()));
        while (co_await master.info("replication", "connected_slaves") != "1" ||
               !(co_await master.info("replication", "slave0")).contains("state=online"))
            must(co_await loop::current().sleep_for(2ms));
        writer = co_await talker::to((*master.cache)->local());
        EXPECT_EQ(co_await master.ask("FAILOVER"), "+OK");
        co_await writer.say("SET k late\r\n");
    }
    task<void> until_over() {
        while (co_await master.info("replication", "master_failover_state") != "no-failover")
            must(co_await loop::current().sleep_for(2ms));
    }
    /// This server stays master, and has all that it had.
    task<void> stays_master() {
        co_await until_over();
        EXPECT_EQ(co_await writer.line(), "+OK\r");
        EXPECT_EQ(co_await master.text("GET k"), "late");
        EXPECT_EQ(co_await master.info("replication", "role"), "master");
        EXPECT_TRUE(master.cache->events.has("the failover is given up"));
    }
    task<void> end() {
        co_await master.stop();
        tasks.cancel();
        co_await tasks.join();
    }
};

// It was asked, may have led, and is now another server at the same place.
TEST_P(cache_failover, a_replica_that_came_back_empty_does_not_take_the_data_away) {
    run([&]() -> task<void> {
        scene here(co_await current_source());
        co_await here.begin({"", std::string(is_master_text), empty_copy(0)});
        co_await here.stays_master();
        EXPECT_THAT(here.target.asked, ::testing::ElementsAre("FAILOVER", "FAILOVER", ""));
        EXPECT_TRUE(here.master.cache->events.has("it is master of other data"));
        EXPECT_FALSE(here.master.cache->events.has("takes all data"));
        co_await here.end();
    });
}

TEST_P(cache_failover, a_replica_that_came_back_with_old_data_does_not_take_the_new_away) {
    run([&]() -> task<void> {
        scene here(co_await current_source());
        co_await here.begin({empty_copy(1)});
        co_await here.stays_master();
        EXPECT_THAT(here.target.asked, ::testing::ElementsAre("FAILOVER"));
        co_await here.end();
    });
}

TEST_P(cache_failover, a_replica_whose_reply_was_lost_is_replicated_once_it_is_master) {
    run([&]() -> task<void> {
        // One that has forgotten the end of the stream sends all that it has.
        for (const bool continues : {true, false}) {
            const std::string change = "*3\r\n$3\r\nSET\r\n$1\r\nn\r\n$1\r\n1\r\n";
            const std::string stream =
                (continues ? "+CONTINUE " + other_id + "\r\n" : empty_copy(900'000'000)) + change;
            scene here(co_await current_source());
            co_await here.begin({"", std::string(is_master_text), stream});
            co_await here.until_over();
            EXPECT_EQ(co_await here.writer.line(), std::string(read_only) + "\r");
            co_await here.master.until_up();
            while (co_await here.master.text("GET n") != "1")
                must(co_await loop::current().sleep_for(2ms));
            EXPECT_EQ(co_await here.master.text("GET k"), continues ? "v" : "$-1");
            EXPECT_EQ(co_await here.master.info("replication", "role"), "slave");
            co_await here.end();
        }
    });
}

TEST_P(cache_failover, a_replica_that_is_one_still_leaves_the_master_as_it_is) {
    run([&]() -> task<void> {
        scene here(co_await current_source());
        co_await here.begin({"", std::string(is_replica_text)});
        co_await here.stays_master();
        EXPECT_THAT(here.target.asked, ::testing::ElementsAre("FAILOVER", "FAILOVER"));
        co_await here.end();
    });
}

TEST_P(cache_failover, a_replica_in_readonly_mode_leaves_the_master_as_it_is) {
    run([&]() -> task<void> {
        server master;
        co_await master.start();
        EXPECT_EQ(co_await master.ask("SET k v"), "+OK");
        server replica(
            {{"port", 0}, {"mode", "readonly"}, {"replicate", "127.0.0.1:" + master.port()}});
        co_await replica.start();
        co_await replica.until_up();
        EXPECT_EQ(co_await master.ask("FAILOVER"), "+OK");
        co_await until([&] { return master.cache->events.has("cache in readonly mode"); });
        EXPECT_TRUE(master.cache->events.has("the failover is given up"));
        EXPECT_EQ(co_await master.ask("SET k w"), "+OK");
        co_await replica.until_up();
        while (co_await replica.text("GET k") != "w") must(co_await loop::current().sleep_for(2ms));
        EXPECT_EQ(co_await replica.info("replication", "role"), "slave");
        co_await master.stop();
        co_await replica.stop();
    });
}

// The replica may be master by now: only the operator can decide that writes resume here.
TEST_P(cache_failover, without_a_reply_writes_wait_for_failover_abort) {
    run([&]() -> task<void> {
        scene here(co_await current_source());
        co_await here.begin({"", "+NONSENSE\r\n", "-LOADING not yet\r\n",
                             std::string(is_master_text), "-NOMASTERLINK not yet\r\n",
                             "+CONTINUE short\r\n"});
        co_await until([&] { return here.target.asked.size() >= (simulated() ? 7 : 3); });
        EXPECT_EQ(co_await here.master.info("replication", "master_failover_state"),
                  "failover-in-progress");
        EXPECT_EQ(co_await here.master.text("GET k"), "v");
        EXPECT_EQ(co_await here.master.ask("FAILOVER ABORT"), "+OK");
        co_await here.stays_master();
        co_await here.end();
    });
}

/// Counts up, one after the other, until `stops` is set or the server is a replica.
task<void> count_up(talker& at, std::int64_t& acknowledged, const bool& stops) {
    while (!stops) {
        co_await at.say("INCR n\r\n");
        const std::string reply = co_await at.line();
        if (reply.starts_with(read_only)) co_return;
        EXPECT_EQ(reply, ":" + std::to_string(acknowledged + 1) + "\r");
        ++acknowledged;
    }
}

/// Failovers between two servers and back, over a link that is cut after ever more bytes.
struct breaking_links {
    /// The bytes after which the next one is cut, and how far the one after that is.
    std::size_t at = 1;
    std::size_t step = 1;
    /// Until one has lasted long enough.
    bool was_cut = true;
    int failovers = 0;

    task<void> some(int rounds, std::uint64_t seed) {
        co_await master_.start();
        co_await replica_.start();
        relay between((*replica_.cache)->local(), seed);
        scope tasks(co_await current_source());
        tasks.spawn(between.serve());
        EXPECT_EQ(co_await replica_.ask("CONFIG SET replica-announce-port " + between.port()),
                  "+OK");
        for (; was_cut && rounds > 0; --rounds, at += step) co_await one(between);
        EXPECT_EQ(co_await master_.info("stats", "sync_full"), "1");
        tasks.cancel();
        co_await tasks.join();
        co_await master_.stop();
        co_await replica_.stop();
    }

private:
    task<void> one(relay& between) {
        co_await replica_.replicate(master_.port());
        co_await replica_.until_up();
        co_await replica_.until_equal(master_);
        between.cut_once_after(at);
        bool stops = false;
        talker writer = co_await talker::to((*master_.cache)->local());
        scope writes(co_await current_source());
        writes.spawn(count_up(writer, acknowledged_, stops));
        EXPECT_EQ(co_await master_.ask("FAILOVER"), "+OK");
        while (co_await master_.info("replication", "master_failover_state") != "no-failover")
            must(co_await loop::current().sleep_for(2ms));
        stops = true;
        co_await writes.join();
        was_cut = !between.is_to_cut();
        between.cut_once_after(0);
        const bool is_master = co_await master_.info("replication", "role") == "master";
        EXPECT_EQ(co_await replica_.info("replication", "role"), is_master ? "slave" : "master")
            << "cut after " << at;
        EXPECT_EQ(co_await (is_master ? master_ : replica_).text("GET n"),
                  std::to_string(acknowledged_))
            << "cut after " << at;
        if (is_master) co_return;
        ++failovers;
        EXPECT_EQ(co_await replica_.ask("INCR n"), ":" + std::to_string(++acknowledged_));
        co_await master_.until_up();
        co_await master_.until_equal(replica_);
        EXPECT_EQ(co_await master_.ask("REPLICAOF NO ONE"), "+OK");
    }

    server master_;
    server replica_;
    std::int64_t acknowledged_ = 0;
};

TEST_P(cache_failover, a_link_that_breaks_at_any_byte_loses_no_acknowledged_write) {
    // A second passes after each cut before the link is tried again: the simulator's is short.
    const std::size_t step = simulated() ? eddy::testing::place_step : 67;
    constexpr int rounds_at_once = 10;
    std::size_t at = 1;
    int failovers = 0;
    for (bool was_cut = true; was_cut && !HasFailure();) {
        run([&]() -> task<void> {
            breaking_links here;
            here.at = at;
            here.step = step;
            co_await here.some(rounds_at_once, random()());
            at = here.at;
            was_cut = here.was_cut;
            failovers += here.failovers;
        });
    }
    EXPECT_GT(failovers, 1) << "a cut behind the question ends in a failover";
}

}  // namespace
}  // namespace eddy::runtime
