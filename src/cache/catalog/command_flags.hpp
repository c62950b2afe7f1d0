// Named flags and ACL categories of commands, as bits.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace eddy::cache {

namespace command_flag {

// Shown by COMMAND, in its order: see command_flag_names().
inline constexpr std::uint64_t write = 1ULL << 0;
inline constexpr std::uint64_t readonly = 1ULL << 1;
inline constexpr std::uint64_t denyoom = 1ULL << 2;  ///< refused when memory is short
inline constexpr std::uint64_t admin = 1ULL << 3;
inline constexpr std::uint64_t pubsub = 1ULL << 4;
inline constexpr std::uint64_t noscript = 1ULL << 5;  ///< not for scripts
inline constexpr std::uint64_t blocking = 1ULL << 6;  ///< it may wait
inline constexpr std::uint64_t loading = 1ULL << 7;   ///< allowed while a file is loaded
inline constexpr std::uint64_t stale = 1ULL << 8;     ///< allowed on a replica without its master
inline constexpr std::uint64_t skip_monitor = 1ULL << 9;
inline constexpr std::uint64_t skip_slowlog = 1ULL << 10;
inline constexpr std::uint64_t asking = 1ULL << 11;
inline constexpr std::uint64_t fast = 1ULL << 12;
inline constexpr std::uint64_t noauth = 1ULL << 13;  ///< allowed before AUTH
inline constexpr std::uint64_t no_mandatory_keys = 1ULL << 14;
inline constexpr std::uint64_t no_async_loading = 1ULL << 15;
inline constexpr std::uint64_t no_multi = 1ULL << 16;    ///< not between MULTI and EXEC
inline constexpr std::uint64_t allow_busy = 1ULL << 17;  ///< allowed while a script is late
inline constexpr std::uint64_t movablekeys = 1ULL << 18;
inline constexpr std::uint64_t shown = (1ULL << 19) - 1;

// Admission and accounting.
inline constexpr std::uint64_t dangerous = 1ULL << 20;      ///< in admin mode only
inline constexpr std::uint64_t may_replicate = 1ULL << 21;  ///< CLIENT PAUSE WRITE holds it up
/// O(1) apart from the size of a value, and frequent: slow_log does not time it.
inline constexpr std::uint64_t brief = 1ULL << 22;
/// Runs scripts, or may run them: see script/scripts.hpp. `readonly` beside it is only shown: the
/// script's own flags count.
inline constexpr std::uint64_t runs_script = 1ULL << 23;
/// Container of subcommands, as CONFIG of GET and SET. Set by the table, not in rows.
inline constexpr std::uint64_t has_forms = 1ULL << 24;
/// Touches nothing but the values of its keys, and replies with an error before it has changed any
/// of them: see lane.hpp.
inline constexpr std::uint64_t local = 1ULL << 25;
/// Changes files, users, settings or the server's role, and so is refused in readonly mode as
/// `write` is.
inline constexpr std::uint64_t alters = 1ULL << 26;
/// Documented flag "syscmd" of COMMAND DOCS: for other servers and developers.
inline constexpr std::uint64_t syscmd = 1ULL << 27;
/// command_keys.cpp finds the keys, or what is done with them, by the command's options.
inline constexpr std::uint64_t keys_by_options = 1ULL << 28;
inline constexpr std::uint64_t waits = 1ULL << 29;  ///< it may wait, which COMMAND does not show

// Transactions.
inline constexpr std::uint64_t executes_queue = 1ULL << 32;  ///< EXEC
inline constexpr std::uint64_t no_queue = 1ULL << 33;        ///< executed at once also behind MULTI
/// Ends a transaction without running it, so short memory is no reason to refuse it.
inline constexpr std::uint64_t leaves_transaction = 1ULL << 34;

// Messages.
inline constexpr std::uint64_t subscribes = 1ULL << 35;  ///< or unsubscribes: replies by pushes
inline constexpr std::uint64_t while_subscribed = 1ULL << 36;  ///< for RESP2 clients in that mode
inline constexpr std::uint64_t names_channels = 1ULL << 37;    ///< all arguments are channels
inline constexpr std::uint64_t names_patterns = 1ULL << 38;    ///< all arguments are such patterns
inline constexpr std::uint64_t sends_message = 1ULL << 39;     ///< the first argument is a channel

// Replication and persistence.
/// Part of a master's stream and of append-only files though it changes no keys, or as it may.
inline constexpr std::uint64_t replicated = 1ULL << 40;
inline constexpr std::uint64_t replicated_getack = 1ULL << 41;  ///< so is its form GETACK alone
inline constexpr std::uint64_t changes_master = 1ULL << 42;  ///< a replica that loads may take it
/// Refused while saving fails, as writes are, so that health checks notice.
inline constexpr std::uint64_t shows_save_trouble = 1ULL << 43;
inline constexpr std::uint64_t spans_databases = 1ULL << 44;  ///< a key may be another database's
inline constexpr std::uint64_t selects_database = 1ULL << 45;

// Values.
inline constexpr std::uint64_t reads_string = 1ULL << 46;     ///< or whether there is one
inline constexpr std::uint64_t reads_by_option = 1ULL << 47;  ///< the same with NX, XX, GET or IF…
inline constexpr std::uint64_t replaces_string = 1ULL << 48;  ///< as a whole
inline constexpr std::uint64_t deletes_keys = 1ULL << 49;
inline constexpr std::uint64_t changes_group = 1ULL << 50;  ///< of a stream whose entries it reads
/// Pops from the first of its keys that has something: replicated as the pop of that key.
inline constexpr std::uint64_t pops_one_of = 1ULL << 51;
/// Moves from the end of a list to the front, without words for either.
inline constexpr std::uint64_t last_to_first = 1ULL << 52;

// The rest.
inline constexpr std::uint64_t runs_text = 1ULL << 53;       ///< of a script, not a digest
inline constexpr std::uint64_t calls_function = 1ULL << 54;  ///< of a library
inline constexpr std::uint64_t debugs = 1ULL << 55;          ///< DEBUG
inline constexpr std::uint64_t keeps_caching = 1ULL << 56;   ///< keeps CLIENT CACHING in effect
inline constexpr std::uint64_t has_secrets = 1ULL << 57;     ///< passwords: see is_secret()

}  // namespace command_flag

