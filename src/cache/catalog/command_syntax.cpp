// Parser of the notation of arguments, by recursive descent.
#include "cache/catalog/command_syntax.hpp"

#include "base/text/text.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>

namespace eddy::cache {
namespace {

constexpr bool is_lower(char c) noexcept { return c >= 'a' && c <= 'z'; }
constexpr bool is_upper(char c) noexcept { return c >= 'A' && c <= 'Z'; }
constexpr bool is_space(char c) noexcept { return c == ' ' || c == '\n'; }

// Cursor over the text, which consumes it from the front.
class reader {
public:
    explicit reader(std::string_view text) : left_(text) {}

    char next() const noexcept { return left_.empty() ? '\0' : left_.front(); }
    bool at_end() const noexcept { return left_.empty(); }
    std::string_view rest() const noexcept { return left_; }

    bool take(std::string_view expected) noexcept {
        if (!left_.starts_with(expected)) return false;
        left_.remove_prefix(expected.size());
        return true;
    }
    template <class Wanted>
    std::string_view take_while(Wanted&& is_wanted) noexcept {
        const auto end = std::ranges::find_if_not(left_, is_wanted);
        const auto size = static_cast<std::size_t>(end - left_.begin());
        const std::string_view taken = left_.substr(0, size);
        left_.remove_prefix(size);
        return taken;
    }
    bool skip_spaces() noexcept { return !take_while(is_space).empty(); }

    // The point that begins "..." is no part of it.
    std::string_view take_version() noexcept {
        std::size_t size = 0;
        while (size < left_.size()) {
            const bool inner_point =
                left_[size] == '.' && size + 1 < left_.size() && is_digit(left_[size + 1]);
            if (!is_digit(left_[size]) && !inner_point) break;
            ++size;
        }
        const std::string_view taken = left_.substr(0, size);
        left_.remove_prefix(size);
        return taken;
    }
    // "@1.2.3!4.5.6", of which both may be missing. False when one has no version.
    bool take_versions(std::string_view& since, std::string_view& deprecated_since) noexcept {
        if (take("@")) {
            since = take_version();
            if (since.empty()) return false;
        }
        if (take("!")) {
            deprecated_since = take_version();
            if (deprecated_since.empty()) return false;
        }
        return true;
    }

private:
    std::string_view left_;
};

struct type_name {
    std::string_view written;
    std::string_view shown;
};
constexpr type_name types[] = {{"int", "integer"}, {"double", "double"},   {"time", "unix-time"},
                               {"key", "key"},     {"pattern", "pattern"}, {"string", "string"}};

class parser {
public:
    explicit parser(std::string_view text) : in_(text) {}

    std::optional<std::vector<command_argument>> parse() {
        std::vector<command_argument> all;
        if (in_.at_end()) return all;
        if (!parse_row(all, ' ') || !in_.at_end()) return std::nullopt;
        return all;
    }

private:
    // A row of arguments, separated by spaces or by bars.
    bool parse_row(std::vector<command_argument>& to, char between) {
        do {
            if (between == '|') in_.skip_spaces();
            if (!parse_item(to.emplace_back())) return false;
        } while (between == '|' ? in_.take("|") : in_.skip_spaces());
        return true;
    }

    bool parse_item(command_argument& to) {
        if (!in_.take("[")) return parse_single(to);
        const bool is_group = is_lower(in_.next()) && is_head_of_group();
        if (is_group ? !parse_group(to) : !parse_single(to)) return false;
        if (!in_.take("]")) return false;
        to.optional = true;
        if (in_.take("...")) {
            if (to.multiple) return false;
            to.multiple = true;
            to.repeats_token = !to.token.empty();
        }
        return true;
    }

    // True if ": " comes before any other separator of arguments.
    bool is_head_of_group() const noexcept {
        const std::string_view rest = in_.rest();
        const std::size_t end = rest.find_first_of(" \n|])");
        return end != std::string_view::npos && end > 0 && rest[end - 1] == ':' &&
               is_space(rest[end]);
    }

