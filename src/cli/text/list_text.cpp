// Table of runtimes: choice of columns, ages.
#include "cli/text/list_text.hpp"

#include "cli/request.hpp"
#include "cli/text/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
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
    col_address,
    col_status,
    col_uptime,
    col_connections,
    col_owner,
    col_group,
    col_created,
    col_detail,
    col_reason,
    col_count
};

constexpr std::array<column, col_count> columns = {{
    {"ID", 9, true},
    {"NAME", 0},
    {"TYPE", 3},
    {"PORT", 1},
    {"ADDRESS", 9, true},
    {"STATUS", 0},
    {"UPTIME", 5},
    {"CONNECTIONS", 2},
    {"OWNER", 7, false, true},
    {"GROUP", 6, false, true},
    {"CREATED", 8},
    {"DETAIL", 8, false, true},
    {"REASON", 9, true, true},
}};

}  // namespace

tint tint_of_status(std::string_view status) {
    if (status == "running") return tint::green;
    if (status == "failed") return tint::red;
    if (status == "starting" || status == "stopping") return tint::yellow;
    return tint::faint;
}

namespace {

/// Where it serves, or would: an address, or the URIs of its options.
std::string address_of(const json& runtime) {
    if (std::string served = text_of(runtime, "address"); !served.empty()) return served;
    const json options = runtime.value("options", json::object());
    for (const char* const name : {"handoff", "listen"}) {
        if (!options.is_object() || !options.contains(name)) continue;
        const json& value = options.at(name);
        if (!value.is_array()) return text_of(options, name);
        std::string all;
        for (const json& each : value)
            if (each.is_string()) all += (all.empty() ? "" : ",") + each.get<std::string>();
        return all;
    }
    return {};
}

/// Fields of the columns, in their order; the address has one of its own.
constexpr std::array<std::string_view, col_count> fields_of_columns = {
    "id",          "name",  "type",  "port",    "address", "status", "uptime_s",
    "connections", "owner", "group", "created", "detail",  "reason"};

constexpr std::array<std::string_view, 12> brief_fields = {
    "name",  "type",  "port",    "status", "uptime_s", "connections",
    "owner", "group", "created", "detail", "reason",   "handshakes"};

/// The cells of `chosen` columns in a row.
class row_maker {
public:
    row_maker(const list_rows& list, const list_style& style) : list_(list), style_(style) {
        std::ranges::transform(fields_of_columns, at_.begin(),
                               [&list](std::string_view name) { return list.column(name); });
    }

    bool has_any(std::size_t column) const {
        for (std::size_t row = 0; row < list_.size(); ++row)
            if (!list_.at(row, at_[column]).empty()) return true;
        return false;
    }

    cell make(std::size_t row, std::size_t column) const {
        const std::string_view text = list_.at(row, at_[column]);
        switch (column) {
            case col_id: return {std::string(text), tint::faint};
            case col_name: return {std::string(text), tint::bold};
            case col_status: {
                const bool is_degraded =
                    text == "running" && !list_.at(row, at_[col_reason]).empty();
                return {std::string(text), is_degraded ? tint::yellow : tint_of_status(text)};
            }
            case col_uptime: return {text.empty() ? std::string() : format_age(number(text))};
            case col_created:
                return {style_.is_wide ? std::string(text) : age_text(text, style_.now)};
            case col_connections: {
                // They hold connections' places.
                const std::string_view handshakes = list_.at(row, handshakes_);
                if (handshakes.empty() || handshakes == "0") return {std::string(text)};
                return {fmt::format("{} ({} in handshake)", text, handshakes)};
            }
            default: return {std::string(text)};
        }
    }

private:
    static double number(std::string_view text) {
        double value = 0;
        std::from_chars(text.data(), text.data() + text.size(), value);
        return value;
    }

    const list_rows& list_;
    const list_style& style_;
    std::array<std::size_t, col_count> at_{};
    const std::size_t handshakes_ = list_.column("handshakes");
};

}  // namespace

std::span<const std::string_view> list_fields() noexcept { return brief_fields; }

std::string list_text(const json& list, const list_style& style) {
    std::vector<std::string_view> fields(fields_of_columns.begin(), fields_of_columns.end());
    fields.emplace_back("handshakes");
    json shown = list;
    for (json& each : shown) each["address"] = address_of(each);
    return list_text(list_rows::of(shown, fields), style);
}

std::string list_text(const list_rows& list, const list_style& style) {
    const row_maker maker(list, style);
    std::vector<std::size_t> chosen;
    std::vector<fitted_column> header;
    for (std::size_t at = 0; at < col_count; ++at) {
        if (columns[at].only_wide && !style.is_wide) continue;
        if (columns[at].only_if_set && (!style.is_wide || at == col_reason || at == col_detail) &&
            !maker.has_any(at))
            continue;
        chosen.push_back(at);
        header.push_back({columns[at].header, columns[at].rank, at == col_name});
    }
    std::vector<std::vector<cell>> shown(list.size());
    for (std::size_t row = 0; row < list.size(); ++row) {
        shown[row].reserve(chosen.size());
        for (const std::size_t at : chosen) shown[row].push_back(maker.make(row, at));
    }
    return fitted_table(std::move(header), std::move(shown), style.is_wide ? 0 : style.width,
                        style.colours);
}

namespace {

/// A number of digits alone; none for another text.
std::optional<int> digits(std::string_view text, std::size_t at, std::size_t count) noexcept {
    int value = 0;
    for (const char c : text.substr(at, count)) {
        if (c < '0' || c > '9') return std::nullopt;
        value = value * 10 + (c - '0');
    }
    return value;
}

/// The time of "2026-11-21T21:22:04Z"; strptime() takes ten times as long.
std::optional<std::chrono::sys_seconds> parse_time(std::string_view text) noexcept {
    constexpr std::string_view form = "0000-00-00T00:00:00Z";
    if (text.size() != form.size()) return std::nullopt;
    for (std::size_t at = 0; at < form.size(); ++at)
        if (form[at] != '0' && text[at] != form[at]) return std::nullopt;
    const auto year = digits(text, 0, 4), month = digits(text, 5, 2), day = digits(text, 8, 2);
    const auto hour = digits(text, 11, 2), minute = digits(text, 14, 2),
               second = digits(text, 17, 2);
    if (!year || !month || !day || !hour || !minute || !second) return std::nullopt;
    const std::chrono::year_month_day date(std::chrono::year(*year),
                                           std::chrono::month(static_cast<unsigned>(*month)),
                                           std::chrono::day(static_cast<unsigned>(*day)));
    if (!date.ok()) return std::nullopt;
    return std::chrono::sys_days(date) + std::chrono::hours(*hour) + std::chrono::minutes(*minute) +
           std::chrono::seconds(*second);
}

}  // namespace

std::string age_text(std::string_view created, std::chrono::system_clock::time_point now) {
    const auto time = parse_time(created);
    if (!time) return std::string(created);
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - *time).count();
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
