// Looks at the keys that the command names, before it runs.
#include "cache/image_gate.hpp"

#include "cache/command_keys.hpp"
#include "cache/command_table.hpp"
#include "cache/commands.hpp"
#include "cache/execution.hpp"
#include "cache/session_extras.hpp"
#include "cache/waits.hpp"

#include <span>
#include <string_view>

namespace eddy::cache {
namespace {

using arguments = std::span<const std::string_view>;

// Those that replace a string, which a snapshot takes over as it is.
bool replaces_value(const command_spec& spec) noexcept {
    return spec.run == commands::set || spec.run == commands::getset;
}

// Whether the command changes the key's value, and does not only read, replace or remove it.
bool changes_value(const command_spec& spec, std::string_view flags) noexcept {
    // It changes a group, not the entries.
    if (spec.run == commands::xreadgroup) return true;
    return flags.starts_with("RW") && !replaces_value(spec);
}

// For most that is a look at the first key. What is done with a key of a slow value is looked up.
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

bool waits_for_image(call& c) {
    if ((c.state.attention & attention::image) == 0) [[likely]]
        return false;
    bool found = false;
    const auto look = [&](const command_spec& spec, arguments args) {
        found = found || (writes_keys(flags_of(spec, args.data(), args.size())) &&
                          changes_slow_value(*c.keys, spec, args));
    };
    if (c.spec->run == commands::exec && (c.client.special & session::in_transaction) != 0)
        c.client.extras->queued.for_each(look);
    else
        look(*c.spec, {c.args, c.count});
    if (found) wait_for_image(c.state, c.client);
    return found;
}

}  // namespace eddy::cache
