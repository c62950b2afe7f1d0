// Writer of one key, or one value, as RDB: in pieces, so that a huge value is never there twice.
//
// Values are written in the plain forms, element after element, which every version of Redis reads;
// text that is a 32-bit number is written as one; hashes with expiring fields, in the form of Redis
// 7.4 or in that of Valkey 9, of which neither reads the other's. Nothing is compressed. A stream's
// blocks are written as they are.
#pragma once

#include <eddy/base/byte_buffer.hpp>

#include "cache/keyspace/environment.hpp"
#include "cache/keyspace/keyspace.hpp"
#include "cache/rdb/format.hpp"
#include "cache/rdb/stream_writer.hpp"
#include "cache/types/collection.hpp"
#include "cache/types/list.hpp"
#include "cache/types/sorted_sets/sorted_set.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace eddy::cache::rdb {

void put_length(byte_buffer& out, std::uint64_t length);
/// The same in a longer form: the count of a listpack's elements, below 2^32.
void put_listpack_length(byte_buffer& out, std::uint64_t length);
/// The text whole.
void put_text(byte_buffer& out, std::string_view text);
/// The keys that follow are of this database.
void put_select(byte_buffer& out, std::size_t database);
/// A library of functions, which is no key.
void put_library(byte_buffer& out, std::string_view code);
/// `bytes` bytes of the number, the lowest first.
void put_little(byte_buffer& out, std::uint64_t number, std::size_t bytes);

/// From begin_...() until write() returns true the entry must neither change nor move. One thread.
class value_writer {
public:
    /// Texts up to this size are not parted, so a piece may be that much longer than asked for.
    static constexpr std::size_t max_whole_text = 4096;

    explicit value_writer(environment& env, format_family family = format_family::redis) noexcept
        : env_(env), is_valkeys_(family == format_family::valkey) {}

    /// Expiry, type, key, value: what a file consists of.
    void begin_key(entry& of);
    /// Type and value: what a DUMP payload begins with.
    void begin_value(entry& of);

    /// Appends until `out` holds about `limit` bytes. True when all is written.
    bool write(byte_buffer& out, std::size_t limit) {
        std::size_t all = SIZE_MAX;
        return write(out, limit, all);
    }
    /// The same, for so many parts at most, which are counted down: a small element of a big value
    /// costs a miss of the caches.
    bool write(byte_buffer& out, std::size_t limit, std::size_t& parts);

    /// The lowest version of the format that has the form in which the value is written.
    static unsigned version_for(environment& env, entry& of) noexcept;

private:
    enum class part : std::uint8_t {
        head,
        key,
        type,
        value,
        elements,
        second,
        field_end,
        score,
        end,
    };

    void next(byte_buffer& out);
    void put_type(byte_buffer& out) const;
    void begin_elements(byte_buffer& out);
    void next_element(byte_buffer& out);
    void start_text(byte_buffer& out, std::string_view text);

    environment& env_;
    const bool is_valkeys_;  // the form of a hash with expiring fields
    entry* of_ = nullptr;
    part next_ = part::end;
    bool with_key_ = false;
    std::string_view rest_;    // of a text that is written in pieces
    std::string_view second_;  // the value of the field that was written
    text_view text_;
    list::position element_;
    std::optional<collection::walk> walk_;
    std::optional<sorted_set::walk> ranked_;
    std::optional<stream_writer> stream_;
    double score_ = 0;           // of the member that was written
    bool timed_ = false;         // fields of the hash end
    expiry_time first_end_ = 0;  // of these the first
    expiry_time field_end_ = 0;  // of the field that was written
};

}  // namespace eddy::cache::rdb
