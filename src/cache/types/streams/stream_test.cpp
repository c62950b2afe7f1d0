// Tests of streams against a model; groups; memory; input from outside.
#include "cache/types/streams/stream.hpp"

#include <eddy/base/random.hpp>

#include "base/test_seed.hpp"
#include "cache/keyspace/environment.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace eddy::cache {
namespace {

using texts = std::vector<std::string>;

struct owned_stream : redis_stream {
    ~owned_stream() {
        while (free_some(memory, 1'000)) {
        }
        EXPECT_EQ(memory.used_bytes(), 0U);
    }
    void add(stream_id id, const texts& pairs, stream_block_limits limits = {}) {
        const std::vector<std::string_view> views(pairs.begin(), pairs.end());
        append(memory, id, views.data(), views.size() / 2, limits);
    }
    slab memory;
};

texts pairs_at(redis_stream::walk& at) {
    texts found;
    for (std::size_t i = at.pairs(); i > 0; --i) {
        listpack::element field;
        listpack::element value;
        char digits[24];
        at.pair(field, value);
        found.emplace_back(field.text(digits));
        found.emplace_back(value.text(digits));
    }
    return found;
}

std::vector<stream_id> ids_of(const redis_stream& s, stream_id first, stream_id last,
                              redis_stream::order direction = redis_stream::order::forward) {
    std::vector<stream_id> found;
    redis_stream::walk at(s, first, last, direction);
    while (at.next()) found.push_back(at.id());
    return found;
}

std::string text_of(random_generator& random) {
    switch (random.below(7)) {
        case 0: return std::to_string(static_cast<std::int64_t>(random()) >> random.below(64));
        case 1: return std::string(random.below(100), 'x');
        case 2: return random.below(20) == 0 ? std::string(random.below(20'000), 'y') : "";
        case 3: return std::to_string(random.below(300));
        default: return "value " + std::to_string(random.below(100));
    }
}

// The slab also counts what malloc takes for each block that is large.
void expect_counted(const owned_stream& s) {
    const std::size_t counted = s.memory_bytes(0);
    EXPECT_LE(counted, s.memory.used_bytes());
    EXPECT_LE(s.memory.used_bytes(), counted + 16 * s.blocks());
}

TEST(stream, does_what_a_map_does) {
    const std::uint64_t seed = eddy::testing::seed_of_this_run();
    SCOPED_TRACE(seed);
    random_generator random(seed);
    for (const stream_block_limits limits :
         {stream_block_limits{}, {400, 5}, {0, 0}, {4096, 1}, {20'000, 1'000}, {1, 100}}) {
        owned_stream s;
        std::map<stream_id, texts> model;
        stream_id last;
        const auto any = [&] {
            return stream_id{last.ms - random.below(last.ms + 1), random.below(4)};
        };
        for (int i = 0; i < 4'000; ++i) {
            const unsigned what = static_cast<unsigned>(random.below(20));
            if (what < 12) {
                last.seq += 1 + random.below(2);
                if (random.below(3) == 0) last = {last.ms + 1 + random.below(3), random.below(2)};
                if (random.below(500) == 0) last.ms += 1ULL << random.below(40);
                texts pairs{"a", text_of(random), "7", text_of(random)};
                if (random.below(4) == 0) pairs = {text_of(random), text_of(random)};
                s.add(last, pairs, limits);
                model[last] = pairs;
            } else if (what < 16) {
                const stream_id id =
                    model.empty() || random.below(3) == 0
                        ? any()
                        : std::next(model.begin(),
                                    static_cast<std::ptrdiff_t>(random.below(model.size())))
                              ->first;
                ASSERT_EQ(s.erase(s.memory, id), model.erase(id) == 1);
            } else if (random.below(30) == 0) {
                stream_trim request;
                request.what = random.below(2) == 0 ? stream_trim::by::length : stream_trim::by::id;
                request.length = random.below(model.size() + 2);
                request.id = any();
                request.approximate = random.below(2) == 0;
                request.limit = request.approximate ? random.below(300) : 0;
                const std::size_t removed = s.trim(s.memory, request).entries;
                auto end = std::next(model.begin(), static_cast<std::ptrdiff_t>(removed));
                model.erase(model.begin(), end);
                ASSERT_EQ(s.size(), model.size());
                if (!request.approximate) {
                    if (request.what == stream_trim::by::length) {
                        ASSERT_LE(s.size(), request.length);
                    } else {
                        ASSERT_TRUE(model.empty() || model.begin()->first >= request.id);
                    }
                } else if (request.what == stream_trim::by::length && removed > 0) {
                    ASSERT_GE(s.size(), request.length);
                }
            }
            const stream_id first = any();
            const stream_id end = any();
            std::vector<stream_id> expected;
            for (auto at = model.lower_bound(first); at != model.end() && at->first <= end; ++at) {
                expected.push_back(at->first);
                if (expected.size() == 5) break;
            }
            redis_stream::walk forward(s, first, end);
            for (const stream_id id : expected) {
                ASSERT_TRUE(forward.next()) << "seed " << seed;
                ASSERT_EQ(forward.id(), id) << "seed " << seed;
            }
            if (expected.size() < 5) ASSERT_FALSE(forward.next());
            if (i % 400 == 0) s.check();
        }
        s.check();
        redis_stream::walk forward(s, {}, stream_id::max());
        for (const auto& [id, pairs] : model) {
            ASSERT_TRUE(forward.next());
            ASSERT_EQ(forward.id(), id);
            ASSERT_EQ(pairs_at(forward), pairs) << "seed " << seed;
        }
        ASSERT_FALSE(forward.next());
        redis_stream::walk backward(s, {}, stream_id::max(), redis_stream::order::backward);
        for (auto at = model.rbegin(); at != model.rend(); ++at) {
            ASSERT_TRUE(backward.next());
            ASSERT_EQ(backward.id(), at->first);
            ASSERT_EQ(pairs_at(backward), at->second);
        }
        ASSERT_FALSE(backward.next());
        expect_counted(s);

        redis_stream copy = s.copy(s.memory);
        copy.check();
        EXPECT_EQ(ids_of(copy, {}, stream_id::max()), ids_of(s, {}, stream_id::max()));
        while (copy.free_some(s.memory, 100)) {
        }
        expect_counted(s);
    }
}

TEST(stream, blocks_are_full_when_a_limit_is_reached) {
    owned_stream s;
    for (std::uint64_t i = 1; i <= 250; ++i) s.add({i, 0}, {"f", "v"});
    EXPECT_EQ(s.blocks(), 3U);
    owned_stream small;
    for (std::uint64_t i = 1; i <= 10; ++i) small.add({i, 0}, {"f", "v"}, {4096, 1});
    EXPECT_EQ(small.blocks(), 10U);
    owned_stream bytes;
    for (std::uint64_t i = 1; i <= 10; ++i) {
        bytes.add({i, 0}, {"f", std::string(1'000, 'x')}, {4096, 0});
    }
    EXPECT_EQ(bytes.blocks(), 3U);
    owned_stream unlimited;
    for (std::uint64_t i = 1; i <= 70'000; ++i) unlimited.add({i, i}, {"f", "v", "g", "w"}, {0, 0});
    EXPECT_EQ(unlimited.blocks(), 1U);
    unlimited.check();
    EXPECT_EQ(ids_of(unlimited, {69'999, 0}, stream_id::max()).size(), 2U);
}

TEST(stream, ids_at_the_ends_of_what_there_is_can_be_found) {
    owned_stream s;
    s.add({0, 1}, {"f", "v"});
    s.add({0, stream_id::max_part}, {"f", "v"});
    s.add({1ULL << 63, 0}, {"f", "v"});
    s.add({stream_id::max_part, 0}, {"f", "v"});
    s.add(stream_id::max(), {"f", "v"});
    s.check();
    EXPECT_EQ(ids_of(s, {}, stream_id::max()).size(), 5U);
    EXPECT_EQ(ids_of(s, {0, 2}, {stream_id::max_part, 0}).size(), 3U);
    EXPECT_EQ(ids_of(s, {0, 2}, {stream_id::max_part, 0}, redis_stream::order::backward).size(),
              3U);
    EXPECT_EQ(ids_of(s, stream_id::max(), stream_id::max()).size(), 1U);
    EXPECT_TRUE(ids_of(s, {2, 0}, {1, 0}).empty());
    EXPECT_TRUE(s.erase(s.memory, stream_id::max()));
    EXPECT_EQ(s.last_entry_id(), (stream_id{stream_id::max_part, 0}));
}

// 100 short entries a block: what Redis's format takes, and a share of the tree.
TEST(stream, an_entry_takes_few_bytes) {
    owned_stream s;
    constexpr std::uint64_t entries = 100'000;
    for (std::uint64_t i = 1; i <= entries; ++i) {
        s.add({1'700'000'000'000 + i, 0}, {"sensor", std::to_string(i % 50), "value", "23.5"});
    }
    EXPECT_LT(s.memory.used_bytes() / entries, 22U);
    // One of its own takes no page.
    owned_stream one;
    one.add({1'700'000'000'000, 0}, {"field", "value"});
    EXPECT_LT(one.memory.used_bytes(), 200U);
}

TEST(stream, pending_entries_have_one_owner) {
    const std::uint64_t seed = eddy::testing::seed_of_this_run();
    SCOPED_TRACE(seed);
    random_generator random(seed);
    owned_stream s;
    stream_group* const group = s.add_group(s.memory, "group", {}, 0);
    ASSERT_NE(group, nullptr);
    EXPECT_EQ(s.add_group(s.memory, "group", {}, 0), nullptr);
    std::map<stream_id, std::string> model;
    std::set<std::string> names;
    for (int i = 0; i < 30'000; ++i) {
        if (i == 10'000) group->index_deliveries(s.memory);
        const stream_id id{random.below(3'000), 0};
        const std::string name = "consumer " + std::to_string(random.below(20));
        stream_consumer* consumer = group->find(name);
        ASSERT_EQ(consumer != nullptr, names.contains(name));
        switch (random.below(6)) {
            case 0:
            case 1:
                if (consumer == nullptr) consumer = &group->add(s.memory, name, i);
                names.insert(name);
                group->deliver(s.memory, id, *consumer, i);
                model[id] = name;
                break;
            case 2: ASSERT_EQ(group->acknowledge(s.memory, id), model.erase(id) == 1); break;
            case 3: {
                stream_pending* const what = group->find(id);
                ASSERT_EQ(what != nullptr, model.contains(id));
                if (what == nullptr || consumer == nullptr) break;
                group->pass_on(s.memory, id, *what, *consumer);
                model[id] = name;
                break;
            }
            case 4:
                if (stream_pending* const what = group->find(id))
                    group->set_delivered(s.memory, id, *what, static_cast<int>(random.below(100)));
                break;
            default:
                if (consumer == nullptr || random.below(40) != 0) break;
                group->erase(s.memory, *consumer);
                names.erase(name);
                std::erase_if(model, [&](const auto& each) { return each.second == name; });
        }
        ASSERT_EQ(group->pending.size(), model.size()) << "seed " << seed;
        if (i % 3'000 == 0) s.check();
    }
    s.check();
    EXPECT_EQ(group->deliveries.size(), model.size());
    for (auto at = group->pending.first(); at; at.forward()) {
        ASSERT_EQ(at->of->owner->name(), model[at->id]);
        EXPECT_TRUE(group->deliveries.find(stream_delivery{at->of->delivered_ms, at->id}));
    }
    expect_counted(s);
    redis_stream copy = s.copy(s.memory);
    copy.check();
    EXPECT_EQ(copy.find_group("group")->pending.size(), model.size());
    redis_stream alone = s.take_group(s.memory, *group);
    EXPECT_EQ(s.find_group("group"), nullptr);
    EXPECT_EQ(alone.groups().size(), 1U);
    for (redis_stream* each : {&alone, &copy}) {
        while (each->free_some(s.memory, 10)) {
        }
    }
    EXPECT_EQ(s.memory.used_bytes(), 0U);
}

// No slice of the work is much longer than what was asked for.
TEST(stream, what_is_discarded_is_freed_in_slices) {
    environment env(1);
    redis_stream s;
    const std::string_view pair[] = {"field", "value"};
    for (std::uint64_t i = 1; i <= 200'000; ++i) s.append(env.memory, {i, 0}, pair, 1, {});
    stream_group& group = *s.add_group(env.memory, "g", {}, 0);
    for (std::uint64_t i = 0; i < 3'000; ++i) {
        stream_consumer& one = group.add(env.memory, std::to_string(i), 0);
        for (std::uint64_t j = 1; j <= 20; ++j) {
            group.deliver(env.memory, {i * 20 + j, 0}, one, 0);
        }
    }
    env.discard(std::move(s));
    EXPECT_EQ(env.discarded(), 1U);
    std::size_t slices = 0;
    std::size_t before = env.memory.used_bytes();
    for (bool more = true; more; ++slices) {
        more = env.free_some(50);
        const std::size_t now = env.memory.used_bytes();
        // 50 steps: blocks of 2 KiB at most here, or nodes of the trees.
        EXPECT_LE(before - now, 150U * 2'048U);
        before = now;
    }
    EXPECT_GT(slices, 200U);
    EXPECT_EQ(env.memory.used_bytes(), 0U);
    EXPECT_EQ(env.discarded(), 0U);
}

redis_stream::facts facts_of(std::uint64_t length, stream_id last) {
    redis_stream::facts known;
    known.length = length;
    known.last_id = last;
    return known;
}

// A block as text, for tests of what comes from outside.
std::string block_of(const redis_stream& s) {
    return std::string(redis_stream::block_walk(s).pack());
}

TEST(stream, a_block_from_outside_is_taken_only_if_it_is_sound) {
    owned_stream from;
    from.add({5, 1}, {"f", "1", "g", "two"});
    from.add({5, 2}, {"f", "3", "g", "four"});
    from.add({6, 0}, {"h", "5"});
    from.add({9, 0}, {"f", "", "g", "6"});
    from.erase(from.memory, {6, 0});
    const std::string good = block_of(from);
    owned_stream to;
    ASSERT_EQ(to.add_block(to.memory, {5, 1}, good), nullptr);
    EXPECT_STREQ(to.add_block(to.memory, {9, 0}, good),
                 "a stream's entries are not in the order of their IDs");
    EXPECT_STREQ(to.set_facts(facts_of(4, {9, 0})),
                 "a stream does not have the entries that it claims");
    EXPECT_STREQ(to.set_facts(facts_of(3, {8, 0})), "a stream's last ID is before its last entry");
    ASSERT_EQ(to.set_facts(facts_of(3, {9, 0})), nullptr);
    to.check();
    EXPECT_EQ(ids_of(to, {}, stream_id::max()), ids_of(from, {}, stream_id::max()));
    EXPECT_EQ(to.first_id(), (stream_id{5, 1}));

    // Every byte replaced by every other: never a crash, and what is taken hangs together.
    std::size_t taken = 0;
    for (std::size_t i = 0; i < good.size(); ++i) {
        for (unsigned byte = 0; byte < 256; ++byte) {
            std::string bad = good;
            bad[i] = static_cast<char>(byte);
            owned_stream into;
            if (into.add_block(into.memory, {5, 1}, bad) != nullptr) continue;
            ++taken;
            if (into.set_facts(facts_of(into.size(), stream_id::max()))) FAIL();
            into.check();
            EXPECT_EQ(ids_of(into, {}, stream_id::max(), redis_stream::order::backward).size(),
                      into.size());
            while (!into.empty()) ASSERT_TRUE(into.erase(into.memory, into.first_id()));
        }
    }
    EXPECT_GT(taken, good.size());
    for (std::size_t i = 0; i < good.size(); ++i) {
        owned_stream into;
        EXPECT_NE(into.add_block(into.memory, {5, 1}, good.substr(0, i)), nullptr);
    }
}

// The figure of the radix tree, against the tree that it is of.
TEST(stream, the_nodes_of_a_radix_tree_are_counted) {
    const std::uint64_t seed = eddy::testing::seed_of_this_run();
    SCOPED_TRACE(seed);
    random_generator random(seed);
    const auto key_of = [](stream_id id) {
        std::string key;
        for (const std::uint64_t part : {id.ms, id.seq}) {
            for (int shift = 56; shift >= 0; shift -= 8) key += static_cast<char>(part >> shift);
        }
        return key;
    };
    for (int round = 0; round < 200; ++round) {
        owned_stream s;
        std::set<std::string> keys;
        stream_id id;
        const std::uint64_t count = random.below(round < 100 ? 6 : 300);
        for (std::uint64_t i = 0; i < count; ++i) {
            if (random.below(2) == 0) id.ms += 1 + (random() >> (8 + random.below(50)));
            id.seq = id.seq + 1 + (random.below(3) == 0 ? random() >> (8 + random.below(56)) : 0);
            if (id <= s.last_id()) continue;
            s.add(id, {"f", "v"}, {0, 1});
            keys.insert(key_of(id));
        }
        // Nodes of a tree with one node a prefix, of which runs without a branch are one.
        std::map<std::string, std::set<char>> children;
        for (const std::string& key : keys) {
            for (std::size_t i = 0; i < key.size(); ++i) children[key.substr(0, i)].insert(key[i]);
        }
        std::size_t nodes = keys.empty() ? 1 : keys.size();
        for (const auto& [prefix, next] : children) {
            const bool is_branch = next.size() > 1;
            const bool begins_run =
                prefix.empty() || children[prefix.substr(0, prefix.size() - 1)].size() > 1;
            if (is_branch || begins_run) ++nodes;
        }
        ASSERT_EQ(s.radix_nodes(), nodes) << "seed " << seed;
    }
}

}  // namespace
}  // namespace eddy::cache
