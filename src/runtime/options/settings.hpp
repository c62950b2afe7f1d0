// Settings: the options of one runtime, checked against the table of its type.
#pragma once

#include "base/problem.hpp"
#include "runtime/options/option.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::runtime {

/// Checked option values of one runtime, in their written form; unset options have their default.
class settings {
public:
    /// Parses and checks `given` (option name -> JSON value) against `table`; unknown names, wrong
    /// kinds and values out of range are refused with a message that names the option and shows
    /// what would be right.
    static outcome<settings> parse(std::span<const option> table, const nlohmann::json& given);
    nlohmann::json to_json() const;

    /// True when it has a value, given or by default.
    bool has(std::string_view name) const;
    /// True when the user gave it.
    bool given(std::string_view name) const;
    /// True when the option has the same value in both, given or by default, however written.
    bool has_same(std::string_view name, const settings& as) const;
    bool flag(std::string_view name) const;
    /// integer; size in bytes ("64k", "1GiB"); duration in nanoseconds ("30", "1.5s", "100ms").
    std::int64_t number(std::string_view name) const;
    const std::string& text(std::string_view name) const;
    /// The items of a list, in their order.
    const std::vector<std::string>& list(std::string_view name) const;

private:
    struct value {
        std::string_view name;
        option_kind kind;
        bool given;
        std::int64_t number;
        std::string text;  // of a list, all items: to be compared and shown
        std::vector<std::string> items = {};
    };
    static outcome<> read_value(const option& o, const nlohmann::json& written, value& v);
    const value& find(std::string_view name) const;
    std::vector<value> values_;
};

/// Gives members of `given` that have an option's former name its current one, unless `given` has
/// both. Called before options are merged with others; settings::parse() does it by itself.
void use_current_names(std::span<const option> table, nlohmann::json& given);

}  // namespace eddy::runtime
