// Parts shared by the stream commands: replies of IDs, of entries, and of arrays whose size is
// known only at their end.
#pragma once

#include "cache/engine/call.hpp"
#include "cache/types/streams/stream.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace eddy::cache {

/// The head of an aggregate that is written behind its elements.
class late_head {
public:
    explicit late_head(call& c) noexcept
        : out_(&c.reply.buffer()), protocol_(c.client.protocol), begin_(out_->size()) {}

    /// Ends an array: the output since the beginning is `n` elements.
    void array(std::size_t n) {
        write([n](resp::reply_writer& head) { head.array(n); });
    }
    /// They are `pairs` keys with their values; RESP2: `pairs` arrays.
    void map_or_array(std::size_t pairs) {
        write([&](resp::reply_writer& head) {
            protocol_ == 2 ? head.array(pairs) : head.map(pairs);
        });
    }
    /// They are one ID.
    void id(stream_id one) {
        write([one](resp::reply_writer& head) { head.bulk(stream_id_text(one).view()); });
    }

private:
    template <class F>
    void write(F&& what);

    byte_buffer* out_;
    std::uint8_t protocol_;
    std::size_t begin_;
};

inline void reply_id(call& c, stream_id id) { c.reply.bulk(stream_id_text(id).view()); }

/// The entry that the walk is at: its ID, and an array of its fields and values.
void reply_entry(call& c, redis_stream::walk& at);
/// The same, with how long it had been pending and how often it had been delivered before.
void reply_entry(call& c, redis_stream::walk& at, std::int64_t idle_ms, std::uint64_t deliveries);

/// Entries of a range until the walk's end, `most` at most (0: all of them); returns how many.
std::size_t reply_entries(call& c, redis_stream::walk& range, std::uint64_t most);

/// "NOGROUP No such key '...' or consumer group '...'", and what is added to it.
void no_group(call& c, std::string_view key, std::string_view group, std::string_view more = {});
/// "NOGROUP No such consumer group '...' for key name '...'".
void no_group_of(call& c, std::string_view key, std::string_view group);

/// The milliseconds from then to now, zero at least.
inline std::int64_t milliseconds_since(const call& c, std::int64_t then_ms) noexcept {
    return then_ms < c.now_ms() ? c.now_ms() - then_ms : 0;
}

template <class F>
void late_head::write(F&& what) {
    byte_buffer text;
    resp::reply_writer head(text, protocol_);
    what(head);
    const std::size_t size = text.size();
    const std::size_t moved = out_->size() - begin_;
    char* const end = out_->reserve(size);
    char* const begin = end - moved;
    if (moved > 0) std::memmove(begin + size, begin, moved);
    std::memcpy(begin, text.text().data(), size);
    out_->commit(size);
}

}  // namespace eddy::cache
