// queued_writer: bounded send queue of one stream, for many producers that do not wait.
//
//     queued_writer out(connection, connections, options);
//     if (auto sent = out.enqueue(reply); !sent) co_return;   // limit reached, or the peer is gone
//     if (!co_await out.ready()) co_return;                   // below the low watermark again
//
// Bytes go to the kernel inside enqueue() as long as it takes them, without an allocation. Only the
// rest is queued, and only while bytes are queued does the writer hold memory beyond itself: a
// queue, which allocates, and one coroutine that writes it out, several pieces to a system call.
#pragma once

#include <eddy/base/byte_buffer.hpp>
#include <eddy/base/bytes.hpp>
#include <eddy/base/intrusive_list.hpp>
#include <eddy/base/result.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/stream.hpp>
#include <eddy/io/task.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace eddy {

/// Policy for bytes that do not fit because the peer reads too slowly.
enum class slow_reader_policy : std::uint8_t {
    wait,         ///< they are refused with errc::limit_reached; reserve() waits for room
    drop_oldest,  ///< the oldest messages that have not begun to go out make room
    disconnect,   ///< the connection is closed
};

/// Observer that counts the messages of writers. One loop's thread.
class queued_writer_observer {
public:
    /// The kernel has taken so many bytes, with which so many messages are whole.
    virtual void note_sent(std::uint64_t messages, std::uint64_t bytes) noexcept = 0;
    /// So many messages, of which so many bytes were left, will never be whole: drop_oldest has
    /// dropped them, or the writer has failed or ended with them in its queue. What enqueue()
    /// refuses does not count.
    virtual void note_dropped(std::uint64_t messages, std::uint64_t bytes) noexcept = 0;

protected:
    ~queued_writer_observer() = default;
};

/// Limits of a queued_writer.
struct queued_writer_options {
    /// Most bytes queued, shared payloads counted in full. `policy` applies beyond.
    std::size_t max_queued_bytes = 1024 * 1024;
    /// Most messages queued. `policy` applies beyond.
    std::uint32_t max_queued_messages = 4096;
    /// Behaviour at these limits.
    slow_reader_policy policy = slow_reader_policy::wait;
    /// From `high_watermark` queued bytes on the producers should pause, until no more than
    /// `low_watermark` are left. A high watermark above max_queued_bytes means that limit, a low
    /// one that is not below the high one means a quarter of it.
    std::size_t high_watermark = 256 * 1024;
    /// Queued bytes at which producers may continue; see high_watermark.
    std::size_t low_watermark = 64 * 1024;
    /// Observer; it must outlive the writers. Null: none.
    queued_writer_observer* observer = nullptr;
};

/// The only writer of one stream. One loop's thread.
class queued_writer {
public:
    /// Waits for the queue to shrink; see reserve(), ready() and flush().
    class wait_operation;

    /// Writes to `to`, which must outlive this object, though it may be closed before. `tasks` is
    /// where the coroutine runs that writes the queue out; it must outlive this object, too, and
    /// cancelling it cancels the writing.
    queued_writer(stream& to, scope& tasks, const queued_writer_options& options = {});
    /// Drops what is still queued: await flush() or graceful_shutdown() first.
    ~queued_writer();
    queued_writer(const queued_writer&) = delete;
    queued_writer& operator=(const queued_writer&) = delete;

    /// Sends one message, whole or not at all: what the kernel does not take now is copied.
    /// Fails with
    /// - errc::limit_reached when it does not fit, and nothing of it was sent: under `wait` try
    ///   again after reserve(), under `disconnect` the stream has been closed. Under `drop_oldest`
    ///   there is no such failure; what is dropped is at worst the message itself. A message
    ///   longer than max_queued_bytes is refused under every policy, and nothing else happens;
    /// - the first error that writing met, or errc::closed after graceful_shutdown();
    /// - errno ENOMEM when there is no memory for the queue. That counts as an error of writing,
    ///   since a part of the message may be gone: the writer sends nothing more.
    ///
    /// Bytes that are several messages, or none, count as `count`; for the limits they are one.
    [[nodiscard]] result<> enqueue(const_bytes message, std::uint32_t count = 1);
    /// The same for text.
    [[nodiscard]] result<> enqueue(std::string_view message) { return enqueue(as_bytes(message)); }
    /// The same without a copy: takes the bytes over.
    [[nodiscard]] result<> enqueue(std::vector<std::byte>&& message);
    /// The same for one payload that goes to many peers: shared, never copied as a whole. It must
    /// not change any more.
    [[nodiscard]] result<> enqueue(std::shared_ptr<const byte_buffer> message) {
        const const_bytes bytes = message->bytes();
        return enqueue(std::move(message), bytes);
    }
    /// The same for a vector.
    [[nodiscard]] result<> enqueue(std::shared_ptr<const std::vector<std::byte>> message) {
        const const_bytes bytes = *message;
        return enqueue(std::move(message), bytes);
    }
    /// The same in its general form: `owner` keeps `message` alive, and is released when its bytes
    /// are sent or dropped. Short messages are copied all the same.
    [[nodiscard]] result<> enqueue(std::shared_ptr<const void> owner, const_bytes message,
                                   std::uint32_t count = 1);

