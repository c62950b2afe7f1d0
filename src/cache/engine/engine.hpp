// The cache engine: parsed commands in, RESP replies out. No sockets, no threads, no clock of its
// own.
//
// ROOMS of src/cache in reading order; each has one header that opens with its description:
//
//   engine        engine.hpp: the interface to servers; execution, lanes, upkeep
//   memory        slab.hpp: slabs, and entry.hpp, the layout of a key
//   keyspace      keyspace.hpp: databases, the hash table, expiration, eviction
//   types         collection.hpp: values; lists, sets, hashes, sorted sets, streams
//   catalog       command_table.hpp: names, arity, flags, keys and syntax of commands
//   commands      catalog/commands.hpp: the commands themselves
//   clients       session.hpp: sessions, pub/sub, waits, CLIENT TRACKING
//   acl           acl.hpp: users and permissions
//   config        config.hpp: CONFIG's parameters
//   rdb           format.hpp: RDB files and DUMP payloads, snapshots
//   persistence   persistence.hpp: SAVE, the append-only file, propagation of changes
//   replication   replication.hpp: master and replica, FAILOVER, MIGRATE
//   read_through  read_through.hpp: load on miss and write-behind by scripts
//   script        scripts.hpp: EVAL and functions, on LuaJIT
//   testing       test_client.hpp: fixtures, comparison with redis-server
//
// A pipelined batch is executed in order, after its memory has been prefetched: the keys of up to
// 128 commands are hashed and their buckets fetched, then their entries, then the commands run.
// With a million keys this hides most of the memory's latency.
//
// Every command on one key is O(1) or O(elements it names or returns); LINDEX, LSET, LINSERT and
// LREM also pay for the blocks they walk over; KEYS is O(keys). The replies are those of Redis 7.2.
//
// The engine stands on memory, keyspace, types and catalog; it shares a floor with acl, clients,
// config, rdb, persistence, replication, read_through and script. Its files in reading order:
//
//   engine.hpp, call.hpp          the interface to servers, and to commands
//   engine_state.hpp              the state shared by commands and rooms
//   execution.hpp                 MULTI, pauses, refusals before a command runs
//   planner.hpp, keys_ahead.hpp   prefetching
//   lane.hpp                      parallel execution
//   server_host.hpp, traffic.hpp  services of the server
//   field_expiry.hpp              removal of expired hash fields
//   command_stats.hpp, slow_log.hpp, dataset_digest.hpp, version.hpp
#pragma once

#include <eddy/base/byte_buffer.hpp>
#include <eddy/wire/resp/command.hpp>

#include "cache/clients/session.hpp"
#include "cache/keyspace/eviction.hpp"
#include "cache/keyspace/statistics.hpp"
#include "cache/memory/large_argument.hpp"
#include "cache/memory/slice_limit.hpp"
#include "cache/types/encoding_limits.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
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

/// 16 databases and their clients. One thread at a time: that of its loop, or one that visits it
/// (lockable_loop). The same holds for all in src/cache that says so. Several threads at a time
/// execute commands by lanes alone.
class engine {
public:
    static constexpr unsigned databases = 16;
    /// Commands whose keys are fetched together.
    static constexpr std::size_t max_batch = 128;
    /// Smaller batches, and databases whose tables fit into the second-level cache, are executed
    /// without fetching ahead: it would cost more than it brings. Measured with `cache_engine KEYS
    /// BATCH random` on an AMD EPYC with 1 MiB of that cache: of a million keys a GET takes 201 ns
    /// in place of 283 in batches of two, and 7 % less where it is alone; in batches of a hundred
    /// it costs as much either way between 8,000 keys (28.9 ns and 27.7) and 16,000 (29.1
    /// and 31.0).
    static constexpr std::size_t min_prefetch_batch = 2;
    static constexpr std::size_t min_prefetch_keys = 8 * 1024;
    /// Keys that one command evicts at most, or slices of as many discarded entries that it frees,
    /// for longest_slice_ns; what is left over is for upkeep().
    static constexpr int max_evictions = 64;

    explicit engine(engine_options options = {});
    engine(const engine&) = delete;
    engine& operator=(const engine&) = delete;
    /// All its sessions are gone by then.
    ~engine();

