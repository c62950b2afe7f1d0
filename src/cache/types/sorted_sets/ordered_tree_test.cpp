// Tests of the tree against a model, and of the memory that it takes and returns.
#include "cache/types/sorted_sets/ordered_tree.hpp"

#include <eddy/base/random.hpp>

#include "base/test_seed.hpp"
#include "cache/types/streams/stream.hpp"

#include <gtest/gtest.h>

#include <iterator>
#include <map>

namespace eddy::cache {
namespace {

using tree = ordered_tree<by_stream_id<int>>;

struct owned_tree : tree {
    ~owned_tree() {
        std::size_t steps = SIZE_MAX;
        free_some(memory, steps, [](const item&) {});
        EXPECT_EQ(memory.used_bytes(), 0U);
    }
    bool add(stream_id id, int* of = nullptr) { return insert(memory, {id, of}); }
    slab memory;
};

TEST(ordered_tree, is_empty_at_first) {
    owned_tree t;
    EXPECT_TRUE(t.empty());
    EXPECT_FALSE(t.first());
    EXPECT_FALSE(t.last());
    EXPECT_FALSE(t.find(stream_id{1, 1}));
    EXPECT_FALSE(t.lower_bound(stream_id{}));
    EXPECT_FALSE(t.last_up_to(stream_id::max()));
    EXPECT_FALSE(t.erase(t.memory, stream_id{1, 1}));
    EXPECT_EQ(t.memory_bytes(), 0U);
    t.check();
}

TEST(ordered_tree, few_items_take_little_memory) {
    owned_tree t;
    t.add({1, 1});
    EXPECT_EQ(t.memory.used_bytes(), tree::first_node_bytes);
    EXPECT_EQ(t.memory_bytes(), tree::first_node_bytes);
    t.add({2, 1});
    EXPECT_EQ(t.memory.used_bytes(), 2 * tree::first_node_bytes);
    EXPECT_FALSE(t.add({2, 1}));
    EXPECT_TRUE(t.erase(t.memory, stream_id{1, 1}));
    EXPECT_TRUE(t.erase(t.memory, stream_id{2, 1}));
    EXPECT_EQ(t.memory.used_bytes(), 0U);
}

TEST(ordered_tree, ascending_items_fill_the_nodes) {
    owned_tree t;
    constexpr std::uint64_t items = 100'000;
    for (std::uint64_t i = 0; i < items; ++i) ASSERT_TRUE(t.add({i, 0}));
    t.check();
    EXPECT_EQ(t.memory_bytes(), t.memory.used_bytes());
    EXPECT_LT(t.memory.used_bytes(), items * 27);
    // Taken from the front, as acknowledged entries are.
    for (std::uint64_t i = 0; i < items; ++i) ASSERT_TRUE(t.erase(t.memory, stream_id{i, 0}));
    EXPECT_EQ(t.memory.used_bytes(), 0U);
}

TEST(ordered_tree, does_what_a_map_does) {
    const std::uint64_t seed = eddy::testing::seed_of_this_run();
    SCOPED_TRACE(seed);
    random_generator random(seed);
    for (const std::uint64_t range : {20U, 300U, 5'000U, 200'000U}) {
        owned_tree t;
        std::map<stream_id, int*> model;
        const auto any = [&] { return stream_id{random.below(range), random.below(2)}; };
        for (int i = 0; i < 60'000; ++i) {
            const stream_id id = any();
            // Now it grows, now it shrinks.
            if (random.below(10) < (i / 15'000 % 2 == 0 ? 7U : 3U)) {
                ASSERT_EQ(t.add(id), model.emplace(id, nullptr).second);
            } else {
                ASSERT_EQ(t.erase(t.memory, id), model.erase(id) == 1);
            }
            if (i % 5'000 == 0) t.check();
            const stream_id other = any();
            const auto at = t.lower_bound(other);
            const auto expected = model.lower_bound(other);
            ASSERT_EQ(static_cast<bool>(at), expected != model.end());
            if (at) ASSERT_EQ(at->id, expected->first);
            const auto before = t.last_up_to(other);
            const auto behind = model.upper_bound(other);
            ASSERT_EQ(static_cast<bool>(before), behind != model.begin());
            if (before) ASSERT_EQ(before->id, std::prev(behind)->first);
            ASSERT_EQ(static_cast<bool>(t.find(other)), model.contains(other));
        }
        t.check();
        ASSERT_EQ(t.size(), model.size());
        ASSERT_EQ(t.memory_bytes(), t.memory.used_bytes());
        auto at = t.first();
        for (const auto& [id, of] : model) {
            ASSERT_EQ(at->id, id);
            at.forward();
        }
        ASSERT_FALSE(at);
        at = t.last();
        for (auto i = model.rbegin(); i != model.rend(); ++i, at.backward()) {
            ASSERT_EQ(at->id, i->first);
        }
        ASSERT_FALSE(at);
    }
}

TEST(ordered_tree, is_freed_in_slices_and_tells_each_item_once) {
    owned_tree t;
    constexpr std::size_t items = 50'000;
    for (std::uint64_t i = 0; i < items; ++i) t.add({i * 7'919 % items, 0});
    std::size_t told = 0;
    std::size_t slices = 0;
    for (bool more = true; more; ++slices) {
        const std::size_t before = told;
        std::size_t steps = 100;
        more = t.free_some(t.memory, steps, [&](const tree::item&) { ++told; });
        // A node is freed whole.
        ASSERT_LE(told - before, 100 + tree::leaf_items);
    }
    EXPECT_EQ(told, items);
    EXPECT_GT(slices, items / 200);
    EXPECT_EQ(t.memory.used_bytes(), 0U);
}

TEST(ordered_tree, orders_names_by_their_bytes_whichever_goes_first) {
    const std::uint64_t seed = eddy::testing::seed_of_this_run();
    SCOPED_TRACE(seed);
    random_generator random(seed);
    slab memory;
    redis_stream entries;
    stream_group& group = *entries.add_group(memory, "g", {}, 0);
    std::map<std::string, int> model;
    for (int i = 0; i < 20'000; ++i) {
        std::string name(random.below(3), static_cast<char>(0xf0 + random.below(16)));
        name += std::to_string(random.below(700));
        stream_consumer* const found = group.find(name);
        ASSERT_EQ(found != nullptr, model.contains(name));
        if (random.below(10) < (i < 10'000 ? 7U : 3U)) {
            if (found == nullptr) group.add(memory, name, 0);
            model.emplace(name, 0);
        } else if (found != nullptr) {
            group.erase(memory, *found);
            model.erase(name);
        }
        if (i % 1'000 == 0) group.consumers.check();
    }
    auto at = group.consumers.first();
    for (const auto& [name, unused] : model) {
        ASSERT_EQ((*at)->name(), name);
        at.forward();
    }
    ASSERT_FALSE(at);
    while (entries.free_some(memory, 100)) {
    }
    EXPECT_EQ(memory.used_bytes(), 0U);
}

}  // namespace
}  // namespace eddy::cache
