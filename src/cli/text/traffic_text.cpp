// Table of traffic: counts, rates, orders, and what fits.
#include "cli/text/traffic_text.hpp"

#include "cli/request.hpp"
#include "cli/text/list_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

namespace eddy::cli {
namespace {

struct order {
    std::string_view name;
    /// The number to compare; null for a text.
    double (*number)(const traffic&);
};

constexpr order orders[] = {
    {"name", nullptr},
    {"type", nullptr},
    {"connections", [](const traffic& of) { return of.connections; }},
    {"requests", [](const traffic& of) { return of.messages_in; }},
    {"messages", [](const traffic& of) { return of.messages_in + of.messages_out; }},
    {"in", [](const traffic& of) { return of.bytes_in; }},
    {"out", [](const traffic& of) { return of.bytes_out; }},
    {"p50", [](const traffic& of) { return of.p50_us.value_or(-1); }},
    {"p99", [](const traffic& of) { return of.p99_us.value_or(-1); }},
    {"memory", [](const traffic& of) { return of.memory_bytes.value_or(-1); }},
    {"errors", [](const traffic& of) { return of.errors; }},
};

std::string count_text(double count, bool is_rate) {
    if (!is_rate) return format_count(count);
    if (count > 0 && count < 10) return fmt::format("{:.1f}", count);
    return format_count(std::floor(count + 0.5));
}

std::string time_text(const std::optional<double>& microseconds) {
    return microseconds ? format_time(*microseconds) : "";
}

std::vector<cell> row_of(const traffic& of, bool is_rate) {
    return {{of.name, tint::bold},
            {of.type},
            {of.status, tint_of_status(of.status)},
            {format_count(of.connections)},
            {count_text(of.messages_in, is_rate)},
            {count_text(of.messages_out, is_rate)},
            {format_bytes(of.bytes_in)},
            {format_bytes(of.bytes_out)},
            {time_text(of.p50_us)},
            {time_text(of.p99_us)},
            {of.memory_bytes ? format_bytes(*of.memory_bytes) : ""},
            {count_text(of.errors, is_rate), of.errors > 0 ? tint::red : tint::none}};
}

}  // namespace

traffic traffic_of(const json& stats) {
    traffic made;
    made.name = text_of(stats, "name");
    made.type = text_of(stats, "type");
    made.status = text_of(stats, "status");
    made.connections = number_of(stats, "connections");
    made.messages_in = number_of(stats, "messages_in");
    made.messages_out = number_of(stats, "messages_out");
    made.bytes_in = number_of(stats, "bytes_in");
    made.bytes_out = number_of(stats, "bytes_out");
    made.errors = number_of(stats, "errors");
    const json latency = stats.value("latency", json());
    if (latency.is_object() && number_of(latency, "count") > 0) {
        made.p50_us = number_of(latency, "p50_us");
        made.p99_us = number_of(latency, "p99_us");
    }
    // Bytes that a type says it holds.
    for (const char* const name : {"used_memory_bytes", "buffered_bytes", "queued_bytes"})
        if (stats.contains(name) && stats.at(name).is_number())
            made.memory_bytes = made.memory_bytes.value_or(0) + number_of(stats, name);
    return made;
}

std::vector<traffic> rates_between(const std::vector<traffic>& before,
                                   const std::vector<traffic>& now, double seconds) {
    std::vector<traffic> made;
    for (const traffic& each : now) {
        const auto found = std::ranges::find(before, each.name, &traffic::name);
        traffic from;
        if (found != before.end()) from = *found;
        traffic& rate = made.emplace_back(each);
        for (double traffic::* const member :
             {&traffic::messages_in, &traffic::messages_out, &traffic::bytes_in,
              &traffic::bytes_out, &traffic::errors}) {
            const double more = each.*member - from.*member;
            rate.*member = seconds > 0 ? (more < 0 ? each.*member : more) / seconds : 0;
        }
    }
    return made;
}

json rates_json(const std::vector<traffic>& rates) {
    json all = json::array();
    const auto or_null = [](const std::optional<double>& value) {
        return value ? json(*value) : json();
    };
    for (const traffic& each : rates)
        all.push_back({{"name", each.name},
                       {"type", each.type},
                       {"status", each.status},
                       {"connections", each.connections},
                       {"messages_in_per_s", each.messages_in},
                       {"messages_out_per_s", each.messages_out},
                       {"bytes_in_per_s", each.bytes_in},
                       {"bytes_out_per_s", each.bytes_out},
                       {"errors_per_s", each.errors},
                       {"p50_us", or_null(each.p50_us)},
                       {"p99_us", or_null(each.p99_us)},
                       {"memory_bytes", or_null(each.memory_bytes)}});
    return all;
}

std::vector<std::string> traffic_orders() {
    std::vector<std::string> names;
    for (const order& each : orders) names.emplace_back(each.name);
    return names;
}

bool sort_traffic(std::vector<traffic>& rows, std::string_view key) {
    const auto* const found = std::ranges::find(orders, key, &order::name);
    if (found == std::end(orders)) return false;
    std::ranges::sort(rows, [&](const traffic& a, const traffic& b) {
        if (found->number != nullptr && found->number(a) != found->number(b))
            return found->number(a) > found->number(b);
        if (key == "type" && a.type != b.type) return a.type < b.type;
        return a.name < b.name;
    });
    return true;
}

std::string traffic_text(const std::vector<traffic>& rows, const traffic_style& style) {
    const std::string_view by = style.is_rate ? "/S" : "";
    const std::string in = fmt::format("IN{}", by);
    const std::string out = fmt::format("OUT{}", by);
    const std::string received = fmt::format("RECEIVED{}", by);
    const std::string sent = fmt::format("SENT{}", by);
    const std::string errors = fmt::format("ERRORS{}", by);
    const std::vector<fitted_column> columns = {{"NAME", 0, true},  {"TYPE", 7},   {"STATUS", 6},
                                                {"CONNECTIONS", 4}, {in, 0},       {out, 3},
                                                {received, 2},      {sent, 1},     {"P50", 8},
                                                {"P99", 5},         {"MEMORY", 9}, {errors, 10}};
    // The header and the line about the rest have their place.
    const std::size_t room = style.height > 2 ? style.height - 2 : 1;
    const bool is_cut = style.height > 0 && rows.size() + 1 > style.height;
    const std::size_t shown = is_cut ? std::min(room, rows.size()) : rows.size();
    std::vector<std::vector<cell>> cells;
    for (std::size_t i = 0; i < shown; ++i) cells.push_back(row_of(rows[i], style.is_rate));
    std::string text = fitted_table(columns, std::move(cells), style.width, style.colours);
    if (is_cut) text += fmt::format("... and {} more\n", rows.size() - shown);
    return text;
}

}  // namespace eddy::cli
