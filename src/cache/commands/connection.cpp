// Connection commands: PING, HELLO, AUTH, SELECT, RESET and their kin.
#include "cache/acl/access.hpp"
#include "cache/catalog/command_table.hpp"
#include "cache/catalog/commands.hpp"
#include "cache/clients/client_memory.hpp"
#include "cache/clients/client_name.hpp"
#include "cache/clients/messages.hpp"
#include "cache/clients/tracking.hpp"
#include "cache/engine/call.hpp"
#include "cache/engine/execution.hpp"
#include "cache/engine/version.hpp"
#include "cache/replication/replication.hpp"

#include <string>

namespace eddy::cache::commands {

void ping(call& c) {
    if (c.count > 2) return c.wrong_arity();
    if ((c.client.special & client_session::subscriber) != 0 && c.client.protocol == 2) {
        c.reply.array(2);
        c.reply.bulk("pong");
        return c.reply.bulk(c.count == 2 ? c.arg(1) : std::string_view());
    }
    if (c.count == 1) {
        c.reply.simple("PONG");
    } else {
        c.reply.bulk(c.arg(1));
    }
}

void echo(call& c) { c.reply.bulk(c.arg(1)); }

void quit(call& c) {
    c.client.closing = true;
    c.reply.ok();
}

void reset(call& c) {
    client_session& who = c.client;
    stop_monitoring(c.state.clients, who);
    drop_transaction(c.state, who);
    unsubscribe_all(c.state.clients, who);
    stop_tracking(c.state, who);
    who.special &= static_cast<std::uint16_t>(
        ~(client_session::reply_off | client_session::reply_skip_next | client_session::no_touch));
    who.db = 0;
    who.protocol = 2;
    if (who.introduced) who.introduced->name.clear();
    who.no_evict = false;
    who.reads_replica = false;
    use_default_user(c.state.settings, who);
    c.keys = &c.state.data.database(0);
    c.reply.set_protocol(2);
    c.reply.simple("RESET");
}

void select(call& c) {
    const auto number = c.database_number(1);
    if (!number) return;
    c.client.db = static_cast<std::uint8_t>(*number);
    c.keys = &c.state.data.database(c.client.db);
    c.reply.ok();
}

void hello(call& c) {
    int protocol = c.client.protocol;
    if (c.count > 1) {
        const auto version = c.integer(1, "ERR Protocol version is not an integer or out of range");
        if (!version) return;
        if (*version < 2 || *version > 3) return c.error("NOPROTO unsupported protocol version");
        protocol = static_cast<int>(*version);
    }
    // All arguments are parsed before one takes effect.
    std::optional<std::string_view> name;
    std::size_t user = 0;  // the argument
    for (std::size_t i = 2; i < c.count; ++i) {
        if (is_word(c.arg(i), "auth") && i + 2 < c.count) {
            user = i + 1;
            i += 2;
        } else if (is_word(c.arg(i), "setname") && i + 1 < c.count) {
            name = c.arg(++i);
            if (!is_client_name(*name)) {
                return c.error(
                    "ERR Client names cannot contain spaces, newlines or special "
                    "characters.");
            }
        } else {
            const std::string_view given = c.arg(i);
            return c.error("ERR Syntax error in HELLO option '" +
                           std::string(given.substr(0, given.find('\0'))) + "'");
        }
    }
    if (user != 0 && !authenticate(c, c.arg(user), c.arg(user + 1))) return;
    if (!c.client.authenticated && c.state.settings.users.require_password()) {
        return c.error(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise "
            "the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the "
            "client and select the RESP protocol version at the same time");
    }
    if (name) {
        c.client.introduce().name = *name;
        note_client_memory(c.state, name->size());
    }
    c.client.protocol = static_cast<std::uint8_t>(protocol);
    c.reply.set_protocol(protocol);
    c.reply.map(7);
    c.reply.bulk("server");
    c.reply.bulk("redis");
    c.reply.bulk("version");
    c.reply.bulk(c.state.settings.options.redis_version);
    c.reply.bulk("proto");
    c.reply.integer(protocol);
    c.reply.bulk("id");
    c.reply.integer(static_cast<std::int64_t>(c.client.id));
    c.reply.bulk("mode");
    c.reply.bulk(c.state.settings.options.emulates_cluster ? "cluster" : "standalone");
    c.reply.bulk("role");
    const replication* const its = c.state.replication.replicating.get();
    c.reply.bulk(its != nullptr && its->is_replica() ? "replica" : "master");
    c.reply.bulk("modules");
    c.reply.array(0);
}

void auth(call& c) {
    if (c.count > 3) return c.syntax_error();
    if (c.count == 2 && c.state.settings.users.default_user().needs_no_password()) {
        return c.error(
            "ERR AUTH <password> called without any password configured for the default "
            "user. Are you sure your configuration is correct?");
    }
    const std::string_view user = c.count == 2 ? "default" : c.arg(1);
    if (authenticate(c, user, c.arg(c.count - 1))) c.reply.ok();
}

}  // namespace eddy::cache::commands
