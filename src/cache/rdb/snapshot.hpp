// Snapshot of all databases at one instant, written as RDB, or as commands, in slices while
// commands go on. No fork: each value that is about to change is written first.
//
// A walk visits the entries in the order of their hashes, some at a time. A key that changes before
// the walk has come to it is written at once, into memory of the snapshot's own; a key that is
// added meanwhile is left out. Both are marked in the entry, with a bit that the walk clears as it
// passes. Whether the walk has passed an entry follows from its hash alone, so that the table may
// grow, shrink and move entries as it likes. Big values that are removed, and whole databases that
// are flushed, are passed to the snapshot and freed once they are written. A huge value that is
// about to change is written ahead of the walk in slices, and the command that changes it waits.
// The walk leaves a database, and detaches its keeper, only when no value of it is being written:
// until then each change and each removal of such a value has to reach the snapshot. Commands wait
// as well while much of what they have changed is still to be taken: otherwise those that write
// faster than the disk would have every snapshot fail.
//
// Without a snapshot, a command pays for one check of a null pointer.
#pragma once

#include <eddy/base/byte_buffer.hpp>

#include "cache/engine/engine.hpp"
#include "cache/keyspace/keyspace.hpp"
#include "cache/rdb/save.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

namespace eddy::cache::rdb {

struct snapshot_options {
    /// As commands none of the fields of the file's head is written.
    file_form form = file_form::rdb;
    /// Bytes of changed keys that may wait until step() takes them, with all of the last one's
    /// value: when another changes beyond that the snapshot fails. Beyond half of it commands wait
    /// that would add to it, until three eighths are left.
    std::size_t max_waiting = 256U << 20;
    /// Maximum of such a wait: a stalled reader must not block writers.
    std::int64_t longest_hold_us = 10'000'000;
    /// A value with more elements, or of about more bytes, takes longer to write than a command may
    /// take: commands that change it wait.
    std::size_t huge_elements = 2048;
    std::size_t huge_bytes = 1U << 20;
    /// The file says that an append-only file goes on from there.
    bool aof_base = false;
    /// The database for which a stream of commands goes on behind the image; -1: it says itself.
    int stream_database = -1;
    /// The file says where its data stands in the stream of replication, if there is one: a server
    /// that begins with it goes on there.
    bool names_stream = false;
    /// REPLCONF rdb-filter-only leaves these out.
    bool has_keys = true;
    bool has_libraries = true;
    /// Parts of values that one step() writes at most: a key has four, an element one, its score or
    /// value another. Tests take fewer, so that small values are larger than a slice.
    std::size_t slice_parts = 2048;
    /// Bytes of a buffer for what is written before step() takes it, and of a value that is written
    /// ahead in one slice.
    std::size_t piece_bytes = 64U << 10;
};

/// Belongs to an engine, which has one at most; its owner calls step() until it has ended,
/// and end() then, or at any time. One thread.
///
///     snapshot* const image = snapshot::begin(engine);
///     while (image->step(out) == snapshot::status::writing) { ... take the bytes from `out` ... }
///     image->end();
class snapshot {
public:
    enum class status : std::uint8_t { writing, done, failed };

    /// Entries, or empty buckets, that one step() visits, at most: with the limit on its bytes this
    /// keeps a slice below 250 us.
    static constexpr std::size_t slice_work = 512;
    /// Removed values that are handed over to be written later; further ones are written at once.
    static constexpr std::size_t max_adopted = 1024;

    /// The instant is now. Null while the engine has another one, or still clears up after one that
    /// was given up: that is done by engine::upkeep(). O(1).
    static snapshot* begin(engine& of, snapshot_options options = {});
    static snapshot* begin(engine_state& of, snapshot_options options = {});
    /// Whether begin() would give one.
    static bool may_begin(engine& of) noexcept;
    /// Whether one that has ended is still being cleared up, by engine::upkeep().
    static bool is_clearing(engine& of) noexcept;

    snapshot(const snapshot&) = delete;
    snapshot& operator=(const snapshot&) = delete;
    ~snapshot();

    /// Appends the file's next bytes until `out` holds about `limit` of them; value_writer says how
    /// much more it may be. Does a bounded piece of work, so that it may append nothing.
    status step(byte_buffer& out, std::size_t limit = 64U << 10);

    /// Writes a slice of the value that is due ahead of the walk, if there is one. True when such a
    /// value was completed since the last call, or none is left: waiting sessions may try again.
    bool write_ahead();

    /// Whether commands are to wait before they change what it lacks, and until when at most. It
    /// wakes them (end_room_waits()) when there is room, and when it ends.
    bool holds_changes() noexcept;
    std::int64_t hold_ends_us() const noexcept { return hold_ends_us_; }

    /// Why it has failed: a static text, or null.
    const char* fault() const noexcept { return fault_; }
    /// Bytes of changed keys that wait for step().
    std::size_t waiting() const noexcept { return waiting_; }
    /// Keys that were there at the instant.
    std::uint64_t keys() const noexcept { return keys_; }
    /// Keys of them that the walk has begun to write.
    std::uint64_t begun_keys() const noexcept { return begun_keys_; }

