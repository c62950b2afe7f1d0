// Flags of the command line: parser and descriptions.
#include "cli/flags.hpp"

#include <eddy/base/nearest.hpp>

#include "base/text/text.hpp"
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
    const auto found = std::find_if(table.begin(), table.end(), [&](const flag& f) {
        return f.name == name || (!f.former_name.empty() && f.former_name == name);
    });
    return found == table.end() ? nullptr : &*found;
}

const flag* find_letter(std::span<const flag> table, char letter) {
    const auto found =
        std::find_if(table.begin(), table.end(), [&](const flag& f) { return f.letter == letter; });
    return found == table.end() || letter == 0 ? nullptr : &*found;
}

std::string unknown(std::span<const flag> table, std::string_view name) {
    for (const flag& f : table)
        for (const auto& [foreign, instead] : f.foreign_names)
            if (name == foreign)
                return fmt::format("there is no flag --{}; did you mean {}?", name, instead);
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

/// One pass over a command line.
class argument_parser {
public:
    argument_parser(std::span<const std::string> words, std::span<const flag> table,
                    bool single_dash) noexcept
        : words_(words), table_(table), single_dash_(single_dash) {}

    bool at_end() const noexcept { return at_ == words_.size(); }
    std::string_view take() noexcept { return words_[at_++]; }

    /// Reads a word that begins with a dash, and the next one where it is the value.
    std::expected<void, std::string> read_flags(std::string_view word) {
        if (word[1] == '-') return read_long(word.substr(2));
        const std::string_view name = word.substr(1, word.find('=') - 1);
        if (single_dash_ && find_long(table_, name)) return read_long(word.substr(1));
        // A misspelt name is no row of letters.
        if (single_dash_ && word.size() > 2 && is_letter(word[1]) && is_letter(word[2]))
            return std::unexpected(unknown(table_, name));
        return read_letters(word);
    }

    std::vector<std::pair<std::string, std::string>> values;

private:
    /// -n VALUE, -nVALUE, -n=VALUE, or several letters of flags without values.
    std::expected<void, std::string> read_letters(std::string_view word) {
        for (std::size_t at = 1; at < word.size(); ++at) {
            const flag* f = find_letter(table_, word[at]);
            if (!f) return std::unexpected(fmt::format("there is no flag -{}", word[at]));
            if (!f->takes_value()) {
                values.emplace_back(f->name, "true");
                continue;
            }
            std::string_view value = word.substr(at + 1);
            if (value.starts_with('=')) value.remove_prefix(1);
            if (at + 1 < word.size()) return add_value(values, *f, value);
            return read_next_as_value(*f);
        }
        return {};
    }

    /// NAME, NAME=VALUE, or NAME and the next word.
    std::expected<void, std::string> read_long(std::string_view body) {
        const std::size_t equals = body.find('=');
        const bool has_value = equals != std::string_view::npos;
        const std::string_view name = body.substr(0, equals);
        const std::string_view value = has_value ? body.substr(equals + 1) : std::string_view();
        const flag* f = find_long(table_, name);
        if (!f && name.starts_with("no-") && !has_value) {
            const flag* positive = find_long(table_, name.substr(3));
            if (positive && positive->negatable) {
                values.emplace_back(positive->name, "false");
                return {};
            }
        }
        if (!f) return std::unexpected(unknown(table_, name));
        if (f->takes_value())
            return has_value ? add_value(values, *f, value) : read_next_as_value(*f);
        if (has_value && !(f->negatable && is_flag_value(value)))
            return std::unexpected(fmt::format("--{} takes no value", f->name));
        values.emplace_back(f->name, has_value ? value : "true");
        return {};
    }

    std::expected<void, std::string> read_next_as_value(const flag& f) {
        if (at_end()) return std::unexpected(needs_value(f));
        return add_value(values, f, take());
    }

    std::span<const std::string> words_;
    std::span<const flag> table_;
    bool single_dash_;
    std::size_t at_ = 0;
};

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
    argument_parser parser(words, table, single_dash);
    bool flags_ended = false;
    while (!parser.at_end()) {
        const std::string_view word = parser.take();
        if (parsed.positional_.size() >= literal_after) flags_ended = true;
        // A lone dash stands for standard input and is no flag.
        if (flags_ended || word.size() < 2 || word[0] != '-') {
            parsed.positional_.emplace_back(word);
        } else if (word == "--") {
            flags_ended = true;
        } else if (auto read = parser.read_flags(word); !read) {
            return std::unexpected(std::move(read.error()));
        }
    }
    parsed.values_ = std::move(parser.values);
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