    /// Sets the time, since 1970, UTC. Call it before execute() and upkeep(), once for each
    /// iteration of the loop, which INFO counts. Before the first call it is the time at
    /// construction, of the system's clock.
    void set_time(std::chrono::microseconds since_1970) noexcept;
    /// The same with a time that goes on evenly and never back, from any beginning: when the
    /// system's clock is set keys end by the new time, and waits, pauses and the lags of replicas
    /// go on as they were. Without it that is the time since 1970.
    void set_time(std::chrono::microseconds since_1970, std::chrono::microseconds steady) noexcept;
    /// Clock that limits upkeep(), evictions and scripts, in place of the system's steady clock;
    /// null: only the number of their steps bounds them, so that a run can be repeated exactly.
    void set_slice_clock(slice_clock by) noexcept;
    /// The steady time that was set last, in microseconds.
    std::int64_t steady_us() const noexcept;

    /// Executes the commands in order and appends their replies to `out`. Returns the number of
    /// executed commands: all, or fewer when `out` has reached max_pending_reply (send it, then
    /// call again with the rest), the session is blocked (keep the rest until session::wake() was
    /// called and `blocked` is false) or closing (drop the rest). At least one is executed unless
    /// the session is blocked or closing. The output of take_output() comes first. The commands'
    /// views must stay valid until it returns.
    std::size_t execute(session& who, std::span<const resp::command> commands, byte_buffer& out);
    /// The same for one command with large arguments: a string that is set keeps its argument's
    /// block. Unused blocks are freed later, and `large` is empty then; if the command was not
    /// executed they stay.
    std::size_t execute(session& who, const resp::command& command,
                        std::vector<large_argument>& large, byte_buffer& out);
    /// Frees them a piece at a time, in upkeep(), and empties the list.
    void discard(std::vector<large_argument>& large) noexcept;

    /// Takes in what lanes have done, see lane.hpp. Call it before anything else, after any of them
    /// may have been in use.
    void merge_lanes() noexcept;

    /// A script has taken some milliseconds and was left in the middle. Until it ends its session
    /// is blocked, and all others wait, or get BUSY after busy_reply_ms. go_on() runs it for a few
    /// milliseconds: call it again and again, and let others have their turn between.
    bool script_is_late() const noexcept;
    bool script_is_busy() const noexcept;
    /// Whether there is such a script, clients wait for it, or until a snapshot has written a huge
    /// value that they change: go_on() is at that, too.
    bool is_behind() const noexcept;
    void go_on();
    /// Whether that script is this session's, which must not be destroyed then: a script that is
    /// cut off is half done.
    bool script_is_late(const session& of) const noexcept;

    /// Appends the session's output beside the replies of execute(), caused by other sessions:
    /// messages, the end of a wait. Call it, and send, after session::wake(), in order with the
    /// replies.
    void take_output(session& who, byte_buffer& out);
    /// Sets the number of bytes that the session's connection has taken from the engine, or got as
    /// replies, and not sent yet: for the limits on clients that do not read.
    void set_unsent(session& who, std::size_t bytes);
    /// Time of the next check of clients above their class's soft limit: in microseconds of the
    /// steady time, session::no_deadline while there are none. From then on call check_outputs().
    /// server_host::outputs_due() notifies of an earlier time.
    std::int64_t outputs_due_us() const noexcept;
    /// Closes those whose time over the limit has passed. O(clients), once it is due.
    void check_outputs();

    /// Deadline of a blocked session's wait: in microseconds of the steady time given to
    /// set_time(), or session::no_deadline. From then on call end_wait().
    static std::int64_t deadline_us(const session& who) noexcept;
    /// Ends the session's wait if its time is over.
    void end_wait(session& who);

    /// Background work: removes expired keys, frees deleted values, evicts above the limit. Call it
    /// ten times a second. `steps` bounds each of these; a step is mostly under 200 ns. All of them
    /// together take longest_slice_ns, and one more piece of work; the postponed rest comes first
    /// the next time. True while more remains to be done at once: call again after the next
    /// iteration of the loop.
    bool upkeep(std::size_t steps = 1000);

    /// Share of the keys that the last upkeep() has swept for expired ones, roughly, 1 at most: for
    /// a pass over all keys a minute, call it once a minute times this.
    double swept_share() const noexcept;
    /// Drops the dataset and frees it in slices, so that destruction does not block the loop. Only
    /// without sessions and observers of keys. True while work remains.
    bool wind_up();

    statistics stats() const noexcept;
    /// stats().used_memory alone.
    std::size_t used_memory() const noexcept;
    const engine_options& options() const noexcept;

    /// For the rooms of this layer. The server has engine_files, engine_clients, engine_settings
    /// and replication::of().
    struct state;
    state& internals() noexcept { return *state_; }

private:
    std::unique_ptr<state> state_;
};

}  // namespace eddy::cache
