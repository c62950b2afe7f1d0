// MULTI and EXEC, and WATCH, which makes EXEC depend on keys.
#include "cache/acl/access.hpp"
#include "cache/catalog/command_table.hpp"
#include "cache/catalog/commands.hpp"
#include "cache/clients/messages.hpp"
#include "cache/clients/session_extras.hpp"
#include "cache/engine/call.hpp"
#include "cache/engine/execution.hpp"
#include "cache/script/scripting.hpp"

#include <span>
#include <string>
#include <utility>

namespace eddy::cache::commands {
namespace {

bool in_transaction(const call& c) noexcept {
    return (c.client.special & client_session::in_transaction) != 0;
}

// True if a watched key has expired, even without an access since then.
bool watched_is_over(call& c) {
    bool over = false;
    c.client.extras->watched.for_each([&](name_topic& topic, name_topic::member& watch) {
        if (watch.flag) return;
        const keyspace& keys = c.state.data.database(topic.scope);
        const entry* const e = keys.look_at(topic.name);
        over |= e != nullptr && keys.is_over(*e);
    });
    return over;
}

constexpr std::string_view not_run_either = "ERR not run either";

// EXEC's replies; each command limits its own. Once their sum has passed the limit of one reply,
// the remaining commands are not run: their effects could not be reported.
struct transaction_replies {
    const std::size_t begin;
    std::size_t left;  // commands
    bool is_full = false;

    // With room for the refusals of all remaining commands.
    bool is_over(const call& c) const noexcept {
        constexpr std::size_t shortest = not_run_either.size() + std::string_view("-\r\n").size();
        const std::size_t replied = c.reply.buffer().size() - begin;
        return replied + left * shortest > c.state.settings.options.max_reply;
    }
    void refuse(call& c) {
        c.count_rejection();
        if (std::exchange(is_full, true)) return c.error(not_run_either);
        c.error("ERR not run: this transaction's replies are larger than the limit of " +
                std::to_string(c.state.settings.options.max_reply) + " bytes");
    }
};

// Masters and files take no replies. CLIENT REPLY may change it within a transaction.
bool is_answered(const call& c) noexcept {
    constexpr auto unanswered =
        client_session::master | client_session::reply_off | client_session::reply_skip;
    return (c.client.special & unanswered) == 0;
}

// One of the queued commands.
void run_queued(call& c, const command_spec& spec, std::span<const std::string_view> args,
                transaction_replies& replies) {
    c.spec = &spec;
    c.args = args.data();
    c.count = args.size();
    c.hash = spec.first_key == 1 && args.size() > 1 ? c.state.data.env.hash(args[1]) : 0;
    c.reply_begin = c.reply.buffer().size();
    const bool obeys = (c.client.special & client_session::master) != 0;
    if (!obeys && !c.client.unlimited && !still_permits(c)) return c.count_rejection();
    if (is_answered(c) && replies.is_over(c)) return replies.refuse(c);
    // A client gets no reply to commands after its own CLIENT KILL, as in Redis, though they are
    // executed.
    const bool is_closing = c.client.closing;
    run(c);
    retire_closed(c.state);
    if (is_closing || !is_answered(c)) c.reply.buffer().truncate(c.reply_begin);
}

}  // namespace

void multi(call& c) {
    if (in_transaction(c)) return c.error("ERR MULTI calls can not be nested");
    extras_of(c.client);
    c.client.special |= client_session::in_transaction;
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
    if (is_answered(c)) c.reply.array(commands.size());
    transaction_replies replies{begin, commands.size()};
    commands.for_each([&](const command_spec& spec, std::span<const std::string_view> args) {
        run_queued(c, spec, args, replies);
        --replies.left;
    });
    c.in_exec = false;
    c.client.last_command = "exec";
    c.reply_begin = begin;
    c.state.data.env.counters.commands += commands.size();
}

void exec(call& c) {
    if (!in_transaction(c)) return c.error("ERR EXEC without MULTI");
    // A transaction with a script may have to be suspended.
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
    // EXEC fails in any case.
    if (extras.watched_changed) return c.reply.ok();
    std::size_t bytes = extras.watched.bytes();
    for (std::size_t i = 1; i < c.count; ++i) bytes += c.arg(i).size() + name_set::overhead;
    if (bytes > c.state.settings.options.clients.max_names) {
        return c.error("ERR too many watched keys: a client may watch " +
                       std::to_string(c.state.settings.options.clients.max_names) +
                       " bytes of keys at most");
    }
    for (std::size_t i = 1; i < c.count; ++i) {
        name_topic::member* const added =
            c.state.clients.watched.add(extras.watched, c.client, {c.client.db, c.arg(i)});
        if (added == nullptr) continue;
        const entry* const e = c.keys->look_at(c.arg(i));
        added->flag = e != nullptr && c.keys->is_over(*e);
    }
    c.state.note_observers();
    c.reply.ok();
}

void unwatch(call& c) {
    unwatch_all(c.state, c.client);
    c.reply.ok();
}

}  // namespace eddy::cache::commands
