// Snapshot of all databases at one instant, written as RDB, or as commands, in slices while
// commands run. No fork: each value that is about to change is written first.
//
// A walk visits the entries in the order of their hashes, some at a time. A key that changes before
// the walk has reached it is written at once, into memory of the snapshot; a key that is added
// meanwhile is left out. Both are marked in the entry, with a bit that the walk clears as it
// passes. An entry's hash alone determines whether the walk has passed it, so the table may grow,
// shrink and move entries. Big values that are removed, and whole databases that are flushed, are
// passed to the snapshot and freed once they are written. A huge value that is about to change is
// written ahead of the walk in slices, and the command that changes it waits. The walk leaves a
// database, and detaches its keeper, only when no value of it is being written: until then each
// change and removal of such a value must reach the snapshot. Commands also wait while many bytes
// of changed values are not taken yet: otherwise clients that write faster than the disk would make
// every snapshot fail.
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
    /// For file_form::commands the fields of the file's head are left out.
    file_form form = file_form::rdb;
    /// At most so many bytes of changed keys wait for step(), plus the last one's value: a further
    /// change makes the snapshot fail. Above half of it, commands that would add to it wait until
    /// three eighths are left.
    std::size_t max_waiting = 256U << 20;
    /// Limit of such a wait: a stalled reader must not block writers.
    std::int64_t longest_hold_us = 10'000'000;
    /// A value with more elements, or of approximately more bytes, takes longer to write than a
    /// command may take: commands that change it wait.
    std::size_t huge_elements = 2048;
    std::size_t huge_bytes = 1U << 20;
    /// Marks the file as the base of an append-only file.
    bool aof_base = false;
    /// Database of the stream of commands after the file; -1: the stream selects it.
    int stream_database = -1;
    /// Writes the replication position of the data, if there is one: a server that loads the file
    /// continues there.
    bool names_stream = false;
    /// False by REPLCONF rdb-filter-only.
    bool has_keys = true;
    bool has_libraries = true;
    /// At most so many parts of values are written by one step(): a key has four, an element one,
    /// its score or value another. Tests set fewer, so that small values are larger than a slice.
    std::size_t slice_parts = 2048;
    /// Bytes of a buffer for output before step() takes it, and of one slice of a value that is
    /// written ahead.
    std::size_t piece_bytes = 64U << 10;
};

/// Belongs to an engine, which has at most one; its owner calls step() until it has ended, and
/// then, or at any time, end(). One thread.
///
///     snapshot* const image = snapshot::begin(engine);
///     while (image->step(out) == snapshot::status::writing) { ... take the bytes from `out` ... }
///     image->end();
class snapshot {
public:
    enum class status : std::uint8_t { writing, done, failed };

    /// At most so many entries or empty buckets are visited by one step(): together with the limit
    /// on bytes this keeps a slice below 250 us.
    static constexpr std::size_t slice_work = 512;
    /// At most so many removed values are kept to be written later; further ones are written at
    /// once.
    static constexpr std::size_t max_adopted = 1024;

    /// Begins a snapshot of this instant. Null while the engine has another one, or still frees an
    /// aborted one in engine::upkeep(). O(1).
    static snapshot* begin(engine& of, snapshot_options options = {});
    static snapshot* begin(engine_state& of, snapshot_options options = {});
    /// True if begin() would succeed.
    static bool may_begin(engine& of) noexcept;
    /// True while engine::upkeep() frees one that has ended.
    static bool is_clearing(engine& of) noexcept;

    snapshot(const snapshot&) = delete;
    snapshot& operator=(const snapshot&) = delete;
    ~snapshot();

    /// Appends the file's next bytes until `out` holds about `limit` of them; for the excess see
    /// value_writer. The work is bounded, so it may append nothing.
    status step(byte_buffer& out, std::size_t limit = 64U << 10);

    /// Writes a slice of the value that is to be written ahead of the walk, if there is one. True
    /// when such a value was completed since the last call, or none is left: waiting sessions may
    /// try again.
    bool write_ahead();

    /// True while commands must wait before they change values that are not written, at most until
    /// hold_ends_us(). end_room_waits() wakes them when there is room, and at the end.
    bool holds_changes() noexcept;
    std::int64_t hold_ends_us() const noexcept { return hold_ends_us_; }

    /// Reason of a failure: a static text, or null.
    const char* fault() const noexcept { return fault_; }
    /// Bytes of changed keys that wait for step().
    std::size_t waiting() const noexcept { return waiting_; }
    /// Number of keys at the instant.
    std::uint64_t keys() const noexcept { return keys_; }
    /// Number of keys that the walk has begun to write.
    std::uint64_t begun_keys() const noexcept { return begun_keys_; }

    /// Approximate memory that is in use only because removed values and flushed databases are not
    /// written yet. It does not count against maxmemory: evicting keys would not free it.
    std::size_t held_bytes() const noexcept { return held_; }

    /// Ends the snapshot; the pointer becomes invalid. An unfinished one is aborted, and
    /// engine::upkeep() frees it.
    void end();
    bool has_ended() const noexcept { return ended_; }
    /// After the end: clears the marks of at most so many buckets, until the end of the slice;
    /// false when all is done. For engine::upkeep().
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

        /// True if the walk has nothing left in it.
        bool is_over() const noexcept { return !has_table() || at.at_end(); }
        /// True while its entries are observed: by the keyspace's keeper, or as the snapshot's own.
        bool has_table() const noexcept { return live != nullptr || flushed; }

        snapshot* of = nullptr;
        keyspace* live = nullptr;           // null after the walk has passed it, or after a flush
        std::optional<dictionary> flushed;  // its table, after a flush
        std::size_t held = 0;               // approximate bytes of that
        std::size_t database = 0;
        std::size_t keys = 0;
        std::size_t expiring = 0;
        bool head_written = false;
        dictionary::order_cursor at;
    };
    /// A key that is being written. After its removal from the database it belongs to the snapshot.
    struct writing_entry {
        writing_entry(environment& env, file_form form) : writer(env, form) {}
        entry* of = nullptr;
        std::size_t database = 0;
        bool is_owned = false;
        std::size_t bytes = 0;  // approximate, while it is owned
        key_writer writer;
        std::deque<byte_buffer> pieces;  // written bytes that were not taken
    };
    struct adopted_entry {
        entry* of;
        std::size_t database;
        std::size_t bytes;  // approximate
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
    std::size_t part_ = 0;                 // position of the walk
    std::vector<dictionary::slot> found_;  // in the bucket at the cursor
    std::size_t next_found_ = 0;
    bool visited_ = false;

    writing_entry current_;  // the key that is being written
    writing_entry ahead_;    // one that is about to change
    bool current_is_awaited_ = false;
    bool written_ahead_ = false;  // an awaited one was completed since write_ahead() last returned
                                  // true
    std::size_t written_database_ = engine_databases;  // of the last key in the output

    std::deque<byte_buffer> pieces_;  // complete keys that wait, after the rest of the current one
    std::size_t waiting_ = 0;
    bool is_crowded_ = false;  // since more than half of max_waiting was in use
    std::int64_t hold_ends_us_ = 0;
    std::size_t waiting_database_ = engine_databases;  // of their last one
    key_writer change_writer_;
    std::deque<adopted_entry> adopted_;
    std::size_t held_ = 0;
};

}  // namespace eddy::cache::rdb
