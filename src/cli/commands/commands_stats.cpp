// Counters and rates of runtimes: stats, top.
#include <eddy/wire/http1/target.hpp>

#include "base/text/terminal_text.hpp"
#include "cli/bench/measure.hpp"
#include "cli/commands/commands.hpp"
#include "cli/request.hpp"
#include "cli/text/stats_text.hpp"
#include "cli/text/table.hpp"
#include "cli/text/terminal.hpp"
#include "cli/text/traffic_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <expected>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace eddy::cli {
namespace {

constexpr std::size_t any_number = 1'000'000;

/// The shortest pause of `eddy stats --follow` and `eddy top`.
constexpr duration least_interval = std::chrono::milliseconds(50);

/// To the upper left corner of an empty screen.
constexpr std::string_view clear_screen = "\x1b[H\x1b[2J";

std::string full_stats_text(const json& stats, bool colours) {
    return tinted(printable(text_of(stats, "name")), tint::bold, colours) +
           fmt::format(" ({}, {})\n", printable(text_of(stats, "type")),
                       printable(text_of(stats, "status"))) +
           stats_text(stats);
}

/// The statistics of all that match, by one request.
std::expected<json, int> stats_matching(const context& with, std::string_view pattern,
                                        bool running_only) {
    control_request request;
    request.target = fmt::format("/v1/stats?match={}{}", http1::percent_encode(pattern),
                                 running_only ? "&status=running" : "");
    auto answer = ask(with, std::move(request));
    if (!answer) return answer;
    return answer->value("stats", json::array());
}

// --- stats ----------------------------------------------------------------------------------

bool repeats(const arguments& given) { return given.is_set("follow") || given.is_set("watch"); }

/// The statistics that the words mean, and the status.
std::pair<json, int> stats_of(const context& with, const arguments& given) {
    const auto& words = given.positional();
    if (words.size() != 1 || !is_pattern(words[0])) return about_each(with, given, "/stats");
    auto all = stats_matching(with, words[0], false);
    if (!all) return {json::array(), all.error()};
    if (!all->empty()) return {std::move(*all), exit_ok};
    complain(fmt::format("no runtime matches \"{}\"; `eddy ls` shows those there are",
                         printable(words[0])));
    return {json::array(), exit_bad_input};
}

/// The table of several, or all of each.
std::string stats_of_all_text(const context& with, const arguments& given, const json& all,
                              std::size_t height) {
    std::string text;
    if (all.size() == 1 || given.is_set("details")) {
        for (const json& each : all) text += full_stats_text(each, with.colours);
        return text;
    }
    std::vector<traffic> rows;
    for (const json& each : all) rows.push_back(traffic_of(each));
    return traffic_text(rows, {.width = with.width, .height = height, .colours = with.colours});
}

/// Prints the statistics once. `is_first` is false for a repetition.
int show_stats(const context& with, const arguments& given, bool is_first) {
    auto [answers, status] = stats_of(with, given);
    if (answers.empty()) return status;
    if (with.json) {
        const json shown = object_or_array(given, std::move(answers));
        print(repeats(given) ? dump_for_terminal(shown) + "\n" : pretty(shown));
        return status;
    }
    const bool has_screen = repeats(given) && with.width > 0;
    std::string text;
    if (has_screen)
        text = clear_screen;
    else if (!is_first)
        text = "\n";
    // The last line stays free for the cursor.
    const std::size_t lines = size_of_terminal().lines;
    text += stats_of_all_text(with, given, answers, has_screen && lines > 1 ? lines - 1 : 0);
    print(text);
    return status;
}

int stats(context& with, const arguments& given) {
    if (given.has("interval") && !repeats(given)) {
        complain("--interval is for --follow: eddy stats -f --interval 5s NAME");
        return exit_bad_input;
    }
    duration pause = std::chrono::seconds(1);
    if (!bench::read_duration(given, "interval", pause)) return exit_bad_input;
    pause = std::max<duration>(pause, least_interval);
    for (bool is_first = true;; is_first = false) {
        const int status = show_stats(with, given, is_first);
        if (!repeats(given) || status != exit_ok) return status;
        if (std::fflush(stdout) != 0) return exit_ok;
        std::this_thread::sleep_for(pause);
        with.width = size_of_terminal().columns;
    }
}

// --- top ------------------------------------------------------------------------------------

/// Keys that choose an order.
constexpr std::pair<char, std::string_view> order_keys[] = {
    {'n', "name"},     {'t', "type"},   {'c', "connections"}, {'r', "requests"},
    {'g', "messages"}, {'i', "in"},     {'o', "out"},         {'5', "p50"},
    {'9', "p99"},      {'m', "memory"}, {'e', "errors"}};

/// The table of `eddy top`, shown again and again.
class live_table {
public:
    live_table(context& with, const arguments& given, std::string_view order, duration pause)
        : with_(with),
          pattern_(given.positional().empty() ? "*" : given.positional()[0]),
          shows_all_(given.is_set("all")),
          is_once_(given.is_set("once")),
          order_(order),
          pause_(pause) {}

    int run() {
        key_reader keys;
        is_screen_ = !is_once_ && !with_.json && with_.width > 0;
        if (auto begun = count(); !begun) return begun.error();
        if (is_screen_) show();
        for (;;) {
            const bool goes_on = !is_screen_ ? sleep() : await_keys(keys);
            if (!goes_on) return exit_ok;
            if (auto counted = count(); !counted) return counted.error();
            show();
            if (std::fflush(stdout) != 0 || is_once_) return exit_ok;
        }
    }

private:
    /// Takes the counts of now, and the rates since those before.
    std::expected<void, int> count() {
        const auto answer = stats_matching(with_, pattern_, !shows_all_);
        if (!answer) return std::unexpected(answer.error());
        const auto now = std::chrono::steady_clock::now();
        std::vector<traffic> counted;
        for (const json& each : *answer) counted.push_back(traffic_of(each));
        const double seconds = std::chrono::duration<double>(now - counted_at_).count();
        rates_ = rates_between(counts_, counted, has_counts_ ? seconds : 0);
        counts_ = std::move(counted);
        counted_at_ = now;
        has_counts_ = true;
        return {};
    }

