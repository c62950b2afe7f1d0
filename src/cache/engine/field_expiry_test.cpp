// Tests of expiring fields: their visibility, removal, notifications and persistence.
#include "cache/engine/field_expiry.hpp"

#include <eddy/base/random.hpp>

#include "cache/engine/engine.hpp"
#include "cache/engine/engine_state.hpp"
#include "cache/rdb/load.hpp"
#include "cache/rdb/save.hpp"
#include "cache/rdb/snapshot.hpp"
#include "cache/testing/test_client.hpp"
#include "cache/types/timed_fields.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <string>
#include <string_view>

namespace eddy::cache {
namespace {

using testing::arguments;
using testing::parse_reply;
using testing::test_client;

class field_expiry : public ::testing::Test {
protected:
    static constexpr std::int64_t start_ms = 1'700'000'000'000;
    void SetUp() override { at(0); }

    // Sets the time to so many milliseconds after the start.
    void at(std::int64_t ms) { engine_.set_time(std::chrono::milliseconds(start_ms + ms)); }
    void sweep() {
        while (engine_.upkeep()) {
        }
    }
    // Events published since the last call, as "key event", one a line.
    std::string events() {
        std::string all;
        std::string_view left;
        const std::string bytes = listener_.pushed();
        left = bytes;
        constexpr std::string_view channel = "__keyspace@0__:";
        for (std::size_t found; (found = left.find(channel)) != std::string_view::npos;) {
            left.remove_prefix(found + channel.size());
            all += left.substr(0, left.find('\r'));
            left.remove_prefix(left.find('$'));
            left.remove_prefix(left.find('\n') + 1);
            all += ' ';
            all += left.substr(0, left.find('\r'));
            all += '\n';
        }
        return all;
    }
    void listen() {
        client_("CONFIG SET notify-keyspace-events KEA");
        listener_("PSUBSCRIBE __keyspace*");
    }
    std::string sorted(std::string_view command) {
        auto tree = parse_reply(client_(command));
        tree.sort_children(command.starts_with("HGETALL") ? 2 : 1);
        std::string all;
        for (const auto& each : tree.children) all += each.text + ' ';
        return all;
    }
    std::string saved() {
        rdb::saver saver(engine_);
        byte_buffer all;
        while (saver.next(all, all.size() + 1000)) {
        }
        return std::string(all.text());
    }
    static std::string version_of(std::string_view file) { return std::string(file.substr(5, 4)); }

