// Report of round trips over shared memory.
#include "cli/bench/shm/shm_report.hpp"

#include <eddy/base/histogram.hpp>

#include "cli/bench/report.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <vector>

namespace eddy::cli::bench {
namespace {

constexpr std::array<double, 8> percents = {1, 10, 50, 99, 99.9, 99.99, 99.999, 99.9999};

double microseconds(std::uint64_t ns) { return static_cast<double>(ns) / 1e3; }

std::string_view title_of(shm_measurement what) {
    switch (what) {
        case shm_measurement::rounds: return "round trips";
        case shm_measurement::connects: return "connecting and closing";
        case shm_measurement::kills: return "SIGKILL of the peer to the end of the stream";
    }
    return {};
}

std::string rounds_line(std::string_view what, std::uint64_t count, const shm_bench_options& wanted,
                        double seconds) {
    return fmt::format("{:<15}: {:>10} reps, pause between reps: {}ns... done in {:.0f}ms\n", what,
                       count, wanted.pause_ns, seconds * 1e3);
}

nlohmann::ordered_json json_of(const shm_report& of) {
    nlohmann::ordered_json made = nlohmann::ordered_json::object();
    made["over"] = to_string(of.wanted.over);
    made["messages"] = of.result.messages;
    made["seconds"] = of.result.test_seconds;
    made["client_cpu_seconds"] = of.result.client_cpu;
    made["cache_line_ns"] = {of.result.line_ns_before, of.result.line_ns_after};
    if (of.wanted.message_size > 0) {
        made["message_size"] = of.wanted.message_size;
        made["messages_per_second"] =
            static_cast<double>(of.result.messages) / of.result.test_seconds;
        return made;
    }
    if (of.wanted.measured == shm_measurement::rounds) made["reply_size"] = of.wanted.reply_size;
    made["measured"] = title_of(of.wanted.measured);
    made["pause_ns"] = of.wanted.pause_ns;
    if (of.result.latencies.empty()) return made;
    nlohmann::ordered_json latencies = nlohmann::ordered_json::object();
    for (const double percent : percents)
        latencies[fmt::format("p{}", percent)] = microseconds(of.result.percentile(percent));
    latencies["max"] = microseconds(of.result.latencies.back());
    made["latency_us"] = std::move(latencies);
    return made;
}

}  // namespace

std::string shm_report::text() const {
    std::string out = fmt::format("Over {}", to_string(wanted.over));
    auto to = std::back_inserter(out);
    if (result.line_ns_before > 0)
        fmt::format_to(to, "; a cache line goes to and fro in {} ns before, {} ns after",
                       result.line_ns_before, result.line_ns_after);
    out += '\n';
    if (wanted.message_size > 0) {
        const double rate = static_cast<double>(result.messages) / result.test_seconds;
        fmt::format_to(to, "{:.2f} M messages of {} bytes a second, {:.2f} GB/s\n", rate / 1e6,
                       wanted.message_size, rate * static_cast<double>(wanted.message_size) / 1e9);
        return out;
    }
    if (wanted.measured != shm_measurement::rounds)
        fmt::format_to(to, "{}\n", title_of(wanted.measured));
    out += rounds_line("Warming up", wanted.warmup, wanted, result.warmup_seconds);
    out += rounds_line("Running test", wanted.reps, wanted, result.test_seconds);
    const std::uint64_t count = result.latencies.size();
    for (const double percent : percents) {
        if (count == 0) break;
        // As many round trips took longer.
        const auto left = static_cast<std::uint64_t>(
            std::llround(static_cast<double>(count) * (100 - percent) / 100));
        fmt::format_to(to, "{:<13} ({:>7}) : {:>8.2f} (us)\n", fmt::format("{}%", percent), left,
                       microseconds(result.percentile(percent)));
    }
    return out;
}

std::string to_json(std::span<const shm_report> reports) {
    if (reports.size() == 1) return json_of(reports.front()).dump(2) + "\n";
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const shm_report& each : reports) all.push_back(json_of(each));
    return all.dump(2) + "\n";
}

std::string dump(const shm_report& of) {
    std::string out;
    for (const std::uint32_t each : of.result.latencies)
        fmt::format_to(std::back_inserter(out), "{:.3f}\n", microseconds(each));
    return out;
}

std::string figure(std::span<const shm_report> reports) {
    std::vector<histogram> counted;
    counted.reserve(reports.size());
    std::vector<figure_line> lines;
    for (const shm_report& each : reports) {
        if (each.result.latencies.empty()) continue;
        histogram& its = counted.emplace_back();
        for (const std::uint32_t one : each.result.latencies) its.record(one);
        lines.push_back({&its, std::string(to_string(each.wanted.over))});
    }
    if (lines.empty()) give_up("there are no latencies to draw");
    const shm_bench_options& wanted = reports.front().wanted;
    if (wanted.measured != shm_measurement::rounds)
        return latency_figure(lines, {"Connections between two processes, by percentile",
                                      std::string(title_of(wanted.measured)), "connections"});
    return latency_figure(
        lines, {"Round trips between two processes, by percentile",
                fmt::format("4 bytes there, {} bytes back", wanted.reply_size), "round trips"});
}

}  // namespace eddy::cli::bench
