// Commands that show state: ls, ps, show, stats, logs, version.
#include "cli/commands.hpp"
#include "cli/journal.hpp"
#include "cli/request.hpp"
#include "cli/stats_text.hpp"
#include "cli/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <iterator>

namespace eddy::cli {
namespace {

constexpr std::size_t any_number = 1'000'000;

tint tint_of_status(std::string_view status) {
    if (status == "running") return tint::green;
    if (status == "failed") return tint::red;
    if (status == "starting" || status == "stopping") return tint::yellow;
    return tint::faint;
}

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
    const bool grouped = std::any_of(
        list.begin(), list.end(), [](const json& each) { return !text_of(each, "group").empty(); });
    std::vector<std::string> header = {"ID",     "NAME",        "TYPE",  "PORT",   "STATUS",
                                       "UPTIME", "CONNECTIONS", "OWNER", "CREATED"};
    if (grouped) header.emplace_back("GROUP");
    table rows(header);
    for (const json& each : list) {
        const std::string status = text_of(each, "status");
        const bool up = !text_of(each, "uptime_s").empty();
        const auto or_dash = [&](std::string_view name) {
            std::string text = text_of(each, name);
            return text.empty() ? std::string("-") : text;
        };
        rows.add({{or_dash("id"), tint::faint},
                  {or_dash("name"), tint::bold},
                  {or_dash("type")},
                  {or_dash("port")},
                  {status, tint_of_status(status)},
                  {up ? format_age(number_of(each, "uptime_s")) : "-"},
                  {or_dash("connections")},
                  {or_dash("owner")},
                  {or_dash("created")},
                  {or_dash("group")}});
    }
    print(rows.to_string(with.colours));
    for (const json& each : list)
        if (text_of(each, "status") == "failed")
            complain(fmt::format("{} failed: {}", printable(text_of(each, "name")),
                                 printable(text_of(each, "reason"))));
    return exit_ok;
}

int list(context& with, const arguments& given, bool running_only) {
    std::string_view pattern = "*";
    if (!given.positional().empty()) pattern = given.positional()[0];
    auto all = list_matching(with, pattern);
    if (!all) return all.error();
    json chosen = json::array();
    for (json& each : *all)
        if (!running_only || text_of(each, "status") == "running")
            chosen.push_back(std::move(each));
    return print_list(with, given, chosen);
}

std::vector<flag> list_flags() {
    return {{.name = "quiet", .letter = 'q', .help = "print the names alone"},
            {.name = "format",
             .value_name = "TEXT",
             .help = "print this for each, with {name}, {port}, ... replaced; --json shows the "
                     "names there are"}};
}

/// Asks about each runtime that the words mean, and hands the answers on together.
int about_each(context& with, const arguments& given, std::string_view rest,
               const std::function<void(const json&)>& show) {
    json answers = json::array();
    const int status = ask_each(with, given, "GET", rest, [&](const std::string&, json& answer) {
        if (with.json)
            answers.push_back(std::move(answer));
        else
            show(answer);
    });
    // One runtime gives an object, so that simple scripts stay simple.
    if (with.json && !answers.empty()) print(pretty(answers.size() == 1 ? answers[0] : answers));
    return status;
}

void show_stats(const json& stats, bool colours) {
    print(tinted(printable(text_of(stats, "name")), tint::bold, colours) +
          fmt::format(" ({}, {})\n", printable(text_of(stats, "type")),
                      printable(text_of(stats, "status"))) +
          stats_text(stats));
}

int logs(context& with, const arguments& given) {
    const std::string_view lines = given.value("lines", "100");
    unsigned long count = 0;
    const auto [end, error] = std::from_chars(lines.data(), lines.data() + lines.size(), count);
    if (error != std::errc{} || end != lines.data() + lines.size()) {
        complain(fmt::format("--lines needs a whole number, not \"{}\"", printable(lines)));
        return exit_bad_input;
    }
    const bool follow = given.is_set("follow");
    control_client client(with.socket);
    control_request request;
    request.target = runtime_target(given.positional()[0],
                                    fmt::format("/logs?tail={}&follow={}", count, follow));
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
    if (with.json) {
        print(pretty({{"version", with.version}, {"built_with", with.parts}, {"daemon", daemon}}));
        return exit_ok;
    }
    print(fmt::format("eddy {}\nbuilt with: {}\n", with.version,
                      with.parts.empty() ? "no io_uring, TLS or scripts"
                                         : fmt::format("{}", fmt::join(with.parts, ", "))));
    if (daemon.is_object())
        print(fmt::format("daemon {} at {}: pid {}, backend {}, up {}\n",
                          printable(text_of(daemon, "version")), printable(with.socket),
                          printable(text_of(daemon, "pid")), printable(text_of(daemon, "backend")),
                          format_age(number_of(daemon, "uptime_s"))));
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
    c.summary = "list the runtimes that run";
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
    c.summary = "print what is known of runtimes, as JSON";
    c.least = 1;
    c.most = any_number;
    c.examples = {{"eddy show db", ""}};
    c.run = [](context& with, const arguments& given) {
        with.json = true;
        return about_each(with, given, "", [](const json&) {});
    };
    return c;
}

command stats_command() {
    command c;
    c.name = "stats";
    c.operands = "<name|pattern>...";
    c.summary = "show what runtimes count";
    c.least = 1;
    c.most = any_number;
    c.examples = {{"eddy stats db", ""}, {"eddy stats --json db", ""}};
    c.run = [](context& with, const arguments& given) {
        const bool colours = with.colours;
        return about_each(with, given, "/stats",
                          [colours](const json& stats) { show_stats(stats, colours); });
    };
    return c;
}

command logs_command() {
    command c;
    c.name = "logs";
    c.operands = "<name>";
    c.summary = "show what happened to a runtime";
    c.flags = {{.name = "follow", .letter = 'f', .help = "go on with each new line"},
               {.name = "lines",
                .letter = 'n',
                .value_name = "N",
                .help = "how many of the last lines",
                .default_value = "100"}};
    c.least = c.most = 1;
    c.examples = {{"eddy logs -f chat", ""}, {"eddy logs -n 5 chat", ""}};
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
