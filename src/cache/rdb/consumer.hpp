// Consumer interface: the receiver of an RDB reader's events.
#pragma once

#include "cache/types/streams/stream.hpp"

#include <cstdint>
#include <optional>
#include <string_view>

namespace eddy::cache::rdb {

/// Kind of a key's value, independent of its encoding.
enum class value_kind : std::uint8_t { text, list, set, sorted_set, hash, stream };

/// Null to continue; otherwise a static text with the reason to stop reading.
using refusal = const char*;
inline constexpr refusal accepted = nullptr;

struct key_header {
    std::string_view key;  ///< empty in a DUMP payload
    value_kind kind = value_kind::text;
    bool expires = false;
    std::int64_t expires_at_ms = 0;  ///< since 1970; any value
};

/// The views are valid during the call. For each key: begin(), then one text(), or one call for
/// each element in order, then end(). A bad source may repeat elements of sets and fields.
class consumer {
public:
    consumer() = default;
    consumer(const consumer&) = delete;
    consumer& operator=(const consumer&) = delete;
    virtual ~consumer() = default;

    /// Auxiliary field about the writer, "redis-ver" and the like.
    virtual refusal aux(std::string_view, std::string_view) { return accepted; }
    /// The database of the following keys; 0 before the first call.
    virtual refusal select(std::uint64_t) { return accepted; }
    /// Untrusted hint of the number of keys, and of keys with an expiry.
    virtual refusal sizes(std::uint64_t, std::uint64_t) { return accepted; }
    /// The code of a library of functions.
    virtual refusal library(std::string_view) { return accepted; }

    virtual refusal begin(const key_header& of) = 0;
    /// The following set, sorted set or hash was a listpack: it stays one, in the same order, up to
    /// the limit of elements. Without this call the limits of encodings decide.
    virtual refusal listpack() { return accepted; }
    virtual refusal text(std::string_view whole) = 0;
    virtual refusal element(std::string_view of_list) = 0;
    virtual refusal member(std::string_view of_set) = 0;
    virtual refusal scored(std::string_view of_sorted_set, double score) = 0;
    virtual refusal field(std::string_view of_hash, std::string_view value) = 0;
    /// A field with an expiration, in milliseconds since 1970: 1 to field_clock::latest_end.
    virtual refusal timed_field(std::string_view of_hash, std::string_view value, std::int64_t) {
        return field(of_hash, value);
    }

    // A stream: its blocks, then its counters, then its groups. Each group is followed by its
    // pending entries and its consumers, and each consumer by the IDs of its own entries.

    /// A block is an unchecked listpack.
    virtual refusal stream_block(stream_id, std::string_view) { return accepted; }
    virtual refusal stream_facts(const redis_stream::facts&) { return accepted; }
    /// The third argument is the group's entries_read, which old files lack.
    virtual refusal group(std::string_view, stream_id, std::optional<std::int64_t>) {
        return accepted;
    }
    /// Last delivery time of an entry, and number of deliveries.
    virtual refusal pending(stream_id, std::int64_t, std::uint64_t) { return accepted; }
    /// Seen and active times of a consumer; old files have only one of them.
    virtual refusal group_consumer(std::string_view, std::int64_t, std::int64_t) {
        return accepted;
    }
    virtual refusal owned(stream_id) { return accepted; }

    virtual refusal end() = 0;
};

}  // namespace eddy::cache::rdb
