// Engine options, set by redis.conf and CONFIG SET.
#pragma once

#include "cache/engine/version.hpp"
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
    readonly,  ///< commands that change keys, files, users or settings fail with READONLY
    admin,     ///< all commands, also to stop or debug the server
};

/// Limit on output that a client does not read, after which it is closed;
/// client-output-buffer-limit's classes.
struct output_limit {
    std::size_t hard = 0;  ///< bytes: closed at once; 0: never
    std::size_t soft = 0;  ///< bytes: closed after `soft_seconds` at or above it; 0: never
    std::int64_t soft_seconds = 0;
    bool operator==(const output_limit&) const noexcept = default;
};
enum class client_class : std::uint8_t { normal, replica, pubsub };

/// Condition of a save: at least so many changes, and so long since the last save.
struct save_point {
    std::int64_t seconds = 0;
    std::uint64_t changes = 0;
    bool operator==(const save_point&) const noexcept = default;
};

/// Time at which writes to the append-only file are flushed to the disk.
enum class fsync_policy : std::uint8_t {
    always,    ///< before its reply goes out
    everysec,  ///< at most a second later
    no,        ///< when the operating system writes it
};

/// The append-only file.
struct append_options {
    bool enabled = false;
    fsync_policy fsync = fsync_policy::everysec;
};

/// Masters and replicas: redis.conf's parameters of about the same names.
struct replication_options {
    std::size_t backlog_size = 1U << 20;     ///< bytes kept for replicas that reconnect
    std::int64_t backlog_ttl_s = 3600;       ///< kept so long without replicas; 0: forever
    std::int64_t timeout_s = 60;             ///< of a silent link
    std::int64_t ping_period_s = 10;         ///< between a master's PINGs
    std::int64_t sync_delay_s = 5;           ///< a full copy waits for more replicas to share it
    std::int64_t min_replicas_to_write = 0;  ///< with fewer, write commands are refused
    std::int64_t min_replicas_max_lag_s = 10;
    bool serve_stale_data = true;
    bool read_only = true;
    /// At most so many replicas share one full copy: with so many waiting, it begins before
    /// sync_delay_s has passed. 0: no such number.
    std::int64_t enough_for_copy = 0;
};

/// Limits of the memory kept for clients: bytes for each client, unless noted otherwise.
struct session_limits {
    /// Commands queued by one MULTI; beyond it they are refused, and so is EXEC.
    std::size_t max_transaction = 256U << 20;
    /// Names that it watches, subscribes to or waits for; a command that would exceed it is
    /// refused.
    std::size_t max_names = 64U << 20;
    /// Output caused by other clients and not taken yet, for any class; beyond it the client is
    /// closed.
    std::size_t max_outbox = 256U << 20;
    /// By client_class. A normal client's replies count, and a subscriber's messages.
    std::array<output_limit, 3> output{
        {{}, {256U << 20, 64U << 20, 60}, {32U << 20, 8U << 20, 60}}};
    /// All clients' buffers together; beyond it the largest clients are closed. 0: no limit.
    std::size_t max_memory = 0;
    /// The same in percent of engine_options::max_memory; takes precedence unless 0.
    unsigned max_memory_percent = 0;
};

/// notify-keyspace-events.
struct notification_options {
    std::uint16_t events = 0;  ///< bits of key_event
    bool keyspace = false;     ///< K: published at __keyspace@<db>__:<key>
    bool keyevent = false;     ///< E: published at __keyevent@<db>__:<event>
};

/// COMMANDLOG of large requests, or of large replies.
struct size_log_options {
    std::int64_t larger_than = 1 << 20;  ///< commands of so many bytes are recorded; negative: none
    std::size_t max_len = 128;           ///< entries
};

/// SLOWLOG, which is COMMANDLOG SLOW, COMMANDLOG's other logs, and events of LATENCY.
struct slow_log_options {
    std::int64_t slower_than_us = 10'000;   ///< commands that take this long are recorded;
                                            ///< negative: none
    std::size_t max_len = 128;              ///< entries
    std::int64_t latency_threshold_ms = 0;  ///< the same for LATENCY; 0: none
    size_log_options requests;
    size_log_options replies;
};

/// INFO latencystats and LATENCY HISTOGRAM.
struct latency_options {
    static constexpr std::size_t max_percentiles = 128;
    bool tracking = true;                           ///< times of commands are recorded
    std::vector<double> percentiles{50, 99, 99.9};  ///< in INFO, each from 0 to 100
};

/// Limits of one block of a stream's entries; 0: no limit.
struct stream_options {
    std::size_t node_max_bytes = 4096;
    std::size_t node_max_entries = 100;
};

/// Parameters that affect the engine. server_settings are only shown by it.
struct engine_options {
    access_mode mode = access_mode::readwrite;
    std::uint64_t seed = 0;  ///< of hash and random numbers; 0: from the operating system
    /// Renamed commands; an empty name disables one.
    std::vector<std::pair<std::string, std::string>> renamed_commands;
    /// Version of Redis that INFO and HELLO show.
    std::string redis_version{compatible_version};
    /// Answers CLUSTER as a cluster of this one node, for clients that require a cluster.
    bool emulates_cluster = false;

    // Memory.
    std::size_t max_memory = 0;  ///< bytes of keys, values and tables; 0: no limit
    eviction policy = eviction::none;

    // Users.
    std::string password;  ///< password of the default user; empty: none is required
    /// New users, and users after `reset`, may use all channels: acl-pubsub-default allchannels.
    bool new_users_use_channels = false;
    std::size_t acllog_max_len = 128;  ///< entries of ACL LOG

    // execute() stops at so many bytes of replies in its buffer. A single reply may be larger.
    std::size_t max_pending_reply = 1U << 20;
    /// A reply of many elements that exceeds this is replaced by an error: one MGET may name the
    /// same big key a million times.
    std::size_t max_reply = 512U << 20;
    /// The longest string, as proto-max-bulk-len.
    std::size_t max_text = 512U << 20;
    encoding_limits limits;  ///< of compact encodings
    stream_options streams;
    /// Beyond so many bytes a sparse HyperLogLog becomes a dense one.
    std::size_t hll_sparse_max_bytes = 3000;
    /// "no", "yes" or "clients". Every payload is checked deeply here; INFO counts the checks that
    /// Redis would make.
    std::string sanitize_payload = "no";

    // Clients.
    session_limits clients;
    notification_options notifications;
    /// Recorded keys of tracking clients; beyond it keys are invalidated as if they had changed,
    /// and dropped. 0: no limit.
    std::size_t tracking_table_max_keys = 1'000'000;

    // Persistence and replication.
    std::vector<save_point> save_points;
    /// After a failed save write commands are refused, as long as there are save points.
    bool stop_writes_on_save_error = true;
    append_options append;
    replication_options replication;

    // After so long a script, other clients of its cache get BUSY; before, they wait. 0: they wait
    // until it ends.
    std::int64_t busy_reply_ms = 5000;
    /// At most so many bytes of values of all scripts together, and as much again for functions.
    std::size_t max_script_memory = 256U << 20;

    // Reports.
    slow_log_options slow_log;
    latency_options latency;
};

}  // namespace eddy::cache
