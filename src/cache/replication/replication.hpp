// Replication, engine side: master and replica roles, offsets, and the bytes to be sent. The server
// owns the connections (runtime/cache/replication/master_side.hpp, replica_side.hpp).
//
// A master records its changes as commands, one stream of bytes for all its replicas, and counts
// the bytes: that is the offset. A replica forwards its input byte for byte, so all replicas of one
// master, through any chain, have the same offsets and are interchangeable.
//
// The room replication holds data shared with other servers. Files in reading order:
//
//   replication.hpp        roles, replicas, WAIT; replication_replica.cpp the replica's half
//   replication_state.hpp  an engine's state of it
//   replication_feed.hpp   the stream's bytes: backlog and unsent output
//   failover_plan.hpp      FAILOVER; replication_failover.cpp
//   replication_info.hpp   INFO and ROLE
//   own_expirations.hpp    expirations set by a writable replica's clients
//   migration.hpp          MIGRATE
//
// It stands on keyspace, and on persistence/propagation.hpp of the same floor for changes as
// commands.
#pragma once

#include <eddy/base/byte_buffer.hpp>

#include "cache/engine/call.hpp"
#include "cache/engine/engine.hpp"
#include "cache/persistence/propagation.hpp"
#include "cache/replication/failover_plan.hpp"
#include "cache/replication/own_expirations.hpp"
#include "cache/replication/replication_feed.hpp"
#include "cache/replication/stream_position.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::cache {

/// Content of a full copy: REPLCONF rdb-filter-only.
enum class copy_content : std::uint8_t { everything, functions, nothing };

/// All data of one instant as an RDB file, in pieces, for the replicas that requested it at about
/// the same time.
struct full_copy {
    /// At most so many pieces are ahead of the slowest replica.
    static constexpr std::size_t max_pieces = 8;
    /// The same for a complete copy of one replica's own.
    static constexpr std::size_t max_own_pieces = 2;

    std::deque<std::shared_ptr<const byte_buffer>> pieces;
    std::uint64_t first = 0;  ///< the number of pieces.front()
    std::string end_mark;     ///< after the last piece; empty if the size is announced before
    bool complete = false;    ///< no piece follows
    copy_content content = copy_content::everything;
    /// Expiring fields of hashes have Valkey 9's form.
    bool has_valkeys_form = false;
    /// Some of its replicas must know its size first, so it is completed before the first piece is
    /// sent.
    bool is_sized = false;
};

/// Connected replica: its session and progress.
struct replica {
    enum class stage : std::uint8_t {
        introduced,  ///< it has sent its attributes, but no request
        waiting,     ///< waits for a full copy to begin
        copying,     ///< is sent one
        copied,      ///< must acknowledge it
        online,      ///< is sent the stream
    };

    explicit replica(client_session& of) noexcept : who(of) {}

    client_session& who;
    stage now = stage::introduced;
    std::uint16_t port = 0;     ///< its listening port
    std::string host;           ///< announced by REPLCONF; empty: its address
    bool takes_eof = false;     ///< accepts a copy of unknown size
    bool takes_new_id = false;  ///< psync2
    /// Major version of a Valkey, which names its own since 8.0; 0: none is named.
    unsigned valkey_version = 0;
    bool takes_channel = false;  ///< rdb-channel-repl: it is Redis 8.0 or newer
    bool copy_only = false;      ///< disconnects after the copy
    copy_content content = copy_content::everything;
    bool plain = false;       ///< by SYNC: it sends no acknowledgements
    bool confirmed = false;   ///< it has acknowledged since it is online, so it knows this stream's
                              ///< ID
    std::uint64_t next = 0;   ///< next offset of the stream to send
    std::uint64_t acked = 0;  ///< offset up to which it has the stream
    std::uint64_t synced = 0;  ///< the same for its disk
    std::int64_t acked_us = 0;
    std::int64_t progress_us = 0;    ///< when it last took output
    std::int64_t over_since_us = 0;  ///< since when the soft limit is exceeded; 0: it is not
    std::string head;                ///< output before anything else
    std::shared_ptr<full_copy> copy;
    std::uint64_t next_piece = 0;

    /// True if Valkey 9's form of a hash with expiring fields is the one that it reads.
    bool takes_valkeys_form() const noexcept { return valkey_version >= 9; }
    /// True if it is known to read such hashes in some form.
    bool takes_expiring_fields() const noexcept { return takes_valkeys_form() || takes_channel; }
};

struct awaited_copies;

/// Owner of the connections. Called within commands, and when a replica's session ends; must
/// outlive these sessions.
class replication_host {
public:
    /// A replica waits for a copy, or has taken a piece of one.
    virtual void copy_wanted() noexcept = 0;
    /// The master of this server has changed, or an acknowledgement is due.
    virtual void link_changed() noexcept = 0;
    /// A replica has acknowledged more, or was disconnected: late_replicas() may be lower.
    virtual void replicas_advanced() noexcept {}
    /// Message for the server's operator.
    virtual void log(std::string_view what) = 0;

protected:
    ~replication_host() = default;
};