    static engine_options options() {
        engine_options made;
        made.mode = access_mode::admin;
        return made;
    }
    engine engine_{options()};
    test_client client_{engine_};
    test_client listener_{engine_};
};

TEST_F(field_expiry, a_field_that_is_over_is_seen_by_nobody) {
    // One hash is small, one has more fields over than a command removes.
    constexpr int many = 3 * fields_expired_by_command;
    for (const int ending : {2, many}) {
        SCOPED_TRACE(ending);
        client_("FLUSHALL");
        client_("HSET h stays 1 number 5");
        for (int i = 0; i < ending; ++i) {
            const std::string name = "f" + std::to_string(i);
            client_({"HSET", "h", name, "x"});
            ASSERT_EQ(client_({"HPEXPIRE", "h", "100", "FIELDS", "1", name}), "*1\r\n:1\r\n");
        }
        at(100);
        EXPECT_EQ(client_("HLEN h"), ":" + std::to_string(ending + 2) + "\r\n");
        at(101);
        // Each command is once the first one after the expiration.
        for (const std::string_view first :
             {"HLEN h", "HGETALL h", "HGET h f1", "HRANDFIELD h 500"}) {
            const std::string dumped = parse_reply(client_("DUMP h")).text;
            client_(first);
            EXPECT_EQ(client_("HLEN h"), ":2\r\n") << first;
            EXPECT_EQ(sorted("HGETALL h"), "number 5 stays 1 ") << first;
            EXPECT_EQ(sorted("HKEYS h"), "number stays ");
            EXPECT_EQ(sorted("HVALS h"), "1 5 ");
            EXPECT_EQ(sorted("HRANDFIELD h 500"), "number stays ");
            EXPECT_EQ(parse_reply(client_("HRANDFIELD h -50")).children.size(), 50U);
            EXPECT_EQ(parse_reply(client_("HSCAN h 0 COUNT 10000")).children[1].children.size(),
                      4U);
            EXPECT_EQ(client_("HMGET h f1 stays"), "*2\r\n$-1\r\n$1\r\n1\r\n");
            EXPECT_EQ(client_("HEXISTS h f1"), ":0\r\n");
            EXPECT_EQ(client_("HSTRLEN h f1"), ":0\r\n");
            EXPECT_EQ(client_("HTTL h FIELDS 2 f1 stays"), "*2\r\n:-2\r\n:-1\r\n");
            EXPECT_EQ(client_("HPERSIST h FIELDS 1 f1"), "*1\r\n:-2\r\n");
            EXPECT_EQ(client_("HDEL h f1"), ":0\r\n");
            EXPECT_EQ(client_({"RESTORE", "h", "0", dumped, "REPLACE"}), "+OK\r\n");
        }
        client_("HINCRBY h f1 3");
        EXPECT_EQ(client_("HSETNX h f0 new"), ":1\r\n");
        EXPECT_EQ(sorted("HGETALL h"), "f0 new f1 3 number 5 stays 1 ");
        at(0);
    }
}

TEST_F(field_expiry, a_hash_goes_with_its_last_field_and_all_are_told) {
    listen();
    client_("HSET h a 1 b 2");
    client_("HPEXPIRE h 10 FIELDS 1 a");
    client_("HPEXPIRE h 20 FIELDS 1 b");
    EXPECT_EQ(events(), "h hset\nh hexpire\nh hexpire\n");
    at(15);
    sweep();
    EXPECT_EQ(events(), "h hexpired\n");
    at(30);
    sweep();
    EXPECT_EQ(events(), "h hexpired\nh del\n");
    EXPECT_EQ(client_("DBSIZE"), ":0\r\n");
    // The same for an access before the sweep.
    client_("HSET h a 1 b 2");
    client_("HPEXPIRE h 10 FIELDS 2 a b");
    events();
    at(60);
    EXPECT_EQ(client_("HGET h a"), "$-1\r\n");
    EXPECT_EQ(events(), "h hexpired\nh del\n");
    EXPECT_EQ(client_("EXISTS h"), ":0\r\n");
    // A time in the past removes the field at once.
    client_("HSET h a 1 b 2");
    events();
    EXPECT_EQ(client_("HPEXPIREAT h 5 FIELDS 3 a b b"), "*3\r\n:2\r\n:2\r\n:-2\r\n");
    EXPECT_EQ(events(), "h hdel\nh del\n");
}

TEST_F(field_expiry, the_end_of_a_field_breaks_transactions_that_watch_the_hash) {
    client_("HSET h a 1 b 2");
    client_("HPEXPIRE h 10 FIELDS 1 a");
    test_client other(engine_);
    other("WATCH h");
    at(20);
    sweep();
    other("MULTI");
    other("PING");
    EXPECT_EQ(other("EXEC"), "*-1\r\n");
}

TEST_F(field_expiry, setting_a_field_takes_its_end_away_and_counting_keeps_it) {
    const std::string far = std::to_string(start_ms + 1000);
    const auto ends = [&] {
        return parse_reply(client_("HPEXPIRETIME h FIELDS 1 f")).children.at(0).text;
    };
    client_("HSET h f 1");
    const std::string end = "HPEXPIREAT h " + far + " FIELDS 1 f";
    for (const std::string_view taking : {"HSET h f 2", "HMSET h f 2", "HSETEX h FIELDS 1 f 2",
                                          "HPERSIST h FIELDS 1 f", "HGETEX h PERSIST FIELDS 1 f"}) {
        client_(end);
        EXPECT_EQ(ends(), far);
        client_(taking);
        EXPECT_EQ(ends(), "-1") << taking;
    }
    client_(end);
    for (const std::string_view keeping :
         {"HINCRBY h f 1000000", "HINCRBYFLOAT h f 0.25", "HSETNX h f x", "HGET h f",
          "HSETEX h KEEPTTL FIELDS 1 f 7", "HGETEX h FIELDS 1 f", "RENAME h g", "RENAME g h",
          "COPY h c", "DEL h", "RENAME c h", "MOVE h 1", "SELECT 1", "MOVE h 0", "SELECT 0",
          "SWAPDB 0 1", "SWAPDB 0 1", "DEBUG RELOAD"}) {
        client_(keeping);
        if (client_("EXISTS h") == ":1\r\n") EXPECT_EQ(ends(), far) << keeping;
    }
    EXPECT_EQ(ends(), far);
    at(1001);
    sweep();
    EXPECT_EQ(client_("DBSIZE"), ":0\r\n");
}

TEST_F(field_expiry, hashes_are_swept_wherever_they_have_gone) {
    const auto make = [&](const std::string& key) {
        client_({"HSET", key, "a", "1"});
        client_({"HPEXPIRE", key, "10", "FIELDS", "1", "a"});
    };
    make("renamed");
    client_("RENAME renamed new");
    make("moved");
    client_("MOVE moved 3");
    make("copied");
    client_("COPY copied copy");
    client_("COPY copied copy DB 4");
    make("deleted");
    client_("DEL deleted");
    make("overwritten");
    client_("SET overwritten x");
    make("expiring");
    client_("PEXPIRE expiring 5");
    make("swapped");
    client_("SWAPDB 0 7");
    make("flushed");
    client_("FLUSHDB");
    at(20);
    sweep();
    EXPECT_EQ(client_("DBSIZE"), ":0\r\n");
    client_("SELECT 7");
    EXPECT_EQ(client_("KEYS *"), "*1\r\n$11\r\noverwritten\r\n");
    client_("SELECT 3");
    EXPECT_EQ(client_("DBSIZE"), ":0\r\n");
    client_("SELECT 4");
    EXPECT_EQ(client_("DBSIZE"), ":0\r\n");
    EXPECT_EQ(engine_.internals().data.env.fields->size(), 0U);
}

TEST_F(field_expiry, a_sweep_does_a_bounded_piece_of_work) {
    constexpr int hashes = 20;
    constexpr int fields = 500;
    for (int i = 0; i < hashes; ++i) {
        const std::string key = "h" + std::to_string(i);
        for (int f = 0; f < fields; ++f) {
            const std::string name = std::to_string(f);
            client_({"HSETEX", key, "PX", "10", "FIELDS", "1", name, "x"});
        }
    }
    at(20);
    const auto left = [&] {
        std::size_t all = 0;
        dictionary::iterator keys(engine_.internals().data.database(0).table());
        while (const dictionary::slot* const place = keys.next()) {
            all += timed_table::of(*dictionary::entry_of(*place))->order.size();
        }
        return all;
    };
    std::size_t before = left();
    ASSERT_EQ(before, std::size_t{hashes} * fields);
    while (engine_.upkeep(1000)) {
        const std::size_t now = left();
        EXPECT_LE(before - now, 260U);
        EXPECT_LT(now, before);
        before = now;
    }
    EXPECT_EQ(client_("DBSIZE"), ":0\r\n");
}

TEST_F(field_expiry, no_sweep_where_it_is_turned_off) {
    client_("DEBUG SET-ACTIVE-EXPIRE 0");
    client_("HSETEX h PX 10 FIELDS 1 a 1");
    at(20);
    sweep();
    EXPECT_EQ(client_("DBSIZE"), ":1\r\n");
    EXPECT_EQ(client_("HLEN h"), ":0\r\n");
    EXPECT_EQ(client_("DBSIZE"), ":0\r\n");
}

TEST_F(field_expiry, whoever_follows_a_master_waits_for_it) {
    client_("HSET h a 1 b 2");
    client_("HPEXPIRE h 10 FIELDS 2 a b");
    engine_.internals().clients.slow_path |= slow_path::replica;
    engine_.internals().data.env.expired = expired_keys::hide;
    test_client master(engine_);
    master.who().special = client_session::master;
    at(20);
    sweep();
    // Only the key is visible.
    EXPECT_EQ(client_("HLEN h"), ":0\r\n");
    EXPECT_EQ(client_("HGETALL h"), "*0\r\n");
    EXPECT_EQ(client_("HRANDFIELD h"), "$-1\r\n");
    EXPECT_EQ(client_("HRANDFIELD h -3"), "*0\r\n");
    EXPECT_EQ(client_("EXISTS h"), ":1\r\n");
    // The master still has the fields, and may change their times.
    master("HINCRBY h a 5");
    master("HPERSIST h FIELDS 1 b");
    EXPECT_EQ(sorted("HGETALL h"), "b 2 ");
    master("HPERSIST h FIELDS 1 a");
    EXPECT_EQ(client_("HGET h a"), "$1\r\n6\r\n");
    master("HDEL h a b");
    master("HSET h c 1");
    master("HPEXPIREAT h 0 FIELDS 1 c");
    EXPECT_EQ(client_("HLEN h"), ":0\r\n");
    EXPECT_EQ(client_("EXISTS h"), ":1\r\n");
    engine_.internals().clients.slow_path &= static_cast<std::uint16_t>(~slow_path::replica);
    engine_.internals().data.env.expired = expired_keys::go;
    sweep();
    EXPECT_EQ(client_("EXISTS h"), ":0\r\n");
}

// The first named field has expired, and more expired fields precede it than a command removes.
TEST_F(field_expiry, a_field_that_a_command_names_is_gone_before) {
    constexpr int fields = 500;
    for (int i = 0; i < fields; ++i)
        client_(
            {"HSETEX", "h", "PX", std::to_string(i + 1), "FIELDS", "1", std::to_string(i), "7"});
    client_("HSET h stays 1");
    at(fields + 10);
    EXPECT_EQ(client_("HINCRBY h 499 1"), ":1\r\n");
    EXPECT_EQ(client_("HSETNX h 498 x"), ":1\r\n");
    EXPECT_EQ(client_("HPTTL h FIELDS 3 497 498 499"), "*3\r\n:-2\r\n:-1\r\n:-1\r\n");
    EXPECT_EQ(client_("HLEN h"), ":3\r\n");
    sweep();
    EXPECT_EQ(client_("HLEN h"), ":3\r\n");
    EXPECT_NE(client_("INFO stats").find("expired_subkeys:500\r\n"), std::string::npos);
    client_("CONFIG RESETSTAT");
    EXPECT_NE(client_("INFO stats").find("expired_subkeys:0\r\n"), std::string::npos);
}

TEST_F(field_expiry, only_a_hash_with_such_fields_costs_more) {
    const auto used = [&] { return engine_.stats().used_memory; };
    client_("HSET h a 1 b 2");
    const std::size_t plain = used();
    client_("HPEXPIRE h 10 FIELDS 1 nosuch");
    client_("HPERSIST h FIELDS 1 a");
    client_("HGETEX h FIELDS 1 a");
    EXPECT_EQ(used(), plain);
    EXPECT_EQ(client_("OBJECT ENCODING h"), "$8\r\nlistpack\r\n");
    client_("HPEXPIRE h 10 FIELDS 1 a");
    EXPECT_GT(used(), plain);
    EXPECT_EQ(client_("OBJECT ENCODING h"), "$10\r\nlistpackex\r\n");
    client_("DEL h");
    sweep();
    client_("HSET h a 1 b 2");
    EXPECT_EQ(used(), plain);
}

TEST_F(field_expiry, the_file_is_of_version_12_only_where_it_must_be) {
    client_("HSET plain a 1");
    EXPECT_EQ(version_of(saved()), "0010");
    client_("HSET h a 1 b 2 over 3");
    client_("HPEXPIRE h 100 FIELDS 1 a");
    client_("HPEXPIRE h 10 FIELDS 1 over");
    client_("HSETEX gone PX 10 FIELDS 1 a 1");
    at(20);
    const std::string file = saved();
    EXPECT_EQ(version_of(file), "0012");
    for (const bool keeps : {false, true}) {
        engine other;
        test_client ask(other);
        other.set_time(std::chrono::milliseconds(start_ms + 20));
        rdb::load_options how;
        how.keep_expired = keeps;
        rdb::loader loader(other, how);
        EXPECT_EQ(loader.feed(file), file.size());
        ASSERT_EQ(loader.now(), rdb::reader::status::done) << loader.fault().what;
        EXPECT_EQ(loader.counts().keys, keeps ? 3U : 2U);
        EXPECT_EQ(loader.counts().empty, keeps ? 0U : 1U);
        EXPECT_EQ(ask("HPTTL h FIELDS 3 a b over"), "*3\r\n:80\r\n:-1\r\n:-2\r\n");
        EXPECT_EQ(ask("HLEN h"), ":2\r\n");
        other.set_time(std::chrono::milliseconds(start_ms + 200));
        while (other.upkeep()) {
        }
        EXPECT_EQ(ask("HGETALL h"), "*2\r\n$1\r\nb\r\n$1\r\n2\r\n");
        EXPECT_EQ(ask("DBSIZE"), ":2\r\n");
    }
    sweep();
    client_("HPERSIST h FIELDS 1 a");
    EXPECT_EQ(version_of(saved()), "0010");
}

TEST_F(field_expiry, fields_of_a_huge_hash_stay_until_a_snapshot_has_it) {
    for (int i = 0; i < 5000; ++i) client_({"HSET", "h", "f" + std::to_string(i), "v"});
    client_("HPEXPIRE h 10 FIELDS 2 f1 f2");
    rdb::snapshot* const image = rdb::snapshot::begin(engine_);
    at(100);
    while (engine_.upkeep()) {
    }
    // The fields are invisible, and no client waits for their removal.
    EXPECT_LT(image->waiting(), 1000U);
    EXPECT_EQ(client_("HMGET h f1 f3"), "*2\r\n$-1\r\n$1\r\nv\r\n");
    int turns = 0;
    for (; engine_.is_behind() && turns < 1000; ++turns) engine_.go_on();
    EXPECT_GT(turns, 2);
    EXPECT_EQ(engine_.stats().fields_with_expiry, 1U);
    sweep();
    EXPECT_EQ(engine_.stats().fields_with_expiry, 0U);
    image->end();
    sweep();
}

TEST_F(field_expiry, a_snapshot_has_the_fields_of_its_instant) {
    random_generator random(7);
    for (int i = 0; i < 400; ++i) {
        const std::string key = "h" + std::to_string(i);
        client_({"HSET", key, "a", std::to_string(i), "b", "2"});
        client_({"HPEXPIRE", key, std::to_string(10 + i % 3 * 1000), "FIELDS", "1", "a"});
    }
    rdb::snapshot* const image = rdb::snapshot::begin(engine_);
    ASSERT_NE(image, nullptr);
    // Meanwhile a third of the fields expire, others are changed, and new hashes are added.
    at(100);
    byte_buffer file;
    for (int i = 0; image->step(file, file.size() + 300) == rdb::snapshot::status::writing; ++i) {
        engine_.upkeep(40);
        const std::string key = "h" + std::to_string(random.below(400));
        client_({"HPEXPIRE", key, "77777", "FIELDS", "1", "b"});
        client_({"HSETEX", "new" + std::to_string(i), "PX", "5000", "FIELDS", "1", "a", "1"});
    }
    image->end();
    engine other;
    other.set_time(std::chrono::milliseconds(start_ms));
    rdb::loader loader(other);
    EXPECT_EQ(loader.feed(file.text()), file.size());
    ASSERT_EQ(loader.now(), rdb::reader::status::done) << loader.fault().what;
    EXPECT_EQ(loader.counts().keys, 400U);
    test_client ask(other);
    for (int i = 0; i < 400; ++i) {
        const std::string key = "h" + std::to_string(i);
        EXPECT_EQ(ask({"HPTTL", key, "FIELDS", "2", "a", "b"}),
                  "*2\r\n:" + std::to_string(10 + i % 3 * 1000) + "\r\n:-1\r\n");
        EXPECT_EQ(ask({"HGET", key, "a"}), "$" + std::to_string(std::to_string(i).size()) + "\r\n" +
                                               std::to_string(i) + "\r\n");
    }
}

// Comparison with a simple model, over all commands that change a hash.
TEST_F(field_expiry, random_changes_and_times_agree_with_a_model) {
    random_generator random(11);
    struct one {
        std::string value;
        std::int64_t ends = 0;
    };
    std::map<std::string, one> model;
    std::int64_t now = 0;
    for (int i = 0; i < 20'000; ++i) {
        const std::string f = "f" + std::to_string(random.below(200));
        if (random.below(10) == 0) at(now += static_cast<std::int64_t>(random.below(40)));
        std::erase_if(model, [&](const auto& each) {
            return each.second.ends != 0 && each.second.ends < now;
        });
        switch (random.below(6)) {
            case 0:
            case 1: {
                const std::string value(random.below(100), 'v');
                client_({"HSET", "h", f, value.empty() ? "e" : value});
                model[f] = {value.empty() ? "e" : value, 0};
                break;
            }
            case 2:
                client_({"HDEL", "h", f});
                model.erase(f);
                break;
            case 3: {
                const auto after = static_cast<std::int64_t>(random.below(300)) + 1;
                client_({"HPEXPIRE", "h", std::to_string(after), "FIELDS", "1", f});
                if (model.contains(f)) model[f].ends = now + after;
                break;
            }
            case 4:
                client_({"HPERSIST", "h", "FIELDS", "1", f});
                if (model.contains(f)) model[f].ends = 0;
                break;
            default: engine_.upkeep(30);
        }
        ASSERT_EQ(client_("HLEN h"), ":" + std::to_string(model.size()) + "\r\n") << i;
        const auto found = model.find(f);
        const std::string got = client_({"HGET", "h", f});
        if (found == model.end()) {
            ASSERT_EQ(got, "$-1\r\n") << i;
        } else {
            ASSERT_EQ(parse_reply(got).text, found->second.value) << i;
            const std::string left =
                found->second.ends == 0 ? "-1" : std::to_string(found->second.ends - now);
            ASSERT_EQ(parse_reply(client_({"HPTTL", "h", "FIELDS", "1", f})).children[0].text,
                      left);
        }
    }
}

}  // namespace
}  // namespace eddy::cache
