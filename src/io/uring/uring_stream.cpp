// Streams on io_uring: receiving, sending, closing. Resuming a coroutine is the last thing that a
// function does, since the coroutine may close the stream and with it free this object.
#include "io/uring/uring_stream.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace eddy {

uring_stream::~uring_stream() { io_backend_.driver_gone(); }

bool uring_stream::start(read_operation& op) {
    EDDY_PRECONDITION(!reader_, "a second read of one stream: await the first before the next");
    if (queued_ > 0) {
        deliver(op);
        return true;
    }
    if (read_end_ != 0) {
        op.set_error(read_error());
        return true;
    }
    if (receiving_ended_) {
        if (!receiving_) {
            op.set_error(errc::closed);
            return true;
        }
        // The last bytes may be on their way.
        reader_ = &op;
        return false;
    }
    const bool by_itself = by_readiness_ && maybe_readable_ && !receiving_;
    const bool has_turn = receives_in_a_row_ < most_receives_a_turn;
    if (by_itself && has_turn && receive(op)) return true;
    reader_ = &op;
    if (by_itself && !has_turn)
        pause_reading();
    else
        want_bytes();
    return false;
}

bool uring_stream::end_receiving() noexcept {
    receiving_ended_ = true;
    if (receiving_ && !stopping_) stop_receive();
    if (receiving_ || !reader_) return true;
    read_operation& op = *std::exchange(reader_, nullptr);
    op.set_error(errc::closed);
    op.complete_later();
    return true;
}

void uring_stream::want_bytes() {
    // A receive that is being stopped comes back here with its last completion.
    if (receiving_) return check_for_end();
    if (watching_) return;
    if (!by_readiness_ && io_backend_.receives().exhausted()) {
        bulk_score_ = most_bulk_score;
        go_by_readiness();
    }
    if (by_readiness_)
        watch();
    else
        arm_receive();
}

/// Chooses the way of receiving by the number of received bytes.
void uring_stream::weigh(std::size_t size) {
    receive_ring& ring = io_backend_.receives();
    if (size >= ring.buffer_size() / 2)
        bulk_score_ = std::min<std::uint16_t>(bulk_score_ + bulk_step, most_bulk_score);
    else if (bulk_score_ > 0)
        --bulk_score_;
    if (!by_readiness_ && bulk_score_ >= enough_bulk_score) {
        go_by_readiness();
        maybe_readable_ = true;
        if (receiving_ && !stopping_) stop_receive();
    } else if (by_readiness_ && bulk_score_ == 0 && !ring.exhausted()) {
        by_readiness_ = false;
        if (watching_) stop(*done<stream_request::watch>());
    }
}

void uring_stream::go_by_readiness() noexcept {
    by_readiness_ = true;
    // Other sockets than TCP's refuse.
    if (!reports_rest_) reports_rest_ = set_reports_rest(true);
}

/// TCP_INQ: each receive yields the number of bytes left. A short receive does not show that none
/// are left: it may also end at urgent data, with bytes behind it.
bool uring_stream::set_reports_rest(bool on) noexcept {
    const int value = on;
    return setsockopt(socket_.get(), IPPROTO_TCP, TCP_INQ, &value, sizeof(value)) == 0;
}

ssize_t uring_stream::receive_some(std::byte* into, std::size_t room) noexcept {
    iovec piece{into, room};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    if (reports_rest_) {
        message.msg_control = control;
        message.msg_controllen = sizeof(control);
    }
    ssize_t size;
    do {
        size = recvmsg(socket_.get(), &message, MSG_DONTWAIT);
    } while (size < 0 && errno == EINTR);
    if (size < 0 || message.msg_controllen == 0) return size;
    const cmsghdr* told = CMSG_FIRSTHDR(&message);
    if (told && told->cmsg_level == IPPROTO_TCP && told->cmsg_type == TCP_CM_INQ) {
        int rest = 0;
        std::memcpy(&rest, CMSG_DATA(told), sizeof(rest));
        if (rest == 0 && !hung_up_) maybe_readable_ = false;
    }
    return size;
}

void uring_stream::arm_receive() {
    io_uring_sqe& entry = io_backend_.submission();
    io_uring_prep_recv_multishot(&entry, socket_.get(), nullptr, 0, 0);
    io_uring_sqe_set_data(&entry, done<stream_request::receive>());
    entry.flags |= IOSQE_BUFFER_SELECT;
    entry.buf_group = io_backend_.receives().group();
    receiving_ = true;
    end_may_hide_ = false;
    ++in_flight_;
}

