// Redis stream: entries of fields and values in the order of their IDs, and the consumer groups
// that read it.
//
// Entries are in blocks. A block is one listpack with Redis's layout in memory and in RDB files:
// the fields of the block's first entry, then the entries, with IDs relative to the block's, and
// without field names if they equal the first one's. A removed entry is marked; a block is removed
// with its last entry. The blocks are found by an ordered_tree, and so are the pending entries of a
// group and of each consumer.
//
//   append, first, last             O(1), O(height) of the tree
//   find, erase, begin of a range   O(log n + one block)
//   groups, consumers, pending      O(log n)
#pragma once

#include "cache/memory/slab.hpp"
#include "cache/types/listpack.hpp"
#include "cache/types/sorted_sets/ordered_tree.hpp"
#include "cache/types/streams/stream_id.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace eddy::cache {

/// Listpack of entries, which follows this header.
struct stream_block {
    std::uint32_t capacity;     // of the listpack's room
    std::uint32_t first_entry;  // offset of the entries in the listpack

    char* pack() noexcept { return reinterpret_cast<char*>(this + 1); }
    const char* pack() const noexcept { return reinterpret_cast<const char*>(this + 1); }
    std::uint32_t bytes() const noexcept { return listpack::load<std::uint32_t>(pack()); }
};

/// Traits for ordered_tree: objects by ID.
template <class T>
struct by_stream_id {
    struct item {
        stream_id id;
        T* of;
    };
    using key = stream_id;
    static key key_of(const item& one) noexcept { return one.id; }
    static auto compare(key a, key b) noexcept { return a <=> b; }
};

/// Traits for ordered_tree: named objects by their name's bytes.
template <class T>
struct by_name {
    using item = T*;
    using key = T*;
    static key key_of(item one) noexcept { return one; }
    static auto compare(key a, std::string_view b) noexcept { return a->name() <=> b; }
    static auto compare(key a, key b) noexcept { return a->name() <=> b->name(); }
};

/// Base of groups and consumers: the name follows in the same block.
struct stream_named {
    std::uint32_t name_size;
    std::uint32_t own_size;  // bytes before the name

    std::string_view name() const noexcept {
        return {reinterpret_cast<const char*>(this) + own_size, name_size};
    }
    std::size_t block_size() const noexcept { return std::size_t{own_size} + name_size; }
};

struct stream_consumer;

/// Entry that was delivered and not acknowledged. It is in two trees: the group's, which owns it,
/// and its consumer's.
struct stream_pending {
    std::int64_t delivered_ms;  ///< since 1970
    std::uint64_t deliveries;
    stream_consumer* owner;
};
using pending_tree = ordered_tree<by_stream_id<stream_pending>>;

/// Pending entry in the index by time: the longest idle ones are first.
struct stream_delivery {
    std::int64_t delivered_ms;
    stream_id id;
    friend auto operator<=>(const stream_delivery&, const stream_delivery&) = default;
};

/// Traits for ordered_tree.
struct by_delivery {
    using item = stream_delivery;
    using key = stream_delivery;
    static key key_of(const item& one) noexcept { return one; }
    static auto compare(const key& a, const key& b) noexcept { return a <=> b; }
};

struct stream_consumer : stream_named {
    static constexpr std::int64_t never = -1;
    pending_tree pending;
    std::int64_t seen_ms;    ///< time of the last attempt to read or claim
    std::int64_t active_ms;  ///< time of the last successful one, or never
};

struct stream_group : stream_named {
    static constexpr std::int64_t unknown_count = -1;

    pending_tree pending;
    ordered_tree<by_name<stream_consumer>> consumers;
    /// Empty until index_deliveries(). It may lack entries that the stream does not have any more.
    ordered_tree<by_delivery> deliveries;
    bool has_deliveries;        ///< it is kept
    stream_id last_id;          ///< the last one delivered
    std::int64_t entries_read;  ///< number of all entries ever added, up to last_id, or
                                ///< unknown_count

    stream_consumer* find(std::string_view consumer) const noexcept {
        const auto at = consumers.find(consumer);
        return at ? *at : nullptr;
    }
    /// The new consumer; the name must be new.
    stream_consumer& add(slab& memory, std::string_view consumer, std::int64_t now_ms);
    /// Removes the consumer with its pending entries. O(pending entries * log n).
    void erase(slab& memory, stream_consumer& gone) noexcept;

