// Accept on io_uring by one multishot request.
#include "io/uring/uring_listener.hpp"

#include "base/files/descriptors.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <new>
#include <utility>

namespace eddy {
namespace {

/// As the kernel does with connections that were not accepted from its queue.
void reset_connection(unique_fd socket) noexcept {
    const linger at_once{1, 0};
    setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
}

}  // namespace

bool uring_listener::start(accept_operation& op) {
    EDDY_PRECONDITION(!waiter_, "a second accept of one listener: await the first before the next");
    if (!waiting_.empty()) {
        give(op, next_waiting());
        return true;
    }
    if (error_ != 0) {
        op.set_error(errno_code(std::exchange(error_, 0)));
        return true;
    }
    // Its request may still yield some.
    if (paused_ && !accepting_) {
        op.set_error(errc::closed);
        return true;
    }
    waiter_ = &op;
    if (!accepting_) arm();
    return false;
}

void uring_listener::give(accept_operation& op, unique_fd socket) noexcept {
    auto accepted = io_backend_.wrap(std::move(socket));
    if (accepted)
        op.set_accepted(std::move(*accepted));
    else
        op.set_error(accepted.error());
}

void uring_listener::arm() {
    io_uring_sqe& entry = io_backend_.submission();
    if (is_table_filling())
        io_uring_prep_accept(&entry, socket_.get(), nullptr, nullptr, SOCK_CLOEXEC);
    else
        io_uring_prep_multishot_accept(&entry, socket_.get(), nullptr, nullptr, SOCK_CLOEXEC);
    io_uring_sqe_set_data(&entry, &accepted_);
    accepting_ = true;
    ++in_flight_;
}

void uring_listener::on_accepted(int result, unsigned flags) {
    if (!(flags & IORING_CQE_F_MORE)) {
        accepting_ = false;
        stopping_ = false;
        --in_flight_;
    }
    unique_fd socket(result >= 0 ? result : -1);
    if (socket) latest_ = socket.get();
    if (closing_) {
        if (socket) reset_connection(std::move(socket));
        return free_if_done();
    }
    if (is_table_filling()) stop_accepting();

    // A waiter has found the queue empty, so this is the first connection.
    if (socket && waiter_) {
        accept_operation& op = *std::exchange(waiter_, nullptr);
        give(op, std::move(socket));
        return op.complete_now();
    }
    // More than the program wants now must not take reserved descriptors.
    if (socket && descriptors::in_reserve(socket.get(), descriptors::use::client))
        reset_connection(std::move(socket));
    else if (socket)
        queue(std::move(socket));
    else if (result != -ECANCELED && result != -EAGAIN && !concerns_one_connection(-result))
        error_ = -result;

    if (paused_) {
        end_paused();
    } else if (waiter_) {
        accept_operation& op = *std::exchange(waiter_, nullptr);
        if (start(op)) op.complete_now();
    } else if (waiting_.size() - first_waiting_ >= most_waiting) {
        stop_accepting();
    }
}

/// Ends the request; it has its last completion later.
void uring_listener::stop_accepting() noexcept {
    if (!accepting_ || stopping_) return;
    stopping_ = true;
    io_backend_.cancel_request(accepted_, &cancelled_);
    ++in_flight_;
}

bool uring_listener::is_table_filling() const noexcept {
    return descriptors::first_reserved(descriptors::use::client) - latest_ < multishot_headroom;
}

void uring_listener::queue(unique_fd socket) noexcept try {
    if (waiting_.size() == waiting_.capacity()) {
        waiting_.erase(waiting_.begin(),
                       waiting_.begin() + static_cast<std::ptrdiff_t>(first_waiting_));
        first_waiting_ = 0;
        if (waiting_.empty()) waiting_.reserve(most_waiting);
    }
    waiting_.push_back(std::move(socket));
} catch (const std::bad_alloc&) {
    error_ = ENOMEM;
}

unique_fd uring_listener::next_waiting() noexcept {
    unique_fd socket = std::move(waiting_[first_waiting_++]);
    if (first_waiting_ == waiting_.size()) {
        waiting_.clear();
        first_waiting_ = 0;
    }
    return socket;
}

void uring_listener::on_cancelled(int, unsigned) {
    --in_flight_;
    if (closing_) free_if_done();
}

void uring_listener::cancel(accept_operation& op) noexcept {
    EDDY_ASSERT(waiter_ == &op);
    waiter_ = nullptr;
    op.set_error(errc::cancelled);
    op.complete_later();
}

void uring_listener::pause() noexcept {
    paused_ = true;
    stop_accepting();
    end_paused();
}

/// Completes an accept that gets no connection any more.
void uring_listener::end_paused() noexcept {
    if (!paused_ || accepting_ || !waiter_) return;
    accept_operation& op = *std::exchange(waiter_, nullptr);
    op.set_error(errc::closed);
    op.complete_later();
}

/// Requests wait in the kernel exclusively: a connection wakes one of the processes that share the
/// socket, and perhaps the one whose request is being cancelled. A new request finds what came.
void uring_listener::resume() noexcept {
    paused_ = false;
    stop_accepting();
}

void uring_listener::set_shared(bool is_shared) noexcept {
    is_adopted_ = is_shared;
    if (!is_shared && file_.inode == 0) file_ = file_of(local_);
}

void uring_listener::close() noexcept {
    closing_ = true;
    io_backend_.driver_closed();
    if (!is_adopted_) remove_socket_file(local(), file_);
    // The port is free for others now, and not only when the accept request has ended. For an
    // adopted socket that would end listening in the other processes, too.
    if (!is_adopted_) ::shutdown(socket_.get(), SHUT_RDWR);
    if (waiter_) {
        accept_operation& op = *std::exchange(waiter_, nullptr);
        op.set_error(errc::cancelled);
        op.complete_later();
    }
    while (!waiting_.empty()) reset_connection(next_waiting());
    stop_accepting();
    free_if_done();
}

void uring_listener::free_if_done() noexcept {
    if (in_flight_ == 0) delete this;
}

}  // namespace eddy
