// Check of a command's keys against a running snapshot, before the command runs.
#include "cache/persistence/snapshot_gate.hpp"

#include "cache/catalog/command_keys.hpp"
#include "cache/catalog/command_table.hpp"
#include "cache/clients/session_extras.hpp"
#include "cache/clients/waits.hpp"
#include "cache/rdb/snapshot.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>

namespace eddy::cache {
namespace {

using arguments = std::span<const std::string_view>;

// Commands that replace a string, which a snapshot takes as it is.
bool replaces_value(const command_spec& spec) noexcept {
    return (spec.flags & command_flag::replaces_string) != 0;
}

// True if the command modifies the key's value, beyond reading, replacing or removing it.
bool changes_value(const command_spec& spec, std::string_view flags) noexcept {
    // It changes a group, not the entries.
    if ((spec.flags & command_flag::changes_group) != 0) return true;
    return flags.starts_with("RW") && !replaces_value(spec);
}

// True if the snapshot would have to keep the value that the command changes, replaces or removes.
bool changes_lacked_value(const keyspace& keys, const command_spec& spec, arguments args) {
    if (keys.keeper() == nullptr) return false;
    const auto found = find_key_arguments(spec, args);
    if (!found) return false;
    return std::ranges::any_of(*found, [&](const key_argument& each) {
        const bool only_reads = each.flags.starts_with("RO") && !changes_value(spec, each.flags);
        return !only_reads && keys.is_lacked(args[each.index]);
    });
}

// True if the command may evict other keys.
bool may_evict(const engine_state& s, std::uint64_t flags) noexcept {
    return s.settings.options.max_memory != 0 && s.settings.options.policy != eviction::none &&
           (flags & command_flag::denyoom) != 0;
}

// For most commands this is a lookup of the first key. The access to a slow value's key is
// determined then.
bool changes_slow_value(keyspace& keys, const command_spec& spec, arguments args) {
    if (keys.keeper() == nullptr) return false;
    if (spec.first_key > 0) {
        bool has_slow = false;
        for_each_fixed_key(spec, args, [&](std::string_view key) {
            has_slow = has_slow || keys.find_slow(key) != nullptr;
        });
        if (!has_slow) return false;
    }
    const auto found = find_key_arguments(spec, args);
    if (!found) return false;
    for (const key_argument& each : *found) {
        if (!changes_value(spec, each.flags)) continue;
        entry* const slow = keys.find_slow(args[each.index]);
        if (slow == nullptr) continue;
        keys.keeper()->prepare(*slow);
        return true;
    }
    return false;
}

}  // namespace

bool waits_for_snapshot(call& c) {
    if ((c.state.clients.slow_path & slow_path::snapshot) == 0) [[likely]]
        return false;
    const bool is_held = c.state.persistence.snapshot->holds_changes();
    bool lacks_room = false;
    bool found = false;
    const auto look = [&](const command_spec& spec, arguments args) {
        if (lacks_room || found) return;
        const std::uint64_t flags = flags_of(spec, args.data(), args.size());
        if (!writes_keys(flags)) return;
        if (is_held) [[unlikely]] {
            lacks_room = may_evict(c.state, flags) || changes_lacked_value(*c.keys, spec, args);
            if (lacks_room) return;
        }
        found = changes_slow_value(*c.keys, spec, args);
    };
    if ((c.spec->flags & command_flag::executes_queue) != 0 &&
        (c.client.special & client_session::in_transaction) != 0)
        c.client.extras->queued.for_each(look);
    else
        look(*c.spec, {c.args, c.count});
    if (lacks_room)
        wait_for_room(c.client, c.state.persistence.snapshot->hold_ends_us());
    else if (found)
        wait_for_snapshot(c.state, c.client);
    return lacks_room || found;
}

}  // namespace eddy::cache
