// Engine state: the data and settings shared by all commands.
#pragma once

#include "cache/clients/client_state.hpp"
#include "cache/config/configuration.hpp"
#include "cache/engine/command_stats.hpp"
#include "cache/engine/slow_log.hpp"
#include "cache/engine/traffic.hpp"
#include "cache/keyspace/dataset.hpp"
#include "cache/memory/slice_limit.hpp"
#include "cache/persistence/persistence_state.hpp"
#include "cache/replication/replication_state.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace eddy::cache {

class engine;
class lane;
class read_through;
class scripts;
class server_host;
/// Deleter defined where scripts are built in.
struct scripts_deleter {
    void operator()(scripts* gone) const noexcept;
};

/// Each part is in the room of its subject; code that needs one part takes only that. STATE_WRITERS
/// of tools/tidy.py names the rooms that write each.
struct engine_state final : key_observer {
    explicit engine_state(engine_options given);
    ~engine_state();

    void count_error(std::string_view text) noexcept {
        ++data.env.counters.errors;
        commands.count_error(text);
    }
    /// Bytes that the clients have sent and received since forget_moved().
    traffic moved() const noexcept;
    void forget_moved() noexcept;
    /// Samples the totals that INFO shows as rates, when due.
    void take_rates(std::uint64_t executed);

    /// Approximate bytes of an engine without keys. They count for max_memory.
    static constexpr std::size_t startup_bytes = 2048;
    /// Bytes that INFO shows as used, and that max_memory limits.
    std::size_t used_memory() const noexcept {
        return data.env.memory.used_bytes() + startup_bytes;
    }
    /// Evicts until below max_memory. False when a command that needs memory must be refused.
    bool make_room();
    enum class room : std::uint8_t {
        there,  ///< enough, or evicted enough for now
        later,  ///< no key to evict was found yet, but there is one
        none,   ///< no key may be evicted
    };
    room make_room(slice_limit& slice);
    /// Starts or ends the time above max_memory that INFO shows.
    void note_limit() noexcept;

    configuration settings;
    [[no_unique_address]] dataset data;  // its end's padding is used by what follows
    client_state clients;
    persistence_state persistence;
    replication_state replication;

    std::int64_t started_us = 0;
    slow_log slow;
    command_stats commands;
    rate_meter rates;
    traffic moved_before;  // of an earlier start of the server, or before CONFIG RESETSTAT
    std::size_t peak_memory = 0;
    bool sweeps = true;               // upkeep() sweeps expired keys
    bool scripts_call_debug = false;  // by DEBUG SET-DISABLE-DENY-SCRIPTS
    double swept_share = 1;           // see engine::swept_share()
    std::size_t upkeep_part = 0;      // part that the next upkeep() begins with
    std::size_t upkeep_database = 0;  // database that comes next
    std::size_t evict_database = 0;

    // Clients that act on each other: notifications.cpp, messages.cpp, waits.cpp.
    void key_happened(unsigned database, key_event kind, std::string_view name,
                      std::string_view key) override;
    /// Its part for clients, without scripts.
    void notify_clients(unsigned database, key_event kind, std::string_view name,
                        std::string_view key);
    /// Its part for watchers of the key.
    void notify_watchers(unsigned database, key_event kind, std::string_view key);
    /// Its part for keyspace notifications.
    void publish_event(unsigned database, key_event kind, std::string_view name,
                       std::string_view key);
    /// Calls server_host::obstacle_ended().
    void note_obstacle_ended() noexcept;
    /// Updates `observers` after a change of observers.
    void note_observers() noexcept;

    std::unique_ptr<read_through> hooked;  // scripts on misses and changes; null: there are none
    engine* home = nullptr;                // the engine of this state
    server_host* server = nullptr;         // files, and the daemon

    std::vector<lane*> lanes;  // of the threads that execute commands at the same time
    alignas(64) std::atomic<std::chrono::nanoseconds> lanes_take_turns_until{};

    std::unique_ptr<scripts, scripts_deleter> scripting;  // null until the first one
};

}  // namespace eddy::cache
