// Tests of the tree against a sorted std::vector: ranks, bounds, walks, and its own invariants.
#include "cache/types/sorted_sets/score_tree.hpp"

#include <eddy/base/random.hpp>

#include "base/test_seed.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <compare>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::cache {
namespace {

// A sorted vector of them is moved about a lot: the text is kept elsewhere.
struct item {
    double score;
    std::string_view text;
    auto operator<=>(const item&) const = default;
};

// A tree with its members, and the vector that it must agree with.
class checked_tree {
public:
    ~checked_tree() {
        for (const auto& each : entries_) memory_.release(each.second, each.second->size());
        while (tree.free_some(memory_, 3)) {
        }
        EXPECT_EQ(memory_.used_bytes(), 0U);
    }

    void insert(double score, const std::string& text) {
        void* const block = memory_.allocate(entry::size_for(text.size(), 0, false));
        entry* const member = entry::make(block, text, 0, false);
        tree.insert(memory_, score, member);
        const auto kept = entries_.emplace(text, member).first;
        const item made{score, kept->first};
        model.insert(std::ranges::lower_bound(model, made), made);
    }
    void erase(std::size_t rank) {
        const auto [score, text] = model[rank];
        tree.erase(memory_, score, entry_of(text));
        model.erase(model.begin() + static_cast<std::ptrdiff_t>(rank));
        forget(text);
    }
    void change(std::size_t rank, double to) {
        const auto [score, text] = model[rank];
        tree.change(memory_, score, to, entry_of(text));
        model.erase(model.begin() + static_cast<std::ptrdiff_t>(rank));
        model.insert(std::ranges::lower_bound(model, item{to, text}), {to, text});
    }
    std::size_t erase_at(std::size_t rank, std::size_t most) {
        const std::size_t erased = tree.erase_at(memory_, rank, most);
        for (std::size_t i = rank; i < rank + erased; ++i) forget(model[i].text);
        const auto first = model.begin() + static_cast<std::ptrdiff_t>(rank);
        model.erase(first, first + static_cast<std::ptrdiff_t>(erased));
        return erased;
    }
    entry* entry_of(std::string_view text) { return entries_.find(text)->second; }

    // Everything at once; O(n log n).
    void agree() {
        tree.check();
        ASSERT_EQ(tree.size(), model.size());
        if (model.empty()) return;
        score_tree::position at = tree.at(0);
        for (std::size_t i = 0; i < model.size(); ++i, at.forward()) {
            ASSERT_TRUE(at);
            ASSERT_EQ(at.score(), model[i].score);
            ASSERT_EQ(at.member()->key(), model[i].text);
        }
        ASSERT_FALSE(at);
        at = tree.at(model.size() - 1);
        for (std::size_t i = model.size(); i-- > 0; at.backward()) {
            ASSERT_TRUE(at);
            ASSERT_EQ(at.member()->key(), model[i].text);
        }
        ASSERT_FALSE(at);
        for (std::size_t i = 0; i < model.size(); i += 1 + model.size() / 100) {
            ASSERT_EQ(tree.rank(model[i].score, entry_of(model[i].text)), i);
            ASSERT_EQ(tree.at(i).member()->key(), model[i].text);
        }
    }
    void bounds_agree(double score) {
        const auto below = [score](const item& i) { return i.score < score; };
        const auto up_to = [score](const item& i) { return i.score <= score; };
        ASSERT_EQ(tree.count_below(score, false),
                  static_cast<std::size_t>(std::ranges::count_if(model, below)));
        ASSERT_EQ(tree.count_below(score, true),
                  static_cast<std::size_t>(std::ranges::count_if(model, up_to)));
    }

    score_tree tree;
    std::vector<item> model;
    std::size_t bytes() const { return tree.memory_bytes(); }

private:
    void forget(std::string_view text) {
        const auto at = entries_.find(text);
        memory_.release(at->second, at->second->size());
        entries_.erase(at);
    }

