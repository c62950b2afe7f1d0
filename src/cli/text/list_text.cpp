// Table of runtimes: choice of columns, ages.
#include "cli/text/list_text.hpp"

#include "cli/request.hpp"
#include "cli/text/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <utility>
#include <vector>

namespace eddy::cli {
namespace {

/// A column of the table. Those of `rank` 0 are always there; of the others the highest rank is
/// left out first.
struct column {
    std::string_view header;
    int rank;
    bool only_wide = false;
    bool only_if_set = false;  ///< left out, but for the wide form, where no runtime has a value
};

enum which : std::size_t {
    col_id,
    col_name,
    col_type,
    col_port,
    col_status,
    col_uptime,
    col_connections,
    col_owner,
    col_group,
    col_created,
    col_reason,
    col_count
};

constexpr std::array<column, col_count> columns = {{
    {"ID", 9, true},
    {"NAME", 0},
    {"TYPE", 3},
    {"PORT", 1},
    {"STATUS", 0},
    {"UPTIME", 5},
    {"CONNECTIONS", 2},
    {"OWNER", 7, false, true},
    {"GROUP", 6, false, true},
    {"CREATED", 8},
    {"REASON", 9, true, true},
}};

/// The least that a shortened name keeps.
constexpr std::size_t shortest_name = 8;

constexpr std::string_view ellipsis = "…";

tint tint_of_status(std::string_view status) {
    if (status == "running") return tint::green;
    if (status == "failed") return tint::red;
    if (status == "starting" || status == "stopping") return tint::yellow;
    return tint::faint;
}

std::vector<cell> row_of(const json& each, const list_style& style) {
    std::vector<cell> row(col_count);
    for (auto [at, name] :
         {std::pair(col_id, "id"), std::pair(col_name, "name"), std::pair(col_type, "type"),
          std::pair(col_port, "port"), std::pair(col_status, "status"),
          std::pair(col_connections, "connections"), std::pair(col_owner, "owner"),
          std::pair(col_group, "group"), std::pair(col_created, "created"),
          std::pair(col_reason, "reason")})
        row[at].text = text_of(each, name);
    // They hold connections' places.
    if (const double handshakes = number_of(each, "handshakes"); handshakes > 0)
        row[col_connections].text += fmt::format(" ({} in handshake)", handshakes);
    if (!style.is_wide) row[col_created].text = age_text(row[col_created].text, style.now);
    if (!text_of(each, "uptime_s").empty())
        row[col_uptime].text = format_age(number_of(each, "uptime_s"));
    row[col_id].colour = tint::faint;
    row[col_name].colour = tint::bold;
    row[col_status].colour = tint_of_status(row[col_status].text);
    if (row[col_status].text == "running" && !row[col_reason].text.empty())
        row[col_status].colour = tint::yellow;
    return row;
}

table table_of(const std::vector<std::vector<cell>>& rows, const std::vector<std::size_t>& chosen,
               std::size_t longest_name) {
    std::vector<std::string> header;
    for (const std::size_t at : chosen) header.emplace_back(columns[at].header);
    table made(std::move(header));
    for (const auto& row : rows) {
        std::vector<cell> shown;
        for (const std::size_t at : chosen) {
            shown.push_back(row[at]);
            std::string& text = shown.back().text;
            if (at == col_name && text.size() > longest_name)
                text = text.substr(0, longest_name - 1).append(ellipsis);
            if (text.empty()) text = "-";
        }
        made.add(std::move(shown));
    }
    return made;
}

}  // namespace

std::string list_text(const json& list, const list_style& style) {
    std::vector<std::vector<cell>> rows;
    for (const json& each : list) rows.push_back(row_of(each, style));

    std::vector<std::size_t> chosen;
    for (std::size_t at = 0; at < col_count; ++at) {
        const bool is_set = std::any_of(rows.begin(), rows.end(),
                                        [&](const auto& row) { return !row[at].text.empty(); });
        if (columns[at].only_wide && !style.is_wide) continue;
        if (columns[at].only_if_set && !is_set && (!style.is_wide || at == col_reason)) continue;
        chosen.push_back(at);
    }
    std::size_t longest_name = std::string::npos;
    table shown = table_of(rows, chosen, longest_name);
    if (style.is_wide || style.width == 0) return shown.to_string(style.colours);
    while (shown.width() > style.width) {
        const auto least = std::max_element(
            chosen.begin(), chosen.end(),
            [](std::size_t a, std::size_t b) { return columns[a].rank < columns[b].rank; });
        if (columns[*least].rank > 0) {
            chosen.erase(least);
            shown = table_of(rows, chosen, longest_name);
            continue;
        }
        std::size_t name_width = 0;
        for (const auto& row : rows) name_width = std::max(name_width, row[col_name].text.size());
        const std::size_t over = shown.width() - style.width;
        longest_name = std::max(name_width - std::min(over, name_width), shortest_name);
        shown = table_of(rows, chosen, longest_name);
        break;
    }
    return shown.to_string(style.colours);
}

std::string age_text(const std::string& created, std::chrono::system_clock::time_point now) {
    std::tm parts{};
    const char* const end = strptime(created.c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts);
    if (!end || *end != '\0') return created;
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(
                             now - std::chrono::system_clock::from_time_t(timegm(&parts)))
                             .count();
    struct unit {
        long long seconds;
        std::string_view name;
    };
    static constexpr unit units[] = {{365LL * 86'400, "year"}, {30LL * 86'400, "month"},
                                     {86'400, "day"},          {3600, "hour"},
                                     {60, "minute"},           {1, "second"}};
    for (const unit& each : units) {
        const long long count = seconds / each.seconds;
        if (count > 0) return fmt::format("{} {}{} ago", count, each.name, count == 1 ? "" : "s");
    }
    return "just now";
}

}  // namespace eddy::cli
