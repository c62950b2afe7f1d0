// Fields of a runtime, and the rows of a list.
#include "daemon/control/runtime_rows.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/wire/json.hpp>

#include "daemon/control/runtime_view.hpp"
#include "daemon/runtimes/runtime_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

namespace eddy::daemon {
namespace {

using which_t = const managed_runtime&;

void write_or_null(json_writer& to, std::string_view text) {
    if (text.empty())
        to.null();
    else
        to.value(text);
}

void write_port(json_writer& to, which_t of, time_point /*now*/) {
    const endpoint& local = of.running.vitals().local;
    const json& options = of.desired.record.options;
    if (local.family() != AF_UNSPEC && local.port() != 0)
        to.value(local.port());
    else if (local.family() == AF_UNSPEC && options.contains("port"))
        to.raw(dump_json(options.at("port")));
    else
        to.null();
}

void write_address(json_writer& to, which_t of, time_point /*now*/) {
    const endpoint& local = of.running.vitals().local;
    write_or_null(to, local.family() == AF_UNSPEC ? std::string() : local.to_string());
}

void write_uptime(json_writer& to, which_t of, time_point now) {
    if (const auto uptime = uptime_of(of.running, now))
        to.value(*uptime);
    else
        to.null();
}

void write_loop(json_writer& to, which_t of, time_point /*now*/) {
    if (of.running.has_instance())
        to.value(of.running.where()->index());
    else
        to.null();
}

constexpr std::array<runtime_field, 19> all_fields = {{
    {"id", [](json_writer& to, which_t of, time_point) { to.value(of.desired.record.id); }},
    {"name", [](json_writer& to, which_t of, time_point) { to.value(of.name()); }},
    {"type", [](json_writer& to, which_t of, time_point) { to.value(of.desired.record.type); }},
    {"status",
     [](json_writer& to, which_t of, time_point) { to.value(to_string(of.running.status())); }},
    {"port", write_port, true},
    {"address", write_address, true},
    {"uptime_s", write_uptime},
    {"connections", [](json_writer& to, which_t of, time_point) { to.value(connections_of(of)); },
     true},
    {"handshakes",
     [](json_writer& to, which_t of, time_point) {
         to.value(of.running.vitals().counted.handshakes_now.value());
     },
     true},
    {"owner", [](json_writer& to, which_t of, time_point) { to.value(of.desired.record.owner); }},
    {"group", [](json_writer& to, which_t of, time_point) { to.value(of.desired.record.group); }},
    {"on_parent_stop", [](json_writer& to, which_t of,
                          time_point) { to.value(to_string(of.desired.record.policy)); }},
    {"created", [](json_writer& to, which_t of,
                   time_point) { to.value(format_time(of.desired.record.created)); }},
    {"loop", write_loop},
    {"options",
     [](json_writer& to, which_t of, time_point) {
         to.raw(dump_json(mask_secrets(of.desired.type, of.desired.record.options)));
     }},
    {"stack",
     [](json_writer& to, which_t of, time_point) { write_or_null(to, of.desired.record.stack); }},
    {"reason", [](json_writer& to, which_t of, time_point) { write_or_null(to, reason_of(of)); },
     true},
    {"lost", [](json_writer& to, which_t of, time_point) { write_or_null(to, of.running.lost()); }},
    {"detail", [](json_writer& to, which_t of, time_point) { write_or_null(to, detail_of(of)); },
     true},
}};

}  // namespace

outcome<std::vector<const runtime_field*>> parse_fields(std::string_view listed) {
    std::vector<const runtime_field*> chosen;
    for (;;) {
        const std::size_t comma = listed.find(',');
        const std::string_view name = listed.substr(0, comma);
        const auto* const found = std::ranges::find(all_fields, name, &runtime_field::name);
        if (found == all_fields.end()) {
            std::vector<std::string_view> names;
            for (const runtime_field& each : all_fields) names.push_back(each.name);
            return refuse(400, fmt::format("\"fields\" has an unknown \"{}\"; there are {}", name,
                                           fmt::join(names, ", ")));
        }
        if (std::ranges::find(chosen, found) != chosen.end())
            return refuse(400, fmt::format("\"fields\" has \"{}\" twice", name));
        chosen.push_back(found);
        if (comma == std::string_view::npos) return chosen;
        listed.remove_prefix(comma + 1);
    }
}

runtime_rows::runtime_rows(std::vector<const runtime_field*> fields, time_point now)
    : fields_(std::move(fields)), now_(now), to_(std::make_unique<json_writer>()) {
    EDDY_ASSERT(!fields_.empty());
    to_->begin_object().key("fields").begin_array();
    for (const runtime_field* const each : fields_) to_->value(each->name);
    to_->end_array().key("rows").begin_array();
}

runtime_rows::~runtime_rows() = default;

void runtime_rows::add(const managed_runtime& which) {
    EDDY_ASSERT(!which.is_removed);
    to_->begin_array();
    for (const runtime_field* const each : fields_) each->write(*to_, which, now_);
    to_->end_array();
}

std::string runtime_rows::take() {
    to_->end_array().end_object();
    return to_->take();
}

}  // namespace eddy::daemon
