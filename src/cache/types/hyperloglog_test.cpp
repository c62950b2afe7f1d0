// Tests of HyperLogLog's layouts against an array of registers; differential_test.cpp compares the
// bytes with Redis's.
#include "cache/types/hyperloglog.hpp"

#include <eddy/base/random.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>

namespace eddy::cache::hyperloglog {
namespace {

std::unique_ptr<registers> registers_of(std::string_view counter) {
    auto all = std::make_unique<registers>();
    EXPECT_TRUE(merge_into(*all, counter));
    return all;
}

TEST(hyperloglog, keeps_the_same_registers_in_every_layout) {
    random_generator random(7);
    for (const std::size_t limit : {std::size_t{40}, std::size_t{3000}, std::size_t{100'000}}) {
        sparse_editor editor(empty(), limit);
        const auto expected = std::make_unique<registers>();
        for (int i = 0; i < 5'000; ++i) {
            // Often the same neighbourhood, so that all kinds of runs occur and join.
            const auto index = static_cast<std::uint32_t>(
                random.below(2) == 0 ? random.below(register_count) : 100 + random.below(40));
            const auto rank = static_cast<std::uint8_t>(1 + random.below(4));
            std::uint8_t& was = (*expected)[index];
            const update done = editor.raise({index, rank});
            ASSERT_EQ(done, rank > was ? update::raised : update::none);
            was = std::max(was, rank);
            if (editor.is_sparse())
                ASSERT_LE(editor.text().size(), std::max<std::size_t>(limit, 18));
            if (i % 100 == 0) ASSERT_EQ(*registers_of(editor.text()), *expected);
        }
        ASSERT_EQ(*registers_of(editor.text()), *expected);
        EXPECT_EQ(editor.is_sparse(), limit == 100'000);
        EXPECT_EQ(count(editor.text()), count(*expected));
        ASSERT_TRUE(editor.become_dense());
        EXPECT_EQ(editor.text().size(), dense_bytes);
        EXPECT_EQ(*registers_of(editor.text()), *expected);
    }
}

// For ascending indexes a search continues at the last position; the result must not depend on
// that.
TEST(hyperloglog, is_the_same_whether_registers_rise_in_order_or_not) {
    random_generator random(8);
    for (std::uint32_t round = 0; round < 50; ++round) {
        sparse_editor start(empty(), 100'000);
        for (int i = 0; i < 200; ++i) {
            start.raise({static_cast<std::uint32_t>(random.below(3'000)),
                         static_cast<std::uint8_t>(1 + random.below(3))});
        }
        sparse_editor in_one(start.text(), 100'000);
        std::string step_by_step = start.text();
        for (std::uint32_t index = 0; index < 3'000; index += 1 + round % 7) {
            const observation what{index, static_cast<std::uint8_t>(1 + random.below(3))};
            in_one.raise(what);
            sparse_editor once(step_by_step, 100'000);
            once.raise(what);
            step_by_step = once.text();
            ASSERT_EQ(in_one.text(), step_by_step) << "register " << index;
        }
    }
}

TEST(hyperloglog, estimates_within_a_few_percent) {
    for (const int elements : {10, 1'000, 20'000, 300'000}) {
        sparse_editor editor(empty(), 3000);
        for (int i = 0; i < elements; ++i) editor.raise(observe("element " + std::to_string(i)));
        const auto estimate = count(editor.text());
        ASSERT_TRUE(estimate);
        EXPECT_LT(std::abs(static_cast<double>(*estimate) - elements), 0.03 * elements + 1);
    }
}

TEST(hyperloglog, damaged_ones_are_told) {
    EXPECT_FALSE(is_counter("HYLL"));
    EXPECT_FALSE(is_counter(std::string(100, 'x')));
    const std::string good = empty();
    EXPECT_TRUE(is_counter(good));
    std::string wrong_size = good;
    wrong_size[4] = 0;  // dense
    EXPECT_FALSE(is_counter(wrong_size));
    for (const std::string& bad :
         {good.substr(0, 17), good + '\0', good.substr(0, 16), good + "\x7f"}) {
        ASSERT_TRUE(is_counter(bad));
        EXPECT_FALSE(count(bad));
        registers all{};
        EXPECT_FALSE(merge_into(all, bad));
        EXPECT_FALSE(sparse_editor(bad, 3000).become_dense());
    }
    sparse_editor cut(good.substr(0, 16), 3000);
    EXPECT_EQ(cut.raise({5, 1}), update::damaged);
}

TEST(hyperloglog, remembers_the_cardinality_until_something_changes) {
    sparse_editor editor(empty(), 3000);
    EXPECT_EQ(cached(editor.text()), 0U);
    editor.raise({1, 1});
    EXPECT_FALSE(cached(editor.text()));
    std::string text = editor.text();
    set_cached(text.data(), 0x0123'4567'89ab'cdefULL);
    EXPECT_EQ(cached(text), 0x0123'4567'89ab'cdefULL);
    drop_cached(text.data());
    EXPECT_FALSE(cached(text));
}

}  // namespace
}  // namespace eddy::cache::hyperloglog
