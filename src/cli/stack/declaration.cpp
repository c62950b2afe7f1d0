// Members of a declared runtime.
#include "cli/stack/declaration.hpp"

#include <eddy/base/nearest.hpp>

#include "base/files/regular_file.hpp"
#include "base/text/terminal_text.hpp"
#include "base/text/text.hpp"
#include "cli/local_path.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace eddy::cli {
namespace {

using nlohmann::json;

constexpr std::string_view file_suffix = "_file";

/// Members that are no options.
constexpr std::string_view own_members[] = {"owner", "group", "start", "on_parent_stop"};
constexpr std::string_view stop_policies[] = {"stop", "remove", "keep"};

/// The type whose command is a path, or a name in $PATH.
constexpr std::string_view program_type = "program";

/// A declaration in the making.
struct member {
    const declaration_source& from;
    declared_runtime& of;
    const place& at;
    std::vector<file_fault>& faults;

    void blame(std::string message) const {
        faults.push_back({at, fmt::format("{}: {}", of.name, message)});
    }
};

const flag* find_option(const type_flags& type, std::string_view key) {
    const auto found = std::ranges::find_if(type.flags, [&](const flag& each) {
        return option_key(each.name) == key ||
               (!each.former_name.empty() && option_key(each.former_name) == key);
    });
    return found == type.flags.end() ? nullptr : &*found;
}

std::string unknown_option(const type_flags& type, std::string_view key) {
    for (const flag& each : type.flags)
        for (const auto& [foreign, instead] : each.foreign_names)
            if (option_key(foreign) == key)
                return fmt::format("a {} has no option \"{}\"; did you mean {}?", type.name,
                                   printable(key), instead);
    std::vector<std::string> keys(std::begin(own_members), std::end(own_members));
    for (const flag& each : type.flags) keys.push_back(option_key(each.name));
    const std::vector<std::string_view> candidates(keys.begin(), keys.end());
    const std::string_view meant = nearest_word(key, candidates);
    const std::string why = fmt::format("a {} has no option \"{}\"", type.name, printable(key, 60));
    if (!meant.empty()) return fmt::format("{}; did you mean {}?", why, meant);
    return fmt::format("{}; `eddy create {} --help` lists those it has", why, type.name);
}

/// The first line of a secret's file.
std::optional<std::string> read_secret(const member& to, const std::string& path) {
    auto text = read_regular(path, secret_file_size);
    if (!text) {
        to.blame(
            fmt::format("the file {} cannot be read: {}", printable(path), text.error().message()));
        return std::nullopt;
    }
    struct stat about{};
    if (to.from.warnings != nullptr && ::stat(path.c_str(), &about) == 0 &&
        (about.st_mode & S_IROTH) != 0)
        to.from.warnings->push_back(
            {to.at, fmt::format("other users can read the secret in {}; to end that: chmod o-r",
                                printable(path))});
    while (text->ends_with('\n') || text->ends_with('\r')) text->pop_back();
    if (text->empty()) {
        to.blame(fmt::format("the file {} is empty, and is to have a secret", printable(path)));
        return std::nullopt;
    }
    return std::move(*text);
}

/// A text as the daemon takes it: with its variables, and paths from the file's folder.
std::optional<json> whole_text(const member& to, const flag& option, std::string_view text) {
    const std::size_t before = to.faults.size();
    const std::string made = expanded_text(to.from, text, to.at, to.faults);
    if (to.faults.size() != before) return std::nullopt;
    const bool is_command = to.of.type == program_type && option.name == "command";
    auto whole =
        is_command ? find_program(made, to.from.folder) : whole_value(option, made, to.from.folder);
    if (whole) return json(std::move(*whole));
    to.blame(whole.error());
    return std::nullopt;
}

std::optional<json> option_value(const member& to, const flag& option, const json& value) {
    const std::string key = option_key(option.name);
    if (value.is_string()) return whole_text(to, option, value.get_ref<const std::string&>());
    if (value.is_boolean() || value.is_number()) {
        // A list's items, and texts, are texts to the daemon.
        if (!option.repeats) return value;
        return json(value.dump());
    }
    if (value.is_array() && (option.repeats || option.is_uri)) {
        json items = json::array();
        std::string joined;
        for (const json& each : value) {
            if (!each.is_string() && !each.is_number()) {
                to.blame(fmt::format("{} is a list of texts", key));
                return std::nullopt;
            }
            auto item =
                whole_text(to, option, each.is_string() ? each.get<std::string>() : each.dump());
            if (!item) return std::nullopt;
            joined += (joined.empty() ? "" : ",") + item->get<std::string>();
            items.push_back(std::move(*item));
        }
        return option.repeats ? items : json(joined);
    }
    to.blame(fmt::format("{} cannot be {}; it takes one value", key,
                         value.is_array() ? "a list" : "a table"));
    return std::nullopt;
}

void declare_own(const member& to, std::string_view name, const json& value) {
    if (name == "start") {
        json flag = value;
        if (flag.is_string())
            flag = expanded_text(to.from, flag.get<std::string>(), to.at, to.faults);
        if (flag == true || flag == "true")
            to.of.is_to_run = true;
        else if (flag == false || flag == "false")
            to.of.is_to_run = false;
        else
            to.blame("start may be true or false");
        return;
    }
    if (!value.is_string()) return to.blame(fmt::format("{} must be a text", name));
    std::string text =
        expanded_text(to.from, value.get_ref<const std::string&>(), to.at, to.faults);
    if (name == "on_parent_stop" && !text.empty() &&
        std::ranges::find(stop_policies, text) == std::end(stop_policies))
        return to.blame(fmt::format("on_parent_stop may be {}", fmt::join(stop_policies, ", ")));
    (name == "owner"   ? to.of.owner
     : name == "group" ? to.of.group
                       : to.of.on_parent_stop) = std::move(text);
}

}  // namespace

