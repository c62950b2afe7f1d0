// Statistics of a runtime as lines of text.
#include "cli/text/stats_text.hpp"

#include "cli/program.hpp"
#include "cli/request.hpp"
#include "cli/text/table.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::cli {
namespace {

/// Least width of the names' column, which is that of the longest one. A name with labels moves its
/// own value to the right.
constexpr std::size_t least_name_width = 21;

/// A value of `eddy stats`; empty for a distribution of nothing.
std::string stats_value(std::string_view key, const json& value) {
    if (value.is_object()) {
        if (number_of(value, "count") <= 0) return "";
        if (value.contains("p50_us"))
            return fmt::format("p50 {:.1f} µs, p99 {:.1f} µs, p99.9 {:.1f} µs, max {:.1f} µs",
                               number_of(value, "p50_us"), number_of(value, "p99_us"),
                               number_of(value, "p999_us"), number_of(value, "max_us"));
        return fmt::format(
            "p50 {}, p99 {}, p99.9 {}, max {}", format_bytes(number_of(value, "p50")),
            format_bytes(number_of(value, "p99")), format_bytes(number_of(value, "p999")),
            format_bytes(number_of(value, "max")));
    }
    if (!value.is_number()) return printable(value.is_string() ? value.get<std::string>() : "");
    if (key.starts_with("bytes_") || key.ends_with("_bytes"))
        return format_bytes(value.get<double>());
    return format_count(value.get<double>());
}

/// "{code=200}"
std::string labels_text(const json& labels) {
    std::string text;
    for (const auto& [name, value] : labels.items())
        text += (text.empty() ? "" : ",") + name + "=" + text_of(labels, name);
    return printable("{" + text + "}");
}

}  // namespace

std::string stats_text(const json& stats) {
    std::vector<std::pair<std::string, std::string>> lines;
    const auto line = [&](std::string name, std::string value) {
        lines.emplace_back(std::move(name), std::move(value));
    };
    // Counters of every type come first, then the type's own.
    static constexpr std::string_view common[] = {
        "uptime_s",   "connections", "connections_total", "connections_refused",
        "handshakes", "messages_in", "messages_out",      "bytes_in",
        "bytes_out",  "errors",      "dropped",           "latency"};
    std::vector<std::string> keys(std::begin(common), std::end(common));
    for (const auto& [key, ignored] : stats.items())
        if (key != "name" && key != "type" && key != "status" &&
            std::find(keys.begin(), keys.end(), key) == keys.end())
            keys.push_back(key);
    for (const std::string& key : keys) {
        if (!stats.contains(key) || stats.at(key).is_null()) continue;
        const json& value = stats.at(key);
        std::string name = printable(key);
        std::replace(name.begin(), name.end(), '_', ' ');
        if (key == "uptime_s")
            line("uptime", format_age(number_of(stats, key)));
        else if (key == "maxmemory_bytes" && value == 0)
            line("maxmemory", "no limit");
        else if (value.is_array())
            for (const json& each : value) {
                if (!each.is_object()) continue;
                const std::string shown = stats_value(key, each.value("value", json()));
                if (!shown.empty())
                    line(fmt::format("{} {}", name, labels_text(each.value("labels", json()))),
                         shown);
            }
        else if (const std::string shown = stats_value(key, value); !shown.empty())
            line(std::move(name), shown);
    }
    std::size_t width = least_name_width;
    for (const auto& [name, value] : lines)
        if (!name.contains('{')) width = std::max(width, name.size());
    std::string text;
    for (const auto& [name, value] : lines)
        fmt::format_to(std::back_inserter(text), "  {:<{}} {}\n", name, width, value);
    return text;
}

}  // namespace eddy::cli
