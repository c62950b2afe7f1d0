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

/// Error of readonly mode, with RESP's first byte.
inline constexpr std::string_view readonly_mode_error =
    "-READONLY This cache is in readonly mode: it takes no command that changes keys, files, users "
    "or settings.";

/// The refusal of a client's command with these flags (of the chosen form) by engine_options::mode;
/// empty when it is permitted. The mode is checked nowhere else.
std::string_view refusal_by_mode(access_mode mode, std::uint64_t flags) noexcept;

/// Slow path of admit().
bool admit_after_checks(call& c);

/// True if the command may run; if not, the refusal is replied.
inline bool admit(call& c) {
    const engine_options& options = c.state.settings.options;
    constexpr std::uint64_t special = command_flag::dangerous | command_flag::has_forms;
    if (c.spec != nullptr && arity_fits(*c.spec, c.count) && c.client.unlimited &&
        options.max_memory == 0 && options.mode != access_mode::readonly &&
        (c.spec->flags & special) == 0) [[likely]] {
        return true;
    }
    return admit_after_checks(c);
}

/// Marks the transaction that a refused command was meant for as failed; for EXEC the refusal
/// becomes EXECABORT.
void after_refusal(call& c);

/// For a session in one of session::mode, or while the engine's slow_path is set. False when the
/// command was not executed, because it waits for the end of a pause, for a snapshot or for a hook.
bool execute_on_slow_path(call& c);

/// Runs an admitted command, and sends it to clients in MONITOR.
void run(call& c);

/// Serves sessions that wait for ready keys, and appends the executing session's own messages to
/// its output.
void flush_effects(engine_state& s, byte_buffer& out);

/// Drops a transaction and its watched keys.
void drop_transaction(engine_state& s, client_session& who);
void unwatch_all(engine_state& s, client_session& who);

}  // namespace eddy::cache
