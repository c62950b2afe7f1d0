// Blocked commands: for a key, the end of a pause, a snapshot or another server.
//
// Clients that wait for a key are served in the order of arrival, after the command that made the
// key ready (a whole EXEC counts as one), as long as elements remain.
#pragma once

#include "cache/clients/session_extras.hpp"
#include "cache/clients/write_hold.hpp"
#include "cache/engine/call.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace eddy::cache {

/// Parses a timeout of seconds, with fractions, at arg(i); replies with an error when it is
/// malformed. Returns the deadline, session::no_deadline for 0.
std::optional<std::int64_t> deadline_argument(call& c, std::size_t i);
/// The same for a timeout in milliseconds.
std::optional<std::int64_t> milliseconds_deadline_argument(call& c, std::size_t i);
/// The end of a timeout that begins now; session::no_deadline for 0, and on overflow.
std::int64_t deadline_after(const call& c, std::int64_t timeout_ms) noexcept;

/// Changes of a key that call `serve`.
enum class wait_until : std::uint8_t {
    /// Changes after which a key of that type exists. Then all keys are tried as if the command was
    /// just sent: `serve` is called for the first existing key, which must have that type.
    changed,
    any_changed,      ///< changes after which a key exists; `serve` checks all keys by itself
    changed_or_gone,  ///< also removals
};

/// Makes the command wait until one of its keys, arg(first) .. arg(first + keys - 1), changes and
/// `serve` replies for it, or until the deadline, when the reply is a null array. Before any reply.
/// Within EXEC nothing waits: the caller checks may_wait() first and replies as at the deadline.
void wait_for_keys(call& c, std::size_t first, std::size_t keys, value_type type,
                   std::int64_t deadline_us, serve_function serve,
                   wait_until until = wait_until::changed);
bool may_wait(const call& c) noexcept;

/// Records a change of a key with waiting sessions.
void note_ready(engine_state& s, scoped_name key);
/// The same for all keys of a database that was flushed or swapped.
void note_all_ready(engine_state& s, unsigned database);
/// True if the client takes no reply to the waiting command; consumes a CLIENT REPLY SKIP.
bool takes_no_reply(client_session& who) noexcept;
/// Counts the error that ends a wait, for the waiting command.
void count_failure(engine_state& s, const client_session& who, std::string_view text) noexcept;
/// Ends the wait and wakes the session. Before it, its output, if any, must be in the outbox.
void finish_wait(engine_state& s, client_session& who);

/// True while CLIENT PAUSE is in effect. Ends the pause at its deadline.
bool is_client_paused(engine_state& s);
/// Begins the pause that CLIENT PAUSE has set.
void begin_pause(engine_state& s);
void hold_writes(engine_state& s, write_hold why) noexcept;
void let_write(engine_state& s, write_hold why) noexcept;
bool holds_writes(const engine_state& s, write_hold why) noexcept;
/// Makes the session wait for the end of the pause.
void wait_for_pause_end(engine_state& s, client_session& who);
/// Ends all waits for the end of the pause.
void end_pause(engine_state& s);

/// Makes the session wait until the snapshot has written a value.
void wait_for_snapshot(engine_state& s, client_session& who);
/// Ends these waits; the commands are executed again.
void end_snapshot_waits(engine_state& s);

/// Makes the session wait until the snapshot has room for the command's changes, or until that
/// time; then the command is executed, and may wait again.
void wait_for_room(client_session& who, std::int64_t until_us);
/// Ends these waits.
void end_room_waits(engine_state& s) noexcept;

/// Makes the session wait until the running slow script has ended, or is reported as busy.
void wait_for_script(engine_state& s, client_session& who);
/// Ends at most `most` of these waits, the oldest first.
void end_script_waits(engine_state& s, std::size_t most) noexcept;
/// Ends some of these waits after a script; the number doubles with each call until another script
/// is slow.
void end_script_waits_in_turn(engine_state& s) noexcept;

/// Makes the session wait until keys have moved to another server.
void wait_for_migration(client_session& who);
/// Ends these waits; the commands are executed again.
void end_migration_waits(engine_state& s) noexcept;

/// Makes the command, SAVE, wait until the dump file is there.
void wait_for_save(call& c);
/// Replies to these sessions; `fault` is empty after success.
void end_save_waits(engine_state& s, std::string_view fault);

/// Makes the command wait until that time and reply OK then.
void wait_for_time(call& c, std::int64_t until_us);

/// Ends all waits for keys and replicas with an error, and closes the clients after it.
void unblock_all(engine_state& s, std::string_view why);
/// Ends a wait without a reply, when the session closes.
void forget_wait(engine_state& s, client_session& who);

/// Makes the command wait for answer(). Before any reply. Within EXEC nothing waits: the caller
/// checks may_wait() first.
void wait_for_server(call& c);
/// Replies to the session, if it still waits: OK, or `fault` as an error with the prefix "ERR ".
void answer(engine_state& s, std::uint64_t session, std::string_view fault);
/// The same with an error that has a code of its own.
void answer_error(engine_state& s, std::uint64_t session, const std::string& error);

}  // namespace eddy::cache
