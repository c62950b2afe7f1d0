// `eddy events`: what happens to runtimes, as it happens.
#include "cli/commands/events.hpp"

#include <eddy/wire/http1/target.hpp>

#include "base/text/terminal_text.hpp"
#include "cli/commands/commands.hpp"
#include "cli/commands/filters.hpp"
#include "cli/request.hpp"
#include "cli/text/row_format.hpp"
#include "cli/text/table.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace eddy::cli {
namespace {

constexpr std::array<std::string_view, 5> filter_keys = {"event", "type", "name", "group", "owner"};
constexpr std::array<std::string_view, 9> event_keys = {"number", "time",  "event", "name",  "id",
                                                        "type",   "owner", "group", "detail"};

tint tint_of(std::string_view event) {
    if (event == "failed" || event == "lost" || event == "left") return tint::red;
    if (event == "degraded" || event == "leaving") return tint::yellow;
    if (event == "started" || event == "recovered" || event == "joined") return tint::green;
    return tint::none;
}

/// "2026-11-21T21:22:04.123Z started    db (cache) on 127.0.0.1:6379"
std::string event_text(const json& event, bool colours) {
    const std::string what = text_of(event, "event");
    if (what == "lost")
        return tinted(fmt::format("... {} events are lost: the reader was too slow\n",
                                  printable(text_of(event, "count"))),
                      tint::red, colours);
    std::string detail = printable(text_of(event, "detail"));
    if (!detail.empty()) detail.insert(0, detail.starts_with("on ") ? " " : ": ");
    return fmt::format("{} {} {} ({}){}\n",
                       tinted(printable(text_of(event, "time")), tint::faint, colours),
                       tinted(fmt::format("{:<9}", printable(what)), tint_of(what), colours),
                       tinted(printable(text_of(event, "name")), tint::bold, colours),
                       printable(text_of(event, "type")), detail);
}

/// The query of a request; the error is a sentence.
std::expected<std::string, std::string> query_of(const arguments& given) {
    std::string query = given.is_set("no-follow") ? "?follow=false" : "?follow=true";
    const auto add = [&query](std::string_view name, std::string_view value) {
        query += fmt::format("&{}={}", name, http1::percent_encode(value));
    };
    for (const char* const name : {"since", "until"})
        if (given.has(name)) add(name, given.value(name));
    for (const std::string& word : given.positional()) add("match", word);
    const auto chosen = filters::parse(given, filter_keys);
    if (!chosen) return std::unexpected(chosen.error());
    for (const auto& [key, values] : chosen->by_key())
        for (const std::string& value : values) add(key == "name" ? "match" : key, value);
    return query;
}

}  // namespace

int follow_events(context& with, const arguments& given, std::string_view target) {
    const auto query = query_of(given);
    if (!query) {
        complain(query.error());
        return exit_bad_input;
    }
    std::function<std::string(const json&)> shown = [&with](const json& event) {
        return event_text(event, with.colours);
    };
    std::optional<row_format> format;
    if (given.has("format")) {
        auto read = row_format::parse(given.value("format"), event_keys);
        if (!read) {
            complain(read.error());
            return exit_bad_input;
        }
        format = std::move(*read);
        shown = [&format](const json& event) { return format->line(event); };
    }
    if (with.json) shown = [](const json& event) { return dump_for_terminal(event) + "\n"; };
    control_client client(with.socket);
    control_request request;
    request.target = std::string(target) + *query;
    const auto take = [rest = std::string(), &shown](std::string_view piece) mutable {
        rest += piece;
        for (std::size_t at; (at = rest.find('\n')) != std::string::npos;) {
            const json event = json::parse(rest.substr(0, at), nullptr, false);
            if (event.is_object()) print(shown(event));
            rest.erase(0, at + 1);
        }
        return std::fflush(stdout) == 0;
    };
    const auto answer = client.follow(std::move(request), take);
    if (!answer) {
        complain(answer.error().message);
        return exit_fatal;
    }
    if (answer->status / 100 == 2) return exit_ok;
    complain(error_message(answer->status, answer->body));
    return exit_status_for(answer->status);
}

std::vector<flag> event_flags() {
    return {
        {.name = "since",
         .value_name = "TIME",
         .help = "begin with those since a time, such as 2026-11-21T21:22 (UTC), or a "
                 "duration ago, such as 10m; by default with new ones"},
        {.name = "until", .value_name = "TIME", .help = "only those until then; it ends there"},
        {.name = "filter",
         .value_name = "KEY=VALUE",
         .help = "only those with event=, type=, name=, group= or owner=; commas separate "
                 "values, of which one must fit, and so may repetitions of the flag",
         .repeats = true},
        {.name = "format",
         .value_name = "TEXT",
         .help = "print this text for each, with {time}, {event}, {name}, {detail} ... "
                 "replaced, or json"},
        {.name = "follow", .letter = 'f', .help = "keep printing new ones, which is the default"},
        {.name = "no-follow", .help = "print those that are kept, and end"}};
}

command events_command() {
    command c;
    c.name = "events";
    c.operands = "[name|pattern]...";
    c.summary = "follow what happens to runtimes";
    c.flags = event_flags();
    c.most = most_event_names;
    c.examples = {
        {"eddy events", "all that happens from now on"},
        {"eddy events --since 1h --no-follow", "the last hour"},
        {"eddy events --filter event=failed,degraded --json", "a line of JSON each, for programs"},
        {"eddy events --filter type=cache 'db-*' @web", ""}};
    c.more =
        "Events are created, started, stopped, failed, edited, renamed, reloaded, restarted,\n"
        "degraded (it runs, and lacks what it needs), recovered and removed; joined, leaving and\n"
        "left are those of members of the cluster (their type is member). The daemon keeps the\n"
        "last 1000 as long as it runs. A reader that is too slow gets the number of those it has\n"
        "missed.";
    c.run = [](context& with, const arguments& given) {
        return follow_events(with, given, "/v1/events");
    };
    return c;
}

}  // namespace eddy::cli
