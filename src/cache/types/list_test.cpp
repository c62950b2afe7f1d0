// Tests of lists against std::deque.
#include "cache/types/list.hpp"

#include <eddy/base/random.hpp>

#include "base/test_rounds.hpp"
#include "base/test_seed.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <string>

namespace eddy::cache {
namespace {

class owned_list {
public:
    ~owned_list() {
        values.clear(memory);
        EXPECT_EQ(memory.used_bytes(), 0U);
    }
    slab memory;
    list values;
};

void expect_same(const list& values, const std::deque<std::string>& model) {
    ASSERT_EQ(values.size(), model.size());
    list::position at = values.first();
    for (const std::string& each : model) {
        ASSERT_TRUE(at);
        ASSERT_EQ(list::get(at), each);
        at = list::after(at);
    }
    ASSERT_FALSE(at);
    at = values.last();
    for (auto each = model.rbegin(); each != model.rend(); ++each) {
        ASSERT_TRUE(at);
        ASSERT_EQ(list::get(at), *each);
        at = list::before(at);
    }
    ASSERT_FALSE(at);
}

std::string element(random_generator& random) {
    switch (random.below(12)) {
        case 0: return {};
        case 1: return std::string(250 + random.below(8), 'n');
        case 2: return std::string(random.below(3'000), 'b');
        case 3: return std::string(1'000 + random.below(60), 'c');
        case 4: return std::string(random.below(9'000), 'd');
        default: return "e" + std::to_string(random.below(1'000));
    }
}

TEST(list, agrees_with_a_model) {
    const std::uint64_t seed = eddy::testing::seed_of_this_run();
    SCOPED_TRACE(seed);
    random_generator random(seed);
    owned_list l;
    std::deque<std::string> model;
    for (int i = 0; i < eddy::testing::rounds(30'000); ++i) {
        const bool growing = i / 1'000 % 2 == 0;
        const std::size_t at = model.empty() ? 0 : random.below(model.size());
        const auto there = model.begin() + static_cast<std::ptrdiff_t>(at);
        switch (random.below(growing ? 8 : 11)) {
            case 0:
            case 1:
                model.push_front(element(random));
                l.values.push_front(l.memory, model.front());
                break;
            case 2:
            case 3:
                model.push_back(element(random));
                l.values.push_back(l.memory, model.back());
                break;
            case 4: {
                if (model.empty()) break;
                const std::string with = element(random);
                l.values.insert_before(l.memory, l.values.at(at), with);
                model.insert(there, with);
                break;
            }
            case 5: {
                if (model.empty()) break;
                const std::string with = element(random);
                l.values.insert_after(l.memory, l.values.at(at), with);
                model.insert(there + 1, with);
                break;
            }
            case 6: {
                if (model.empty()) break;
                *there = element(random);
                l.values.replace(l.memory, l.values.at(at), *there);
                break;
            }
            case 7: {
                if (model.empty()) break;
                ASSERT_EQ(list::get(l.values.at(at)), *there);
                break;
            }
            case 8: {
                if (model.empty()) break;
                const list::position next = l.values.erase(l.memory, l.values.at(at));
                model.erase(there);
                ASSERT_EQ(static_cast<bool>(next), at < model.size());
                if (next) ASSERT_EQ(list::get(next), model[at]);
                break;
            }
            case 9:
                if (model.empty()) break;
                ASSERT_EQ(l.values.front(), model.front());
                l.values.pop_front(l.memory);
                model.pop_front();
                break;
            default:
                if (model.empty()) break;
                ASSERT_EQ(l.values.back(), model.back());
                l.values.pop_back(l.memory);
                model.pop_back();
                break;
        }
        if (i % 250 == 0) ASSERT_NO_FATAL_FAILURE(expect_same(l.values, model)) << "step " << i;
    }
    expect_same(l.values, model);
}

TEST(list, a_queue_in_steady_state_takes_no_more_memory) {
    for (const bool forward : {true, false}) {
        owned_list l;
        for (int i = 0; i < 100; ++i) l.values.push_back(l.memory, "element");
        const std::size_t used = l.memory.used_bytes();
        for (int i = 0; i < 100'000; ++i) {
            if (forward) {
                l.values.push_back(l.memory, "element");
                l.values.pop_front(l.memory);
            } else {
                l.values.push_front(l.memory, "element");
                l.values.pop_back(l.memory);
            }
            ASSERT_LE(l.memory.used_bytes(), used + 2 * list::block_bytes);
        }
    }
}

TEST(list, small_lists_are_small_and_long_ones_dense) {
    owned_list small;
    small.values.push_back(small.memory, "one");
    EXPECT_LE(small.memory.used_bytes(), 96U);
    owned_list big;
    for (int i = 0; i < 100'000; ++i) big.values.push_back(big.memory, "12345678");
    EXPECT_LE(big.memory.used_bytes(), 100'000U * 11);
    EXPECT_EQ(big.values.memory_bytes(), big.memory.used_bytes());
}

TEST(list, many_elements_are_dropped_from_either_end) {
    for (const std::size_t from_front : {0U, 1U, 500U, 4'999U, 5'000U}) {
        owned_list l;
        for (int i = 0; i < 5'000; ++i) l.values.push_back(l.memory, std::to_string(i));
        l.values.drop_front(l.memory, from_front);
        const std::size_t from_back = l.values.size() / 2;
        l.values.drop_back(l.memory, from_back);
        ASSERT_EQ(l.values.size(), 5'000 - from_front - from_back);
        if (l.values.empty()) continue;
        EXPECT_EQ(l.values.front(), std::to_string(from_front));
        EXPECT_EQ(l.values.back(), std::to_string(4'999 - from_back));
    }
}

TEST(list, every_index_is_found_from_both_ends) {
    owned_list l;
    for (int i = 0; i < 5'000; ++i) l.values.push_back(l.memory, std::to_string(i));
    for (std::size_t i = 0; i < 5'000; ++i) {
        ASSERT_EQ(list::get(l.values.at(i)), std::to_string(i));
    }
}

TEST(list, shrinks_with_what_it_holds) {
    owned_list l;
    l.values.push_back(l.memory, "first");
    // Half as much again is no reason to copy.
    const std::size_t small = l.values.memory_bytes() * 3 / 2;
    const auto fill = [&] {
        while (l.values.size() < 300) l.values.push_back(l.memory, "element");
        EXPECT_GT(l.values.memory_bytes(), 2'000U);
    };
    fill();
    while (l.values.size() > 1) l.values.pop_back(l.memory);
    EXPECT_LE(l.values.memory_bytes(), small);
    EXPECT_EQ(l.values.front(), "first");
    fill();
    while (l.values.size() > 1) l.values.pop_front(l.memory);
    EXPECT_LE(l.values.memory_bytes(), small);
    EXPECT_EQ(l.values.front(), "element");
    fill();
    l.values.drop_back(l.memory, l.values.size() - 1);
    EXPECT_LE(l.values.memory_bytes(), small);
    fill();
    l.values.drop_front(l.memory, l.values.size() - 1);
    EXPECT_LE(l.values.memory_bytes(), small);
    // A queue of a few elements keeps its block.
    fill();
    while (l.values.size() > 20) l.values.pop_front(l.memory);
    const std::size_t queue = l.values.memory_bytes();
    for (int i = 0; i < 1'000; ++i) {
        l.values.push_back(l.memory, "element");
        l.values.pop_front(l.memory);
        ASSERT_EQ(l.values.memory_bytes(), queue);
    }
}

}  // namespace
}  // namespace eddy::cache
