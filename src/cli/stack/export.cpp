// Writing of stack files.
#include "cli/stack/export.hpp"

#include "base/text/terminal_text.hpp"
#include "base/text/text.hpp"
#include "cli/request.hpp"
#include "cli/stack/variables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace eddy::cli {
namespace {

constexpr std::string_view mask = "***";

/// A text of TOML between quotes.
std::string between_quotes(std::string_view text) {
    std::string made = "\"";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\')
            made.append("\\").append(1, c);
        else if (c == '\n')
            made += "\\n";
        else if (c == '\t')
            made += "\\t";
        else if (byte < 0x20 || byte == 0x7f)
            made += fmt::format("\\u{:04X}", byte);
        else
            made += c;
    }
    return made + '"';
}

/// A key, in quotes where it has other characters than those of plain keys.
std::string key_text(std::string_view key) {
    const bool is_plain = !key.empty() && std::ranges::all_of(key, [](char c) {
        return is_letter(c) || is_digit(c) || c == '_' || c == '-';
    });
    return is_plain ? std::string(key) : between_quotes(key);
}

std::string variable_name(std::string_view runtime, std::string_view option) {
    std::string name = fmt::format("EDDY_{}_{}", runtime, option);
    for (char& c : name) c = is_letter(c) || is_digit(c) ? c : '_';
    std::ranges::transform(name, name.begin(), [](char c) {
        return c >= 'a' && c <= 'z' ? static_cast<char>(c - ('a' - 'A')) : c;
    });
    return name;
}

std::string value_text(const json& value) {
    if (value.is_string()) return between_quotes(without_variables(value.get<std::string>()));
    if (!value.is_array()) return value.dump();
    std::string items;
    for (const json& each : value) items += (items.empty() ? "" : ", ") + value_text(each);
    return "[" + items + "]";
}

/// A text in which the daemon has masked secrets: a variable is in the place of each.
std::string secret_text(std::string_view masked, const std::string& runtime,
                        const std::string& option) {
    std::string made;
    for (std::size_t n = 1;; ++n) {
        const std::size_t at = masked.find(mask);
        made += without_variables(masked.substr(0, at));
        if (at == std::string_view::npos) return between_quotes(made);
        std::string name = variable_name(runtime, option);
        if (n > 1) name += fmt::format("_{}", n);
        made += fmt::format("${{{}:?the secret of {} in {}}}", name, runtime, option);
        masked.remove_prefix(at + mask.size());
    }
}

std::string runtime_text(const context& with, const json& runtime) {
    const std::string name = text_of(runtime, "name");
    const std::string type = text_of(runtime, "type");
    std::string text = fmt::format("\n[{}.{}]\n", key_text(type), key_text(name));
    for (const char* const each : {"owner", "group"})
        if (const std::string value = text_of(runtime, each); !value.empty())
            text += fmt::format("{} = {}\n", each, between_quotes(value));
    if (const std::string policy = text_of(runtime, "on_parent_stop");
        !policy.empty() && policy != "stop")
        text += fmt::format("on_parent_stop = {}\n", between_quotes(policy));
    const std::string status = text_of(runtime, "status");
    if (status == "stopped" || status == "created") text += "start = false\n";
    const type_flags* const known = with.find_type(type);
    const json options = runtime.value("options", json::object());
    for (const auto& [key, value] : options.items()) {
        const bool is_secret =
            known != nullptr && value.is_string() &&
            std::ranges::any_of(
                known->flags,
                [&](const flag& each) { return each.is_secret && option_key(each.name) == key; }) &&
            value.get_ref<const std::string&>().find(mask) != std::string::npos;
        text += fmt::format(
            "{} = {}\n", key_text(key),
            is_secret ? secret_text(value.get<std::string>(), name, key) : value_text(value));
    }
    return text;
}

}  // namespace

std::string exported(const context& with, const json& runtimes, std::string_view stack) {
    std::string text = "# Made by `eddy export`; `eddy up` makes these runtimes.\n";
    text += fmt::format("stack = {}\n", between_quotes(stack));
    for (const json& each : runtimes) text += runtime_text(with, each);
    return text;
}

}  // namespace eddy::cli
