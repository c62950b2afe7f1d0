// Flags of the command line: parser and descriptions.
#include "cli/flags.hpp"

#include <eddy/base/nearest.hpp>

#include "base/text.hpp"
#include "cli/local_path.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

namespace eddy::cli {
namespace {

/// The widest line of a help text, and the column in which explanations begin.
constexpr std::size_t help_width = 100;
constexpr std::size_t help_column = 32;

const flag* find_long(std::span<const flag> table, std::string_view name) {
    const auto found =
        std::find_if(table.begin(), table.end(), [&](const flag& f) { return f.name == name; });
    return found == table.end() ? nullptr : &*found;
}

const flag* find_letter(std::span<const flag> table, char letter) {
    const auto found =
        std::find_if(table.begin(), table.end(), [&](const flag& f) { return f.letter == letter; });
    return found == table.end() || letter == 0 ? nullptr : &*found;
}

std::string unknown(std::span<const flag> table, std::string_view name) {
    // Redis has a parameter for it, which is no flag here.
    if (name == "requirepass" && find_long(table, "config"))
        return "there is no flag --requirepass; did you mean --config \"requirepass PASSWORD\"?";
    if (name == "maxmemory-policy" && find_long(table, "eviction"))
        return "there is no flag --maxmemory-policy; did you mean --eviction?";
    std::vector<std::string_view> names;
    for (const flag& f : table) names.push_back(f.name);
    const std::string_view meant = nearest_word(name, names);
    if (meant.empty()) return fmt::format("there is no flag --{}", name);
    return fmt::format("there is no flag --{}; did you mean --{}?", name, meant);
}

std::string needs_value(const flag& f) {
    return fmt::format("--{} needs a value: --{} {}", f.name, f.name, f.value_name);
}

/// The value that a flag is given. The daemon's folder is not the user's, so paths are made
/// absolute.
local_path value_of(const flag& f, std::string_view given) {
    if (f.is_uri) return absolute_uris(given);
    if (!f.is_path) return std::string(given);
    return f.is_socket ? absolute_socket(given) : absolute_path(given);
}

/// Adds a flag with its value. The error says why the value names no file.
std::expected<void, std::string> add_value(std::vector<std::pair<std::string, std::string>>& to,
                                           const flag& f, std::string_view given) {
    local_path value = value_of(f, given);
    if (!value) return std::unexpected(fmt::format("--{}: {}", f.name, value.error()));
    to.emplace_back(f.name, std::move(*value));
    return {};
}

bool is_flag_value(std::string_view text) { return text == "true" || text == "false"; }

}  // namespace

bool arguments::has(std::string_view name) const noexcept {
    return std::any_of(values_.begin(), values_.end(),
                       [&](const auto& v) { return v.first == name; });
}

std::string_view arguments::value(std::string_view name,
                                  std::string_view otherwise) const noexcept {
    const auto found = std::find_if(values_.rbegin(), values_.rend(),
                                    [&](const auto& v) { return v.first == name; });
    return found == values_.rend() ? otherwise : std::string_view(found->second);
}

std::expected<arguments, std::string> parse_arguments(std::span<const std::string> words,
                                                      std::span<const flag> table,
                                                      std::size_t literal_after, bool single_dash) {
    arguments parsed;
    bool flags_ended = false;
    for (std::size_t i = 0; i < words.size(); ++i) {
        const std::string_view word = words[i];
        if (parsed.positional_.size() >= literal_after) flags_ended = true;
        // A lone dash stands for standard input and is no flag.
        if (flags_ended || word.size() < 2 || word[0] != '-') {
            parsed.positional_.emplace_back(word);
            continue;
        }
        if (word == "--") {
            flags_ended = true;
            continue;
        }
        const bool is_single =
            word[1] != '-' && single_dash && find_long(table, word.substr(1, word.find('=') - 1));
        // A misspelt name is no row of letters.
        if (single_dash && !is_single && word.size() > 2 && is_letter(word[1]) &&
            is_letter(word[2]))
            return std::unexpected(unknown(table, word.substr(1, word.find('=') - 1)));
        if (word[1] != '-' && !is_single) {
            for (std::size_t at = 1; at < word.size(); ++at) {
                const flag* f = find_letter(table, word[at]);
                if (!f) return std::unexpected(fmt::format("there is no flag -{}", word[at]));
                if (!f->takes_value()) {
                    parsed.values_.emplace_back(f->name, "true");
                    continue;
                }
                std::string_view value = word.substr(at + 1);
                if (value.starts_with('=')) value.remove_prefix(1);
                if (at + 1 == word.size()) {
                    if (i + 1 == words.size()) return std::unexpected(needs_value(*f));
                    value = words[++i];
                }
                if (auto added = add_value(parsed.values_, *f, value); !added)
                    return std::unexpected(std::move(added.error()));
                break;
            }
            continue;
        }

        const std::string_view body = word.substr(is_single ? 1 : 2);
        const std::size_t equals = body.find('=');
        const std::string_view name = body.substr(0, equals);
        const flag* f = find_long(table, name);
        if (!f && name.starts_with("no-") && equals == std::string_view::npos) {
            const flag* positive = find_long(table, name.substr(3));
            if (positive && positive->negatable) {
                parsed.values_.emplace_back(positive->name, "false");
                continue;
            }
        }
        if (!f) return std::unexpected(unknown(table, name));
        if (!f->takes_value()) {
            if (equals == std::string_view::npos) {
                parsed.values_.emplace_back(f->name, "true");
            } else if (f->negatable && is_flag_value(body.substr(equals + 1))) {
                parsed.values_.emplace_back(f->name, body.substr(equals + 1));
            } else {
                return std::unexpected(fmt::format("--{} takes no value", f->name));
            }
            continue;
        }
        const bool is_next = equals == std::string_view::npos;
        if (is_next && i + 1 == words.size()) return std::unexpected(needs_value(*f));
        const std::string_view value = is_next ? words[++i] : body.substr(equals + 1);
        if (auto added = add_value(parsed.values_, *f, value); !added)
            return std::unexpected(std::move(added.error()));
    }
    return parsed;
}

std::string describe_flags(std::span<const flag> table) {
    std::string text;
    for (const flag& f : table) {
        std::string left = f.letter ? fmt::format("  -{}, --{}", f.letter, f.name)
                                    : fmt::format("      --{}", f.name);
        if (f.takes_value()) left += " " + f.value_name;

        std::string right = f.help;
        if (!f.choices.empty()) right += fmt::format(" ({})", fmt::join(f.choices, ", "));
        if (!f.default_value.empty()) right += fmt::format(" [{}]", f.default_value);

        if (left.size() + 2 > help_column) {
            text += left + "\n";
            left.clear();
        }
        left.resize(help_column, ' ');
        std::string line = left;
        std::size_t words_on_line = 0;
        for (std::size_t at = 0; at < right.size();) {
            std::size_t end = right.find(' ', at);
            if (end == std::string::npos) end = right.size();
            const std::string_view word = std::string_view(right).substr(at, end - at);
            if (words_on_line > 0 && line.size() + 1 + word.size() > help_width) {
                text += line + "\n";
                line.assign(help_column, ' ');
                words_on_line = 0;
            }
            if (words_on_line++ > 0) line += ' ';
            line += word;
            at = end + 1;
        }
        while (line.ends_with(' ')) line.pop_back();
        text += line + "\n";
    }
    return text;
}

}  // namespace eddy::cli
