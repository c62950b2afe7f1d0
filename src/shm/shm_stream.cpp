// Transfer between the operations of a stream and its rings, and the wake-ups of both sides.
//
// Resuming a coroutine is the last thing that a function does, since the coroutine may close the
// stream and with it free this object. That happens only in complete_waiters(), which the loop
// calls by on_bell() and on_pause(); everything else stores results.
#include "shm/shm_stream.hpp"

#include <eddy/base/assert.hpp>

#include "io/posix/sockets.hpp"
#include "shm/futex.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace eddy::shm {
namespace {

constexpr std::uint32_t kept_leases = 32;
constexpr std::size_t max_leases = 16 * 1024;

/// Leased bytes are copies: a peer may change the bytes of its ring at any time, also while they
/// are parsed.
buffer_pool& lease_buffers() noexcept {
    thread_local buffer_pool pool(kept_leases, shm_stream::lease_size, max_leases);
    return pool;
}

/// Sends one byte. A full socket already signals; a closed one is reported by reading.
void signal(stream& bell) noexcept { static_cast<void>(bell.try_write(as_bytes("!"))); }

}  // namespace

shm_stream::shm_stream(stream bell, std::unique_ptr<channel> shared)
    : bell_(std::move(bell)),
      shared_(std::move(shared)),
      bell_call_([](void* self) { static_cast<shm_stream*>(self)->on_bell(); }, this),
      pause_call_([](void* self) { static_cast<shm_stream*>(self)->on_pause(); }, this) {}

// ---- the bell

/// Reads the socket until the peer ends: always, so that its death is noticed at once.
void shm_stream::watch() {
    while (!bell_end_) {
        is_watching_ = true;
        bell_op_.emplace(bell_.driver());
        if (bell_call_.begin(*bell_op_)) return;
        if (!take_wakeups()) return;
    }
}

/// False once no more wake-ups will come.
bool shm_stream::take_wakeups() {
    is_watching_ = false;
    // The bytes have no meaning, and the buffer goes back at once.
    const result<lease> received = bell_op_->take_result();
    bell_op_.reset();
    if (received) return true;
    bell_end_ = received.error();
    return false;
}

void shm_stream::on_bell() {
    take_wakeups();
    if (is_closing_) {
        if (!is_pausing_) delete this;
        return;
    }
    watch();
    complete_waiters();
}

/// Wakes a peer that waits for bytes.
void shm_stream::wake_reader() noexcept {
    if (shared_->peer_doorbell() == EDDY_SHM_DOORBELL_FUTEX)
        futex_wake(shared_->raise_reader_bell());
    else
        signal(bell_);
}

/// Wakes a peer that waits for room.
void shm_stream::wake_writer() noexcept {
    if (shared_->peer_doorbell() == EDDY_SHM_DOORBELL_FUTEX)
        futex_wake(shared_->raise_writer_bell());
    else
        signal(bell_);
}

/// Resumes in the loop's next turn, after other work.
void shm_stream::pause() {
    if (std::exchange(is_pausing_, true)) return;
    pause_op_.emplace();
    static_cast<void>(pause_call_.begin(*pause_op_));
}

void shm_stream::on_pause() {
    is_pausing_ = false;
    pause_op_.reset();
    if (is_closing_) {
        if (!is_watching_) delete this;
        return;
    }
    complete_waiters();
}

/// Continues the waiting operations; the last coroutine is resumed here.
void shm_stream::complete_waiters() {
    operation* next = nullptr;
    if (writer_ && wait_for_room(*writer_)) next = std::exchange(writer_, nullptr);
    if (reader_ && wait_for_bytes(*reader_)) {
        if (next) next->complete_later();
        next = std::exchange(reader_, nullptr);
    }
    if (next) next->complete_now();
}

// ---- reading

bool shm_stream::start(read_operation& op) {
    EDDY_PRECONDITION(!reader_, "a second read of one stream: await the first before the next");
    if (op.had_its_share()) {
        pause();
        reader_ = &op;
        return false;
    }
    if (receive(op) || wait_for_bytes(op)) return true;
    reader_ = &op;
    return false;
}

/// True when `op` has bytes or an error; else the peer wakes this side when it has sent some.
bool shm_stream::wait_for_bytes(read_operation& op) {
    if (receive(op)) {
        shared_->disarm_reader();
        return true;
    }
    if (shared_->arm_reader()) wake_writer();
    // Bytes that came before the peer could notice the flag.
    if (!receive(op)) return false;
    shared_->disarm_reader();
    return true;
}

/// True when `op` has bytes or an error.
bool shm_stream::receive(read_operation& op) {
    const bool lends = op.into().empty();
    const auto found = shared_->bytes();
    if (!found) {
        op.set_error(found.error());
        return true;
    }
    if (found->empty()) return find_end(op);
    std::byte* const to = lends ? lease_buffers().take() : op.into().data();
    if (!to) {
        op.set_error(lease_buffers().refusal());
        return true;
    }
    const std::size_t size = std::min(found->size(), lends ? lease_size : op.into().size());
    std::memcpy(to, found->data(), size);
    if (shared_->consume(size)) wake_writer();
    if (lends) op.set_received(lease_buffers().lend(to, size));
    op.set_size(size);
    return true;
}

