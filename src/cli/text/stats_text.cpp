// Statistics of a runtime as lines of text.
#include "cli/text/stats_text.hpp"

#include "cli/program.hpp"
#include "cli/request.hpp"
#include "cli/text/table.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::cli {
namespace {

/// Least width of the names' column, which is that of the longest one. A name with labels moves its
/// own value to the right.
constexpr std::size_t least_name_width = 21;

/// "p50 1.2 ms, p99 3.4 ms, p99.9 3.4 ms, max 3.5 ms", or "1.2 ms (one sample)".
std::string distribution_text(std::string_view key, const json& value) {
    const double count = number_of(value, "count");
    if (count <= 0) return "";
    const bool is_time = value.contains("p50_us");
    const auto shown = [&](const std::string& name) {
        if (is_time) return format_time(number_of(value, name + "_us"));
        const double number = number_of(value, name);
        return key.find("bytes") == std::string_view::npos ? format_count(number)
                                                           : format_bytes(number);
    };
    if (count == 1) return shown("max") + " (one sample)";
    return fmt::format("p50 {}, p99 {}, p99.9 {}, max {}", shown("p50"), shown("p99"),
                       shown("p999"), shown("max"));
}

/// A value of `eddy stats`; empty for a distribution of nothing.
std::string stats_value(std::string_view key, const json& value) {
    if (value.is_object()) {
        return distribution_text(key, value);
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

/// Samples of one label, such as those of a proxy's backends: a row for each of its values.
class label_table {
public:
    explicit label_table(std::string label) : label_(std::move(label)) {}

    const std::string& label() const noexcept { return label_; }
    std::size_t metrics() const noexcept { return columns_.size(); }

    void add(std::string_view key, const json& samples) {
        column made;
        made.title = key;
        if (made.title.starts_with(label_ + "_")) made.title.erase(0, label_.size() + 1);
        const auto has_title = [this](const std::string& title) {
            return std::any_of(columns_.begin(), columns_.end(),
                               [&](const column& each) { return each.title == title; });
        };
        if (made.title.ends_with("_total") &&
            !has_title(made.title.substr(0, made.title.size() - 6)))
            made.title.resize(made.title.size() - 6);
        std::replace(made.title.begin(), made.title.end(), '_', ' ');
        if (made.title.ends_with(" seconds")) made.title.replace(made.title.size() - 7, 7, "time");
        made.is_shown = made.title == "up";
        for (const json& each : samples) {
            const std::string row = text_of(each.value("labels", json::object()), label_.c_str());
            if (std::find(rows_.begin(), rows_.end(), row) == rows_.end()) rows_.push_back(row);
            const json& value = each.value("value", json());
            made.values[row] = value.is_object() && value.contains("p50_us")
                                   ? median(value)
                                   : stats_value(key, value);
            made.is_shown |= value.is_object() || value != 0;
        }
        columns_.insert(made.title == "up" ? columns_.begin() : columns_.end(), std::move(made));
    }

    /// Columns of zeros are left out, but for what says that all are down.
    std::string text() const {
        std::vector<std::string> header{label_};
        std::vector<std::vector<cell>> cells;
        for (const std::string& row : rows_) cells.push_back({{row}});
        for (const column& each : columns_) {
            if (!each.is_shown) continue;
            header.push_back(each.title);
            for (std::size_t i = 0; i < rows_.size(); ++i) {
                const auto found = each.values.find(rows_[i]);
                cells[i].push_back({found == each.values.end() ? "" : found->second});
            }
        }
        table made(std::move(header));
        for (std::vector<cell>& row : cells) made.add(std::move(row));
        return "\n" + made.to_string(false);
    }

private:
    struct column {
        std::string title;
        std::map<std::string, std::string> values;
        bool is_shown = false;
    };

    static std::string median(const json& times) {
        if (number_of(times, "count") <= 0) return "";
        return format_time(number_of(times, "p50_us"));
    }

    std::string label_;
    std::vector<std::string> rows_;
    std::vector<column> columns_;
};

bool is_distribution_of_time(const json& value) {
    return value.is_object() && value.contains("p50_us");
}

/// True for times, labelled ones included.
bool is_time(const json& value) {
    if (!value.is_array()) return is_distribution_of_time(value);
    return std::any_of(value.begin(), value.end(), [](const json& each) {
        return each.is_object() && is_distribution_of_time(each.value("value", json()));
    });
}

/// The one label of all samples; empty where they have others, or several.
std::string only_label(const json& samples) {
    std::string label;
    for (const json& each : samples) {
        const json labels = each.is_object() ? each.value("labels", json()) : json();
        if (!labels.is_object() || labels.size() != 1) return "";
        const std::string its = labels.begin().key();
        if (!label.empty() && its != label) return "";
        label = its;
    }
    return label;
}

/// A label with fewer metrics has lines instead of a table.
constexpr std::size_t least_metrics_of_a_table = 3;

/// The tables of all labels that have one.
std::vector<label_table> tables_of(const json& stats) {
    std::vector<label_table> all;
    for (const auto& [key, value] : stats.items()) {
        if (!value.is_array()) continue;
        const std::string label = only_label(value);
        if (label.empty()) continue;
        auto at = std::find_if(all.begin(), all.end(),
                               [&](const label_table& each) { return each.label() == label; });
        if (at == all.end()) at = all.insert(all.end(), label_table(label));
        at->add(key, value);
    }
    std::erase_if(
        all, [](const label_table& each) { return each.metrics() < least_metrics_of_a_table; });
    return all;
}

}  // namespace

std::string stats_text(const json& stats) {
    std::vector<std::pair<std::string, std::string>> lines;
    const auto line = [&](std::string name, std::string value) {
        lines.emplace_back(std::move(name), std::move(value));
    };
    const std::vector<label_table> tables = tables_of(stats);
    const auto has_table = [&tables](const std::string& label) {
        return std::any_of(tables.begin(), tables.end(),
                           [&](const label_table& each) { return each.label() == label; });
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
        // The values name their own units.
        if (is_time(value) && name.ends_with(" seconds")) name.replace(name.size() - 7, 7, "time");
        if (key == "uptime_s")
            line("uptime", format_age(number_of(stats, key)));
        else if (key == "maxmemory_bytes" && value == 0)
            line("maxmemory", "no limit");
        else if (value.is_array() && has_table(only_label(value)))
            continue;
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
    for (const label_table& each : tables) text += each.text();
    return text;
}

}  // namespace eddy::cli
