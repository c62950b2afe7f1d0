// Simulated streams: bytes in flight, backpressure, half close and resets between two ends.
// Resuming a coroutine is the last thing that a function does, since the coroutine may close the
// stream.
#include "io/sim/sim_stream.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace eddy {

sim_stream::sim_stream(sim_backend& world, const endpoint& local, const endpoint& peer)
    : world_(world), id_(world.add(*this)), local_(local), peer_address_(peer) {}

sim_stream::sim_stream(sim_backend& world, way bytes_go)
    : world_(world), id_(world.add(*this)), way_(bytes_go) {}

sim_stream::~sim_stream() { world_.remove(*this); }

void sim_stream::join(sim_stream& a, sim_stream& b) noexcept {
    a.peer_ = b.id_;
    b.peer_ = a.id_;
}

/// Puts a segment on its way to the other end, behind those sent before.
void sim_stream::send(segment sent) {
    sim_stream* to = world_.find_stream(peer_);
    if (!to) return;
    to->last_arrival_ = std::max(to->last_arrival_, world_.now() + world_.delay());
    to->travelling_bytes_ += sent.bytes.size();
    to->travelling_.push_back(std::move(sent));
    world_.schedule(to->last_arrival_, [&world = world_, id = peer_] {
        if (sim_stream* end = world.find_stream(id)) end->arrive();
    });
}

void sim_stream::arrive() {
    const segment first = std::move(travelling_.front());
    travelling_.pop_front();
    travelling_bytes_ -= first.bytes.size();
    switch (first.kind) {
        case event::data:
            if (!broken_) arrived_.append(const_bytes(first.bytes));
            break;
        case event::end: read_ended_ = true; break;
        case event::reset:
            broken_ = true;
            if (writer_) {
                writer_->set_error(write_error());
                std::exchange(writer_, nullptr)->complete_later();
            }
            break;
    }
    if (reader_ && try_complete(*reader_, false)) std::exchange(reader_, nullptr)->complete_now();
}

bool sim_stream::start(read_operation& op) {
    EDDY_PRECONDITION(!reader_, "a second read of one stream: await the first before the next");
    if (way_ == way::to_peer) {
        op.set_error(errno_code(EBADF));
        return true;
    }
    meet_fault();
    if (try_complete(op, false)) return true;
    reader_ = &op;
    return false;
}

bool sim_stream::try_complete(read_operation& op, bool after_spell) {
    if (arrived_.empty()) {
        if (broken_) {
            reset_reported_ = true;
            op.set_error(read_error());
        } else if (read_ended_) {
            op.set_error(errc::end_of_stream);
        } else {
            return false;
        }
        return true;
    }

    const bool lent = op.into().empty();
    if (lent && !world_.may_lend()) {
        op.set_error(errc::no_buffers);
        return true;
    }
    if (lent) {
        if (const time_point when = world_.buffers_at(after_spell); when > world_.now()) {
            world_.schedule(when, [&world = world_, id = id_] {
                if (sim_stream* end = world.find_stream(id)) end->retry_read();
            });
            return false;
        }
    }
    std::size_t size = std::min(arrived_.size(), lent ? world_.buffer_size() : op.into().size());
    if (size > 1 && world_.random().chance(world_.options().short_read))
        size = 1 + world_.random().below(size - 1);
    const const_bytes taken = arrived_.bytes().first(size);
    if (lent) {
        op.set_received(world_.lend(taken));
    } else {
        std::memcpy(op.into().data(), taken.data(), size);
        op.set_size(size);
    }
    arrived_.consume(size);
    arrived_.release_if_empty();

    // The notification of room travels, too.
    if (const sim_stream* other = world_.find_stream(peer_); other && other->writer_)
        world_.schedule(world_.now() + world_.delay(), [&world = world_, id = peer_] {
            if (sim_stream* end = world.find_stream(id)) end->room_appeared();
        });
    return true;
}

/// Result of a read on a broken connection. A pipe whose writer has gone is only at its end.
std::error_code sim_stream::read_error() const noexcept {
    return is_pipe() ? make_error_code(errc::end_of_stream) : errno_code(ECONNRESET);
}

void sim_stream::retry_read() {
    if (reader_ && try_complete(*reader_, true)) std::exchange(reader_, nullptr)->complete_now();
}

void sim_stream::cancel(read_operation& op) noexcept {
    EDDY_ASSERT(reader_ == &op);
    reader_ = nullptr;
    op.set_error(errc::cancelled);
    op.complete_later();
}

std::size_t sim_stream::room() const noexcept {
    const sim_stream* other = world_.find_stream(peer_);
    if (!other) return SIZE_MAX;
    const std::size_t used = other->travelling_bytes_ + other->arrived_.size();
    return world_.options().socket_buffer - std::min(used, world_.options().socket_buffer);
}

