// Tests of a database: strings of every size, expiration against a model, memory a key.
#include "cache/keyspace/keyspace.hpp"

#include <eddy/base/random.hpp>

#include "base/test_rounds.hpp"
#include "base/test_seed.hpp"
#include "cache/types/collection.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <iostream>
#include <map>
#include <set>
#include <string>

namespace eddy::cache {
namespace {

class a_keyspace : public ::testing::Test {
protected:
    using slot = keyspace::slot;

    void put(const std::string& key, std::string_view value, bool keep_expiry = false) {
        const std::uint64_t hash = keys.hash(key);
        keys.put_text(keys.find(key, hash), key, hash, value, keep_expiry);
    }
    std::string get(const std::string& key) {
        const slot* const place = keys.find(key);
        if (place == nullptr) return "(none)";
        text_view view;
        return std::string(view(*keyspace::at(place)));
    }

    bool evict_one() {
        slice_limit any_time(nullptr, 0);
        return keys.evict_one(any_time) == keyspace::evicted::one;
    }

    environment env{eddy::testing::seed_of_this_run()};
    keyspace keys{env};
};

TEST_F(a_keyspace, keeps_strings_of_every_size_and_kind) {
    const std::size_t sizes[] = {0,
                                 1,
                                 7,
                                 8,
                                 20,
                                 21,
                                 255,
                                 256,
                                 keyspace::max_inline_text - 1,
                                 keyspace::max_inline_text,
                                 keyspace::max_inline_text + 1,
                                 100'000};
    for (const std::size_t from : sizes) {
        for (const std::size_t to : sizes) {
            put("key", std::string(from, 'a'));
            EXPECT_EQ(get("key"), std::string(from, 'a'));
            put("key", std::string(to, 'b'));
            EXPECT_EQ(get("key"), std::string(to, 'b'));
            put("key", "-12345");
            EXPECT_EQ(get("key"), "-12345");
        }
    }
    EXPECT_EQ(keys.size(), 1U);
    EXPECT_TRUE(keys.remove("key", keys.hash("key")));
    EXPECT_EQ(env.memory.used_bytes(), 0U);
}

TEST_F(a_keyspace, keys_may_be_empty_long_and_binary) {
    const std::string names[] = {"", std::string("\0\r\n", 3), std::string(65'535, 'k'),
                                 std::string(65'536, 'k'), std::string(200'000, 'k')};
    for (const std::string& name : names) {
        put(name, "value of " + std::to_string(name.size()));
        keys.set_expiry(keys.find(name), env.now_ms + 1'000);
    }
    for (const std::string& name : names) {
        EXPECT_EQ(get(name), "value of " + std::to_string(name.size()));
        EXPECT_EQ(keyspace::at(keys.find(name))->key(), name);
    }
    EXPECT_EQ(keys.expiring(), std::size(names));
}

TEST_F(a_keyspace, opens_text_for_changes_and_zeroes_what_is_added) {
    for (const std::size_t before : {0U, 5U, 2'000U, 5'000U}) {
        for (const std::size_t after : {6U, 2'048U, 2'049U, 10'000U}) {
            put("key", std::string(before, 'x'));
            char* const text =
                keys.open_text(keys.find("key"), std::max(before, std::size_t{after}));
            for (std::size_t i = before; i < after; ++i) ASSERT_EQ(text[i], '\0');
            if (after > before) text[after - 1] = 'z';
            const std::string got = get("key");
            EXPECT_EQ(got.size(), std::max(before, std::size_t{after}));
            EXPECT_EQ(got.substr(0, before), std::string(before, 'x'));
        }
    }
    put("key", "123");
    std::memcpy(keys.open_text(keys.find("key"), 4) + 3, "4", 1);
    EXPECT_EQ(get("key"), "1234");
}

TEST_F(a_keyspace, expiry_agrees_with_a_model) {
    const std::uint64_t seed = eddy::testing::seed_of_this_run();
    SCOPED_TRACE(seed);
    random_generator random(seed);
    struct expected {
        std::string value;
        expiry_time at_ms;
    };
    std::map<std::string, expected> model;
    env.now_ms = 1'000'000;
    for (int i = 0; i < eddy::testing::rounds(200'000); ++i) {
        const std::string key = "key:" + std::to_string(random.below(2'000));
        std::erase_if(model, [&](const auto& each) {
            return i % 64 == 0 && each.second.at_ms != no_expiry && env.now_ms > each.second.at_ms;
        });
        const auto known = model.find(key);
        const bool there = known != model.end() &&
                           (known->second.at_ms == no_expiry || env.now_ms <= known->second.at_ms);
        if (known != model.end() && !there) model.erase(known);
        switch (random.below(6)) {
            case 0:
            case 1: {
                const std::string value(random.below(100), 'v');
                const bool keep = random.below(2) == 0;
                put(key, value, keep);
                const expiry_time old = there && keep ? model[key].at_ms : no_expiry;
                model[key] = {value, old};
                break;
            }
            case 2:
                if (!there) break;
                model[key].at_ms = env.now_ms + static_cast<std::int64_t>(random.below(5'000));
                keys.set_expiry(keys.find(key), model[key].at_ms);
                break;
            case 3:
                ASSERT_EQ(keys.find(key) != nullptr && keys.drop_expiry(keys.find(key)),
                          there && model[key].at_ms != no_expiry);
                if (there) model[key].at_ms = no_expiry;
                break;
            case 4:
                ASSERT_EQ(keys.remove(key, keys.hash(key)), there);
                if (there) model.erase(key);
                break;
            default: ASSERT_EQ(get(key), there ? model[key].value : "(none)"); break;
        }
        if (random.below(100) == 0) env.now_ms += static_cast<std::int64_t>(random.below(100));
        if (random.below(1'000) == 0) keys.sweep(50);
    }
    // The sweep removes all expired keys, and nothing else.
    env.now_ms += 10'000;
    std::erase_if(model, [](const auto& each) { return each.second.at_ms != no_expiry; });
    while (keys.expiring() > 0) keys.sweep(1'000);
    EXPECT_EQ(keys.size(), model.size());
    for (const auto& [key, what] : model) ASSERT_EQ(get(key), what.value);
}

TEST_F(a_keyspace, a_key_lives_through_its_last_millisecond) {
    env.now_ms = 1'000;
    put("key", "v");
    keys.set_expiry(keys.find("key"), 1'500);
    env.now_ms = 1'500;
    EXPECT_EQ(get("key"), "v");
    env.now_ms = 1'501;
    EXPECT_EQ(get("key"), "(none)");
    EXPECT_EQ(keys.size(), 0U);
    EXPECT_EQ(env.counters.expired_keys, 1U);
}

TEST_F(a_keyspace, one_sweep_is_bounded) {
    env.now_ms = 1;
    for (int i = 0; i < 50'000; ++i) {
        const std::string key = std::to_string(i);
        put(key, "v");
        keys.set_expiry(keys.find(key), 10);
    }
    env.now_ms = 100;
    // A bucket holds 14, and a few more overflow from it.
    EXPECT_LE(keys.sweep(10).removed, 300U);
    EXPECT_GT(keys.size(), 49'000U);
}

// A clock that advances 50 microseconds with each reading.
std::int64_t slow_clock() noexcept {
    static std::int64_t now_ns = 0;
    return now_ns += 50'000;
}
// Number of readings in one slice.
constexpr std::size_t looks_a_sweep = longest_slice_ns / 50'000;

TEST_F(a_keyspace, a_sweep_whose_time_is_over_stops_and_the_next_one_goes_on_there) {
    constexpr std::size_t count = 20'000;
    env.slice_time = slow_clock;
    env.now_ms = 1;
    for (std::size_t i = 0; i < count; ++i) {
        const std::string key = std::to_string(i);
        put(key, "v");
        keys.set_expiry(keys.find(key), i % 10 == 0 ? 10 : 1'000);
    }
    env.now_ms = 100;
    const std::size_t ended = count / 10;
    std::size_t sweeps = 0;
    while (keys.size() > count - ended) {
        const std::size_t before = keys.size();
        const keyspace::swept done = keys.sweep(1'000'000);
        EXPECT_EQ(done.removed, before - keys.size());
        EXPECT_LE(done.removed, looks_a_sweep * slice_limit::a_look);
        // A sweep that restarted each time would never reach the end.
        ASSERT_LT(++sweeps, 150U);
    }
    // Its 1,500 buckets and more cannot be passed in fewer.
    EXPECT_GT(sweeps, 1'500 / (looks_a_sweep * 16));
    EXPECT_EQ(env.counters.expired_keys, ended);
    EXPECT_EQ(keys.expiring(), count - ended);
    for (std::size_t i = 0; i < count; ++i) {
        ASSERT_EQ(keys.look_at(std::to_string(i)) != nullptr, i % 10 != 0) << i;
    }
}

TEST_F(a_keyspace, a_sweep_looks_at_the_clock_after_each_big_value_and_has_it_freed_later) {
    env.slice_time = slow_clock;
    env.now_ms = 1;
    constexpr std::size_t hashes = 40;
    constexpr std::size_t fields = 1'000;
    for (std::size_t i = 0; i < hashes; ++i) {
        const std::string key = "h" + std::to_string(i);
        slot* const place = keys.add(key, keys.hash(key), value_type::hash);
        collection made(env, *keyspace::at(place));
        for (std::size_t f = 0; f < fields; ++f) made.put("field:" + std::to_string(f), "v");
        keys.set_expiry(keys.find(key), 10);
    }
    env.now_ms = 100;
    const std::size_t full = env.memory.used_bytes();
    std::size_t sweeps = 0;
    while (keys.size() > 0) {
        const keyspace::swept done = keys.sweep(1'000);
        EXPECT_GT(done.removed, 0U);
        EXPECT_LE(done.removed, looks_a_sweep);
        EXPECT_TRUE(done.many || keys.size() == 0);
        ASSERT_LE(++sweeps, hashes);
    }
    EXPECT_GE(sweeps, hashes / looks_a_sweep);
    // The fields are freed later, with their tables.
    EXPECT_EQ(env.discarded(), hashes);
    EXPECT_GT(env.memory.used_bytes(), full * 9 / 10);
    while (env.free_some(1'000)) {
    }
    EXPECT_EQ(env.discarded(), 0U);
    EXPECT_EQ(env.memory.used_bytes(), 0U);
}

TEST_F(a_keyspace, a_sweep_without_a_clock_ends_by_its_buckets_alone) {
    env.slice_time = nullptr;
    env.now_ms = 1;
    for (int i = 0; i < 20'000; ++i) {
        const std::string key = std::to_string(i);
        put(key, "v");
        keys.set_expiry(keys.find(key), 10);
    }
    env.now_ms = 100;
    keys.sweep(1'000'000);
    EXPECT_EQ(keys.size(), 0U);
}

TEST_F(a_keyspace, a_million_small_keys_cost_78_bytes_each_and_8_more_with_expiry) {
    constexpr std::size_t count = 1'000'000;
    char name[17];
    for (std::size_t i = 0; i < count; ++i) {
        std::snprintf(name, sizeof name, "key:%012zu", i);
        put(name, "abcdefghijklmnopqrstuvwxyz012345");
    }
    const double each = static_cast<double>(env.memory.used_bytes()) / count;
    std::cout << each << " bytes a key counted, "
              << static_cast<double>(env.memory.reserved_bytes()) / count << " reserved\n";
    EXPECT_LE(each, 78);
    EXPECT_LE(env.memory.reserved_bytes(), count * 80);
    for (std::size_t i = 0; i < count; ++i) {
        std::snprintf(name, sizeof name, "key:%012zu", i);
        keys.set_expiry(keys.find(name), 1'000'000);
    }
    EXPECT_LE(static_cast<double>(env.memory.used_bytes()) / count, each + 8.1);
}

TEST_F(a_keyspace, moved_and_copied_values_are_whole) {
    keyspace other(env);
    put("text", std::string(5'000, 't'));
    keys.set_expiry(keys.find("text"), env.now_ms + 5'000);
    slot* const set = keys.add("set", keys.hash("set"), value_type::set);
    for (int i = 0; i < 100; ++i) {
        collection(env, *keyspace::at(set)).put(std::to_string(i));
    }
    other.copy_value(keys.find("set"), "copy", keys.hash("copy"));
    other.move_value(keys, keys.find("text"), keys.hash("text"), "moved", keys.hash("moved"));
    EXPECT_EQ(get("text"), "(none)");
    EXPECT_EQ(keys.expiring(), 0U);
    EXPECT_EQ(other.expiring(), 1U);
    text_view view;
    EXPECT_EQ(view(*keyspace::at(other.find("moved"))), std::string(5'000, 't'));
    collection copy(env, *keyspace::at(other.find("copy")));
    EXPECT_EQ(copy.size(), 100U);
    copy.erase("5");
    EXPECT_TRUE(collection(env, *keyspace::at(keys.find("set"))).contains("5"));
}

TEST_F(a_keyspace, eviction_spares_what_is_used) {
    for (const eviction policy :
         {eviction::allkeys_lru, eviction::allkeys_lfu, eviction::allkeys_s3fifo}) {
        env.set_policy(policy);
        for (int i = 0; i < 1'000; ++i) put("key" + std::to_string(i), "v");
        for (int round = 0; round < 900; ++round) {
            for (int i = 0; i < 50; ++i) static_cast<void>(get("key" + std::to_string(i)));
            ASSERT_TRUE(evict_one());
        }
        for (int i = 0; i < 50; ++i) EXPECT_EQ(get("key" + std::to_string(i)), "v") << i;
        while (evict_one()) {
        }
        EXPECT_EQ(keys.size(), 0U);
    }
}

// Scan resistance: a walk over keys that are read once must not evict the working set.
TEST_F(a_keyspace, eviction_is_proof_against_scans) {
    for (const eviction policy : {eviction::allkeys_lru, eviction::allkeys_s3fifo}) {
        keys.clear();
        env.set_policy(policy);
        constexpr int working_set = 500;
        for (int i = 0; i < working_set; ++i) put("used" + std::to_string(i), "v");
        for (int i = 0; i < 500; ++i) put("once" + std::to_string(i), "v");
        for (int i = 0; i < working_set; ++i) static_cast<void>(get("used" + std::to_string(i)));
        for (int i = 0; i < 2'000; ++i) {
            ASSERT_TRUE(evict_one());
            put("scanned" + std::to_string(i), "v");
        }
        int left = 0;
        for (int i = 0; i < working_set; ++i) left += get("used" + std::to_string(i)) == "v";
        EXPECT_GE(left, working_set * 9 / 10);
    }
}

// With allkeys-lru most such keys are evicted again: there is no ghost queue.
TEST_F(a_keyspace, what_is_wanted_soon_after_it_went_stays) {
    constexpr int room = 2'000;
    const auto left_after = [&](eviction policy) {
        keys.clear();
        env.set_policy(policy);
        const auto store = [&](const std::string& key) {
            if (keys.size() >= room) EXPECT_TRUE(evict_one());
            put(key, "v");
        };
        for (int i = 0; i < room; ++i) store("old" + std::to_string(i));
        for (int i = 0; i < 100; ++i) store("back" + std::to_string(i));
        for (int i = 0; i < room / 2; ++i) store("between" + std::to_string(i));
        for (int i = 0; i < 100; ++i) store("back" + std::to_string(i));
        for (int i = 0; i < room / 2; ++i) store("later" + std::to_string(i));
        int left = 0;
        for (int i = 0; i < 100; ++i) left += get("back" + std::to_string(i)) == "v";
        return left;
    };
    EXPECT_LE(left_after(eviction::allkeys_lru), 50);
    // A few of the returning keys are where the clock hand passes next, two on average; this
    // depends on the seed of the hash.
    EXPECT_GE(left_after(eviction::allkeys_s3fifo), 85);
    // The ghost queue is small, and is freed with the keys.
    keys.clear();
    while (env.free_some(1000)) {
    }
    EXPECT_EQ(env.memory.used_bytes(), 0U);
}

// An old working set must make room for a new one, even if its keys return after more evictions
// than a probation lasts.
TEST_F(a_keyspace, eviction_gives_way_to_a_new_working_set) {
    env.set_policy(eviction::allkeys_lru);
    constexpr int room = 1'000;
    for (int i = 0; i < room; ++i) put("old" + std::to_string(i), "v");
    for (int i = 0; i < room; ++i) static_cast<void>(get("old" + std::to_string(i)));
    int hits = 0;
    for (int round = 0; round < 30; ++round) {
        hits = 0;
        for (int i = 0; i < room * 8 / 10; ++i) {
            const std::string key = "new" + std::to_string(i);
            if (get(key) == "v") {
                ++hits;
                continue;
            }
            if (keys.size() >= room) ASSERT_TRUE(evict_one());
            put(key, "v");
        }
    }
    EXPECT_GE(hits, room * 7 / 10);
}

TEST_F(a_keyspace, volatile_eviction_takes_keys_with_an_expiry_alone) {
    for (const eviction policy : {eviction::volatile_lru, eviction::volatile_lfu,
                                  eviction::volatile_random, eviction::volatile_ttl}) {
        env.set_policy(policy);
        for (int i = 0; i < 3'000; ++i) {
            const std::string key = "key" + std::to_string(i);
            put(key, "v");
            if (i % 10 == 0) keys.set_expiry(keys.find(key), env.now_ms + 1'000'000);
        }
        for (int i = 0; i < 300; ++i) ASSERT_TRUE(evict_one()) << i;
        EXPECT_FALSE(evict_one());
        EXPECT_EQ(keys.size(), 2'700U);
        EXPECT_EQ(keys.expiring(), 0U);
        keys.clear();
    }
}

TEST_F(a_keyspace, what_ends_soonest_is_evicted_first_of_a_few) {
    env.set_policy(eviction::volatile_ttl);
    for (int i = 0; i < 10; ++i) {
        const std::string key = "key" + std::to_string(i);
        put(key, "v");
        keys.set_expiry(keys.find(key), env.now_ms + 1'000'000 + i);
    }
    for (int i = 0; i < 10; ++i) {
        ASSERT_TRUE(evict_one());
        EXPECT_EQ(get("key" + std::to_string(i)), "(none)");
        EXPECT_EQ(keys.size(), 9U - static_cast<unsigned>(i));
    }
}

TEST_F(a_keyspace, volatile_eviction_spares_what_is_used) {
    for (const eviction policy : {eviction::volatile_lru, eviction::volatile_lfu}) {
        env.set_policy(policy);
        for (int i = 0; i < 1'000; ++i) {
            const std::string key = "key" + std::to_string(i);
            put(key, "v");
            put("kept" + std::to_string(i), "v");
            keys.set_expiry(keys.find(key), env.now_ms + 1'000'000);
        }
        for (int round = 0; round < 900; ++round) {
            for (int i = 0; i < 50; ++i) static_cast<void>(get("key" + std::to_string(i)));
            ASSERT_TRUE(evict_one());
        }
        for (int i = 0; i < 50; ++i) EXPECT_EQ(get("key" + std::to_string(i)), "v") << i;
        EXPECT_EQ(keys.size(), 1'100U);
        keys.clear();
    }
}

// LFU prefers keys that were used often to keys that were used once, but later.
TEST_F(a_keyspace, lfu_knows_how_often_a_key_was_used) {
    const auto often_left = [&](eviction policy) {
        keys.clear();
        env.set_policy(policy);
        for (int i = 0; i < 1'000; ++i) {
            put("often" + std::to_string(i), "v");
            put("once" + std::to_string(i), "v");
        }
        // They are no longer on probation.
        for (int i = 0; i < 1'000; ++i) put("later" + std::to_string(i), "v");
        for (int i = 0; i < 1'000; ++i) {
            for (int n = 0; n < 5; ++n) static_cast<void>(get("often" + std::to_string(i)));
        }
        for (int i = 0; i < 1'000; ++i) static_cast<void>(get("once" + std::to_string(i)));
        for (int i = 0; i < 1'900; ++i) EXPECT_TRUE(evict_one());
        int left = 0;
        for (int i = 0; i < 1'000; ++i) left += get("often" + std::to_string(i)) == "v";
        return left;
    };
    EXPECT_GE(often_left(eviction::allkeys_lfu), 950);
    EXPECT_LE(often_left(eviction::allkeys_lru), 700);
}

// The chance of eviction depends neither on a key's age nor on its use.
TEST_F(a_keyspace, random_eviction_takes_all_alike) {
    for (const eviction policy : {eviction::allkeys_random, eviction::volatile_random}) {
        env.set_policy(policy);
        for (int i = 0; i < 4'000; ++i) {
            const std::string key = "key" + std::to_string(i);
            put(key, "v");
            keys.set_expiry(keys.find(key), env.now_ms + 1'000'000);
        }
        for (int round = 0; round < 2'000; ++round) {
            for (int i = 0; i < 4'000; i += 400)
                static_cast<void>(get("key" + std::to_string(i + round % 2)));
            ASSERT_TRUE(evict_one());
        }
        int early = 0, even = 0;
        for (int i = 0; i < 4'000; ++i) {
            const bool is_there = get("key" + std::to_string(i)) == "v";
            early += is_there && i < 2'000;
            even += is_there && i % 2 == 0;
        }
        // On average a half of 2,000 remains, with a deviation of 16; 8 times that.
        EXPECT_NEAR(early, 1'000, 130);
        EXPECT_NEAR(even, 1'000, 130);
        keys.clear();
    }
}

TEST_F(a_keyspace, random_eviction_takes_all_in_the_end) {
    env.set_policy(eviction::allkeys_random);
    for (int i = 0; i < 1'000; ++i) put("key" + std::to_string(i), "v");
    while (evict_one()) {
    }
    EXPECT_EQ(keys.size(), 0U);
}

TEST_F(a_keyspace, the_queue_of_new_keys_is_bounded_and_freed) {
    env.set_policy(eviction::allkeys_lru);
    for (int i = 0; i < 20'000; ++i) put("key" + std::to_string(i), "v");
    // Removed keys leave their hashes in the queue, too.
    const std::size_t before = env.memory.used_bytes();
    for (int i = 0; i < 100'000; ++i) {
        put("passing" + std::to_string(i), "v");
        ASSERT_TRUE(
            keys.remove("passing" + std::to_string(i), keys.hash("passing" + std::to_string(i))));
    }
    EXPECT_LE(env.memory.used_bytes(), before + 64 * 1024);
    keys.clear();
    while (env.free_some(10'000)) {
    }
    EXPECT_EQ(env.memory.used_bytes(), 0U);
}

TEST_F(a_keyspace, a_huge_string_goes_back_to_the_system_in_pieces) {
    constexpr std::size_t size = 64U << 20;
    put("huge", std::string(size, 'v'));
    put("other", "v");
    EXPECT_TRUE(keys.remove("huge", keys.hash("huge")));
    EXPECT_EQ(env.discarded(), 1U);
    int slices = 0;
    while (env.free_some(64)) ++slices;
    EXPECT_GE(slices, 50);
    EXPECT_LT(env.memory.used_bytes(), size / 100);
    EXPECT_EQ(get("other"), "v");
    // Such a block can be allocated again, as new.
    put("huge", std::string(size, 'w'));
    EXPECT_EQ(get("huge"), std::string(size, 'w'));
}

TEST_F(a_keyspace, freeing_looks_at_the_clock) {
    for (int i = 0; i < 100'000; ++i) put("key" + std::to_string(i), "v");
    keys.clear();
    env.slice_time = slow_clock;
    const std::size_t full = env.memory.used_bytes();
    EXPECT_TRUE(env.free_some(1'000'000));
    std::size_t least = env.memory.used_bytes();
    EXPECT_GT(least, full * 9 / 10);
    while (env.free_some(1'000'000)) {
        // The table itself is freed in slices as well, with its buckets.
        EXPECT_LT(least - env.memory.used_bytes(), full / 6);
        least = env.memory.used_bytes();
    }
    EXPECT_EQ(env.memory.used_bytes(), 0U);
}

TEST_F(a_keyspace, gives_the_system_little_memory_back_in_one_slice) {
    // Nearly all pages become empty with the last keys.
    constexpr std::size_t most = looks_a_sweep * 8;
    const std::string value(100, 'v');
    const auto fill = [&] {
        for (int i = 0; i < 100'000; ++i) put("key" + std::to_string(i), value);
    };
    fill();
    keys.clear();
    env.slice_time = slow_clock;
    std::uint64_t before = env.memory.returns();
    while (env.free_some(1'000'000)) {
        EXPECT_LE(env.memory.returns() - before, most);
        before = env.memory.returns();
    }
    const std::uint64_t by_clearing = before;
    EXPECT_GT(by_clearing, 100U);

    env.now_ms = 1;
    fill();
    for (int i = 0; i < 100'000; ++i) keys.set_expiry(keys.find("key" + std::to_string(i)), 10);
    env.now_ms = 100;
    before = env.memory.returns();
    while (keys.size() > 0) {
        keys.sweep(1'000'000);
        EXPECT_LE(env.memory.returns() - before, most);
        before = env.memory.returns();
    }
    EXPECT_GT(before - by_clearing, 100U);
}

TEST_F(a_keyspace, is_cleared_at_once_and_freed_in_slices) {
    for (int i = 0; i < 20'000; ++i) put("key" + std::to_string(i), "v");
    keys.clear();
    EXPECT_EQ(keys.size(), 0U);
    EXPECT_EQ(get("key1"), "(none)");
    put("key1", "new");
    while (env.free_some(500)) {
    }
    EXPECT_EQ(get("key1"), "new");
    keys.clear();
    EXPECT_EQ(env.memory.used_bytes(), 0U);
}

}  // namespace
}  // namespace eddy::cache
