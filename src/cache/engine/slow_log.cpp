// Timing of commands with the monotonic clock.
#include "cache/engine/slow_log.hpp"

#include "cache/acl/secret_arguments.hpp"
#include "cache/catalog/command_table.hpp"
#include "cache/clients/session_extras.hpp"
#include "cache/engine/call.hpp"
#include "cache/engine/execution.hpp"

#include <algorithm>
#include <chrono>
#include <new>
#include <span>
#include <string>
#include <utility>

namespace eddy::cache {
namespace {

constexpr std::int64_t second_us = 1'000'000;

bool waits_for_key(const session& who) noexcept {
    return who.blocked && who.extras->waits_for == wait_kind::key;
}

// A transaction's commands have come to their end, though its session still waits for itself.
bool goes_on_later(const call& c) noexcept {
    return c.client.blocked && c.client.extras->waits_for == wait_kind::script && !c.in_exec;
}

std::string shortened(std::string_view arg) {
    constexpr std::size_t limit = slow_log::max_argument_bytes;
    if (arg.size() <= limit) return std::string(arg);
    return std::string(arg.substr(0, limit)) + "... (" + std::to_string(arg.size() - limit) +
           " more bytes)";
}

}  // namespace

void slow_log::configure(const slow_log_options& options) {
    slower_than_us_ = options.slower_than_us;
    max_records_ = options.max_len;
    event_from_ms_ = options.latency_threshold_ms;
    if (records_.size() > max_records_) records_.resize(max_records_);
    if (slower_than_us_ < 0 && event_from_ms_ == 0) {
        untimed_ = ~std::uint64_t{0};
    } else if (slower_than_us_ >= 0 && slower_than_us_ < times_all_below_us) {
        untimed_ = 0;
    } else {
        untimed_ = command_flag::fast | command_flag::brief;
    }
}

void slow_log::run_unless_skipped(call& c) {
    const bool is_timed = c.state.commands.count(*c.spec);
    if (is_timed || !skips(c.spec->flags, c.count))
        run(c);
    else
        call_function(c);
}

void slow_log::run(call& c) {
    using namespace std::chrono;
    const command_spec& spec = *c.spec;
    // EXEC leaves its last command's, which are gone by then.
    const std::string_view* const args = c.args;
    const std::size_t count = c.count;
    pretended_us_ = 0;
    if ((spec.flags & command_flag::has_forms) != 0) note_command(c);
    const auto began = steady_clock::now();
    call_function(c);
    c.spec = &spec;
    c.args = args;
    c.count = count;
    if (goes_on_later(c)) [[unlikely]]
        return note_late(c, began);
    const auto took = steady_clock::now() - began + microseconds(pretended_us_);
    c.state.commands.timed(c, static_cast<std::uint64_t>(duration_cast<nanoseconds>(took).count()));
    const std::int64_t took_us = duration_cast<microseconds>(took).count();
    // The commands of a transaction are kept each for itself.
    if (waits_for_key(c.client))
        c.client.extras->worked_us = took_us;
    else if ((spec.flags & command_flag::executes_queue) == 0)
        keep_if_slow(c, took_us);
    keep_event_of(c, took_us);
}

void slow_log::note_late(const call& c, std::chrono::steady_clock::time_point began) noexcept {
    try {
        late_ = late_command{c.spec, began, record_of(c)};
    } catch (const std::bad_alloc&) {
        // Then it is not timed.
        late_.reset();
    }
}

void slow_log::end_late(call& c) {
    using namespace std::chrono;
    if (!late_) return;
    late_command its = std::move(*late_);
    late_.reset();
    c.spec = its.spec;
    c.args = nullptr;
    c.count = 0;
    const auto took = steady_clock::now() - its.began;
    const std::int64_t took_us = duration_cast<microseconds>(took).count();
    c.state.commands.timed(c, static_cast<std::uint64_t>(duration_cast<nanoseconds>(took).count()));
    const bool is_slow = slower_than_us_ >= 0 && took_us >= slower_than_us_;
    try {
        if (is_slow && (its.spec->flags & command_flag::executes_queue) == 0)
            keep(std::move(its.slow), c.state.env.now_us / second_us, took_us);
        keep_event_of(c, took_us);
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): then it is not kept
    }
}

void slow_log::keep_waited(const call& c, std::int64_t served_us) {
    if (skips(c.spec->flags, c.count)) return;
    keep_if_slow(c, c.client.extras->worked_us + served_us);
}

void slow_log::keep_if_slow(const call& c, std::int64_t took_us) {
    if (max_records_ != 0 && slower_than_us_ >= 0 && took_us >= slower_than_us_)
        keep(record_of(c), c.state.env.now_us / second_us, took_us);
}

slow_log::record slow_log::record_of(const call& c) const {
    record made{};
    // A script's commands are nobody's, as in Redis.
    if (!c.in_script) made.address = c.client.address;
    made.client = c.client.name();
    const std::size_t whole = c.count > max_arguments ? max_arguments - 1 : c.count;
    const std::span<const std::string_view> args(c.args, c.count);
    for (std::size_t i = 0; i < whole; ++i) {
        made.args.push_back(is_secret(*c.spec, args, i) ? std::string(redacted)
                                                        : shortened(c.arg(i)));
    }
    if (whole < c.count) {
        made.args.push_back("... (" + std::to_string(c.count - whole) + " more arguments)");
    }
    return made;
}

void slow_log::keep(record made, std::int64_t at_s, std::int64_t took_us) {
    if (max_records_ == 0) return;
    made.id = next_id_++;
    made.at_s = at_s;
    made.took_us = took_us;
    records_.push_front(std::move(made));
    if (records_.size() > max_records_) records_.pop_back();
}

slow_log::event* slow_log::find_event(std::string_view name) noexcept {
    const auto found = std::ranges::find(events_, name, &event::name);
    return found == events_.end() ? nullptr : &*found;
}

void slow_log::keep_event_of(const call& c, std::int64_t took_us) {
    const std::int64_t took_ms = took_us / 1000;
    if (event_from_ms_ == 0 || took_ms < event_from_ms_) return;
    const bool fast = (c.spec->flags & command_flag::fast) != 0;
    keep_event(fast ? "fast-command" : "command", c.state.env.now_us / second_us, took_ms);
}

void slow_log::keep_event(std::string_view name, std::int64_t at_s, std::int64_t took_ms) {
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