    stream_pending* find(stream_id id) const noexcept {
        const auto at = pending.find(id);
        return at ? at->of : nullptr;
    }
    /// Begins the index `deliveries`. O(pending entries * log n) the first time; most groups need
    /// none.
    void index_deliveries(slab& memory);
    /// Sets the time of a pending entry's last delivery.
    void set_delivered(slab& memory, stream_id id, stream_pending& what, std::int64_t time_ms);
    /// Makes the entry pending for the consumer, as a first delivery, even if it was pending for
    /// another consumer.
    void deliver(slab& memory, stream_id id, stream_consumer& to, std::int64_t now_ms);
    /// Adds a pending entry, without an owner: pass_on() must follow.
    stream_pending& add_pending(slab& memory, stream_id id);
    /// Sets another owner of a pending entry, or its first one.
    void pass_on(slab& memory, stream_id id, stream_pending& what, stream_consumer& to);
    /// False if it was not pending.
    bool acknowledge(slab& memory, stream_id id) noexcept;

    bool free_some(slab& memory, std::size_t& steps) noexcept;
};

/// References of consumer groups to a removed entry: KEEPREF, DELREF and ACKED.
enum class stream_references : std::uint8_t {
    keep,
    remove,
    spare_referenced  ///< entries that a group still has to read or to acknowledge stay
};

/// Trimming arguments of XTRIM and XADD.
struct stream_trim {
    enum class by : std::uint8_t { none, length, id };
    by what = by::none;
    bool approximate = false;  ///< whole blocks only
    std::uint64_t length = 0;  ///< by::length: at most so many entries stay
    stream_id id;              ///< by::id: entries from here on stay
    std::uint64_t limit = 0;   ///< at most so many are removed; 0: no limit
    stream_references references = stream_references::keep;
};

struct stream_trimmed {
    std::uint64_t entries = 0;
    stream_id last;  ///< the last removed one; only with references that are not kept
};

/// Limits of a block: stream-node-max-bytes and -entries; 0: no limit.
struct stream_block_limits {
    std::size_t bytes = 4096;
    std::size_t entries = 100;
};

/// Keeps no reference to the slab: the owner of the stream passes the same slab to each call that
/// allocates or frees. Walks are valid until the next change of the entries. A copy is another
/// handle of the same blocks. One thread.
class redis_stream {
public:
    /// At most so many bytes of a new entry's fields and values together.
    static constexpr std::size_t max_entry_bytes = 1U << 30;

    std::uint64_t size() const noexcept { return size_; }
    bool empty() const noexcept { return size_ == 0; }
    std::size_t blocks() const noexcept { return blocks_.size(); }
    stream_id last_id() const noexcept { return last_id_; }    ///< the highest one ever assigned
    stream_id first_id() const noexcept { return first_id_; }  ///< of the first entry, or 0-0
    stream_id max_deleted_id() const noexcept { return max_deleted_id_; }
    std::uint64_t entries_added() const noexcept { return entries_added_; }
    /// ID of the last existing entry; the stream must not be empty.
    stream_id last_entry_id() const noexcept;
    bool contains(stream_id id) const noexcept { return walk(*this, id, id).next(); }

    /// Adds an entry of `count` pairs of a field and a value, together at most max_entry_bytes.
    /// `id` must be above last_id().
    void append(slab& memory, stream_id id, const std::string_view* pairs, std::size_t count,
                stream_block_limits limits);
    /// Removes one entry; false when it is missing.
    bool erase(slab& memory, stream_id id);
    /// Removes entries from the front.
    stream_trimmed trim(slab& memory, const stream_trim& request);
    /// True if a group has not read the entry yet, or it is pending there; also for an entry that
    /// is missing. O(groups * log n).
    bool is_referenced(stream_id id) const noexcept;
    /// Makes the entry pending nowhere; returns the number of groups in which it was.
    std::uint64_t remove_references(slab& memory, stream_id id) noexcept;
    /// `last` must not be below last_entry_id() and max_deleted_id().
    void set_ids(stream_id last, std::optional<std::uint64_t> entries_added,
                 stream_id max_deleted) noexcept;

    /// The group, or null.
    stream_group* find_group(std::string_view name) const noexcept {
        const auto at = groups_.find(name);
        return at ? *at : nullptr;
    }
    const ordered_tree<by_name<stream_group>>& groups() const noexcept { return groups_; }
    /// The new group, or null when the name is taken.
    stream_group* add_group(slab& memory, std::string_view name, stream_id last,
                            std::int64_t entries_read);
    /// Moves the group into a stream of its own, for environment::discard().
    redis_stream take_group(slab& memory, stream_group& gone);