    slab memory_;
    std::map<std::string, entry*, std::less<>> entries_;
};

// `scores` different ones: 1 makes all the order one of texts.
void grow_and_shrink(std::uint64_t scores, std::size_t size) {
    random_generator random(eddy::testing::seed_of_this_run());
    checked_tree t;
    const auto any_score = [&] { return static_cast<double>(random.below(scores)) / 4 - 7; };
    std::uint64_t next = 0;
    for (int phase = 0; phase < 4; ++phase) {
        const bool grows = phase % 2 == 0;
        const std::size_t target = grows ? size : size / 50;
        const auto done = [&] {
            return grows ? t.model.size() >= target : t.model.size() <= target;
        };
        for (std::size_t i = 0; !done(); ++i) {
            const std::uint64_t what = random.below(10);
            if (t.model.empty() || what < (grows ? 6U : 1U)) {
                // Texts in no order; each once.
                const std::uint64_t mixed = ++next * 0x9e37'79b9'7f4aULL % 1'000'003;
                t.insert(any_score(), std::to_string(mixed) + "-" + std::to_string(next));
            } else if (what < 8) {
                t.change(random.below(t.model.size()), any_score());
            } else if (what < 9 || !grows) {
                t.erase(random.below(t.model.size()));
            } else {
                t.erase_at(random.below(t.model.size()), 1 + random.below(3));
            }
            if (i % 256 == 0) {
                t.agree();
                t.bounds_agree(any_score());
                if (::testing::Test::HasFatalFailure()) return;
            }
        }
        t.agree();
        if (::testing::Test::HasFatalFailure()) return;
    }
    while (!t.model.empty()) {
        t.erase_at(random.below(t.model.size()), 1 + random.below(100));
        t.tree.check();
    }
}

TEST(score_tree, agrees_with_a_model_when_scores_differ) { grow_and_shrink(1'000'000, 6'000); }
TEST(score_tree, agrees_with_a_model_when_scores_are_few) { grow_and_shrink(20, 6'000); }
TEST(score_tree, agrees_with_a_model_when_all_scores_are_one) { grow_and_shrink(1, 6'000); }
TEST(score_tree, agrees_with_a_model_when_it_has_one_leaf_or_two) { grow_and_shrink(100, 80); }

TEST(score_tree, ascending_and_descending_items_fill_their_leaves) {
    for (const int direction : {1, -1}) {
        checked_tree t;
        for (int i = 0; i < 10'000; ++i) {
            t.insert(direction * i, "m" + std::to_string(i));
        }
        t.agree();
        EXPECT_LT(t.bytes() / t.model.size(), 19U) << direction;
    }
}

TEST(score_tree, random_items_fill_three_quarters) {
    random_generator random(eddy::testing::seed_of_this_run());
    checked_tree t;
    for (int i = 0; i < 10'000; ++i) t.insert(random.unit(), "m" + std::to_string(i));
    t.agree();
    EXPECT_LT(t.bytes() / t.model.size(), 23U);
}

// A queue takes from the front what it adds at the back.
TEST(score_tree, a_queue_stays_small) {
    checked_tree t;
    for (int i = 0; i < 20'000; ++i) {
        t.insert(i, "m" + std::to_string(i));
        if (i >= 500) t.erase(0);
    }
    t.agree();
    EXPECT_LT(t.bytes(), 500U * 48);
    while (t.model.size() > 1) t.erase(t.model.size() - 1);
    t.agree();
    t.erase(0);
    t.agree();
    EXPECT_EQ(t.bytes(), 0U);
}

TEST(score_tree, every_size_around_its_nodes_limits_is_right) {
    checked_tree t;
    for (unsigned i = 0; i < 4 * score_tree::leaf_items; ++i) {
        t.insert(i % 7, "m" + std::to_string(i));
        t.agree();
        if (HasFatalFailure()) return;
    }
    for (unsigned i = 0; !t.model.empty(); ++i) {
        t.erase(i % 3 == 0 ? 0 : t.model.size() / 2);
        t.agree();
        if (HasFatalFailure()) return;
    }
}

TEST(score_tree, infinite_scores_are_at_the_ends) {
    checked_tree t;
    for (int i = 0; i < 300; ++i) t.insert(i, "m" + std::to_string(i));
    t.insert(INFINITY, "last");
    t.insert(-INFINITY, "first");
    t.agree();
    EXPECT_EQ(t.tree.count_below(-INFINITY, false), 0U);
    EXPECT_EQ(t.tree.count_below(-INFINITY, true), 1U);
    EXPECT_EQ(t.tree.count_below(INFINITY, false), 301U);
    EXPECT_EQ(t.tree.count_below(INFINITY, true), 302U);
}

TEST(score_tree, texts_are_bounds_where_all_scores_are_one) {
    checked_tree t;
    for (int i = 1'000; i < 2'000; i += 2) t.insert(5, std::to_string(i));
    EXPECT_EQ(t.tree.count_below(std::string_view("1500"), false), 250U);
    EXPECT_EQ(t.tree.count_below(std::string_view("1500"), true), 251U);
    EXPECT_EQ(t.tree.count_below(std::string_view("1501"), true), 251U);
    EXPECT_EQ(t.tree.count_below(std::string_view(""), true), 0U);
    EXPECT_EQ(t.tree.count_below(std::string_view("9"), false), 500U);
}

}  // namespace
}  // namespace eddy::cache
