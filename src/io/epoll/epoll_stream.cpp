// Streams on epoll: receiving, sending, closing.
#include "io/epoll/epoll_stream.hpp"

#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace eddy {
namespace {

constexpr std::uint32_t watched = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLPRI | EPOLLET;

}  // namespace

result<> epoll_stream::open() {
    int domain = AF_UNSPEC;
    socklen_t size = sizeof(domain);
    if (getsockopt(socket_.get(), SOL_SOCKET, SO_DOMAIN, &domain, &size) < 0) return fail_errno();
    short_read_drains_ = domain == AF_INET || domain == AF_INET6;
    // Registration itself reports what is true already: bytes that came first are not missed.
    if (auto added = io_backend_.add(socket_.get(), watched, *this); !added) return added;
    io_backend_.driver_opened();
    return {};
}

bool epoll_stream::start(read_operation& op) {
    EDDY_PRECONDITION(!reader_, "a second read of one stream: await the first before the next");
    if (receiving_ended_) {
        op.set_error(errc::closed);
        return true;
    }
    if (readable_ && !had_much_ && !op.had_its_share() && receive(op)) return true;
    reader_ = &op;
    if (readable_) io_backend_.report_again(socket_.get(), watched, *this);
    return false;
}

bool epoll_stream::end_receiving() noexcept {
    receiving_ended_ = true;
    if (reader_) end_reader(errc::closed);
    return true;
}

/// True when `op` has bytes or an error.
bool epoll_stream::receive(read_operation& op) {
    if (read_end_) {
        op.set_error(read_end_);
        return true;
    }
    const bool lend = op.into().empty();
    buffer_pool& large_ones = io_backend_.large_buffers();
    std::byte* const large =
        lend && fills_.wants_large() && large_ones.has_spare() ? large_ones.take() : nullptr;
    buffer_pool& buffers = large ? large_ones : io_backend_.buffers();
    std::byte* const bytes = large ? large : lend ? buffers.take() : op.into().data();
    const std::size_t room = lend ? buffers.buffer_size() : op.into().size();
    if (!bytes) {
        op.set_error(buffers.refusal());
        return true;
    }
    ssize_t received;
    do {
        received = recv(socket_.get(), bytes, room, MSG_DONTWAIT);
    } while (received < 0 && errno == EINTR);

    if (received > 0) {
        const auto size = static_cast<std::size_t>(received);
        if (size < room && short_read_drains_) readable_ = false;
        if (large && size == room) had_much_ = true;
        if (lend) {
            fills_.note(size, io_backend_.buffers().buffer_size());
            op.set_received(buffers.lend(bytes, size));
        }
        op.set_size(size);
        return true;
    }
    const int error = errno;
    if (lend) buffers.give_back(bytes, 0);
    if (received < 0 && (error == EAGAIN || error == EWOULDBLOCK)) {
        readable_ = false;
        return false;
    }
    // The kernel reports an error once. If a write got it, this looks like an orderly end.
    if (received < 0)
        read_end_ = errno_code(error);
    else
        read_end_ = failure_ ? failure_ : make_error_code(errc::end_of_stream);
    op.set_error(read_end_);
    return true;
}

bool epoll_stream::start(write_operation& op) {
    EDDY_PRECONDITION(
        !writer_,
        "a second write to one stream: await the first before the next, or use queued_writer");
    if (writable_ && send(op)) return true;
    writer_ = &op;
    return false;
}

/// True when `op` is finished, well or not.
bool epoll_stream::send(write_operation& op) {
    const int error = send_now(socket_.get(), op);
    if (error == EAGAIN || error == EWOULDBLOCK) {
        writable_ = false;
        return false;
    }
    if (error == EINPROGRESS) {
        io_backend_.report_again(socket_.get(), watched, *this);
        return false;
    }
    if (error != 0) {
        op.set_error(errno_code(error));
        // EPIPE also follows shutdown_write(), which says nothing about reading.
        if (error != EPIPE) failure_ = errno_code(error);
    }
    return true;
}

result<std::size_t> epoll_stream::try_write(const_bytes bytes) noexcept {
    if (writer_ || !writable_ || bytes.empty()) return 0;
    ssize_t sent;
    do {
        sent = ::send(socket_.get(), bytes.data(), std::min(bytes.size(), most_bytes_a_turn),
                      MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    if (sent >= 0) return static_cast<std::size_t>(sent);
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
        writable_ = false;
        return 0;
    }
    if (errno != EPIPE) failure_ = errno_code(errno);
    return fail_errno();
}

/// sendfile(2) has no flag for a call that does not wait, and another process that has the socket,
/// too, may have set it to blocking mode.
result<std::size_t> epoll_stream::try_send_file(const_bytes head, int file, std::uint64_t offset,
                                                std::size_t size) noexcept {
    if (writer_ || !writable_) return 0;
    int on = 1;
    if (::ioctl(socket_.get(), FIONBIO, &on) < 0) return fail(errc::unsupported);
    const auto sent = send_file_now(socket_.get(), head, file, offset, size);
    if (sent) return sent;
    if (sent.error() == std::errc::resource_unavailable_try_again) {
        writable_ = false;
        return 0;
    }
    if (!concerns_file(sent.error()) && sent.error() != std::errc::broken_pipe)
        failure_ = sent.error();
    return sent;
}

void epoll_stream::on_events(std::uint32_t events) {
    constexpr std::uint32_t failed = EPOLLERR | EPOLLHUP;
    had_much_ = false;
    if (events & (EPOLLIN | EPOLLRDHUP | EPOLLPRI | failed)) readable_ = true;
    if (events & (EPOLLRDHUP | EPOLLPRI | failed)) short_read_drains_ = false;
    if (events & (EPOLLOUT | failed)) writable_ = true;

    // The resumed coroutine may close this stream, or an earlier event of the batch may have done
    // so: the object still exists, but has neither socket nor waiters.
    if (reader_ && readable_ && receive(*reader_)) std::exchange(reader_, nullptr)->complete_now();
    if (writer_ && writable_ && send(*writer_)) std::exchange(writer_, nullptr)->complete_now();
}

void epoll_stream::end_reader(std::error_code error) noexcept {
    read_operation& op = *std::exchange(reader_, nullptr);
    op.set_error(error);
    op.complete_later();
}

void epoll_stream::end_writer(std::error_code error) noexcept {
    write_operation& op = *std::exchange(writer_, nullptr);
    op.set_error(error);
    op.complete_later();
}

void epoll_stream::cancel(read_operation& op) noexcept {
    EDDY_ASSERT(reader_ == &op);
    end_reader(errc::cancelled);
}

void epoll_stream::cancel(write_operation& op) noexcept {
    EDDY_ASSERT(writer_ == &op);
    end_writer(errc::cancelled);
}

result<> epoll_stream::shutdown_write() noexcept {
    if (::shutdown(socket_.get(), SHUT_WR) < 0) return fail_errno();
    return {};
}

void epoll_stream::close() noexcept {
    if (reader_) end_reader(errc::cancelled);
    if (writer_) end_writer(errc::cancelled);
    io_backend_.remove(socket_.get());
    socket_.reset();
    io_backend_.retire(*this);
}

void epoll_stream::abort() noexcept {
    reset_connection(socket_.get());
    close();
}

}  // namespace eddy
