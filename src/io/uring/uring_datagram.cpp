// Message sockets on io_uring: receiving, waiting for room, closing.
#include "io/uring/uring_datagram.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <utility>

namespace eddy {

static_assert(sizeof(io_uring_recvmsg_out) == sizeof(message_head) &&
              offsetof(io_uring_recvmsg_out, namelen) == offsetof(message_head, name_size) &&
              offsetof(io_uring_recvmsg_out, controllen) == offsetof(message_head, control_size) &&
              offsetof(io_uring_recvmsg_out, flags) == offsetof(message_head, flags));

uring_datagram::uring_datagram(uring_backend& io_backend, unique_fd socket) noexcept
    : posix_datagram(std::move(socket)), io_backend_(io_backend) {
    sizes_.msg_namelen = message_name_room;
    sizes_.msg_controllen = message_control_room;
    io_backend_.driver_opened();
}

uring_datagram::~uring_datagram() { io_backend_.driver_gone(); }

/// Takes the first message of the queue.
bool uring_datagram::take(datagram_message& into) noexcept {
    if (queued_ == 0) return false;
    receive_ring& ring = io_backend_.messages();
    const std::uint16_t id = first_;
    const receive_ring::slot front = ring.at(id);
    first_ = front.next;
    --queued_;
    std::byte* const buffer = ring.data(id);
    describe_message(buffer,
                     lease(ring, buffer + message_payload_at, front.size - message_payload_at, id),
                     port(), into);
    return true;
}

bool uring_datagram::start(receive_from_operation& op) {
    EDDY_PRECONDITION(!receiver_,
                      "a second receive of one datagram socket: await the first before the next");
    if (take(op.message())) return true;
    if (const int error = take_error(); error != 0) {
        op.set_error(errno_code(error));
        return true;
    }
    receiver_ = &op;
    want_messages();
    return false;
}

result<> uring_datagram::try_receive(datagram_message& into) noexcept {
    EDDY_PRECONDITION(!receiver_,
                      "a second receive of one datagram socket: await the first before the next");
    if (take(into)) return {};
    if (const int error = take_error(); error != 0) return fail_errno(error);
    want_messages();
    return fail_errno(EAGAIN);
}

void uring_datagram::want_messages() {
    // A receive that is being stopped arms itself again from its last completion.
    if (receiving_ || polling_readable_) return;
    if (!io_backend_.messages().exhausted() && io_backend_.multishot_messages())
        return arm_receive();
    polling_readable_ = true;
    io_backend_.start_poll(fd(), readiness::readable, readable_);
    ++in_flight_;
}

void uring_datagram::arm_receive() {
    io_uring_sqe& entry = io_backend_.submission();
    io_uring_prep_recvmsg_multishot(&entry, fd(), &sizes_, 0);
    io_uring_sqe_set_data(&entry, &received_);
    entry.flags |= IOSQE_BUFFER_SELECT;
    entry.buf_group = io_backend_.messages().group();
    receiving_ = true;
    ++in_flight_;
}

void uring_datagram::stop_receive() {
    stopping_ = true;
    io_backend_.cancel_request(received_, &cancelled_);
    ++in_flight_;
}

void uring_datagram::on_received(int result, unsigned flags) {
    if (!(flags & IORING_CQE_F_MORE)) {
        receiving_ = false;
        stopping_ = false;
        request_done();
    }
    receive_ring& ring = io_backend_.messages();
    if (flags & IORING_CQE_F_BUFFER) {
        const auto id = static_cast<std::uint16_t>(flags >> IORING_CQE_BUFFER_SHIFT);
        ring.taken();
        if (closing_ || result < static_cast<int>(message_payload_at)) {
            ring.give_back(nullptr, id);
        } else {
            ring.at(id) = {static_cast<std::uint32_t>(result), receive_ring::none};
            if (queued_++ == 0)
                first_ = id;
            else
                ring.at(last_).next = id;
            last_ = id;
        }
    }
    if (closing_) return free_if_done();

    switch (result) {
        case -ENOBUFS: ring.ran_out(); break;
        case -ECANCELED:
        case -EINTR:
        case -EAGAIN: break;
        case -EINVAL:
        case -EOPNOTSUPP:
            // A kernel without it: wait for readiness instead. With it, this is the same, slower.
            io_backend_.refuse_multishot_messages();
            break;
        default:
            if (result < 0) note_error(-result);
    }
    if (receiver_) return finish_receive();
    if (queued_ >= most_queued && receiving_ && !stopping_) stop_receive();
}

/// start() finds arrived messages, or requests more: the receive may have ended because the buffers
/// ran out, because the message was empty, or because it was stopped before a receive began. The
/// receiver resumes later, when the other completions of this turn have queued their messages.
void uring_datagram::finish_receive() {
    receive_from_operation& op = *std::exchange(receiver_, nullptr);
    if (start(op)) op.complete_later();
}

void uring_datagram::on_readable(int result, unsigned) {
    polling_readable_ = false;
    request_done();
    if (closing_) return free_if_done();
    if (!receiver_) return;

    // The ring was empty. Only this call holds a buffer, so a thousand starved sockets need one.
    message_queue one;
    const int error = result < 0 ? -result : io_backend_.reader().read(fd(), 1, one).error;
    if (error == EAGAIN) return want_messages();
    receive_from_operation& op = *std::exchange(receiver_, nullptr);
    if (error == 0)
        io_backend_.reader().deliver(one.pop(), port(), op.message());
    else
        op.set_error(receive_error(error));
    op.complete_now();
}

void uring_datagram::cancel(receive_from_operation& op) noexcept {
    EDDY_ASSERT(receiver_ == &op);
    // The receive stays armed: its messages are queued for the next receiver.
    receiver_ = nullptr;
    op.set_error(errc::cancelled);
    op.complete_later();
}

void uring_datagram::wait_writable() noexcept {
    if (polling_writable_) return;
    polling_writable_ = true;
    io_backend_.start_poll(fd(), readiness::writable, writable_);
    ++in_flight_;
}

void uring_datagram::on_writable(int result, unsigned) {
    polling_writable_ = false;
    request_done();
    if (closing_) return free_if_done();
    if (result < 0)
        end_senders(errno_code(-result));
    else
        send_waiting();
}

void uring_datagram::on_cancelled(int, unsigned) {
    request_done();
    if (closing_) free_if_done();
}

void uring_datagram::drop_queue() noexcept {
    receive_ring& ring = io_backend_.messages();
    for (; queued_ > 0; --queued_) {
        const std::uint16_t id = first_;
        first_ = ring.at(id).next;
        ring.give_back(nullptr, id);
    }
}

void uring_datagram::close() noexcept {
    closing_ = true;
    io_backend_.driver_closed();
    drop_queue();
    if (receiver_) cancel(*receiver_);
    end_senders(errc::cancelled);
    const auto cancel_if = [&](bool armed, completion& target) {
        if (!armed) return;
        io_backend_.cancel_request(target, &cancelled_);
        ++in_flight_;
    };
    cancel_if(receiving_ && !stopping_, received_);
    cancel_if(polling_readable_, readable_);
    cancel_if(polling_writable_, writable_);
    free_if_done();
}

void uring_datagram::free_if_done() noexcept {
    if (in_flight_ == 0) delete this;
}

}  // namespace eddy
