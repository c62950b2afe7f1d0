// Batches of commands: checks, prefetching, execution; and the output of their sessions.
#include "cache/catalog/command_names.hpp"
#include "cache/catalog/command_table.hpp"
#include "cache/clients/closing.hpp"
#include "cache/clients/messages.hpp"
#include "cache/clients/session_extras.hpp"
#include "cache/clients/tracking.hpp"
#include "cache/clients/waits.hpp"
#include "cache/engine/call.hpp"
#include "cache/engine/engine.hpp"
#include "cache/engine/engine_state.hpp"
#include "cache/engine/execution.hpp"
#include "cache/engine/planner.hpp"
#include "cache/engine/running.hpp"
#include "cache/rdb/snapshot.hpp"
#include "cache/script/scripting.hpp"

#include <algorithm>
#include <exception>
#include <utility>

namespace eddy::cache {
namespace {

// Marks the executing session. When an exception ends its commands, its pending pushes are dropped,
// so that the next session does not get them.
class executing_mark {
public:
    executing_mark(engine_state& s, client_session& who) noexcept : state_(s) {
        s.clients.executing = &who;
    }
    ~executing_mark() {
        state_.clients.executing = nullptr;
        if (std::uncaught_exceptions() == exceptions_) return;
        state_.clients.own_pushes.clear();
        state_.clients.has_effects = !state_.clients.ready_keys.empty();
    }
    executing_mark(const executing_mark&) = delete;
    executing_mark& operator=(const executing_mark&) = delete;

