// Expansion of variables.
#include "cli/stack/variables.hpp"

#include "base/text/terminal_text.hpp"
#include "base/text/text.hpp"

#include <fmt/format.h>

#include <cstdlib>

namespace eddy::cli {
namespace {

using expanded = std::expected<std::string, std::string>;

/// Variables within the texts of variables.
constexpr std::size_t most_levels = 8;

constexpr bool is_name(char c) noexcept { return is_letter(c) || is_digit(c) || c == '_'; }

/// End of the name that `text` begins with.
std::size_t end_of_name(std::string_view text) noexcept {
    std::size_t end = 0;
    while (end < text.size() && is_name(text[end])) ++end;
    return end == 0 || is_digit(text[0]) ? 0 : end;
}

/// Place of the brace that closes what begins at 0; npos for none.
std::size_t closing_brace(std::string_view text) noexcept {
    std::size_t depth = 0;
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (text.substr(at).starts_with("$$")) {
            ++at;
        } else if (text.substr(at).starts_with("${")) {
            ++depth;
            ++at;
        } else if (text[at] == '}') {
            if (depth == 0) return at;
            --depth;
        }
    }
    return std::string_view::npos;
}

expanded expand_level(std::string_view text, const environment& of, std::size_t level);

/// The value of what stands between the braces.
expanded value_of(std::string_view inner, const environment& of, std::size_t level) {
    const std::size_t end = end_of_name(inner);
    const std::string_view name = inner.substr(0, end);
    std::string_view rest = inner.substr(end);
    if (end == 0)
        return std::unexpected(
            fmt::format("${{{}}} has no name of a variable; $$ is a dollar", printable(inner, 60)));
    std::optional<std::string> value = of(name);
    if (rest.empty()) {
        if (value) return std::move(*value);
        return std::unexpected(
            fmt::format("the environment has no {0}; set it, or write "
                        "${{{0}:-DEFAULT}}",
                        name));
    }
    const bool counts_empty = rest.front() == ':';
    if (counts_empty) rest.remove_prefix(1);
    const char what = rest.empty() ? '\0' : rest.front();
    if (what != '-' && what != '?')
        return std::unexpected(
            fmt::format("${{{}}} cannot be read; write ${{{}}}, ${{{}:-DEFAULT}} "
                        "or ${{{}:?MESSAGE}}",
                        printable(inner, 60), name, name, name));
    rest.remove_prefix(1);
    if (value && !(counts_empty && value->empty())) return std::move(*value);
    auto text = expand_level(rest, of, level + 1);
    if (!text || what == '-') return text;
    return std::unexpected(
        fmt::format("{}: {}", name, text->empty() ? "it must be set" : printable(*text)));
}

expanded expand_level(std::string_view text, const environment& of, std::size_t level) {
    if (level > most_levels)
        return std::unexpected(
            fmt::format("variables within variables go {} deep at most", most_levels));
    std::string made;
    while (!text.empty()) {
        const std::size_t dollar = std::min(text.find('$'), text.size());
        made += text.substr(0, dollar);
        text.remove_prefix(dollar);
        if (text.starts_with("$$")) {
            made += '$';
            text.remove_prefix(2);
        } else if (text.starts_with("${")) {
            text.remove_prefix(2);
            const std::size_t end = closing_brace(text);
            if (end == std::string_view::npos)
                return std::unexpected("${ is not closed by a }; $$ is a dollar");
            auto value = value_of(text.substr(0, end), of, level);
            if (!value) return value;
            made += *value;
            text.remove_prefix(end + 1);
        } else if (!text.empty()) {
            made += '$';
            text.remove_prefix(1);
        }
        if (made.size() > expanded_limit)
            return std::unexpected(
                fmt::format("the text has more than {} bytes with its variables", expanded_limit));
    }
    return made;
}

}  // namespace

environment process_environment() {
    return [](std::string_view name) -> std::optional<std::string> {
        const char* const value = std::getenv(std::string(name).c_str());
        if (value == nullptr) return std::nullopt;
        return value;
    };
}

expanded expand(std::string_view text, const environment& of) { return expand_level(text, of, 0); }

std::string without_variables(std::string_view text) {
    std::string made;
    for (std::size_t at = 0; at < text.size(); ++at) {
        made += text[at];
        const char next = at + 1 < text.size() ? text[at + 1] : '\0';
        if (text[at] == '$' && (next == '$' || next == '{')) made += '$';
    }
    return made;
}

}  // namespace eddy::cli
