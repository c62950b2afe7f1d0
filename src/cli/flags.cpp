// Flags of the command line: parser and descriptions.
#include "cli/flags.hpp"

#include <eddy/base/nearest.hpp>

#include "base/text/text.hpp"
#include "cli/local_path.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace eddy::cli {
namespace {

/// Column in which explanations begin.
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

/// Flags of other programs, and of our other commands, and what to write.
constexpr std::pair<std::string_view, std::string_view> foreign_flags[] = {
    {"tail", "`eddy logs --tail N NAME` shows the last lines of a log"},
    {"timestamps", "`eddy logs` has each line's time"},
    {"format", "`eddy ls --format TEXT` and `eddy events --format TEXT` have forms"},
    {"filter", "`eddy ls --filter` and `eddy events --filter` choose"},
    {"all", "`eddy ls` lists all, `eddy ps` the running ones"},
    {"follow", "`eddy logs -f`, `eddy stats -f` and `eddy events` follow"},
    {"watch", "`eddy stats --watch` and `eddy top` show figures again and again"},
    {"name", "the name is a word: eddy create TYPE NAME; `eddy rename OLD NEW` changes it"},
    {"publish", "-p PORT is the port to serve on"},
    {"volume", "--dir FOLDER keeps the data of a cache, --root FOLDER has the files of a site"},
    {"env", "runtimes have options: `eddy help create TYPE` lists them"},
    {"detach", "runtimes always run in the background"},
    {"restart", "what runs when the daemon ends starts again with it"},
    {"rm", "`eddy remove NAME` removes a runtime"},
    {"build", "there are no images, so nothing is built"},
    {"force-recreate", "`eddy restart NAME` restarts a runtime"},
    {"remove-orphans", "what a file does not declare any more is removed by `eddy up` anyway"},
    {"volumes", "`eddy down` leaves the folders of --dir; remove them by hand"},
    {"wait", "a command ends when it is done; `eddy wait NAME --for healthy` waits for more"},
    {"interactive",
     "`eddy db NAME` is a prompt of a cache, `eddy attach NAME` of a server or client"},
    {"tty", "`eddy db NAME` is a prompt of a cache, `eddy attach NAME` of a server or client"},
    {"open", "xdg-open \"$(eddy console)\" opens the console in a browser"},
    {"persistent", "--dir FOLDER keeps the keys of a cache"},
    {"test",
     "`eddy create` checks all before anything is made, `eddy edit --dry-run` changes nothing"},
    {"now", "`eddy create -s` and `eddy add -s` start at once"}};
constexpr std::pair<char, std::string_view> foreign_letters[] = {
    {'a', "`eddy ls` lists all, `eddy ps -a`, too"},
    {'d', "runtimes always run in the background"},
    {'e', "runtimes have options: `eddy help create TYPE` lists them"},
    {'i', "`eddy db NAME` is a prompt of a cache, `eddy attach NAME` of a server or client"},
    {'m', "arguments of a program stand behind --: eddy add python3 -s -- -m http.server"},
    {'p', "`eddy create TYPE NAME -p PORT` serves there; programs get sockets by --listen :PORT"},
    {'f', "`eddy logs -f`, `eddy stats -f` and `eddy events` follow"},
    {'n', "`eddy logs -n N NAME` shows the last lines of a log"},
    {'t', "`eddy create client -t` is the target, `eddy logs -t` shows times"},
    {'v', "--dir FOLDER keeps the data of a cache"}};

template <class Key>
std::string hint_of(const auto& all, Key name) {
    for (const auto& [key, hint] : all)
        if (key == name) return fmt::format(": {}", hint);
    return {};
}

std::string unknown(std::span<const flag> table, std::string_view name) {
    for (const flag& f : table)
        for (const auto& [foreign, instead] : f.foreign_names)
            if (name == foreign)
                return fmt::format("there is no flag --{}; did you mean {}?", name, instead);
    std::vector<std::string_view> names;
    for (const flag& f : table)
        if (!f.is_ignored) names.push_back(f.name);
    std::string_view meant = nearest_word(name, names);
    // The beginning of one alone.
    constexpr std::size_t least_beginning = 3;
    if (meant.empty() && name.size() >= least_beginning &&
        std::ranges::count_if(names, [name](auto each) { return each.starts_with(name); }) == 1)
        meant = *std::ranges::find_if(names, [name](auto each) { return each.starts_with(name); });
    if (meant.empty())
        return fmt::format("there is no flag --{}{}", name, hint_of(foreign_flags, name));
    return fmt::format("there is no flag --{}; did you mean --{}?", name, meant);
}

std::string needs_value(const flag& f) {
    return fmt::format("--{} needs a value: --{} {}", f.name, f.name, f.value_name);
}

/// Adds a flag with its value. The error says why the value names no file.
std::expected<void, std::string> add_value(std::vector<std::pair<std::string, std::string>>& to,
                                           const flag& f, std::string_view given) {
    local_path value = whole_value(f, given);
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
            if (!f)
                return std::unexpected(fmt::format("there is no flag -{}{}", word[at],
                                                   hint_of(foreign_letters, word[at])));
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
        if (!f->is_ignored) values.emplace_back(f->name, has_value ? value : "true");
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

std::expected<std::string, std::string> whole_value(const flag& of, std::string_view given,
                                                    std::string_view folder) {
    if (of.is_uri) return absolute_uris(given, folder);
    if (!of.is_path) return std::string(given);
    return of.is_socket ? absolute_socket(given, folder) : absolute_path(given, folder);
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

void append_words(std::string& to, std::string_view text, std::size_t margin) {
    std::size_t column = margin;
    while (!text.empty()) {
        const std::string_view word = text.substr(0, text.find(' '));
        text.remove_prefix(std::min(word.size() + 1, text.size()));
        if (column > margin && column + word.size() > help_width) {
            to += "\n" + std::string(margin, ' ');
            column = margin;
        }
        if (column > margin) to += ' ';
        to += word;
        column += word.size() + 1;
    }
}

std::string describe_flags(std::span<const flag> table) {
    std::string text;
    for (const flag& f : table) {
        if (f.is_ignored) continue;
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
        text += left;
        append_words(text, right, help_column);
        while (text.ends_with(' ')) text.pop_back();
        text += "\n";
    }
    return text;
}

}  // namespace eddy::cli
