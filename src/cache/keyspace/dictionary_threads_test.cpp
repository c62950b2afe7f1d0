// Tests of the hash table under changes by several threads.
#include <eddy/base/random.hpp>

#include "base/test_seed.hpp"
#include "cache/keyspace/dictionary.hpp"
#include "cache/testing/key_table.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace eddy::cache {
namespace {

using namespace cache::testing;

// Threads that lock the buckets they use, as lanes do; keys in buckets locked by others are tried
// again later.
TEST(dictionary_threads, threads_that_hold_buckets_change_it_at_once) {
    const std::uint64_t seed = eddy::testing::seed_of_this_run();
    SCOPED_TRACE(seed);
    key_table t;
    constexpr std::size_t kept = 20'000;
    for (std::size_t i = 0; i < kept; ++i) t.add(key_of(i));
    constexpr std::size_t threads = 4;
    std::vector<std::unique_ptr<slab::stock>> stocks;
    for (std::size_t i = 0; i < threads; ++i)
        stocks.push_back(std::make_unique<slab::stock>(t.memory));
    std::array<std::set<std::string>, threads> own;
    std::array<dictionary::holding::counts, threads> counted;
    std::atomic<std::size_t> refused{0};
    std::vector<std::thread> running;
    for (std::size_t number = 0; number < threads; ++number) {
        running.emplace_back([&, number] {
            const slab::stock::use mine(*stocks[number]);
            dictionary::holding held;
            random_generator random(seed + number);
            for (int i = 0; i < 40'000; ++i) {
                held.give_back();
                const std::string stays = key_of(random.below(kept));
                if (!held.take(t.table, t.hash(stays)))
                    ++refused;
                else
                    ASSERT_NE(t.table.find(stays, t.hash(stays)), nullptr);
                const std::string key =
                    std::to_string(number) + ":" + std::to_string(random.below(2000));
                if (!held.take(t.table, t.hash(key))) {
                    ++refused;
                } else if (own[number].contains(key)) {
                    ASSERT_TRUE(t.remove(key));
                    own[number].erase(key);
                } else {
                    ASSERT_FALSE(t.has(key));
                    if (!held.take_place(t.table, t.hash(key))) continue;
                    t.add(key);
                    own[number].insert(key);
                }
            }
            counted[number] = held.counted();
        });
    }
    for (std::thread& each : running) each.join();
    std::size_t keys = kept;
    for (std::size_t i = 0; i < threads; ++i) {
        EXPECT_EQ(counted[i].keys, static_cast<std::ptrdiff_t>(own[i].size()));
        t.table.count_in(counted[i].keys);
        keys += own[i].size();
    }
    EXPECT_LT(refused, threads * 40'000 / 10);
    EXPECT_EQ(t.table.size(), keys);
    std::set<std::string> found;
    dictionary::iterator all(t.table);
    while (const dictionary::slot* const place = all.next())
        found.emplace(dictionary::entry_of(*place)->key());
    EXPECT_EQ(found.size(), keys);
    for (const auto& each : own) {
        for (const std::string& key : each) {
            EXPECT_TRUE(found.contains(key));
            EXPECT_TRUE(t.has(key));
        }
    }
    stocks.clear();
}

TEST(dictionary_threads, what_one_holds_another_does_not_get) {
    key_table t;
    constexpr std::size_t keys = 20'000;
    for (std::size_t i = 0; i < keys; ++i) t.add(key_of(i));
    const std::uint64_t hash = t.hash(key_of(7));
    dictionary::holding held;
    ASSERT_TRUE(held.take(t.table, hash));
    const auto is_free = [&] {
        bool taken = false;
        std::thread([&] {
            dictionary::holding other;
            taken = other.take(t.table, hash);
        }).join();
        return taken;
    };
    EXPECT_FALSE(is_free());
    // A bucket of its own may be locked again, and is unlocked once.
    EXPECT_TRUE(held.take(t.table, hash));
    EXPECT_TRUE(held.take(t.table, t.hash(key_of(8))));
    EXPECT_TRUE(held.take_more(t.table, hash));
    EXPECT_FALSE(is_free());
    held.give_back();
    EXPECT_TRUE(is_free());
    // Up to the limit.
    std::size_t taken = 0;
    while (held.take(t.table, t.hash(key_of(taken)))) ++taken;
    EXPECT_GE(taken, dictionary::holding::most / 2);
    EXPECT_LE(taken, dictionary::holding::most);
    held.give_back();
    EXPECT_TRUE(held.take(t.table, t.hash(key_of(taken))));
}

TEST(dictionary_threads, grows_and_shrinks_afterwards_where_threads_have_added_and_erased) {
    key_table t;
    slab::stock stock(t.memory);
    for (std::size_t i = 0; i < 4'000; ++i) t.add(key_of(i));
    const std::size_t bytes = t.table.table_bytes();
    std::size_t next = 4'000;
    std::uint64_t full = 0;
    {
        const slab::stock::use mine(stock);
        dictionary::holding held;
        // Until a segment is so full that no key may be added under locked buckets.
        for (;; ++next) {
            const std::uint64_t hash = t.hash(key_of(next));
            held.give_back();
            ASSERT_TRUE(held.take(t.table, hash));
            full = hash;
            if (!held.take_place(t.table, hash)) break;
            t.add(key_of(next));
        }
        t.table.count_in(held.counted().keys);
        EXPECT_TRUE(t.table.is_to_resize(full));
    }
    EXPECT_EQ(t.table.table_bytes(), bytes);
    EXPECT_EQ(t.table.size(), next);
    t.table.resize_around(full);
    EXPECT_GT(t.table.table_bytes(), bytes);
    EXPECT_FALSE(t.table.is_to_resize(full));
    for (std::size_t i = 0; i < next; ++i) ASSERT_TRUE(t.has(key_of(i)));
    const std::size_t grown = t.table.table_bytes();
    {
        const slab::stock::use mine(stock);
        dictionary::holding held;
        for (std::size_t i = 100; i < next; ++i) {
            held.give_back();
            ASSERT_TRUE(held.take(t.table, t.hash(key_of(i))));
            ASSERT_TRUE(t.remove(key_of(i)));
        }
        t.table.count_in(held.counted().keys);
    }
    EXPECT_EQ(t.table.table_bytes(), grown);
    for (std::size_t i = 0; i < 100; ++i) t.table.resize_around(t.hash(key_of(i)));
    EXPECT_LT(t.table.table_bytes(), grown);
    for (std::size_t i = 0; i < 100; ++i) ASSERT_TRUE(t.has(key_of(i)));
    EXPECT_EQ(t.table.size(), 100U);
}

}  // namespace
}  // namespace eddy::cache
