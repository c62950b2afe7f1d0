// SLOWLOG, COMMANDLOG and LATENCY.
#include "cache/catalog/commands.hpp"
#include "cache/engine/call.hpp"

#include <algorithm>
#include <cstdio>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace eddy::cache::commands {

static void reply_record(call& c, const slow_log::record& of) {
    c.reply.array(6);
    c.reply.integer(static_cast<std::int64_t>(of.id));
    c.reply.integer(of.at_s);
    c.reply.integer(of.amount);
    c.reply.array(of.args.size());
    for (const std::string& each : of.args) c.reply.bulk(each);
    c.reply.bulk(of.address);
    c.reply.bulk(of.client);
}

static void reply_records(call& c, const std::deque<slow_log::record>& records, std::size_t count) {
    count = std::min(count, records.size());
    c.reply.array(count);
    for (std::size_t i = 0; i < count; ++i) reply_record(c, records[i]);
}

// The number of records in arg(2), SIZE_MAX for -1; none with the error replied.
static std::optional<std::size_t> record_count(call& c) {
    const auto given =
        c.integer_in(2, -1, INT64_MAX, "ERR count should be greater than or equal to -1");
    if (!given) return std::nullopt;
    return static_cast<std::size_t>(*given);
}

void slowlog_get(call& c) {
    if (c.count > 3) return c.wrong_subcommand();
    std::size_t count = 10;
    if (c.count == 3) {
        const auto given = record_count(c);
        if (!given) return;
        count = *given;
    }
    reply_records(c, c.state.slow.records(), count);
}

// The log that an argument names; none with the error replied.
static std::optional<command_log> log_argument(call& c, std::size_t i) {
    const std::string_view word = c.arg(i);
    if (is_word(word, "slow")) return command_log::slow;
    if (is_word(word, "large-request")) return command_log::large_request;
    if (is_word(word, "large-reply")) return command_log::large_reply;
    c.error("ERR type should be one of the following: slow, large-request, large-reply");
    return std::nullopt;
}

void commandlog_get(call& c) {
    const auto count = record_count(c);
    if (!count) return;
    const auto which = log_argument(c, 3);
    if (which) reply_records(c, c.state.slow.records(*which), *count);
}

void commandlog_len(call& c) {
    const auto which = log_argument(c, 2);
    if (which) c.reply.integer(static_cast<std::int64_t>(c.state.slow.records(*which).size()));
}

void commandlog_reset(call& c) {
    const auto which = log_argument(c, 2);
    if (!which) return;
    c.state.slow.clear(*which);
    c.reply.ok();
}

void commandlog_help(call& c) {
    c.help({"COMMANDLOG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
            "GET <count> <log>", "    The newest entries of SLOW, LARGE-REQUEST or LARGE-REPLY.",
            "    -1: all. Each: number, time, microseconds or bytes, arguments, client's address",
            "    and name.", "LEN <log>", "    How many entries there are.", "RESET <log>",
            "    Drop them.", "HELP", "    Print this help."});
}

void latency_reset(call& c) {
    auto& events = c.state.slow.events();
    const std::size_t before = events.size();
    std::erase_if(events, [&c](const slow_log::event& each) {
        bool wanted = c.count == 2;
        for (std::size_t i = 2; i < c.count; ++i) wanted |= c.arg(i) == each.name;
        return wanted;
    });
    c.reply.integer(static_cast<std::int64_t>(before - events.size()));
}

void latency_latest(call& c) {
    c.reply.array(c.state.slow.events().size());
    for (const slow_log::event& each : c.state.slow.events()) {
        c.reply.array(4);
        c.reply.bulk(each.name);
        c.reply.integer(each.samples.back().at_s);
        c.reply.integer(each.samples.back().took_ms);
        c.reply.integer(each.longest_ms);
    }
}

void latency_history(call& c) {
    const slow_log::event* const its = c.state.slow.find_event(c.arg(2));
    if (its == nullptr) return c.reply.array(0);
    c.reply.array(its->samples.size());
    for (const slow_log::sample& each : its->samples) {
        c.reply.array(2);
        c.reply.integer(each.at_s);
        c.reply.integer(each.took_ms);
    }
}

