// Beginning, serving and ending of waits.
#include "cache/clients/waits.hpp"

#include "cache/acl/access.hpp"
#include "cache/catalog/command_table.hpp"
#include "cache/clients/messages.hpp"
#include "cache/clients/tracking.hpp"
#include "cache/engine/execution.hpp"
#include "cache/engine/server_host.hpp"
#include "cache/persistence/propagation.hpp"
#include "cache/read_through/read_through.hpp"
#include "cache/replication/replication.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <new>
#include <span>
#include <utility>

namespace eddy::cache {
namespace {

// Whether the reply to the command that waited is not wanted.
bool takes_no_reply(session& who) noexcept {
    const std::uint16_t flags = who.special & (session::reply_off | session::reply_skip);
    who.special &= static_cast<std::uint16_t>(~session::reply_skip);
    return flags != 0;
}

std::int64_t clock_us() noexcept {
    using namespace std::chrono;
    return duration_cast<microseconds>(steady_clock::now().time_since_epoch()).count();
}

// For SLOWLOG, where nothing has become of a wait for a key.
void keep_if_slow(engine::state& s, session& who) {
    resp::reply_writer reply(who.extras->outbox, who.protocol);
    call c{s, who, reply, &s.database(who.db)};
    who.extras->waiting.for_each(
        [&](const command_spec& spec, std::span<const std::string_view> args) {
            c.spec = &spec;
            c.args = args.data();
            c.count = args.size();
            s.slow.keep_waited(c, 0);
        });
}

// Counts the error that ends a wait, for the command that waited.
void count_failure(engine::state& s, const session& who, std::string_view text) noexcept {
    s.count_error(text);
    s.commands.failed(who.last_command);
}

// The session waits no more. Its output, if any, must be there: it is woken.
void finish(engine::state& s, session& who) {
    forget_wait(s, who);
    who.wake();
}

// As if the command came anew, once the key is ready: of its keys the first that is there is
// served.
bool serve_in_order(call& c, const session_extras& extras, std::span<const std::string_view> keys,
                    std::string_view ready) {
    const auto has_type = [&](const call::slot* place) {
        return keyspace::at(place)->type == extras.awaited_type;
    };
    const call::slot* const place = c.keys->find(ready);
    if (place == nullptr || !has_type(place)) return false;
    for (const std::string_view each : keys) {
        if (each == ready) break;
        const call::slot* const earlier = c.keys->find(each);
        if (earlier == nullptr) continue;
        if (has_type(earlier)) return extras.serve(c, each);
        c.wrong_type();
        return true;
    }
    return extras.serve(c, ready);
}

// Runs the waiting command's `serve` for a key. What it causes for the session itself comes behind
// the reply.
bool serve_one(engine::state& s, session& who, std::string_view key) {
    session_extras& extras = *who.extras;
    session* const outer = std::exchange(s.executing, &who);
    byte_buffer outer_pushes = std::move(s.own_pushes);
    resp::reply_writer reply(extras.outbox, who.protocol);
    const std::size_t reply_begin = extras.outbox.size();
    bool served = false;
    try {
        call c{s, who, reply, &s.database(who.db)};
        c.reply_begin = reply_begin;
        extras.waiting.for_each([&](const command_spec& spec,
                                    std::span<const std::string_view> args) {
            c.spec = &spec;
            c.args = args.data();
            c.count = args.size();
            c.hash = s.env.hash(args[1]);
            // What its user may do can have changed meanwhile.
            if (!who.unlimited && !permits(c)) {
                s.commands.rejected(c);
                served = true;
                return;
            }
            const unsigned database = c.keys->number();
            const expiry_scope expiry(c);
            recording record(s, spec);
            const bool is_timed = !s.slow.skips(spec.flags, args.size());
            const std::int64_t began_us = is_timed ? clock_us() : 0;
            try {
                served =
                    extras.ordered_keys == 0
                        ? extras.serve(c, key)
                        : serve_in_order(c, extras,
                                         args.subspan(extras.first_key, extras.ordered_keys), key);
            } catch (const std::bad_alloc&) {
                drop_empty_values(*c.keys, args);
                throw;
            }
            if (served && is_timed) s.slow.keep_waited(c, clock_us() - began_us);
            record.end(args, database);
        });
        if (served && takes_no_reply(who)) extras.outbox.truncate(c.reply_begin);
        extras.outbox.append(s.own_pushes.text());
        // Without a reply nothing else wakes it.
        if (!served && !s.own_pushes.empty()) who.wake();
    } catch (const std::bad_alloc&) {
        // It is the one to be closed, not who has made the key ready.
        extras.outbox.truncate(reply_begin);
        served = true;
        who.closing = true;
    }
    s.own_pushes = std::move(outer_pushes);
    s.executing = outer;
    if (!served) return false;
    finish(s, who);
    check_output(s, who);
    return true;
}

}  // namespace

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
    if (rounded == 0) return session::no_deadline;
    const auto added_ms =
        static_cast<std::int64_t>(std::min(rounded, static_cast<long double>(INT64_MAX / 2)));
    std::int64_t at_ms;
    if (rounded > static_cast<long double>(INT64_MAX / 2) ||
        __builtin_add_overflow(added_ms, c.now_ms(), &at_ms)) {
        if (rounded > static_cast<long double>(INT64_MAX - c.now_ms())) {
            c.error("ERR timeout is out of range");
            return std::nullopt;
        }
        return session::no_deadline;
    }
    std::int64_t at_us;
    if (__builtin_mul_overflow(added_ms, std::int64_t{1000}, &at_us) ||
        __builtin_add_overflow(at_us, c.state.env.steady_us, &at_us)) {
        return session::no_deadline;
    }
    return at_us;
}

