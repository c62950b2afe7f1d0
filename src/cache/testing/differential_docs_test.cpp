// Comparison of COMMAND DOCS of the engine and of a real Redis 7.2, field for field. Skipped, with
// the reason, where the server is of another version.
#include "cache/testing/differential_fixture.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace eddy::cache {
namespace {

using testing::parse_reply;
using testing::reply_tree;

class differential_docs : public testing::differential {};

const reply_tree* find(const reply_tree& map, std::string_view name) {
    for (std::size_t i = 0; i + 1 < map.children.size(); i += 2) {
        if (map.children[i].text == name) return &map.children[i + 1];
    }
    return nullptr;
}

// Without what is prose; its forms are compared by themselves.
std::string facts_in(const reply_tree& docs) {
    std::string all;
    for (std::size_t i = 0; i + 1 < docs.children.size(); i += 2) {
        const std::string& field = docs.children[i].text;
        const bool left_out = field == "summary" || field == "complexity" || field == "history" ||
                              field == "replaced_by" || field == "subcommands";
        if (!left_out) all += docs.children[i].print() + ' ' + docs.children[i + 1].print() + '\n';
    }
    return all;
}

TEST_P(differential_docs, arguments_are_told_of_field_for_field) {
    if (!redis_->is_7_2()) GTEST_SKIP() << "this redis-server is not 7.2";
    const testing::arguments question{"COMMAND", "DOCS"};
    const reply_tree theirs = parse_reply(redis_->ask(question));
    const reply_tree ours = parse_reply(client_.ask(question));
    EXPECT_EQ(ours.type, theirs.type);
    std::size_t compared = 0;
    const auto compare = [&](const std::string& name, const reply_tree& mine,
                             const reply_tree& its) {
        EXPECT_EQ(mine.type, its.type) << name;
        EXPECT_EQ(facts_in(mine), facts_in(its)) << name;
        ++compared;
    };
    for (std::size_t i = 0; i + 1 < ours.children.size(); i += 2) {
        const std::string& name = ours.children[i].text;
        const reply_tree& mine = ours.children[i + 1];
        const reply_tree* const its = find(theirs, name);
        if (its == nullptr) {
            // Newer than 7.2.
            EXPECT_TRUE(name.starts_with('h')) << name;
            continue;
        }
        compare(name, mine, *its);
        const reply_tree* const my_forms = find(mine, "subcommands");
        const reply_tree* const its_forms = find(*its, "subcommands");
        ASSERT_EQ(my_forms == nullptr, its_forms == nullptr) << name;
        if (my_forms == nullptr) continue;
        EXPECT_EQ(my_forms->type, its_forms->type) << name;
        EXPECT_EQ(my_forms->children.size(), its_forms->children.size()) << name;
        for (std::size_t j = 0; j + 1 < my_forms->children.size(); j += 2) {
            const std::string& form = my_forms->children[j].text;
            const reply_tree* const its_form = find(*its_forms, form);
            ASSERT_NE(its_form, nullptr) << form;
            compare(form, my_forms->children[j + 1], *its_form);
        }
    }
    EXPECT_EQ(compared, 370U);  // all of Redis 7.2
}

INSTANTIATE_TEST_SUITE_P(protocols, differential_docs, ::testing::Values(2, 3),
                         [](const auto& p) { return "resp" + std::to_string(p.param); });

}  // namespace
}  // namespace eddy::cache
