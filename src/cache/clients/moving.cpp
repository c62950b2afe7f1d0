// Sessions on their way to another engine.
#include "cache/clients/moving.hpp"

#include "cache/acl/access.hpp"
#include "cache/acl/acl.hpp"
#include "cache/clients/engine_clients.hpp"
#include "cache/clients/session_extras.hpp"

#include <fmt/format.h>

#include <iterator>

namespace eddy::cache {
namespace {

/// Modes that a moved session keeps.
constexpr std::uint16_t kept_modes = client_session::no_touch | client_session::reply_off;

std::vector<std::string> names_of(name_set& of) {
    std::vector<std::string> names;
    of.for_each([&](name_topic& topic, name_topic::member&) { names.emplace_back(topic.name); });
    return names;
}

/// True where the waiting command has had no effect yet.
bool may_run_again(wait_kind waits_for) noexcept {
    switch (waits_for) {
        case wait_kind::key:
        case wait_kind::pause:
        case wait_kind::script_of_another:
        case wait_kind::snapshot:
        case wait_kind::room:
        case wait_kind::migration: return true;
        default: return false;
    }
}

}  // namespace

bool engine_clients::may_move(const client_session& who) const noexcept {
    constexpr std::uint16_t modes = kept_modes | client_session::subscriber;
    if (who.closing || who.killed || (who.special & ~modes) != 0) return false;
    if (!who.extras) return !who.blocked;
    const session_extras& its = *who.extras;
    if (its.queued.size() > 0 || its.watched.size() > 0 || its.tracking != 0 || its.as_replica ||
        !its.outbox.empty() || its.has_served || its.unsent > 0)
        return false;
    return !who.blocked || may_run_again(its.waits_for);
}

moved_session engine_clients::move_out(const client_session& who) const {
    moved_session made;
    made.user = who.user->name();
    if (who.introduced) {
        made.name = who.introduced->name;
        made.library_name = who.introduced->library_name;
        made.library_version = who.introduced->library_version;
    }
    made.address = who.address;
    if (who.extras) {
        made.channels = names_of(who.extras->channels);
        made.patterns = names_of(who.extras->patterns);
        made.shard_channels = names_of(who.extras->shard_channels);
    }
    made.special = who.special & kept_modes;
    made.protocol = who.protocol;
    made.db = who.db;
    made.authenticated = who.authenticated;
    made.no_evict = who.no_evict;
    made.redirects = who.redirects;
    made.reads_replica = who.reads_replica;
    // The connection still has the other commands.
    if (!who.blocked || !who.extras || who.extras->waits_for != wait_kind::key) return made;
    who.extras->waiting.for_each([&](const command_spec&, std::span<const std::string_view> args) {
        const auto to = std::back_inserter(made.waiting);
        fmt::format_to(to, "*{}\r\n", args.size());
        for (const std::string_view each : args)
            fmt::format_to(to, "${}\r\n{}\r\n", each.size(), each);
    });
    return made;
}

bool engine_clients::move_in(client_session& who, const moved_session& from) const {
    acl::user* const user = state_.settings.users.find(from.user);
    if (user == nullptr || from.db >= engine::databases) return false;
    who.user = user;
    who.authenticated = from.authenticated;
    note_permissions(state_.settings, who);
    if (!from.name.empty() || !from.library_name.empty() || !from.library_version.empty()) {
        client_session::introduction& its = who.introduce();
        its.name = from.name;
        its.library_name = from.library_name;
        its.library_version = from.library_version;
    }
    who.address = from.address;
    who.special = from.special & kept_modes;
    if (from.channels.size() + from.patterns.size() + from.shard_channels.size() > 0) {
        session_extras& extras = extras_of(who);
        client_state& all = state_.clients;
        for (const std::string& each : from.channels)
            all.channels.add(extras.channels, who, {0, each});
        for (const std::string& each : from.patterns)
            all.patterns.add(extras.patterns, who, {0, each});
        for (const std::string& each : from.shard_channels)
            all.shard_channels.add(extras.shard_channels, who, {0, each});
        who.special |= client_session::subscriber;
    }
    who.protocol = from.protocol == 3 ? 3 : 2;
    who.db = from.db;
    who.no_evict = from.no_evict;
    who.redirects = from.redirects;
    who.reads_replica = from.reads_replica;
    return true;
}

}  // namespace eddy::cache
