// Execution of an admitted command: its function, between two readings of the clock if SLOWLOG,
// LATENCY or INFO commandstats need them; slow_log.hpp decides which are timed.
#pragma once

#include "cache/catalog/command_table.hpp"
#include "cache/engine/call.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace eddy::cache {

/// Records the command, with its form where it has several, as the session's last one: CLIENT LIST
/// and ACL LOG show it, also when it is refused.
void note_command(call& c) noexcept;

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

/// Runs the command, which command_stats has counted, and keeps it if it took long.
void run_timed(call& c);
/// Counts and runs it, without the clock where that is not needed.
void run_and_count(call& c);
/// Keeps a command that has waited for a key if it has worked for long before and after that:
/// `served_us` after it. The wait itself does not count.
void keep_waited(const call& c, std::int64_t served_us);
/// A command has come to its end whose script was left in the middle; run_timed() returned then.
void end_late(call& c);

}  // namespace eddy::cache
