// Admission of a command: it runs at once, is refused, is queued for EXEC, or waits.
#pragma once

#include "cache/catalog/command_table.hpp"
#include "cache/engine/call.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace eddy::cache {

inline bool arity_fits(const command_spec& spec, std::size_t count) noexcept {
    const auto given = static_cast<std::int64_t>(count);
    return spec.arity >= 0 ? given == spec.arity : given >= -spec.arity;
}

/// The command's flags, or those of its form where it has several.
std::uint64_t flags_of(const command_spec& spec, const std::string_view* args,
                       std::size_t count) noexcept;

/// Error of readonly mode, as RESP begins it.
inline constexpr std::string_view readonly_mode_error =
    "-READONLY This cache is in readonly mode: it takes no command that changes keys, files, users "
    "or settings.";

/// Why engine_options::mode refuses a client's command of these flags, of all its forms' the one
/// that it has; empty: it does not. No other place compares commands with the mode.
std::string_view refusal_by_mode(access_mode mode, std::uint64_t flags) noexcept;

/// Whether commands of these flags may change keys.
inline bool writes_keys(std::uint64_t flags) noexcept {
    const bool runs_script = (flags & command_flag::runs_script) != 0;
    return (flags & command_flag::write) != 0 ||
           (runs_script && (flags & command_flag::readonly) == 0);
}

/// Records the command, with its form where it has several, as the session's last one: CLIENT LIST
/// and ACL LOG show it, also when it is refused.
void note_command(call& c) noexcept;

/// Checks of admit()'s slow path.
bool admit_after_checks(call& c);

/// Whether the command may run; if not, the refusal is replied.
inline bool admit(call& c) {
    const engine_options& options = c.state.options;
    constexpr std::uint64_t special = command_flag::dangerous | command_flag::has_forms;
    if (c.spec != nullptr && arity_fits(*c.spec, c.count) && c.client.unlimited &&
        options.max_memory == 0 && options.mode != access_mode::readonly &&
        (c.spec->flags & special) == 0) [[likely]] {
        return true;
    }
    return admit_after_checks(c);
}

/// A refused command spoils the transaction that it was meant for; for EXEC the refusal becomes
/// EXECABORT.
void after_refusal(call& c);

/// For a session in one of session::mode, or while the engine's slow_path is set. False
/// when the command was not executed, because it is to wait for the end of a pause, for a snapshot
/// or for a hook.
bool execute_on_slow_path(call& c);

/// Removes those of these keys that hold a list, set, hash or sorted set without an element. What
/// is no key does not matter.
void drop_empty_values(keyspace& in, std::span<const std::string_view> args) noexcept;

/// Calls the command's function. Where memory runs out in the middle it may leave a value from
/// which it has taken the last element, or one to which it has added none: that is removed as well,
/// as all other code relies on non-empty values.
inline void call_function(call& c) {
    keyspace& keys = *c.keys;
    const std::span<const std::string_view> args(c.args, c.count);
    // Beside others it has its keys alone.
    const std::size_t last = c.apart != nullptr && c.spec->last_key == 1 ? 1 : c.count - 1;
    try {
        c.spec->run(c);
    } catch (...) {
        drop_empty_values(keys, args.subspan(1, last));
        throw;
    }
}

/// Runs an admitted command, and sends it to clients in MONITOR.
void run(call& c);

/// Serves sessions that wait for ready keys, and appends the executing session's own messages to
/// its output.
void flush_effects(engine::state& s, byte_buffer& out);

/// Forgets a transaction, and what was watched for it.
void drop_transaction(engine::state& s, session& who);
void unwatch_all(engine::state& s, session& who);

}  // namespace eddy::cache
