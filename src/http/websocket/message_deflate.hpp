// Compression of WebSocket messages by permessage-deflate (RFC 7692, 7.2), with zlib: one object
// for each direction of a connection. One thread.
#pragma once

#include <eddy/base/byte_buffer.hpp>
#include <eddy/base/result.hpp>
#include <eddy/wire/websocket.hpp>

#include "http/codings/zlib_stream.hpp"

#include <cstdint>
#include <string_view>

namespace eddy::http {

/// Compressor of the messages that one end sends. It has no memory of zlib's before its first
/// message. Where the terms say that this end keeps no context, one object can serve any number of
/// connections with the same terms, one whole message after another.
class message_compressor {
public:
    /// For messages that `sender` sends. Levels are zlib's: 1 is fast, 9 is small.
    message_compressor(const eddy::websocket::deflate_terms& terms, eddy::websocket::role sender,
                       int level = 6) noexcept;

    /// Appends the compressed form of the message's next piece to `out`, with the last one all that
    /// is left; it goes into frames with is_compressed. Pieces may yield nothing before the last.
    /// Fails with ENOMEM when zlib gets no memory. Throws std::bad_alloc, as all that grows. The
    /// message is lost then, and the object begins anew.
    [[nodiscard]] result<> add(std::string_view piece, bool is_last, byte_buffer& out);

    /// The next message begins with an empty window, also where a context is kept: for after what
    /// the peer got from elsewhere. Only between messages.
    void forget_context() noexcept { is_context_stale_ = true; }

    /// Messages that compressors of this thread have begun, for tests.
    static std::uint64_t messages_begun() noexcept;

    /// Frees zlib's memory. Only between messages; a context that is kept is lost, so only where
    /// none is, or when the connection ends.
    void release_memory() noexcept { stream_.reset(); }

private:
    result<> open() noexcept;

    deflate_stream stream_;
    int level_;
    unsigned window_bits_;
    bool keeps_context_;
    bool is_in_message_ = false;
    bool has_data_ = false;  // the message so far is not empty
    bool is_context_stale_ = false;
};

/// A compressor for single messages by a window of so many bits, which all connections of a thread
/// share.
message_compressor& single_message_compressor(unsigned window_bits);

/// Inflater of the messages that one end receives, each with a limit on its inflated size. Memory
/// and sharing are as those of message_compressor.
class message_inflater {
public:
    /// For messages that `sender`, the other end, sends.
    message_inflater(const eddy::websocket::deflate_terms& terms,
                     eddy::websocket::role sender) noexcept;

    /// Inflates the next piece of a message's data to the end of `out`, which grows by at most
    /// `limit` bytes for one message. errc::limit_reached beyond that (close with 1009),
    /// errc::malformed for data that is no deflate stream or ends within a block (1007), ENOMEM
    /// when zlib gets no memory. After an error the object begins anew.
    [[nodiscard]] result<> add(std::string_view piece, bool is_last, byte_buffer& out,
                               std::uint64_t limit);

    /// As message_compressor::release_memory().
    void release_memory() noexcept { drop_stream(); }

private:
    result<> open() noexcept;
    result<> inflate_all(std::string_view data, byte_buffer& out, std::uint64_t limit);
    result<> begin_next_stream();
    void drop_stream() noexcept;

    inflate_stream stream_;
    std::uint64_t size_ = 0;  // of the message, inflated so far
    unsigned window_bits_;
    bool keeps_context_;
    bool is_in_message_ = false;
    bool has_ended_ = false;  // a final block has come, and nothing behind it
};

}  // namespace eddy::http