/// A multishot receive can miss an event that came together with its last bytes: a reset on Linux
/// 6.18, on some others an end of a Unix stream (https://github.com/axboe/liburing/issues/1549).
/// The peer then sends nothing more, so no other event would wake it. A new receive finds the end,
/// and every byte before it.
void uring_stream::check_for_end() noexcept {
    if (!end_may_hide_ || stopping_) return;
    if (!std::exchange(knows_protocol_, true)) {
        // Only a reset can be missed on TCP, and after a reset sends fail. So a peer that gets
        // replies costs only this check.
        int protocol = 0;
        socklen_t size = sizeof(protocol);
        sending_finds_ends_ =
            getsockopt(socket_.get(), SOL_SOCKET, SO_PROTOCOL, &protocol, &size) == 0 &&
            protocol == IPPROTO_TCP;
    }
    // A relay reads again before the reply has come.
    if (sending_finds_ends_ && (watched_at_ != end_watch::nowhere || io_backend_.ends().add(*this)))
        return;
    look_for_end();
}

void uring_stream::look_for_end() noexcept {
    if (!reader_ || !receiving_ || stopping_ || !std::exchange(end_may_hide_, false)) return;
    std::byte next;
    const ssize_t size = recv(socket_.get(), &next, 1, MSG_PEEK | MSG_DONTWAIT);
    if (size > 0 || (size < 0 && errno == EAGAIN)) return;
    if (size < 0) note_failure(errno);  // which it reports once
    stop_receive();
}

void uring_stream::stop_receive() noexcept {
    stopping_ = true;
    stop(*done<stream_request::receive>());
}

/// Reports only changes, like an edge-triggered epoll, until it is stopped.
void uring_stream::watch() {
    io_uring_sqe& entry = io_backend_.submission();
    io_uring_prep_poll_multishot(&entry, socket_.get(), POLLIN | POLLRDHUP);
    io_uring_sqe_set_data(&entry, done<stream_request::watch>());
    watching_ = true;
    ++in_flight_;
}

void uring_stream::stop(completion& request) noexcept {
    io_backend_.cancel_request(request, done<stream_request::cancel>());
    ++in_flight_;
}

void uring_stream::enqueue(std::uint16_t id, std::uint32_t size) noexcept {
    receive_ring& ring = io_backend_.receives();
    ring.at(id) = {size, receive_ring::none};
    if (queued_++ == 0)
        first_ = id;
    else
        ring.at(last_).next = id;
    last_ = id;
}

void uring_stream::deliver(read_operation& op) noexcept {
    receive_ring& ring = io_backend_.receives();
    const std::uint16_t id = first_;
    const receive_ring::slot front = ring.at(id);
    std::byte* bytes = ring.data(id) + front_offset_;
    const std::uint32_t left = front.size - front_offset_;
    lease whole(ring, bytes, left, id);
    const mutable_bytes into = op.into();
    if (into.empty()) {
        op.set_received(std::move(whole));
    } else {
        const std::size_t size = std::min<std::size_t>(into.size(), left);
        std::memcpy(into.data(), bytes, size);
        op.set_size(size);
        if (size < left) {
            front_offset_ += static_cast<std::uint32_t>(size);
            whole.release();
            return;
        }
    }
    front_offset_ = 0;
    first_ = front.next;
    --queued_;
}

void uring_stream::drop_queue() noexcept {
    receive_ring& ring = io_backend_.receives();
    for (; queued_ > 0; --queued_) {
        const std::uint16_t id = first_;
        first_ = ring.at(id).next;
        ring.give_back(nullptr, id);
    }
}

void uring_stream::on_received(int result, unsigned flags) {
    if (!(flags & IORING_CQE_F_MORE)) {
        receiving_ = false;
        stopping_ = false;
        request_done();
    }
    if (flags & IORING_CQE_F_BUFFER) {
        const auto id = static_cast<std::uint16_t>(flags >> IORING_CQE_BUFFER_SHIFT);
        io_backend_.receives().taken();
        if (closing_ || result <= 0) {
            io_backend_.receives().give_back(nullptr, id);
        } else {
            end_may_hide_ = !(flags & IORING_CQE_F_SOCK_NONEMPTY);
            enqueue(id, static_cast<std::uint32_t>(result));
            weigh(static_cast<std::size_t>(result));
        }
    }
    if (result == -ENOBUFS) io_backend_.receives().ran_out();
    if (closing_) return free_if_done();

    if (result == 0)
        end_reading(end_of_stream);
    else if (result < 0 && result != -ENOBUFS && result != -ECANCELED && result != -EINTR &&
             result != -EAGAIN)
        end_reading(-result);
    if (!reader_) {
        if (queued_ >= most_queued_buffers && receiving_ && !stopping_) stop_receive();
        return;
    }
    // start() finds arrived bytes, or requests more: the receive may have ended because the buffers
    // ran out, or because it was stopped before a read began.
    read_operation& op = *std::exchange(reader_, nullptr);
    if (start(op)) op.complete_now();
}

