// Admission of a command: it runs at once, is refused, is queued for EXEC, or waits.
#pragma once

#include "cache/catalog/command_table.hpp"
#include "cache/engine/call.hpp"
#include "cache/engine/running.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace eddy::cache {

inline bool arity_fits(const command_spec& spec, std::size_t count) noexcept {
    const auto given = static_cast<std::int64_t>(count);
    return spec.arity >= 0 ? given == spec.arity : given >= -spec.arity;
}

/// Error of readonly mode, as RESP begins it.
inline constexpr std::string_view readonly_mode_error =
    "-READONLY This cache is in readonly mode: it takes no command that changes keys, files, users "
    "or settings.";

/// Why engine_options::mode refuses a client's command of these flags, of all its forms' the one
/// that it has; empty: it does not. No other place compares commands with the mode.
std::string_view refusal_by_mode(access_mode mode, std::uint64_t flags) noexcept;

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

/// Runs an admitted command, and sends it to clients in MONITOR.
void run(call& c);

/// Serves sessions that wait for ready keys, and appends the executing session's own messages to
/// its output.
void flush_effects(engine_state& s, byte_buffer& out);

/// Forgets a transaction, and what was watched for it.
void drop_transaction(engine_state& s, session& who);
void unwatch_all(engine_state& s, session& who);

}  // namespace eddy::cache
