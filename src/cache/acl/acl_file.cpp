// Reader and writer of the ACL file, with Redis's error texts.
#include "cache/acl/acl_file.hpp"

#include "cache/acl/access.hpp"
#include "cache/engine/engine_state.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace eddy::cache::acl {
namespace {

// At most so many bytes of error texts of one file.
constexpr std::size_t max_errors = 64 * 1024;

std::string_view trim(std::string_view text, std::string_view what) {
    const std::size_t first = std::min(text.find_first_not_of(what), text.size());
    text.remove_prefix(first);
    const std::size_t last = text.find_last_not_of(what);
    return text.substr(0, last == std::string_view::npos ? 0 : last + 1);
}

std::vector<std::string_view> split(std::string_view text) {
    std::vector<std::string_view> words;
    while (true) {
        const std::size_t end = text.find(' ');
        words.push_back(text.substr(0, end));
        if (end == std::string_view::npos) return words;
        text.remove_prefix(end + 1);
    }
}

// The words of a selector in parentheses as one rule; none when one is left open.
std::optional<std::vector<std::string>> merge_selectors(std::span<const std::string_view> words) {
    std::vector<std::string> rules;
    bool is_open = false;
    for (const std::string_view word : words) {
        if (is_open) {
            rules.back() += ' ';
            rules.back() += word;
        } else {
            rules.emplace_back(word);
            is_open = word.starts_with('(');
        }
        if (word.ends_with(')')) is_open = false;
    }
    if (is_open) return std::nullopt;
    return rules;
}

class file_reader {
public:
    file_reader(std::string_view file, bool all_channels)
        : file_(file), all_channels_(all_channels) {}

    void read(std::string_view text) {
        for (std::size_t line = 1; !text.empty(); ++line) {
            const std::size_t end = std::min(text.find('\n'), text.size());
            read_line(trim(text.substr(0, end), " \t\r\n"), line);
            text.remove_prefix(std::min(end + 1, text.size()));
        }
    }

    std::map<std::string, user, std::less<>> found;
    std::string errors;

private:
    void add(std::string_view what) {
        if (errors.size() < max_errors) errors += what;
    }
    std::string place(std::size_t line) const {
        return std::string(file_) + ':' + std::to_string(line);
    }

    void read_line(std::string_view line, std::size_t number) {
        if (line.empty()) return;
        const std::vector<std::string_view> words = split(line);
        if (words[0] != "user" || words.size() < 2) {
            return add(place(number) +
                       " should start with user keyword followed by the username. ");
        }
        const std::string name(words[1]);
        const bool is_bad = std::ranges::any_of(
            name, [](unsigned char each) { return std::isspace(each) || each == 0; });
        if (is_bad) {
            return add('\'' + place(number) + ": username '" + name +
                       "' contains invalid characters. ");
        }
        if (found.contains(name)) {
            return add("WARNING: Duplicate user '" + name + "' found on line " +
                       std::to_string(number) + ". ");
        }
        if (found.size() >= max_users) return add(place(number) + ": too many users. ");
        user made(name, all_channels_);
        const auto rules = merge_selectors(std::span(words).subspan(2));
        if (!rules) {
            return add(place(number) + ": Unmatched parenthesis in selector definition.");
        }
        apply(made, *rules, number);
        found.emplace(name, std::move(made));
    }

    // Reports every unknown command or category, and of the other faults the first.
    void apply(user& made, const std::vector<std::string>& rules, std::size_t line) {
        bool has_fault = false;
        for (const std::string& each : rules) {
            const std::string_view rule = trim(each, "\t\r\n");
            const auto done = made.apply({&rule, 1});
            if (done) continue;
            // Without the prefix of ACL SETUSER's errors.
            const std::size_t colon = done.error().rfind("': ");
            const std::string why =
                colon == std::string::npos ? done.error() : done.error().substr(colon + 3);
            if (why.starts_with("Unknown command")) {
                add(place(line) + ": Error in applying operation '" + std::string(rule) +
                    "': " + why + ". ");
            } else if (!std::exchange(has_fault, true)) {
                add(place(line) + ": " + why + ". ");
            }
        }
    }

    std::string_view file_;
    bool all_channels_;  // acl-pubsub-default
};

}  // namespace

std::string to_file(const users& all) {
    std::string text;
    all.for_each([&](const user& each) {
        text += "user ";
        text += each.name();
        text += ' ';
        text += each.written();
        text += '\n';
    });
    return text;
}

std::expected<void, std::string> load(engine_state& s, std::string_view text,
                                      std::string_view file) {
    file_reader read(file, s.settings.options.new_users_use_channels);
    read.read(text);
    if (!read.errors.empty()) {
        return std::unexpected(read.errors +
                               "WARNING: ACL errors detected, no change to the previously active "
                               "ACL rules was performed");
    }
    std::vector<std::string> gone;
    s.settings.users.for_each([&](const user& each) {
        if (!read.found.contains(each.name()) && each.name() != "default") {
            gone.push_back(each.name());
        }
    });
    for (const std::string& name : gone) close_sessions_of(s, *s.settings.users.remove(name));
    if (!read.found.contains("default")) {
        users fresh{""};
        s.settings.users.default_user() = fresh.default_user();
    }
    for (auto& [name, each] : read.found) {
        user* const old = s.settings.users.find(name);
        if (old == nullptr) {
            s.settings.users.add(std::move(each));
        } else {
            *old = std::move(each);
        }
    }
    s.settings.users.for_each([&](const user& each) { close_forbidden_subscribers(s, each); });
    note_all_permissions(s);
    return {};
}

}  // namespace eddy::cache::acl
