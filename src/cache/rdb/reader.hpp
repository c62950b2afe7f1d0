// RDB reader, sans-IO: a dump file, a master's full synchronisation, or the value in a DUMP
// payload.
//
// Bytes in, events out: the input may be split anywhere, and the same input yields the same events.
// Versions 1 to 13 of Redis and 80 of Valkey are read, with every encoding of strings, lists, sets,
// sorted sets, hashes and streams; packed values are checked completely before the event of their
// first element. Modules' values are refused. Skipped are modules' auxiliary data and metadata of
// keys, and the identities of idempotent producers' messages in streams.
//
// The input may be hostile. A claimed size allocates nothing. The reader holds at most one string
// of the input that came in pieces, and one or two decompressed ones (at most 88 times their
// compressed bytes).
#pragma once

#include <eddy/base/byte_buffer.hpp>

#include "cache/memory/entry.hpp"
#include "cache/rdb/consumer.hpp"
#include "cache/rdb/file_head.hpp"
#include "cache/rdb/format.hpp"
#include "cache/rdb/window.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace eddy::cache::rdb {

struct reader_options {
    /// At most so many bytes of a string or a packed value; a longer one is refused.
    std::size_t max_text = largest_text;
    /// True if the checksum at a file's end is checked. 0 always passes: it means none was
    /// computed.
    bool check_sum = true;
    /// Family of input::value; a file names its own.
    format_family family = format_family::redis;
};

/// Reason of a premature end.
struct read_fault {
    /// Offset of the first byte of the wrong unit (a length, a string, an element).
    std::uint64_t offset = 0;
    const char* what = nullptr;  ///< a static text, the reader's or the consumer's
    /// The file is for another server, or of a later version: it need not be damaged.
    bool is_unknown_format = false;
};

/// One input. One thread.
class reader {
public:
    enum class status : std::uint8_t { reading, done, failed };
    enum class input : std::uint8_t {
        file,   ///< from the magic number to the end mark and its checksum
        value,  ///< a type and a value, as in a DUMP payload without its footer
    };

    /// `to` must outlive the reader.
    explicit reader(consumer& to, input what = input::file, reader_options options = {}) noexcept
        : to_(to),
          options_(options),
          family_(options.family),
          state_(what == input::file ? state::magic : state::opcode),
          one_value_(what == input::value) {}

    reader(const reader&) = delete;
    reader& operator=(const reader&) = delete;

    /// Reads the next bytes. Returns the number of consumed bytes: all, or fewer when the input's
    /// end or a fault is among them. Throws std::bad_alloc without memory.
    std::size_t feed(std::string_view piece);

    /// Ends the input: an incomplete file or value fails.
    void finish();

    status now() const noexcept {
        return fault_.what != nullptr  ? status::failed
               : state_ == state::done ? status::done
                                       : status::reading;
    }
    /// The reason when now() is `failed`.
    const read_fault& fault() const noexcept { return fault_; }
    /// Version of the file; 0 until it is read.
    unsigned version() const noexcept { return head_.version(); }
    /// Bytes taken so far.
    std::uint64_t offset() const noexcept { return offset_ + pending_.size(); }

private:
    enum class state : std::uint8_t {
        magic,
        opcode,
        aux,
        select,
        sizes,
        slot_info,
        expires_s,
        expires_ms,
        idle,
        frequency,
        library,
        key_metadata,
        metadata_begin,
        module_begin,
        module_item,
        key,
        text,
        count,
        element,
        member,
        field,
        first_end,
        timed_field,
        field_and_end,
        scored_text,
        scored_binary,
        packed,
        ziplist_node,
        quicklist_node,
        stream_block,
        stream_facts,
        group,
        pending,
        consumers,
        group_consumer,
        owned,
        producers,
        producer,
        produced,
        produced_counts,
        checksum,
        done,
    };

    bool step(window& w);
    bool read_magic(window& w);
    bool read_opcode(window& w);
    bool read_family_opcode(window& w);
    bool read_expiry(window& w);
    bool read_key_metadata(window& w);
    bool read_metadata_begin(window& w);
    bool begin_type(window& w, object_type type);
    bool read_pair(window& w, std::string_view& first, std::string_view& second);
    bool read_module_begin(window& w);
    bool read_module_item(window& w);
    bool begin_value(window& w, std::string_view key);
    bool read_count(window& w);
    bool read_scored(window& w);
    bool read_first_end(window& w);
    bool read_timed_field(window& w);
    bool read_field_and_end(window& w);
    bool emit_field(window& w, std::string_view field, std::string_view value, std::int64_t ends);
    bool read_timed_packed(window& w);
    bool end_of_field(window& w, std::uint64_t written, std::int64_t& to) const;
    bool read_node(window& w);
    bool read_packed(window& w);
    bool read_stream_block(window& w);
    bool read_stream_facts(window& w);
    bool read_group(window& w);
    bool read_pending(window& w);
    bool read_consumers(window& w);
    bool read_group_consumer(window& w);
    bool read_owned(window& w);
    bool read_producers(window& w);
    bool read_producer(window& w);
    bool read_produced(window& w);
    bool read_produced_counts(window& w);
    bool end_consumer(window& w);
    bool end_group(window& w);
    bool end_groups(window& w);
    void end_producer();
    bool read_checksum(window& w);
    bool end_element(window& w);
    bool end_value(window& w);
    template <class Walk>
    bool emit_packed(window& w, std::string_view block);

    bool passed(window& w, refusal why) noexcept { return why == nullptr || w.fail(why); }
    bool read_text(window& w, text_scratch& scratch, std::string_view& to) {
        written_text written;
        return w.text(written) && w.expand(written, scratch, to);
    }

    consumer& to_;
    const reader_options options_;
    format_family family_;
    state state_;
    const bool one_value_;
    object_type type_ = object_type::text;
    value_kind kind_ = value_kind::text;
    key_header header_;
    file_head head_;
    std::uint64_t first_end_ = 0;  // base of a hash's field expirations
    std::uint64_t left_ = 0;       // elements of the value to come
    std::uint64_t groups_left_ = 0;
    std::uint64_t consumers_left_ = 0;
    std::uint64_t producers_left_ = 0;
    std::uint64_t metadata_left_ = 0;  // of the next key, by other modules
    std::uint64_t sum_ = 0;            // checksum so far
    std::uint64_t offset_ = 0;
    read_fault fault_;
    bool is_unknown_format_ = false;
    byte_buffer pending_;     // begin of an incomplete unit
    std::size_t wanted_ = 0;  // at least so many bytes of that unit
    text_scratch scratch_[2];
};

}  // namespace eddy::cache::rdb
