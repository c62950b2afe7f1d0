// Transfer of bytes between the users of a TLS stream, its engine and the stream below.
//
// Resuming a coroutine is the last thing that a function does, since the coroutine may close the
// stream and with it free this object. That happens only in on_input() and on_output(), which the
// loop calls; everything else stores results.
#include "tls/tls_stream.hpp"

#include "tls/buffers.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace eddy::tls {

bool handshake_operation::start() { return stream_->start(*this); }
void handshake_operation::on_cancel() noexcept { stream_->cancel(*this); }

tls_stream::tls_stream(stream below, context as, std::string server_name)
    : below_(std::move(below)),
      engine_(std::move(as), std::move(server_name), below_),
      input_call_([](void* self) { static_cast<tls_stream*>(self)->on_input(); }, this),
      output_call_([](void* self) { static_cast<tls_stream*>(self)->on_output(); }, this) {}

tls_stream::~tls_stream() {
    if (sending_.capacity() > 0) give_back_ciphertext_buffer(std::move(sending_));
}

// ---- the handshake

void tls_stream::begin(duration timeout, handshakes* counted) {
    loop& here = loop::current();
    begun_ = here.now();
    here.arm(*this, here.after(timeout));
    counted_ = counted;
    if (counted_) counted_->join(*this);
    advance_handshake();
}

void tls_stream::leave_list() noexcept {
    if (counted_) std::exchange(counted_, nullptr)->leave(*this);
}

void tls_stream::fire() noexcept {
    end_handshake(errc::timed_out);
    complete_waiters(false);
}

void tls_stream::end_handshake(std::error_code error) noexcept {
    loop::current().disarm(*this);
    leave_list();
    shaking_ = false;
    secure_ = !error;
    if (error) {
        handshake_end_ = read_end_ = error;
        if (!write_end_) write_end_ = error;
    } else if (end_wanted_) {
        send_end();
    }
}

/// Runs the handshake as far as the input allows.
void tls_stream::advance_handshake() {
    while (shaking_) {
        const engine::status status = engine_.handshake();
        if (status == engine::status::done) end_handshake({});
        if (status == engine::status::failed) end_handshake(engine_.error());
        // Also after a failure: the peer gets the alert with the reason.
        flush();
        take_tickets();
        if (status != engine::status::want_input) return;
        if (engine_.output_error()) return end_handshake(engine_.output_error());
        if (!input_end_ && !get_input()) return;
        if (input_end_)
            return end_handshake(
                input_end_ == errc::end_of_stream ? make_error_code(errc::truncated) : input_end_);
    }
}

stream* tls_stream::refused_below() noexcept {
    const bool is_refused = handshake_end_ && handshake_end_ == engine_.error();
    return is_refused && !receiving_ && !flushing_ ? &below_ : nullptr;
}

bool tls_stream::start(handshake_operation& op) {
    EDDY_PRECONDITION(!shaker_, "a second handshake of one stream: await the first");
    if (!shaking_) {
        if (handshake_end_) op.set_error(handshake_end_);
        return true;
    }
    shaker_ = &op;
    return false;
}

// ---- the stream below

/// Reads more ciphertext. True when it came at once, or will not come.
bool tls_stream::get_input() {
    // on_output() continues once less is left.
    if (receiving_ || engine_.output_size() > max_unsent) return false;
    receiving_ = true;
    input_op_.emplace(below_.driver());
    if (input_call_.begin(*input_op_)) return false;
    take_input();
    return true;
}

void tls_stream::take_input() {
    receiving_ = false;
    result<lease> received = input_op_->take_result();
    input_op_.reset();
    if (received)
        engine_.feed(std::move(*received));
    else
        input_end_ = received.error();
}

/// Sends ciphertext that the engine could not send. True when none is left.
bool tls_stream::flush() {
    while (!flushing_) {
        if (engine_.output_error() && !write_end_) write_end_ = engine_.output_error();
        if (!engine_.has_output()) {
            if (end_sent_ && !std::exchange(below_shut_, true))
                static_cast<void>(below_.shutdown_write());
            return true;
        }
        sending_ = engine_.take_output();
        flushing_ = true;
        engine_.hold_output(true);
        output_op_.emplace(below_.driver(), sending_.bytes());
        if (output_call_.begin(*output_op_)) return false;
        take_flushed();
    }
    return false;
}

void tls_stream::take_flushed() {
    flushing_ = false;
    pause_op_.reset();
    engine_.hold_output(false);
    if (!output_op_) return;
    const result<> sent = output_op_->take_result();
    output_op_.reset();
    give_back_ciphertext_buffer(std::exchange(sending_, byte_buffer()));
    if (!sent && !write_end_) write_end_ = sent.error();
}

/// Lets other connections run before the writer continues.
void tls_stream::pause() {
    flushing_ = true;
    pause_op_.emplace();
    output_call_.begin(*pause_op_);
}

void tls_stream::on_input() {
    take_input();
    if (closing_) {
        if (!flushing_) delete this;
        return;
    }
    advance_handshake();
    take_tickets();
    complete_waiters(true);
}

