// Tests of the hash table: against a model while it grows and shrinks; the guarantee of scans.
#include "cache/keyspace/dictionary.hpp"

#include <eddy/base/random.hpp>

#include "base/test_seed.hpp"
#include "cache/testing/key_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace eddy::cache {
namespace {

using namespace cache::testing;

TEST(dictionary, two_million_keys_are_found_then_removed) {
    constexpr std::size_t keys = 2'000'000;
    key_table t;
    for (std::size_t i = 0; i < keys; ++i) t.add(key_of(i));
    EXPECT_EQ(t.table.size(), keys);
    // 128 bytes for each 14 places, which are 7/16 to 7/8 full.
    EXPECT_LE(t.table.table_bytes(), keys * 22);
    for (std::size_t i = 0; i < keys; ++i) ASSERT_TRUE(t.has(key_of(i))) << i;
    for (std::size_t i = keys; i < keys + 100'000; ++i) ASSERT_FALSE(t.has(key_of(i))) << i;
    for (std::size_t i = 0; i < keys; i += 2) ASSERT_TRUE(t.remove(key_of(i)));
    for (std::size_t i = 0; i < keys; ++i) ASSERT_EQ(t.has(key_of(i)), i % 2 == 1) << i;
    for (std::size_t i = 1; i < keys; i += 2) ASSERT_TRUE(t.remove(key_of(i)));
    EXPECT_EQ(t.table.size(), 0U);
    EXPECT_EQ(t.table.table_bytes(), 0U);
    EXPECT_EQ(t.memory.used_bytes(), 0U);
}

// However many there are, growth never finds places for all of them anew.
TEST(dictionary, no_insert_and_no_erase_moves_more_than_a_segment) {
    constexpr std::size_t keys = 1'000'000;
    key_table t;
    std::uint32_t most = 0;
    const auto moves = [&](auto&& change) {
        const std::uint32_t before = t.table.moved();
        change();
        const std::uint32_t now = t.table.moved() - before;
        most = std::max(most, now);
        return now;
    };
    for (std::size_t i = 0; i < keys; ++i) {
        ASSERT_LE(moves([&] { t.add(key_of(i)); }), dictionary::max_moved) << i;
    }
    // Full segments have split and were counted; and all in all a key is seldom moved.
    EXPECT_EQ(most, dictionary::max_moved);
    EXPECT_LE(t.table.moved(), 3 * keys);
    most = 0;
    for (std::size_t i = 0; i < keys; ++i) {
        ASSERT_LE(moves([&] { t.remove(key_of(i)); }), dictionary::max_moved) << i;
    }
    EXPECT_GT(most, 0U);
    EXPECT_EQ(t.table.size(), 0U);
}

TEST(dictionary, agrees_with_a_model) {
    const std::uint64_t seed = eddy::testing::seed_of_this_run();
    SCOPED_TRACE(seed);
    random_generator random(seed);
    key_table t;
    std::set<std::string> model;
    std::size_t range = 10;
    for (int i = 0; i < 600'000; ++i) {
        // The range of keys moves, so that the table grows and shrinks through all its sizes.
        if (i % 50'000 == 0) range = 1ULL << random.below(18);
        const std::string key = key_of(random.below(range));
        ASSERT_EQ(t.has(key), model.contains(key));
        const bool shrinking = (i / 50'000) % 2 == 1;
        if (random.below(10) < (shrinking ? 3U : 7U)) {
            if (model.insert(key).second) t.add(key);
        } else {
            ASSERT_EQ(t.remove(key), model.erase(key) == 1);
        }
        ASSERT_EQ(t.table.size(), model.size());
    }
    std::set<std::string> walked;
    dictionary::iterator all(t.table);
    while (dictionary::slot* const place = all.next()) {
        ASSERT_TRUE(walked.emplace(dictionary::entry_of(*place)->key()).second);
    }
    EXPECT_EQ(walked, model);
}

TEST(dictionary, shrinks_when_most_keys_are_gone) {
    key_table t;
    for (std::size_t i = 0; i < 500'000; ++i) t.add(key_of(i));
    const std::size_t full = t.table.table_bytes();
    for (std::size_t i = 100; i < 500'000; ++i) t.remove(key_of(i));
    EXPECT_LT(t.table.table_bytes(), full / 100);
    for (std::size_t i = 0; i < 100; ++i) EXPECT_TRUE(t.has(key_of(i)));
}

// Every key that is there all the time is found by a scan during which others come and go.
void scan_while(std::size_t before, std::size_t stays, auto&& change) {
    key_table t;
    for (std::size_t i = 0; i < before; ++i) t.add(key_of(i));
    std::set<std::string> seen;
    std::uint64_t cursor = 0;
    std::size_t steps = 0;
    do {
        std::vector<dictionary::slot> found;
        cursor = t.table.scan(cursor, found);
        for (const dictionary::slot s : found) seen.emplace(dictionary::entry_of(s)->key());
        change(t, steps);
        ASSERT_LT(++steps, 10'000'000U);
    } while (cursor != 0);
    for (std::size_t i = 0; i < stays; ++i) {
        ASSERT_TRUE(seen.contains(key_of(i))) << i << " of " << before;
    }
}

TEST(dictionary, a_scan_misses_nothing_while_the_table_grows) {
    for (const std::size_t before : {1U, 5U, 50U, 500U, 3'000U, 20'000U}) {
        std::size_t next = before;
        scan_while(before, before, [&next](key_table& t, std::size_t step) {
            // Much at first, so that the table doubles many times; then nothing, so that it ends.
            if (step > 200) return;
            for (int i = 0; i < 500; ++i) t.add(key_of(next++));
        });
    }
}

TEST(dictionary, a_scan_misses_nothing_while_the_table_shrinks) {
    for (const std::size_t before : {100U, 5'000U, 100'000U}) {
        const std::size_t stays = before / 50;
        std::size_t next = stays;
        scan_while(before, stays, [&](key_table& t, std::size_t) {
            for (std::size_t i = 0; i < before / 64 + 1 && next < before; ++i) {
                t.remove(key_of(next++));
            }
        });
    }
}

TEST(dictionary, a_scan_misses_nothing_while_the_table_breathes) {
    const std::uint64_t seed = eddy::testing::seed_of_this_run();
    SCOPED_TRACE(seed);
    random_generator random(seed);
    for (int round = 0; round < 30; ++round) {
        const std::size_t stays = 1 + random.below(3'000);
        std::size_t first = stays;
        std::size_t next = stays;
        scan_while(stays, stays, [&](key_table& t, std::size_t step) {
            if (step > 400) return;
            const bool growing = step / 20 % 2 == 0;
            for (std::uint64_t i = random.below(2'000); i > 0; --i) {
                if (growing) {
                    t.add(key_of(next++));
                } else if (first < next) {
                    t.remove(key_of(first++));
                }
            }
        });
    }
}

TEST(dictionary, random_picks_reach_every_key) {
    random_generator random(3);
    for (const std::size_t keys : {1U, 3U, 100U, 5'000U}) {
        key_table t;
        for (std::size_t i = 0; i < keys; ++i) t.add(key_of(i));
        std::set<std::string> seen;
        for (std::size_t i = 0; i < keys * 40 && seen.size() < keys; ++i) {
            seen.emplace(t.table.random(random)->key());
        }
        EXPECT_EQ(seen.size(), keys);
    }
}

TEST(dictionary, an_empty_one_answers) {
    key_table t;
    random_generator random(1);
    std::vector<dictionary::slot> found;
    EXPECT_FALSE(t.has(""));
    EXPECT_EQ(t.table.scan(0, found), 0U);
    EXPECT_EQ(t.table.scan(12345, found), 0U);
    EXPECT_EQ(t.table.random(random), nullptr);
    EXPECT_EQ(t.table.table_bytes(), 0U);
}

TEST(dictionary, any_cursor_is_taken) {
    key_table t;
    random_generator random(5);
    for (std::size_t i = 0; i < 50'000; ++i) t.add(key_of(i));
    for (int i = 0; i < 10'000; ++i) {
        std::vector<dictionary::slot> found;
        std::uint64_t cursor = random();
        for (int steps = 0; steps < 4; ++steps) cursor = t.table.scan(cursor, found);
    }
}

TEST(dictionary, can_be_moved) {
    slab memory;
    const key_hash hash(1);
    for (const std::size_t keys : {0U, 1U, 20U, 20'000U}) {
        dictionary from(memory, hash);
        for (std::size_t i = 0; i < keys; ++i) {
            const std::string key = key_of(i);
            from.insert(
                entry::make(memory.allocate(entry::size_for(key.size(), 0, false)), key, 0, false),
                hash(key));
        }
        dictionary to(std::move(from));
        EXPECT_EQ(from.size(), 0U);
        EXPECT_EQ(to.size(), keys);
        for (std::size_t i = 0; i < keys; ++i) {
            const std::string key = key_of(i);
            dictionary::slot* const place = to.find(key, hash(key));
            ASSERT_NE(place, nullptr);
            entry* const e = dictionary::entry_of(*place);
            to.erase(place, hash(key));
            memory.release(e, e->size());
        }
    }
    EXPECT_EQ(memory.used_bytes(), 0U);
}

TEST(key_hash, spreads_similar_keys_and_differs_by_secret) {
    const key_hash one(1);
    const key_hash other(2);
    std::vector<std::size_t> low(256), high(256);
    constexpr std::size_t keys = 256 * 200;
    for (std::size_t i = 0; i < keys; ++i) {
        const std::uint64_t h = one(key_of(i));
        ++low[h & 0xff];
        ++high[h >> 56];
        EXPECT_NE(h, other(key_of(i)));
    }
    for (std::size_t i = 0; i < 256; ++i) {
        EXPECT_NEAR(static_cast<double>(low[i]), 200, 100) << i;
        EXPECT_NEAR(static_cast<double>(high[i]), 200, 100) << i;
    }
    std::set<std::uint64_t> sizes;
    for (std::size_t size = 0; size < 300; ++size) sizes.insert(one(std::string(size, '\0')));
    EXPECT_EQ(sizes.size(), 300U);
}

}  // namespace
}  // namespace eddy::cache
