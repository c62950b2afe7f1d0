// Comparison of COMMAND DOCS of the engine and of a real Redis 7.2, field for field. Skipped, with
// the reason, where the server is of another version.
#include "cache/engine/version.hpp"
#include "cache/testing/differential_fixture.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

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

bool is_newer_than_7_2(const reply_tree& of) {
    const reply_tree* const since = find(of, "since");
    return since != nullptr && version_number(since->text) >= version_number("7.3.0");
}

// Without arguments that later versions have added.
void drop_newer_arguments(reply_tree& of) {
    for (std::size_t i = 0; i + 1 < of.children.size(); i += 2) {
        if (of.children[i].text != "arguments") continue;
        reply_tree& all = of.children[i + 1];
        std::erase_if(all.children, is_newer_than_7_2);
        all.text = std::to_string(all.children.size());
        for (reply_tree& each : all.children) drop_newer_arguments(each);
    }
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
    const auto compare = [&](const std::string& name, reply_tree mine, const reply_tree& its) {
        drop_newer_arguments(mine);
        EXPECT_EQ(mine.type, its.type) << name;
        EXPECT_EQ(facts_in(mine), facts_in(its)) << name;
        ++compared;
    };
    for (std::size_t i = 0; i + 1 < ours.children.size(); i += 2) {
        const std::string& name = ours.children[i].text;
        const reply_tree& mine = ours.children[i + 1];
        const reply_tree* const its = find(theirs, name);
        if (its == nullptr) {
            EXPECT_TRUE(is_newer_than_7_2(mine)) << name;
            continue;
        }
        compare(name, mine, *its);
        const reply_tree* const my_forms = find(mine, "subcommands");
        const reply_tree* const its_forms = find(*its, "subcommands");
        ASSERT_EQ(my_forms == nullptr, its_forms == nullptr) << name;
        if (my_forms == nullptr) continue;
        EXPECT_EQ(my_forms->type, its_forms->type) << name;
        std::size_t newer = 0;
        for (std::size_t j = 0; j + 1 < my_forms->children.size(); j += 2) {
            const std::string& form = my_forms->children[j].text;
            const reply_tree* const its_form = find(*its_forms, form);
            if (its_form == nullptr) {
                EXPECT_TRUE(is_newer_than_7_2(my_forms->children[j + 1])) << form;
                ++newer;
                continue;
            }
            compare(form, my_forms->children[j + 1], *its_form);
        }
        EXPECT_EQ(my_forms->children.size() - 2 * newer, its_forms->children.size()) << name;
    }
    EXPECT_EQ(compared, 370U);  // all of Redis 7.2
}

INSTANTIATE_TEST_SUITE_P(protocols, differential_docs, ::testing::Values(2, 3),
                         [](const auto& p) { return "resp" + std::to_string(p.param); });

}  // namespace
}  // namespace eddy::cache