/// Also called at a pause's end, which is the only result of 0: a poll reports some event.
void uring_stream::on_readable(int result, unsigned flags) {
    if (!(flags & IORING_CQE_F_MORE)) {
        if (result == 0)
            pausing_ = false;
        else
            watching_ = false;
        request_done();
    }
    if (closing_) return free_if_done();
    maybe_readable_ = true;
    receives_in_a_row_ = 0;
    // The watch reports a reset once, perhaps while bytes are left before it.
    if (result > 0 && (result & (POLLERR | POLLHUP | POLLRDHUP))) hung_up_ = true;
    if (result < 0 && result != -ECANCELED) end_reading(-result);
    if (!reader_) return;
    read_operation& op = *std::exchange(reader_, nullptr);
    if (start(op)) op.complete_now();
}

/// True when `op` has bytes or an error.
bool uring_stream::receive(read_operation& op) {
    receive_ring& ring = io_backend_.receives();
    buffer_pool& spares = io_backend_.spares();
    const bool lend = op.into().empty();
    std::byte* bytes = op.into().data();
    std::size_t room = op.into().size();
    std::uint16_t id = receive_ring::none;
    buffer_pool& large_ones = io_backend_.large_receives();
    std::byte* const large =
        lend && fills_.wants_large() && large_ones.has_spare() ? large_ones.take() : nullptr;
    if (large) {
        bytes = large;
        room = large_ones.buffer_size();
    } else if (lend) {
        // Without bytes nothing but this call holds a buffer, so a thousand connections that find
        // none in the ring still need only one spare.
        id = ring.take();
        bytes = id != receive_ring::none ? ring.data(id) : spares.take();
        room = ring.buffer_size();
    }
    if (!bytes) {
        if (!ring.exhausted()) {
            // Buffers that are back in the ring are the kernel's to fill.
            by_readiness_ = false;
            if (watching_) stop(*done<stream_request::watch>());
            return false;
        }
        op.set_error(spares.refusal());
        return true;
    }
    const ssize_t size = receive_some(bytes, room);
    const int error = size < 0 ? errno : 0;
    const std::size_t received = size > 0 ? static_cast<std::size_t>(size) : 0;
    lease lent;
    if (large)
        lent = large_ones.lend(bytes, received);
    else if (lend && id != receive_ring::none)
        lent = lease(ring, bytes, static_cast<std::uint32_t>(received), id);
    else if (lend)
        lent = spares.lend(bytes, received);
    if (error == EAGAIN) {
        maybe_readable_ = false;
        return false;
    }
    if (size == 0 && sending_) {
        // The kernel reports an error once. A completed send may have got it, and this looks like
        // an orderly end until its result is seen.
        end_unresolved_ = true;
        return false;
    }
    if (size <= 0) {
        end_reading(size == 0 ? end_of_stream : error);
        op.set_error(read_error());
        return true;
    }
    op.set_size(received);
    if (lend) {
        fills_.note(received, ring.buffer_size());
        op.set_received(std::move(lent));
    }
    // A full large buffer is a turn's share.
    receives_in_a_row_ = large && received == room
                             ? most_receives_a_turn
                             : static_cast<std::uint16_t>(receives_in_a_row_ + 1);
    weigh(received);
    return true;
}

void uring_stream::cancel(read_operation& op) noexcept {
    EDDY_ASSERT(reader_ == &op);
    // The receive stays armed: its bytes are queued for the next read.
    reader_ = nullptr;
    op.set_error(errc::cancelled);
    op.complete_later();
}

/// Reading has ended, and the cause is known: an error or an orderly end.
void uring_stream::resolve_end() noexcept {
    end_reading(end_of_stream);
    if (!reader_) return;
    read_operation& op = *std::exchange(reader_, nullptr);
    op.set_error(read_error());
    op.complete_later();
}