    bool sleep() const {
        std::this_thread::sleep_for(pause_);
        return true;
    }

    /// Waits for the next count, and obeys keys meanwhile. False for the one that ends it.
    bool await_keys(key_reader& keys) {
        const auto until = std::chrono::steady_clock::now() + pause_;
        for (;;) {
            const auto left = until - std::chrono::steady_clock::now();
            if (left <= left.zero()) return true;
            const auto key = keys.next(left);
            if (key == 'q' || key == 'Q' || key == '\x1b' || key == '\x04') return false;
            for (const auto& [letter, order] : order_keys)
                if (key == letter) order_ = order;
            show();
            if (std::fflush(stdout) != 0) return false;
        }
    }

    void show() {
        sort_traffic(rates_, order_);
        if (with_.json) {
            const json shown = rates_json(rates_);
            print(is_once_ ? pretty(shown) : dump_for_terminal(shown) + "\n");
            return;
        }
        const terminal_size size = size_of_terminal();
        traffic_style style{.width = size.columns, .colours = with_.colours, .is_rate = true};
        std::string text;
        if (is_screen_) {
            text = clear_screen;
            text += heading(size.columns);
            // The heading and the cursor have a line each.
            style.height = size.lines > 4 ? size.lines - 2 : 3;
        } else if (std::exchange(has_shown_, true)) {
            text = "\n";
        }
        print(text + traffic_text(rates_, style));
        std::fflush(stdout);
    }

    std::string heading(std::size_t width) const {
        std::string text =
            fmt::format("{} runtimes by {}; keys: q ends, order by n t c r g i o 5 9 m e",
                        rates_.size(), order_);
        if (text.size() > width) text.resize(width);
        return tinted(text, tint::faint, with_.colours) + "\n";
    }

    context& with_;
    const std::string pattern_;
    const bool shows_all_;
    const bool is_once_;
    std::string order_;
    const duration pause_;
    bool is_screen_ = false;
    bool has_shown_ = false;
    bool has_counts_ = false;
    std::vector<traffic> counts_;
    std::vector<traffic> rates_;
    std::chrono::steady_clock::time_point counted_at_{};
};

int top(context& with, const arguments& given) {
    duration pause = std::chrono::seconds(1);
    if (!bench::read_duration(given, "interval", pause)) return exit_bad_input;
    const std::string_view order = given.value("sort", "requests");
    std::vector<traffic> none;
    if (!sort_traffic(none, order)) {
        complain(fmt::format("--sort cannot be \"{}\"; it may be {}", printable(order),
                             fmt::join(traffic_orders(), ", ")));
        return exit_bad_input;
    }
    return live_table(with, given, order, std::max<duration>(pause, least_interval)).run();
}

}  // namespace

command stats_command() {
    command c;
    c.name = "stats";
    c.operands = "<name|pattern>...";
    c.summary = "show the counters of runtimes";
    c.flags = {{.name = "follow",
                .letter = 'f',
                .help = "repeat until Ctrl-C, or until one of them is removed"},
               {.name = "watch", .letter = 'w', .help = "the same"},
               {.name = "details", .help = "of several, show all of each instead of a table"},
               {.name = "interval",
                .value_name = "TIME",
                .help = "interval of --follow, at least 50ms",
                .default_value = "1s"}};
    c.least = 1;
    c.most = any_number;
    c.examples = {{"eddy stats db", ""},
                  {"eddy stats '*'", "a table, with a line each"},
                  {"eddy stats -f '*'", ""},
                  {"eddy stats --json db", "an object"},
                  {"eddy stats --json 'api-*'", "an array"}};
    c.more =
        "With --json a single name prints an object; a pattern, or several words, an array. With\n"
        "--follow as well, each is one line. Counts and latencies are those since the start;\n"
        "`eddy top` shows rates.";
    c.run = stats;
    return c;
}

command top_command() {
    command c;
    c.name = "top";
    c.operands = "[pattern]";
    c.summary = "show the rates of running runtimes, again and again";
    c.flags = {{.name = "sort",
                .value_name = "KEY",
                .help = "order of the lines",
                .default_value = "requests",
                .choices = traffic_orders()},
               {.name = "once", .help = "print the rates of one interval, and end"},
               {.name = "interval",
                .value_name = "TIME",
                .help = "time between two counts, at least 50ms",
                .default_value = "1s"},
               {.name = "all", .letter = 'a', .help = "also those that do not run"}};
    c.most = 1;
    c.examples = {{"eddy top", ""},
                  {"eddy top --sort p99 'api-*'", ""},
                  {"eddy top --once --interval 10s --json", "for programs"}};
    c.more =
        "IN and OUT are messages a second: requests, commands, lines. Memory is what a type says\n"
        "it holds, such as a cache's data. Latencies are those since the start. On a terminal q\n"
        "ends it, and a letter chooses the order: n name, t type, c connections, r requests (IN),\n"
        "g messages, i bytes in, o bytes out, 5 p50, 9 p99, m memory, e errors. Elsewhere each\n"
        "count is a table, or with --json a line.";
    c.run = top;
    return c;
}

}  // namespace eddy::cli