enum class link_state : std::uint8_t { none, connect, connecting, handshake, sync, connected };

/// One for each engine with a master or replicas. One thread.
class replication final : private change_sink {
public:
    /// At most so many replicas at the same time; further ones are refused.
    static constexpr std::size_t max_replicas = 1000;

    /// Next output for a replica; `kept` owns the bytes.
    struct output {
        std::shared_ptr<const void> kept;
        std::string_view text;
        enum class part : std::uint8_t { none, head, copy, feed } from = part::none;
    };

    explicit replication(engine_state& of);
    ~replication();
    /// The engine's, created at the first call.
    static replication& of(engine_state& s);
    static replication& of(engine& home) { return of(home.internals()); }
    /// Null before the first of().
    static replication* find(engine& home) noexcept;

    replication_host* host = nullptr;

    // --- The stream ---

    const std::string& id() const noexcept { return id_; }
    /// Replication ID up to second_offset(), before this server was promoted.
    const std::string& second_id() const noexcept { return second_id_; }
    std::int64_t second_offset() const noexcept { return second_offset_; }
    std::uint64_t offset() const noexcept { return feed_.end(); }
    const replication_feed& kept() const noexcept { return feed_; }
    /// True while changes are recorded in the stream.
    bool is_active() const noexcept { return active_; }
    void take_new_id();
    /// Position of the current data; none while there is no stream.
    std::optional<stream_position> position() const;
    /// At the start, before anything else: sets the replication position of the loaded data. A
    /// replica of a master requests to continue there; a master lets replicas with that offset
    /// continue. Does nothing once there is a master or a replica.
    void restore(const stream_position& saved, bool follows);

    /// Records executed input from the master: whole commands.
    void feed_from_master(std::string_view bytes);

    // --- Master ---

    /// The session's replica state, created at the first call; null at the limit.
    replica* introduce(client_session& who);
    /// The session's replica state, or null.
    static replica* find(client_session& who) noexcept;
    /// The session closes.
    void forget(client_session& who);

    /// True if the stream with that ID is kept from the offset (of the first missing byte) on.
    bool can_continue(std::string_view id, std::uint64_t from) const noexcept;
    void go_on(replica& with, std::uint64_t from);
    void wait_for_copy(replica& with);
    /// Closes the connections of all replicas: they reconnect and resynchronise.
    void disconnect_replicas();

    /// True if a copy for waiting replicas should begin.
    bool copy_is_due() const noexcept;
    /// Begins a full copy of this instant: waiting replicas are sent the offset, then its pieces.
    std::shared_ptr<full_copy> begin_copy();
    /// The copy is complete, with so many bytes: its pieces follow.
    void announce_size(const full_copy& of, std::uint64_t bytes);
    void add_piece(full_copy& to, byte_buffer&& bytes, bool is_last);
    /// Replaces the copy, of which nothing was sent, by one for each of its replicas.
    std::vector<std::shared_ptr<full_copy>> part_copy(const full_copy& whole);
    /// Number of replicas that still take it.
    std::size_t takers(const full_copy& of) const noexcept;
    /// The copy cannot be completed: its replicas are closed.
    void give_up(const full_copy& copy);

    output next_output(replica& of);
    void note_sent(replica& of, const output& sent);
    /// `synced` is the offset on its disk; 0 if it does not report one.
    void acknowledge(replica& of, std::uint64_t offset, std::uint64_t synced = 0);

    const std::vector<replica*>& replicas() const noexcept { return replicas_; }
    std::size_t replicas_with(std::uint64_t offset) const noexcept;
    std::size_t disks_with(std::uint64_t offset) const noexcept;
    std::size_t good_replicas() const noexcept;
    /// Number of replicas that take the stream and have not acknowledged all of it.
    std::size_t late_replicas() const noexcept;
    /// Requests acknowledgements at once, which replicas otherwise send every second.
    void ask_for_acknowledgements();
    /// True while write commands are refused for lack of replicas.
    bool lacks_replicas() const noexcept;
    /// True if the wait is for this server's disk, but the append-only file is off.
    bool lacks_own_disk(const awaited_copies& wanted) const noexcept;
    static constexpr std::string_view no_own_disk_text =
        "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.";
    /// Replies to WAIT or WAITAOF if there are enough copies already, or within EXEC.
    bool has_copies(call& c, const awaited_copies& wanted) const;
    /// Makes the command wait for them.
    void wait_for_copies(call& c, const awaited_copies& wanted, std::int64_t deadline_us);
    /// This server's disk has more, or never will.
    void disk_advanced() { serve_waits(); }
    /// Ends the wait at its deadline.
    void end_wait(client_session& who);

    /// Periodic work: PINGs, timeouts, the end of the backlog. About ten times a second.
    void tick();

    std::uint64_t full_copies = 0;
    std::uint64_t continued = 0;
    std::uint64_t not_continued = 0;

    // --- FAILOVER ---