/// Keeps an error that reading no longer reports. The first one: later ones follow from it.
void uring_stream::note_failure(int error) noexcept {
    // EPIPE also follows shutdown_write(), which says nothing about reading.
    if (error != EPIPE && failure_ == 0) failure_ = error;
}

bool uring_stream::start(write_operation& op) {
    EDDY_PRECONDITION(
        !writer_,
        "a second write to one stream: await the first before the next, or use queued_writer");
    if (send(op)) return true;
    writer_ = &op;
    write_over_ = false;
    write_cancelled_ = false;
    return false;
}

/// Sends as much as possible. True when `op` is finished, well or not; otherwise an event of its
/// socket follows.
bool uring_stream::send(write_operation& op) {
    if (!zero_copy_refused_ && op.piece(0).size() >= io_backend_.zero_copy_threshold()) {
        queue_zero_copy(op.piece(0));
        return false;
    }
    const int error = send_now(socket_.get(), op);
    if (error == 0) {
        note_sent();
        return true;
    }
    if (error == EAGAIN) {
        wait_writable();
        return false;
    }
    if (error == EINPROGRESS) {
        pause_writing();
        return false;
    }
    note_failure(error);
    op.set_error(errno_code(error));
    return true;
}

result<std::size_t> uring_stream::try_write(const_bytes bytes) noexcept {
    if (writer_ || bytes.empty()) return 0;
    const ssize_t sent =
        ::send(socket_.get(), bytes.data(), std::min(bytes.size(), most_bytes_a_turn),
               MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent >= 0) {
        note_sent();
        return static_cast<std::size_t>(sent);
    }
    if (errno == EAGAIN || errno == EINTR) return 0;
    note_failure(errno);
    return fail_errno();
}

/// sendfile(2) has no flag for a call that does not wait, so the socket becomes non-blocking for
/// its duration. The ring reads that flag when a request is submitted, which nothing does
/// meanwhile, except for the kernel's thread of SQPOLL.
result<std::size_t> uring_stream::try_send_file(const_bytes head, int file, std::uint64_t offset,
                                                std::size_t size) noexcept {
    if (io_backend_.has_submitting_thread()) return fail(errc::unsupported);
    if (writer_) return 0;
    int on = 1;
    if (::ioctl(socket_.get(), FIONBIO, &on) < 0) return fail(errc::unsupported);
    const auto sent = send_file_now(socket_.get(), head, file, offset, size);
    on = 0;
    EDDY_ASSERT(::ioctl(socket_.get(), FIONBIO, &on) == 0);
    if (sent) {
        note_sent();
        return sent;
    }
    if (sent.error() == std::errc::resource_unavailable_try_again) return 0;
    if (!concerns_file(sent.error())) note_failure(sent.error().value());
    return sent;
}

/// Arms a poll that stays for the rest of the connection and reports only changes, like an
/// edge-triggered epoll does. A send request would not do: once the peer has finished sending, the
/// kernel counts its poll as ready all the time, tries a hundred times in a row, and then blocks a
/// thread of its own for each writer that waits. A one-shot poll would turn without end.
void uring_stream::wait_writable() {
    if (polling_writable_) return;
    io_uring_sqe& entry = io_backend_.submission();
    io_uring_prep_poll_multishot(&entry, socket_.get(), POLLOUT);
    io_uring_sqe_set_data(&entry, done<stream_request::write_watch>());
    polling_writable_ = true;
    ++in_flight_;
}

void uring_stream::on_writable(int result, unsigned flags) {
    if (!(flags & IORING_CQE_F_MORE)) {
        polling_writable_ = false;
        request_done();
        if (closing_) return free_if_done();
    }
    if (!writer_ || sending_ || write_over_) return;
    bool over = true;
    if (result < 0 && result != -ECANCELED)
        writer_->set_error(errno_code(-result));
    else
        over = send(*writer_);
    if (over) end_write();
}

/// One zero-copy send, which never waits.
void uring_stream::queue_zero_copy(const_bytes piece) {
    io_uring_sqe& entry = io_backend_.submission();
    io_uring_prep_send_zc(&entry, socket_.get(), piece.data(),
                          std::min(piece.size(), most_bytes_a_turn), MSG_NOSIGNAL | MSG_DONTWAIT,
                          0);
    io_uring_sqe_set_data(&entry, done<stream_request::send>());
    sending_ = true;
    ++in_flight_;
}