// A line a sample: how long ago, how long it took, and a bar.
void latency_graph(call& c) {
    const slow_log::event* const its = c.state.slow.find_event(c.arg(2));
    if (its == nullptr) {
        const std::string_view name = c.arg(2);
        return c.error("ERR No samples available for event '" +
                       std::string(name.substr(0, name.find('\0'))) + "'");
    }
    constexpr std::int64_t width = 40;
    std::string text(its->name);
    const auto took = std::ranges::minmax(its->samples, {}, &slow_log::sample::took_ms);
    text += " - high " + std::to_string(took.max.took_ms) + " ms, low " +
            std::to_string(took.min.took_ms) + " ms (all time high " +
            std::to_string(its->longest_ms) + " ms)\n";
    const std::int64_t now_s = c.state.data.env.now_us / 1'000'000;
    for (const slow_log::sample& each : its->samples) {
        char head[64];
        std::snprintf(head, sizeof head, "%8lld s ago %8lld ms ",
                      static_cast<long long>(now_s - each.at_s),
                      static_cast<long long>(each.took_ms));
        text += head;
        const std::int64_t bar = each.took_ms * width / std::max<std::int64_t>(its->longest_ms, 1);
        text.append(static_cast<std::size_t>(std::max<std::int64_t>(bar, 1)), '#');
        text += '\n';
    }
    c.reply.verbatim("txt", text);
}

void latency_doctor(call& c) {
    if (c.state.settings.options.slow_log.latency_threshold_ms == 0) {
        return c.reply.verbatim(
            "txt",
            "Nothing is measured: set a threshold in milliseconds with CONFIG SET "
            "latency-monitor-threshold.\n");
    }
    std::string text;
    for (const slow_log::event& each : c.state.slow.events()) {
        text += std::string(each.name) + ": " + std::to_string(each.samples.size()) +
                " samples, the longest took " + std::to_string(each.longest_ms) +
                " ms. SLOWLOG GET tells which commands they were.\n";
    }
    if (text.empty()) text = "Nothing took as long as the threshold.\n";
    c.reply.verbatim("txt", text);
}

// Calls up to 1, 2, 4, ... microseconds, added up, as far as the last of them need.
void latency_histogram(call& c) {
    std::map<std::string_view, const command_stats::counts*> wanted;
    c.state.commands.for_each([&](std::string_view name, const command_stats::counts& its) {
        bool is_wanted = c.count == 2;
        for (std::size_t i = 2; i < c.count; ++i) {
            const std::string_view asked = c.arg(i);
            is_wanted |= is_word(asked, name) || is_word(asked, name.substr(0, name.find('|')));
        }
        if (is_wanted && its.latency != nullptr) wanted.emplace(name, &its);
    });
    constexpr std::uint64_t ns_a_us = 1000;
    c.reply.map(wanted.size());
    for (const auto& [name, its] : wanted) {
        std::vector<std::pair<std::int64_t, std::int64_t>> steps;
        std::uint64_t below = 0;
        for (std::uint64_t us = 1; below < its->latency->count(); us *= 2) {
            const bool is_last = us * ns_a_us > histogram::largest_value;
            const std::uint64_t now =
                is_last ? its->latency->count() : its->latency->count_up_to(us * ns_a_us);
            if (now > below)
                steps.emplace_back(static_cast<std::int64_t>(us), static_cast<std::int64_t>(now));
            below = now;
        }
        c.reply.bulk(name);
        c.reply.map(2);
        c.reply.bulk("calls");
        c.reply.integer(static_cast<std::int64_t>(its->latency->count()));
        c.reply.bulk("histogram_usec");
        c.reply.map(steps.size());
        for (const auto& [us, calls] : steps) {
            c.reply.integer(us);
            c.reply.integer(calls);
        }
    }
}

void slowlog_len(call& c) {
    c.reply.integer(static_cast<std::int64_t>(c.state.slow.records().size()));
}

void slowlog_reset(call& c) {
    c.state.slow.clear();
    c.reply.ok();
}

void slowlog_help(call& c) {
    c.help({"SLOWLOG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:", "GET [<count>]",
            "    The newest entries, 10 if no count is given; -1: all.",
            "    Each: number, time, microseconds, arguments, client's address and name.", "LEN",
            "    How many entries there are.", "RESET", "    Drop them.", "HELP",
            "    Print this help."});
}

void latency_help(call& c) {
    c.help({"LATENCY <subcommand> [<arg> [value] [opt] ...]. Subcommands are:", "DOCTOR",
            "    What was seen, in words.", "GRAPH <event>", "    The event's samples as bars.",
            "HISTOGRAM [<command> ...]",
            "    How many of the timed calls took up to 1, 2, 4, ... microseconds.",
            "HISTORY <event>", "    Its samples: time and milliseconds.", "LATEST",
            "    The last sample of each event, and its longest.", "RESET [<event> ...]",
            "    Drop the samples of the events, or of all.", "HELP", "    Print this help."});
}

}  // namespace eddy::cache::commands
