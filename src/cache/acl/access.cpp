// AUTH, the refusal replies, and the effect of a changed user on its sessions.
#include "cache/acl/access.hpp"

#include "cache/catalog/command_table.hpp"
#include "cache/clients/client_line.hpp"
#include "cache/clients/messages.hpp"
#include "cache/clients/session_extras.hpp"
#include "cache/engine/call.hpp"

#include <utility>
#include <vector>

namespace eddy::cache {
namespace {

using acl::refusal;

using context = access_log::context;

context context_of(const call& c) noexcept {
    if (c.in_script) return context::lua;
    const bool in_transaction = (c.client.special & client_session::in_transaction) != 0;
    return in_transaction ? context::multi : context::toplevel;
}

void log_refusal(call& c, acl::verdict what, std::string_view user, context where) {
    engine_state& s = c.state;
    const std::string object = what.why == refusal::command ? acl::full_name(*c.spec, c.all_args())
                                                            : std::string(c.arg(what.argument));
    std::string client;
    // A script's commands are those of the client that has called it.
    const bool is_script = c.in_script && s.clients.executing != nullptr;
    append_client_line(client, is_script ? *s.clients.executing : c.client, s.data.env.now_us);
    client.pop_back();  // the line's end
    s.clients.refusals.add({0, 1, what.why, where, object.substr(0, access_log::max_text),
                            std::string(user.substr(0, access_log::max_text)), std::move(client),
                            s.data.env.now_ms, s.data.env.now_ms},
                           s.settings.options.acllog_max_len);
}

acl::verdict check(const call& c) { return c.client.user->check(*c.spec, c.all_args()); }

}  // namespace

void use_default_user(configuration& s, client_session& who) {
    who.user = &s.users.default_user();
    who.authenticated = !s.users.require_password();
    note_permissions(s, who);
}

void note_permissions(const configuration& s, client_session& who) {
    who.unlimited =
        (who.authenticated || !s.users.require_password()) && who.user->allows_everything();
}

void note_all_permissions(engine_state& s) {
    s.clients.sessions.for_each([&](client_session& each) { note_permissions(s.settings, each); });
}

bool authenticate(call& c, std::string_view name, std::string_view password) {
    acl::user* const user = c.state.settings.users.find(name);
    if (user == nullptr || !user->accepts(password)) {
        log_refusal(c, {refusal::password, 0}, name, context_of(c));
        c.error("WRONGPASS invalid username-password pair or user is disabled.");
        return false;
    }
    c.client.user = user;
    c.client.authenticated = true;
    note_permissions(c.state.settings, c.client);
    return true;
}

bool permits(call& c) {
    const acl::verdict its = check(c);
    if (its.why == refusal::none) return true;
    log_refusal(c, its, c.client.user->name(), context_of(c));
    switch (its.why) {
        case refusal::key: c.error("NOPERM No permissions to access a key"); break;
        case refusal::channel: c.error("NOPERM No permissions to access a channel"); break;
        default:
            c.error("NOPERM User " + c.client.user->name() + " has no permissions to run the '" +
                    acl::full_name(*c.spec, c.all_args()) + "' command");
    }
    return false;
}

bool still_permits(call& c) {
    const acl::verdict its = check(c);
    if (its.why == refusal::none) return true;
    log_refusal(c, its, c.client.user->name(), context::multi);
    const char* const why = its.why == refusal::key ? "no permission to touch the specified keys"
                            : its.why == refusal::channel
                                ? "no permission to access one of the channels used as "
                                  "arguments to the command"
                                : "no permission to execute the command or subcommand";
    c.error(
        std::string("NOPERM ACLs rules changed between the moment the transaction was accumulated "
                    "and the EXEC call. This command is no longer allowed for the following "
                    "reason: ") +
        why);
    return false;
}

bool may_read_all_keys(const call& c) {
    return c.client.unlimited || c.client.user->reads_all_keys(*c.spec, c.all_args());
}

void close_sessions_of(engine_state& s, const acl::user& gone) {
    s.clients.sessions.for_each([&](client_session& each) {
        if (each.user != &gone) return;
        each.user = &s.settings.users.default_user();
        each.authenticated = false;
        each.unlimited = false;
        kill(s, each);
    });
}

void close_forbidden_subscribers(engine_state& s, const acl::user& changed) {
    s.clients.sessions.for_each([&](client_session& each) {
        if (each.user != &changed || (each.special & client_session::subscriber) == 0) return;
        bool forbidden = false;
        const auto look = [&](name_set& names, bool are_patterns) {
            names.for_each([&](name_topic& topic, name_topic::member&) {
                forbidden |= !changed.allows_channel(topic.name, are_patterns);
            });
        };
        look(each.extras->channels, false);
        look(each.extras->shard_channels, false);
        look(each.extras->patterns, true);
        if (forbidden) kill(s, each);
    });
}

}  // namespace eddy::cache
