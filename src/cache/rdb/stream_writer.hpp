// Writer of a stream's parts as RDB, one after another, in the form that Redis 7.0 reads.
#pragma once

#include <eddy/base/byte_buffer.hpp>

#include "cache/types/streams/stream.hpp"

#include <cstdint>
#include <optional>
#include <string_view>

namespace eddy::cache::rdb {

/// The stream must neither change nor move until it is written. One thread.
class stream_writer {
public:
    explicit stream_writer(const redis_stream& of) noexcept : of_(of), block_(of) {}

    /// Appends the next part; false when there was none left. A long text, which belongs behind it,
    /// is left to the caller: `text` is set to it, or empty.
    bool next(byte_buffer& out, std::string_view& text);

private:
    enum class part : std::uint8_t { begin, blocks, facts, group, pending, consumer, owned, end };

    void begin_groups(byte_buffer& out);
    void begin_group(byte_buffer& out);
    void begin_consumers(byte_buffer& out);

    const redis_stream& of_;
    part next_ = part::begin;
    redis_stream::block_walk block_;
    ordered_tree<by_name<stream_group>>::position group_;
    ordered_tree<by_name<stream_consumer>>::position consumer_;
    pending_tree::position pending_;
};

}  // namespace eddy::cache::rdb
