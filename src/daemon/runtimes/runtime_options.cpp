// Checks of options, and their secrets.
#include "daemon/runtimes/runtime_options.hpp"

#include "base/text/text.hpp"
#include "runtime/options/option.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::daemon {

outcome<runtime::settings> check_options(const runtime::type& type, const json& given) {
    auto options = runtime::settings::parse(type.options, given);
    if (!options || !type.check) return options;
    if (auto valid = type.check(*options); !valid) return std::unexpected(std::move(valid.error()));
    return options;
}

outcome<> check_files(const runtime::type& type, const runtime::settings& chosen) {
    return type.check_files ? type.check_files(chosen) : outcome<>();
}

json mask_secrets(const runtime::type* type, json options) {
    if (type == nullptr) return options;
    for (const runtime::option& each : type->options) {
        if (each.shown == nullptr) continue;
        const auto found = options.find(option_key(each.name));
        if (found == options.end()) continue;
        if (found->is_string()) *found = each.shown(found->get<std::string>());
        if (!found->is_array()) continue;
        for (json& item : *found)
            if (item.is_string()) item = each.shown(item.get<std::string>());
    }
    return options;
}

namespace {

/// Puts the stored items of a list in the place of the shown forms of theirs.
outcome<> unmask_items(const runtime::option& of, const json& stored, json& items) {
    for (json& item : items) {
        if (!item.is_string()) continue;
        const auto text = item.get<std::string>();
        if (text.find(runtime::hidden) == std::string::npos) continue;
        const auto is_own = [&](const json& each) {
            return each.is_string() && each.get<std::string>() != text &&
                   of.shown(each.get<std::string>()) == text;
        };
        const auto own =
            stored.is_array() ? std::find_if(stored.begin(), stored.end(), is_own) : stored.end();
        if (own == stored.end())
            return refuse(400, fmt::format("--{} has {} in the place of a secret: write the secret "
                                           "itself",
                                           of.name, runtime::hidden));
        item = *own;
    }
    return {};
}

}  // namespace

outcome<> unmask_secrets(const runtime::type& type, const json& stored, json& changed) {
    for (const runtime::option& each : type.options) {
        if (each.shown == nullptr) continue;
        const auto found = changed.find(option_key(each.name));
        const bool is_list = each.kind == runtime::option_kind::list;
        if (is_list && found != changed.end() && found->is_string()) *found = json::array({*found});
        if (found != changed.end() && found->is_array()) {
            const json before = stored.value(option_key(each.name), json::array());
            if (auto own = unmask_items(each, before, *found); !own) return own;
            continue;
        }
        if (found == changed.end() || !found->is_string()) continue;
        const auto& text = found->get_ref<const std::string&>();
        const auto own = stored.find(option_key(each.name));
        if (own != stored.end() && own->is_string() &&
            each.shown(own->get<std::string>()) == text) {
            changed.erase(found);
        } else if (text.find(runtime::hidden) != std::string::npos) {
            return refuse(400, fmt::format("--{} has {} in the place of a password: write the "
                                           "password itself",
                                           each.name, runtime::hidden));
        }
    }
    return {};
}

std::vector<std::string_view> restart_options(const runtime::type& type,
                                              const runtime::settings& now,
                                              const runtime::settings& next) {
    std::vector<std::string_view> names;
    for (const runtime::option& option : type.options)
        if (!option.live && !now.has_same(option.name, next)) names.push_back(option.name);
    return names;
}

}  // namespace eddy::daemon