void tls_stream::on_output() {
    take_flushed();
    if (closing_) {
        if (!receiving_) delete this;
        return;
    }
    flush();
    advance_handshake();
    take_tickets();
    complete_waiters(true);
}

/// Continues the waiting operations. `from_loop`: the loop called, so one coroutine may be resumed
/// here.
void tls_stream::complete_waiters(bool from_loop) {
    operation* next = nullptr;
    const auto complete = [&](operation& op) {
        if (next) next->complete_later();
        next = &op;
    };
    if (shaker_ && !shaking_) {
        if (handshake_end_) shaker_->set_error(handshake_end_);
        complete(*std::exchange(shaker_, nullptr));
    }
    if (writer_ && drain(*writer_)) complete(*std::exchange(writer_, nullptr));
    if (reader_ && fill(*reader_)) complete(*std::exchange(reader_, nullptr));
    if (!next) return;
    if (from_loop)
        next->complete_now();
    else
        next->complete_later();
}

// ---- reading

bool tls_stream::start(read_operation& op) {
    EDDY_PRECONDITION(!reader_, "a second read of one stream: await the first before the next");
    if (fill(op)) return true;
    reader_ = &op;
    return false;
}

/// True when `op` has bytes or an error.
bool tls_stream::fill(read_operation& op) {
    if (shaking_) return false;
    for (;;) {
        if (!read_end_ && engine_.has_input()) {
            const bool over = receive(op);
            flush();  // an alert, or the answer to a key update
            if (over) return true;
        }
        if (read_end_) {
            // The user closes after the peer's end, which must not cost the peer this side's end.
            if (read_end_ == errc::end_of_stream && end_sent_ && flushing_) return false;
            op.set_error(read_end_);
            return true;
        }
        if (engine_.has_input()) continue;
        if (input_end_) {
            // A cut connection must not look like one that the peer has finished.
            read_end_ =
                input_end_ == errc::end_of_stream ? make_error_code(errc::truncated) : input_end_;
            continue;
        }
        if (!get_input()) return false;
    }
}

/// A client that only writes has session tickets to receive all the same: closing a TCP socket with
/// bytes unread would reset the connection, and what was written last would be lost. So a client
/// requests input before its user does, and scans it.
void tls_stream::take_tickets() {
    while (secure_ && !engine_.is_server() && !reader_ && !read_end_ && !input_end_) {
        if (!engine_.has_input()) {
            if (!get_input()) return;
            continue;
        }
        const engine::status status = engine_.peek();
        if (status == engine::status::done) return;
        if (status == engine::status::failed) end_reading();
        flush();
    }
}

/// The engine has failed, or found the peer's end.
void tls_stream::end_reading() noexcept {
    read_end_ = engine_.error();
    engine_.drop_input();
    // After a fatal alert nothing more may be sent; after the peer's end it may.
    if (read_end_ != errc::end_of_stream && !write_end_) write_end_ = read_end_;
}

/// Decrypts received input, as far as there is room. True when `op` is finished.
bool tls_stream::receive(read_operation& op) {
    buffer_pool& buffers = plaintext_buffers();
    const bool lend = op.into().empty();
    std::byte* const bytes = lend ? buffers.take() : op.into().data();
    const std::size_t room = lend ? buffers.buffer_size() : op.into().size();
    if (!bytes) {
        op.set_error(buffers.refusal());
        return true;
    }
    std::size_t size = 0;
    engine::status status;
    do {
        std::size_t more = 0;
        status = engine_.read({bytes + size, room - size}, more);
        size += more;
    } while (status == engine::status::done && size < room && engine_.has_input());
    if (status == engine::status::failed) end_reading();
    if (size == 0) {
        if (lend) buffers.give_back(bytes, 0);
        return false;
    }
    if (lend) op.set_received(buffers.lend(bytes, size));
    op.set_size(size);
    return true;
}

void tls_stream::cancel(read_operation& op) noexcept {
    EDDY_ASSERT(reader_ == &op);
    // The read below continues: its result is kept for the next read.
    reader_ = nullptr;
    op.set_error(errc::cancelled);
    op.complete_later();
}

// ---- writing

bool tls_stream::start(write_operation& op) {
    EDDY_PRECONDITION(
        !writer_,
        "a second write to one stream: await the first before the next, or use queued_writer");
    if (drain(op)) return true;
    writer_ = &op;
    return false;
}

/// True when all of `op` has been taken by the stream below, or it failed.
bool tls_stream::drain(write_operation& op) {
    // A write after shutdown_write() need not wait for the handshake to be refused.
    if (shaking_ && !write_end_) return false;
    std::size_t budget = most_bytes_a_turn;
    for (;;) {
        if (write_end_) {
            op.set_error(write_end_);
            return true;
        }
        if (!flush()) return false;
        if (write_end_) continue;
        if (op.pieces_left() == 0) return true;
        if (owed_) {
            if (const result<> same = skip_owed(op.piece(0).front()); !same)
                write_end_ = same.error();
            else
                op.advance(1);
        } else if (budget == 0) {
            pause();
            return false;
        } else {
            encrypt_next(op, budget);
        }
    }
}

