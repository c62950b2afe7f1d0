// Variables of programs.
#include "runtime/program/environment.hpp"

#include "base/text/text.hpp"
#include "runtime/options/option.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>

namespace eddy::runtime::program {
namespace {

std::string_view name_of(std::string_view variable) {
    return variable.substr(0, variable.find('='));
}

bool is_name(std::string_view text) {
    return !text.empty() && !(text[0] >= '0' && text[0] <= '9') &&
           std::ranges::all_of(text, [](char each) {
               return (each >= 'a' && each <= 'z') || (each >= 'A' && each <= 'Z') ||
                      (each >= '0' && each <= '9') || each == '_' || each == '.' || each == '-';
           });
}

bool is_of_the_daemon(std::string_view name) {
    return name.starts_with("LISTEN_") || name.starts_with("WATCHDOG_") ||
           name == "NOTIFY_SOCKET" || name == "EDDY_SOCKET" || name == "EDDY_STATE_DIR";
}

void set(std::vector<std::string>& all, const std::string& variable) {
    const std::string_view name = name_of(variable);
    std::erase_if(all, [&](const std::string& each) { return name_of(each) == name; });
    all.push_back(variable);
}

}  // namespace

outcome<> check_variable(std::string_view text, std::string_view flag) {
    const std::string_view name = name_of(text);
    if (name.size() == text.size() || !is_name(name))
        return refuse(400,
                      fmt::format("{} \"{}\": write NAME=VALUE, with a name of letters, digits "
                                  "and underscores",
                                  flag, name));
    if (text.contains('\0'))
        return refuse(400, fmt::format("{} {}: a value has no zero bytes", flag, name));
    return {};
}

outcome<std::vector<std::string>> read_variables(std::string_view text, std::string_view path) {
    std::vector<std::string> all;
    std::size_t number = 0;
    while (!text.empty()) {
        ++number;
        std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(line.size() + 1, text.size()));
        while (!line.empty() && (line.front() == ' ' || line.front() == '\t'))
            line.remove_prefix(1);
        if (line.ends_with('\r')) line.remove_suffix(1);
        if (line.empty() || line.front() == '#') continue;
        if (line.starts_with("export ")) line.remove_prefix(7);
        if (auto fine = check_variable(line, "a variable"); !fine)
            return refuse(
                400, fmt::format("--env-file {}, line {}: {}", path, number, fine.error().message));
        std::string_view value = line.substr(line.find('=') + 1);
        const bool is_quoted = value.size() >= 2 &&
                               (value.front() == '"' || value.front() == '\'') &&
                               value.back() == value.front();
        if (is_quoted) value = value.substr(1, value.size() - 2);
        set(all, fmt::format("{}={}", name_of(line), value));
    }
    return all;
}

std::vector<std::string> environment_of(const std::vector<std::string>& more) {
    std::vector<std::string> all;
    for (char** each = environ; *each != nullptr; ++each)
        if (!is_of_the_daemon(name_of(*each))) all.emplace_back(*each);
    for (const std::string& each : more) set(all, each);
    return all;
}

std::string shown_variable(const std::string& variable) {
    constexpr std::array<std::string_view, 7> words = {"password", "passwd",     "pass_", "secret",
                                                       "token",    "credential", "key"};
    const std::string name = lower(name_of(variable));
    const bool is_secret = std::ranges::any_of(
        words, [&](std::string_view word) { return name.find(word) != std::string::npos; });
    if (!is_secret || name.size() == variable.size()) return variable;
    return fmt::format("{}={}", name_of(variable), hidden);
}

}  // namespace eddy::runtime::program