    /// Awaits room for a message of `size` bytes, in the order of the calls. An enqueue() that
    /// follows before the caller waits for anything else will fit. Yields a result<>; fails with
    /// errc::limit_reached when `size` exceeds max_queued_bytes, else as enqueue() does, or with
    /// errc::cancelled.
    [[nodiscard]] awaiting<wait_operation> reserve(std::size_t size);
    /// Awaits the end of high_watermark_active(). Yields a result<>: the first error that writing
    /// met, errc::closed after abort(), or errc::cancelled.
    [[nodiscard]] awaiting<wait_operation> ready();
    /// Awaits until the kernel has taken every byte. Yields a result<>, errors as with ready().
    /// Bound it by flush_within().
    [[nodiscard]] awaiting<wait_operation> flush();
    /// The same with a limit from when it is awaited; errc::timed_out when it passed, and the rest
    /// stays queued.
    task<result<>> flush_within(duration limit);

    /// Takes no more messages, awaits flush_within(limit), then signals the peer that no more bytes
    /// follow. Yields a result<>: if it is an error, one of flush_within() or shutdown(2), the
    /// stream has been closed. Reading continues.
    task<result<>> graceful_shutdown(duration limit);

    /// Drops the queue and closes the stream. Where bytes were queued the peer sees a reset
    /// (stream::abort()), since the peer has not received everything.
    void abort() noexcept;

    /// Raises max_queued_bytes; the watermarks stay. A lower one has no effect.
    void raise_limit(std::size_t max_queued_bytes) noexcept {
        if (max_queued_bytes > options_.max_queued_bytes)
            options_.max_queued_bytes = max_queued_bytes;
    }

    /// Bytes that wait for the kernel to take them.
    std::size_t queued_bytes() const noexcept;
    /// The same in messages; one that is half written counts.
    std::size_t queued_messages() const noexcept;
    /// True from high_watermark queued bytes on, until only low_watermark are left.
    bool high_watermark_active() const noexcept { return high_; }
    /// Messages and bytes that drop_oldest has dropped so far.
    std::uint64_t dropped() const noexcept { return dropped_; }
    /// Bytes of dropped messages.
    std::uint64_t dropped_bytes() const noexcept { return dropped_bytes_; }
    /// The first error that writing met; none while all is well.
    std::error_code error() const noexcept { return error_; }

private:
    struct piece;
    struct backlog;

    [[nodiscard]] result<std::size_t> admit(const_bytes message, std::uint32_t count);
    [[nodiscard]] result<> append(piece&& rest);
    bool copies_are_merged(std::size_t size) const noexcept;
    [[nodiscard]] result<> out_of_memory() noexcept;
    std::unique_ptr<backlog> new_backlog();
    bool start_drain(std::unique_ptr<backlog> made) noexcept;
    bool make_room(std::size_t size) noexcept;
    bool fits(std::size_t size) const noexcept;
    void count_dropped(std::uint64_t messages, std::size_t size) noexcept;
    void note_sent(std::uint64_t messages, std::uint64_t bytes) const noexcept;
    void fail_with(std::error_code error) noexcept;
    void abandon_backlog() noexcept;
    void wake_waiters() noexcept;
    static task<void> drain(std::unique_ptr<backlog> queue);
    static task<result<>> flush_task(queued_writer& writer);

    stream* stream_;
    scope* tasks_;
    queued_writer_options options_;
    backlog* backlog_ = nullptr;     // null while nothing is queued; its coroutine owns it
    std::size_t granted_bytes_ = 0;  // promised by reserve() to coroutines about to resume
    std::uint32_t granted_messages_ = 0;
    bool high_ = false;
    bool closing_ = false;
    std::uint64_t dropped_ = 0;
    std::uint64_t dropped_bytes_ = 0;
    std::error_code error_;
};

/// Waits for a writer's queue to shrink below a limit.
class queued_writer::wait_operation final : public operation, public list_link<queued_writer> {
public:
    enum class condition : std::uint8_t { room, below_low_watermark, empty };

    wait_operation(queued_writer& writer, condition until, std::size_t size) noexcept
        : writer_(&writer), size_(size), until_(until) {}
    void set_error(std::error_code error) noexcept override { error_ = error; }
    result<> take_result() noexcept;

private:
    friend class queued_writer;
    bool start() override;
    void on_cancel() noexcept override;
    bool met() const noexcept;

    queued_writer* writer_;
    std::size_t size_;
    std::error_code error_;
    condition until_;
    bool granted_ = false;
};

}  // namespace eddy
