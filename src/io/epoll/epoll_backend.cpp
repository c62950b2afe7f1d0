// A turn of the epoll io-backend, and the requests that need no driver.
#include "io/epoll/epoll_backend.hpp"

#include "io/epoll/epoll_datagram.hpp"
#include "io/epoll/epoll_listener.hpp"
#include "io/epoll/epoll_socket_bank.hpp"
#include "io/epoll/epoll_stream.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

namespace eddy {
namespace {

template <class Element>
void make_room(std::vector<Element>& in, std::size_t size) {
    if (in.capacity() < size) in.reserve(std::max(size, 2 * in.capacity()));
}

}  // namespace

result<std::unique_ptr<io_backend>> make_epoll_backend(const loop_options& options) {
    auto made = std::make_unique<epoll_backend>(options);
    if (auto opened = made->open(); !opened) return fail(opened.error());
    return made;
}

epoll_backend::epoll_backend(const loop_options& options) noexcept
    : buffers_(options.buffer_count, options.buffer_size,
               std::size_t{options.buffer_count} + options.max_spare_buffers),
      large_buffers_(large_buffer_count, options.buffer_size * large_buffer_factor,
                     large_buffer_count),
      messages_(options.datagram_count, options.datagram_size + message_payload_at,
                std::size_t{options.datagram_count} + options.max_spare_buffers) {
    ended_polls_.reserve(spare_polls_kept);
    spare_polls_.reserve(spare_polls_kept);
}

result<> epoll_backend::open() {
    epoll_.reset(epoll_create1(EPOLL_CLOEXEC));
    if (!epoll_) return fail_errno();
    wake_fd_.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!wake_fd_) return fail_errno();
    // Edge-triggered: every write to the counter is an event, and it need never be read.
    return add(wake_fd_.get(), EPOLLIN | EPOLLET, wake_target_);
}

epoll_backend::~epoll_backend() {
    EDDY_PRECONDITION(drivers_.open == 0,
                      "a stream, listener or datagram socket outlived its loop: close it before "
                      "the loop ends");  // a handle that outlives its loop would use freed memory
    // Events that are due belong to polls that were cancelled.
    while (run_due()) {
    }
    end_batch();
    EDDY_ASSERT(polls_.empty());
    EDDY_ASSERT(drivers_.existing == 0);
}

time_point epoll_backend::now() const noexcept { return std::chrono::steady_clock::now(); }

result<> epoll_backend::add(int fd, std::uint32_t events, event_target& target) noexcept {
    epoll_event event{};
    event.events = events;
    event.data.ptr = &target;
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) < 0) return fail_errno();
    return {};
}

void epoll_backend::report_again(int fd, std::uint32_t events, event_target& target) noexcept {
    epoll_event event{};
    event.events = events;
    event.data.ptr = &target;
    EDDY_ASSERT(epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) == 0);
}

void epoll_backend::remove(int fd) noexcept { epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr); }

bool epoll_backend::poll(time_point until) {
    epoll_event events[batch_size];
    const int count = wait(due_.empty() ? until : time_point::min(), events);
    if (until != time_point::min()) note_wake();
    for (int i = 0; i < count; ++i)
        static_cast<event_target*>(events[i].data.ptr)->on_events(events[i].events);
    const bool any_due = run_due();
    end_batch();
    return count > 0 || any_due;
}

/// Fetches at most batch_size events; how many, 0 after the time or a signal.
int epoll_backend::wait(time_point until, epoll_event* events) noexcept {
    constexpr std::int64_t second = 1'000'000'000;
    constexpr std::int64_t millisecond = 1'000'000;
    const int epoll = epoll_.get();
    const detail::loop_unlock pause(mutex());
    int count = -1;
    if (until == time_point::min()) {
        count = epoll_wait(epoll, events, batch_size, 0);
    } else if (until == time_point::max()) {
        count = epoll_wait(epoll, events, batch_size, -1);
    } else {
        const time_point present = now();
        const std::int64_t left = until > present ? (until - present).count() : 0;
        errno = ENOSYS;
        if (has_pwait2_) {
            const timespec timeout{left / second, left % second};
            count = epoll_pwait2(epoll, events, batch_size, &timeout, nullptr);
        }
        // Before Linux 5.11, and where a container's filter is older than the call.
        if (count < 0 && (errno == ENOSYS || errno == EPERM)) {
            has_pwait2_ = false;
            // Rounded up: waking early would only mean to wait again.
            const std::int64_t rounded = (left + millisecond - 1) / millisecond;
            count = epoll_wait(epoll, events, batch_size,
                               static_cast<int>(std::min<std::int64_t>(rounded, INT32_MAX)));
        }
    }
    EDDY_ASSERT(count >= 0 || errno == EINTR);
    return std::max(count, 0);
}

