// Commands that show state: ls, ps, show, logs, version.
#include <eddy/wire/http1/target.hpp>

#include "cli/commands/commands.hpp"
#include "cli/commands/filters.hpp"
#include "cli/commands/journal.hpp"
#include "cli/completion.hpp"
#include "cli/request.hpp"
#include "cli/text/list_text.hpp"
#include "cli/text/row_format.hpp"
#include "cli/text/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <expected>
#include <iterator>
#include <ranges>
#include <utility>
#include <vector>

namespace eddy::cli {
namespace {

constexpr std::size_t any_number = 1'000'000;

/// Lines of a runtime that the daemon keeps at most.
constexpr unsigned long kept_lines = 1000;

/// Keys of a runtime, for --format.
constexpr std::array<std::string_view, 18> list_keys = {
    "id",       "name",        "type",       "status", "port",  "address",
    "uptime_s", "connections", "handshakes", "owner",  "group", "on_parent_stop",
    "created",  "loop",        "options",    "reason", "lost",  "detail"};
constexpr std::array<std::string_view, 6> filter_keys = {"type",  "status", "name",
                                                         "group", "owner",  "id"};

/// Prints objects of all members: as JSON, in a format, or wide.
int print_whole(const context& with, const arguments& given, const json& list) {
    if (with.json) {
        print(pretty(list));
        return exit_ok;
    }
    const std::string_view form = given.value("format", "wide");
    if (form != "table" && form != "wide") {
        const auto format = row_format::parse(form, list_keys);
        if (!format) {
            complain(format.error());
            return exit_bad_input;
        }
        print(format->all(list, with.colours));
        return exit_ok;
    }
    print(list_text(list, {.width = with.width,
                           .is_wide = true,
                           .colours = with.colours,
                           .now = std::chrono::system_clock::now()}));
    return exit_ok;
}

/// Below a table: what is wrong with one that was named, or how many there are.
void complain_of_faults(const context& with, const arguments& given, const list_rows& list) {
    const std::size_t status = list.column("status");
    const std::size_t reason = list.column("reason");
    const auto has_failed = [&](std::size_t row) { return list.at(row, status) == "failed"; };
    const auto is_degraded = [&](std::size_t row) {
        return list.at(row, status) == "running" && !list.at(row, reason).empty();
    };
    const auto rows = std::views::iota(std::size_t{0}, list.size());
    // A failed runtime that is named alone is shown with its reason.
    if (!given.positional().empty() && !is_pattern(given.positional()[0])) {
        for (const std::size_t row : rows)
            if (!list.at(row, reason).empty())
                complain(fmt::format("{} {}{}", printable(list.at(row, list.column("name"))),
                                     has_failed(row) ? "failed: " : "is running, but ",
                                     printable(list.at(row, reason))));
        return;
    }
    const auto failed = std::ranges::count_if(rows, has_failed);
    if (failed > 0 && with.width > 0)
        complain(fmt::format("{} failed; `eddy ls --wide` says why", failed));
    const auto degraded = std::ranges::count_if(rows, is_degraded);
    if (degraded > 0 && with.width > 0)
        complain(
            fmt::format("{} running, but not as they should; `eddy ls --wide` says why", degraded));
}

void print_brief(const context& with, const arguments& given, const list_rows& list) {
    if (given.is_set("quiet")) {
        const std::size_t name = list.column("name");
        std::string names;
        for (std::size_t row = 0; row < list.size(); ++row)
            names += printable(list.at(row, name)) + "\n";
        print(names);
        return;
    }
    print(list_text(
        list,
        {.width = with.width, .colours = with.colours, .now = std::chrono::system_clock::now()}));
    complain_of_faults(with, given, list);
}

/// The daemon's own message about a name that is not there, as every command has it. That of a
/// runtime which has come meanwhile is none.
int complain_of_absence(const context& with, std::string_view name) {
    control_request request;
    request.target = runtime_target(name);
    const auto one = ask(with, std::move(request));
    return one ? int{exit_ok} : one.error();
}

int list_whole(const context& with, const arguments& given, const filters& chosen_by,
               std::string_view pattern, bool running_only) {
    auto all = list_matching(with, pattern);
    if (!all) return all.error();
    if (all->empty() && !is_pattern(pattern))
        if (const int status = complain_of_absence(with, pattern); status != exit_ok) return status;
    json chosen = json::array();
    for (json& each : *all)
        if (chosen_by.has(each) && (!running_only || text_of(each, "status") == "running"))
            chosen.push_back(std::move(each));
    return print_whole(with, given, chosen);
}

int list(context& with, const arguments& given, bool running_only) {
    const auto chosen_by = filters::parse(given, filter_keys);
    if (!chosen_by) {
        complain(chosen_by.error());
        return exit_bad_input;
    }
    running_only = running_only && !given.is_set("all");
    std::string_view pattern = "*";
    if (!given.positional().empty()) pattern = given.positional()[0];
    const bool is_quiet = given.is_set("quiet") && !with.json;
    const bool is_table = given.value("format", "table") == "table" && !given.is_set("wide");
    if (!is_quiet && (with.json || !is_table))
        return list_whole(with, given, *chosen_by, pattern, running_only);

    std::vector<std::string_view> fields = {"name", "status"};
    if (!is_quiet) fields.assign(list_fields().begin(), list_fields().end());
    for (const auto& [key, values] : chosen_by->by_key())
        if (std::ranges::find(fields, key) == fields.end()) fields.emplace_back(key);
    auto rows = rows_matching(with, pattern, fields);
    if (!rows) return rows.error();
    if (rows->size() == 0 && !is_pattern(pattern))
        if (const int status = complain_of_absence(with, pattern); status != exit_ok) return status;
    const std::size_t status = rows->column("status");
    rows->filter([&](std::size_t row) {
        return chosen_by->has(*rows, row) && (!running_only || rows->at(row, status) == "running");
    });
    print_brief(with, given, *rows);
    return exit_ok;
}

std::vector<flag> list_flags() {
    return {
        {.name = "quiet", .letter = 'q', .help = "print only the names"},
        {.name = "format",
         .value_name = "TEXT",
         .help = "print this text for each, with {name}, {port}, ... replaced, as {{.Name}} "
                 "is; or a table of columns, as in name,port; or json, table or wide. --json "
                 "shows all fields"},
        {.name = "filter",
         .value_name = "KEY=VALUE",
         .help = "only those with type=, status=, name=, group=, owner= or id=; commas separate "
                 "values, of which one must fit",
         .repeats = true},
        {.name = "all", .letter = 'a', .help = "also those that do not run, as ls does"},
        {.name = "wide",
         .letter = 'w',
         .help = "print every column, even on a narrow terminal: ids, owners, exact times, why "
                 "a runtime failed"}};
}

int show(context& with, const arguments& given) {
    auto [answers, status] = about_each(with, given, "");
    if (!answers.empty()) print(pretty(object_or_array(given, std::move(answers))));
    return status;
}

/// The journals that the words mean, each once.
std::expected<std::vector<std::string>, int> names_of_all(const context& with,
                                                          const arguments& given) {
    std::vector<std::string> all;
    for (const std::string& word : given.positional()) {
        auto names = resolve(with, word);
        if (!names) return names;
        for (std::string& each : *names)
            if (std::find(all.begin(), all.end(), each) == all.end())
                all.push_back(std::move(each));
    }
    return all;
}

int logs(context& with, const arguments& given) {
    const std::string_view lines = given.value("lines", "100");
    unsigned long count = 0;
    const auto [end, error] = std::from_chars(lines.data(), lines.data() + lines.size(), count);
    const bool is_all = lines == "all";
    if (is_all) count = kept_lines;
    if (!is_all && (error != std::errc{} || end != lines.data() + lines.size())) {
        complain(fmt::format("--lines needs a whole number or all, not \"{}\"", printable(lines)));
        return exit_bad_input;
    }
    std::string query;
    if (given.has("since"))
        query = fmt::format("&since={}", http1::percent_encode(given.value("since")));
    if (given.has("lines") || !given.has("since")) query += fmt::format("&tail={}", count);
    const bool follow = given.is_set("follow");
    const auto& words = given.positional();
    if (words.size() > 1 || is_pattern(words[0])) {
        auto names = names_of_all(with, given);
        if (!names) return names.error();
        if (follow && names->size() > follow_limit) {
            complain(fmt::format("--follow is for at most {} runtimes at a time, and these are {}",
                                 follow_limit, names->size()));
            return exit_bad_input;
        }
        return show_journals(with, std::move(*names), query, follow);
    }
    control_client client(with.socket);
    control_request request;
    request.target = runtime_target(words[0], fmt::format("/logs?follow={}{}", follow, query));
    auto answer = client.follow(std::move(request), journal_printer(with.json));
    if (!answer) {
        complain(answer.error().message);
        return exit_fatal;
    }
    if (answer->status / 100 != 2) {
        complain(error_message(answer->status, answer->body));
        return exit_status_for(answer->status);
    }
    return exit_ok;
}

int show_version(context& with, const arguments&) {
    control_client client(with.socket);
    control_request request;
    request.target = "/v1/daemon";
    const auto answer = client.ask(std::move(request));
    json daemon;
    if (answer && answer->status == 200) daemon = json::parse(answer->body, nullptr, false);
    if (!daemon.is_object()) daemon = nullptr;
    // One that is there and gives no answer to this user is not none.
    std::string refusal;
    if (!answer && !answer.error().is_absent)
        refusal = answer.error().message;
    else if (answer && answer->status != 200)
        refusal = error_message(answer->status, answer->body);
    if (with.json) {
        json shown = {{"version", with.version}, {"built_with", with.parts}, {"daemon", daemon}};
        if (!refusal.empty()) shown["daemon_refusal"] = refusal;
        print(pretty(shown));
        return exit_ok;
    }
    print(fmt::format("eddy {}\nbuilt with: {}\n", with.version,
                      with.parts.empty() ? "no io_uring, TLS or scripts"
                                         : fmt::format("{}", fmt::join(with.parts, ", "))));
    if (daemon.is_object())
        print(fmt::format("daemon {} at {}: pid {}, io-backend {}, up {}\n",
                          printable(text_of(daemon, "version")), printable(with.socket),
                          printable(text_of(daemon, "pid")),
                          printable(text_of(daemon, "io_backend")),
                          format_age(number_of(daemon, "uptime_s"))));
    else if (!refusal.empty())
        print(fmt::format("daemon: not known: {}\n", printable(refusal)));
    else
        print(fmt::format("daemon: none at {}\n", printable(with.socket)));
    return exit_ok;
}

}  // namespace

command ls_command() {
    command c;
    c.name = "ls";
    c.aliases = {"list"};
    c.operands = "[pattern]";
    c.summary = "list runtimes";
    c.flags = list_flags();
    c.most = 1;
    c.examples = {{"eddy ls", ""},
                  {"eddy ls 'api-*'", ""},
                  {"eddy ls --format '{name} {port}'", ""},
                  {"eddy ls --format name,port,group --filter type=cache,server", "a table"},
                  {"eddy stop $(eddy ls -q @web)", ""}};
    c.run = [](context& with, const arguments& given) { return list(with, given, false); };
    return c;
}

command ps_command() {
    command c;
    c.name = "ps";
    c.operands = "[pattern]";
    c.summary = "list running runtimes";
    c.flags = list_flags();
    c.most = 1;
    c.examples = {{"eddy ps", ""}};
    c.run = [](context& with, const arguments& given) { return list(with, given, true); };
    return c;
}

command show_command() {
    command c;
    c.name = "show";
    c.aliases = {"inspect"};
    c.operands = "<name|pattern>...";
    c.summary = "print runtimes as JSON";
    c.least = 1;
    c.most = any_number;
    c.examples = {{"eddy show db", "an object"}, {"eddy show 'api-*'", "an array"}};
    c.more = "A single name prints an object; a pattern, or several words, an array.";
    c.run = show;
    return c;
}

command logs_command() {
    command c;
    c.name = "logs";
    c.operands = "<name|pattern>...";
    c.summary = "show the logs of runtimes";
    c.flags = {
        {.name = "follow", .letter = 'f', .help = "keep printing new lines"},
        {.name = "lines",
         .letter = 'n',
         .value_name = "N",
         .help = "number of last lines of each runtime, or all; with --since all kept lines. "
                 "--tail is the same",
         .default_value = "100",
         .former_name = "tail"},
        {.name = "timestamps",
         .letter = 't',
         .help = "begin each line with its time, which is always so"},
        {.name = "since",
         .value_name = "TIME",
         .help = "only lines since a time, such as 2026-11-21T21:22 or 2026-11-21 (UTC), or "
                 "a duration ago, such as 10m"}};
    c.least = 1;
    c.most = any_number;
    c.examples = {{"eddy logs -f chat", ""},
                  {"eddy logs -n 5 chat", ""},
                  {"eddy logs --since 1h '*'", "of all runtimes, in order of time"}};
    c.more =
        "The daemon keeps the last 1000 lines of each runtime, or 256 KiB, also over its own\n"
        "restart. For several runtimes, or a pattern, each line begins with the name.";
    c.run = logs;
    return c;
}

command completion_command() {
    command c;
    c.name = "completion";
    c.operands = "<bash|zsh|fish>";
    c.summary = "print the script with which a shell completes commands, flags and names";
    c.least = c.most = 1;
    c.examples = {{"source <(eddy completion bash)", "for this shell; zsh takes the same"},
                  {"eddy completion fish > ~/.config/fish/completions/eddy.fish", ""}};
    c.more =
        "The package installs all three. Names of runtimes and groups are asked from the daemon;\n"
        "without one they are missing.";
    c.run = [](context&, const arguments& given) -> int {
        const std::string_view script = completion_script(given.positional()[0]);
        if (script.empty())
            complain(
                fmt::format("there is no completion for \"{}\"; there is for bash, zsh and fish",
                            printable(given.positional()[0])));
        print(script);
        return script.empty() ? exit_bad_input : exit_ok;
    };
    return c;
}

command version_command() {
    command c;
    c.name = "version";
    c.summary = "show the version and parts of this program, and the daemon's version";
    c.run = show_version;
    return c;
}

}  // namespace eddy::cli