/// The error that a write must end with, or none. The first to observe a reset gets ECONNRESET; a
/// pipe's writer knows at once that its reader has gone.
std::error_code sim_stream::write_error() noexcept {
    if (way_ == way::from_peer) return errno_code(EBADF);
    if (is_pipe() && (broken_ || !world_.find_stream(peer_))) return errno_code(EPIPE);
    if (write_ended_) return errno_code(EPIPE);
    if (!broken_) return {};
    return errno_code(std::exchange(reset_reported_, true) ? EPIPE : ECONNRESET);
}

/// Sends the first bytes, as many as there is room for.
std::size_t sim_stream::push(const_bytes bytes) {
    if (!world_.find_stream(peer_)) {
        // The notification that a pipe's reader has gone is on its way to the writer.
        if (is_pipe()) return 0;
        // The other end is gone: it answers the first bytes with a reset, and all are lost.
        if (!std::exchange(reset_answered_, true)) {
            travelling_.push_back({event::reset, {}});
            last_arrival_ = std::max(last_arrival_, world_.now() + world_.delay());
            world_.schedule(last_arrival_, [&world = world_, id = id_] {
                if (sim_stream* end = world.find_stream(id)) end->arrive();
            });
        }
        return bytes.size();
    }
    const const_bytes sent = bytes.first(std::min(bytes.size(), room()));
    if (!sent.empty()) send({event::data, std::vector(sent.begin(), sent.end())});
    return sent.size();
}

/// True when the whole operation has been sent.
bool sim_stream::push(write_operation& op) {
    for (;;) {
        const const_bytes piece = op.piece(0);
        const std::size_t sent = push(piece);
        if (op.advance(sent)) return true;
        if (sent < piece.size()) return false;
    }
}

bool sim_stream::start(write_operation& op) {
    EDDY_PRECONDITION(
        !writer_,
        "a second write to one stream: await the first before the next, or use queued_writer");
    meet_fault();
    if (const std::error_code error = write_error()) {
        op.set_error(error);
        return true;
    }
    if (push(op)) return true;
    writer_ = &op;
    return false;
}

result<std::size_t> sim_stream::try_write(const_bytes bytes) noexcept {
    if (writer_) return 0;
    meet_fault();
    if (const std::error_code error = write_error()) return fail(error);
    return push(bytes);
}

void sim_stream::room_appeared() {
    if (writer_ && push(*writer_)) std::exchange(writer_, nullptr)->complete_now();
}

void sim_stream::cancel(write_operation& op) noexcept {
    EDDY_ASSERT(writer_ == &op);
    writer_ = nullptr;
    op.set_error(errc::cancelled);
    op.complete_later();
}

result<> sim_stream::shutdown_write() noexcept {
    if (is_pipe()) return fail(errc::unsupported);
    if (broken_) return fail_errno(ENOTCONN);
    if (std::exchange(write_ended_, true)) return {};
    if (writer_) {
        writer_->set_error(errno_code(EPIPE));
        std::exchange(writer_, nullptr)->complete_later();
    }
    send({event::end, {}});
    return {};
}

/// An injected reset: both ends lose the connection, this one at once. The content of a pipe is
/// read all the same.
void sim_stream::meet_fault() {
    if (broken_ || !world_.random().chance(world_.options().reset)) return;
    send({event::reset, {}});
    broken_ = true;
    if (!is_pipe()) arrived_.clear();
    if (reader_) {
        reset_reported_ = true;
        reader_->set_error(read_error());
        std::exchange(reader_, nullptr)->complete_later();
    }
    if (writer_) {
        writer_->set_error(write_error());
        std::exchange(writer_, nullptr)->complete_later();
    }
}

void sim_stream::abort() noexcept {
    // As in the kernel: pipes and Unix sockets have no reset.
    if (!is_pipe() && !local_.is_unix()) reset_peer();
    close();
}

void sim_stream::reset_peer() noexcept {
    if (!broken_) send({event::reset, {}});
    // Later notifications change nothing for a peer.
    broken_ = true;
}

void sim_stream::close() noexcept {
    if (reader_) cancel(*reader_);
    if (writer_) cancel(*writer_);
    // As in TCP, closing with unread data resets the connection. A pipe's reader has nothing to end
    // but the writes.
    if (!broken_) {
        if (way_ == way::from_peer || !arrived_.empty() || travelling_bytes_ > 0)
            send({event::reset, {}});
        else if (!write_ended_)
            send({event::end, {}});
    }
    delete this;
}

}  // namespace eddy