/// Resumes in the next turn: a request that does nothing ends like a send of no bytes.
void uring_stream::pause_writing() {
    queue_pause(*done<stream_request::send>());
    sending_ = true;
}

/// The same for receiving.
void uring_stream::pause_reading() {
    if (pausing_) return;
    queue_pause(*done<stream_request::watch>());
    pausing_ = true;
}

void uring_stream::queue_pause(completion& done) {
    io_uring_sqe& entry = io_backend_.submission();
    io_uring_prep_nop(&entry);
    io_uring_sqe_set_data(&entry, &done);
    ++in_flight_;
}

void uring_stream::on_sent(int result, unsigned flags) {
    // A zero-copy send completes twice: with its result, then when the kernel no longer needs the
    // bytes. The next send need not wait for that, but the writer may have its bytes back only
    // then.
    if (flags & IORING_CQE_F_NOTIF) {
        --notices_;
        request_done();
        if (write_over_ && notices_ == 0) finish_write();
        return;
    }
    sending_ = false;
    if (flags & IORING_CQE_F_MORE)
        ++notices_;
    else
        request_done();
    const bool over = take_send_result(result);
    if (std::exchange(end_unresolved_, false)) resolve_end();
    if (over) end_write();
}

/// True when the write has ended, well or not, except for the return of its bytes.
bool uring_stream::take_send_result(int result) {
    write_operation& op = *writer_;
    if (result > 0 && op.advance(static_cast<std::size_t>(result))) return true;
    const bool refused = result == -EOPNOTSUPP && !zero_copy_refused_;  // a Unix socket
    const bool failed = result < 0 && result != -EAGAIN && result != -EINTR && !refused;
    if (failed) note_failure(-result);
    if (write_cancelled_ || closing_) {
        op.set_error(errc::cancelled);
        return true;
    }
    if (failed) {
        op.set_error(errno_code(-result));
        return true;
    }
    if (result == -EAGAIN) {
        wait_writable();
        return false;
    }
    if (refused) zero_copy_refused_ = true;
    return send(op);
}

void uring_stream::end_write() {
    write_over_ = true;
    if (notices_ == 0) return finish_write();
    if (write_cancelled_ || closing_) give_up_unsent();
}

void uring_stream::finish_write() {
    write_operation& op = *std::exchange(writer_, nullptr);
    if (closing_) free_if_done();
    op.complete_now();
}

/// Resets the connection. TCP holds on to bytes until the peer acknowledges them, and a peer that
/// does not read need never do that; the writer must not wait for it.
void uring_stream::give_up_unsent() noexcept {
    failure_ = ECONNRESET;
    reset_connection(socket_.get());
}

void uring_stream::cancel(write_operation& op) noexcept {
    EDDY_ASSERT(writer_ == &op);
    write_cancelled_ = true;
    // The result of a send comes in this turn or the next.
    if (sending_) return;
    op.set_error(errc::cancelled);
    if (notices_ > 0) {
        write_over_ = true;
        return give_up_unsent();
    }
    writer_ = nullptr;
    op.complete_later();
}

void uring_stream::on_cancelled(int, unsigned) {
    request_done();
    if (closing_) free_if_done();
}

result<> uring_stream::shutdown_write() noexcept {
    if (::shutdown(socket_.get(), SHUT_WR) < 0) return fail_errno();
    return {};
}

void uring_stream::close() noexcept {
    closing_ = true;
    io_backend_.driver_closed();
    if (watched_at_ != end_watch::nowhere) io_backend_.ends().remove(*this);
    // A detached socket stays open, and its new owner expects no change.
    if (reports_rest_) set_reports_rest(false);
    drop_queue();
    if (reader_) {
        read_operation& op = *std::exchange(reader_, nullptr);
        op.set_error(errc::cancelled);
        op.complete_later();
    }
    if (writer_) {
        // While the kernel uses its bytes it ends by the kernel's answer, not by a cancellation.
        writer_->unlink();
        cancel(*writer_);
    }
    if (receiving_ && !stopping_) stop(*done<stream_request::receive>());
    if (watching_) stop(*done<stream_request::watch>());
    if (polling_writable_) stop(*done<stream_request::write_watch>());
    free_if_done();
}

void uring_stream::abort() noexcept {
    reset_connection(socket_.get());
    close();
}

void uring_stream::free_if_done() noexcept {
    if (in_flight_ == 0) delete this;
}

}  // namespace eddy
