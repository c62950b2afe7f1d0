// Writer of one key as the commands that make it, as RESP: Redis's form of an append-only file's
// base with aof-use-rdb-preamble no. In pieces, as value_writer.
//
// A command has at most 64 elements. The value comes first, then its expiry, which a loader keeps
// even if it is in the past. A stream's groups are written with their pending entries; the times at
// which consumers were seen are lost, and so are pending entries that were removed from the stream,
// which XCLAIM refuses.
#pragma once

#include <eddy/base/byte_buffer.hpp>

#include "cache/keyspace/environment.hpp"
#include "cache/keyspace/keyspace.hpp"
#include "cache/types/collection.hpp"
#include "cache/types/list.hpp"
#include "cache/types/number.hpp"
#include "cache/types/sorted_sets/sorted_set.hpp"
#include "cache/types/streams/stream.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>

namespace eddy::cache::rdb {

/// Selects the database of the following commands.
void put_select_command(byte_buffer& out, std::size_t database);
/// Writes a library of functions.
void put_load_command(byte_buffer& out, std::string_view code);

/// From begin_key() until write() returns true the entry must neither change nor move. One thread.
class command_writer {
public:
    /// Elements of one command.
    static constexpr std::size_t max_elements = 64;

    explicit command_writer(environment& env) noexcept : env_(env) {}

    void begin_key(entry& of);
    /// As value_writer::write(); an argument counts as one part.
    bool write(byte_buffer& out, std::size_t limit, std::size_t& parts);

private:
    enum class part : std::uint8_t {
        value,
        elements,
        field_ends,
        entries,
        pairs,
        ids,
        groups,
        consumers,
        pending,
        expiry,
        end,
    };

    void next(byte_buffer& out);
    void command(byte_buffer& out, std::size_t arguments);
    void command(byte_buffer& out, std::initializer_list<std::string_view> arguments);
    void queue(std::string_view argument) { queue_[queued_++] = argument; }
    void put(byte_buffer& out, std::string_view argument);

    void begin_value(byte_buffer& out);
    void begin_elements(std::string_view name, std::size_t count);
    void next_element(byte_buffer& out);
    void queue_element();
    void next_field_end(byte_buffer& out);
    void next_entry(byte_buffer& out);
    void next_pair();
    void write_ids(byte_buffer& out);
    void next_group(byte_buffer& out);
    void next_consumer(byte_buffer& out);
    void next_pending(byte_buffer& out);
    void write_expiry(byte_buffer& out);

    environment& env_;
    entry* of_ = nullptr;
    part next_ = part::end;
    std::string_view rest_;  // of an argument that is written in pieces

    // Arguments to write before anything else.
    static constexpr std::size_t max_queued = 16;
    std::array<std::string_view, max_queued> queue_;
    std::size_t queued_ = 0;
    std::size_t sent_ = 0;  // of these

    std::string_view name_;     // of the command that adds elements
    std::size_t left_ = 0;      // elements, or pairs of a stream's entry
    std::size_t in_chunk_ = 0;  // elements of the current command
    text_view text_;
    list::position element_;
    std::optional<collection::walk> walk_;
    std::optional<sorted_set::walk> ranked_;
    std::optional<redis_stream::walk> entries_;
    ordered_tree<by_name<stream_group>>::position group_;
    ordered_tree<by_name<stream_consumer>>::position consumer_;
    pending_tree::position pending_;

    // The text of queued numbers.
    char score_[max_double_text];
    char digits_[2][24];
    std::array<stream_id_text, 2> ids_{stream_id_text({}), stream_id_text({})};
    std::array<decimal, 2> numbers_{decimal(0), decimal(0)};
};

}  // namespace eddy::cache::rdb
