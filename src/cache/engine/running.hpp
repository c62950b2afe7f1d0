// Execution of an admitted command: its function, between two readings of the clock if SLOWLOG,
// LATENCY or INFO commandstats need them, slow_log.hpp decides which are timed; and what COMMANDLOG
// keeps of it.
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

/// True if COMMANDLOG may keep the command, which has just run, for its size.
inline bool may_be_large(const call& c) noexcept {
    // At most so many bytes of RESP beside each argument's own.
    constexpr std::size_t marks = 32;
    std::size_t request = marks * (c.count + 1);
    for (const std::string_view each : c.all_args()) request += each.size();
    return c.state.slow.is_large({request, c.reply.buffer().size() - c.reply_begin});
}
/// The sizes of a command that has just run; a client that gets no reply has one of 0 bytes, and
/// so has the request of a script's command.
command_sizes sizes_of(const call& c) noexcept;
/// The record of a command, for a log.
slow_log::record record_of(const call& c);
/// Slow path of keep_if_large().
void keep_sizes(const call& c);
/// Keeps a command that has just run, if its request or its reply is large.
inline void keep_if_large(const call& c) {
    if (may_be_large(c)) [[unlikely]]
        keep_sizes(c);
}

/// Runs the command, which command_stats has counted, and keeps it if it took long.
void run_timed(call& c);
/// Counts and runs it, without the clock where that is not needed.
void run_and_count(call& c);
/// Keeps a command that has waited for a key if it has worked for long before and after that:
/// `served_us` after it. The wait itself does not count.
void keep_waited(const call& c, std::int64_t served_us);
/// A command has come to its end whose script was left in the middle; run_timed() returned then.
void end_late(call& c, std::size_t reply_bytes);

}  // namespace eddy::cache