bool epoll_backend::run_due() {
    if (due_.empty()) return false;
    // Additions of these calls are for the next turn. In place: the room that new_poll() made
    // stays.
    const std::size_t count = due_.size();
    for (std::size_t i = 0; i < count; ++i) {
        const due_completion due = due_[i];
        due.done->on_completion(due.result, 0);
    }
    due_.erase(due_.begin(), due_.begin() + static_cast<std::ptrdiff_t>(count));
    return true;
}

void epoll_backend::end_batch() noexcept {
    while (!retired_.empty()) {
        delete &retired_.pop_front();
        --drivers_.existing;
    }
    for (auto& node : ended_polls_)
        if (spare_polls_.size() < spare_polls_kept) spare_polls_.push_back(std::move(node));
    ended_polls_.clear();
}

void epoll_backend::wake() noexcept {
    if (wake_pending_.exchange(true, std::memory_order_acq_rel)) return;
    const std::uint64_t one = 1;
    // It can only fail when the counter is full, which takes centuries.
    [[maybe_unused]] const ssize_t written = write(wake_fd_.get(), &one, sizeof(one));
}

void epoll_backend::wake_target::on_events(std::uint32_t) {
    // Before the loop reads the posted work: a later post wakes it again.
    owner.wake_pending_.exchange(false, std::memory_order_acq_rel);
}

result<listener> epoll_backend::make_listener(opened_listener opened) {
    const socket_file file = opened.file;
    auto made = std::make_unique<epoll_listener>(*this, std::move(opened));
    if (auto added = made->open(); !added) {
        remove_socket_file(made->local(), file);
        return fail(added.error());
    }
    return listener(*made.release());
}

result<listener> epoll_backend::listen(const endpoint& local, const listen_options& options) {
    auto opened = open_listener(local, options, true);
    if (!opened) return fail(opened.error());
    return make_listener(std::move(*opened));
}

result<listener> epoll_backend::adopt_listener(unique_fd socket) {
    auto adopted = eddy::adopt_listener(std::move(socket));
    if (!adopted) return fail(adopted.error());
    int nonblocking = 1;
    if (ioctl(adopted->socket.get(), FIONBIO, &nonblocking) < 0) return fail_errno();
    return make_listener(std::move(*adopted));
}

result<datagram> epoll_backend::make_datagram(unique_fd socket) noexcept try {
    auto made = std::make_unique<epoll_datagram>(*this, std::move(socket));
    if (auto opened = made->open(); !opened) return fail(opened.error());
    return datagram(*made.release());
} catch (const std::bad_alloc&) {
    return fail_errno(ENOMEM);
}

result<datagram> epoll_backend::open_datagram(const endpoint& local, const endpoint& peer,
                                              const datagram_options& options) {
    auto socket = eddy::open_datagram(local, peer, options, true);
    if (!socket) return fail(socket.error());
    return make_datagram(std::move(*socket));
}

result<datagram> epoll_backend::adopt_datagram(unique_fd socket) {
    int nonblocking = 1;
    if (ioctl(socket.get(), FIONBIO, &nonblocking) < 0) return fail_errno();
    return make_datagram(std::move(socket));
}

result<stream> epoll_backend::wrap(unique_fd socket) try {
    auto made = std::make_unique<epoll_stream>(*this, std::move(socket));
    if (auto opened = made->open(); !opened) return fail(opened.error());
    return stream(*made.release());
} catch (const std::bad_alloc&) {
    return fail_errno(ENOMEM);
}

