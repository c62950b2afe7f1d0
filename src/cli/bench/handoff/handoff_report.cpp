// Report of a load of handoffs.
#include "cli/bench/handoff/handoff_report.hpp"

#include "cli/bench/report.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <array>
#include <cmath>
#include <iterator>

namespace eddy::cli::bench {
namespace {

/// A start that is this much behind its plan, in one of a hundred, is the generator's fault.
constexpr std::uint64_t late_ns = 2'000'000;

struct percentile {
    const char* key;
    const char* name;
    double percent;
};
constexpr std::array<percentile, 4> percentiles = {
    {{"p50", "p50", 50}, {"p95", "p95", 95}, {"p99", "p99", 99}, {"p999", "p99.9", 99.9}}};

double milliseconds(std::uint64_t ns) { return static_cast<double>(ns) / 1e6; }

/// To the microsecond, as it is printed.
double rounded(std::uint64_t ns) { return std::round(static_cast<double>(ns) / 1e3) / 1e3; }

nlohmann::ordered_json latencies(const histogram& of) {
    nlohmann::ordered_json made = nlohmann::ordered_json::object();
    for (const percentile& each : percentiles)
        made[each.key] = rounded(of.percentile(each.percent));
    return made;
}

std::string describe_faults(const handoff_counts& of) {
    std::string text;
    const auto add = [&](std::string_view name, std::uint64_t count) {
        if (count > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, count);
    };
    for (std::size_t i = 0; i < of.faults.size(); ++i) add(handoff_fault_names[i], of.faults[i]);
    add("incomplete", of.incomplete);
    return text.empty() ? "none" : fmt::format("{}; the first: {}", text, of.first_fault.data());
}

const char* name_of(handoff::socket_kind kind) {
    switch (kind) {
        case handoff::socket_kind::stream: return "stream";
        case handoff::socket_kind::seqpacket: return "seqpacket";
        case handoff::socket_kind::automatic: break;
    }
    return "no";
}

double seconds(duration time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

bool handoff_report::is_limited() const {
    return result.generator_peak > busy_share * result.generator_cores ||
           result.counts.lateness.percentile(99) > late_ns;
}

std::string handoff_report::verdict() const {
    const handoff_counts& all = result.counts;
    if (all.failed() > 0) return fmt::format("{} of {} streams failed", all.failed(), all.started);
    if (!is_right())
        return fmt::format("{} streams were not started", wanted.connections - all.started);
    if (is_limited())
        return "the generator was above 90 % of its CPU, or late, and may have been the limit";
    return "ok";
}

std::string handoff_report::text() const {
    const handoff_counts& all = result.counts;
    std::string out =
        fmt::format("{}\n{} stream{} over {} s, {} process{}, {} clients, {} sockets\n\n",
                    wanted.socket, wanted.connections, wanted.connections == 1 ? "" : "s",
                    seconds(wanted.ramp_up), result.processes, result.processes == 1 ? "" : "es",
                    wanted.over_tcp ? "TCP" : "Unix", name_of(all.socket));
    auto to = std::back_inserter(out);
    const auto line = [&](std::string_view name, const std::string& value) {
        fmt::format_to(to, "  {:<12} {}\n", name, value);
    };
    line("streams", fmt::format("{} started, {} completed, {} failed, at most {} at once",
                                all.started, all.completed, all.failed(), result.peak_concurrent));
    line("received", fmt::format("{} bytes in {:.2f} s", all.bytes, result.seconds));
    std::string head = "            ";
    for (const percentile& each : percentiles) head += fmt::format(" {:>10}", each.name);
    fmt::format_to(to, "\n  ms{}        max\n", head.substr(2));
    const auto row = [&](std::string_view name, const histogram& of) {
        fmt::format_to(to, "  {:<12}", name);
        for (const percentile& each : percentiles)
            fmt::format_to(to, " {:>10.3f}", milliseconds(of.percentile(each.percent)));
        fmt::format_to(to, " {:>10.3f}\n", milliseconds(of.max()));
    };
    row("handoff", all.handoff);
    row("first byte", all.first_byte);
    row("stream", all.stream);
    if (all.drift.count() > 0) row("drift", all.drift);
    out += "\n";
    line("errors", describe_faults(all));
    line("own CPU",
         fmt::format("{:.2f} of {:.0f} core{}, {:.2f} in the busiest half second; starts "
                     "late by {:.3f} ms (p99)",
                     result.generator_cpu, result.generator_cores,
                     result.generator_cores > 1 ? "s" : "", result.generator_peak,
                     milliseconds(all.lateness.percentile(99))));
    if (wanted.server_pid != 0) line("server CPU", fmt::format("{:.2f} cores", result.server_cpu));
    line("verdict", verdict());
    return out;
}

std::string handoff_report::json() const {
    const handoff_counts& all = result.counts;
    nlohmann::ordered_json made;
    made["connections_started"] = all.started;
    made["connections_completed"] = all.completed;
    made["connections_failed"] = all.failed();
    made["bytes_received"] = all.bytes;
    nlohmann::ordered_json& errors = made["errors"];
    for (std::size_t i = 0; i < all.faults.size(); ++i)
        errors[std::string(handoff_fault_names[i])] = all.faults[i];
    made["handoff_latency_ms"] = latencies(all.handoff);
    made["ttfb_latency_ms"] = latencies(all.first_byte);
    made["stream_duration_ms"] = latencies(all.stream);
    made["incomplete_responses"] = all.incomplete;
    made["peak_concurrent"] = result.peak_concurrent;
    if (wanted.interval > duration::zero()) made["drift_ms"] = latencies(all.drift);
    made["first_error"] = std::string(all.first_fault.data());
    made["seconds"] = result.seconds;
    made["processes"] = result.processes;
    made["socket_type"] = name_of(all.socket);
    made["late_starts_ms"] = latencies(all.lateness);
    made["generator_cpu"] = result.generator_cpu;
    made["generator_cpu_peak"] = result.generator_peak;
    made["server_cpu"] = result.server_cpu;
    made["limited"] = is_limited();
    made["verdict"] = verdict();
    return made.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string handoff_report::figure() const {
    return latency_figure(result.counts.first_byte,
                          {"Time to the first byte by percentile: " + wanted.socket,
                           fmt::format("{} streams over {} s, {} at once", wanted.connections,
                                       seconds(wanted.ramp_up), result.peak_concurrent),
                           "streams"});
}

}  // namespace eddy::cli::bench
