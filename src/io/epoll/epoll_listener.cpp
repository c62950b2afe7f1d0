// Accept on epoll.
#include "io/epoll/epoll_listener.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>

namespace eddy {
result<> epoll_listener::open() {
    if (auto added = io_backend_.add(socket_.get(), EPOLLIN | EPOLLET, *this); !added) return added;
    io_backend_.driver_opened();
    return {};
}

bool epoll_listener::start(accept_operation& op) {
    EDDY_PRECONDITION(!acceptor_,
                      "a second accept of one listener: await the first before the next");
    if (paused_) {
        op.set_error(errc::closed);
        return true;
    }
    if (readable_ && accept(op)) return true;
    acceptor_ = &op;
    return false;
}

/// True when `op` has a connection or an error. The listener counts as readable until the queue is
/// known to be empty, so an accept after EMFILE tries again.
bool epoll_listener::accept(accept_operation& op) {
    for (;;) {
        unique_fd socket(accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (socket) {
            auto accepted = io_backend_.wrap(std::move(socket));
            if (accepted)
                op.set_accepted(std::move(*accepted));
            else
                op.set_error(accepted.error());
            return true;
        }
        if (errno == EAGAIN || errno == EWOULDBLOCK) {
            readable_ = false;
            return false;
        }
        if (!concerns_one_connection(errno)) {
            op.set_error(errno_code(errno));
            return true;
        }
    }
}

void epoll_listener::on_events(std::uint32_t) {
    readable_ = true;
    if (acceptor_ && accept(*acceptor_)) std::exchange(acceptor_, nullptr)->complete_now();
}

void epoll_listener::end_acceptor(std::error_code why) noexcept {
    accept_operation& op = *std::exchange(acceptor_, nullptr);
    op.set_error(why);
    op.complete_later();
}

void epoll_listener::cancel(accept_operation& op) noexcept {
    EDDY_ASSERT(acceptor_ == &op);
    end_acceptor(errc::cancelled);
}

void epoll_listener::pause() noexcept {
    paused_ = true;
    if (acceptor_) end_acceptor(errc::closed);
}

void epoll_listener::set_shared(bool is_shared) noexcept {
    is_shared_ = is_shared;
    if (!is_shared && file_.inode == 0) file_ = file_of(local_);
}

void epoll_listener::close() noexcept {
    if (acceptor_) end_acceptor(errc::cancelled);
    if (!is_shared_) remove_socket_file(local(), file_);
    io_backend_.remove(socket_.get());
    socket_.reset();
    io_backend_.retire(*this);
}

}  // namespace eddy
