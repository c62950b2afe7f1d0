// Formats of rows: reading, and the texts made of them.
#include "cli/text/row_format.hpp"

#include <eddy/base/assert.hpp>

#include "base/text/terminal_text.hpp"
#include "base/text/text.hpp"
#include "cli/text/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace eddy::cli {
namespace {

/// Docker's names of keys that are not ours in other letters.
constexpr std::pair<std::string_view, std::string_view> foreign_keys[] = {
    {"names", "name"},        {"ports", "port"},   {"image", "type"},
    {"createdat", "created"}, {"state", "status"}, {"runningfor", "uptime_s"},
    {"uptime", "uptime_s"},   {"labels", "group"}, {"action", "event"},
    {"timestamp", "time"}};

/// The key that is meant; empty for none. Letters' case and underscores do not count.
std::string find_key(std::string_view given, std::span<const std::string_view> keys) {
    const auto plain = [](std::string_view text) {
        std::string made = lower(text);
        std::erase(made, '_');
        return made;
    };
    std::string wanted = plain(given);
    for (const std::string_view key : keys)
        if (plain(key) == wanted) return std::string(key);
    for (const auto& [foreign, own] : foreign_keys)
        if (wanted == foreign && std::ranges::find(keys, own) != keys.end())
            return std::string(own);
    return {};
}

std::string upper(std::string_view text) {
    std::string made(text);
    for (char& c : made)
        if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    std::replace(made.begin(), made.end(), '_', ' ');
    return made;
}

std::string_view trimmed(std::string_view text) {
    while (text.starts_with(' ')) text.remove_prefix(1);
    while (text.ends_with(' ')) text.remove_suffix(1);
    return text;
}

/// "name,port" as "{name}\t{port}"; empty for another text.
std::string list_of_keys(std::string_view text, std::span<const std::string_view> keys) {
    std::string made;
    while (!text.empty()) {
        const std::string_view one = text.substr(0, text.find(','));
        const std::string key = find_key(trimmed(one), keys);
        if (key.empty()) return {};
        made += fmt::format("{}{{{}}}", made.empty() ? "" : "\t", key);
        text.remove_prefix(std::min(one.size() + 1, text.size()));
    }
    return made;
}

}  // namespace

std::expected<row_format, std::string> row_format::parse(std::string_view text,
                                                         std::span<const std::string_view> keys) {
    row_format made;
    if (text == "json") {
        made.form_ = form::json;
        return made;
    }
    constexpr std::string_view table_word = "table ";
    std::string listed;
    if (text.starts_with(table_word)) {
        made.form_ = form::table;
        text = trimmed(text.substr(table_word.size()));
    }
    if (listed = list_of_keys(text, keys); !listed.empty()) {
        made.form_ = form::table;
        text = listed;
    }
    if (auto read = made.read(text, keys); !read) return std::unexpected(std::move(read.error()));
    return made;
}

std::expected<void, std::string> row_format::read(std::string_view text,
                                                  std::span<const std::string_view> keys) {
    std::vector<part> column;
    part now;
    std::string title;
    const auto end_column = [&] {
        if (!now.text.empty()) column.push_back(std::exchange(now, {}));
        columns_.push_back(std::exchange(column, {}));
        header_.push_back(std::exchange(title, {}));
    };
    const auto take = [&](char c) {
        if (c == '\t' && form_ == form::table)
            end_column();
        else
            now.text += c;
    };
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\\' && i + 1 < text.size()) {
            const char next = text[++i];
            take(next == 'n' ? '\n' : next == 't' ? '\t' : next);
            continue;
        }
        const bool is_double = text.substr(i).starts_with("{{");
        const std::string_view closing = is_double ? "}}" : "}";
        const std::size_t end = text[i] == '{' ? text.find(closing, i) : std::string_view::npos;
        if (end == std::string_view::npos) {
            take(text[i]);
            continue;
        }
        const std::size_t begin = i + closing.size();
        std::string_view name = trimmed(text.substr(begin, end - begin));
        if (is_double && name.starts_with('.')) name.remove_prefix(1);
        std::string key = find_key(name, keys);
        if (key.empty()) {
            std::vector<std::string_view> known(keys.begin(), keys.end());
            std::ranges::sort(known);
            return std::unexpected(fmt::format("--format has an unknown {{{}}}; there are {}",
                                               printable(name), fmt::join(known, ", ")));
        }
        title += fmt::format("{}{}", title.empty() ? "" : " ", upper(key));
        now.key = std::move(key);
        column.push_back(std::exchange(now, {}));
        i = end + closing.size() - 1;
    }
    end_column();
    EDDY_ASSERT(columns_.size() == header_.size());
    EDDY_ASSERT(form_ == form::table || columns_.size() == 1);
    return {};
}

std::vector<std::string> row_format::cells(const json& row) const {
    std::vector<std::string> made;
    for (const auto& column : columns_) {
        std::string text;
        for (const part& each : column) {
            text += each.text;
            if (!each.key.empty()) text += printable(text_of(row, each.key));
        }
        made.push_back(std::move(text));
    }
    return made;
}

std::string row_format::line(const json& row) const {
    if (form_ == form::json) return dump_for_terminal(row) + "\n";
    return fmt::format("{}\n", fmt::join(cells(row), "\t"));
}

std::string row_format::all(const json& rows, bool colours) const {
    if (form_ != form::table) {
        std::string text;
        for (const json& each : rows) text += line(each);
        return text;
    }
    table made(header_);
    for (const json& each : rows) {
        std::vector<cell> shown;
        for (std::string& text : cells(each)) shown.push_back({text.empty() ? "-" : text});
        made.add(std::move(shown));
    }
    return made.to_string(colours);
}

}  // namespace eddy::cli
