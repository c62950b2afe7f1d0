// Message sockets on epoll: receiving, waiting for room, closing.
#include "io/epoll/epoll_datagram.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

namespace eddy {
namespace {

// Room to send is watched only while an operation waits for it: a sent datagram that leaves the
// kernel's buffers is an event of its own.
constexpr std::uint32_t watched = EPOLLIN | EPOLLET;

}  // namespace

result<> epoll_datagram::open() {
    // Registration itself reports what is true already: messages that came first are not missed.
    if (auto added = io_backend_.add(fd(), watched, *this); !added) return added;
    io_backend_.driver_opened();
    return {};
}

/// 0, or an errno; EAGAIN when an event will report the next message.
int epoll_datagram::receive(datagram_message& into) noexcept {
    if (queue_.empty()) {
        if (const int error = take_error(); error != 0) return error;
        if (!readable_) return EAGAIN;
        const auto outcome = io_backend_.reader().read(fd(), message_reader::most, queue_);
        // A batch may have stopped short at an error, which the next call reports. Only connected
        // sockets have those; the others need no further call.
        if (outcome.error == EAGAIN || (outcome.error == 0 && outcome.drained && !connected()))
            readable_ = false;
        if (outcome.error != 0) return outcome.error;
    }
    io_backend_.reader().deliver(queue_.pop(), port(), into);
    return 0;
}

bool epoll_datagram::start(receive_from_operation& op) {
    EDDY_PRECONDITION(!receiver_,
                      "a second receive of one datagram socket: await the first before the next");
    const int error = receive(op.message());
    if (error == EAGAIN) {
        receiver_ = &op;
        return false;
    }
    if (error != 0) op.set_error(receive_error(error));
    return true;
}

result<> epoll_datagram::try_receive(datagram_message& into) noexcept {
    EDDY_PRECONDITION(!receiver_,
                      "a second receive of one datagram socket: await the first before the next");
    if (const int error = receive(into); error != 0) return fail(receive_error(error));
    return {};
}

void epoll_datagram::on_events(std::uint32_t events) {
    // Another's events may have closed this socket before: the object is still there, its socket is
    // not.
    if (fd() < 0) return;
    constexpr std::uint32_t failed = EPOLLERR | EPOLLHUP;
    if (events & (EPOLLIN | failed)) readable_ = true;
    if (events & (EPOLLOUT | failed)) {
        if (senders_wait()) send_waiting();
        if (watching_room_ && !senders_wait()) {
            watching_room_ = false;
            io_backend_.report_again(fd(), watched, *this);
        }
    }
    if (!receiver_) return;
    // One call has read all that the queue takes, so waiting for the end of the turn, as on
    // io_uring, would gain nothing. The resumed coroutine may close this socket.
    receive_from_operation& op = *std::exchange(receiver_, nullptr);
    if (start(op)) op.complete_now();
}

void epoll_datagram::wait_writable() noexcept {
    if (watching_room_) return;
    watching_room_ = true;
    io_backend_.report_again(fd(), watched | EPOLLOUT, *this);
}

void epoll_datagram::cancel(receive_from_operation& op) noexcept {
    EDDY_ASSERT(receiver_ == &op);
    receiver_ = nullptr;
    op.set_error(errc::cancelled);
    op.complete_later();
}

void epoll_datagram::close() noexcept {
    if (receiver_) cancel(*receiver_);
    end_senders(errc::cancelled);
    io_backend_.reader().drop(queue_);
    io_backend_.remove(fd());
    close_socket();
    io_backend_.retire(*this);
}

}  // namespace eddy
