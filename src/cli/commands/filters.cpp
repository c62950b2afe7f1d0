// Filters of rows.
#include "cli/commands/filters.hpp"

#include <eddy/base/glob.hpp>
#include <eddy/base/nearest.hpp>

#include "base/text/terminal_text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace eddy::cli {

std::expected<filters, std::string> filters::parse(const arguments& given,
                                                   std::span<const std::string_view> keys) {
    filters made;
    for (const auto& [flag, text] : given.values()) {
        if (flag != "filter") continue;
        const std::size_t equals = text.find('=');
        const std::string key = text.substr(0, equals);
        if (equals == std::string::npos)
            return std::unexpected(fmt::format("--filter \"{}\" has no value: --filter {}=VALUE",
                                               printable(text), keys.front()));
        if (std::ranges::find(keys, key) == keys.end()) {
            const std::string_view meant = nearest_word(key, keys);
            return std::unexpected(meant.empty()
                                       ? fmt::format("--filter has no \"{}\"; there are {}",
                                                     printable(key), fmt::join(keys, ", "))
                                       : fmt::format("--filter has no \"{}\"; did you mean \"{}\"?",
                                                     printable(key), meant));
        }
        auto& values = made.by_key_[key];
        for (std::string_view rest = std::string_view(text).substr(equals + 1);;) {
            const std::size_t comma = rest.find(',');
            values.emplace_back(rest.substr(0, comma));
            if (comma == std::string_view::npos) break;
            rest.remove_prefix(comma + 1);
        }
    }
    return made;
}

template <class F>
bool filters::has_value_of(F text_of_key) const {
    return std::ranges::all_of(by_key_, [&](const auto& each) {
        const auto value = text_of_key(each.first);
        return std::ranges::any_of(each.second, [&](const std::string& wanted) {
            return each.first == "name" ? glob_match(wanted, value) : wanted == value;
        });
    });
}

bool filters::has(const json& row) const {
    return has_value_of([&row](const std::string& key) { return text_of(row, key); });
}

bool filters::has(const list_rows& rows, std::size_t row) const {
    return has_value_of([&](const std::string& key) { return rows.at(row, rows.column(key)); });
}

}  // namespace eddy::cli