namespace command_category {
// In the order of command_category_names().
inline constexpr std::uint32_t keyspace = 1U << 0;
inline constexpr std::uint32_t read = 1U << 1;
inline constexpr std::uint32_t write = 1U << 2;
inline constexpr std::uint32_t set = 1U << 3;
inline constexpr std::uint32_t sortedset = 1U << 4;
inline constexpr std::uint32_t list = 1U << 5;
inline constexpr std::uint32_t hash = 1U << 6;
inline constexpr std::uint32_t string = 1U << 7;
inline constexpr std::uint32_t bitmap = 1U << 8;
inline constexpr std::uint32_t hyperloglog = 1U << 9;
inline constexpr std::uint32_t geo = 1U << 10;
inline constexpr std::uint32_t stream = 1U << 11;
inline constexpr std::uint32_t pubsub = 1U << 12;
inline constexpr std::uint32_t admin = 1U << 13;
inline constexpr std::uint32_t fast = 1U << 14;
inline constexpr std::uint32_t slow = 1U << 15;
inline constexpr std::uint32_t blocking = 1U << 16;
inline constexpr std::uint32_t dangerous = 1U << 17;
inline constexpr std::uint32_t connection = 1U << 18;
inline constexpr std::uint32_t transaction = 1U << 19;
inline constexpr std::uint32_t scripting = 1U << 20;
}  // namespace command_category

/// Names of the flags that COMMAND shows, by bit.
std::span<const std::string_view> command_flag_names() noexcept;
/// Names of the categories with '@', by bit.
std::span<const std::string_view> command_category_names() noexcept;

}  // namespace eddy::cache