    const failover_plan& failover() const noexcept { return failover_; }
    bool is_failing_over() const noexcept { return failover_.now != failover_stage::none; }
    /// The replica with this address, or null.
    const replica* find_replica(std::string_view host, std::uint16_t port) const;
    /// Begins a failover and pauses all writes.
    void begin_failover(failover_plan plan);
    /// Switches roles, or aborts, when due.
    void advance_failover();
    /// The replica is about to be asked to become the master.
    void note_failover_asked() noexcept { failover_.asked = true; }
    /// The replica has become the master.
    void end_failover();
    /// This server resumes as the master.
    void abort_failover(std::string_view why);

    // --- Replica ---

    /// Becomes the replica of another server, instead of a previous one.
    void become_replica(std::string_view host, std::uint16_t port);
    /// Becomes a master: this server's own changes are recorded from now on.
    void become_master();
    bool is_replica() const noexcept { return !host_.empty(); }
    const std::string& master_host() const noexcept { return host_; }
    std::uint16_t master_port() const noexcept { return port_; }
    /// Incremented with each change of role.
    std::uint64_t generation() const noexcept { return generation_; }

    link_state link() const noexcept { return link_; }
    void set_link(link_state now) noexcept;
    /// Time of the last input from the master; 0: none on this link.
    std::int64_t last_input_us = 0;
    std::int64_t down_since_us = 0;  ///< 0: it was never up
    std::uint64_t copy_bytes = 0;    ///< read bytes of the copy
    std::uint64_t copy_size = 0;     ///< 0: unknown
    bool ack_wanted = false;
    /// Database of the master's stream at offset().
    std::uint8_t stream_database = 0;

    /// True if the master may be asked to continue at offset().
    bool may_resume() const noexcept { return resumable_; }
    /// The master continues there, with this ID.
    void resumed(std::string_view id);
    /// Clears all data before a load of the master's.
    void begin_load();
    /// The master's data is complete, as of this offset of its stream.
    void end_load(std::string_view id, std::uint64_t offset);
    /// The load has failed: there is no data.
    void fail_load();
    bool is_loading() const noexcept;
    /// The old data is cleared, and a master's is incomplete: files must not be rewritten.
    bool lacks_data() const noexcept { return lacks_data_; }
    /// Expirations set by this replica's own clients.
    own_expirations& expirations() noexcept { return expirations_; }
    const own_expirations& expirations() const noexcept { return expirations_; }

    /// The stream is malformed: the next link must load all data.
    void cannot_resume() noexcept { resumable_ = false; }

private:
    void changed(std::span<const change> unit) noexcept override;
    void missed() noexcept override;
    void feed(std::string_view commands);
    void activate();
    void deactivate();
    void note_mode();
    /// True while replicas are to get all changes, which requires that none is added.
    bool awaits_replicas() const noexcept;
    /// A replica with all changes that may become the master, or null.
    const replica* find_failover_target() const;
    void keep_hooked_values() noexcept;
    void appended();
    void leave(replica& of);
    void note_expiring_fields();
    /// Drops the pieces that were sent to all replicas of the copy, which makes room for the next
    /// ones: after each sent piece, and after a replica has left.
    void drop_sent(full_copy& copy);
    void check_limits();
    void forget_old() noexcept;
    void clear_data();
    void have_data() noexcept;
    struct copies {
        std::size_t replicas;
        bool own_disk;
        bool are_enough;
    };
    copies count(std::uint64_t offset, const awaited_copies& wanted) const noexcept;
    void serve_waits();
    void answer(client_session& who, const copies& have);

    engine_state& state_;
    std::string id_;
    std::string second_id_;
    std::int64_t second_offset_ = -1;
    replication_feed feed_;
    change_writer writer_;
    byte_buffer written_;  // by it
    bool active_ = false;
    bool listens_ = false;  // sink of this server's own changes
    std::int64_t alone_since_us_ = 0;
    std::int64_t pinged_us_;
    std::int64_t kept_alive_us_ = 0;
    std::int64_t waiting_since_us_ = 0;
    std::vector<replica*> replicas_;  // all beyond the stage `introduced`
    bool fields_noted_ = false;       // it was logged that a replica may not take expiring fields

    failover_plan failover_;
    own_expirations expirations_;
    std::string host_;
    std::uint16_t port_ = 0;
    std::uint64_t generation_ = 0;
    link_state link_ = link_state::none;
    bool resumable_ = false;
    bool lacks_data_ = false;
};

/// Replies with the refusal, and returns true, if the command must not run on a replica, or with
/// too few replicas. `flags` are those of all commands that it will run.
bool refused_by_replication(call& c, std::uint64_t flags);
/// replication::lacks_data() of an engine that may have no replication.
bool lacks_data(const engine_state& s) noexcept;
/// True if the data may be outdated and must not be shown to this session.
bool is_stale(const engine_state& s, const client_session& caller) noexcept;
inline constexpr std::string_view loading_text = "LOADING Redis is loading the dataset in memory";
inline constexpr std::string_view stale_text =
    "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.";
/// True if a script of this session must not write.
bool is_read_only_replica(const engine_state& s, const client_session& caller) noexcept;
/// True while write commands are refused for lack of replicas.
bool lacks_replicas(const engine_state& s) noexcept;

}  // namespace eddy::cache
