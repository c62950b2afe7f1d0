// Execution of blocked commands once their keys are ready.
#include "cache/clients/serving.hpp"

#include "cache/acl/access.hpp"
#include "cache/catalog/command_table.hpp"
#include "cache/clients/closing.hpp"
#include "cache/clients/messages.hpp"
#include "cache/clients/session_extras.hpp"
#include "cache/clients/waits.hpp"
#include "cache/engine/engine.hpp"
#include "cache/engine/execution.hpp"
#include "cache/engine/running.hpp"
#include "cache/persistence/persistence.hpp"
#include "cache/persistence/propagation.hpp"
#include "cache/read_through/read_through.hpp"
#include "cache/replication/replication.hpp"
#include "cache/script/scripting.hpp"

#include <algorithm>
#include <chrono>
#include <new>
#include <span>
#include <utility>

namespace eddy::cache {
namespace {

std::int64_t clock_us() noexcept {
    using namespace std::chrono;
    return duration_cast<microseconds>(steady_clock::now().time_since_epoch()).count();
}

// For SLOWLOG, when a wait for a key ends without being served.
void keep_if_slow(engine_state& s, client_session& who) {
    resp::reply_writer reply(who.extras->outbox, who.protocol);
    call c{s, who, reply, &s.data.database(who.db)};
    who.extras->waiting.for_each(
        [&](const command_spec& spec, std::span<const std::string_view> args) {
            c.spec = &spec;
            c.args = args.data();
            c.count = args.size();
            c.reply_begin = reply.buffer().size();
            keep_waited(c, 0);
            keep_if_large(c);
        });
}

// As if the command was just sent: the first of its keys that exists is served.
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

// Replies to a waiting command that would be refused if it was sent now; false for another one.
bool refuse(engine_state& s, client_session& who) {
    session_extras& extras = *who.extras;
    resp::reply_writer reply(extras.outbox, who.protocol);
    call c{s, who, reply, &s.data.database(who.db)};
    c.reply_begin = extras.outbox.size();
    bool is_refused = false;
    extras.waiting.for_each([&](const command_spec& spec, std::span<const std::string_view> args) {
        c.spec = &spec;
        c.args = args.data();
        c.count = args.size();
        const std::uint64_t flags = flags_of(spec, c.args, c.count);
        const std::string_view why = refusal_by_mode(s.settings.options.mode, flags);
        if (!why.empty()) c.error(why);
        is_refused =
            !why.empty() || refused_by_save_trouble(c, flags) || refused_by_replication(c, flags);
        if (is_refused) c.count_rejection();
    });
    if (!is_refused) return false;
    if (takes_no_reply(who)) extras.outbox.truncate(c.reply_begin);
    finish_wait(s, who);
    return true;
}

// Runs the waiting command's `serve` for a key. Pushes that it causes to the session itself come
// after the reply.
bool serve_one(engine_state& s, client_session& who, std::string_view key) {
    session_extras& extras = *who.extras;
    client_session* const outer = std::exchange(s.clients.executing, &who);
    byte_buffer outer_pushes = std::move(s.clients.own_pushes);
    resp::reply_writer reply(extras.outbox, who.protocol);
    const std::size_t reply_begin = extras.outbox.size();
    bool served = false;
    try {
        call c{s, who, reply, &s.data.database(who.db)};
        c.reply_begin = reply_begin;
        extras.waiting.for_each([&](const command_spec& spec,
                                    std::span<const std::string_view> args) {
            c.spec = &spec;
            c.args = args.data();
            c.count = args.size();
            c.hash = s.data.env.hash(args[1]);
            // The user's permissions can have changed meanwhile.
            if (!who.unlimited && !permits(c)) {
                c.count_rejection();
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
            if (served && is_timed) keep_waited(c, clock_us() - began_us);
            if (served) keep_if_large(c);
            record.end(args, database);
        });
        if (served && takes_no_reply(who)) extras.outbox.truncate(c.reply_begin);
        extras.has_served |= extras.outbox.size() > reply_begin;
        extras.outbox.append(s.clients.own_pushes.text());
        // Without a reply nothing else wakes it.
        if (!served && !s.clients.own_pushes.empty()) who.wake();
    } catch (const std::bad_alloc&) {
        // The waiting client is closed, not the one that made the key ready.
        extras.outbox.truncate(reply_begin);
        served = true;
        who.closing = true;
    }
    s.clients.own_pushes = std::move(outer_pushes);
    s.clients.executing = outer;
    if (!served) return false;
    finish_wait(s, who);
    if (who.closing)
        retire(s, who);
    else
        check_output(s, who);
    return true;
}

}  // namespace

void serve_waiting(engine_state& s) {
    while (!s.clients.ready_keys.empty()) {
        const client_state::ready_key ready = std::move(s.clients.ready_keys.front());
        s.clients.ready_keys.pop_front();
        const scoped_name name{ready.database, ready.key};
        keyspace& keys = s.data.database(ready.database);
        // Sessions that wait for a value of another type keep their positions.
        intrusive_list<name_topic::member> unserved;
        name_topic* topic = s.clients.awaited.find(name);
        if (topic != nullptr) topic->noted = false;
        while (topic != nullptr && !topic->members.empty()) {
            const bool is_there = keys.find(ready.key) != nullptr;
            if (!is_there && !topic->has_flags) break;
            name_topic::member& next = topic->members.pop_front();
            const bool may_be_served = (is_there || next.flag) && !next.who->closing;
            if (!may_be_served || !serve_one(s, *next.who, ready.key)) unserved.push_back(next);
            topic = s.clients.awaited.find(name);
        }
        if (unserved.empty()) continue;
        unserved.splice_back(topic->members);
        topic->members.splice_back(unserved);
    }
}

// Time has made the session's keys ready. A late script may be in the middle of them, and writes
// may be held or refused, which no other command has found out before.
static void try_again(engine_state& s, client_session& who) {
    session_extras& extras = *who.extras;
    extras.retry_us = client_session::no_deadline;
    if (scripting::is_late(s) || is_client_paused(s) || s.clients.writes_held != 0) {
        constexpr std::int64_t postponement_us = 10'000;
        extras.retry_us = s.data.env.steady_us + postponement_us;
        return;
    }
    if (refuse(s, who)) return;
    extras.keys.for_each(
        [&s](name_topic& topic, name_topic::member&) { note_ready(s, {topic.scope, topic.name}); });
    serve_waiting(s);
    retire_closed(s);
}

void unblock(engine_state& s, client_session& who, unblocked_by why) {
    session_extras& extras = *who.extras;
    if (extras.waits_for == wait_kind::replicas && why == unblocked_by::timeout) {
        return s.replication.replicating->end_wait(who);
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
    finish_wait(s, who);
}

std::int64_t engine::deadline_us(const client_session& who) noexcept {
    return who.blocked ? std::min(who.extras->deadline_us, who.extras->retry_us)
                       : client_session::no_deadline;
}

void engine::end_wait(client_session& who) {
    state& s = *state_;
    if (!who.blocked || s.data.env.steady_us < deadline_us(who)) return;
    if (s.data.env.steady_us < who.extras->deadline_us) return try_again(s, who);
    if (who.extras->waits_for == wait_kind::script) return;
    if (who.extras->waits_for == wait_kind::hook) return s.hooked->end_wait(who);
    if (who.extras->waits_for == wait_kind::key || who.extras->waits_for == wait_kind::replicas)
        return unblock(s, who, unblocked_by::timeout);
    if (who.extras->waits_for == wait_kind::time) {
        if (!takes_no_reply(who)) resp::reply_writer(who.extras->outbox, who.protocol).ok();
        return finish_wait(s, who);
    }
    if (who.extras->waits_for == wait_kind::room) return finish_wait(s, who);
    if (is_client_paused(s)) who.extras->deadline_us = s.clients.paused_until_us;
}

}  // namespace eddy::cache