    // A word, a word with a value, or either without one.
    bool parse_single(command_argument& to) {
        if (is_upper(in_.next()) || in_.next() == '\'') {
            if (!parse_token(to)) return false;
            if (to.type == "pure-token") return true;
        }
        if (in_.take("(")) {
            if (!parse_group(to) || !in_.take(")")) return false;
        } else if (!parse_value(to)) {
            return false;
        }
        to.multiple = in_.take("...");
        return true;
    }

    // Pure token unless a value or a group follows.
    bool parse_token(command_argument& to) {
        if (in_.take("'")) {
            to.token = in_.take_while([](char c) { return c != '\''; });
            if (!in_.take("'")) return false;
        } else {
            to.token =
                in_.take_while([](char c) { return is_upper(c) || is_digit(c) || c == '-'; });
        }
        const std::string_view rest = in_.rest();
        const std::size_t behind = rest.find_first_not_of(" \n");
        if (behind != 0 && behind != std::string_view::npos &&
            (is_lower(rest[behind]) || rest[behind] == '(')) {
            return in_.skip_spaces();
        }
        to.type = "pure-token";
        if (in_.take("<")) {
            to.name = in_.take_while([](char c) { return is_lower(c) || c == '-'; });
            if (!in_.take(">")) return false;
        } else {
            to.name = to.token;
            for (char& c : to.name) {
                if (is_upper(c)) c = static_cast<char>(c + ('a' - 'A'));
            }
        }
        return !to.name.empty() && in_.take_versions(to.since, to.deprecated_since);
    }

    bool parse_name(command_argument& to) {
        if (!is_lower(in_.next())) return false;
        to.name = in_.take_while([](char c) { return is_lower(c) || is_digit(c) || c == '-'; });
        return true;
    }

    bool parse_value(command_argument& to) {
        if (!parse_name(to)) return false;
        if (in_.take("=")) {
            to.display = in_.take_while([](char c) { return is_lower(c) || c == ':' || c == '-'; });
            if (to.display.empty()) return false;
        }
        std::string_view written = to.name;
        if (in_.take("/")) {
            written = in_.take_while(is_lower);
        } else if (written != "key" && written != "pattern") {
            written = "string";
        }
        const auto* const type = std::ranges::find(types, written, &type_name::written);
        if (type == std::end(types)) return false;
        to.type = type->shown;
        if (in_.take("#")) {
            const std::string_view digits = in_.take_while(is_digit);
            const char* const end = digits.data() + digits.size();
            if (std::from_chars(digits.data(), end, to.key_group).ec != std::errc{}) return false;
        } else if (to.type == "key") {
            to.key_group = next_key_group_;
        }
        if (to.type == "key") next_key_group_ = to.key_group + 1;
        return in_.take_versions(to.since, to.deprecated_since);
    }

    // A group, from after its opening bracket on.
    bool parse_group(command_argument& to) {
        if (depth_ == max_argument_depth) return false;
        if (!parse_name(to) || !in_.take_versions(to.since, to.deprecated_since)) return false;
        if (!in_.take(":") || !in_.skip_spaces()) return false;
        ++depth_;
        if (!parse_item(to.arguments.emplace_back())) return false;
        to.type = in_.next() == '|' ? "oneof" : "block";
        const bool goes_on = to.type == "oneof" ? in_.take("|") : in_.skip_spaces();
        if (goes_on && !parse_row(to.arguments, to.type == "oneof" ? '|' : ' ')) return false;
        --depth_;
        return true;
    }

    reader in_;
    std::size_t depth_ = 0;
    int next_key_group_ = 0;
};

}  // namespace

std::optional<std::vector<command_argument>> parse_arguments(std::string_view text) {
    return parser(text).parse();
}

}  // namespace eddy::cache
