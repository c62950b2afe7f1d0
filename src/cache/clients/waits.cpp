// Begin and end of waits.
#include "cache/clients/waits.hpp"

#include "cache/clients/closing.hpp"
#include "cache/clients/tracking.hpp"
#include "cache/persistence/propagation.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <new>
#include <string>

namespace eddy::cache {
std::optional<std::int64_t> deadline_argument(call& c, std::size_t i) {
    const auto seconds = parse_float(c.arg(i));
    if (!seconds) {
        c.error("ERR timeout is not a float or out of range");
        return std::nullopt;
    }
    const long double milliseconds = *seconds * 1000;
    if (milliseconds > static_cast<long double>(INT64_MAX)) {
        c.error("ERR timeout is out of range");
        return std::nullopt;
    }
    const long double rounded = std::ceil(milliseconds);
    if (rounded < 0) {
        c.error("ERR timeout is negative");
        return std::nullopt;
    }
    if (rounded == 0) return client_session::no_deadline;
    const auto added_ms =
        static_cast<std::int64_t>(std::min(rounded, static_cast<long double>(INT64_MAX / 2)));
    std::int64_t at_ms;
    if (rounded > static_cast<long double>(INT64_MAX / 2) ||
        __builtin_add_overflow(added_ms, c.now_ms(), &at_ms)) {
        if (rounded > static_cast<long double>(INT64_MAX - c.now_ms())) {
            c.error("ERR timeout is out of range");
            return std::nullopt;
        }
        return client_session::no_deadline;
    }
    std::int64_t at_us;
    if (__builtin_mul_overflow(added_ms, std::int64_t{1000}, &at_us) ||
        __builtin_add_overflow(at_us, c.state.data.env.steady_us, &at_us)) {
        return client_session::no_deadline;
    }
    return at_us;
}

std::int64_t deadline_after(const call& c, std::int64_t timeout_ms) noexcept {
    std::int64_t deadline_us;
    if (timeout_ms == 0 || __builtin_mul_overflow(timeout_ms, std::int64_t{1000}, &deadline_us) ||
        __builtin_add_overflow(deadline_us, c.state.data.env.steady_us, &deadline_us)) {
        return client_session::no_deadline;
    }
    return deadline_us;
}

std::optional<std::int64_t> milliseconds_deadline_argument(call& c, std::size_t i) {
    const auto timeout_ms = c.integer(i, "ERR timeout is not an integer or out of range");
    if (!timeout_ms) return std::nullopt;
    if (*timeout_ms < 0) {
        c.error("ERR timeout is negative");
        return std::nullopt;
    }
    if (*timeout_ms > std::numeric_limits<std::int64_t>::max() - c.now_ms()) {
        c.error("ERR timeout is out of range");
        return std::nullopt;
    }
    return deadline_after(c, *timeout_ms);
}

bool takes_no_reply(client_session& who) noexcept {
    const std::uint16_t flags =
        who.special & (client_session::reply_off | client_session::reply_skip);
    who.special &= static_cast<std::uint16_t>(~client_session::reply_skip);
    return flags != 0;
}

void count_failure(engine_state& s, const client_session& who, std::string_view text) noexcept {
    s.count_error(text);
    s.commands.failed(who.last_command);
}

void finish_wait(engine_state& s, client_session& who) {
    forget_wait(s, who);
    who.wake();
}

bool may_wait(const call& c) noexcept {
    return !c.in_exec && (c.client.special & client_session::master) == 0;
}

void wait_for_keys(call& c, std::size_t first, std::size_t keys, value_type type,
                   std::int64_t deadline_us, serve_function serve, wait_until until) {
    engine_state& s = c.state;
    session_extras& extras = extras_of(c.client);
    const std::size_t cost = command_queue::cost(c.args, c.count) * 2 + keys * name_set::overhead;
    if (cost > s.settings.options.clients.max_names) {
        return c.error("ERR too many keys to wait for: a client may wait for " +
                       std::to_string(s.settings.options.clients.max_names) +
                       " bytes of keys at most");
    }
    extras.worked_us = 0;
    extras.waiting = command_queue();
    extras.waiting.add(*c.spec, c.args, c.count);
    for (std::size_t i = first; i < first + keys; ++i) {
        const scoped_name key{c.client.db, c.arg(i)};
        name_topic::member* const added = s.clients.awaited.add(extras.keys, c.client, key);
        if (added == nullptr || until == wait_until::changed) continue;
        added->flag = true;
        added->of->has_flags = true;
    }
    extras.waits_for = wait_kind::key;
    extras.deadline_us = deadline_us;
    extras.serve = serve;
    extras.awaited_type = type;
    extras.first_key = first;
    extras.ordered_keys = until == wait_until::changed ? keys : 0;
    c.client.blocked = true;
    ++s.clients.blocked_sessions;
    s.note_observers();
}

void note_ready(engine_state& s, scoped_name key) {
    name_topic* const topic = s.clients.awaited.find(key);
    if (topic == nullptr || topic->noted) return;
    s.clients.ready_keys.push_back({key.scope, std::string(key.text)});
    topic->noted = true;
    s.clients.has_effects = true;
}

void note_all_ready(engine_state& s, unsigned database) {
    if ((s.clients.observers & observers::waiters) == 0) return;
    s.clients.awaited.for_each([&](name_topic& topic) {
        if (topic.scope == database) note_ready(s, {topic.scope, topic.name});
    });
}

bool is_client_paused(engine_state& s) {
    if (s.clients.paused_until_us == 0) return false;
    if (s.data.env.steady_us >= s.clients.paused_until_us) end_pause(s);
    return s.clients.paused_until_us != 0;
}

void wait_for_pause_end(engine_state& s, client_session& who) {
    session_extras& extras = extras_of(who);
    extras.waits_for = wait_kind::pause;
    extras.deadline_us =
        s.clients.paused_until_us != 0 ? s.clients.paused_until_us : client_session::no_deadline;
    who.blocked = true;
    ++s.clients.blocked_sessions;
}

namespace {

void end_pause_waits(engine_state& s) {
    if (s.clients.paused_until_us == 0 && s.clients.writes_held == 0)
        s.clients.slow_path &= static_cast<std::uint16_t>(~slow_path::pause);
    s.data.env.expired = fate_of_expired(s);
    // Sessions that still have to wait block again when they are executed.
    s.clients.sessions.for_each([&](client_session& each) {
        if (each.extras && each.extras->waits_for == wait_kind::pause) finish_wait(s, each);
    });
    s.note_obstacle_ended();
}

}  // namespace

void begin_pause(engine_state& s) {
    s.clients.slow_path |= slow_path::pause;
    s.data.env.expired = fate_of_expired(s);
}

void end_pause(engine_state& s) {
    s.clients.paused_until_us = 0;
    end_pause_waits(s);
}

void hold_writes(engine_state& s, write_hold why) noexcept {
    s.clients.writes_held |= static_cast<std::uint8_t>(why);
    begin_pause(s);
}

void let_write(engine_state& s, write_hold why) noexcept {
    if (!holds_writes(s, why)) return;
    s.clients.writes_held &= static_cast<std::uint8_t>(~static_cast<unsigned>(why));
    end_pause_waits(s);
}

bool holds_writes(const engine_state& s, write_hold why) noexcept {
    return (s.clients.writes_held & static_cast<std::uint8_t>(why)) != 0;
}

void wait_for_snapshot(engine_state& s, client_session& who) {
    session_extras& extras = extras_of(who);
    extras.waits_for = wait_kind::snapshot;
    extras.deadline_us = client_session::no_deadline;
    who.blocked = true;
    s.clients.some_wait_for_snapshot = true;
}

void end_snapshot_waits(engine_state& s) {
    s.clients.some_wait_for_snapshot = false;
    s.clients.sessions.for_each([&](client_session& each) {
        if (each.extras && each.extras->waits_for == wait_kind::snapshot) finish_wait(s, each);
    });
}

void wait_for_room(client_session& who, std::int64_t until_us) {
    session_extras& extras = extras_of(who);
    extras.waits_for = wait_kind::room;
    extras.deadline_us = until_us;
    who.blocked = true;
}

void end_room_waits(engine_state& s) noexcept {
    s.clients.sessions.for_each([&](client_session& each) {
        if (each.extras && each.extras->waits_for == wait_kind::room) finish_wait(s, each);
    });
}

void wait_for_script(engine_state& s, client_session& who) {
    session_extras& extras = extras_of(who);
    extras.script_wait = s.clients.script_waits_begun + 1;
    s.clients.script_waits.emplace(extras.script_wait, &who);
    ++s.clients.script_waits_begun;
    extras.waits_for = wait_kind::script_of_another;
    extras.deadline_us = client_session::no_deadline;
    who.blocked = true;
}

void end_script_waits(engine_state& s, std::size_t most) noexcept {
    for (; most > 0 && !s.clients.script_waits.empty(); --most) {
        client_session& oldest = *s.clients.script_waits.begin()->second;
        finish_wait(s, oldest);
    }
}

// One at first: its command may be a script that takes long, and then the others would wait again,
// behind later ones.
void end_script_waits_in_turn(engine_state& s) noexcept {
    constexpr std::size_t most_at_once = 64;
    end_script_waits(s, s.clients.script_waits_ended_at_once);
    s.clients.script_waits_ended_at_once =
        std::min(2 * s.clients.script_waits_ended_at_once, most_at_once);
}

void wait_for_migration(client_session& who) {
    session_extras& extras = extras_of(who);
    extras.waits_for = wait_kind::migration;
    extras.deadline_us = client_session::no_deadline;
    who.blocked = true;
}

void end_migration_waits(engine_state& s) noexcept {
    s.clients.sessions.for_each([&](client_session& each) {
        if (each.extras && each.extras->waits_for == wait_kind::migration) finish_wait(s, each);
    });
}

void wait_for_save(call& c) {
    session_extras& extras = extras_of(c.client);
    extras.waits_for = wait_kind::save;
    extras.deadline_us = client_session::no_deadline;
    c.client.blocked = true;
}

void end_save_waits(engine_state& s, std::string_view fault) {
    s.clients.sessions.for_each([&](client_session& each) {
        if (!each.extras || each.extras->waits_for != wait_kind::save) return;
        try {
            if (!takes_no_reply(each)) {
                resp::reply_writer reply(each.extras->outbox, each.protocol);
                if (fault.empty()) {
                    reply.ok();
                } else {
                    reply.error("ERR " + std::string(fault));
                    count_failure(s, each, "ERR");
                }
            }
        } catch (const std::bad_alloc&) {
            each.closing = true;
        }
        finish_wait(s, each);
        if (each.closing) retire(s, each);
    });
}

void wait_for_server(call& c) {
    session_extras& extras = extras_of(c.client);
    extras.waits_for = wait_kind::server;
    extras.deadline_us = client_session::no_deadline;
    c.client.blocked = true;
}

namespace {

// An empty error means OK.
void answer_with(engine_state& s, std::uint64_t number, const std::string& error) {
    client_session* const who = find_session(s, number);
    if (who == nullptr || !who->blocked || who->extras->waits_for != wait_kind::server) return;
    if (!takes_no_reply(*who)) {
        resp::reply_writer reply(who->extras->outbox, who->protocol);
        if (error.empty()) {
            reply.ok();
        } else {
            reply.error(error);
            count_failure(s, *who, error);
        }
    }
    finish_wait(s, *who);
}

}  // namespace

void answer(engine_state& s, std::uint64_t number, std::string_view fault) {
    answer_with(s, number, fault.empty() ? std::string() : "ERR " + std::string(fault));
}

void answer_error(engine_state& s, std::uint64_t number, const std::string& error) {
    answer_with(s, number, error);
}

void wait_for_time(call& c, std::int64_t until_us) {
    session_extras& extras = extras_of(c.client);
    extras.waits_for = wait_kind::time;
    extras.deadline_us = until_us;
    c.client.blocked = true;
}

void unblock_all(engine_state& s, std::string_view why) {
    s.clients.sessions.for_each([&](client_session& each) {
        if (!each.blocked || (each.extras->waits_for != wait_kind::key &&
                              each.extras->waits_for != wait_kind::replicas)) {
            return;
        }
        if (!takes_no_reply(each)) {
            resp::reply_writer(each.extras->outbox, each.protocol).error(why);
            count_failure(s, each, why);
        }
        each.closing = true;
        finish_wait(s, each);
        retire(s, each);
    });
}

void forget_wait(engine_state& s, client_session& who) {
    if (!who.blocked) return;
    session_extras& extras = *who.extras;
    if (extras.waits_for == wait_kind::key) {
        --s.clients.blocked_sessions;
        s.clients.awaited.remove_all(extras.keys);
        s.note_observers();
    } else if (extras.waits_for == wait_kind::pause) {
        --s.clients.blocked_sessions;
    } else if (extras.waits_for == wait_kind::script_of_another) {
        s.clients.script_waits.erase(extras.script_wait);
    } else if (extras.waits_for == wait_kind::replicas) {
        --s.clients.blocked_sessions;
        std::erase(s.clients.copy_waits, &who);
    }
    extras.waits_for = wait_kind::none;
    extras.deadline_us = extras.retry_us = client_session::no_deadline;
    extras.waiting = command_queue();
    who.blocked = false;
}

}  // namespace eddy::cache
