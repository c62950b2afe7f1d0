// Commands that show state: ls, ps, show, stats, logs, version.
#include <eddy/wire/http1/target.hpp>

#include "cli/bench/measure.hpp"
#include "cli/commands/commands.hpp"
#include "cli/commands/journal.hpp"
#include "cli/request.hpp"
#include "cli/text/list_text.hpp"
#include "cli/text/stats_text.hpp"
#include "cli/text/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <expected>
#include <iterator>
#include <thread>
#include <utility>

namespace eddy::cli {
namespace {

constexpr std::size_t any_number = 1'000'000;

/// The shortest pause of `eddy stats --follow`.
constexpr duration least_interval = std::chrono::milliseconds(50);

/// "{name} {port}\n" with each key's value in its place. The error names the key that is unknown.
std::expected<std::string, std::string> format_row(std::string_view pattern, const json& row) {
    std::string text;
    for (std::size_t i = 0; i < pattern.size(); ++i) {
        if (pattern[i] == '\\' && i + 1 < pattern.size()) {
            const char next = pattern[++i];
            text += next == 'n' ? '\n' : next == 't' ? '\t' : next;
            continue;
        }
        const std::size_t end = pattern[i] == '{' ? pattern.find('}', i) : std::string_view::npos;
        if (end == std::string_view::npos) {
            text += pattern[i];
            continue;
        }
        const std::string_view key = pattern.substr(i + 1, end - i - 1);
        if (!row.contains(key)) {
            std::vector<std::string> keys;
            for (const auto& [name, ignored] : row.items()) keys.push_back(name);
            return std::unexpected(fmt::format("--format has an unknown {{{}}}; there are {}",
                                               printable(key), fmt::join(keys, ", ")));
        }
        text += printable(text_of(row, key));
        i = end;
    }
    return text + "\n";
}

int print_list(const context& with, const arguments& given, const json& list) {
    if (with.json) {
        print(pretty(list));
        return exit_ok;
    }
    if (given.is_set("quiet")) {
        for (const json& each : list) print(printable(text_of(each, "name")) + "\n");
        return exit_ok;
    }
    if (given.has("format")) {
        for (const json& each : list) {
            auto row = format_row(given.value("format"), each);
            if (!row) {
                complain(row.error());
                return exit_bad_input;
            }
            print(*row);
        }
        return exit_ok;
    }
    const bool is_wide = given.is_set("wide");
    print(list_text(list, {.width = with.width,
                           .is_wide = is_wide,
                           .colours = with.colours,
                           .now = std::chrono::system_clock::now()}));
    if (is_wide) return exit_ok;
    // A failed runtime that is named alone is shown with its reason.
    if (!given.positional().empty() && !is_pattern(given.positional()[0])) {
        for (const json& each : list)
            if (!text_of(each, "reason").empty())
                complain(fmt::format(
                    "{} {}{}", printable(text_of(each, "name")),
                    text_of(each, "status") == "failed" ? "failed: " : "is running, but ",
                    printable(text_of(each, "reason"))));
        return exit_ok;
    }
    const auto failed = std::count_if(list.begin(), list.end(), [](const json& each) {
        return text_of(each, "status") == "failed";
    });
    if (failed > 0 && with.width > 0)
        complain(fmt::format("{} failed; `eddy ls --wide` says why", failed));
    const auto degraded = std::count_if(list.begin(), list.end(), [](const json& each) {
        return text_of(each, "status") == "running" && !text_of(each, "reason").empty();
    });
    if (degraded > 0 && with.width > 0)
        complain(
            fmt::format("{} not listening on all addresses; `eddy ls --wide` says why", degraded));
    return exit_ok;
}

int list(context& with, const arguments& given, bool running_only) {
    std::string_view pattern = "*";
    if (!given.positional().empty()) pattern = given.positional()[0];
    auto all = list_matching(with, pattern);
    if (!all) return all.error();
    if (all->empty() && !is_pattern(pattern)) {
        // The daemon's own message, as every command has it.
        control_request request;
        request.target = runtime_target(pattern);
        auto one = ask(with, std::move(request));
        if (!one) return one.error();
        all->push_back(std::move(*one));
    }
    json chosen = json::array();
    for (json& each : *all)
        if (!running_only || text_of(each, "status") == "running")
            chosen.push_back(std::move(each));
    return print_list(with, given, chosen);
}

std::vector<flag> list_flags() {
    return {{.name = "quiet", .letter = 'q', .help = "print only the names"},
            {.name = "format",
             .value_name = "TEXT",
             .help = "print this text for each, with {name}, {port}, ... replaced; --json shows "
                     "all fields"},
            {.name = "wide",
             .letter = 'w',
             .help = "print every column, even on a narrow terminal: ids, owners, exact times, why "
                     "a runtime failed"}};
}

/// The answers about each runtime that the words mean; the status is that of ask_each().
std::pair<json, int> about_each(const context& with, const arguments& given,
                                std::string_view rest) {
    json answers = json::array();
    const int status = ask_each(with, given, "GET", rest, [&](const std::string&, json& answer) {
        answers.push_back(std::move(answer));
    });
    return {std::move(answers), status};
}

/// As the command line asked: an object for one plain name, else an array, however many match.
json object_or_array(const arguments& given, json answers) {
    const auto& words = given.positional();
    if (words.size() > 1 || is_pattern(words[0]) || answers.empty()) return answers;
    return std::move(answers[0]);
}

int show(context& with, const arguments& given) {
    auto [answers, status] = about_each(with, given, "");
    if (!answers.empty()) print(pretty(object_or_array(given, std::move(answers))));
    return status;
}

std::string full_stats_text(const json& stats, bool colours) {
    return tinted(printable(text_of(stats, "name")), tint::bold, colours) +
           fmt::format(" ({}, {})\n", printable(text_of(stats, "type")),
                       printable(text_of(stats, "status"))) +
           stats_text(stats);
}

/// Prints the statistics once. `is_first` is false for a repetition of --follow.
int show_stats(const context& with, const arguments& given, bool is_first) {
    auto [answers, status] = about_each(with, given, "/stats");
    if (answers.empty()) return status;
    const bool follows = given.is_set("follow");
    if (with.json) {
        const json shown = object_or_array(given, std::move(answers));
        print(follows ? dump_for_terminal(shown) + "\n" : pretty(shown));
        return status;
    }
    std::string text;
    if (follows && with.width > 0)
        text = "\x1b[H\x1b[2J";  // to the upper left corner of an empty screen
    else if (!is_first)
        text = "\n";
    for (const json& each : answers) text += full_stats_text(each, with.colours);
    print(text);
    return status;
}

int stats(context& with, const arguments& given) {
    if (given.has("interval") && !given.is_set("follow")) {
        complain("--interval is for --follow: eddy stats -f --interval 5s NAME");
        return exit_bad_input;
    }
    duration pause = std::chrono::seconds(1);
    if (!bench::read_duration(given, "interval", pause)) return exit_bad_input;
    pause = std::max<duration>(pause, least_interval);
    for (bool is_first = true;; is_first = false) {
        const int status = show_stats(with, given, is_first);
        if (!given.is_set("follow") || status != exit_ok) return status;
        if (std::fflush(stdout) != 0) return exit_ok;
        std::this_thread::sleep_for(pause);
    }
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
    if (error != std::errc{} || end != lines.data() + lines.size()) {
        complain(fmt::format("--lines needs a whole number, not \"{}\"", printable(lines)));
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
    c.operands = "[pattern]";
    c.summary = "list runtimes";
    c.flags = list_flags();
    c.most = 1;
    c.examples = {{"eddy ls", ""},
                  {"eddy ls 'api-*'", ""},
                  {"eddy ls --format '{name} {port}'", ""},
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
    c.operands = "<name|pattern>...";
    c.summary = "print runtimes as JSON";
    c.least = 1;
    c.most = any_number;
    c.examples = {{"eddy show db", "an object"}, {"eddy show 'api-*'", "an array"}};
    c.more = "A single name prints an object; a pattern, or several words, an array.";
    c.run = show;
    return c;
}

command stats_command() {
    command c;
    c.name = "stats";
    c.operands = "<name|pattern>...";
    c.summary = "show the counters of runtimes";
    c.flags = {{.name = "follow",
                .letter = 'f',
                .help = "repeat until Ctrl-C, or until one of them is removed"},
               {.name = "interval",
                .value_name = "TIME",
                .help = "interval of --follow, at least 50ms",
                .default_value = "1s"}};
    c.least = 1;
    c.most = any_number;
    c.examples = {{"eddy stats db", ""},
                  {"eddy stats -f '*'", ""},
                  {"eddy stats --json db", "an object"},
                  {"eddy stats --json 'api-*'", "an array"}};
    c.more =
        "With --json a single name prints an object; a pattern, or several words, an array. With\n"
        "--follow as well, each is one line.";
    c.run = stats;
    return c;
}

command logs_command() {
    command c;
    c.name = "logs";
    c.operands = "<name|pattern>...";
    c.summary = "show the logs of runtimes";
    c.flags = {{.name = "follow", .letter = 'f', .help = "keep printing new lines"},
               {.name = "lines",
                .letter = 'n',
                .value_name = "N",
                .help = "number of last lines of each runtime; with --since all kept lines",
                .default_value = "100"},
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

command version_command() {
    command c;
    c.name = "version";
    c.summary = "show the version and parts of this program, and the daemon's version";
    c.run = show_version;
    return c;
}

}  // namespace eddy::cli
