// Replication, engine side: master and replica roles, offsets, and the bytes to be sent. The
// connections are the server's part (runtime/cache/master_side.hpp, replica_side.hpp).
//
// A master records its changes as commands, one stream of bytes for all its replicas, and counts
// the bytes: that is the offset. A replica forwards its input byte for byte, so all replicas of one
// master, through whatever chain, have the same offsets and may take each other's place.
//
// The room replication holds data shared with other servers. Files in reading order:
//
//   replication.hpp        roles, replicas, WAIT; replication_replica.cpp the replica's half
//   replication_state.hpp  what an engine has of it
//   replication_feed.hpp   the stream's bytes: backlog and unsent output
//   failover_plan.hpp      FAILOVER; replication_failover.cpp
//   replication_info.hpp   INFO and ROLE
//   own_expirations.hpp    keys that a writable replica's clients let expire
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

/// All data of one instant as an RDB file, in pieces, for the replicas that asked for it at about
/// the same time.
struct full_copy {
    /// Pieces that may be ahead of the slowest replica.
    static constexpr std::size_t max_pieces = 8;
    /// The same of a copy that is whole, and one replica's own.
    static constexpr std::size_t max_own_pieces = 2;

    std::deque<std::shared_ptr<const byte_buffer>> pieces;
    std::uint64_t first = 0;  ///< the number of pieces.front()
    std::string end_mark;     ///< behind the last one; empty where the size is announced before
    bool complete = false;    ///< no piece follows
    copy_content content = copy_content::everything;
    /// Some of its replicas must know its size first, so that it is made whole before the first
    /// piece is sent.
    bool is_sized = false;
};

/// A server that follows this one: its session, and how far it has come.
struct replica {
    enum class stage : std::uint8_t {
        introduced,  ///< it has sent its attributes, but no request
        waiting,     ///< for a full copy to begin
        copying,     ///< it is sent one
        copied,      ///< and is to say that it has taken it
        online,      ///< it is sent the stream
    };

    explicit replica(session& of) noexcept : who(of) {}

    session& who;
    stage now = stage::introduced;
    std::uint16_t port = 0;     ///< where it listens
    std::string host;           ///< what it wants to be called; empty: its address
    bool takes_eof = false;     ///< a copy whose size is not known before
    bool takes_new_id = false;  ///< psync2
    bool copy_only = false;     ///< it goes when it has the copy
    copy_content content = copy_content::everything;
    bool plain = false;       ///< by SYNC: it sends no acknowledgements
    bool confirmed = false;   ///< it has acknowledged since it is online: it knows this stream's ID
    std::uint64_t next = 0;   ///< the offset of the stream that it is sent next
    std::uint64_t acked = 0;  ///< the offset up to which it has everything
    std::uint64_t synced = 0;  ///< and its disk
    std::int64_t acked_us = 0;
    std::int64_t progress_us = 0;    ///< when it last took something
    std::int64_t over_since_us = 0;  ///< since when the soft limit is passed; 0: it is not
    std::string head;                ///< what is sent before anything else
    std::shared_ptr<full_copy> copy;
    std::uint64_t next_piece = 0;
};

struct awaited_copies;

/// Owner of the connections. Called within commands, and when a replica's session ends: it outlives
/// these sessions.
class replication_host {
public:
    /// A replica waits for a copy, or has taken a piece of one.
    virtual void copy_wanted() noexcept = 0;
    /// Its master has changed, or an acknowledgement is due.
    virtual void link_changed() noexcept = 0;
    /// A replica has acknowledged more, or follows no longer: late_replicas() may be fewer.
    virtual void replicas_advanced() noexcept {}
    /// Message for the server's operator.
    virtual void log(std::string_view what) = 0;

protected:
    ~replication_host() = default;
};

enum class link_state : std::uint8_t { none, connect, connecting, handshake, sync, connected };

/// One for each engine that leads or follows. One thread.
class replication final : private change_sink {
public:
    /// Servers that may follow at the same time; further ones are refused.
    static constexpr std::size_t max_replicas = 1000;

    /// Next output for a replica; `kept` keeps the bytes where they are.
    struct output {
        std::shared_ptr<const void> kept;
        std::string_view text;
        enum class part : std::uint8_t { none, head, copy, feed } from = part::none;
    };

    explicit replication(engine_state& of);
    ~replication();
    /// The engine's, made when it is first asked for.
    static replication& of(engine_state& s);
    static replication& of(engine& home) { return of(home.internals()); }
    /// Null while it was not asked for.
    static replication* find(engine& home) noexcept;

