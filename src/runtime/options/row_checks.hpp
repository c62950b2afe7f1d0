// Check of a type's rows, for its tests: each option reaches its member, and live ones a
// configuration in use.
#pragma once

#include "base/text/text.hpp"
#include "runtime/options/bound_options.hpp"
#include "runtime/options/settings.hpp"
#include "runtime/testing.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::runtime::testing {

/// Options before a change, and the change, which is that of one option.
struct option_change {
    json before;
    json change;
};

/// A value that the option takes, other than its default.
inline json other_value(const option& of) {
    switch (of.kind) {
        case option_kind::flag: return true;
        case option_kind::integer:
        case option_kind::size: return of.minimum + 5;
        case option_kind::duration: return std::to_string(of.minimum + 1'000'000) + "ns";
        case option_kind::text: return of.is_path ? "/other" : "other";
        case option_kind::choice:
            return std::string(of.choices.front() == of.default_value ? of.choices.back()
                                                                      : of.choices.front());
        case option_kind::list: return json::array({"other"});
    }
    return {};
}

/// Changes of options that need others, or a value of a form of their own, by name.
using option_changes = std::map<std::string_view, option_change>;

/// Calls f(row, Config before, Config after) for a change of each row with a member: that of
/// `of_its_own`, or else one of `before` to other_value().
template <class Config, class F>
void for_each_change(const bound_options<Config>& rows, outcome<Config> (*read)(const settings&),
                     const json& before, const option_changes& of_its_own, const F& f) {
    const std::vector<option> table = table_of(rows);
    const auto read_all = [&](const json& given) {
        return must_do(read(must_do(settings::parse(table, given))));
    };
    for (const auto& changed : rows) {
        if (!changed.has_member()) continue;
        const option& its = changed.row();
        SCOPED_TRACE("--" + std::string(its.name));
        const auto own = of_its_own.find(its.name);
        option_change change = {before, {{option_key(its.name), other_value(its)}}};
        if (own != of_its_own.end()) change = own->second;
        json after = change.before;
        after.update(change.change);
        f(changed, read_all(change.before), read_all(after));
    }
}

/// A change of an option changes the member of its row, and that of no other.
template <class Config>
void check_reading(const bound_options<Config>& rows, outcome<Config> (*read)(const settings&),
                   const json& before, const option_changes& of_its_own) {
    for_each_change(rows, read, before, of_its_own,
                    [&](const auto& changed, const Config& first, const Config& second) {
                        for (const auto& each : rows) {
                            if (!each.has_member()) continue;
                            EXPECT_EQ(each.is_equal(first, second), &each != &changed)
                                << each.row().name;
                        }
                    });
}

/// Each live row has a member, which copy_live() copies; members of others stay.
template <class Config>
void check_live(const bound_options<Config>& rows, outcome<Config> (*read)(const settings&),
                const json& before, const option_changes& of_its_own) {
    for (const auto& each : rows)
        if (each.row().live) ASSERT_TRUE(each.has_member()) << each.row().name;
    for_each_change(rows, read, before, of_its_own,
                    [&](const auto& changed, const Config& first, const Config& second) {
                        Config in_use = first;
                        copy_live(rows, second, in_use);
                        EXPECT_EQ(changed.is_equal(in_use, second), changed.row().live);
                        EXPECT_EQ(changed.is_equal(in_use, first), !changed.row().live);
                    });
}

}  // namespace eddy::runtime::testing
