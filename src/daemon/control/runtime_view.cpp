// Members of the control API's JSON.
#include "daemon/control/runtime_view.hpp"

#include <eddy/base/assert.hpp>

#include "base/text/text.hpp"
#include "daemon/runtimes/runtime_options.hpp"
#include "runtime/metrics.hpp"
#include "runtime/options/option.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace eddy::daemon {
namespace {

std::string_view to_string(runtime::type::restart_clients clients) noexcept {
    using enum runtime::type::restart_clients;
    switch (clients) {
        case served: return "served";
        case wait: return "wait";
        case none: return "none";
    }
    EDDY_ASSERT(false);
}

json latency_json(const histogram& values) {
    const auto microseconds = [](std::uint64_t ns) { return static_cast<double>(ns) / 1000; };
    return {{"count", values.count()},
            {"mean_us", values.mean() / 1000},
            {"p50_us", microseconds(values.percentile(50))},
            {"p90_us", microseconds(values.percentile(90))},
            {"p99_us", microseconds(values.percentile(99))},
            {"p999_us", microseconds(values.percentile(99.9))},
            {"max_us", microseconds(values.max())}};
}

json sample_json(const runtime::metric_sample& sample) {
    if (const double* number = std::get_if<double>(&sample.value)) return *number;
    const histogram& values = *std::get<std::shared_ptr<const histogram>>(sample.value);
    if (sample.of->name.ends_with("_seconds")) return latency_json(values);
    return {{"count", values.count()},      {"mean", values.mean()},
            {"p50", values.percentile(50)}, {"p90", values.percentile(90)},
            {"p99", values.percentile(99)}, {"p999", values.percentile(99.9)},
            {"max", values.max()}};
}

/// Metrics of the type itself, by name: a value, or a list of labels and values.
void add_samples(json& stats, const runtime::metrics& from) {
    for (const runtime::metric_sample& each : from.samples) {
        const std::string name(each.of->name);
        if (each.labels.empty()) {
            stats[name] = sample_json(each);
            continue;
        }
        json labels = json::object();
        for (std::size_t i = 0; i < each.labels.size(); ++i)
            labels[std::string(each.of->labels[i])] = each.labels[i];
        stats[name].push_back({{"labels", std::move(labels)}, {"value", sample_json(each)}});
    }
}

std::string_view kind_name(runtime::option_kind kind) {
    switch (kind) {
        case runtime::option_kind::flag: return "flag";
        case runtime::option_kind::integer: return "integer";
        case runtime::option_kind::size: return "size";
        case runtime::option_kind::duration: return "duration";
        case runtime::option_kind::text: return "text";
        case runtime::option_kind::choice: return "choice";
        case runtime::option_kind::list: return "list";
    }
    return "unknown";
}

json uptime_json(const running_state& running, time_point now) {
    const auto uptime = uptime_of(running, now);
    return uptime ? json(*uptime) : json();
}

json removed_json(const managed_runtime& gone) {
    json shown = {{"name", gone.name()}};
    if (!gone.running.lost().empty()) shown["lost"] = gone.running.lost();
    return shown;
}

}  // namespace

std::uint64_t connections_of(const managed_runtime& which) {
    std::uint64_t sum = which.running.vitals().counted.connections_now.value();
    for (const replaced_instance& each : which.replaced) sum += each.connections;
    return sum;
}

std::optional<double> uptime_of(const running_state& running, time_point now) {
    if (!running.has_instance() || running.status() == runtime_status::starting)
        return std::nullopt;
    return std::chrono::duration<double>(now - running.started_at()).count();
}

std::string_view reason_of(const managed_runtime& which) {
    const running_state& running = which.running;
    if (is_degraded(running)) return running.vitals().fault;
    if (running.status() == runtime_status::failed) return running.reason();
    return {};
}

std::string_view detail_of(const managed_runtime& which) {
    const running_state& running = which.running;
    return running.has_instance() ? running.vitals().detail : running.ending();
}

json show_runtime(const managed_runtime& which, time_point now) {
    const runtime_record& record = which.desired.record;
    const running_state& running = which.running;
    json shown = {{"id", record.id},
                  {"name", record.name},
                  {"type", record.type},
                  {"status", to_string(running.status())},
                  {"port", nullptr},
                  {"address", nullptr},
                  {"uptime_s", uptime_json(running, now)},
                  {"connections", connections_of(which)},
                  {"handshakes", running.vitals().counted.handshakes_now.value()},
                  {"owner", record.owner},
                  {"group", record.group},
                  {"on_parent_stop", to_string(record.policy)},
                  {"created", format_time(record.created)},
                  {"loop", nullptr},
                  {"options", mask_secrets(which.desired.type, record.options)}};
    if (!record.stack.empty()) shown["stack"] = record.stack;
    if (running.status() == runtime_status::failed || is_degraded(running))
        shown["reason"] = reason_of(which);
    if (!running.lost().empty()) shown["lost"] = running.lost();
    if (!detail_of(which).empty()) shown["detail"] = detail_of(which);
    if (running.has_instance()) shown["loop"] = running.where()->index();
    const endpoint& local = running.vitals().local;
    if (local.family() != AF_UNSPEC) {
        shown["address"] = local.to_string();
        if (local.port() != 0) shown["port"] = local.port();
    } else if (record.options.contains("port")) {
        shown["port"] = record.options.at("port");
    }
    return shown;
}

json show_stats(const managed_runtime& which, time_point now) {
    const runtime::metrics& counted = which.running.vitals().counted;
    json stats = {{"name", which.name()},
                  {"type", which.desired.record.type},
                  {"status", to_string(which.running.status())},
                  {"uptime_s", uptime_json(which.running, now)},
                  {"connections", connections_of(which)},
                  {"connections_total", counted.connections_total.value()},
                  {"connections_refused", counted.connections_refused.value()},
                  {"handshakes", counted.handshakes_now.value()},
                  {"messages_in", counted.messages_in.value()},
                  {"messages_out", counted.messages_out.value()},
                  {"bytes_in", counted.bytes_in.value()},
                  {"bytes_out", counted.bytes_out.value()},
                  {"errors", counted.errors.value()},
                  {"dropped", counted.dropped.value()},
                  {"latency", nullptr}};
    add_samples(stats, counted);
    if (counted.latency) stats["latency"] = latency_json(*counted.latency);
    return stats;
}

json show_edit(const edit_plan& plan) {
    json shown = {{"effect", to_string(plan.effect)}};
    if (plan.effect != edit_effect::restarted) return shown;
    json names = json::array();
    for (const std::string_view name : plan.restart_options) names.push_back(option_key(name));
    shown["restart"] = {{"options", std::move(names)},
                        {"drain_s", std::chrono::duration<double>(plan.drain).count()},
                        {"clients", to_string(plan.clients)}};
    return shown;
}

json show_removal(const managed_runtime& gone) {
    json shown = removed_json(gone);
    for (const runtime_ref& each : gone.removed_with_it)
        shown["owned"].push_back(removed_json(*each));
    return shown;
}

json show_type(const runtime::type& type) {
    json options = json::array();
    for (const runtime::option& option : type.options) {
        json shown = {{"name", option_key(option.name)},
                      {"kind", kind_name(option.kind)},
                      {"default", nullptr},
                      {"help", option.help},
                      {"live", option.live}};
        if (!option.default_value.empty()) shown["default"] = option.default_value;
        if (!option.choices.empty()) shown["choices"] = option.choices;
        options.push_back(std::move(shown));
    }
    return {{"name", type.name}, {"summary", type.summary}, {"options", std::move(options)}};
}

}  // namespace eddy::daemon
