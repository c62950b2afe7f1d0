// Environment shared by all keyspaces and values of one engine: memory, hash, random numbers, the
// time.
#pragma once

#include <eddy/base/random.hpp>

#include "cache/keyspace/dictionary.hpp"
#include "cache/keyspace/eviction.hpp"
#include "cache/keyspace/key_event.hpp"
#include "cache/keyspace/statistics.hpp"
#include "cache/memory/entry.hpp"
#include "cache/memory/key_hash.hpp"
#include "cache/memory/large_argument.hpp"
#include "cache/memory/slab.hpp"
#include "cache/memory/slice_limit.hpp"
#include "cache/types/encoding_limits.hpp"
#include "cache/types/list.hpp"
#include "cache/types/sorted_sets/score_tree.hpp"
#include "cache/types/streams/stream.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string_view>

namespace eddy::cache {

class field_clock;

/// Observer of key events that are not caused by commands: expired, evicted or added.
class key_observer {
public:
    /// `key` is valid during the call.
    virtual void key_happened(unsigned database, key_event kind, std::string_view name,
                              std::string_view key) = 0;

protected:
    ~key_observer() = default;
};

/// Treatment of an expired key on lookup by a command.
enum class expired_keys : std::uint8_t {
    go,    ///< it is removed
    hide,  ///< it is not found, and stays until the master removes it
    stay,  ///< it is found: for commands of the master or of a file
};

/// One per engine; used by one thread at a time, and by lanes concurrently as lane.hpp says.
struct environment {
    explicit environment(std::uint64_t seed) noexcept;
    environment(const environment&) = delete;
    environment& operator=(const environment&) = delete;
    ~environment();

    /// Takes a table with all its entries, to be freed in slices: a DEL of millions of fields must
    /// not block other clients. Small tables are freed at once.
    void discard(dictionary&& table);
    /// The same for a list's elements.
    void discard(list&& elements);
    /// The same for a sorted set's order; its members are a table.
    void discard(score_tree&& order);
    /// The same for a stream's entries and groups.
    void discard(redis_stream&& entries);
    /// The same for a string's block: the kernel needs ten milliseconds or more to reclaim a
    /// hundred megabytes.
    void discard(text_block* text);

    /// Large arguments of the running command.
    std::span<large_argument> offered;
    /// The block of the offered argument with this text, to be kept as a string's value; null when
    /// there is none. The text stays valid until the command has ended, even if the value does not.
    text_block* keep_offered(std::string_view text) noexcept;
    /// Takes the block of a large argument, whole or not, into this environment's memory.
    text_block* take_over(large_argument& whole) noexcept;

    /// Frees about `steps` entries of discarded tables, or blocks of lists and orders, at most
    /// until the end of the slice. True while any remain.
    bool free_some(std::size_t steps, slice_limit& slice) noexcept;
    /// The same in a slice of its own.
    bool free_some(std::size_t steps) noexcept {
        slice_limit slice(slice_time, longest_slice_ns);
        return free_some(steps, slice);
    }

    /// Tables, lists, orders, streams and strings that wait to be freed.
    std::size_t discarded() const noexcept {
        return tables_.size() + lists_.size() + orders_.size() + streams_.size() + texts_.size();
    }

    slab memory;
    key_hash hash;
    random_generator random;
    std::int64_t now_us = 0;  ///< microseconds since 1970, as last set
    std::int64_t now_ms = 0;
    /// Monotonic time, for waits, pauses and lags.
    std::int64_t steady_us = 0;
    slice_clock slice_time = steady_ns;  ///< clock of slices; null: slices are not limited
    eviction policy = eviction::none;
    std::uint8_t most_uses = 0;  ///< limit up to which a lookup counts a key's uses
    void set_policy(eviction chosen) noexcept {
        policy = chosen;
        most_uses = counted_uses(chosen);
    }
    encoding_limits limits;
    expired_keys expired = expired_keys::go;
    key_observer* observer = nullptr;  ///< null: no observer
    statistics counters;
    std::unique_ptr<field_clock> fields;  ///< null until a hash has expiring fields
    std::uint64_t keyspace_contents = 0;  ///< see keyspace::contents()

private:
    struct deferred_table {
        explicit deferred_table(dictionary&& discarded) noexcept
            : table(std::move(discarded)), rest(table) {}
        dictionary table;
        dictionary::iterator rest;
        std::size_t dropped = 0;  // see dictionary::drop_some()
    };
    /// A string's block; the kernel has reclaimed the bytes after the first `left` ones.
    struct deferred_text {
        text_block* block;
        std::size_t capacity;
        std::size_t left;
    };

    bool free_text(deferred_text& of) noexcept;
    bool free_table(deferred_table& of, std::size_t& steps) noexcept;

    std::deque<deferred_table> tables_;
    std::deque<list> lists_;
    std::deque<score_tree> orders_;
    std::deque<redis_stream> streams_;
    std::deque<deferred_text> texts_;
};

/// Frees all blocks of the entry's value except the entry's own.
void release_value(environment& env, entry& of) noexcept;

/// True if release_value() defers a part of the work.
bool is_freed_in_slices(const entry& of) noexcept;

/// Frees the value and the block.
void release_entry(environment& env, entry* gone) noexcept;

/// Number of elements of the entry's value; 1 for a string.
std::size_t elements_of(const entry& of) noexcept;

/// Bytes of the entry and all that it holds, for MEMORY USAGE. O(blocks of a list); for a big set
/// or hash it reads `samples` elements and extrapolates (0: all of them).
std::size_t memory_usage(const environment& env, const entry& of, std::size_t samples);

}  // namespace eddy::cache
