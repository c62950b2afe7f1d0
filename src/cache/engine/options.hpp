// Options of the engine: what redis.conf and CONFIG SET give it.
#pragma once

#include "cache/keyspace/eviction.hpp"
#include "cache/types/encoding_limits.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::cache {

/// Permissions of all clients together.
enum class access_mode : std::uint8_t {
    readwrite,
    readonly,  ///< what changes keys, files, users or settings is refused with READONLY
    admin,     ///< all, also what stops or debugs the server
};

/// When a client that does not take its output is closed; client-output-buffer-limit's classes.
struct output_limit {
    std::size_t hard = 0;  ///< bytes: closed at once; 0: never
    std::size_t soft = 0;  ///< bytes: closed after `soft_seconds` at or above it; 0: never
    std::int64_t soft_seconds = 0;
    bool operator==(const output_limit&) const noexcept = default;
};
enum class client_class : std::uint8_t { normal, replica, pubsub };

/// Saved when so many changes are there and the last save is so long ago.
struct save_point {
    std::int64_t seconds = 0;
    std::uint64_t changes = 0;
    bool operator==(const save_point&) const noexcept = default;
};

/// When what was written to the append-only file must be on the disk.
enum class fsync_policy : std::uint8_t {
    always,    ///< before its reply goes out
    everysec,  ///< a second later at most
    no,        ///< when the operating system likes
};

/// The append-only file.
struct append_options {
    bool enabled = false;
    fsync_policy fsync = fsync_policy::everysec;
};

/// Masters and replicas: redis.conf's parameters of about the same names.
struct replication_options {
    std::size_t backlog_size = 1U << 20;     ///< bytes kept for replicas that come back
    std::int64_t backlog_ttl_s = 3600;       ///< kept so long without replicas; 0: for ever
    std::int64_t timeout_s = 60;             ///< of a link on which nothing comes
    std::int64_t ping_period_s = 10;         ///< between a master's PINGs
    std::int64_t sync_delay_s = 5;           ///< a full copy waits for more replicas to share it
    std::int64_t min_replicas_to_write = 0;  ///< with fewer, commands that write are refused
    std::int64_t min_replicas_max_lag_s = 10;
    bool serve_stale_data = true;
    bool read_only = true;
    /// Replicas that share one full copy: with so many waiting, it begins before sync_delay_s is
    /// over. 0: no such number.
    std::int64_t enough_for_copy = 0;
};

/// Limits of what is kept for clients, in bytes: for each of them, where nothing else is said.
struct session_limits {
    /// Commands queued by one MULTI; beyond it they are refused, and so is EXEC.
    std::size_t max_transaction = 256U << 20;
    /// Names that it watches, or subscribes to, or waits for; a command that would make them more
    /// is refused.
    std::size_t max_names = 64U << 20;
    /// Output caused by others that waits for it, of any class; beyond it, it is closed.
    std::size_t max_outbox = 256U << 20;
    /// By client_class. Its replies count for a normal client, what others sent it for a
    /// subscriber.
    std::array<output_limit, 3> output{
        {{}, {256U << 20, 64U << 20, 60}, {32U << 20, 8U << 20, 60}}};
    /// Of all clients' buffers; beyond it the largest clients are closed. 0: no limit.
    std::size_t max_memory = 0;
    /// The same as a part of engine_options::max_memory; it counts where it is not 0.
    unsigned max_memory_percent = 0;
};

/// notify-keyspace-events.
struct notification_options {
    std::uint16_t events = 0;  ///< bits of key_event
    bool keyspace = false;     ///< K: published at __keyspace@<db>__:<key>
    bool keyevent = false;     ///< E: published at __keyevent@<db>__:<event>
};

/// SLOWLOG, and events of LATENCY.
struct slow_log_options {
    std::int64_t slower_than_us = 10'000;   ///< what takes this long is recorded; negative: nothing
    std::size_t max_len = 128;              ///< entries
    std::int64_t latency_threshold_ms = 0;  ///< the same for LATENCY; 0: nothing
};

/// INFO latencystats and LATENCY HISTOGRAM.
struct latency_options {
    static constexpr std::size_t max_percentiles = 128;
    bool tracking = true;                           ///< times of commands are kept
    std::vector<double> percentiles{50, 99, 99.9};  ///< in INFO, each from 0 to 100
};

/// When a block of a stream's entries is full; 0: no limit.
struct stream_options {
    std::size_t node_max_bytes = 4096;
    std::size_t node_max_entries = 100;
};

/// All that the engine decides by. What it only shows are server_settings.
struct engine_options {
    access_mode mode = access_mode::readwrite;
    std::uint64_t seed = 0;  ///< of hash and random numbers; 0: from the operating system
    /// Renamed commands; an empty name disables one.
    std::vector<std::pair<std::string, std::string>> renamed_commands;
    /// Answers CLUSTER as a cluster of this one node, for clients that insist on one.
    bool emulates_cluster = false;

    // Memory.
    std::size_t max_memory = 0;  ///< bytes of keys, values and tables; 0: no limit
    eviction policy = eviction::none;

    // Users.
    std::string password;  ///< what AUTH must give; empty: none is needed
    /// New users, and those after `reset`, may use every channel: acl-pubsub-default allchannels.
    bool new_users_use_channels = false;
    std::size_t acllog_max_len = 128;  ///< entries of ACL LOG

    // Sizes of replies and values.
    /// execute() stops when so many bytes of replies wait in its buffer. One reply may be larger.
    std::size_t max_pending_reply = 1U << 20;
    /// One reply of many elements that grows over this is replaced by an error: the same big key
    /// may be asked for a million times in one MGET.
    std::size_t max_reply = 512U << 20;
    /// The longest string, as proto-max-bulk-len.
    std::size_t max_text = 512U << 20;
    encoding_limits limits;  ///< of compact encodings
    stream_options streams;
    /// A sparse HyperLogLog that grows over this becomes a dense one; bytes.
    std::size_t hll_sparse_max_bytes = 3000;
    /// "no", "yes" or "clients". Every payload is checked deeply here; INFO counts those that Redis
    /// would check so.
    std::string sanitize_payload = "no";

    // Clients.
    session_limits clients;
    notification_options notifications;
    /// Keys that are recorded for tracking clients; beyond it keys are invalidated as if they had
    /// changed, and dropped. 0: no limit.
    std::size_t tracking_table_max_keys = 1'000'000;

    // Persistence and replication.
    std::vector<save_point> save_points;
    /// After a failed save commands that write are refused, as long as there are save points.
    bool stop_writes_on_save_error = true;
    append_options append;
    replication_options replication;

    // Scripts.
    /// While a script takes longer its cache's other clients get BUSY; before, they wait. 0: they
    /// wait until it ends.
    std::int64_t busy_reply_ms = 5000;
    /// Bytes of all values of scripts together, and as much again for those of functions.
    std::size_t max_script_memory = 256U << 20;

    // Reports.
    slow_log_options slow_log;
    latency_options latency;
};

}  // namespace eddy::cache
