// Backlog of a queued_writer and the coroutine that drains it.
//
// A backlog exists while bytes are queued or a coroutine waits for them to go. It belongs to its
// drain coroutine, which may outlive the writer for a moment: the kernel may still be reading the
// pieces of a write that was cancelled.
#include <eddy/net/queued_writer.hpp>

#include <eddy/io/timeout.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>
#include <new>
#include <span>
#include <utility>

namespace eddy {
namespace {

/// One write takes at most this many pieces and bytes, so that a slow peer's progress is seen.
constexpr std::size_t most_batch_pieces = 16;
constexpr std::size_t most_batch_bytes = 128 * 1024;
/// Copies are collected into pieces of up to this size.
constexpr std::size_t merged_piece_size = 16 * 1024;
/// A shared payload up to this size is cheaper to copy than to keep track of.
constexpr std::size_t copied_share_size = 256;

}  // namespace

/// Bytes of one message, or of several that were copied together.
struct queued_writer::piece {
    std::vector<std::byte> own;
    std::shared_ptr<const void> owner;  // when set, the bytes are `shared`
    const_bytes shared;
    std::size_t offset = 0;      // so many of them have gone out
    std::uint32_t messages = 1;  // calls of enqueue(), for the limit
    std::uint64_t count = 1;     // messages that they stand for
    bool started = false;        // the peer has a part of the message already

    const_bytes left() const noexcept {
        return (owner ? shared : const_bytes(own)).subspan(offset);
    }
};

struct queued_writer::backlog {
    backlog(queued_writer& writer, stream& to, cancel_source& parent)
        : owner(&writer), target(&to), stop(&parent) {}

    /// Pieces at the front that a write has begun to send.
    std::size_t locked() const noexcept {
        const bool front_started = !pieces.empty() && pieces.front().started;
        return std::max(in_flight, std::size_t{front_started});
    }
    std::size_t locked_bytes() const noexcept {
        std::size_t sum = 0;
        for (std::size_t i = 0; i < locked(); ++i) sum += pieces[i].left().size();
        return sum;
    }