std::int64_t deadline_after(const call& c, std::int64_t timeout_ms) noexcept {
    std::int64_t deadline_us;
    if (timeout_ms == 0 || __builtin_mul_overflow(timeout_ms, std::int64_t{1000}, &deadline_us) ||
        __builtin_add_overflow(deadline_us, c.state.env.steady_us, &deadline_us)) {
        return session::no_deadline;
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

bool may_wait(const call& c) noexcept {
    return !c.in_exec && (c.client.special & session::master) == 0;
}

void wait_for_keys(call& c, std::size_t first, std::size_t keys, value_type type,
                   std::int64_t deadline_us, serve_function serve, wait_until until) {
    engine::state& s = c.state;
    session_extras& extras = extras_of(c.client);
    const std::size_t cost = command_queue::cost(c.args, c.count) * 2 + keys * name_set::overhead;
    if (cost > s.options.clients.max_names) {
        return c.error("ERR too many keys to wait for: a client may wait for " +
                       std::to_string(s.options.clients.max_names) + " bytes of keys at most");
    }
    extras.worked_us = 0;
    extras.waiting = command_queue();
    extras.waiting.add(*c.spec, c.args, c.count);
    for (std::size_t i = first; i < first + keys; ++i) {
        const scoped_name key{c.client.db, c.arg(i)};
        name_topic::member* const added = s.awaited.add(extras.keys, c.client, key);
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
    ++s.blocked_sessions;
    s.note_observers();
}

void note_ready(engine::state& s, scoped_name key) {
    name_topic* const topic = s.awaited.find(key);
    if (topic == nullptr || topic->noted) return;
    s.ready_keys.push_back({key.scope, std::string(key.text)});
    topic->noted = true;
    s.has_effects = true;
}

void note_all_ready(engine::state& s, unsigned database) {
    if ((s.observers & observers::waiters) == 0) return;
    s.awaited.for_each([&](name_topic& topic) {
        if (topic.scope == database) note_ready(s, {topic.scope, topic.name});
    });
}

void serve_waiting(engine::state& s) {
    while (!s.ready_keys.empty()) {
        const engine::state::ready_key ready = std::move(s.ready_keys.front());
        s.ready_keys.pop_front();
        const scoped_name name{ready.database, ready.key};
        keyspace& keys = s.database(ready.database);
        // Those who wait for a value of another type; they stay where they are.
        intrusive_list<name_topic::member> unserved;
        name_topic* topic = s.awaited.find(name);
        if (topic != nullptr) topic->noted = false;
        while (topic != nullptr && !topic->members.empty()) {
            const bool is_there = keys.find(ready.key) != nullptr;
            if (!is_there && !topic->has_flags) break;
            name_topic::member& next = topic->members.pop_front();
            const bool may_be_served = is_there || next.flag;
            if (!may_be_served || !serve_one(s, *next.who, ready.key)) unserved.push_back(next);
            topic = s.awaited.find(name);
        }
        if (unserved.empty()) continue;
        unserved.splice_back(topic->members);
        topic->members.splice_back(unserved);
    }
}

bool is_client_paused(engine::state& s) {
    if (s.paused_until_us == 0) return false;
    if (s.env.steady_us >= s.paused_until_us) end_pause(s);
    return s.paused_until_us != 0;
}

void wait_for_pause_end(engine::state& s, session& who) {
    session_extras& extras = extras_of(who);
    extras.waits_for = wait_kind::pause;
    extras.deadline_us = s.paused_until_us != 0 ? s.paused_until_us : session::no_deadline;
    who.blocked = true;
    ++s.blocked_sessions;
}

namespace {

void end_pause_waits(engine::state& s) {
    if (s.paused_until_us == 0 && s.writes_held == 0)
        s.slow_path &= static_cast<std::uint16_t>(~slow_path::pause);
    s.env.expired = fate_of_expired(s);
    // Those that still have to wait find out when they are executed.
    s.sessions.for_each([&](session& each) {
        if (each.extras && each.extras->waits_for == wait_kind::pause) finish(s, each);
    });
    s.note_obstacle_ended();
}

}  // namespace

void begin_pause(engine::state& s) {
    s.slow_path |= slow_path::pause;
    s.env.expired = fate_of_expired(s);
}

void end_pause(engine::state& s) {
    s.paused_until_us = 0;
    end_pause_waits(s);
}

void hold_writes(engine::state& s, write_hold why) noexcept {
    s.writes_held |= static_cast<std::uint8_t>(why);
    begin_pause(s);
}

void let_write(engine::state& s, write_hold why) noexcept {
    if (!holds_writes(s, why)) return;
    s.writes_held &= static_cast<std::uint8_t>(~static_cast<unsigned>(why));
    end_pause_waits(s);
}

bool holds_writes(const engine::state& s, write_hold why) noexcept {
    return (s.writes_held & static_cast<std::uint8_t>(why)) != 0;
}

void wait_for_snapshot(engine::state& s, session& who) {
    session_extras& extras = extras_of(who);
    extras.waits_for = wait_kind::snapshot;
    extras.deadline_us = session::no_deadline;
    who.blocked = true;
    s.some_wait_for_snapshot = true;
}

void end_snapshot_waits(engine::state& s) {
    s.some_wait_for_snapshot = false;
    s.sessions.for_each([&](session& each) {
        if (each.extras && each.extras->waits_for == wait_kind::snapshot) finish(s, each);
    });
}

void wait_for_room(session& who, std::int64_t until_us) {
    session_extras& extras = extras_of(who);
    extras.waits_for = wait_kind::room;
    extras.deadline_us = until_us;
    who.blocked = true;
}

void end_room_waits(engine::state& s) noexcept {
    s.sessions.for_each([&](session& each) {
        if (each.extras && each.extras->waits_for == wait_kind::room) finish(s, each);
    });
}

void wait_for_script(engine::state& s, session& who) {
    session_extras& extras = extras_of(who);
    extras.script_wait = s.script_waits_begun + 1;
    s.script_waits.emplace(extras.script_wait, &who);
    ++s.script_waits_begun;
    extras.waits_for = wait_kind::script_of_another;
    extras.deadline_us = session::no_deadline;
    who.blocked = true;
}

void end_script_waits(engine::state& s, std::size_t most) noexcept {
    for (; most > 0 && !s.script_waits.empty(); --most) {
        session& oldest = *s.script_waits.begin()->second;
        finish(s, oldest);
    }
}

// One first: what it runs may be a script that takes long, for which the others would wait anew,
// behind those that come meanwhile.
void end_script_waits_in_turn(engine::state& s) noexcept {
    constexpr std::size_t most_at_once = 64;
    end_script_waits(s, s.script_waits_ended_at_once);
    s.script_waits_ended_at_once = std::min(2 * s.script_waits_ended_at_once, most_at_once);
}

void wait_for_migration(session& who) {
    session_extras& extras = extras_of(who);
    extras.waits_for = wait_kind::migration;
    extras.deadline_us = session::no_deadline;
    who.blocked = true;
}

void end_migration_waits(engine::state& s) noexcept {
    s.sessions.for_each([&](session& each) {
        if (each.extras && each.extras->waits_for == wait_kind::migration) finish(s, each);
    });
}

void wait_for_save(call& c) {
    session_extras& extras = extras_of(c.client);
    extras.waits_for = wait_kind::save;
    extras.deadline_us = session::no_deadline;
    c.client.blocked = true;
}

void end_save_waits(engine::state& s, std::string_view fault) {
    s.sessions.for_each([&](session& each) {
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
        finish(s, each);
    });
}

void wait_for_server(call& c) {
    session_extras& extras = extras_of(c.client);
    extras.waits_for = wait_kind::server;
    extras.deadline_us = session::no_deadline;
    c.client.blocked = true;
}

namespace {

// Empty: OK.
void answer_with(engine::state& s, std::uint64_t number, const std::string& error) {
    session* const who = find_session(s, number);
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
    finish(s, *who);
}

}  // namespace

void answer(engine::state& s, std::uint64_t number, std::string_view fault) {
    answer_with(s, number, fault.empty() ? std::string() : "ERR " + std::string(fault));
}

void answer_error(engine::state& s, std::uint64_t number, const std::string& error) {
    answer_with(s, number, error);
}

void wait_for_time(call& c, std::int64_t until_us) {
    session_extras& extras = extras_of(c.client);
    extras.waits_for = wait_kind::time;
    extras.deadline_us = until_us;
    c.client.blocked = true;
}

void unblock(engine::state& s, session& who, unblocked_by why) {
    session_extras& extras = *who.extras;
    if (extras.waits_for == wait_kind::replicas && why == unblocked_by::timeout) {
        return s.replicating->end_wait(who);
    }
    if (extras.waits_for == wait_kind::key) keep_if_slow(s, who);
    if (!takes_no_reply(who)) {
        resp::reply_writer reply(extras.outbox, who.protocol);
        if (why == unblocked_by::timeout) {
            reply.null_array();
        } else {
            constexpr std::string_view text = "UNBLOCKED client unblocked via CLIENT UNBLOCK";
            reply.error(text);
            count_failure(s, who, text);
        }
    }
    finish(s, who);
}

void unblock_all(engine::state& s, std::string_view why) {
    s.sessions.for_each([&](session& each) {
        if (!each.blocked || (each.extras->waits_for != wait_kind::key &&
                              each.extras->waits_for != wait_kind::replicas)) {
            return;
        }
        if (!takes_no_reply(each)) {
            resp::reply_writer(each.extras->outbox, each.protocol).error(why);
            count_failure(s, each, why);
        }
        each.closing = true;
        finish(s, each);
    });
}

void forget_wait(engine::state& s, session& who) {
    if (!who.blocked) return;
    session_extras& extras = *who.extras;
    if (extras.waits_for == wait_kind::key) {
        --s.blocked_sessions;
        s.awaited.remove_all(extras.keys);
        s.note_observers();
    } else if (extras.waits_for == wait_kind::pause) {
        --s.blocked_sessions;
    } else if (extras.waits_for == wait_kind::script_of_another) {
        s.script_waits.erase(extras.script_wait);
    } else if (extras.waits_for == wait_kind::replicas) {
        s.replicating->forget_wait(who);
    }
    extras.waits_for = wait_kind::none;
    extras.deadline_us = session::no_deadline;
    extras.waiting = command_queue();
    who.blocked = false;
}

std::int64_t engine::deadline_us(const session& who) noexcept {
    return who.blocked ? who.extras->deadline_us : session::no_deadline;
}

void engine::end_wait(session& who) {
    state& s = *state_;
    if (!who.blocked || s.env.steady_us < who.extras->deadline_us) return;
    if (who.extras->waits_for == wait_kind::script) return;
    if (who.extras->waits_for == wait_kind::hook) return s.hooked->end_wait(who);
    if (who.extras->waits_for == wait_kind::key || who.extras->waits_for == wait_kind::replicas)
        return unblock(s, who, unblocked_by::timeout);
    if (who.extras->waits_for == wait_kind::time) {
        if (!takes_no_reply(who)) resp::reply_writer(who.extras->outbox, who.protocol).ok();
        return finish(s, who);
    }
    if (who.extras->waits_for == wait_kind::room) return finish(s, who);
    if (is_client_paused(s)) who.extras->deadline_us = s.paused_until_us;
}

}  // namespace eddy::cache
