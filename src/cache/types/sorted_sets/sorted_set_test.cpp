// Tests of sorted sets against a model, over the conversion from packed to table.
#include "cache/types/sorted_sets/sorted_set.hpp"

#include <eddy/base/random.hpp>

#include "base/test_seed.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace eddy::cache {
namespace {

entry* make_holder(environment& env) {
    return entry::make(env.memory.allocate(entry::size_for(0, sizeof(void*), false)), {},
                       sizeof(void*), false);
}

// A sorted set under no key.
class owned_sorted_set {
public:
    owned_sorted_set() : holder_(make_holder(env)) { sorted_set::make(env, *holder_); }
    ~owned_sorted_set() {
        release_entry(env, holder_);
        while (env.free_some(1'000)) {
        }
        EXPECT_EQ(env.memory.used_bytes(), 0U);
    }
    sorted_set operator()() { return {env, *holder_}; }
    void put(const std::string& member, double score) {
        const sorted_set::place at = (*this)().find(member);
        if (at) {
            (*this)().change(at, score);
        } else {
            (*this)().add(member, score, at);
        }
    }
    const entry& holder() const noexcept { return *holder_; }

    environment env{eddy::testing::seed_of_this_run()};

private:
    entry* holder_;
};

using model_map = std::map<std::string, double>;

std::vector<std::pair<double, std::string>> in_order(const model_map& model) {
    std::vector<std::pair<double, std::string>> all;
    for (const auto& [member, score] : model) all.emplace_back(score, member);
    std::ranges::sort(all);
    return all;
}

void agrees(const sorted_set& s, const model_map& model) {
    const auto expected = in_order(model);
    ASSERT_EQ(s.size(), expected.size());
    sorted_set::element e;
    sorted_set::walk forward(s);
    for (const auto& [score, member] : expected) {
        ASSERT_TRUE(forward.next(e));
        ASSERT_EQ(e.member, member);
        ASSERT_EQ(e.score, score);
    }
    ASSERT_FALSE(forward.next(e));
    sorted_set::walk backward(s, true);
    for (std::size_t i = expected.size(); i-- > 0;) {
        ASSERT_TRUE(backward.next(e));
        ASSERT_EQ(e.member, expected[i].second);
    }
    ASSERT_FALSE(backward.next(e));
    for (std::size_t i = 0; i < expected.size(); i += 1 + expected.size() / 20) {
        const sorted_set::place at = s.find(expected[i].second);
        ASSERT_TRUE(at);
        ASSERT_EQ(at.score, expected[i].first);
        ASSERT_EQ(s.rank(at), i);
        ASSERT_EQ(s.at(i).member, expected[i].second);
        sorted_set::walk from(s, i, false);
        ASSERT_TRUE(from.next(e));
        ASSERT_EQ(e.member, expected[i].second);
        sorted_set::walk back(s, i, true);
        ASSERT_TRUE(back.next(e));
        ASSERT_EQ(e.member, expected[i].second);
        ASSERT_EQ(back.next(e), i > 0);
        const double score = expected[i].first;
        const auto below = [score](const auto& x) { return x.first < score; };
        const auto up_to = [score](const auto& x) { return x.first <= score; };
        ASSERT_EQ(s.count_below(score, false),
                  static_cast<std::size_t>(std::ranges::count_if(expected, below)));
        ASSERT_EQ(s.count_below(score, true),
                  static_cast<std::size_t>(std::ranges::count_if(expected, up_to)));
    }
}

std::string any_member(random_generator& random, std::size_t range) {
    switch (random.below(300)) {
        case 0: return {};
        case 1: return std::string(64, 'x');
        case 2: return range > 100 ? std::string(65, 'y') : "y";
        case 3: return range > 100 ? std::string(random.below(3'000), 'z') : "z";
        default: return "m" + std::to_string(random.below(range));
    }
}

TEST(sorted_set, agrees_with_a_model) {
    const std::uint64_t seed = eddy::testing::seed_of_this_run();
    SCOPED_TRACE(seed);
    random_generator random(seed);
    for (const std::size_t range : {5U, 100U, 140U, 3'000U, 30'000U}) {
        owned_sorted_set s;
        model_map model;
        const auto any_score = [&] { return static_cast<double>(random.below(range)) / 8 - 3; };
        for (std::size_t i = 0; i < std::max<std::size_t>(4'000, range); ++i) {
            const std::string member = any_member(random, range);
            const std::uint64_t what = random.below(100);
            if (what < 66) {
                const double score = any_score();
                s.put(member, score);
                model[member] = score;
            } else if (what < 98) {
                ASSERT_EQ(s().erase(member), model.erase(member) == 1);
            } else if (!model.empty()) {
                const std::size_t first = random.below(model.size());
                const std::size_t count = 1 + random.below(model.size() - first);
                const std::size_t few = std::min<std::size_t>(count, 1 + random.below(200));
                const auto expected = in_order(model);
                s().erase_range(first, few);
                for (std::size_t j = first; j < first + few; ++j) model.erase(expected[j].second);
            }
            const sorted_set::place at = s().find(member);
            ASSERT_EQ(static_cast<bool>(at), model.contains(member));
            if (i % 97 == 0) {
                agrees(s(), model);
                if (HasFatalFailure()) return;
            }
        }
        agrees(s(), model);
        if (HasFatalFailure()) return;

        model_map scanned;
        std::uint64_t cursor = 0;
        do {
            std::vector<sorted_set::element> found;
            cursor = s().scan(cursor, found);
            for (const auto& e : found) scanned.emplace(e.member, e.score);
        } while (cursor != 0);
        EXPECT_EQ(scanned, model);

        entry* const other = make_holder(s.env);
        s().copy_to(*other);
        sorted_set copy(s.env, *other);
        agrees(copy, model);
        EXPECT_EQ(copy.is_listed(), s().is_listed());
        if (copy.erase("m1")) model.erase("m1");
        agrees(copy, model);
        release_entry(s.env, other);
    }
}

TEST(sorted_set, becomes_a_table_at_its_limits) {
    owned_sorted_set many;
    for (std::size_t i = 0; i < sorted_set::max_packed_members; ++i) {
        many.put(std::to_string(i), 1);
    }
    EXPECT_EQ(many.holder().held_as, encoding::packed);
    many.put("0", 2);
    EXPECT_EQ(many.holder().held_as, encoding::packed);
    EXPECT_TRUE(many().is_listed());
    many.put("one more", 1);
    EXPECT_EQ(many.holder().held_as, encoding::sorted_table);
    EXPECT_EQ(many().size(), sorted_set::max_packed_members + 1);
    EXPECT_FALSE(many().is_listed());

    owned_sorted_set longer;
    longer.put(std::string(sorted_set::max_packed_text, 'x'), 1);
    EXPECT_EQ(longer.holder().held_as, encoding::packed);
    longer.put(std::string(sorted_set::max_packed_text + 1, 'x'), 1);
    EXPECT_EQ(longer.holder().held_as, encoding::sorted_table);
    EXPECT_FALSE(longer().is_listed());
}

// A listpack of Redis may be larger than a packed block, which is one small block of the slab.
TEST(sorted_set, a_full_block_becomes_a_table_that_is_called_listed) {
    owned_sorted_set s;
    const auto member = [](int i) {
        return std::string(sorted_set::max_packed_text - 3, 'x') + std::to_string(100 + i);
    };
    int i = 0;
    for (; s.holder().held_as == encoding::packed; ++i) s.put(member(i), i);
    EXPECT_GT(i, 54);
    EXPECT_LT(i, 64);
    EXPECT_TRUE(s().is_listed());
    for (; i < 128; ++i) s.put(member(i), i);
    EXPECT_TRUE(s().is_listed());
    s.put("one more", 1);
    EXPECT_FALSE(s().is_listed());
}

TEST(sorted_set, scores_that_take_more_bytes_may_fill_the_block) {
    owned_sorted_set s;
    model_map model;
    const auto member = [](int i) { return std::string(40, 'x') + std::to_string(100 + i); };
    for (int i = 0; i < 80; ++i) {
        s.put(member(i), i);
        model[member(i)] = i;
    }
    EXPECT_EQ(s.holder().held_as, encoding::packed);
    // Whole numbers of 32 bits are short, and no others.
    const double odd[] = {0.5,         -0.0,  2147483647, 2147483648, -2147483648,
                          -2147483649, 1e300, HUGE_VAL,   -HUGE_VAL,  5e-324};
    int changed = 0;
    for (; s.holder().held_as == encoding::packed && changed < 80; ++changed) {
        const double score = odd[changed % 10];
        s.put(member(changed), score);
        model[member(changed)] = score;
        agrees(s(), model);
        if (HasFatalFailure()) return;
    }
    EXPECT_EQ(s.holder().held_as, encoding::sorted_table);
    EXPECT_TRUE(s().is_listed());
    EXPECT_TRUE(std::signbit(s().find(member(1)).score));
    agrees(s(), model);
}

TEST(sorted_set, a_big_one_is_freed_in_slices) {
    environment env(1);
    entry* const holder = make_holder(env);
    sorted_set::make(env, *holder);
    sorted_set s(env, *holder);
    for (int i = 0; i < 10'000; ++i) {
        const std::string member = std::to_string(i);
        s.add(member, i % 100, s.find(member));
    }
    const std::size_t used = env.memory.used_bytes();
    EXPECT_GT(memory_usage(env, *holder, 0), used * 9 / 10);
    EXPECT_LE(memory_usage(env, *holder, 0), used);
    release_entry(env, holder);
    EXPECT_GT(env.memory.used_bytes(), used * 9 / 10);
    EXPECT_EQ(env.discarded(), 2U);
    int slices = 0;
    while (env.free_some(100)) ++slices;
    EXPECT_GE(slices, 100);
    EXPECT_EQ(env.memory.used_bytes(), 0U);
    EXPECT_EQ(env.discarded(), 0U);
}

}  // namespace
}  // namespace eddy::cache
