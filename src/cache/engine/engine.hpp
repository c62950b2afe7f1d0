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
//   engine.hpp, call.hpp          the interface to servers, and to commands; batch.cpp, upkeep.cpp
//                                 and lifetime.cpp have the functions of the first
//   options.hpp                   what CONFIG changes
//   engine_state.hpp              the state shared by commands and rooms: clients/client_state.hpp,
//                                 config/configuration.hpp, keyspace/dataset.hpp and so on
//   execution.hpp                 MULTI, pauses, refusals before a command runs
//   running.hpp                   a command that runs, and its time
//   planner.hpp, keys_ahead.hpp   prefetching
//   lane.hpp                      parallel execution
//   server_host.hpp, traffic.hpp  services of the server
//   field_expiry.hpp              removal of expired hash fields
//   command_stats.hpp, slow_log.hpp, dataset_digest.hpp, version.hpp
#pragma once

#include <eddy/base/byte_buffer.hpp>
#include <eddy/wire/resp/command.hpp>

#include "cache/clients/client_session.hpp"
#include "cache/engine/options.hpp"
#include "cache/keyspace/dataset.hpp"
#include "cache/keyspace/statistics.hpp"
#include "cache/memory/large_argument.hpp"
#include "cache/memory/slice_limit.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace eddy::cache {

struct engine_state;

/// 16 databases and their clients. One thread at a time: its loop's, or one with a loop_lock on it
/// (lockable_loop). The same holds for every class in src/cache that names the engine's thread.
/// Only lanes execute commands on several threads at a time.
class engine {
public:
    static constexpr unsigned databases = engine_databases;
    /// Commands whose keys are fetched together.
    static constexpr std::size_t max_batch = 128;
    /// Smaller batches, and databases whose tables fit into the second-level cache, are executed
    /// without prefetching, which would cost more than it gains. Measured with `cache_engine KEYS
    /// BATCH random` on an AMD EPYC with 1 MiB of that cache: of a million keys a GET takes 201 ns
    /// in place of 283 in batches of two, and 7 % less without a batch; in batches of a hundred it
    /// costs as much either way between 8,000 keys (28.9 ns and 27.7) and 16,000 (29.1 and 31.0).
    static constexpr std::size_t min_prefetch_batch = 2;
    static constexpr std::size_t min_prefetch_keys = 8 * 1024;
    /// At most so many evicted keys, or slices of as many discarded entries freed, in one command,
    /// for longest_slice_ns; upkeep() does the rest.
    static constexpr int max_evictions = 64;

    explicit engine(engine_options options = {});
    engine(const engine&) = delete;
    engine& operator=(const engine&) = delete;
    /// All its sessions must be destroyed before.
    ~engine();

    /// Sets the time, since 1970, UTC. Call it before execute() and upkeep(), once for each
    /// iteration of the loop, which INFO counts. Before the first call it is the system's time at
    /// construction.
    void set_time(std::chrono::microseconds since_1970) noexcept;
    /// The same with a monotonic time of any origin. When the system's clock is set, keys expire by
    /// the new time, while waits, pauses and the lags of replicas are not affected. Without it, the
    /// time since 1970 is used.
    void set_time(std::chrono::microseconds since_1970, std::chrono::microseconds steady) noexcept;
    /// Clock that limits upkeep(), evictions and scripts, instead of the system's steady clock;
    /// null: only the number of their steps is limited, so that a run can be repeated exactly.
    void set_slice_clock(slice_clock by) noexcept;
    /// The last steady time, in microseconds.
    std::int64_t steady_us() const noexcept;

    /// Executes the commands in order and appends their replies to `out`. Returns the number of
    /// executed commands: all, or fewer when `out` has reached max_pending_reply (send it, then
    /// call again with the rest), the session is blocked (keep the rest until session::wake() was
    /// called and `blocked` is false) or closing (drop the rest). At least one is executed unless
    /// the session is blocked or closing. The output of take_output() comes first. The commands'
    /// views must stay valid until it returns.
    std::size_t execute(client_session& who, std::span<const resp::command> commands,
                        byte_buffer& out);
    /// The same for one command with large arguments: a string that is set keeps its argument's
    /// block. Unused blocks are freed later, and `large` is empty then; if the command was not
    /// executed they stay.
    std::size_t execute(client_session& who, const resp::command& command,
                        std::vector<large_argument>& large, byte_buffer& out);
    /// Frees the blocks in pieces, in upkeep(), and empties the list.
    void discard(std::vector<large_argument>& large) noexcept;

    /// Merges the lanes' counters and state, see lane.hpp. After lanes may have run, it must be the
    /// first call.
    void merge_lanes() noexcept;

    /// A script has taken some milliseconds and was suspended. Until it ends its session is
    /// blocked, and all others wait, or get BUSY after busy_reply_ms. go_on() runs it for a few
    /// milliseconds: call it repeatedly, with other work of the loop in between.
    bool script_is_late() const noexcept;
    bool script_is_busy() const noexcept;
    /// True while there is such a script, while clients wait for its end, or while clients wait
    /// until a snapshot has written a huge value: go_on() does that work, too.
    bool is_behind() const noexcept;
    void go_on();
    /// True if that script is this session's, which must not be destroyed then: the script's
    /// changes would remain incomplete.
    bool script_is_late(const client_session& of) const noexcept;

    /// Appends the session's output beside the replies of execute(), caused by other sessions:
    /// messages, the end of a wait. Call it after session::wake(), and send the output in order
    /// with the replies.
    void take_output(client_session& who, byte_buffer& out);
    /// Sets the number of bytes that the session's connection has taken from the engine, or got as
    /// replies, and not sent yet: for the limits on clients that do not read.
    void set_unsent(client_session& who, std::size_t bytes);
    /// Time of the next check of clients above their class's soft limit: in microseconds of the
    /// steady time, session::no_deadline while there are none. From then on call check_outputs().
    /// server_host::outputs_due() notifies of an earlier time.
    std::int64_t outputs_due_us() const noexcept;
    /// Closes clients whose time above the limit has passed. O(clients), once it is due.
    void check_outputs();

    /// Deadline of a blocked session's wait: in microseconds of the steady time given to
    /// set_time(), or session::no_deadline. From then on call end_wait().
    static std::int64_t deadline_us(const client_session& who) noexcept;
    /// Ends the session's wait if its deadline has passed.
    void end_wait(client_session& who);

    /// Background work: removes expired keys, frees deleted values, evicts above the limit. Call it
    /// ten times a second. `steps` bounds each of these; a step is mostly under 200 ns. Together
    /// they take longest_slice_ns, plus one piece of work; the next call begins with the rest. True
    /// while more work is due at once: call again after the next iteration of the loop.
    bool upkeep(std::size_t steps = 1000);

    /// Approximate share of the keys that the last upkeep() has swept for expired ones, at most 1.
    /// For one pass over all keys a minute, call it once a minute times this.
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
    using state = engine_state;
    state& internals() noexcept { return *state_; }

private:
    std::unique_ptr<state> state_;
};

}  // namespace eddy::cache
