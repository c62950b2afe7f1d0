// Checks of options, and their secrets.
#include "daemon/runtimes/runtime_options.hpp"

#include "base/text/text.hpp"
#include "runtime/options/option.hpp"

#include <fmt/format.h>

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

json mask_secrets(const runtime::type* type, json options) {
    if (type == nullptr) return options;
    for (const runtime::option& each : type->options) {
        if (each.shown == nullptr) continue;
        const auto found = options.find(option_key(each.name));
        if (found != options.end() && found->is_string())
            *found = each.shown(found->get<std::string>());
    }
    return options;
}

outcome<> unmask_secrets(const runtime::type& type, const json& stored, json& changed) {
    for (const runtime::option& each : type.options) {
        if (each.shown == nullptr) continue;
        const auto found = changed.find(option_key(each.name));
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
    const json before = now.to_json();
    const json after = next.to_json();
    for (const runtime::option& option : type.options) {
        if (option.live) continue;
        const std::string name = option_key(option.name);
        const json old_value = before.contains(name) ? before.at(name) : json();
        const json new_value = after.contains(name) ? after.at(name) : json();
        if (old_value != new_value) names.push_back(option.name);
    }
    return names;
}

}  // namespace eddy::daemon
