// Content of HTTP messages: a reader of what arrives, a writer of what is sent piece by piece, and
// a body, which is a text or is produced while it is sent.
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/io/task.hpp>
#include <eddy/wire/http1/headers.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace eddy {
class file;
}

namespace eddy::http {

/// Content of a received message, in pieces as they arrive: unread content stays with the peer. It
/// belongs to the connection that it comes from. One read at a time. One loop's thread.
class body_reader {
public:
    virtual ~body_reader() = default;

    /// Awaits the next piece. Yields a result<std::string_view>: never empty, valid until the next
    /// read. Fails with errc::end_of_stream after the last piece; with errc::limit_reached beyond
    /// the limit on the body, errc::malformed, errc::truncated when the peer finished in the
    /// middle, errc::timed_out, or the stream's error, all of which are final; and with
    /// errc::cancelled, after which another read continues.
    virtual task<result<std::string_view>> read() = 0;

    /// Awaits everything that is left, at most `limit` bytes; more are errc::limit_reached, and
    /// final. Yields a result<std::string>; other errors as of read(). A failure loses what was
    /// read.
    virtual task<result<std::string>> whole(std::size_t limit) = 0;

    /// Sets the limit on this message's content, counted from its first byte. It decides until the
    /// first read, and bounds what comes in chunks at any time.
    virtual void set_limit(std::uint64_t bytes) noexcept = 0;

    /// The limit; UINT64_MAX for none.
    virtual std::uint64_t limit() const noexcept { return UINT64_MAX; }

    /// True once the content has been read to its end; from the start without content.
    virtual bool ended() const noexcept = 0;

    /// Trailers: the fields behind content in chunks (RFC 9112, 7.1.2), under the limits on fields
    /// of a head; they change nothing of it. Empty until the content has ended.
    virtual const http1::header_list& trailers() const noexcept = 0;
};

/// Writer of a body that is sent piece by piece. One write at a time. One loop's thread.
class body_writer {
public:
    virtual ~body_writer() = default;

    /// Sends a piece and awaits until the kernel has taken it: a peer that reads slowly slows its
    /// producer down, and nothing is queued. `piece` must live until then; an empty one sends
    /// nothing. Yields a result<>. Fails with errc::timed_out when the peer takes too little in the
    /// time for writes, errc::limit_reached beyond the declared size, errc::cancelled when the peer
    /// is gone, or the stream's error; all are final.
    virtual task<result<>> write(std::string_view piece) = 0;

    /// Most bytes of a file that write_file() holds in memory.
    static constexpr std::size_t file_slice_bytes = 128 * 1024;

    /// Sends `size` bytes of `from` from `offset` on, as write() would, and awaits until the kernel
    /// has taken them. Where the connection can send a file's pages (stream::try_send_file()),
    /// cached pages are not copied, and a change of one before the peer has it is sent, too; other
    /// pages are read in slices. `from` must live until then. Yields a result<>. Fails as write()
    /// does, with errc::truncated when the file ends early, and with file::read_at()'s errors.
    virtual task<result<>> write_file(file& from, std::uint64_t offset, std::uint64_t size);

    /// As write(), for a piece that is mapped (mmap(2)) from `offset` on of the file of the
    /// descriptor `memory`, which must live as long: where the connection can send a file's pages,
    /// they are not copied. They must not change as long as the peer may not have them, such as
    /// those of a sealed memfd_create(2).
    virtual task<result<>> write_mapped(std::string_view piece, int memory, std::uint64_t offset) {
        static_cast<void>(memory);
        static_cast<void>(offset);
        return write(piece);
    }

    /// Sets the trailers: fields that follow the content once its producer has returned, such as a
    /// digest of it. False where they cannot be sent: the content does not go in chunks, or the
    /// client has not sent "TE: trailers". Content-Length and Transfer-Encoding are left out.
    virtual bool set_trailers(http1::header_list fields) {
        static_cast<void>(fields);
        return false;
    }
};

/// Content that is made while it is sent, such as a log that is followed. One loop's thread.
class body_producer {
public:
    virtual ~body_producer() = default;

    /// Writes the content to `to` and returns. Yields a result<>; any error cuts the connection, so
    /// that the peer does not take a part for the whole; so does an exception, which a server logs.
    /// Called once. Cancelled when the peer goes away.
    virtual task<result<>> produce(body_writer& to) = 0;

    /// True if the first write follows at once, without a wait for something to write: the head of
    /// the message then goes out with it.
    virtual bool begins_at_once() const noexcept { return false; }

    /// True if the content ends by itself, even if its size is not known: a client that has
    /// finished sending still gets it. Otherwise the content ends when the client goes away.
    virtual bool is_finite() const noexcept { return false; }
};

namespace detail {

/// Producer that calls `work`, which lives as long.
template <class Produce>
class called_producer final : public body_producer {
public:
    explicit called_producer(Produce work) : work_(std::move(work)) {}
    task<result<>> produce(body_writer& to) override { return work_(to); }

private:
    Produce work_;
};

}  // namespace detail

/// Content of a message to send: a text, or what a producer writes. One loop's thread.
class body {
public:
    /// No content.
    body() noexcept = default;
    /// A text.
    body(std::string text) noexcept : text_(std::move(text)) {}
    /// The same; the text is copied.
    body(const char* text) : text_(text) {}
    /// Content that `producer` writes. With a `size` the message declares it, and the producer
    /// writes exactly so many bytes; without one it is sent in chunks.
    explicit body(std::unique_ptr<body_producer> producer,
                  std::optional<std::uint64_t> size = std::nullopt) noexcept
        : producer_(std::move(producer)), size_(size) {}

    /// Content that a callable writes: it takes a body_writer& and returns task<result<>>. It lives
    /// until the task has ended, so it may be a lambda that captures and is a coroutine.
    template <class Produce>
    static body streamed(Produce produce, std::optional<std::uint64_t> size = std::nullopt) {
        return body(std::make_unique<detail::called_producer<Produce>>(std::move(produce)), size);
    }

    /// The text; empty with a producer.
    const std::string& text() const noexcept { return text_; }
    /// The producer; null for a text.
    body_producer* producer() const noexcept { return producer_.get(); }
    /// Bytes of it, if known.
    std::optional<std::uint64_t> size() const noexcept {
        return producer_ ? size_ : std::optional<std::uint64_t>(text_.size());
    }

private:
    std::string text_;
    std::unique_ptr<body_producer> producer_;
    std::optional<std::uint64_t> size_;
};

}  // namespace eddy::http
