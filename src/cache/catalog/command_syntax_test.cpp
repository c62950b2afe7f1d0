// Tests of the syntax notation, and of every command's row.
#include "cache/catalog/command_syntax.hpp"

#include "cache/catalog/command_keys.hpp"
#include "cache/catalog/command_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::cache {
namespace {

// A group in one line: "name:type=display|TOKEN@1!2#0?+*".
std::string print(const std::vector<command_argument>& arguments) {
    std::string all;
    for (const command_argument& each : arguments) {
        if (!all.empty()) all += ' ';
        all += each.name + ":" + std::string(each.type);
        if (!each.display.empty()) all += "=" + std::string(each.display);
        if (!each.token.empty()) all += "|" + std::string(each.token);
        if (!each.since.empty()) all += "@" + std::string(each.since);
        if (!each.deprecated_since.empty()) all += "!" + std::string(each.deprecated_since);
        if (each.key_group >= 0) all += "#" + std::to_string(each.key_group);
        if (each.optional) all += '?';
        if (each.multiple) all += each.repeats_token ? '*' : '+';
        if (!each.arguments.empty()) all += "(" + print(each.arguments) + ")";
    }
    return all;
}

std::string parsed(std::string_view text) {
    const auto arguments = parse_arguments(text);
    return arguments ? print(*arguments) : "none";
}

TEST(command_syntax, values_have_types) {
    EXPECT_EQ(parsed(""), "");
    EXPECT_EQ(parsed("value"), "value:string");
    EXPECT_EQ(parsed("count/int radius/double end/time"),
              "count:integer radius:double end:unix-time");
    EXPECT_EQ(parsed("pattern other/pattern"), "pattern:pattern other:pattern");
    EXPECT_EQ(parsed("key/string"), "key:string");
    EXPECT_EQ(parsed("member1 member2"), "member1:string member2:string");
    EXPECT_EQ(parsed("addr=ip:port by=pattern/pattern"), "addr:string=ip:port by:pattern=pattern");
}

TEST(command_syntax, keys_belong_to_one_group_after_the_other) {
    EXPECT_EQ(parsed("source/key key destination/key"), "source:key#0 key:key#1 destination:key#2");
    EXPECT_EQ(parsed("key1/key key2/key#0 more/key"), "key1:key#0 key2:key#0 more:key#1");
    EXPECT_EQ(parsed("key by=pattern/pattern#1 last/key#2"),
              "key:key#0 by:pattern=pattern#1 last:key#2");
}

TEST(command_syntax, words_stand_alone_or_before_a_value) {
    EXPECT_EQ(parsed("NX"), "nx:pure-token|NX");
    EXPECT_EQ(parsed("CH<change>@3.0.2"), "change:pure-token|CH@3.0.2");
    EXPECT_EQ(parsed("'*'<auto-id>"), "auto-id:pure-token|*");
    EXPECT_EQ(parsed("NO ONE"), "no:pure-token|NO one:pure-token|ONE");
    EXPECT_EQ(parsed("FULL [COUNT count/int]"), "full:pure-token|FULL count:integer|COUNT?");
    EXPECT_EQ(parsed("LIB-NAME name"), "name:string|LIB-NAME");
    EXPECT_EQ(parsed("AUTH2 (auth: username password)"),
              "auth:block|AUTH2(username:string password:string)");
}

TEST(command_syntax, groups_are_blocks_or_choices) {
    EXPECT_EQ(parsed("(data: field value)"), "data:block(field:string value:string)");
    EXPECT_EQ(parsed("(data: field)"), "data:block(field:string)");
    EXPECT_EQ(parsed("(where: LEFT|RIGHT)"),
              "where:oneof(left:pure-token|LEFT right:pure-token|RIGHT)");
    EXPECT_EQ(parsed("(by: (circle: BYRADIUS radius (unit: M|KM))|[ID id])"),
              "by:oneof(circle:block(radius:string|BYRADIUS "
              "unit:oneof(m:pure-token|M km:pure-token|KM)) id:string|ID?)");
    EXPECT_EQ(parsed("(a: X|\n    Y)\n    b"), "a:oneof(x:pure-token|X y:pure-token|Y) b:string");
}

TEST(command_syntax, arguments_may_be_missing_or_come_several_times) {
    EXPECT_EQ(parsed("key..."), "key:key#0+");
    EXPECT_EQ(parsed("[arg...]"), "arg:string?+");
    EXPECT_EQ(parsed("[mode: A|B]"), "mode:oneof?(a:pure-token|A b:pure-token|B)");
    EXPECT_EQ(parsed("(data: a b)..."), "data:block+(a:string b:string)");
    EXPECT_EQ(parsed("[data: a b]..."), "data:block?+(a:string b:string)");
    EXPECT_EQ(parsed("[WEIGHTS weight/int...]"), "weight:integer|WEIGHTS?+");
    EXPECT_EQ(parsed("[GET pattern]..."), "pattern:pattern|GET?*");
    EXPECT_EQ(parsed("[GET (get: a b)]..."), "get:block|GET?*(a:string b:string)");
}

TEST(command_syntax, versions_stand_behind_what_they_tell_of) {
    EXPECT_EQ(parsed("a@6.2.0 b!7.0.0 c@1.0.0!2.0.0"),
              "a:string@6.2.0 b:string!7.0.0 c:string@1.0.0!2.0.0");
    EXPECT_EQ(parsed("id/int@6.2.0..."), "id:integer@6.2.0+");
    EXPECT_EQ(parsed("[mode@6.2.0: A|B@7.0.0]"),
              "mode:oneof@6.2.0?(a:pure-token|A b:pure-token|B@7.0.0)");
    EXPECT_EQ(parsed("[REV@6.2.0]"), "rev:pure-token|REV@6.2.0?");
}

TEST(command_syntax, what_is_not_in_the_notation_is_refused) {
    for (const std::string_view wrong :
         {" a",        "a ",   "a  b)",      "[a",         "a]",      "(a b)",   "(a: b", "(a:b)",
          "(: a)",     "a: b", "(a: b|c d)", "(a: b c|d)", "(a: |b)", "(a: b|)", "[]",    "[[a]]",
          "[a...]...", "a@",   "a!x",        "a/float",    "a=",      "a#",      "a#x",   "X<",
          "X<>",       "X<y",  "'x",         "''",         "a|b",     "(a: [b)", "a....", "a..",
          "ab\tc",     "a,b",  "[a] ]",      "X (a b)"}) {
        EXPECT_EQ(parsed(wrong), "none") << wrong;
    }
}

TEST(command_syntax, blocks_lie_within_each_other_to_a_limit) {
    std::string text = "x";
    for (std::size_t depth = 0; depth < max_argument_depth; ++depth) text = "(a: " + text + ")";
    EXPECT_NE(parsed(text), "none");
    EXPECT_EQ(parsed("(a: " + text + ")"), "none");
    EXPECT_NE(parsed(text + " " + text), "none");
}

TEST(command_table, rows_become_commands_and_forms) {
    const auto command = [](std::string_view name) {
        return find_command(fold_command_name(name));
    };
    EXPECT_EQ(command("SeTeX")->syntax, "key seconds/int value");
    EXPECT_EQ(command("setex")->since, "2.0.0");
    EXPECT_EQ(command("setex")->deprecated_since, "2.6.12");
    EXPECT_TRUE(command("zunionstore")->syntax.ends_with("SUM|MIN|MAX)]"));
    EXPECT_EQ(command("acl")->syntax, "");
    EXPECT_NE(command("debug")->flags & command_flag::syscmd, 0U);
    EXPECT_EQ(command("get")->flags & command_flag::syscmd, 0U);
    for (const std::string_view none : {"", "se", "config|", "config|set", "nosuch"})
        EXPECT_EQ(command(none), nullptr) << none;
    const command_spec* const users = find_form(*command("acl"), "Users");
    ASSERT_NE(users, nullptr);
    EXPECT_EQ(users->name, "acl|users");
    EXPECT_EQ(users->syntax, "");
    EXPECT_EQ(users->summary, "Returns the names of all users.");
    EXPECT_EQ(users->group, command("acl")->group);
    EXPECT_EQ(find_form(*command("acl"), "user"), nullptr);
    EXPECT_EQ(find_form(*command("get"), "key"), nullptr);
}

// Derived properties: categories follow from flags, key ranges from specifications.
TEST(command_table, categories_and_ranges_of_keys_follow) {
    const auto& get = *find_command(fold_command_name("get"));
    EXPECT_EQ(get.categories,
              command_category::read | command_category::string | command_category::fast);
    const auto& mset = *find_command(fold_command_name("mset"));
    EXPECT_EQ(mset.first_key, 1);
    EXPECT_EQ(mset.last_key, -1);
    EXPECT_EQ(mset.key_step, 2);
    const auto& lmove = *find_command(fold_command_name("lmove"));
    EXPECT_EQ(lmove.last_key, 2);
    EXPECT_EQ(find_command(fold_command_name("xread"))->first_key, 0);
    // A form has its command's flags, but for those of its own.
    const auto& config = *find_command(fold_command_name("config"));
    const auto& help = *find_form(config, "help");
    EXPECT_NE(help.flags & command_flag::noscript, 0U);
    EXPECT_EQ(help.shown_flags, command_flag::loading | command_flag::stale);
    EXPECT_EQ(config.shown_flags, 0U);
    EXPECT_NE(find_form(config, "set")->flags & command_flag::alters, 0U);
}

struct length {
    int least = 0;  // in words
    bool fixed = true;
};

length length_of(const std::vector<command_argument>& arguments);

length length_of(const command_argument& one) {
    length found{one.token.empty() || one.type == "pure-token" ? 0 : 1};
    if (one.arguments.empty()) {
        ++found.least;
    } else if (one.type == "block") {
        const length within = length_of(one.arguments);
        found.least += within.least;
        found.fixed = within.fixed;
    } else {
        std::vector<length> choices;
        for (const command_argument& each : one.arguments) choices.push_back(length_of(each));
        const auto [low, high] = std::ranges::minmax(choices, {}, &length::least);
        found.least += low.least;
        found.fixed = low.least == high.least && std::ranges::all_of(choices, &length::fixed);
    }
    if (one.optional) found.least = 0;
    if (one.optional || one.multiple) found.fixed = false;
    return found;
}

length length_of(const std::vector<command_argument>& arguments) {
    length all;
    for (const command_argument& each : arguments) {
        const length one = length_of(each);
        all.least += one.least;
        all.fixed = all.fixed && one.fixed;
    }
    return all;
}

// A fault in what the row says of arguments, or nothing.
std::string fault_in(const command_spec& spec) {
    const auto arguments = parse_arguments(spec.syntax);
    if (!arguments) return "it is wrong: " + std::string(spec.syntax);
    // Redis documents fewer arguments for these than they take; for CLIENT KILL it documents every
    // condition as optional, though one is required.
    static const std::set<std::string_view> apart{"client|kill", "debug", "psync", "quit",
                                                  "replconf"};
    if (apart.contains(spec.name)) return {};
    const length found = length_of(*arguments);
    const int expected = std::abs(spec.arity) - (spec.name.contains('|') ? 2 : 1);
    if (found.least != expected)
        return "at least " + std::to_string(found.least) + ", not " + std::to_string(expected);
    if (found.fixed != (spec.arity > 0)) return found.fixed ? "too fixed" : "not fixed";
    return {};
}

TEST(command_table, every_row_has_arguments_that_agree_with_its_arity) {
    for (const command_spec& each : all_commands()) {
        if (each.form_count != 0)
            EXPECT_EQ(each.syntax, "") << each.name;
        else
            EXPECT_EQ(fault_in(each), "") << each.name;
    }
    for (const command_spec& each : all_forms()) EXPECT_EQ(fault_in(each), "") << each.name;
}

TEST(command_table, every_row_is_described) {
    const auto expect_described = [](const command_spec& each) {
        EXPECT_FALSE(each.since.empty()) << each.name;
        EXPECT_FALSE(each.group.empty()) << each.name;
        EXPECT_TRUE(each.summary.ends_with('.') && !each.summary.contains('\n')) << each.name;
    };
    std::ranges::for_each(all_commands(), expect_described);
    std::ranges::for_each(all_forms(), expect_described);
}

// Every key argument's group exists.
void expect_groups(const std::vector<command_argument>& arguments, std::string_view name,
                   int groups) {
    for (const command_argument& each : arguments) {
        EXPECT_LT(each.key_group, groups) << name << " " << each.name;
        expect_groups(each.arguments, name, groups);
    }
}

TEST(command_table, every_key_belongs_to_a_group_that_is_there) {
    const auto expect_of = [](const command_spec& each) {
        const auto arguments = parse_arguments(each.syntax);
        ASSERT_TRUE(arguments) << each.name;
        expect_groups(*arguments, each.name,
                      static_cast<int>(parse_key_specs(each.key_specs).size()));
    };
    std::ranges::for_each(all_commands(), expect_of);
    std::ranges::for_each(all_forms(), expect_of);
}

}  // namespace
}  // namespace eddy::cache
