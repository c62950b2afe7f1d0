// State of an engine's clients: sessions, and what they wait for, watch and are sent.
#pragma once

#include <eddy/base/byte_buffer.hpp>
#include <eddy/base/intrusive_list.hpp>

#include "cache/acl/access_log.hpp"
#include "cache/clients/client_session.hpp"
#include "cache/clients/name_registry.hpp"
#include "cache/clients/tracking_table.hpp"
#include "cache/keyspace/environment.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace eddy::cache {

class client_memory;

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

/// Member `clients` of engine_state.
struct client_state {
    explicit client_state(environment& env);
    ~client_state();

    intrusive_list<client_session> sessions;
    intrusive_list<client_session> closed;  // by kill(), until retire_closed()
    std::uint64_t next_session_id = 1;
    access_log refusals;
    std::uint32_t observers = 0;  // of observers
    std::uint16_t slow_path = 0;  // of slow_path
    bool has_effects = false;     // there are own pushes, or ready keys
    name_registry watched;
    name_registry channels;
    name_registry patterns;
    name_registry shard_channels;
    name_registry awaited;  // keys that sessions wait for
    tracking_table tracking;
    std::vector<client_session*> monitors;
    client_session* executing = nullptr;  // whose reply is being written
    byte_buffer own_pushes;               // for that one, behind its reply
    struct ready_key {
        unsigned database;
        std::string key;
    };
    std::deque<ready_key> ready_keys;
    std::size_t blocked_sessions = 0;
    std::vector<client_session*> copy_waits;  // WAIT and WAITAOF, in the order of their waits
    // Sessions that wait for the end of another's script, in the order of their waits; and how many
    // of them may try again at once.
    std::map<std::uint64_t, client_session*> script_waits;
    std::uint64_t script_waits_begun = 0;
    std::size_t script_waits_ended_at_once = 1;
    bool some_wait_for_snapshot = false;                        // sessions, or the end of fields
    std::int64_t outputs_due_us = client_session::no_deadline;  // see engine::outputs_due_us()
    std::int64_t paused_until_us = 0;                           // by CLIENT PAUSE; 0: they are not
    bool pauses_writes_only = false;
    std::uint8_t writes_held = 0;     // why they wait, beside CLIENT PAUSE: bits of write_hold
    std::int64_t http_logged_us = 0;  // when a browser's request was last logged; 0: never
    std::unique_ptr<client_memory> memory;  // of maxmemory-clients
};

}  // namespace eddy::cache
