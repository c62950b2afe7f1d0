// Looks at the keys that commands name, as image_gate.cpp does.
#include "cache/migration.hpp"

#include <eddy/wire/resp/reply_writer.hpp>

#include "cache/command_keys.hpp"
#include "cache/command_table.hpp"
#include "cache/commands.hpp"
#include "cache/execution.hpp"
#include "cache/hooks.hpp"
#include "cache/propagation.hpp"
#include "cache/rdb/payload.hpp"
#include "cache/replication.hpp"
#include "cache/script/scripting.hpp"
#include "cache/session_extras.hpp"
#include "cache/waits.hpp"

#include <algorithm>
#include <new>
#include <span>
#include <utility>

namespace eddy::cache {
namespace {

using arguments = std::span<const std::string_view>;

// Whether it may change one of the keys that are held.
bool changes_held_key(const migrations& its, unsigned database, const command_spec& spec,
                      arguments args) {
    const std::uint32_t flags = flags_of(spec, args.data(), args.size());
    if (!writes_keys(flags)) return false;
    // EVAL_RO and FCALL_RO do not have it.
    if ((flags & command_flag::runs_script) != 0) return (flags & command_flag::may_replicate) != 0;
    const auto found = find_key_arguments(spec, args);
    if (!found) return false;
    if (found->empty()) return true;  // FLUSHALL, SWAPDB
    return std::ranges::any_of(*found, [&](const key_argument& each) {
        // XREADGROUP reads the entries, and changes the group.
        const bool only_reads = each.flags.starts_with("RO") && spec.run != commands::xreadgroup;
        return !only_reads && its.held[database].contains(args[each.index]);
    });
}

}  // namespace

migration::migration(engine::state& s, migration_order what) : state_(s), order_(std::move(what)) {
    if (state_.migrating == nullptr) state_.migrating = std::make_unique<migrations>();
    ++state_.migrating->count;
    state_.attention |= attention::migration;
    try {
        // Who names a key that another one has waits for that, so nobody has these yet.
        for (const std::string& each : order_.keys)
            state_.migrating->held[order_.from].insert(each);
    } catch (const std::bad_alloc&) {
        leave();
        throw;
    }
}

migration::~migration() {
    leave();
    end_migration_waits(state_);
}

void migration::release(std::size_t end) noexcept {
    let_go(end);
    end_migration_waits(state_);
}

void migration::let_go(std::size_t end) noexcept {
    for (; released_ < end; ++released_) {
        std::string& key = order_.keys[released_];
        state_.migrating->held[order_.from].erase(key);
        // A million of them are not to be freed at once, at the end.
        std::string().swap(key);
    }
}

void migration::leave() noexcept {
    let_go(order_.keys.size());
    if (--state_.migrating->count != 0) return;
    state_.migrating.reset();
    state_.attention &= static_cast<std::uint16_t>(~attention::migration);
}

migration::written migration::write(std::size_t index, byte_buffer& to) const {
    const std::string& key = order_.keys[index];
    keyspace& keys = state_.database(order_.from);
    const keyspace::slot* const place = keys.find_to_read(key);
    if (place == nullptr) return written::gone;
    entry& its = *keyspace::at(place);
    byte_buffer payload;
    if (!rdb::write_payload(state_.env, its, payload, state_.options.max_reply))
        return written::too_large;
    const expiry_time ends_ms = its.expiry();
    // One of 0 would be none.
    const std::int64_t left_ms =
        ends_ms == no_expiry ? 0 : std::max<std::int64_t>(ends_ms - state_.env.now_ms, 1);
    const decimal time(left_ms);
    const std::string_view words[] = {
        // A node that does not own the slot yet is to take it nevertheless.
        state_.options.emulates_cluster ? "RESTORE-ASKING" : "RESTORE", key, time, payload.text(),
        "REPLACE"};
    resp::write_command(to, std::span(words).first(order_.replaces ? 5 : 4));
    return written::whole;
}

bool migration::may_remove() const {
    return !is_client_paused(state_) && state_.writes_held == 0 && !scripting::is_late(state_);
}

std::string migration::remove(const std::vector<std::size_t>& indexes) {
    engine::state& s = state_;
    if (s.replicating != nullptr && s.replicating->is_following())
        return "this server follows another one since";
    keyspace& keys = s.database(order_.from);
    for (const std::size_t index : indexes) {
        const std::string& key = order_.keys[index];
        if (keys.find_to_read(key) == nullptr) continue;
        const recorded_alone told(s, order_.from, {"DEL", key});
        // Scripts write through to what lies behind the cache, and there it is not deleted.
        if (s.hooked != nullptr)
            s.hooked->key_happened(order_.from, key_event::evicted, "evicted", key);
        keys.remove(key, keys.hash(key));
        ++s.changes;
        s.tell_clients(order_.from, key_event::generic, "del", key);
    }
    return {};
}

bool waits_for_migration(call& c) {
    if ((c.state.attention & attention::migration) == 0) [[likely]]
        return false;
    const migrations& its = *c.state.migrating;
    unsigned database = c.keys->number();
    bool waits = false;
    const auto look = [&](const command_spec& spec, arguments args) {
        // Within a transaction.
        if (spec.run == commands::select && args.size() == 2) {
            const auto number = parse_integer(args[1]);
            if (number && *number >= 0 && *number < engine::databases)
                database = static_cast<unsigned>(*number);
        }
        waits = waits || changes_held_key(its, database, spec, args);
    };
    if (c.spec->run == commands::exec && (c.client.special & session::in_transaction) != 0)
        c.client.extras->queued.for_each(look);
    else
        look(*c.spec, {c.args, c.count});
    if (waits) wait_for_migration(c.client);
    return waits;
}

}  // namespace eddy::cache