/// True when no bytes will follow, which `op` gets as its error.
bool shm_stream::find_end(read_operation& op) noexcept {
    const auto ended = shared_->is_at_end();
    if (!ended) {
        op.set_error(ended.error());
        return true;
    }
    if (*ended) {
        op.set_error(errc::end_of_stream);
        return true;
    }
    if (!bell_end_) return false;
    // It died, or closed the socket alone: all its published bytes have been read by now.
    op.set_error(bell_end_ == errc::end_of_stream ? errno_code(ECONNRESET) : bell_end_);
    return true;
}

void shm_stream::cancel(read_operation& op) noexcept {
    EDDY_ASSERT(reader_ == &op);
    shared_->disarm_reader();
    reader_ = nullptr;
    op.set_error(errc::cancelled);
    op.complete_later();
}

result<const_bytes> shm_stream::peek() noexcept {
    EDDY_PRECONDITION(!reader_, "a second read of one stream: await the first before the next");
    const auto found = shared_->all_bytes();
    if (!found || !found->empty()) return found;
    const auto ended = shared_->is_at_end();
    if (!ended) return fail(ended.error());
    if (*ended) return fail(errc::end_of_stream);
    if (bell_end_) return fail_errno(ECONNRESET);
    if (shared_->settle()) wake_writer();
    return const_bytes();
}

void shm_stream::consume(std::size_t size) noexcept {
    if (shared_->consume(size)) wake_writer();
}

// ---- writing

std::error_code shm_stream::write_error() const noexcept {
    if (bell_end_ || shared_->is_finished()) return errno_code(EPIPE);
    return {};
}

bool shm_stream::start(write_operation& op) {
    EDDY_PRECONDITION(
        !writer_,
        "a second write to one stream: await the first before the next, or use queued_writer");
    if (send(op) || wait_for_room(op)) return true;
    writer_ = &op;
    return false;
}

/// True when `op` is finished; else the peer wakes this side when it has read some.
bool shm_stream::wait_for_room(write_operation& op) {
    if (send(op)) {
        shared_->disarm_writer();
        return true;
    }
    if (is_pausing_) return false;
    shared_->arm_writer();
    if (!send(op)) return false;
    shared_->disarm_writer();
    return true;
}

/// Copies as much as there is room for. True when `op` is finished, well or not.
bool shm_stream::send(write_operation& op) {
    std::size_t left = most_bytes_a_turn;
    if (const std::error_code error = write_error()) {
        op.set_error(error);
        return true;
    }
    bool is_done = op.advance(0);  // past pieces without bytes
    while (!is_done) {
        if (left == 0) {
            pause();
            return false;
        }
        const const_bytes piece = op.piece(0);
        bool wakes = false;
        const auto sent = shared_->write(piece.first(std::min(piece.size(), left)), wakes);
        if (wakes) wake_reader();
        if (!sent) {
            op.set_error(sent.error());
            return true;
        }
        if (*sent == 0) return false;
        left -= *sent;
        is_done = op.advance(*sent);
    }
    return true;
}

result<std::size_t> shm_stream::try_write(const_bytes bytes) noexcept {
    if (const std::error_code error = write_error()) return fail(error);
    if (writer_ || bytes.empty()) return 0;
    bool wakes = false;
    const auto sent = shared_->write(bytes, wakes);
    if (wakes) wake_reader();
    return sent;
}

void shm_stream::cancel(write_operation& op) noexcept {
    EDDY_ASSERT(writer_ == &op);
    shared_->disarm_writer();
    writer_ = nullptr;
    is_cut_ = true;
    op.set_error(errc::cancelled);
    op.complete_later();
}

result<> shm_stream::shutdown_write() noexcept {
    if (shared_->is_finished()) return {};
    if (writer_) {
        write_operation& op = *writer_;
        cancel(op);
        op.set_error(errno_code(EPIPE));
    }
    if (shared_->finish()) wake_reader();
    return {};
}

// ---- the end

/// The written bytes stay in memory that the peer has mapped.
void shm_stream::close() noexcept {
    is_closing_ = true;
    if (reader_) cancel(*reader_);
    if (writer_) cancel(*writer_);
    // Without a published end the peer takes the socket's end for a reset.
    if (!is_cut_ && !shared_->is_finished() && shared_->finish()) wake_reader();
    bell_.close();
    const bool no_bell = ended_unused(is_watching_, bell_op_ ? &*bell_op_ : nullptr);
    const bool no_pause = ended_unused(is_pausing_, pause_op_ ? &*pause_op_ : nullptr);
    if (no_bell && no_pause) delete this;
}

void shm_stream::abort() noexcept {
    is_cut_ = true;
    close();
}

}  // namespace eddy::shm
