// The records of SLOWLOG, COMMANDLOG and LATENCY.
#include "cache/engine/slow_log.hpp"

#include "cache/acl/secret_arguments.hpp"
#include "cache/catalog/command_table.hpp"
#include "cache/engine/options.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace eddy::cache {
namespace {

constexpr std::int64_t second_us = 1'000'000;

std::string shortened(std::string_view arg) {
    constexpr std::size_t limit = slow_log::max_argument_bytes;
    if (arg.size() <= limit) return std::string(arg);
    return std::string(arg.substr(0, limit)) + "... (" + std::to_string(arg.size() - limit) +
           " more bytes)";
}

// SIZE_MAX: nothing is recorded.
std::size_t threshold_of(const size_log_options& of) noexcept {
    return of.larger_than < 0 || of.max_len == 0 ? SIZE_MAX
                                                 : static_cast<std::size_t>(of.larger_than);
}

}  // namespace

void slow_log::configure(const slow_log_options& options) {
    slower_than_us_ = options.slower_than_us;
    event_from_ms_ = options.latency_threshold_ms;
    large_from_ = {threshold_of(options.requests), threshold_of(options.replies)};
    log_of(command_log::slow).max_records = options.max_len;
    log_of(command_log::large_request).max_records = options.requests.max_len;
    log_of(command_log::large_reply).max_records = options.replies.max_len;
    for (log& each : logs_)
        if (each.records.size() > each.max_records) each.records.resize(each.max_records);
    const bool keeps_sizes = is_large({SIZE_MAX - 1, SIZE_MAX - 1});
    if (slower_than_us_ < 0 && event_from_ms_ == 0 && !keeps_sizes) {
        untimed_ = ~std::uint64_t{0};
    } else if (slower_than_us_ >= 0 && slower_than_us_ < times_all_below_us) {
        untimed_ = 0;
    } else {
        untimed_ = command_flag::fast | command_flag::brief;
    }
}

slow_log::record slow_log::record_of(const command_spec& what,
                                     std::span<const std::string_view> args) {
    record made{};
    const std::size_t whole = args.size() > max_arguments ? max_arguments - 1 : args.size();
    for (std::size_t i = 0; i < whole; ++i) {
        made.args.push_back(is_secret(what, args, i) ? std::string(redacted) : shortened(args[i]));
    }
    if (whole < args.size()) {
        made.args.push_back("... (" + std::to_string(args.size() - whole) + " more arguments)");
    }
    return made;
}

void slow_log::keep_in(command_log which, record made, std::int64_t now_us, std::int64_t amount) {
    log& to = log_of(which);
    if (to.max_records == 0) return;
    made.id = to.next_id++;
    made.at_s = now_us / second_us;
    made.amount = amount;
    to.records.push_front(std::move(made));
    if (to.records.size() > to.max_records) to.records.pop_back();
}

void slow_log::keep_large(record made, std::int64_t now_us, command_sizes its) {
    const bool has_large_reply = its.reply >= large_from_.reply;
    if (its.request >= large_from_.request) {
        record copy = has_large_reply ? made : std::move(made);
        keep_in(command_log::large_request, std::move(copy), now_us,
                static_cast<std::int64_t>(its.request));
    }
    if (has_large_reply)
        keep_in(command_log::large_reply, std::move(made), now_us,
                static_cast<std::int64_t>(its.reply));
}

slow_log::event* slow_log::find_event(std::string_view name) noexcept {
    const auto found = std::ranges::find(events_, name, &event::name);
    return found == events_.end() ? nullptr : &*found;
}

void slow_log::keep_event(const command_spec& what, std::int64_t now_us, std::int64_t took_us) {
    const std::int64_t took_ms = took_us / 1000;
    if (event_from_ms_ == 0 || took_ms < event_from_ms_) return;
    const std::string_view name =
        (what.flags & command_flag::fast) != 0 ? "fast-command" : "command";
    const std::int64_t at_s = now_us / second_us;
    event* its = find_event(name);
    if (its == nullptr) its = &events_.emplace_back(event{name, {}, 0});
    its->longest_ms = std::max(its->longest_ms, took_ms);
    // One sample a second, the longest.
    if (!its->samples.empty() && its->samples.back().at_s == at_s) {
        sample& last = its->samples.back();
        last.took_ms = std::max(last.took_ms, took_ms);
        return;
    }
    its->samples.push_back({at_s, took_ms});
    if (its->samples.size() > max_samples) its->samples.pop_front();
}

}  // namespace eddy::cache
