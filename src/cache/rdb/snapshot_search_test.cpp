// Search for torn snapshots: a series of snapshots beside commands that change, replace and remove
// a few values, each larger than many slices. EDDY_SEED and EDDY_RUNS make the search longer.
#include <eddy/base/random.hpp>

#include "cache/engine/engine.hpp"
#include "cache/rdb/snapshot.hpp"
#include "cache/rdb/snapshot_fixture.hpp"
#include "cache/rdb/snapshot_traffic.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::cache {
namespace {

using namespace cache::testing;

/// Commands of two more clients that keep the keys of `disturbance` large, as it shrinks values
/// faster than it fills them.
class large_values {
public:
    large_values(cache_with_client& of, std::uint64_t seed)
        : it_(of), random_(seed), clients_{test_client(of.home), test_client(of.home)} {
        for (unsigned i = 0; i < kinds; ++i) add_to(clients_[0], i, most_elements);
    }

    void command() {
        test_client& client = clients_[random_.below(clients_.size())];
        if (client.woken()) client.pushed();
        if (client.who().blocked) return;
        const auto which = static_cast<unsigned>(random_.below(kinds));
        const std::string key(keys[which]);
        switch (random_.below(40)) {
            case 0: client({"DEL", key}); break;
            case 1: client({"UNLINK", key, other_key()}); break;
            case 2: client({"SET", key, "replaced"}); break;
            case 3: client({"RENAME", key, other_key()}); break;
            case 4: client({"COPY", key, other_key(), "REPLACE"}); break;
            case 5: client({"MOVE", key, number(databases)}); break;
            case 6: client({"PEXPIRE", key, number(4000)}); break;
            case 7: client({"PERSIST", key}); break;
            case 8: client({"SELECT", number(databases)}); break;
            case 9: client({"SWAPDB", number(databases), number(databases)}); break;
            case 10: client({random_.below(4) == 0 ? "FLUSHALL" : "FLUSHDB", "ASYNC"}); break;
            case 11: at_once(client, {"DEL", key}); break;
            case 12: at_once(client, {"RPUSH", key, "pushed"}); break;
            case 13: at_once(client, {"HSET", key, number(most_elements), "set"}); break;
            case 14: transaction(client, which); break;
            case 15: wait_for_key(client, key); break;
            case 16: client({"HPEXPIRE", key, number(3000), "FIELDS", "1", number(300)}); break;
            case 17: take_from(client, which); break;
            case 18:
            case 19:
            case 20: add_to(client, which, most_elements); break;
            default: add_to(client, which, 1 + random_.below(3)); break;
        }
    }

    void end_waits() {
        for (test_client& each : clients_) {
            it_.home.end_wait(each.who());
            if (each.woken()) each.pushed();
        }
    }

private:
    static constexpr unsigned kinds = 7;
    static constexpr std::array<std::string_view, kinds> keys = {"k0", "k1", "k2", "k3",
                                                                 "k4", "k5", "s0"};
    static constexpr std::size_t most_elements = 400;
    static constexpr unsigned databases = 3;

    std::string number(std::uint64_t below) { return std::to_string(random_.below(below)); }
    std::string other_key() { return std::string(keys[random_.below(kinds)]); }

    // A key that other clients have replaced by another type is removed.
    void add_to(test_client& client, unsigned which, std::size_t elements) {
        const std::string key(keys[which]);
        arguments words;
        const auto add = [&](std::initializer_list<std::string> each) {
            words.insert(words.end(), each);
        };
        switch (which) {
            case 0: words = {random_.below(2) == 0 ? "RPUSH" : "LPUSH", key}; break;
            case 1:
            case 5: words = {"HSET", key}; break;
            case 2: words = {"SADD", key}; break;
            case 3: words = {"ZADD", key}; break;
            case 4: client({"SETRANGE", key, number(elements * 40), "some text"}); return;
            default:
                for (std::size_t i = 0; i < std::min<std::size_t>(elements, 40); ++i)
                    client({"XADD", key, "*", "f", number(1000), "g", std::string(50, 'g')});
                return;
        }
        for (std::size_t i = 0; i < elements; ++i) {
            const std::string n = number(most_elements);
            if (which == 0 || which == 2)
                add({n});
            else if (which == 3)
                add({n, "m" + n});
            else
                add({n, "value " + n});
        }
        if (client.ask(words).starts_with("-WRONGTYPE")) client({"DEL", key});
    }
    void take_from(test_client& client, unsigned which) {
        const std::string key(keys[which]);
        switch (which) {
            case 0: client({"LPOP", key, number(10)}); break;
            case 1:
            case 5: client({"HDEL", key, number(most_elements)}); break;
            case 2: client({"SPOP", key, number(10)}); break;
            case 3: client({"ZPOPMIN", key, number(10)}); break;
            case 4: client({"APPEND", key, std::string(random_.below(3000), 'a')}); break;
            default: client({"XTRIM", key, "MAXLEN", number(100)}); break;
        }
    }
    // By a script that does not name the key, so that the command cannot wait.
    void at_once(test_client& client, arguments words) {
        arguments script = {"EVAL", "return redis.pcall(unpack(ARGV))", "0"};
        script.insert(script.end(), words.begin(), words.end());
        client.ask(script);
    }
    void transaction(test_client& client, unsigned which) {
        client("MULTI");
        add_to(client, which, 2);
        client({"DEL", other_key()});
        add_to(client, static_cast<unsigned>(random_.below(kinds)), 2);
        client("EXEC");
    }
    // The key must be created by another client.
    void wait_for_key(test_client& client, const std::string& key) {
        if (std::ranges::any_of(clients_, [](test_client& each) { return each.who().blocked; }))
            return;
        client({"BLMOVE", key, other_key(), "LEFT", "RIGHT", "0.5"});
    }