    queued_writer* owner;  // null when it has died, failed or given up
    stream* target;        // only as long as there is an owner
    cancel_source stop;
    std::deque<piece> pieces;
    std::size_t bytes = 0;
    std::size_t messages = 0;
    std::size_t in_flight = 0;  // pieces that the running write refers to
    intrusive_list<wait_operation, queued_writer> waiters;
};

queued_writer::queued_writer(stream& to, scope& tasks, const queued_writer_options& options)
    : stream_(&to), tasks_(&tasks), options_(options) {
    EDDY_PRECONDITION(
        options_.max_queued_bytes > 0 && options_.max_queued_messages > 0,
        "a queued_writer of no message: max_queued_bytes and max_queued_messages are at least 1");
    options_.high_watermark = std::min(options_.high_watermark, options_.max_queued_bytes);
    if (options_.low_watermark >= options_.high_watermark)
        options_.low_watermark = options_.high_watermark / 4;
}

queued_writer::~queued_writer() {
    EDDY_ASSERT(granted_messages_ == 0);
    EDDY_PRECONDITION(
        !backlog_ || backlog_->waiters.empty(),
        "a queued_writer was destroyed while a coroutine waits for it: await that first");
    abandon_backlog();
}

std::size_t queued_writer::queued_bytes() const noexcept { return backlog_ ? backlog_->bytes : 0; }
std::size_t queued_writer::queued_messages() const noexcept {
    return backlog_ ? backlog_->messages : 0;
}

bool queued_writer::fits(std::size_t size) const noexcept {
    const std::size_t bytes = queued_bytes() + granted_bytes_;
    return size <= options_.max_queued_bytes - std::min(bytes, options_.max_queued_bytes) &&
           queued_messages() + granted_messages_ < options_.max_queued_messages;
}

void queued_writer::count_dropped(std::uint64_t messages, std::size_t size) noexcept {
    dropped_ += messages;
    dropped_bytes_ += size;
    if (options_.observer) options_.observer->note_dropped(messages, size);
}

void queued_writer::note_sent(std::uint64_t messages, std::uint64_t bytes) const noexcept {
    if (options_.observer) options_.observer->note_sent(messages, bytes);
}

/// Drops the oldest messages that may be dropped until `size` fits. False, and nothing dropped,
/// when that would not be enough.
bool queued_writer::make_room(std::size_t size) noexcept {
    const std::size_t staying =
        backlog_ ? backlog_->locked_bytes() + granted_bytes_ : granted_bytes_;
    const std::size_t locked = backlog_ ? backlog_->locked() : 0;
    if (staying + size > options_.max_queued_bytes ||
        locked + granted_messages_ >= options_.max_queued_messages)
        return false;
    while (!fits(size)) {
        const auto oldest = backlog_->pieces.begin() + static_cast<std::ptrdiff_t>(locked);
        const std::size_t freed = oldest->left().size();
        count_dropped(oldest->count, freed);
        backlog_->bytes -= freed;
        --backlog_->messages;
        backlog_->pieces.erase(oldest);
    }
    return true;
}

/// Sends what goes out at once and returns how many of the message's last bytes must be queued; 0
/// also when the message was dropped.
result<std::size_t> queued_writer::admit(const_bytes message, std::uint32_t count) {
    if (error_) return fail(error_);
    if (closing_) return fail(errc::closed);
    if (message.size() > options_.max_queued_bytes) return fail(errc::limit_reached);
    if (message.empty()) return 0;
    if (!fits(message.size())) {
        switch (options_.policy) {
            case slow_reader_policy::wait: return fail(errc::limit_reached);
            case slow_reader_policy::drop_oldest:
                if (make_room(message.size())) break;
                count_dropped(count, message.size());
                return 0;
            case slow_reader_policy::disconnect:
                fail_with(errc::limit_reached);
                stream_->close();
                return fail(errc::limit_reached);
        }
    }
    if (backlog_) return message.size();
    auto sent = stream_->try_write(message);
    if (!sent) {
        fail_with(sent.error());
        return fail(sent.error());
    }
    if (*sent > 0) note_sent(*sent == message.size() ? count : 0, *sent);
    return message.size() - *sent;
}

/// Messages that may be dropped one by one must stay apart.
bool queued_writer::copies_are_merged(std::size_t size) const noexcept {
    if (options_.policy == slow_reader_policy::drop_oldest || !backlog_) return false;
    if (backlog_->pieces.size() <= backlog_->in_flight) return false;
    const piece& last = backlog_->pieces.back();
    return !last.owner && last.own.size() + size <= merged_piece_size;
}

/// The message may be half sent by now, so that nothing can follow it any more.
result<> queued_writer::out_of_memory() noexcept {
    fail_with(errno_code(ENOMEM));
    return fail(error_);
}

result<> queued_writer::enqueue(const_bytes message, std::uint32_t count) try {
    const auto left = admit(message, count);
    if (!left) return fail(left.error());
    if (*left == 0) return {};
    const const_bytes rest = message.last(*left);
    if (copies_are_merged(rest.size())) {
        piece& last = backlog_->pieces.back();
        last.own.insert(last.own.end(), rest.begin(), rest.end());
        ++last.messages;
        last.count += count;
        ++backlog_->messages;
        backlog_->bytes += rest.size();
        if (backlog_->bytes >= options_.high_watermark) high_ = true;
        return {};
    }
    piece added;
    added.own.assign(rest.begin(), rest.end());
    added.started = rest.size() < message.size();
    added.count = count;
    return append(std::move(added));
} catch (const std::bad_alloc&) {
    return out_of_memory();
}

result<> queued_writer::enqueue(std::vector<std::byte>&& message) try {
    const auto left = admit(message, 1);
    if (!left) return fail(left.error());
    if (*left == 0) return {};
    piece added;
    added.offset = message.size() - *left;
    added.started = added.offset > 0;
    added.own = std::move(message);
    return append(std::move(added));
} catch (const std::bad_alloc&) {
    return out_of_memory();
}

result<> queued_writer::enqueue(std::shared_ptr<const void> owner, const_bytes message,
                                std::uint32_t count) try {
    if (message.size() <= copied_share_size) return enqueue(message, count);
    const auto left = admit(message, count);
    if (!left) return fail(left.error());
    if (*left == 0) return {};
    piece added;
    added.owner = std::move(owner);
    added.shared = message;
    added.count = count;
    added.offset = message.size() - *left;
    added.started = added.offset > 0;
    return append(std::move(added));
} catch (const std::bad_alloc&) {
    return out_of_memory();
}

/// May throw std::bad_alloc, and has done nothing then.
result<> queued_writer::append(piece&& rest) {
    const std::size_t size = rest.left().size();
    std::unique_ptr<backlog> made = new_backlog();
    backlog& queue = made ? *made : *backlog_;
    queue.pieces.push_back(std::move(rest));
    queue.bytes += size;
    ++queue.messages;
    if (queue.bytes >= options_.high_watermark) high_ = true;
    start_drain(std::move(made));
    if (error_) return fail(error_);
    return {};
}

/// One for start_drain() if there is none, else null. May throw std::bad_alloc.
std::unique_ptr<queued_writer::backlog> queued_writer::new_backlog() {
    if (backlog_) return nullptr;
    return std::make_unique<backlog>(*this, *stream_, tasks_->source());
}

/// Starts writing out what has just been put into a new backlog. In a scope that is cancelled
/// already, the backlog may be gone when this returns. False when there is no memory: what waits in
/// it has been taken out, and no other code completes it.
bool queued_writer::start_drain(std::unique_ptr<backlog> made) noexcept try {
    if (!made) return true;
    backlog_ = made.get();
    cancel_source& stop = made->stop;
    // It may outlive the task that writes, and what that one's frames come from.
    const detail::frames_from pool(nullptr);
    tasks_->spawn(drain(std::move(made)).under(stop));
    return true;
} catch (const std::bad_alloc&) {
    backlog_ = nullptr;  // it went with the coroutine that it belongs to
    fail_with(errno_code(ENOMEM));
    return false;
}

task<void> queued_writer::drain(std::unique_ptr<backlog> queue) {
    // Whatever else this turn brings goes out in the same write.
    co_await loop::current().yield();
    std::array<const_bytes, most_batch_pieces> batch;
    while (queue->owner) {
        if (queue->stop.requested()) {
            queue->owner->fail_with(errc::cancelled);
            break;
        }
        queue->owner->wake_waiters();
        if (queue->pieces.empty()) {
            if (queue->waiters.empty()) break;
            // They wait for the coroutines that were granted room and resume in this turn.
            co_await loop::current().yield();
            continue;
        }

        const std::size_t limit = std::clamp<std::size_t>(
            queue->owner->options_.max_queued_bytes / 4, 1, most_batch_bytes);
        std::size_t size = 0;
        std::size_t count = 0;
        while (count < batch.size() && count < queue->pieces.size() && size < limit) {
            const const_bytes left = queue->pieces[count].left();
            batch[count] = left.first(std::min(left.size(), limit - size));
            size += batch[count++].size();
        }
        queue->in_flight = count;
        const std::span<const const_bytes> pieces(batch.data(), count);
        const auto written = co_await queue->target->write_all(pieces);
        queue->in_flight = 0;
        if (!queue->owner) break;
        if (!written) {
            queue->owner->fail_with(written.error());
            break;
        }

        queue->bytes -= size;
        const std::size_t written_bytes = size;
        std::uint64_t written_messages = 0;
        while (size > 0) {
            piece& front = queue->pieces.front();
            const std::size_t left = front.left().size();
            if (size < left) {
                front.offset += size;
                front.started = true;
                break;
            }
            size -= left;
            queue->messages -= front.messages;
            written_messages += front.count;
            queue->pieces.pop_front();
        }
        queue->owner->note_sent(written_messages, written_bytes);
    }
    if (queue->owner) queue->owner->backlog_ = nullptr;
}

/// Lets go of the queue: what is not being written is freed now, the rest when the write has ended.
void queued_writer::abandon_backlog() noexcept {
    high_ = false;
    if (!backlog_) return;
    backlog& queue = *std::exchange(backlog_, nullptr);
    queue.owner = nullptr;
    if (options_.observer && !queue.pieces.empty()) {
        std::uint64_t lost = 0;
        for (const piece& each : queue.pieces) lost += each.count;
        options_.observer->note_dropped(lost, queue.bytes);
    }
    queue.pieces.erase(queue.pieces.begin() + static_cast<std::ptrdiff_t>(queue.in_flight),
                       queue.pieces.end());
    while (!queue.waiters.empty()) {
        wait_operation& waiter = queue.waiters.pop_front();
        waiter.set_error(error_);
        waiter.complete_later();
    }
    queue.stop.request();
}

void queued_writer::fail_with(std::error_code error) noexcept {
    if (!error_) error_ = error;
    abandon_backlog();
}

void queued_writer::abort() noexcept {
    const bool is_cut = queued_bytes() > 0;
    fail_with(errc::closed);
    if (is_cut)
        stream_->abort();
    else
        stream_->close();
}

/// Completes the waits whose condition is met. Room is granted first come, first served.
void queued_writer::wake_waiters() noexcept {
    if (backlog_->bytes <= options_.low_watermark) high_ = false;
    bool room_is_short = false;
    backlog_->waiters.for_each([&](wait_operation& waiter) {
        const bool wants_room = waiter.until_ == wait_operation::condition::room;
        if (wants_room && room_is_short) return;
        if (!waiter.met()) {
            room_is_short = room_is_short || wants_room;
            return;
        }
        if (wants_room) {
            waiter.granted_ = true;
            granted_bytes_ += waiter.size_;
            ++granted_messages_;
        }
        static_cast<list_link<queued_writer>&>(waiter).unlink();
        waiter.complete_later();
    });
}

awaiting<queued_writer::wait_operation> queued_writer::reserve(std::size_t size) {
    return awaiting<wait_operation>(*this, wait_operation::condition::room, size);
}
awaiting<queued_writer::wait_operation> queued_writer::ready() {
    return awaiting<wait_operation>(*this, wait_operation::condition::below_low_watermark,
                                    std::size_t{0});
}
awaiting<queued_writer::wait_operation> queued_writer::flush() {
    return awaiting<wait_operation>(*this, wait_operation::condition::empty, std::size_t{0});
}

task<result<>> queued_writer::flush_task(queued_writer& writer) {
    co_return co_await writer.flush();
}

task<result<>> queued_writer::flush_within(duration limit) {
    return with_timeout(limit, flush_task(*this));
}

task<result<>> queued_writer::graceful_shutdown(duration limit) {
    closing_ = true;
    result<> done = co_await flush_within(limit);
    if (done) done = stream_->shutdown_write();
    if (!done) abort();
    co_return done;
}

bool queued_writer::wait_operation::met() const noexcept {
    switch (until_) {
        case condition::room: return writer_->fits(size_);
        case condition::below_low_watermark: return !writer_->high_;
        case condition::empty: return writer_->queued_bytes() == 0;
    }
    return true;
}

bool queued_writer::wait_operation::start() {
    if (writer_->error_) {
        error_ = writer_->error_;
        return true;
    }
    if (until_ == condition::room) {
        if (writer_->closing_) error_ = errc::closed;
        if (size_ > writer_->options_.max_queued_bytes) error_ = errc::limit_reached;
        if (error_) return true;
    }
    // Requests for room queue behind earlier ones.
    const bool others_first =
        until_ == condition::room && writer_->backlog_ && !writer_->backlog_->waiters.empty();
    if (!others_first && met()) return true;
    std::unique_ptr<backlog> made;
    try {
        made = writer_->new_backlog();
    } catch (const std::bad_alloc&) {
        writer_->fail_with(errno_code(ENOMEM));
        error_ = writer_->error_;
        return true;
    }
    (made ? *made : *writer_->backlog_).waiters.push_back(*this);
    if (writer_->start_drain(std::move(made))) return false;
    error_ = writer_->error_;
    return true;
}

void queued_writer::wait_operation::on_cancel() noexcept {
    static_cast<list_link<queued_writer>&>(*this).unlink();
    error_ = errc::cancelled;
    complete_later();
    // Waits that fit and only queued behind this one must not wait until the peer has read more. A
    // wait under the same source may thus be granted room just before it would be cancelled.
    if (until_ == condition::room) writer_->wake_waiters();
}

result<> queued_writer::wait_operation::take_result() noexcept {
    if (granted_) {
        writer_->granted_bytes_ -= size_;
        --writer_->granted_messages_;
    }
    if (error_) return fail(error_);
    return {};
}

}  // namespace eddy
