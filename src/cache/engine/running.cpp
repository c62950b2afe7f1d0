// Commands under the monotonic clock.
#include "cache/engine/running.hpp"

#include "cache/clients/session_extras.hpp"

#include <chrono>
#include <new>
#include <utility>

namespace eddy::cache {
namespace {

using std::chrono::steady_clock;

bool waits_for_key(const client_session& who) noexcept {
    return who.blocked && who.extras->waits_for == wait_kind::key;
}

// A transaction's commands have come to their end, though its session still waits for itself.
bool goes_on_later(const call& c) noexcept {
    return c.client.blocked && c.client.extras->waits_for == wait_kind::script && !c.in_exec;
}

bool executes_queue(const call& c) noexcept {
    return (c.spec->flags & command_flag::executes_queue) != 0;
}

std::int64_t microseconds_of(steady_clock::duration took) noexcept {
    return std::chrono::duration_cast<std::chrono::microseconds>(took).count();
}

void count_time(const call& c, steady_clock::duration took) noexcept {
    const auto took_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(took).count();
    c.state.commands.timed(*c.spec, c.all_args(), static_cast<std::uint64_t>(took_ns));
}

void keep_if_slow(const call& c, std::int64_t took_us) {
    slow_log& slow = c.state.slow;
    if (slow.is_slow(took_us) && slow.keeps_records())
        slow.keep(record_of(c), c.state.data.env.now_us, took_us);
}

void note_late(const call& c, steady_clock::time_point began) noexcept {
    try {
        c.state.slow.late = slow_log::late_command{c.spec, began, record_of(c), c.request_bytes()};
    } catch (const std::bad_alloc&) {
        // Then it is not timed.
        c.state.slow.late.reset();
    }
}

}  // namespace

slow_log::record record_of(const call& c) {
    slow_log::record made = slow_log::record_of(*c.spec, c.all_args());
    // A script's commands do not count for a client, as in Redis.
    if (!c.in_script) made.address = c.client.address;
    made.client = c.client.name();
    return made;
}

command_sizes sizes_of(const call& c) noexcept {
    constexpr auto unanswered = client_session::reply_off | client_session::reply_skip;
    const bool is_answered = (c.client.special & unanswered) == 0;
    return {c.in_script ? 0 : c.request_bytes(),
            is_answered ? c.reply.buffer().size() - c.reply_begin : 0};
}

void keep_sizes(const call& c) {
    // Commands of a master or a file are not a client's.
    if ((c.client.special & client_session::master) != 0) return;
    const command_sizes its = sizes_of(c);
    slow_log& log = c.state.slow;
    if (log.is_large(its)) log.keep_large(record_of(c), c.state.data.env.now_us, its);
}

void note_command(call& c) noexcept {
    const command_spec* noted = c.spec;
    if (noted != nullptr && (noted->flags & command_flag::has_forms) != 0 && c.count > 1) {
        if (const command_spec* const form = find_form(*noted, c.arg(1))) noted = form;
    }
    c.client.last_command = noted != nullptr ? noted->name.data() : "NULL";
}

void drop_empty_values(keyspace& in, std::span<const std::string_view> args) noexcept {
    for (const std::string_view key : args) {
        const std::uint64_t hash = in.hash(key);
        keyspace::slot* const place = in.table().find(key, hash);
        if (place == nullptr) continue;
        const entry& its = *keyspace::at(place);
        if (its.type != value_type::stream && elements_of(its) == 0) in.remove(place, hash);
    }
}

void run_and_count(call& c) {
    const bool is_timed = c.state.commands.count(*c.spec);
    const bool is_exec = executes_queue(c);
    if (is_timed || !c.state.slow.skips(c.spec->flags, c.count))
        run_timed(c);
    else
        call_function(c);
    // The commands of a transaction are kept each for itself, and EXEC's arguments are gone.
    if (is_exec || c.client.blocked) return;
    keep_if_large(c);
}

void run_timed(call& c) {
    slow_log& slow = c.state.slow;
    const command_spec& spec = *c.spec;
    // EXEC leaves its last command's, which are gone by then.
    const std::string_view* const args = c.args;
    const std::size_t count = c.count;
    slow.pretend(0);
    if ((spec.flags & command_flag::has_forms) != 0) note_command(c);
    const auto began = steady_clock::now();
    call_function(c);
    c.spec = &spec;
    c.args = args;
    c.count = count;
    if (goes_on_later(c)) [[unlikely]]
        return note_late(c, began);
    const auto took = steady_clock::now() - began + std::chrono::microseconds(slow.pretended_us());
    count_time(c, took);
    const std::int64_t took_us = microseconds_of(took);
    // The commands of a transaction are kept each for itself.
    if (waits_for_key(c.client))
        c.client.extras->worked_us = took_us;
    else if (!executes_queue(c))
        keep_if_slow(c, took_us);
    slow.keep_event(*c.spec, c.state.data.env.now_us, took_us);
}

void end_late(call& c, std::size_t reply_bytes) {
    slow_log& slow = c.state.slow;
    if (!slow.late) return;
    slow_log::late_command its = std::move(*slow.late);
    slow.late.reset();
    c.spec = its.spec;
    c.args = nullptr;
    c.count = 0;
    const auto took = steady_clock::now() - its.began;
    const std::int64_t took_us = microseconds_of(took);
    count_time(c, took);
    try {
        const bool is_exec = executes_queue(c);
        if (slow.is_large({its.request_bytes, reply_bytes}) && !is_exec)
            slow.keep_large(its.slow, c.state.data.env.now_us, {its.request_bytes, reply_bytes});
        if (slow.is_slow(took_us) && !is_exec)
            slow.keep(std::move(its.slow), c.state.data.env.now_us, took_us);
        slow.keep_event(*c.spec, c.state.data.env.now_us, took_us);
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): then it is not kept
    }
}

void keep_waited(const call& c, std::int64_t served_us) {
    if (c.state.slow.skips(c.spec->flags, c.count)) return;
    keep_if_slow(c, c.client.extras->worked_us + served_us);
}

}  // namespace eddy::cache
