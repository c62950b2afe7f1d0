// Checks before a command, in Redis's order, and its execution.
#include "cache/engine/execution.hpp"

#include <eddy/base/log.hpp>

#include "base/text/text.hpp"
#include "cache/acl/access.hpp"
#include "cache/clients/client_memory.hpp"
#include "cache/clients/messages.hpp"
#include "cache/clients/serving.hpp"
#include "cache/clients/session_extras.hpp"
#include "cache/clients/tracking.hpp"
#include "cache/clients/waits.hpp"
#include "cache/persistence/persistence.hpp"
#include "cache/persistence/propagation.hpp"
#include "cache/persistence/snapshot_gate.hpp"
#include "cache/read_through/read_through.hpp"
#include "cache/replication/migration.hpp"
#include "cache/replication/replication.hpp"
#include "cache/script/scripting.hpp"

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <string>

namespace eddy::cache {
namespace {

// Lines of a browser's HTTP request whose body might be commands: cross-protocol scripting. As in
// Redis the connection is closed.
bool is_http(const call& c) noexcept {
    return is_word(c.arg(0), "post") || is_word(c.arg(0), "host:");
}

void end_http(call& c) {
    std::int64_t& logged_us = c.state.clients.http_logged_us;
    constexpr std::int64_t between_us = 60'000'000;
    if (logged_us == 0 || std::abs(c.state.data.env.now_us - logged_us) > between_us) {
        logged_us = c.state.data.env.now_us;
        log_warn("cache", "closed a connection from " + c.client.address +
                              " that speaks HTTP: somebody may be using a browser to reach this "
                              "cache");
    }
    kill(c.state, c.client);
}

void refuse_unknown(call& c) {
    // Not for lines of a file or a master.
    if (is_http(c) && (c.client.special & client_session::master) == 0) return end_http(c);
    constexpr std::size_t limit = 128;
    std::string args;
    for (std::size_t i = 1; i < c.count && args.size() < limit; ++i) {
        args += '\'';
        args += until_nul(c.arg(i), limit - args.size() + 1);
        args += "' ";
    }
    c.error("ERR unknown command '" + std::string(until_nul(c.arg(0), limit)) +
            "', with args beginning with: " + args);
}

constexpr std::string_view out_of_memory_text =
    "OOM command not allowed when used memory > 'maxmemory'.";

// True in at least one of these modes.
bool in(const call& c, unsigned what) noexcept { return (c.client.special & what) != 0; }

// True if the command has one of these flags.
bool is(const call& c, std::uint64_t flag) noexcept { return (c.spec->flags & flag) != 0; }

// The end of a transaction, which executes the queue.
bool ends_transaction(const call& c) noexcept {
    return is(c, command_flag::executes_queue) && in(c, client_session::in_transaction);
}

// Flags that permit a command in an exceptional state; in a transaction every command must have
// them.
constexpr std::uint64_t permitting_flags = command_flag::loading | command_flag::stale;

// The flags of all commands that this one will run.
std::uint64_t all_flags(const call& c) {
    std::uint64_t flags = flags_of(*c.spec, c.args, c.count);
    if ((flags & command_flag::runs_script) != 0) flags = scripting::flags_of(c, flags);
    if (ends_transaction(c)) {
        const session_extras& its = *c.client.extras;
        flags |= its.queued_flags & ~permitting_flags;
        flags &= ~its.queued_lack;
    }
    return flags;
}

bool is_known(call& c) {
    if (c.spec == nullptr) {
        refuse_unknown(c);
        return false;
    }
    if (!is(c, command_flag::has_forms) || c.count < 2) {
        if (arity_fits(*c.spec, c.count)) return true;
        c.wrong_arity();
        return false;
    }
    const command_spec* const form = find_form(*c.spec, c.arg(1));
    if (form == nullptr) {
        c.unknown_subcommand();
    } else if (!arity_fits(*form, c.count)) {
        c.wrong_arity(form->name.substr(c.spec->name.size() + 1));
    } else {
        return true;
    }
    return false;
}

// False, with the refusal replied, for commands that the session's mode does not permit.
bool mode_allows(call& c) {
    const bool in_transaction = in(c, client_session::in_transaction);
    if (in_transaction && is(c, command_flag::no_multi)) {
        c.error("ERR Command not allowed inside a transaction");
        return false;
    }
    if (in_transaction && c.state.settings.options.max_memory != 0 &&
        !is(c, command_flag::leaves_transaction) &&
        (!is(c, command_flag::executes_queue) || (all_flags(c) & command_flag::denyoom) != 0) &&
        !c.state.make_room()) {
        c.error(out_of_memory_text);
        return false;
    }
    const std::uint64_t flags = all_flags(c);
    if (refused_by_save_trouble(c, flags) || refused_by_replication(c, flags)) return false;
    if (in(c, client_session::subscriber) && c.client.protocol == 2 &&
        !is(c, command_flag::while_subscribed)) {
        c.error("ERR Can't execute '" + acl::full_name(*c.spec, {c.args, c.count}) +
                "': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in "
                "this context");
        return false;
    }
    return true;
}

// Commands of a replication stream or an append-only file: changes, and their framing. Commands
// that read do no harm.
bool is_of_a_stream(const call& c) noexcept {
    constexpr std::uint64_t of_data =
        command_flag::write | command_flag::readonly | command_flag::may_replicate;
    if (is(c, command_flag::blocking | command_flag::waits)) return false;
    if (is(c, of_data)) return true;
    if (is(c, command_flag::replicated_getack)) return c.count > 1 && is_word(c.arg(1), "getack");
    return (flags_of(*c.spec, c.args, c.count) & command_flag::replicated) != 0;
}

// Other commands of a master would run without a check: it could stop the server, change its
// settings and users, or block its own link forever.
void refuse_stray(call& c) {
    const std::string name = acl::full_name(*c.spec, {c.args, c.count});
    c.error("ERR no server sends '" + name + "' to its replicas");
    c.client.closing = true;
    c.client.strayed(name);
}

// A master's stream waits for the end of CLIENT PAUSE, too, as in Redis, but for no other hold of
// writes.
bool is_paused(call& c) {
    if ((c.state.clients.slow_path & slow_path::pause) == 0 || in(c, client_session::replica))
        return false;
    // The file is loaded to its end at the start.
    if (in(c, client_session::master) && (c.state.clients.slow_path & slow_path::not_ready) != 0)
        return false;
    const bool by_client = is_client_paused(c.state);
    if (by_client && !c.state.clients.pauses_writes_only) return true;
    const bool holds_writes =
        by_client || (c.state.clients.writes_held != 0 && !in(c, client_session::master));
    return holds_writes &&
           (all_flags(c) & (command_flag::write | command_flag::may_replicate)) != 0;
}

bool runs_script(const call& c) noexcept {
    const std::uint64_t flags = ends_transaction(c) ? c.client.extras->queued_flags : c.spec->flags;
    return (flags & command_flag::runs_script) != 0;
}

// True if a late script keeps the command from running.
bool is_held_by_script(const call& c) {
    if ((c.state.clients.slow_path & slow_path::script) == 0) return false;
    if ((flags_of(*c.spec, c.args, c.count) & command_flag::allow_busy) != 0) return false;
    // A background task waits for a time without scripts.
    return scripting::is_late(c.state) || runs_script(c);
}

read_through::verdict ask_read_through(call& c) {
    if ((c.state.clients.slow_path & slow_path::read_through) == 0)
        return read_through::verdict::run;
    return c.state.hooked->before(c, all_flags(c));
}

void queue(call& c) {
    session_extras& extras = *c.client.extras;
    const std::size_t limit = c.state.settings.options.clients.max_transaction;
    if (!in(c, client_session::master) &&
        extras.queued.bytes() + command_queue::cost(c.args, c.count) > limit) {
        extras.refused = true;
        return c.error("ERR the transaction is larger than the limit of " + std::to_string(limit) +
                       " bytes: send fewer commands between MULTI and EXEC");
    }
    // The transaction will not run, so the command need not be kept.
    if (!extras.refused && !extras.watched_changed) {
        extras.queued.add(*c.spec, c.args, c.count);
        const std::uint64_t flags = all_flags(c);
        extras.queued_flags |= flags;
        // DEBUG SLEEP suspends the transaction as a script does.
        if (is(c, command_flag::debugs) && c.count > 1 && is_word(c.arg(1), "sleep"))
            extras.queued_flags |= command_flag::runs_script;
        extras.queued_lack |= ~flags & permitting_flags;
        note_client_memory(c.state, command_queue::cost(c.args, c.count));
    }
    c.reply.simple("QUEUED");
}

}  // namespace

std::string_view refusal_by_mode(access_mode mode, std::uint64_t flags) noexcept {
    if (mode != access_mode::admin && (flags & command_flag::dangerous) != 0) {
        return "ERR this command is refused, as it can stop or debug the cache: create the cache "
               "with --mode admin to allow it";
    }
    constexpr std::uint64_t changing = command_flag::write | command_flag::alters;
    if (mode == access_mode::readonly && (flags & changing) != 0)
        return readonly_mode_error.substr(1);
    return {};
}

void after_refusal(call& c) {
    c.count_rejection();
    if (in(c, client_session::in_transaction)) c.client.extras->refused = true;
    if (c.spec == nullptr || !is(c, command_flag::executes_queue)) return;
    // The refusal's line begins with '-' and ends with CR LF.
    std::string why(c.reply.buffer().text().substr(c.reply_begin + 1));
    why.resize(why.size() - 2);
    if (why.starts_with("ERR ")) why.erase(0, 4);
    c.reply.buffer().truncate(c.reply_begin);
    drop_transaction(c.state, c.client);
    c.reply.error("EXECABORT Transaction discarded because of: " + why);
}

bool admit_after_checks(call& c) {
    note_command(c);
    if (!is_known(c)) return false;
    const command_spec* const spec = c.spec;
    if (!c.client.authenticated && c.state.settings.users.require_password() &&
        (spec->flags & command_flag::noauth) == 0) {
        c.error("NOAUTH Authentication required.");
        return false;
    }
    if (!c.client.unlimited && !permits(c)) return false;
    const engine_options& options = c.state.settings.options;
    if (options.max_memory != 0 && !c.state.make_room() &&
        (flags_of(*spec, c.args, c.count) & command_flag::denyoom) != 0) {
        c.error(out_of_memory_text);
        return false;
    }
    const std::string_view why = refusal_by_mode(options.mode, flags_of(*spec, c.args, c.count));
    if (!why.empty()) c.error(why);
    return why.empty();
}

void run(call& c) {
    c.client.last_command = c.spec->name.data();
    constexpr std::uint8_t seen =
        slow_path::monitors | slow_path::propagates | slow_path::replica | slow_path::pause;
    if ((c.state.clients.slow_path & seen) == 0 && !in(c, client_session::tracking) &&
        !in(c, client_session::master)) [[likely]]
        return run_and_count(c);
    // The database and the arguments from before the command: EXEC changes them.
    const command_spec& spec = *c.spec;
    const std::string_view* const args = c.args;
    const std::size_t count = c.count;
    const unsigned database = c.keys->number();
    const expired_keys before = fate_of_expired(c.state);
    const bool is_seen = (c.state.clients.slow_path &
                          (slow_path::monitors | slow_path::not_ready)) == slow_path::monitors;
    // MONITOR shows a script before the commands that it calls, a transaction after them.
    const bool is_script = (spec.flags & command_flag::runs_script) != 0;
    if (is_seen && is_script) feed_monitors(c);
    {
        const expiry_scope expiry(c);
        recording record(c.state, spec);
        run_and_count(c);
        record.end({args, count}, database);
    }
    // After REPLICAOF or a pause the previous state must not be restored.
    if (const expired_keys now = fate_of_expired(c.state); now != before)
        c.state.data.env.expired = now;
    if (in(c, client_session::tracking)) remember_reads(c, spec, {args, count});
    if (!is_seen || is_script) return;
    c.spec = &spec;
    c.args = args;
    c.count = count;
    feed_monitors(c);
}

namespace {

/// Passes a command's changes to the hooks.
void pass_changes(engine_state& s) {
    if (scripting::is_cut_off(s))
        s.hooked->drop_changes();
    else
        s.hooked->queue_changes();
}

// Scope in which a session with CLIENT NO-TOUCH does not count as a user of keys.
class use_scope {
public:
    explicit use_scope(const call& c) noexcept : env_(c.state.data.env) {
        if (in(c, client_session::no_touch)) env_.most_uses = 0;
    }
    // Restored from the policy, which the command may have changed.
    ~use_scope() { env_.most_uses = counted_uses(env_.policy); }
    use_scope(const use_scope&) = delete;
    use_scope& operator=(const use_scope&) = delete;

private:
    environment& env_;
};

enum class fate : std::uint8_t { runs, refused, queued, waits };

// Decides about a command; a refusal is replied.
fate fate_of(call& c) {
    // Commands of a master or the append-only file are executed without these checks.
    const bool obeys = in(c, client_session::master);
    if (obeys ? !is_known(c) : !admit(c) || !mode_allows(c)) return fate::refused;
    if (obeys && !is_of_a_stream(c)) {
        refuse_stray(c);
        return fate::refused;
    }
    if (!obeys && is_held_by_script(c)) {
        if (!scripting::is_busy(c.state)) {
            wait_for_script(c.state, c.client);
            return fate::waits;
        }
        c.error(scripting::busy_text(c.state));
        return fate::refused;
    }
    if (is_paused(c)) {
        wait_for_pause_end(c.state, c.client);
        return fate::waits;
    }
    if (in(c, client_session::in_transaction) && !is(c, command_flag::no_queue))
        return fate::queued;
    if (!obeys && (waits_for_migration(c) || waits_for_snapshot(c))) return fate::waits;
    switch (ask_read_through(c)) {
        case read_through::verdict::wait: return fate::waits;
        case read_through::verdict::refused: return fate::refused;
        case read_through::verdict::run: break;
    }
    return fate::runs;
}

}  // namespace

bool execute_on_slow_path(call& c) {
    client_session& who = c.client;
    if (in(c, client_session::reply_skip_next)) {
        who.special &= static_cast<std::uint16_t>(~client_session::reply_skip_next);
        who.special |= client_session::reply_skip;
    }
    bool by_push = false;
    const bool keeps_caching = c.spec != nullptr && is(c, command_flag::keeps_caching);
    switch (fate_of(c)) {
        case fate::waits: return false;
        case fate::refused: after_refusal(c); break;
        case fate::queued:
            note_command(c);
            queue(c);
            break;
        case fate::runs:
            by_push = is(c, command_flag::subscribes);
            {
                const use_scope uses(c);
                run(c);
            }
            if ((c.state.clients.slow_path & slow_path::read_through) != 0) pass_changes(c.state);
            break;
    }
    // CLIENT CACHING is valid for one command, or one transaction.
    if (in(c, client_session::tracking) && !in(c, client_session::in_transaction) &&
        !keeps_caching) {
        who.extras->tracking &= static_cast<std::uint8_t>(~tracking_option::caching);
    }
    if ((who.special & (client_session::reply_off | client_session::reply_skip)) != 0 && !by_push) {
        c.reply.buffer().truncate(c.reply_begin);
    }
    // For a command that waits, the flag is kept until its reply.
    if (!who.blocked) who.special &= static_cast<std::uint16_t>(~client_session::reply_skip);
    return true;
}

void flush_effects(engine_state& s, byte_buffer& out) {
    s.clients.has_effects = false;
    retire_closed(s);
    // Keys made ready by a late script are served after its end.
    if (!scripting::is_late(s)) serve_waiting(s);
    retire_closed(s);
    s.clients.has_effects = false;
    out.append(s.clients.own_pushes.text());
    s.clients.own_pushes.clear();
    constexpr std::size_t kept = 64 * 1024;
    if (s.clients.own_pushes.capacity() > kept) s.clients.own_pushes = byte_buffer();
}

void unwatch_all(engine_state& s, client_session& who) {
    if (!who.extras) return;
    s.clients.watched.remove_all(who.extras->watched);
    who.extras->watched_changed = false;
    s.note_observers();
}

void drop_transaction(engine_state& s, client_session& who) {
    if (!who.extras) return;
    who.special &= static_cast<std::uint16_t>(~client_session::in_transaction);
    who.extras->queued = command_queue();
    who.extras->queued_flags = 0;
    who.extras->queued_lack = 0;
    who.extras->refused = false;
    unwatch_all(s, who);
}

}  // namespace eddy::cache
