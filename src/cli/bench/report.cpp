// Report of a load.
#include "cli/bench/report.hpp"

#include <eddy/base/assert.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>

namespace eddy::cli::bench {
namespace {

struct point {
    const char* name;
    double percent;
};
constexpr std::array<point, 7> points = {{{"p50", 50},
                                          {"p75", 75},
                                          {"p90", 90},
                                          {"p99", 99},
                                          {"p99.9", 99.9},
                                          {"p99.99", 99.99},
                                          {"max", 100}}};

double microseconds(std::uint64_t ns) { return static_cast<double>(ns) / 1e3; }

std::string describe_faults(const tally& of) {
    std::string text;
    for (std::size_t i = 0; i < of.faults.size(); ++i)
        if (of.faults[i] > 0)
            text += fmt::format("{}{} {}", text.empty() ? "" : ", ", fault_names[i], of.faults[i]);
    return text.empty() ? "none" : fmt::format("{}; the first: {}", text, of.first_fault);
}

std::string escaped(std::string_view text) {
    std::string made;
    for (const char c : text) {
        if (c == '&')
            made += "&amp;";
        else if (c == '<')
            made += "&lt;";
        else if (c == '>')
            made += "&gt;";
        else if (static_cast<unsigned char>(c) >= 0x20)
            made += c;
    }
    return made;
}

/// "250 µs", "1.5 ms", "2 s".
std::string time_text(double us) {
    if (us >= 1e6) return fmt::format("{:.3g} s", us / 1e6);
    if (us >= 1e3) return fmt::format("{:.3g} ms", us / 1e3);
    return fmt::format("{:.3g} µs", us);
}

}  // namespace

std::string report::verdict() const {
    const tally& all = result.counts;
    if (all.errors() > 0) return fmt::format("{} errors", all.errors());
    if (all.replies == 0) return "no replies";
    if (is_void()) return "void: the generator was the limit";
    if (is_limited())
        return "the generator was above 90 % of its CPU and may have been the limit: use --threads";
    if (all.unsent > 0)
        return fmt::format("the server did not keep up: {} planned requests were not sent",
                           all.unsent);
    return "ok";
}

std::string report::text() const {
    const tally& all = result.counts;
    std::string out;
    const auto line = [&](std::string_view name, const std::string& value) {
        fmt::format_to(std::back_inserter(out), "  {:<12} {}\n", name, value);
    };
    const std::string_view unit = test == "ws" ? "messages" : "requests";
    fmt::format_to(
        std::back_inserter(out), "{}\n{} connection{}, {} thread{}, pipeline {}, {}\n\n", url,
        wanted.connections, wanted.connections == 1 ? "" : "s", wanted.threads,
        wanted.threads == 1 ? "" : "s", wanted.pipeline,
        wanted.rate > 0 ? fmt::format("open loop of {:.0f} a second", wanted.rate) : "closed loop");
    line("rate",
         fmt::format("{:.0f} {}/s ({} in {:.2f} s)", rate(), unit, all.replies, result.seconds));
    line("received",
         fmt::format("{:.1f} MB/s", static_cast<double>(all.bytes) / result.seconds / 1e6));
    std::string latencies;
    for (const point& each : points)
        latencies += fmt::format("{}{} {:.0f}", latencies.empty() ? "" : "  ", each.name,
                                 microseconds(all.latency.percentile(each.percent)));
    line("latency µs", latencies);
    if (test == "http") {
        std::string statuses;
        for (std::size_t i = 1; i < all.statuses.size(); ++i)
            if (all.statuses[i] > 0)
                statuses +=
                    fmt::format("{}{}xx {}", statuses.empty() ? "" : ", ", i, all.statuses[i]);
        line("status", statuses);
    }
    line("errors", describe_faults(all));
    if (all.reconnects > 0) line("reconnects", fmt::format("{}", all.reconnects));
    line("own CPU", fmt::format("{:.2f} of {} core{}", result.generator_cpu, wanted.threads,
                                wanted.threads == 1 ? "" : "s"));
    if (wanted.server_pid != 0 && all.replies > 0)
        line("server CPU",
             fmt::format("{:.2f} cores, {:.0f} ns a {}", result.server_cpu,
                         result.server_cpu * 1e9 / rate(), unit.substr(0, unit.size() - 1)));
    line("verdict", verdict());
    return out;
}

std::string report::json() const {
    const tally& all = result.counts;
    nlohmann::json latency = {{"mean", all.latency.mean() / 1e3}};
    for (const point& each : points)
        latency[each.name] = microseconds(all.latency.percentile(each.percent));
    nlohmann::json faults = nlohmann::json::object();
    for (std::size_t i = 0; i < all.faults.size(); ++i)
        faults[std::string(fault_names[i])] = all.faults[i];
    nlohmann::json statuses = nlohmann::json::object();
    for (std::size_t i = 1; i < all.statuses.size(); ++i)
        statuses[fmt::format("{}xx", i)] = all.statuses[i];
    nlohmann::json made = {
        {"test", test},
        {"url", url},
        {"loop", wanted.rate > 0 ? "open" : "closed"},
        {"planned_rate", wanted.rate},
        {"connections", wanted.connections},
        {"threads", wanted.threads},
        {"pipeline", wanted.pipeline},
        {"ops_per_second", rate()},
        {"requests", all.replies},
        {"unsent", all.unsent},
        {"seconds", result.seconds},
        {"received_bytes", all.bytes},
        {"latency_us", std::move(latency)},
        {"p50_us", microseconds(all.latency.percentile(50))},
        {"p99_us", microseconds(all.latency.percentile(99))},
        {"statuses", std::move(statuses)},
        {"errors", all.errors()},
        {"errors_by_kind", std::move(faults)},
        {"first_error", all.first_fault},
        {"reconnects", all.reconnects},
        {"generator_cpu", result.generator_cpu},
        {"server_cpu", result.server_cpu},
        {"server_ns_per_op", all.replies > 0 ? result.server_cpu * 1e9 / rate() : 0.0},
        {"limited", is_limited()},
        {"void", is_void()},
        {"verified", all.faults[static_cast<std::size_t>(fault::content)] == 0},
        {"verdict", verdict()}};
    // The first error may quote a body that is no UTF-8.
    return made.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string report::figure() const {
    return latency_figure(
        result.counts.latency,
        {"Latency by percentile: " + url,
         fmt::format("{} connections, pipeline {}, {}: {:.0f} a second", wanted.connections,
                     wanted.pipeline, wanted.rate > 0 ? "open loop" : "closed loop", rate()),
         "replies"});
}

std::string latency_figure(const histogram& of, const figure_words& words) {
    const figure_line line{&of};
    return latency_figure(std::span(&line, 1), words);
}

std::string latency_figure(std::span<const figure_line> lines, const figure_words& words) {
    constexpr std::array<const char*, max_figure_lines> colours = {"#0f766e", "#b45309", "#1d4ed8",
                                                                   "#be123c"};
    EDDY_ASSERT(!lines.empty() && lines.size() <= max_figure_lines);
    constexpr double left = 80;
    constexpr double top = 70;
    constexpr double width = 680;
    constexpr double height = 300;
    // The axis of percentiles: -log10 of the share above.
    constexpr double decades = 5;
    double least = microseconds(lines[0].of->min());
    double most = 0;
    for (const figure_line& line : lines) {
        least = std::min(least, microseconds(line.of->min()));
        most = std::max(most, microseconds(line.of->max()));
    }
    const double low = std::floor(std::log10(std::max(least, 0.01)));
    const double high = std::max(low + 1, std::ceil(std::log10(std::max(most, 0.01))));
    const auto x = [&](double percent) {
        const double above = std::max(1 - percent / 100, 1e-5);
        return left + width * -std::log10(above) / decades;
    };
    const auto y = [&](double us) {
        return top +
               height * (1 - (std::log10(std::max(us, std::pow(10, low))) - low) / (high - low));
    };
    std::string out = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"800\" height=\"430\" viewBox=\"0 0 800 "
        "430\" font-family=\"system-ui, 'DejaVu Sans', sans-serif\" font-size=\"12\">\n"
        "<rect width=\"800\" height=\"430\" fill=\"#ffffff\"/>\n"
        "<text x=\"20\" y=\"28\" font-size=\"17\" font-weight=\"600\" fill=\"#0f172a\">{}"
        "</text>\n"
        "<text x=\"20\" y=\"48\" fill=\"#64748b\">{}</text>\n",
        escaped(words.title), escaped(words.subtitle));
    auto to = std::back_inserter(out);
    for (double decade = low; decade <= high; ++decade) {
        const double us = std::pow(10, decade);
        fmt::format_to(
            to,
            "<path d=\"M{} {:.1f}H{}\" stroke=\"#e2e8f0\"/>\n<text x=\"{}\" y=\"{:.1f}\" "
            "text-anchor=\"end\" fill=\"#64748b\">{}</text>\n",
            left, y(us), left + width, left - 8, y(us) + 4, time_text(us));
    }
    for (const double percent : {0.0, 90.0, 99.0, 99.9, 99.99, 99.999})
        fmt::format_to(to,
                       "<path d=\"M{0:.1f} {1}V{2}\" stroke=\"#e2e8f0\"/>\n<text x=\"{0:.1f}\" "
                       "y=\"{3}\" text-anchor=\"middle\" fill=\"#64748b\">{4} %</text>\n",
                       x(percent), top, top + height, top + height + 18, percent);
    for (std::size_t i = 0; i < lines.size(); ++i) {
        std::string path;
        for (int step = 0; step <= 250; ++step) {
            const double percent = 100 * (1 - std::pow(10, -decades * step / 250));
            fmt::format_to(std::back_inserter(path), "{}{:.1f} {:.1f}", path.empty() ? "M" : "L",
                           x(percent), y(microseconds(lines[i].of->percentile(percent))));
        }
        fmt::format_to(to, "<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>\n",
                       path, colours[i]);
        if (lines[i].name.empty()) continue;
        fmt::format_to(to, "<text x=\"{}\" y=\"{}\" font-weight=\"600\" fill=\"{}\">{}</text>\n",
                       left + 10, top + 16 + 18 * static_cast<double>(i), colours[i],
                       escaped(lines[i].name));
    }
    fmt::format_to(to,
                   "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" fill=\"#64748b\">percentile of "
                   "{} {}</text>\n</svg>\n",
                   left + width / 2, top + height + 40, lines[0].of->count(),
                   escaped(words.counted));
    return out;
}

void write_report(const std::string& text, const std::string& path) {
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file << text;
    file.close();
    if (!file) give_up(fmt::format("cannot write {}: {}", path, std::strerror(errno)));
}

}  // namespace eddy::cli::bench
