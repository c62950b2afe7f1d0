// Tests of sets and hashes against std::map, over the conversion from packed to table.
#include "cache/types/collection.hpp"

#include <eddy/base/random.hpp>

#include "base/test_seed.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

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

std::string text(random_generator& random, std::size_t range) {
    switch (random.below(200)) {
        case 0: return {};
        case 1: return std::string(64, 'x');
        case 2: return std::string(65, 'y');
        case 3: return std::string(random.below(3'000), 'z');
        default: return "f" + std::to_string(random.below(range));
    }
}

void agrees_with_a_model(value_type type) {
    const std::uint64_t seed = eddy::testing::seed_of_this_run();
    SCOPED_TRACE(seed);
    random_generator random(seed);
    for (const std::size_t range : {5U, 30U, 40U, 2'000U, 50'000U}) {
        owned_collection c(type);
        std::map<std::string, std::string> model;
        for (std::size_t i = 0; i < std::max<std::size_t>(3'000, range * 2); ++i) {
            const std::string field = text(random, range);
            const bool is_hash = type == value_type::hash;
            const std::string value = is_hash ? text(random, 1'000) : std::string();
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

TEST(collection, a_set_agrees_with_a_model) { agrees_with_a_model(value_type::set); }
TEST(collection, a_hash_agrees_with_a_model) { agrees_with_a_model(value_type::hash); }

TEST(collection, becomes_a_table_at_its_limits) {
    owned_collection many(value_type::set);
    for (std::size_t i = 0; i < collection::max_packed_fields; ++i) many().put(std::to_string(i));
    EXPECT_EQ(many.holder().held_as, encoding::packed);
    many().put("0");
    EXPECT_EQ(many.holder().held_as, encoding::packed);
    many().put("one more");
    EXPECT_EQ(many.holder().held_as, encoding::table);
    EXPECT_EQ(many().size(), collection::max_packed_fields + 1);

    owned_collection longer(value_type::hash);
    longer().put("field", std::string(collection::max_packed_text, 'x'));
    EXPECT_EQ(longer.holder().held_as, encoding::packed);
    longer().put("field", std::string(collection::max_packed_text + 1, 'x'));
    EXPECT_EQ(longer.holder().held_as, encoding::table);
    EXPECT_EQ(longer().get("field")->size(), collection::max_packed_text + 1);
}

TEST(collection, random_picks_reach_every_element) {
    for (const std::size_t size : {1U, 20U, 500U}) {
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

}  // namespace
}  // namespace eddy::cache