    replication_host* host = nullptr;

    // --- The stream ---

    const std::string& id() const noexcept { return id_; }
    /// Replication ID up to second_offset(), before this server was promoted.
    const std::string& second_id() const noexcept { return second_id_; }
    std::int64_t second_offset() const noexcept { return second_offset_; }
    std::uint64_t offset() const noexcept { return feed_.end(); }
    const replication_feed& kept() const noexcept { return feed_; }
    /// Whether changes are written down.
    bool is_active() const noexcept { return active_; }
    void take_new_id();
    /// That of the present data; none while no stream is kept.
    std::optional<stream_position> position() const;
    /// At the start, before anything else: the data that was loaded stands there in the stream of
    /// the server that has saved it. One that follows a master asks it to go on there; another lets
    /// those go on that have come so far. Does nothing once this server leads or follows.
    void restore(const stream_position& saved, bool follows);

    /// Input from the master that was executed: whole commands.
    void feed_from_master(std::string_view bytes);

    // --- Master ---

    /// The session's record, made when it is first asked for; null when there are too many.
    replica* introduce(session& who);
    /// The session's record once it follows, or null.
    static replica* find(session& who) noexcept;
    /// The session goes.
    void forget(session& who);

    /// Whether all that follows the offset (of the first byte that is lacking) in the stream of
    /// that name is still here.
    bool can_continue(std::string_view id, std::uint64_t from) const noexcept;
    void go_on(replica& with, std::uint64_t from);
    void wait_for_copy(replica& with);
    /// Closes the connections of all replicas: they reconnect and resynchronise.
    void disconnect_replicas();

    /// Whether it is time to begin one for those that wait.
    bool copy_is_due() const noexcept;
    /// Begins a full copy at this instant: waiting replicas get the offset, and its pieces.
    std::shared_ptr<full_copy> begin_copy();
    /// It is made, with so many bytes: its pieces follow.
    void announce_size(const full_copy& of, std::uint64_t bytes);
    void add_piece(full_copy& to, byte_buffer&& bytes, bool is_last);
    /// Gives each of its replicas a copy of its own in place of this one, of which nothing was
    /// sent.
    std::vector<std::shared_ptr<full_copy>> part_copy(const full_copy& whole);
    /// Replicas that still take it.
    std::size_t takers(const full_copy& of) const noexcept;
    /// It cannot be completed: they are closed.
    void give_up(const full_copy& copy);

    output next_output(replica& of);
    void note_sent(replica& of, const output& sent);
    /// `synced` is what its disk has; 0 where it does not say.
    void acknowledge(replica& of, std::uint64_t offset, std::uint64_t synced = 0);

    const std::vector<replica*>& replicas() const noexcept { return replicas_; }
    std::size_t replicas_with(std::uint64_t offset) const noexcept;
    std::size_t disks_with(std::uint64_t offset) const noexcept;
    std::size_t good_replicas() const noexcept;
    /// Those that take the stream and have not acknowledged all of it.
    std::size_t late_replicas() const noexcept;
    /// Requests acknowledgements at once, which replicas otherwise send each second.
    void ask_for_acknowledgements();
    /// Whether commands that write are refused, as too few replicas are there.
    bool lacks_replicas() const noexcept;
    /// Whether what this server's own disk never will have is waited for.
    bool lacks_own_disk(const awaited_copies& wanted) const noexcept;
    static constexpr std::string_view no_own_disk_text =
        "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.";
    /// Replies to WAIT or WAITAOF if there are enough copies already.
    bool has_copies(call& c, const awaited_copies& wanted) const;
    /// The command waits for them.
    void wait_for_copies(call& c, const awaited_copies& wanted, std::int64_t deadline_us);
    /// This server's disk has more, or never will.
    void disk_advanced() { serve_waits(); }
    /// Its time is over.
    void end_wait(session& who);

    /// Periodic work: PINGs, timeouts, the end of the backlog. Some ten times a second.
    void tick();

    std::uint64_t full_copies = 0;
    std::uint64_t continued = 0;
    std::uint64_t not_continued = 0;

    // --- FAILOVER ---

    const failover_plan& failover() const noexcept { return failover_; }
    bool is_failing_over() const noexcept { return failover_.now != failover_stage::none; }
    /// The replica that listens there, or null.
    const replica* find_replica(std::string_view host, std::uint16_t port) const;
    /// Holds up all writes from now on.
    void begin_failover(failover_plan plan);
    /// Checks whether to switch roles, or to give up.
    void advance_failover();
    /// The replica is about to be asked to lead.
    void note_failover_asked() noexcept { failover_.asked = true; }
    /// It leads.
    void end_failover();
    /// This server leads as before.
    void abort_failover(std::string_view why);

