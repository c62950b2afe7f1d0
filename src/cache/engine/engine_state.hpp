// Engine state: the data and settings shared by all commands.
#pragma once

#include <eddy/base/intrusive_list.hpp>

#include "cache/acl/access_log.hpp"
#include "cache/acl/acl.hpp"
#include "cache/clients/name_registry.hpp"
#include "cache/clients/session.hpp"
#include "cache/clients/tracking_table.hpp"
#include "cache/engine/command_stats.hpp"
#include "cache/engine/options.hpp"
#include "cache/engine/slow_log.hpp"
#include "cache/engine/traffic.hpp"
#include "cache/keyspace/environment.hpp"
#include "cache/keyspace/keyspace.hpp"
#include "cache/persistence/save_host.hpp"
#include "cache/memory/slice_limit.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::cache {
namespace rdb {
class snapshot;
}

class append_log;
class client_memory;
class command_names;
class engine;
class read_through;
class lane;
class migrations;
class propagation;
class replication;
class scripts;
class server_host;
/// Knows how, where there are scripts.
struct scripts_deleter {
    void operator()(scripts* gone) const noexcept;
};

/// Hexadecimal digits.
inline constexpr std::size_t run_id_size = 40;
std::string make_run_id(random_generator& random);
void write_run_id(std::span<char> to, random_generator& random) noexcept;

/// Observers of key changes, as bits; notifications.cpp notifies them.
namespace observers {
inline constexpr std::uint32_t events = 0xffff;  ///< the bits of key_event that are published
inline constexpr std::uint32_t watchers = 1 << 16;
inline constexpr std::uint32_t waiters = 1 << 17;
inline constexpr std::uint32_t trackers = 1 << 18;
inline constexpr std::uint32_t propagation = 1 << 19;  ///< expirations and evictions
inline constexpr std::uint32_t read_through = 1 << 20;
inline constexpr std::uint32_t migrations = 1 << 21;
inline constexpr std::uint32_t own_expirations = 1 << 22;  ///< of a replica's clients
}  // namespace observers

/// Conditions under which every command takes the slow path, see execution.cpp.
namespace slow_path {
inline constexpr std::uint16_t monitors = 1;
inline constexpr std::uint16_t pause = 2;
inline constexpr std::uint16_t save_trouble = 4;  ///< a background save failed: nothing is written
inline constexpr std::uint16_t script = 8;        ///< one is late: other clients get BUSY
inline constexpr std::uint16_t propagates = 16;   ///< changes are written down as commands
inline constexpr std::uint16_t replica = 32;      ///< another server's commands change the data
inline constexpr std::uint16_t loading = 64;      ///< the data is not whole yet
inline constexpr std::uint16_t read_through = 128;  ///< scripts are called on misses and changes
inline constexpr std::uint16_t snapshot = 256;      ///< a snapshot is being written
inline constexpr std::uint16_t starting = 512;      ///< the files are not read, or not made, yet
inline constexpr std::uint16_t migration = 1024;    ///< keys are on their way to another server
/// Clients get LOADING.
inline constexpr std::uint16_t not_ready = loading | starting;
}  // namespace slow_path

/// Of the dump file; persistence.hpp changes it. Times are of the steady clock.
struct save_state {
    save_host* host = nullptr;          ///< null: no dump file is written
    rdb::snapshot* snapshot = nullptr;  ///< the save on its way
    bool scheduled = false;             ///< one is to begin when that has ended
    bool is_background = true;          ///< the one on its way, or the last one
    bool succeeded = true;              ///< the last one, but for a failure in the foreground
    std::int64_t began_us = 0;
    std::int64_t tried_us = 0;     ///< the end of the last one in the background
    std::int64_t saved_us = 0;     ///< of the last one that succeeded, or the server's start
    std::int64_t saved_at_us = 0;  ///< the same, since 1970
    std::int64_t took_s = -1;
    std::uint64_t count = 0;
    std::uint64_t changes_at_begin = 0;
    std::uint64_t saved_changes = 0;  ///< of state.changes, so many are in the file
    std::uint64_t offset_at_begin = 0;
    std::uint64_t saved_offset = 0;  ///< in the stream of replication, as the file says
    std::uint64_t loaded_keys = 0;
    std::uint64_t loaded_expired = 0;
};

/// How far a start has come with its files, or a replica with its master's data; persistence.hpp
/// begins it.
struct load_progress {
    std::int64_t began_us = 0;       // of the steady clock
    std::int64_t began_at_us = 0;    // the same, since 1970
    std::uint64_t total_bytes = 0;   // 0: not known
    std::uint64_t loaded_bytes = 0;  // of them, understood
    std::uint64_t used_memory = 0;   // bytes that its writer had in use, as it says; 0: unknown
};

struct engine_state final : key_observer {
    explicit engine_state(engine_options given);
    ~engine_state();

    /// The database of this number, made when it is first asked for.
    keyspace& database(std::size_t number) {
        std::unique_ptr<keyspace>& of = keyspaces[number];
        if (!of) of = std::make_unique<keyspace>(env, static_cast<unsigned>(number));
        return *of;
    }

    void count_error(std::string_view text) noexcept {
        ++env.counters.errors;
        commands.count_error(text);
    }
    /// Bytes that the clients have sent and received since forget_moved().
    traffic moved() const noexcept;
    void forget_moved() noexcept;
    /// Samples the totals that INFO shows as rates, when due.
    void take_rates(std::uint64_t executed);