    void end() const noexcept { state_.clients.executing = nullptr; }

private:
    engine_state& state_;
    const int exceptions_ = std::uncaught_exceptions();
};

// False when the command has to wait and was not executed.
bool execute_one(call& c, const resp::command& what, const planned& plan) {
    c.spec = plan.spec;
    c.args = what.argv;
    c.count = what.argc;
    c.hash = plan.hash;
    c.reply_begin = c.reply.buffer().size();
    if ((c.client.special | c.state.clients.slow_path) != 0) [[unlikely]]
        return execute_on_slow_path(c);
    if (!admit(c)) [[unlikely]] {
        after_refusal(c);
        return true;
    }
    c.client.last_command = c.spec->name.data();
    const bool is_timed = c.state.commands.count(*c.spec);
    if (is_timed || !c.state.slow.skips(c.spec->flags, c.count)) [[unlikely]]
        run_timed(c);
    else
        call_function(c);
    if (!c.client.blocked) keep_if_large(c);
    return true;
}

// Values of several cache lines are prefetched, too, but only for the next few commands: those of a
// whole batch would evict each other from the cache.
constexpr std::size_t values_ahead = 4;
constexpr std::size_t large_value = 512;

bool has_large_values(const engine_state& s, const keyspace& keys) noexcept {
    return s.data.env.memory.used_bytes() / large_value > keys.size();
}

void prefetch_value(const dictionary& table, std::uint64_t hash) noexcept {
    constexpr std::size_t line = 64;
    constexpr std::size_t most_bytes = 2 * keyspace::max_inline_text;
    const dictionary::slot* const place = table.find_hash(hash, [](const entry&) { return true; });
    if (place == nullptr) return;
    const entry* const e = dictionary::entry_of(*place);
    const char* at = reinterpret_cast<const char*>(e);
    // Its first two lines are prefetched already.
    std::size_t size = std::min(e->size(), most_bytes);
    for (std::size_t i = 2 * line; i < size; i += line) __builtin_prefetch(at + i);
    if (e->held_as != encoding::external) return;
    at = reinterpret_cast<const char*>(e->pointer<text_block>());
    size = most_bytes;
    for (std::size_t i = 0; i < size; i += line) __builtin_prefetch(at + i);
}

// Closes a client whose replies are above their limit, and retires one that is closing.
void close_behind_batch(engine_state& s, client_session& who, byte_buffer& out) {
    const output_limit& limit = s.settings.options.clients.output[0];
    if (limit.hard != 0 && out.size() >= limit.hard && class_of(who) == client_class::normal) {
        ++s.data.env.counters.output_closed;
        out.clear();
        kill(s, who);
    }
    if (who.closing && !s.home->script_is_late(who)) [[unlikely]]
        retire(s, who);
}

}  // namespace

std::size_t engine::execute(client_session& who, std::span<const resp::command> commands,
                            byte_buffer& out) {
    state& s = *state_;
    // Clients that were closed outside of commands.
    retire_closed(s);
    if (who.extras != nullptr) [[unlikely]]
        take_output(who, out);
    resp::reply_writer reply(out, who.protocol);
    call c{s, who, reply, &s.data.database(who.db)};
    planner planner(s.data.env.hash, s.settings.renamed.get(),
                    (who.special & client_session::master) != 0);
    who.last_used_us = s.data.env.now_us;
    const std::size_t reply_limit = s.settings.options.max_pending_reply;

    std::size_t done = 0;
    const auto may_go_on = [&] {
        return done < commands.size() && !who.closing && !who.blocked &&
               (done == 0 || out.size() < reply_limit);
    };
    const auto execute_next = [&](const resp::command& next, const planned& plan) {
        c.executed_in_batch = done;
        const bool executed = execute_one(c, next, plan);
        if (s.clients.has_effects) [[unlikely]]
            flush_effects(s, out);
        done += executed ? 1 : 0;
    };
    const executing_mark mark(s, who);
    while (may_go_on()) {
        const std::size_t batch = std::min(commands.size() - done, max_batch);
        const resp::command* const next = commands.data() + done;
        if (batch < min_prefetch_batch || c.keys->size() < min_prefetch_keys) {
            for (std::size_t i = 0; i < batch && may_go_on(); ++i) {
                execute_next(next[i], planner.plan(next[i]));
            }
            continue;
        }
        planned plans[max_batch];
        for (std::size_t i = 0; i < batch; ++i) {
            plans[i] = planner.plan(next[i]);
            c.keys->prefetch_bucket(plans[i].hash);
        }
        for (std::size_t i = 0; i < batch; ++i) c.keys->prefetch_entry(plans[i].hash);
        if (has_large_values(s, *c.keys)) [[unlikely]] {
            for (std::size_t i = 0; i < std::min(batch, values_ahead); ++i)
                prefetch_value(c.keys->table(), plans[i].hash);
            for (std::size_t i = 0; i < batch && may_go_on(); ++i) {
                if (const std::size_t ahead = i + values_ahead; ahead < batch)
                    prefetch_value(c.keys->table(), plans[ahead].hash);
                execute_next(next[i], plans[i]);
            }
            continue;
        }
        for (std::size_t i = 0; i < batch && may_go_on(); ++i) execute_next(next[i], plans[i]);
    }
    if (!s.clients.tracking.changes.empty()) [[unlikely]] {
        send_broadcasts(s);
        if (s.clients.has_effects) flush_effects(s, out);
    }
    mark.end();
    close_behind_batch(s, who, out);
    s.data.env.counters.commands += done;
    s.take_rates(0);
    s.peak_memory = std::max(s.peak_memory, s.used_memory());
    return done;
}

std::size_t engine::execute(client_session& who, const resp::command& command,
                            std::vector<large_argument>& large, byte_buffer& out) {
    environment& env = state_->data.env;
    struct offer {
        explicit offer(environment& to, std::span<large_argument> what) noexcept : its(to) {
            its.offered = what;
        }
        ~offer() { its.offered = {}; }
        environment& its;
    };
    std::size_t executed = 0;
    {
        const offer these(env, large);
        executed = execute(who, {&command, 1}, out);
    }
    if (executed > 0) discard(large);
    return executed;
}

void engine::discard(std::vector<large_argument>& large) noexcept {
    environment& env = state_->data.env;
    for (large_argument& each : large) {
        if (each) env.discard(env.take_over(each));
    }
    large.clear();
}

void engine::take_output(client_session& who, byte_buffer& out) {
    if (who.extras == nullptr || who.extras->outbox.empty()) return;
    byte_buffer& outbox = who.extras->outbox;
    who.extras->has_served = false;
    if (out.empty()) {
        out.swap(outbox);
    } else {
        out.append(outbox.text());
        outbox.clear();
    }
    constexpr std::size_t kept = 4 * 1024;
    if (outbox.capacity() > kept) outbox = byte_buffer();
}

void engine::set_unsent(client_session& who, std::size_t bytes) {
    state& s = *state_;
    if (who.extras == nullptr) {
        // Extras are needed only above a limit, which is rare.
        const output_limit& limit =
            s.settings.options.clients.output[static_cast<std::size_t>(class_of(who))];
        const bool counts =
            (limit.soft != 0 && bytes >= limit.soft) || (limit.hard != 0 && bytes >= limit.hard);
        if (!counts) return;
    }
    extras_of(who).unsent = bytes;
    check_output(s, who);
}

std::int64_t engine::outputs_due_us() const noexcept { return state_->clients.outputs_due_us; }

void engine::check_outputs() {
    state& s = *state_;
    if (s.data.env.steady_us < s.clients.outputs_due_us) return;
    s.clients.outputs_due_us = client_session::no_deadline;
    s.clients.sessions.for_each([&](client_session& each) {
        // The limits may have changed since the last call.
        const std::size_t unsent = each.held().output;
        if (unsent > 0)
            set_unsent(each, unsent);
        else
            check_output(s, each);
    });
}

bool engine::script_is_late() const noexcept { return scripting::is_late(*state_); }

// Sessions that a script_gap has blocked resume with its end.
static bool ends_script_waits(const engine_state& s) noexcept {
    return !s.clients.script_waits.empty() && (s.clients.slow_path & slow_path::script) == 0;
}

bool engine::script_is_busy() const noexcept { return scripting::is_busy(*state_); }

bool engine::script_is_late(const client_session& of) const noexcept {
    return of.blocked && of.extras->waits_for == wait_kind::script;
}

bool engine::is_behind() const noexcept {
    const state& s = *state_;
    return s.clients.some_wait_for_snapshot || scripting::is_late(s) || ends_script_waits(s);
}

void engine::go_on() {
    state& s = *state_;
    if (scripting::is_late(s))
        scripting::go_on(s);
    else if (ends_script_waits(s))
        end_script_waits_in_turn(s);
    if (!s.clients.tracking.changes.empty()) send_broadcasts(s);
    if (s.clients.some_wait_for_snapshot &&
        (s.persistence.snapshot == nullptr || s.persistence.snapshot->write_ahead()))
        end_snapshot_waits(s);
}

}  // namespace eddy::cache
