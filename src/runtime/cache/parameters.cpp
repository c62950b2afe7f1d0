// A value is quoted only where it would be read as something else.
#include "runtime/cache/parameters.hpp"

#include "cache/call.hpp"
#include "runtime/runtime.hpp"

#include <algorithm>

namespace eddy::runtime::cache {
namespace {

constexpr std::string_view spaces = " ";

void skip_spaces(std::string_view& text) {
    text.remove_prefix(std::min(text.find_first_not_of(spaces), text.size()));
}

// What is in quotes at the start of the text, which is taken away; none when they stay open.
std::optional<std::string> take_quoted(std::string_view& text) {
    std::string value;
    for (std::size_t i = 1; i < text.size(); ++i) {
        if (text[i] == '"') {
            text.remove_prefix(i + 1);
            return value;
        }
        if (text[i] == '\\' && i + 1 < text.size()) ++i;
        value += text[i];
    }
    return std::nullopt;
}

std::string in_quotes(std::string_view value) {
    const bool is_plain = !value.empty() && value.find_first_of("\";") == std::string_view::npos &&
                          !value.starts_with(' ') && !value.ends_with(' ');
    if (is_plain) return std::string(value);
    std::string made = "\"";
    for (const char each : value) {
        if (each == '"' || each == '\\') made += '\\';
        made += each;
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
    for (auto& [name, value] : *all) {
        for (const std::string_view secret :
             {"requirepass", "masterauth", "tls-key-file-pass", "tls-client-key-file-pass"}) {
            if (eddy::cache::is_word(name, secret)) value = hidden;
        }
    }
    return join_parameters(*all);
}

}  // namespace eddy::runtime::cache