    /// About how much memory is only in use because removed values and flushed databases are still
    /// to be written. It does not count against maxmemory: evicting keys would not free it.
    std::size_t held_bytes() const noexcept { return held_; }

    /// It is not needed any more; the pointer ends. If it was not done it is given up, and
    /// engine::upkeep() clears up after it.
    void end();
    bool has_ended() const noexcept { return ended_; }
    /// Once it has ended: takes the marks away, of so many buckets at most and until the slice is
    /// over; false when all is done. For engine::upkeep().
    bool clear_some(std::size_t buckets, slice_limit& slice);

private:
    struct part final : entry_keeper {
        void before_change(entry& e, std::uint64_t hash) noexcept override;
        bool removed(entry& e, std::uint64_t hash) noexcept override;
        void added(entry& e, std::uint64_t hash) noexcept override;
        void cleared(dictionary&& all) noexcept override;
        bool takes_long(const entry& e, std::uint64_t hash) const noexcept override;
        void prepare(entry& e) noexcept override;
        bool lacks(const entry& e, std::uint64_t hash) const noexcept override;

        /// Whether the walk has nothing left in it.
        bool is_over() const noexcept { return !has_table() || at.at_end(); }
        /// Whether its entries are still watched: by the keyspace's keeper, or as the snapshot's.
        bool has_table() const noexcept { return live != nullptr || flushed; }

        snapshot* of = nullptr;
        keyspace* live = nullptr;           // null once it was passed or flushed
        std::optional<dictionary> flushed;  // what it was then
        std::size_t held = 0;               // about the bytes of that
        std::size_t database = 0;
        std::size_t keys = 0;
        std::size_t expiring = 0;
        bool head_written = false;
        dictionary::order_cursor at;
    };
    /// A key that is being written. Once it was removed from its database it is the snapshot's.
    struct writing_entry {
        writing_entry(environment& env, file_form form) : writer(env, form) {}
        entry* of = nullptr;
        std::size_t database = 0;
        bool is_owned = false;
        std::size_t bytes = 0;  // about, while it is owned
        key_writer writer;
        std::deque<byte_buffer> pieces;  // what was written and has not gone out
    };
    struct adopted_entry {
        entry* of;
        std::size_t database;
        std::size_t bytes;  // about
    };

    snapshot(engine_state& of, snapshot_options options);

    bool advance(byte_buffer& out);
    void begin_key(byte_buffer& out, entry& e, std::size_t database);
    void end(writing_entry& one);
    void let_go(writing_entry& one);
    void end_current();
    void end_ahead();
    void begin_ahead(entry& e, std::size_t database) noexcept;
    bool is_kept(const writing_entry& one) const noexcept;
    bool may_leave(const part& its) const noexcept;
    bool awaits_ahead() const noexcept;
    bool write_slice(writing_entry& one);
    void finish(writing_entry& one);
    bool own(writing_entry& one);
    bool is_huge(const entry& e) const;
    void write_now(entry& e, std::size_t database);
    void take_piece(std::deque<byte_buffer>& from, byte_buffer& out, std::size_t limit);
    void take_waiting(byte_buffer& out, std::size_t limit);
    byte_buffer& open_piece(std::deque<byte_buffer>& pieces);
    void leave_bucket(part& of);
    void leave_part(part& of) noexcept;
    void fail(const char* why) noexcept;
    void stop_writing() noexcept;
    void let_changes_go() noexcept;

    engine_state& state_;
    const snapshot_options options_;
    file_writer file_;
    bool begun_ = false;
    bool writing_ = true;
    bool ended_ = false;  // by its user
    const char* fault_ = nullptr;
    std::int64_t at_s_;
    std::size_t used_memory_;
    std::vector<std::pair<std::string_view, std::string>> stream_fields_;
    std::uint64_t keys_ = 0;
    std::uint64_t begun_keys_ = 0;

    std::array<part, engine_databases> parts_;
    std::size_t part_ = 0;                 // where the walk is
    std::vector<dictionary::slot> found_;  // in the bucket at the cursor
    std::size_t next_found_ = 0;
    bool visited_ = false;

    writing_entry current_;  // the key that is being written
    writing_entry ahead_;    // one that is about to change
    bool current_is_awaited_ = false;
    bool written_ahead_ = false;  // an awaited one, since write_ahead() told so
    std::size_t written_database_ = engine_databases;  // of the last key in the output

    std::deque<byte_buffer> pieces_;  // whole keys that wait, behind the rest of the current one
    std::size_t waiting_ = 0;
    bool is_crowded_ = false;  // since more than half of what may wait did
    std::int64_t hold_ends_us_ = 0;
    std::size_t waiting_database_ = engine_databases;  // of the last one of them
    key_writer change_writer_;
    std::deque<adopted_entry> adopted_;
    std::size_t held_ = 0;
};

}  // namespace eddy::cache::rdb