result<stream> epoll_backend::adopt(unique_fd socket) {
    const auto pipe_like = is_pipe_like(socket.get());
    if (!pipe_like) return fail(pipe_like.error());
    if (*pipe_like)
        return make_posix_pipe(*this, buffers_, drivers_, std::move(socket), pipe_origin::foreign);
    int nonblocking = 1;
    if (ioctl(socket.get(), FIONBIO, &nonblocking) < 0) return fail_errno();
    return wrap(std::move(socket));
}

result<stream> epoll_backend::adopt_own(unique_fd pipe_end) {
    return make_posix_pipe(*this, buffers_, drivers_, std::move(pipe_end), pipe_origin::own);
}

result<std::unique_ptr<socket_bank>> epoll_backend::open_socket_bank(
    const socket_bank_options& options, bank_observer& to) {
    return epoll_socket_bank::open(*this, drivers_, options, to);
}

bool epoll_backend::start(connect_operation& op) {
    auto socket = open_for_connect(op.peer(), op.from(), true);
    if (!socket) {
        op.set_error(socket.error());
        return true;
    }
    if (connect(socket->get(), op.peer().data(), op.peer().size()) == 0) {
        auto connected = wrap(std::move(*socket));
        if (connected)
            op.set_connected(std::move(*connected));
        else
            op.set_error(connected.error());
        return true;
    }
    if (errno != EINPROGRESS && errno != EINTR) {
        op.set_error(errno_code(errno));
        return true;
    }
    op.socket() = std::move(*socket);
    start_poll(op.socket().get(), readiness::writable, op.when_done());
    return false;
}

void epoll_backend::cancel(connect_operation& op) noexcept { cancel_poll(op.when_done()); }

epoll_backend::poll_table::iterator epoll_backend::new_poll(completion& done) {
    // Ending a wait must not allocate: it may be cancelled because there is no memory.
    const std::size_t waits = polls_.size() + 1;
    make_room(due_, due_.size() + waits);
    make_room(ended_polls_, ended_polls_.size() + waits);
    if (spare_polls_.empty()) {
        const auto added = polls_.try_emplace(&done);
        EDDY_ASSERT(added.second);
        return added.first;
    }
    poll_table::node_type node = std::move(spare_polls_.back());
    spare_polls_.pop_back();
    node.key() = &done;
    const auto added = polls_.insert(std::move(node));
    EDDY_ASSERT(added.inserted);
    return added.position;
}

void epoll_backend::start_poll(int fd, readiness wanted, completion& done) {
    const auto at = new_poll(done);
    poll_wait& made = at->second;
    made.owner = this;
    made.done = &done;
    made.fd = fd;
    const std::uint32_t events = wanted == readiness::readable   ? EPOLLIN
                                 : wanted == readiness::writable ? EPOLLOUT
                                                                 : EPOLLRDHUP;
    auto added = add(fd, events, made);
    if (!added && added.error() == errno_code(EEXIST)) {
        made.duplicate.reset(fcntl(fd, F_DUPFD_CLOEXEC, 0));
        if (made.duplicate)
            added = add(made.duplicate.get(), events, made);
        else
            added = fail_errno();
    }
    if (added) return;
    // A regular file is always ready, and epoll refuses it for that reason.
    const bool always_ready = added.error() == errno_code(EPERM);
    due_.push_back({&done, always_ready ? 0 : -added.error().value()});
    made.fd = -1;
    end_poll(at);
}

void epoll_backend::end_poll(poll_table::iterator at) noexcept {
    poll_wait& over = at->second;
    over.done = nullptr;
    if (over.duplicate)
        remove(over.duplicate.get());
    else if (over.fd >= 0)
        remove(over.fd);
    over.duplicate.reset();
    ended_polls_.push_back(polls_.extract(at));
}

void epoll_backend::poll_wait::on_events(std::uint32_t) {
    if (!done) return;
    completion& ready = *done;
    owner->end_poll(owner->polls_.find(done));
    ready.on_completion(0, 0);
}

void epoll_backend::cancel_poll(completion& done) noexcept {
    const auto at = polls_.find(&done);
    if (at == polls_.end()) return;  // due already
    end_poll(at);
    due_.push_back({&done, -ECANCELED});
}

}  // namespace eddy
