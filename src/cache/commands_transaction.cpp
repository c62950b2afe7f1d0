// MULTI and EXEC, and WATCH, which makes EXEC depend on keys.
#include "cache/access.hpp"
#include "cache/call.hpp"
#include "cache/command_table.hpp"
#include "cache/commands.hpp"
#include "cache/execution.hpp"
#include "cache/messages.hpp"
#include "cache/script/scripting.hpp"
#include "cache/session_extras.hpp"

#include <span>
#include <string>
#include <utility>

namespace eddy::cache::commands {
namespace {

bool in_transaction(const call& c) noexcept {
    return (c.client.special & session::in_transaction) != 0;
}

// Whether a watched key's time has passed, also when nobody has looked for it since.
bool watched_is_over(call& c) {
    bool over = false;
    c.client.extras->watched.for_each([&](name_topic& topic, name_topic::member& watch) {
        if (watch.flag) return;
        const keyspace& keys = c.state.database(topic.scope);
        const entry* const e = keys.look_at(topic.name);
        over |= e != nullptr && keys.is_over(*e);
    });
    return over;
}

// One of the queued commands. Once all replies together have passed the limit on one reply, those
// that follow are replaced; the commands run nevertheless.
void run_queued(call& c, const command_spec& spec, std::span<const std::string_view> args,
                std::size_t replies_begin) {
    c.spec = &spec;
    c.args = args.data();
    c.count = args.size();
    c.hash = spec.first_key == 1 && args.size() > 1 ? c.state.env.hash(args[1]) : 0;
    c.reply_begin = c.reply.buffer().size();
    const bool obeys = (c.client.special & session::master) != 0;
    if (!obeys && !c.client.unlimited && !still_permits(c)) return c.state.commands.rejected(c);
    run(c);
    if (c.reply.buffer().size() - replies_begin <= c.state.options.max_reply) [[likely]]
        return;
    c.reply.buffer().truncate(c.reply_begin);
    c.error("ERR the transaction's replies are larger than the limit of " +
            std::to_string(c.state.options.max_reply) + " bytes: this one was dropped");
}

}  // namespace

void multi(call& c) {
    if (in_transaction(c)) return c.error("ERR MULTI calls can not be nested");
    extras_of(c.client);
    c.client.special |= session::in_transaction;
    c.reply.ok();
}

static void exec_now(call& c) {
    session_extras& extras = *c.client.extras;
    const bool refused = extras.refused;
    const bool failed = extras.watched_changed || watched_is_over(c);
    const command_queue commands = std::move(extras.queued);
    drop_transaction(c.state, c.client);
    if (refused) {
        return c.error("EXECABORT Transaction discarded because of previous errors.");
    }
    if (failed) return c.reply.null_array();
    const std::size_t begin = c.reply_begin;
    c.in_exec = true;
    c.reply.array(commands.size());
    commands.for_each([&](const command_spec& spec, std::span<const std::string_view> args) {
        run_queued(c, spec, args, begin);
    });
    c.in_exec = false;
    c.reply_begin = begin;
    c.state.env.counters.commands += commands.size();
}

void exec(call& c) {
    if (!in_transaction(c)) return c.error("ERR EXEC without MULTI");
    // One with a script in it may have to be left in the middle.
    const bool runs_scripts = (c.client.extras->queued_flags & command_flag::runs_script) != 0;
    runs_scripts ? scripting::run_with_scripts(c, exec_now) : exec_now(c);
}

void discard(call& c) {
    if (!in_transaction(c)) return c.error("ERR DISCARD without MULTI");
    drop_transaction(c.state, c.client);
    c.reply.ok();
}

void watch(call& c) {
    if (in_transaction(c)) return c.error("ERR WATCH inside MULTI is not allowed");
    session_extras& extras = extras_of(c.client);
    // EXEC will fail anyway.
    if (extras.watched_changed) return c.reply.ok();
    std::size_t bytes = extras.watched.bytes();
    for (std::size_t i = 1; i < c.count; ++i) bytes += c.arg(i).size() + name_set::overhead;
    if (bytes > c.state.options.max_names) {
        return c.error("ERR too many watched keys: a client may watch " +
                       std::to_string(c.state.options.max_names) + " bytes of keys at most");
    }
    for (std::size_t i = 1; i < c.count; ++i) {
        name_topic::member* const added =
            c.state.watched.add(extras.watched, c.client, {c.client.db, c.arg(i)});
        if (added == nullptr) continue;
        const entry* const e = c.keys->look_at(c.arg(i));
        added->flag = e != nullptr && c.keys->is_over(*e);
    }
    c.state.note_listeners();
    c.reply.ok();
}

void unwatch(call& c) {
    unwatch_all(c.state, c.client);
    c.reply.ok();
}

}  // namespace eddy::cache::commands
