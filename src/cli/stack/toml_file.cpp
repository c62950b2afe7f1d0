// TOML by toml++. The one file that includes it, since its headers take long to compile.
#include "cli/stack/toml_file.hpp"

#include <eddy/base/assert.hpp>

#include "cli/stack/toml_depth.hpp"

#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <algorithm>
#include <cstdint>
#include <tuple>
#include <utility>

#include <toml++/toml.h>

namespace eddy::cli {
namespace {

using nlohmann::json;

place place_of(const toml::source_position& at, const std::string& file) {
    return {file, at.line, at.column};
}

json value_of(const toml::node& node, std::string& fault, std::size_t depth) {
    EDDY_ASSERT(depth <= deepest_toml);
    if (const auto* text = node.as_string()) return text->get();
    if (const auto* number = node.as_integer()) return number->get();
    if (const auto* number = node.as_floating_point()) return number->get();
    if (const auto* flag = node.as_boolean()) return flag->get();
    if (const auto* list = node.as_array()) {
        json items = json::array();
        for (const toml::node& each : *list) items.push_back(value_of(each, fault, depth + 1));
        return items;
    }
    if (node.is_table())
        fault = "it cannot be a table";
    else
        fault = "it cannot be a date or a time; write it in quotes";
    return nullptr;
}

std::vector<toml_member> members_of(const toml::table& table, const std::string& file) {
    std::vector<toml_member> all;
    for (const auto& [key, node] : table) {
        toml_member made;
        made.key = std::string(key.str());
        made.at = place_of(key.source().begin, file);
        if (const auto* const inner = node.as_table()) {
            made.is_table = true;
            made.members = members_of(*inner, file);
        } else {
            made.value = value_of(node, made.fault, 0);
        }
        all.push_back(std::move(made));
    }
    // The library's tables are in the order of their keys.
    std::ranges::sort(
        all, {}, [](const toml_member& each) { return std::tuple(each.at.line, each.at.column); });
    return all;
}

}  // namespace

std::expected<std::vector<toml_member>, file_fault> parse_toml(std::string_view text,
                                                               const std::string& file) {
    if (auto excess = excess_of_depth(text, file)) return std::unexpected(std::move(*excess));
    const toml::parse_result read = toml::parse(text);
    if (read) return members_of(read.table(), file);
    const toml::parse_error& error = read.error();
    return std::unexpected(
        file_fault{place_of(error.source().begin, file), std::string(error.description())});
}

}  // namespace eddy::cli