    cache_with_client& it_;
    random_generator random_;
    std::array<test_client, 2> clients_;
};

rdb::snapshot_options random_options(random_generator& random) {
    rdb::snapshot_options made;
    made.slice_parts = 4 + random.below(60);
    made.piece_bytes = 256U << random.below(5);
    made.huge_elements = random.below(100);
    made.huge_bytes = random.below(20'000);
    // The base of a rewritten append-only file, and a replica's full copy.
    made.aof_base = random.below(3) == 0;
    made.stream_database = static_cast<int>(random.below(3)) - 1;
    if (random.below(8) == 0) made.max_waiting = random.below(50'000);
    if (random.below(3) == 0) made.form = rdb::file_form::commands;
    return made;
}

/// Successive snapshots of one cache.
class image_row {
public:
    explicit image_row(std::uint64_t seed)
        : random_(seed), it_(seed + 1), others_(it_, seed + 2, 0), large_(it_, seed + 3) {
        others_.keep_few();
        others_.fill();
        if (random_.below(4) != 0) return;
        // Keys are evicted meanwhile.
        it_.ask("CONFIG SET maxmemory-policy allkeys-random");
        const std::size_t limit = it_.home.stats().used_memory + 50'000;
        it_.ask({"CONFIG", "SET", "maxmemory", std::to_string(limit)});
    }

    void one_image() {
        commands(random_.below(200));
        while (!snapshot::may_begin(it_.home)) commands(1);
        const rdb::snapshot_options options = random_options(random_);
        const std::string before = fingerprint(it_.home, options.form);
        snapshot* const image = snapshot::begin(it_.home, options);
        ASSERT_NE(image, nullptr);
        const std::size_t most = 1 + random_.below(4000);
        const std::uint64_t pace = 1 + random_.below(20);
        const bool is_given_up = random_.below(10) == 0;
        std::string file;
        byte_buffer out;
        status now = status::writing;
        while (now == status::writing && !(is_given_up && random_.below(20) == 0)) {
            commands(random_.below(pace));
            now = image->step(out, 1 + random_.below(most));
            file += out.text();
            out.clear();
        }
        if (now == status::failed) ASSERT_LT(options.max_waiting, 50'000U) << image->fault();
        image->end();
        if (now == status::done) EXPECT_EQ(loaded(file, options.form), before);
    }

    void end() {
        while (it_.home.is_behind()) turn();
        clear_up(it_.home);
        EXPECT_EQ(marked(it_.home), 0);
        it_.ask("FLUSHALL");
        while (it_.home.is_behind()) turn();
        clear_up(it_.home);
    }

private:
    void commands(std::uint64_t count) {
        for (; count > 0; --count) {
            if (random_.below(2) == 0)
                large_.command();
            else
                others_.command();
            if (random_.below(4) == 0) turn();
            if (random_.below(8) == 0) static_cast<void>(it_.home.upkeep(random_.below(200)));
        }
    }
    void turn() {
        go_on(it_);
        large_.end_waits();
    }

    random_generator random_;
    cache_with_client it_;
    disturbance others_;
    large_values large_;
};

TEST(rdb_snapshot_search, each_of_many_images_of_large_values_is_of_its_instant) {
    for_each_seed(80, [](std::uint64_t seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        constexpr int images = 12;
        image_row row(seed);
        for (int i = 0; i < images && !::testing::Test::HasFatalFailure(); ++i) row.one_image();
        row.end();
    });
}

}  // namespace
}  // namespace eddy::cache
