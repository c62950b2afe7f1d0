// Parameters in one line. A value is quoted only where it would be read as something else.
#include "runtime/cache/config/parameters.hpp"

#include "cache/acl/secret_arguments.hpp"
#include "runtime/options/option.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>

namespace eddy::runtime::cache {
namespace {

constexpr std::string_view spaces = " ";

void skip_spaces(std::string_view& text) {
    text.remove_prefix(std::min(text.find_first_not_of(spaces), text.size()));
}

// The byte that an escape at `at`, behind its backslash, stands for; `at` is moved to its last
// character.
char take_escaped(std::string_view text, std::size_t& at) {
    constexpr std::pair<char, char> letters[] = {
        {'n', '\n'}, {'r', '\r'}, {'t', '\t'}, {'a', '\a'}, {'b', '\b'}};
    for (const auto& [letter, stands_for] : letters) {
        if (text[at] == letter) return stands_for;
    }
    unsigned char byte = 0;
    const std::string_view digits = text[at] == 'x' ? text.substr(at + 1, 2) : std::string_view();
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
    if (digits.size() != 2 || read.ptr != digits.data() + 2) return text[at];
    at += 2;
    return static_cast<char>(byte);
}

// Takes the quoted value at the start of the text; none when the quotes stay open.
std::optional<std::string> take_quoted(std::string_view& text) {
    std::string value;
    for (std::size_t i = 1; i < text.size(); ++i) {
        if (text[i] == '"') {
            text.remove_prefix(i + 1);
            return value;
        }
        const bool is_escape = text[i] == '\\' && i + 1 < text.size();
        value += is_escape ? take_escaped(text, ++i) : text[i];
    }
    return std::nullopt;
}

bool is_printable(char each) noexcept { return each >= ' ' && each <= '~'; }

// In ASCII alone: the line is kept as JSON, which cannot hold every byte.
std::string in_quotes(std::string_view value) {
    const bool is_plain = !value.empty() && value.find_first_of("\";") == std::string_view::npos &&
                          !value.starts_with(' ') && !value.ends_with(' ') &&
                          std::ranges::all_of(value, is_printable);
    if (is_plain) return std::string(value);
    std::string made = "\"";
    for (const char each : value) {
        if (is_printable(each)) {
            if (each == '"' || each == '\\') made += '\\';
            made += each;
        } else {
            made += fmt::format("\\x{:02x}", static_cast<unsigned char>(each));
        }
    }
    return made + '"';
}

}  // namespace

std::optional<parameter_list> split_parameters(std::string_view text) {
    parameter_list all;
    while (true) {
        skip_spaces(text);
        if (text.empty()) return all;
        if (text.front() == ';') {
            text.remove_prefix(1);
            continue;
        }
        const std::string_view name = text.substr(0, text.find_first_of(" ;"));
        text.remove_prefix(name.size());
        skip_spaces(text);
        std::string value;
        if (text.starts_with('"')) {
            auto inner = take_quoted(text);
            if (!inner) return std::nullopt;
            value = std::move(*inner);
            skip_spaces(text);
            if (!text.empty() && text.front() != ';') return std::nullopt;
        } else {
            std::string_view plain = text.substr(0, text.find(';'));
            text.remove_prefix(plain.size());
            while (plain.ends_with(' ')) plain.remove_suffix(1);
            if (plain.empty()) return std::nullopt;
            value = plain;
        }
        all.emplace_back(name, std::move(value));
    }
}

std::string join_parameters(const parameter_list& all) {
    std::string text;
    for (const auto& [name, value] : all) {
        if (!text.empty()) text += "; ";
        text += name + ' ' + in_quotes(value);
    }
    return text;
}

std::string without_secrets(const std::string& text) {
    std::optional<parameter_list> all = split_parameters(text);
    if (!all) return std::string(hidden);
    for (auto& [name, value] : *all)
        if (eddy::cache::is_password_parameter(name)) value = hidden;
    return join_parameters(*all);
}

}  // namespace eddy::runtime::cache
