// Tests of sets and hashes against std::map, over the conversions from block to table.
#include "cache/types/collection.hpp"

#include <eddy/base/random.hpp>

#include "base/test_seed.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace eddy::cache {
namespace {

// A collection under no key.
class owned_collection {
public:
    explicit owned_collection(value_type type)
        : holder_(entry::make(env.memory.allocate(entry::size_for(0, sizeof(void*), false)), {},
                              sizeof(void*), false)) {
        collection::make(env, *holder_, type);
    }
    ~owned_collection() {
        release_entry(env, holder_);
        while (env.free_some(1'000)) {
        }
        EXPECT_EQ(env.memory.used_bytes(), 0U);
    }
    collection operator()() { return {env, *holder_}; }
    const entry& holder() const noexcept { return *holder_; }

    environment env{eddy::testing::seed_of_this_run()};

private:
    entry* holder_;
};

std::string text(random_generator& random, std::size_t range, bool with_long) {
    switch (with_long ? random.below(200) : 4) {
        case 0: return {};
        case 1: return std::string(64, 'x');
        case 2: return std::string(65, 'y');
        case 3: return std::string(random.below(3'000), 'z');
        default: return "f" + std::to_string(random.below(range));
    }
}

void agrees_with_a_model(value_type type, bool with_long) {
    const std::uint64_t seed = eddy::testing::seed_of_this_run();
    SCOPED_TRACE(seed);
    random_generator random(seed);
    for (const std::size_t range : {5U, 30U, 40U, 300U, 2'000U, 50'000U}) {
        owned_collection c(type);
        std::map<std::string, std::string> model;
        for (std::size_t i = 0; i < std::max<std::size_t>(3'000, range * 2); ++i) {
            const std::string field = text(random, range, with_long);
            const bool is_hash = type == value_type::hash;
            const std::string value = is_hash ? text(random, 1'000, with_long) : std::string();
            ASSERT_EQ(c().contains(field), model.contains(field));
            if (random.below(3) != 0) {
                ASSERT_EQ(c().put(field, value), !model.contains(field));
                model[field] = value;
            } else {
                ASSERT_EQ(c().erase(field), model.erase(field) == 1);
            }
            ASSERT_EQ(c().size(), model.size());
            const auto got = c().get(field);
            ASSERT_EQ(got.has_value(), model.contains(field));
            if (got) ASSERT_EQ(*got, model[field]);
        }
        std::map<std::string, std::string> walked;
        collection::walk walk(c());
        for (collection::element e; walk.next(e);) {
            ASSERT_TRUE(walked.emplace(e.field, e.value).second);
        }
        EXPECT_EQ(walked, model);
        std::map<std::string, std::string> scanned;
        std::uint64_t cursor = 0;
        do {
            std::vector<collection::element> found;
            cursor = c().scan(cursor, found);
            for (const auto& e : found) scanned.emplace(e.field, e.value);
        } while (cursor != 0);
        EXPECT_EQ(scanned, model);
    }
}

TEST(collection, a_set_agrees_with_a_model) {
    agrees_with_a_model(value_type::set, true);
    agrees_with_a_model(value_type::set, false);
}
TEST(collection, a_hash_agrees_with_a_model) {
    agrees_with_a_model(value_type::hash, true);
    agrees_with_a_model(value_type::hash, false);
}

std::vector<std::string> fields_of(const collection& all) {
    std::vector<std::string> found;
    collection::walk walk(all);
    for (collection::element e; walk.next(e);) found.emplace_back(e.field);
    return found;
}

TEST(collection, a_block_keeps_the_order_in_which_fields_came) {
    random_generator random(eddy::testing::seed_of_this_run());
    for (const value_type type : {value_type::hash, value_type::set}) {
        owned_collection c(type);
        const bool is_hash = type == value_type::hash;
        const std::size_t most = is_hash ? c.env.limits.hash_fields : c.env.limits.set_members;
        std::vector<std::string> order;
        std::map<std::string, std::string> values;
        for (int i = 0; i < 20'000; ++i) {
            // Grows, shrinks and grows again.
            const bool adds = random.below(8) < (i / 3'000 % 2 == 0 ? 6U : 2U);
            std::string field = "f" + std::to_string(random.below(2 * most));
            field.resize(std::max(field.size(), random.below(65)), '.');
            const bool known = values.contains(field);
            if (adds && (known || order.size() < most)) {
                const std::string value(is_hash ? random.below(65) : 0, 'v');
                ASSERT_EQ(c().put(field, value), !known);
                if (!known) order.push_back(field);
                values[field] = value;
            } else if (!adds && !order.empty()) {
                const std::string gone = order[random.below(order.size())];
                ASSERT_TRUE(c().erase(gone));
                std::erase(order, gone);
                values.erase(gone);
            }
            if (i % 50 != 0) continue;
            ASSERT_TRUE(c().is_listed());
            ASSERT_EQ(fields_of(c()), order);
            for (const auto& [each, value] : values) ASSERT_EQ(c().get(each), value);
        }
    }
}

TEST(collection, a_set_of_integers_is_in_the_order_of_their_values) {
    random_generator random(eddy::testing::seed_of_this_run());
    owned_collection c(value_type::set);
    std::set<std::int64_t> model;
    const auto next = [&]() -> std::int64_t {
        switch (random.below(8)) {
            case 0: return INT64_MIN + static_cast<std::int64_t>(random.below(3));
            case 1: return INT64_MAX - static_cast<std::int64_t>(random.below(3));
            case 2: return static_cast<std::int64_t>(random());
            default: return static_cast<std::int64_t>(random.below(900)) - 300;
        }
    };
    while (model.size() < c.env.limits.set_integers) {
        const std::int64_t number = next();
        ASSERT_EQ(c().put(std::to_string(number)), model.insert(number).second);
        if (random.below(4) == 0) {
            const std::int64_t gone = next();
            ASSERT_EQ(c().erase(std::to_string(gone)), model.erase(gone) == 1);
        }
    }
    std::vector<std::string> sorted;
    for (const std::int64_t each : model) sorted.push_back(std::to_string(each));
    EXPECT_EQ(fields_of(c()), sorted);
    EXPECT_TRUE(c().is_integers());
    c().put("1000000");
    EXPECT_EQ(c.holder().held_as, encoding::table);

    // With another text the order stays, and what comes then is behind it.
    owned_collection mixed(value_type::set);
    for (const char* const each : {"10", "-3", "9", "text", "1", "007"}) mixed().put(each);
    EXPECT_EQ(fields_of(mixed()), (std::vector<std::string>{"-3", "9", "10", "text", "1", "007"}));
    EXPECT_FALSE(mixed().is_integers());
}

TEST(collection, becomes_a_table_at_its_limits) {
    const auto fill = [](owned_collection& c, std::size_t count, const std::string& prefix) {
        for (std::size_t i = 0; i < count; ++i) c().put(prefix + std::to_string(i));
    };
    owned_collection set(value_type::set);
    fill(set, set.env.limits.set_members, "m");
    EXPECT_TRUE(set().is_listed());
    set().put("m0");
    EXPECT_TRUE(set().is_listed());
    set().put("one more");
    EXPECT_EQ(set.holder().held_as, encoding::table);
    EXPECT_EQ(set().size(), set.env.limits.set_members + 1);

    owned_collection hash(value_type::hash);
    fill(hash, hash.env.limits.hash_fields, "f");
    EXPECT_TRUE(hash().is_listed());
    hash().put("one more");
    EXPECT_EQ(hash.holder().held_as, encoding::table);

    // Integers that are more than members of a listpack may be, and a text.
    owned_collection integers(value_type::set);
    fill(integers, integers.env.limits.set_members, "");
    EXPECT_TRUE(integers().is_integers());
    integers().put("text");
    EXPECT_EQ(integers.holder().held_as, encoding::table);

    owned_collection longer(value_type::hash);
    longer().put("field", std::string(longer.env.limits.hash_text, 'x'));
    EXPECT_EQ(longer.holder().held_as, encoding::packed);
    longer().put("field", std::string(longer.env.limits.hash_text + 1, 'x'));
    EXPECT_EQ(longer.holder().held_as, encoding::table);
    EXPECT_EQ(longer().get("field")->size(), longer.env.limits.hash_text + 1);

    owned_collection few(value_type::hash);
    few.env.limits.hash_fields = 2;
    fill(few, 2, "f");
    EXPECT_TRUE(few().is_listed());
    few().put("third");
    EXPECT_FALSE(few().is_listed());

    // A block's own limits, where those of the encoding are raised.
    owned_collection many(value_type::hash);
    many.env.limits.hash_fields = 1'000'000;
    fill(many, indexed_block::max_fields, "f");
    EXPECT_TRUE(many().is_listed());
    many().put("one more");
    EXPECT_FALSE(many().is_listed());
    owned_collection large(value_type::hash);
    large.env.limits.hash_text = 1'000'000;
    const std::string value(packed_text::longest, 'x');
    for (std::size_t i = 0; i < indexed_block::max_bytes / packed_text::longest; ++i)
        large().put(std::to_string(i), value);
    EXPECT_FALSE(large().is_listed());
    EXPECT_EQ(large().get("0"), value);
    owned_collection longest(value_type::hash);
    longest.env.limits.hash_text = 1'000'000;
    longest().put("f", value);
    EXPECT_TRUE(longest().is_listed());
    longest().put("f", value + 'x');
    EXPECT_FALSE(longest().is_listed());
}

TEST(collection, a_block_of_few_gives_memory_back) {
    owned_collection c(value_type::hash);
    const std::string value(64, 'v');
    for (int i = 0; i < 500; ++i) c().put(std::to_string(i), value);
    const std::size_t full = c.env.memory.used_bytes();
    for (int i = 0; i < 490; ++i) c().erase(std::to_string(i));
    EXPECT_LT(c.env.memory.used_bytes(), full / 4);
    EXPECT_EQ(c().get("495"), value);
    EXPECT_TRUE(c().is_listed());
}

TEST(collection, a_copy_is_held_as_its_original) {
    for (const std::size_t size : {3U, 100U, 600U}) {
        owned_collection c(value_type::hash);
        for (std::size_t i = 0; i < size; ++i) c().put(std::to_string(i), "v" + std::to_string(i));
        for (std::size_t i = 2; i < size; ++i) c().erase(std::to_string(i));
        entry* const to =
            entry::make(c.env.memory.allocate(entry::size_for(0, sizeof(void*), false)), {},
                        sizeof(void*), false);
        c().copy_to(*to);
        EXPECT_EQ(to->held_as, c.holder().held_as);
        EXPECT_EQ(fields_of({c.env, *to}).size(), 2U);
        EXPECT_EQ(collection(c.env, *to).get("1"), "v1");
        release_entry(c.env, to);
    }
}

TEST(collection, random_picks_reach_every_element) {
    for (const std::size_t size : {1U, 20U, 500U, 600U}) {
        owned_collection c(value_type::hash);
        for (std::size_t i = 0; i < size; ++i) c().put(std::to_string(i), "v" + std::to_string(i));
        std::set<std::string> seen;
        for (std::size_t i = 0; i < size * 60 && seen.size() < size; ++i) {
            const collection::element e = c().random();
            EXPECT_EQ(e.value, "v" + std::string(e.field));
            seen.emplace(e.field);
        }
        EXPECT_EQ(seen.size(), size);
    }
}

TEST(collection, a_big_one_is_freed_in_slices) {
    environment env(1);
    entry* const holder = entry::make(env.memory.allocate(entry::size_for(0, sizeof(void*), false)),
                                      {}, sizeof(void*), false);
    collection::make(env, *holder, value_type::set);
    collection c(env, *holder);
    for (int i = 0; i < 10'000; ++i) c.put(std::to_string(i));
    const std::size_t used = env.memory.used_bytes();
    release_entry(env, holder);
    EXPECT_GT(env.memory.used_bytes(), used / 2);
    EXPECT_EQ(env.discarded(), 1U);
    int slices = 0;
    while (env.free_some(100)) ++slices;
    EXPECT_GE(slices, 99);
    EXPECT_EQ(env.memory.used_bytes(), 0U);
    EXPECT_EQ(env.discarded(), 0U);
}

// Adding and removing at the same size does not copy the block each time.
void shrinks_with_what_it_holds(value_type type) {
    owned_collection c(type);
    const std::string value = type == value_type::hash ? "value" : "";
    const std::size_t before = c.env.memory.used_bytes();
    const auto name = [](std::size_t i) { return "f" + std::to_string(i); };
    for (std::size_t i = 0; i < 120; ++i) c().put(name(i), value);
    std::size_t last = c.env.memory.used_bytes();
    const std::size_t most = last;
    std::size_t copies = 0;
    for (std::size_t i = 120; i-- > 1;) {
        ASSERT_TRUE(c().erase(name(i)));
        copies += c.env.memory.used_bytes() != last ? 1 : 0;
        last = c.env.memory.used_bytes();
        EXPECT_EQ(c().get(name(0)), value);
        ASSERT_EQ(c().size(), i);
    }
    EXPECT_EQ(last, before);
    EXPECT_LT(copies, 12U);
    for (std::size_t size = 1; size < 119; ++size) {
        c().put(name(size), value);
        const std::size_t filled = c.env.memory.used_bytes();
        c().erase(name(size));
        c().put(name(size), value);
        EXPECT_EQ(c.env.memory.used_bytes(), filled) << size;
    }
    c().put(name(119), value);
    EXPECT_LE(c.env.memory.used_bytes(), most);
}

TEST(collection, a_set_shrinks_with_what_it_holds) { shrinks_with_what_it_holds(value_type::set); }
TEST(collection, a_hash_shrinks_with_what_it_holds) {
    shrinks_with_what_it_holds(value_type::hash);
}

TEST(collection, a_hash_shrinks_with_its_values) {
    owned_collection c(value_type::hash);
    const auto fill = [&](std::size_t size) {
        for (const char* const field : {"a", "b", "c", "d"}) c().put(field, std::string(size, 'x'));
        return c.env.memory.used_bytes();
    };
    const std::size_t small = fill(1);
    EXPECT_GT(fill(60), small);
    EXPECT_EQ(fill(1), small);
    EXPECT_EQ(c().get("d"), "x");
}

}  // namespace
}  // namespace eddy::cache
