// Records of runtimes as JSON.
#include "daemon/state/runtime_record.hpp"

#include "daemon/state/runtime_name.hpp"

#include <fmt/format.h>

#include <tuple>
#include <utility>

namespace eddy::daemon {

std::string_view to_string(on_parent_stop policy) noexcept {
    switch (policy) {
        case on_parent_stop::stop: return "stop";
        case on_parent_stop::remove: return "remove";
        case on_parent_stop::keep: return "keep";
    }
    return "unknown";
}

outcome<on_parent_stop> parse_on_parent_stop(std::string_view name) {
    if (name.empty()) return on_parent_stop::stop;
    for (const auto each : {on_parent_stop::stop, on_parent_stop::remove, on_parent_stop::keep})
        if (to_string(each) == name) return each;
    return refuse(
        400,
        fmt::format("--on-parent-stop cannot be \"{}\"; it may be stop, remove or keep", name));
}

json to_json(const runtime_record& record) {
    json made = {{"version", state_version},
                 {"id", record.id},
                 {"name", record.name},
                 {"type", record.type},
                 {"owner", record.owner},
                 {"group", record.group},
                 {"created", format_time(record.created)},
                 {"running", record.running},
                 {"options", record.options}};
    // Earlier versions know none of these.
    if (!record.stack.empty()) made["stack"] = record.stack;
    if (record.policy != on_parent_stop::stop) made["on_parent_stop"] = to_string(record.policy);
    if (!record.former_name.empty()) made["renamed_from"] = record.former_name;
    return made;
}

outcome<runtime_record> record_from_json(const json& value) {
    if (!value.is_object()) return refuse(400, "it is not a JSON object");
    const auto version = value.find("version");
    if (version == value.end() || !version->is_number_integer())
        return refuse(400, "it has no \"version\"");
    if (*version > state_version)
        return refuse(400, fmt::format("its version is {}, and this Eddy knows none above {}",
                                       version->dump(), state_version));
    runtime_record record;
    for (auto [name, to] :
         {std::tuple("id", &record.id), std::tuple("name", &record.name),
          std::tuple("type", &record.type), std::tuple("owner", &record.owner),
          std::tuple("group", &record.group), std::tuple("stack", &record.stack)}) {
        auto text = text_member(value, name);
        if (!text) return std::unexpected(text.error());
        *to = std::move(*text);
    }
    if (auto valid = check_runtime_name(record.name); !valid) return std::unexpected(valid.error());
    if (record.type.empty()) return refuse(400, "it has no \"type\"");
    auto policy_name = text_member(value, "on_parent_stop");
    if (!policy_name) return std::unexpected(policy_name.error());
    auto policy = parse_on_parent_stop(*policy_name);
    if (!policy) return std::unexpected(policy.error());
    record.policy = *policy;
    auto former = text_member(value, "renamed_from");
    if (!former) return std::unexpected(former.error());
    record.former_name = std::move(*former);
    auto created = text_member(value, "created");
    if (!created) return std::unexpected(created.error());
    auto when = parse_time(*created);
    if (!when) return std::unexpected(when.error());
    record.created = *when;
    auto running = flag_member(value, "running", false);
    if (!running) return std::unexpected(running.error());
    record.running = *running;
    const auto options = value.find("options");
    if (options == value.end() || !options->is_object())
        return refuse(400, "it has no \"options\"");
    record.options = *options;
    return record;
}

}  // namespace eddy::daemon
