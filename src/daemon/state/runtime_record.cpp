// Records of runtimes as JSON.
#include "daemon/state/runtime_record.hpp"

#include "daemon/state/runtime_name.hpp"

#include <fmt/format.h>

#include <tuple>
#include <utility>

namespace eddy::daemon {

json to_json(const runtime_record& record) {
    return {{"version", state_version},
            {"id", record.id},
            {"name", record.name},
            {"type", record.type},
            {"owner", record.owner},
            {"group", record.group},
            {"created", format_time(record.created)},
            {"running", record.running},
            {"options", record.options}};
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
    for (auto [name, to] : {std::tuple("id", &record.id), std::tuple("name", &record.name),
                            std::tuple("type", &record.type), std::tuple("owner", &record.owner),
                            std::tuple("group", &record.group)}) {
        auto text = text_member(value, name);
        if (!text) return std::unexpected(text.error());
        *to = std::move(*text);
    }
    if (auto valid = check_runtime_name(record.name); !valid) return std::unexpected(valid.error());
    if (record.type.empty()) return refuse(400, "it has no \"type\"");
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