    /// Number of all entries ever added up to this ID, if known.
    std::optional<std::int64_t> count_up_to(stream_id id) const noexcept;
    /// True if erase() has removed this entry or a later one, in a stream that is not empty;
    /// trimming does not count.
    bool has_gaps_from(stream_id id) const noexcept;
    /// Number of entries that the group has not read yet, if known.
    std::optional<std::int64_t> lag(const stream_group& of) const noexcept;

    /// A copy of everything. O(its size).
    redis_stream copy(slab& memory) const;
    /// Frees blocks, groups and pending entries, about one a step; true while any remain.
    bool free_some(slab& memory, std::size_t steps) noexcept;
    /// Bytes of all parts except the stream object itself. Reads `samples` consumers of each group
    /// and extrapolates (0: all of them).
    std::size_t memory_bytes(std::size_t samples) const noexcept;
    /// Nodes that Redis's radix tree would have for the blocks, for XINFO: counted for the first
    /// max_counted_blocks, and extrapolated.
    std::size_t radix_nodes() const noexcept;
    static constexpr std::size_t max_counted_blocks = 4096;

    /// For a loader: appends an untrusted block. Returns its fault, a static text, or null.
    const char* add_block(slab& memory, stream_id id, std::string_view pack);
    /// The same for the stream's counters, after all entries.
    struct facts {
        std::uint64_t length = 0;
        stream_id last_id;
        stream_id max_deleted_id;
        std::optional<std::uint64_t> entries_added;  ///< missing in old files
    };
    const char* set_facts(const facts& known) noexcept;

    /// For tests: ends the process on an inconsistency.
    void check() const;

private:
    using block_tree = ordered_tree<by_stream_id<stream_block>>;

public:
    enum class order : std::uint8_t { forward, backward };

    /// Walk over the entries of a range, both ends included.
    class walk {
    public:
        walk(const redis_stream& over, stream_id first, stream_id last,
             order direction = order::forward) noexcept;
        /// Moves to the next entry; false at the end.
        bool next() noexcept;
        stream_id id() const noexcept { return id_; }
        /// Its pairs of a field and a value.
        std::size_t pairs() const noexcept { return pairs_; }
        /// The next pair, at most pairs() in all.
        void pair(listpack::element& field, listpack::element& value) noexcept;

    private:
        friend class redis_stream;
        void enter() noexcept;
        void seek() noexcept;
        void open(const char* entry) noexcept;
        bool step() noexcept;

        block_tree::position block_;
        const stream_id first_;
        const stream_id last_;
        const order direction_;
        bool shares_fields_ = false;
        bool deleted_ = false;
        const char* fields_ = nullptr;  // of the block's first entry
        std::size_t shared_ = 0;        // their number
        const char* at_ = nullptr;      // begin of the next entry, or, backward, end of the last
                                        // one
        const char* entry_ = nullptr;
        const char* rest_ = nullptr;  // unread part of the entry
        const char* next_field_ = nullptr;
        std::size_t unread_ = 0;  // elements
        std::size_t pairs_ = 0;
        stream_id id_;
    };

    /// Walk over the blocks, to write them unchanged.
    class block_walk {
    public:
        explicit block_walk(const redis_stream& over) noexcept : at_(over.blocks_.first()) {}
        explicit operator bool() const noexcept { return static_cast<bool>(at_); }
        stream_id id() const noexcept { return at_->id; }
        std::string_view pack() const noexcept { return {at_->of->pack(), at_->of->bytes()}; }
        void forward() noexcept { at_.forward(); }

    private:
        block_tree::position at_;
    };

private:
    stream_block* make_block(slab& memory, std::size_t capacity);
    void release_block(slab& memory, stream_block* gone) noexcept;
    void resize_block(slab& memory, block_tree::item& of, std::size_t capacity);
    void set_counts(slab& memory, block_tree::item& of, std::uint64_t live, std::uint64_t deleted);
    block_tree::position begin_block(slab& memory, stream_id id, const std::string_view* pairs,
                                     std::size_t count, std::size_t room);
    void remove_block(slab& memory, block_tree::position at) noexcept;
    std::uint64_t trim_plainly(slab& memory, const stream_trim& request);
    stream_trimmed trim_with_references(slab& memory, const stream_trim& request);
    bool trims_whole(const stream_trim& request, const block_tree::item& block,
                     std::uint64_t live) const noexcept;
    void find_first_id() noexcept;

    block_tree blocks_;
    ordered_tree<by_name<stream_group>> groups_;
    std::uint64_t size_ = 0;
    std::uint64_t entries_added_ = 0;
    stream_id last_id_;
    stream_id first_id_;
    stream_id max_deleted_id_;
    std::uint64_t block_bytes_ = 0;
};

}  // namespace eddy::cache
