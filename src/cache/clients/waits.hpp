// Blocked commands: waits for a key, for the end of a pause, for a snapshot or another server.
//
// Clients that wait for a key are served in the order of arrival, after the command that made the
// key ready (a whole EXEC counts as one), as long as there is something left.
#pragma once

#include "cache/clients/session_extras.hpp"
#include "cache/clients/write_hold.hpp"
#include "cache/engine/call.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace eddy::cache {

/// Parses a timeout of seconds, with fractions, at arg(i); replies with an error when it is none.
/// Returns the deadline, session::no_deadline for 0.
std::optional<std::int64_t> deadline_argument(call& c, std::size_t i);
/// The same of a timeout of milliseconds.
std::optional<std::int64_t> milliseconds_deadline_argument(call& c, std::size_t i);
/// The end of a timeout that begins now; session::no_deadline for 0, and beyond the clock.
std::int64_t deadline_after(const call& c, std::int64_t timeout_ms) noexcept;

/// Changes of a key that call `serve`.
enum class wait_until : std::uint8_t {
    /// Those after which a key of that type is there. Then all its keys are tried as if the command
    /// came anew: `serve` is called for the first that is there, which has to have that type.
    changed,
    any_changed,      ///< those after which a key is there; `serve` checks all keys by itself
    changed_or_gone,  ///< also their end
};

/// Makes the command wait until one of its keys, arg(first) .. arg(first + keys - 1), changes and
/// `serve` replies for it, or until the deadline, when the reply is a null array. Nothing must have
/// been replied. Within EXEC nothing can wait: the caller asks may_wait() before and replies as at
/// the deadline.
void wait_for_keys(call& c, std::size_t first, std::size_t keys, value_type type,
                   std::int64_t deadline_us, serve_function serve,
                   wait_until until = wait_until::changed);
bool may_wait(const call& c) noexcept;

/// Records a change of a key with waiting sessions.
void note_ready(engine_state& s, scoped_name key);
/// The same for all keys of a database, which were removed or became another database's.
void note_all_ready(engine_state& s, unsigned database);
/// Whether the reply to the command that waited is not wanted; a CLIENT REPLY SKIP ends with that.
bool takes_no_reply(session& who) noexcept;
/// Counts the error that ends a wait, for the command that waited.
void count_failure(engine_state& s, const session& who, std::string_view text) noexcept;
/// The session waits no more, and is woken. Its output, if any, must be there.
void finish_wait(engine_state& s, session& who);

/// Whether a pause of CLIENT PAUSE goes on. Ends it when its time is over.
bool is_client_paused(engine_state& s);
/// Begins a pause of new commands, as CLIENT PAUSE has set it.
void begin_pause(engine_state& s);
void hold_writes(engine_state& s, write_hold why) noexcept;
void let_write(engine_state& s, write_hold why) noexcept;
bool holds_writes(const engine_state& s, write_hold why) noexcept;
/// Makes the session wait for the end of the pause.
void wait_for_pause_end(engine_state& s, session& who);
/// Ends all waits for the end of the pause.
void end_pause(engine_state& s);

/// Makes the session wait until the snapshot has written a value.
void wait_for_snapshot(engine_state& s, session& who);
/// Has waiting sessions try again.
void end_snapshot_waits(engine_state& s);

/// Makes the session wait until the snapshot has room for what the command will change, or until
/// that time; then the command is executed, or waits anew.
void wait_for_room(session& who, std::int64_t until_us);
/// Ends these waits.
void end_room_waits(engine_state& s) noexcept;

/// Makes the session wait until the script that is late has ended, or is busy.
void wait_for_script(engine_state& s, session& who);
/// Ends such waits, the oldest first.
void end_script_waits(engine_state& s, std::size_t most) noexcept;
/// Ends some of them after a script, more with each call until another script is late.
void end_script_waits_in_turn(engine_state& s) noexcept;

/// Makes the session wait until keys have gone to another server.
void wait_for_migration(session& who);
/// Has waiting sessions try again.
void end_migration_waits(engine_state& s) noexcept;

/// Makes the command, SAVE, wait until the dump file is there.
void wait_for_save(call& c);
/// Replies to waiting sessions; `fault` is empty after success.
void end_save_waits(engine_state& s, std::string_view fault);

/// Makes the command wait until that time and reply OK then.
void wait_for_time(call& c, std::int64_t until_us);

/// Ends all waits for keys and replicas with an error, and closes their clients behind it.
void unblock_all(engine_state& s, std::string_view why);
/// Ends a wait without a reply, when the session closes.
void forget_wait(engine_state& s, session& who);

/// Makes the command wait for answer(); nothing must have been replied. Within EXEC nothing can
/// wait: the caller asks may_wait() before.
void wait_for_server(call& c);
/// Answers the session, if it still waits: OK, or the fault as an error behind "ERR ".
void answer(engine_state& s, std::uint64_t session, std::string_view fault);
/// The same with an error that begins with a code of its own.
void answer_error(engine_state& s, std::uint64_t session, const std::string& error);

}  // namespace eddy::cache