std::string expanded_text(const declaration_source& from, std::string_view text, const place& at,
                          std::vector<file_fault>& faults) {
    if (!from.has_variables) return std::string(text);
    auto made = expand(text, from.variables);
    if (made) return std::move(*made);
    faults.push_back({at, std::move(made.error())});
    return {};
}

void complete(const declaration_source& from, declared_runtime& of) {
    if (of.type == program_type && !of.options.contains("directory"))
        of.options["directory"] = from.folder;
}

std::string type_fault(const context& with, std::string_view type,
                       const std::vector<std::string_view>& others) {
    if (with.find_type(type) != nullptr) return {};
    std::vector<std::string_view> names;
    for (const type_flags& each : with.types) names.push_back(each.name);
    const std::string known = fmt::format("{}", fmt::join(names, ", "));
    names.insert(names.end(), others.begin(), others.end());
    const std::string_view meant = nearest_word(type, names);
    const std::string why = fmt::format("there is no type \"{}\"", printable(type, 60));
    if (!meant.empty()) return fmt::format("{}; did you mean {}?", why, meant);
    return fmt::format("{}; there are {}", why, known);
}

void declare(const declaration_source& from, declared_runtime& of, std::string_view name,
             const json& value, const place& at, std::vector<file_fault>& faults) {
    const member to{from, of, at, faults};
    const std::string key = option_key(name);
    of.options_at.insert_or_assign(key, at);
    if (std::ranges::find(own_members, key) != std::end(own_members))
        return declare_own(to, key, value);
    const type_flags* const type = from.with.find_type(of.type);
    if (type == nullptr) return;
    const flag* option = find_option(*type, key);
    if (option != nullptr) {
        const std::string known = option_key(option->name);
        if (of.options.contains(known)) return to.blame(fmt::format("{} is there twice", known));
        auto made = option_value(to, *option, value);
        if (made) of.options[known] = std::move(*made);
        of.options_at.insert_or_assign(known, at);
        return;
    }
    if (key.ends_with(file_suffix))
        option = find_option(*type, key.substr(0, key.size() - file_suffix.size()));
    if (option == nullptr || !option->is_secret) return to.blame(unknown_option(*type, key));
    const std::string known = option_key(option->name);
    if (of.options.contains(known))
        return to.blame(fmt::format("{} and {} exclude each other", known, key));
    if (!value.is_string()) return to.blame(fmt::format("{} must be a path", key));
    const std::size_t before = faults.size();
    const std::string path = expanded_text(from, value.get_ref<const std::string&>(), at, faults);
    if (faults.size() != before) return;
    const local_path whole = absolute_path(path, from.folder);
    if (!whole) return to.blame(whole.error());
    if (auto secret = read_secret(to, *whole)) of.options[known] = std::move(*secret);
    of.options_at.insert_or_assign(known, at);
}

}  // namespace eddy::cli