    /// Bytes of an engine without keys, about. They count for max_memory.
    static constexpr std::size_t startup_bytes = 2048;
    /// Bytes that INFO shows as used, and that max_memory limits.
    std::size_t used_memory() const noexcept { return env.memory.used_bytes() + startup_bytes; }
    /// Evicts until below max_memory. False when a command that needs memory must be refused.
    bool make_room();
    enum class room : std::uint8_t {
        there,  ///< enough, or what was evicted may do for now
        later,  ///< keys that may go were not found yet, but will be
        none,   ///< nothing may go
    };
    room make_room(slice_limit& slice);
    /// Begins or ends the time above max_memory that INFO shows.
    void note_limit() noexcept;

    engine_options options;
    environment env;
    std::array<std::unique_ptr<keyspace>, engine_databases> keyspaces;
    std::unique_ptr<rdb::snapshot> snapshot;  // while it is written or cleared up after
    intrusive_list<session> sessions;
    std::uint64_t next_session_id = 1;
    std::int64_t started_us = 0;
    std::string run_id;  // 40 hexadecimal digits
    slow_log slow;
    command_stats commands;
    rate_meter rates;
    traffic moved_before;  // of an earlier start of the server, or before CONFIG RESETSTAT
    save_state saves;
    load_progress load;
    byte_buffer reload_file;  // of the last DEBUG RELOAD, for NOSAVE
    acl::users users{options.password};
    access_log refusals;
    std::size_t peak_memory = 0;
    std::uint64_t changes = 0;        // to keys, since the start
    bool sweeps = true;               // upkeep() looks for expired keys
    bool scripts_call_debug = false;  // by DEBUG SET-DISABLE-DENY-SCRIPTS
    double swept_share = 1;           // see engine::swept_share()
    std::size_t upkeep_part = 0;      // what comes first
    std::size_t upkeep_database = 0;  // whose turn it is
    std::size_t evict_database = 0;

    // Clients that act on each other: notifications.cpp, messages.cpp, waits.cpp.
    void key_happened(unsigned database, key_event kind, std::string_view name,
                      std::string_view key) override;
    /// The part of it that is for clients, and not for scripts.
    void notify_clients(unsigned database, key_event kind, std::string_view name,
                        std::string_view key);
    /// The part of it for watchers of the key.
    void notify_watchers(unsigned database, key_event kind, std::string_view key);
    /// The part of it that is published.
    void publish_event(unsigned database, key_event kind, std::string_view name,
                       std::string_view key);
    /// Calls server_host::obstacle_ended().
    void note_obstacle_ended() noexcept;
    /// Updates `observers` after a change of observers.
    void note_observers() noexcept;

    std::uint32_t observers = 0;  // of observers
    std::uint16_t slow_path = 0;  // of slow_path
    bool has_effects = false;     // there are own pushes, or ready keys
    name_registry watched{env.hash};
    name_registry channels{env.hash};
    name_registry patterns{env.hash};
    name_registry shard_channels{env.hash};
    name_registry awaited{env.hash};  // keys that sessions wait for
    tracking_table tracking{env};
    std::vector<session*> monitors;
    session* executing = nullptr;  // whose reply is being written
    byte_buffer own_pushes;        // for that one, behind its reply
    struct ready_key {
        unsigned database;
        std::string key;
    };
    std::deque<ready_key> ready_keys;
    std::size_t blocked_sessions = 0;
    std::vector<session*> copy_waits;  // WAIT and WAITAOF, in the order of their waits
    // Sessions that wait for the end of another's script, in the order of their waits; and how many
    // of them may try again at once.
    std::map<std::uint64_t, session*> script_waits;
    std::uint64_t script_waits_begun = 0;
    std::size_t script_waits_ended_at_once = 1;
    bool some_wait_for_snapshot = false;                 // sessions, or the end of fields
    std::int64_t outputs_due_us = session::no_deadline;  // see engine::outputs_due_us()
    std::int64_t paused_until_us = 0;                    // by CLIENT PAUSE; 0: they are not
    bool pauses_writes_only = false;
    std::uint8_t writes_held = 0;     // why they wait, beside CLIENT PAUSE: bits of write_hold
    std::int64_t http_logged_us = 0;  // when a browser's request was last logged; 0: never

    // Null while no sink is attached.
    std::unique_ptr<propagation> propagating;  // changes as commands, for files and replicas
    std::unique_ptr<append_log> appending;     // the append-only file
    std::unique_ptr<replication> replicating;  // masters and replicas
    std::unique_ptr<read_through> hooked;      // scripts which serve misses and observe changes.
    std::unique_ptr<migrations> migrating;     // keys on their way to other servers
    std::unique_ptr<client_memory> clients_memory;  // of maxmemory-clients
    std::unique_ptr<const command_names> renamed;   // commands by other names
    engine* home = nullptr;                         // whose state it is
    server_host* server = nullptr;                  // files, and the daemon

    std::vector<lane*> lanes;  // of the threads that execute commands at the same time
    alignas(64) std::atomic<std::chrono::nanoseconds> lanes_take_turns_until{};

    std::unique_ptr<scripts, scripts_deleter> scripting;  // null until the first one
};

}  // namespace eddy::cache