/// One record out of the next bytes of `op`. Small pieces share it.
void tls_stream::encrypt_next(write_operation& op, std::size_t& budget) {
    const std::size_t most = std::min(max_record, budget);
    const const_bytes first = op.piece(0);
    buffer_pool& buffers = plaintext_buffers();
    const bool is_single = first.size() >= most || op.pieces_left() == 1;
    std::byte* const bytes = is_single ? nullptr : buffers.take();
    if (!bytes) {
        const const_bytes chunk = first.first(std::min(first.size(), most));
        encrypt(chunk);
        budget -= chunk.size();
        op.advance(chunk.size());
        return;
    }
    std::size_t size = 0;
    for (std::size_t i = 0; i < op.pieces_left() && size < most; ++i) {
        const const_bytes piece = op.piece(i).first(std::min(op.piece(i).size(), most - size));
        if (!piece.empty()) std::memcpy(bytes + size, piece.data(), piece.size());
        size += piece.size();
    }
    encrypt({bytes, size});
    buffers.give_back(bytes, 0);
    budget -= size;
    op.advance(size);
}

void tls_stream::encrypt(const_bytes plain) {
    if (engine_.write(plain) == engine::status::failed && !write_end_) write_end_ = engine_.error();
}

result<std::size_t> tls_stream::try_write(const_bytes bytes) noexcept {
    if (write_end_) return fail(write_end_);
    if (shaking_ || writer_ || bytes.empty() || !flush()) return 0;
    if (write_end_) return fail(write_end_);
    std::size_t taken = 0;
    if (owed_) {
        if (const result<> same = skip_owed(bytes.front()); !same)
            return fail(write_end_ = same.error());
        taken = 1;
    } else if (bytes.size() == 1) {
        // It could not be kept back as below: after a return of 0 the caller may drop it.
        return 0;
    }
    const std::size_t most = std::min(bytes.size(), most_bytes_a_turn);
    while (taken < most && !engine_.has_output() && !write_end_) {
        const const_bytes chunk = bytes.subspan(taken).first(std::min(most - taken, max_record));
        encrypt(chunk);
        taken += chunk.size();
        if (engine_.output_error()) write_end_ = engine_.output_error();
    }
    if (write_end_) return fail(write_end_);
    // A caller whose bytes were all taken may close the stream, and lose bytes queued here. So one
    // byte is left to be written again, by a write that waits, which skips it.
    if (!flush()) owed_ = bytes[--taken];
    return taken;
}

/// Leaves out the byte that has been encrypted already, which must be the next one of the user's.
result<> tls_stream::skip_owed(std::byte first) noexcept {
    if (*std::exchange(owed_, std::nullopt) == first) return {};
    cut_ = true;
    return fail_errno(EINVAL);
}

void tls_stream::cancel(write_operation& op) noexcept {
    EDDY_ASSERT(writer_ == &op);
    writer_ = nullptr;
    cut_ = true;
    op.set_error(errc::cancelled);
    op.complete_later();
}

void tls_stream::cancel(handshake_operation& op) noexcept {
    EDDY_ASSERT(shaker_ == &op);
    shaker_ = nullptr;
    op.set_error(errc::cancelled);
    op.complete_later();
}

// ---- the end

void tls_stream::send_end() noexcept {
    engine_.finish();
    end_sent_ = true;
    write_end_ = errno_code(EPIPE);
    flush();
}

result<> tls_stream::shutdown_write() noexcept {
    if (std::exchange(end_wanted_, true)) return {};
    if (writer_) {
        cut_ = true;
        writer_->set_error(errno_code(EPIPE));
        std::exchange(writer_, nullptr)->complete_later();
    }
    if (shaking_) {
        write_end_ = errno_code(EPIPE);
        return {};
    }
    if (write_end_) return fail(write_end_);
    send_end();
    return {};
}

/// The end of the handle; with `resets` without close_notify, whatever was written.
void tls_stream::end(bool resets) noexcept {
    closing_ = true;
    loop::current().disarm(*this);
    leave_list();
    const auto cancel_wait = [](auto*& op) {
        if (!op) return;
        op->set_error(errc::cancelled);
        std::exchange(op, nullptr)->complete_later();
    };
    cut_ = cut_ || writer_ || owed_ || resets;
    cancel_wait(shaker_);
    cancel_wait(reader_);
    cancel_wait(writer_);
    if (secure_ && !write_end_ && !cut_ && !flushing_ && !engine_.has_output()) engine_.finish();
    if (resets)
        below_.abort();
    else
        below_.close();
    engine_.drop_input();
    const bool no_input = ended_unused(receiving_, input_op_ ? &*input_op_ : nullptr);
    operation* output = nullptr;
    if (output_op_) output = &*output_op_;
    if (pause_op_) output = &*pause_op_;
    const bool no_output = ended_unused(flushing_, output);
    if (no_input && no_output) delete this;
}

}  // namespace eddy::tls
