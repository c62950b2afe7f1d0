// Fields of a CLIENT LIST line, in Redis's order.
#include "cache/clients/client_line.hpp"

#include "cache/acl/acl.hpp"
#include "cache/clients/client_memory.hpp"
#include "cache/clients/session_extras.hpp"
#include "cache/clients/tracking.hpp"

#include <algorithm>
#include <string_view>

namespace eddy::cache {
namespace {

constexpr std::int64_t second_us = 1'000'000;

}  // namespace

std::string client_flags(const client_session& who) {
    const session_extras* const extras = who.extras.get();
    std::string text;
    const auto flag = [&text](char letter, bool is_set) {
        if (is_set) text += letter;
    };
    flag('S', (who.special & client_session::replica) != 0);
    flag('M', (who.special & client_session::master) != 0);
    flag('O', (who.special & client_session::monitoring) != 0);
    flag('P', (who.special & client_session::subscriber) != 0);
    flag('x', (who.special & client_session::in_transaction) != 0);
    flag('b', who.blocked);
    const bool tracks = (who.special & client_session::tracking) != 0;
    const std::uint8_t tracking = tracks ? extras->tracking : 0;
    flag('t', tracks);
    flag('R', (tracking & tracking_option::broken_redirection) != 0);
    flag('B', (tracking & tracking_option::broadcast) != 0);
    flag('d', extras != nullptr && extras->watched_changed);
    flag('c', who.closing);
    flag('U', who.address.starts_with('/'));
    flag('e', who.no_evict);
    flag('T', (who.special & client_session::no_touch) != 0);
    if (text.empty()) text = "N";
    return text;
}

void append_client_line(std::string& to, const client_session& who, std::int64_t now_us,
                        std::size_t executing) {
    const auto field = [&to](std::string_view name, std::string_view value) {
        if (!to.empty() && to.back() != '\n') to += ' ';
        to += name;
        to += '=';
        to += value;
    };
    const auto number = [&field](std::string_view name, std::size_t value) {
        field(name, std::to_string(value));
    };
    const session_extras* const extras = who.extras.get();
    const bool in_transaction = (who.special & client_session::in_transaction) != 0;
    const std::size_t queued = in_transaction ? extras->queued.bytes() : 0;
    const client_session::buffers held = who.held();
    const std::size_t output = extras == nullptr
                                   ? held.output
                                   : extras->outbox.size() + std::max(extras->unsent, held.output);
    number("id", who.id);
    field("addr", who.address);
    field("laddr", who.local_address);
    field("fd", "-1");
    field("name", who.name());
    field("age", std::to_string((now_us - who.created_us) / second_us));
    field("idle", std::to_string((now_us - who.last_used_us) / second_us));
    field("flags", client_flags(who));
    // Redis has no such field.
    if (who.redirects) field("capa", "r");
    number("db", who.db);
    number("sub", extras == nullptr ? 0 : extras->channels.size());
    number("psub", extras == nullptr ? 0 : extras->patterns.size());
    number("ssub", extras == nullptr ? 0 : extras->shard_channels.size());
    field("multi", in_transaction ? std::to_string(extras->queued.size()) : "-1");
    number("qbuf", held.input + executing);
    number("qbuf-free", 0);
    number("argv-mem", 0);
    number("multi-mem", queued);
    number("rbs", 0);
    number("rbp", 0);
    number("obl", output);
    number("oll", 0);
    number("omem", output);
    number("tot-mem", client_bytes(who));
    field("events", output == 0 ? "r" : "rw");
    field("cmd", who.last_command);
    field("user", who.user->name());
    const bool tracks = (who.special & client_session::tracking) != 0;
    field("redir", tracks ? std::to_string(extras->redirection) : "-1");
    number("resp", who.protocol);
    const client_session::introduction nothing;
    const client_session::introduction& its = who.introduced ? *who.introduced : nothing;
    field("lib-name", its.library_name);
    field("lib-ver", its.library_version);
    to += '\n';
}

}  // namespace eddy::cache