    // --- Replica ---

    /// Follows another server; whatever was followed before is left.
    void become_replica(std::string_view host, std::uint16_t port);
    /// Becomes a master: this server's own changes count from now on.
    void become_master();
    bool is_replica() const noexcept { return !host_.empty(); }
    const std::string& master_host() const noexcept { return host_; }
    std::uint16_t master_port() const noexcept { return port_; }
    /// Incremented with each change of role.
    std::uint64_t generation() const noexcept { return generation_; }

    link_state link() const noexcept { return link_; }
    void set_link(link_state now) noexcept;
    /// When something last came from the master; 0: never on this link.
    std::int64_t last_input_us = 0;
    std::int64_t down_since_us = 0;  ///< 0: it was never up
    std::uint64_t copy_bytes = 0;    ///< of the copy that is being read
    std::uint64_t copy_size = 0;     ///< 0: not known
    bool ack_wanted = false;
    /// For which database the master's stream goes on behind offset().
    std::uint8_t stream_database = 0;

    /// Whether the master may be asked to go on where the stream has ended.
    bool may_resume() const noexcept { return resumable_; }
    /// The master goes on there, under this name.
    void resumed(std::string_view id);
    /// All data goes, as the master's comes instead.
    void begin_load();
    /// The master's data is there, as of this offset of its stream.
    void end_load(std::string_view id, std::uint64_t offset);
    /// It did not come whole: none is there.
    void fail_load();
    bool is_loading() const noexcept;
    /// The data of before is gone, and a master's is not there whole: files keep what they have.
    bool lacks_data() const noexcept { return lacks_data_; }
    /// Keys that its own clients let expire.
    own_expirations& expirations() noexcept { return expirations_; }
    const own_expirations& expirations() const noexcept { return expirations_; }

    /// The stream cannot be understood: the next link takes all data anew.
    void cannot_resume() noexcept { resumable_ = false; }

private:
    void changed(std::span<const change> unit) noexcept override;
    void missed() noexcept override;
    void feed(std::string_view commands);
    void activate();
    void deactivate();
    void note_mode();
    /// Whether they are to have everything, which they get when nothing is added.
    bool awaits_replicas() const noexcept;
    /// A replica that has everything and may take over, or null.
    const replica* find_failover_target() const;
    void keep_hooked_values() noexcept;
    void appended();
    void leave(replica& of);
    /// Drops the pieces that all takers of the copy have been sent, and lets the next ones be made:
    /// after each that was sent, and once a taker has left.
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
    void answer(session& who, const copies& have);

    engine_state& state_;
    std::string id_;
    std::string second_id_;
    std::int64_t second_offset_ = -1;
    replication_feed feed_;
    change_writer writer_;
    byte_buffer written_;  // by it
    bool active_ = false;
    bool listens_ = false;  // to this server's own changes
    std::int64_t alone_since_us_ = 0;
    std::int64_t pinged_us_;
    std::int64_t kept_alive_us_ = 0;
    std::int64_t waiting_since_us_ = 0;
    std::vector<replica*> replicas_;  // those that are more than introduced

    failover_plan failover_;
    own_expirations expirations_;
    std::string host_;
    std::uint16_t port_ = 0;
    std::uint64_t generation_ = 0;
    link_state link_ = link_state::none;
    bool resumable_ = false;
    bool lacks_data_ = false;
};

/// Replies with the refusal where the command is not to run because another server is followed, or
/// too few follow. `flags` are of all that it will run.
bool refused_by_replication(call& c, std::uint64_t flags);
/// replication::lacks_data() of an engine that may never have led or followed.
bool lacks_data(const engine_state& s) noexcept;
/// Whether what is here may be old, and is not to be shown to this session.
bool is_stale(const engine_state& s, const session& caller) noexcept;
inline constexpr std::string_view loading_text = "LOADING Redis is loading the dataset in memory";
inline constexpr std::string_view stale_text =
    "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.";
/// Whether a script of this session may not write.
bool is_read_only_replica(const engine_state& s, const session& caller) noexcept;
/// Whether commands that write are refused, as too few replicas are there.
bool lacks_replicas(const engine_state& s) noexcept;

}  // namespace eddy::cache
