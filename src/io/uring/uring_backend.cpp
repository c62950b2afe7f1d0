// Setup of the ring, a turn of the io_uring io-backend, and the requests that need no driver.
#include "io/uring/uring_backend.hpp"

#include <eddy/io/loop_lock.hpp>

#include "io/epoll/epoll_socket_bank.hpp"
#include "io/uring/ring_entries.hpp"
#include "io/uring/uring_datagram.hpp"
#include "io/uring/uring_listener.hpp"
#include "io/uring/uring_socket_bank.hpp"
#include "io/uring/uring_stream.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <new>

namespace eddy {
namespace {

// Room for the requests of a loop_lock, and at least as many of the loop's own.
static_assert(detail::least_ring_entries >= 2 * loop_lock::max_requests);
constexpr unsigned completion_entries = 16 * 1024;
constexpr unsigned sqpoll_idle_ms = 1000;
static_assert(std::has_single_bit(loop_options::max_buffer_count) &&
              loop_options::max_buffer_count <= 32 * 1024);  // of a ring of buffers
constexpr std::uint32_t spare_buffers_kept = 16;
constexpr std::uint16_t stream_group = 0;
constexpr std::uint16_t message_group = 1;
/// Limit on the last completions of closed sockets. They take microseconds.
constexpr std::chrono::seconds end_patience{60};

/// Errors of io_uring_enter(2) that a program without faults may meet. EINTR: a signal. ETIME: the
/// time has passed. EAGAIN, EBUSY: reap completions, then try again.
bool is_usual(int outcome) noexcept {
    return outcome >= 0 || outcome == -EINTR || outcome == -ETIME || outcome == -EAGAIN ||
           outcome == -EBUSY;
}

/// On a non-blocking file io_uring answers EAGAIN instead of waiting.
result<> make_blocking(int fd) noexcept {
    const int flags = fcntl(fd, F_GETFL);
    if (flags < 0) return fail_errno();
    if ((flags & O_NONBLOCK) && fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) < 0) return fail_errno();
    return {};
}

}  // namespace

receive_ring::~receive_ring() {
    EDDY_PRECONDITION(outstanding_ == 0,
                      "a lease outlived its loop: return it before the loop ends");
    if (ring_) munmap(ring_, ring_bytes_);
    if (buffers_) munmap(buffers_, count_ * stride_);
}

result<> receive_ring::open(io_uring& ring, std::uint16_t group, std::uint32_t count,
                            std::uint32_t size) {
    constexpr std::size_t cache_line = 64;
    group_ = group;
    count_ = std::bit_ceil(count);
    buffer_size_ = size;
    stride_ = (std::size_t{buffer_size_} + cache_line - 1) / cache_line * cache_line;
    const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    ring_bytes_ = (count_ * sizeof(io_uring_buf) + page - 1) / page * page;
    const auto map = [](std::size_t bytes) {
        void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        return at == MAP_FAILED ? nullptr : at;
    };
    ring_ = static_cast<io_uring_buf_ring*>(map(ring_bytes_));
    buffers_ = static_cast<std::byte*>(map(count_ * stride_));
    if (!ring_ || !buffers_) return fail_errno(ENOMEM);
    io_uring_buf_reg registration{};
    registration.ring_addr = reinterpret_cast<std::uintptr_t>(ring_);
    registration.ring_entries = count_;
    registration.bgid = group;
    if (int error = io_uring_register_buf_ring(&ring, &registration, 0); error < 0)
        return fail_errno(-error);
    io_uring_buf_ring_init(ring_);
    slots_ = std::make_unique<slot[]>(count_);
    for (std::uint32_t i = count_; i-- > 0;) {
        slots_[i].next = free_;
        free_ = static_cast<std::uint16_t>(i);
    }
    wanted_ = std::min(first_wanted, count_);
    publish();
    return {};
}

void receive_ring::publish() noexcept {
    int added = 0;
    for (; published_ < wanted_ && free_ != none; ++published_, ++added) {
        const std::uint16_t id = free_;
        free_ = slots_[id].next;
        io_uring_buf_ring_add(ring_, data(id), buffer_size_, id, static_cast<int>(count_ - 1),
                              added);
    }
    if (added > 0) io_uring_buf_ring_advance(ring_, added);
}

void receive_ring::give_back(std::byte*, std::uint32_t id) noexcept {
    EDDY_ASSERT(outstanding_ > 0);
    --outstanding_;
    slots_[id].next = free_;
    free_ = static_cast<std::uint16_t>(id);
    publish();
}

result<std::unique_ptr<io_backend>> make_uring_backend(const loop_options& options) {
    auto made = std::make_unique<uring_backend>(options);
    if (auto opened = made->open(options); !opened) return fail(opened.error());
    return made;
}

uring_backend::uring_backend(const loop_options& options) noexcept
    : spares_(spare_buffers_kept, options.buffer_size, options.max_spare_buffers),
      large_receives_(large_buffer_count, options.buffer_size * large_buffer_factor,
                      large_buffer_count),
      message_spares_(spare_buffers_kept, options.datagram_size + message_payload_at,
                      options.max_spare_buffers),
      message_count_(options.datagram_count),
      zero_copy_threshold_(options.zero_copy_threshold) {}

result<> uring_backend::open(const loop_options& options) {
    io_uring_params parameters{};
    parameters.flags = IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP | IORING_SETUP_SUBMIT_ALL |
                       IORING_SETUP_SINGLE_ISSUER;
    const unsigned entries = detail::ring_entries.load(std::memory_order_relaxed);
    EDDY_ASSERT(entries >= detail::least_ring_entries && entries <= detail::most_ring_entries);
    parameters.cq_entries = std::max(completion_entries, 2 * entries);
    if (options.sqpoll) {
        parameters.flags |= IORING_SETUP_SQPOLL;
        parameters.sq_thread_idle = sqpoll_idle_ms;
    } else {
        parameters.flags |= IORING_SETUP_DEFER_TASKRUN;
        deferred_ = true;
    }
    if (int error = io_uring_queue_init_params(entries, &ring_, &parameters); error < 0)
        return fail_errno(-error);
    open_ = true;
    ends_.prepare();
    if (!(parameters.features & IORING_FEAT_EXT_ARG)) return fail(errc::unsupported);
    // Saves a lookup of the ring's file in every system call; not having it is no harm.
    static_cast<void>(io_uring_register_ring_fd(&ring_));
    if (auto ready = receives_.open(ring_, stream_group, options.buffer_count, options.buffer_size);
        !ready)
        return ready;
    wake_fd_.reset(eventfd(0, EFD_CLOEXEC));
    if (!wake_fd_) return fail_errno();
    arm_wake();
    return {};
}

uring_backend::~uring_backend() {
    if (!open_) return;
    EDDY_PRECONDITION(drivers_.open == 0,
                      "a stream, listener or datagram socket outlived its loop: close it before "
                      "the loop ends");  // a handle that outlives its loop would use freed memory
    // Closed drivers wait for their last completions; each is on its way. An operation would make
    // this wait for ever.
    const time_point give_up = now() + end_patience;
    while (drivers_.existing > 0) {
        EDDY_ASSERT(now() < give_up);
        poll(give_up);
    }
    io_uring_queue_exit(&ring_);
}

time_point uring_backend::now() const noexcept { return std::chrono::steady_clock::now(); }

bool uring_backend::has_room_for_lock() const noexcept {
    return io_uring_sq_space_left(&ring_) >= loop_lock::max_requests;
}

io_uring_sqe& uring_backend::submission() noexcept {
    io_uring_sqe* entry = io_uring_get_sqe(&ring_);
    while (!entry) {
        // Only the loop's thread may submit. A thread under a loop_lock comes here only with more
        // than max_requests, and the kernel refuses (EEXIST). A negative result here (EBUSY,
        // EAGAIN) means the kernel wants completions reaped first; they are, in memory, by the
        // kernel's own overflow list, and submitting again succeeds.
        EDDY_ASSERT(is_usual(io_uring_submit(&ring_)));
        // With SQPOLL, submitting only notifies the kernel's thread, which may take its time.
        if (!deferred_) io_uring_sqring_wait(&ring_);
        entry = io_uring_get_sqe(&ring_);
    }
    return *entry;
}

void uring_backend::cancel_request(completion& target, completion* done) noexcept {
    io_uring_sqe& entry = submission();
    io_uring_prep_cancel(&entry, &target, 0);
    io_uring_sqe_set_data(&entry, done);
}

bool uring_backend::poll(time_point until) {
    const int outcome = enter_kernel(until);
    EDDY_ASSERT(is_usual(outcome));
    if (until != time_point::min()) note_wake();
    return reap();
}

int uring_backend::enter_kernel(time_point until) {
    const auto submit = [this] {
        return deferred_ ? io_uring_submit_and_get_events(&ring_) : io_uring_submit(&ring_);
    };
    if (mutex() == nullptr && until == time_point::min()) return submit();
    __kernel_timespec timeout{};
    if (until != time_point::min() && until != time_point::max()) {
        const time_point present = now();
        const std::int64_t left = until > present ? (until - present).count() : 0;
        timeout = {left / 1'000'000'000, left % 1'000'000'000};
    }
    io_uring_cqe* first = nullptr;
    if (mutex() != nullptr) [[unlikely]] {
        // Entries that a thread writes under a loop_lock must not be published half written:
        // nothing is submitted while the loop is unlocked.
        const int sent = submit();
        const bool is_all = sent >= 0 && io_uring_sq_ready(&ring_) == 0;
        const detail::loop_unlock pause(mutex());
        if (until == time_point::min() || !is_all) return sent;
        return io_uring_wait_cqes(&ring_, &first, 1,
                                  until == time_point::max() ? nullptr : &timeout, nullptr);
    }
    if (until == time_point::max()) return io_uring_submit_and_wait(&ring_, 1);
    return io_uring_submit_and_wait_timeout(&ring_, &first, 1, &timeout, nullptr);
}

// An exception half way would mean to complete the same operations again.
bool uring_backend::reap() noexcept {
    unsigned head = 0;
    unsigned count = 0;
    io_uring_cqe* entry = nullptr;
    io_uring_for_each_cqe(&ring_, head, entry) {
        ++count;
        auto* done = reinterpret_cast<completion*>(static_cast<std::uintptr_t>(entry->user_data));
        if (done) done->on_completion(entry->res, entry->flags);
    }
    io_uring_cq_advance(&ring_, count);
    return count > 0;
}

void uring_backend::wake() noexcept {
    const std::uint64_t one = 1;
    // It can only fail when the counter is full, and then the loop wakes anyway.
    [[maybe_unused]] const ssize_t written = write(wake_fd_.get(), &one, sizeof(one));
}

void uring_backend::arm_wake() {
    io_uring_sqe& entry = submission();
    io_uring_prep_read(&entry, wake_fd_.get(), &wake_count_, sizeof(wake_count_), 0);
    io_uring_sqe_set_data(&entry, &wake_done_);
}

void uring_backend::on_wake(int, unsigned) { arm_wake(); }

result<std::unique_ptr<socket_bank>> uring_backend::open_socket_bank(
    const socket_bank_options& options, bank_observer& to) {
    if (options.direct_descriptors)
        if (auto made = uring_socket_bank::open(*this, drivers_, options, to)) return made;
    return epoll_socket_bank::open(*this, drivers_, options, to);
}

result<listener> uring_backend::listen(const endpoint& local, const listen_options& options) {
    auto opened = open_listener(local, options, false);
    if (!opened) return fail(opened.error());
    return listener(*new uring_listener(*this, std::move(*opened)));
}

result<listener> uring_backend::adopt_listener(unique_fd socket) {
    auto adopted = eddy::adopt_listener(std::move(socket));
    if (!adopted) return fail(adopted.error());
    if (auto ready = make_blocking(adopted->socket.get()); !ready) return fail(ready.error());
    return listener(*new uring_listener(*this, std::move(*adopted)));
}

result<datagram> uring_backend::make_datagram(unique_fd socket) noexcept try {
    if (!messages_.is_open())
        if (auto ready =
                messages_.open(ring_, message_group, message_count_, message_spares_.buffer_size());
            !ready)
            return fail(ready.error());
    return datagram(*new uring_datagram(*this, std::move(socket)));
} catch (const std::bad_alloc&) {
    return fail_errno(ENOMEM);
}

result<datagram> uring_backend::open_datagram(const endpoint& local, const endpoint& peer,
                                              const datagram_options& options) {
    auto socket = eddy::open_datagram(local, peer, options, false);
    if (!socket) return fail(socket.error());
    return make_datagram(std::move(*socket));
}

result<datagram> uring_backend::adopt_datagram(unique_fd socket) {
    if (auto ready = make_blocking(socket.get()); !ready) return fail(ready.error());
    return make_datagram(std::move(socket));
}

result<stream> uring_backend::wrap(unique_fd socket) noexcept try {
    return stream(*new uring_stream(*this, std::move(socket)));
} catch (const std::bad_alloc&) {
    return fail_errno(ENOMEM);
}

result<stream> uring_backend::adopt(unique_fd socket) {
    const auto pipe_like = is_pipe_like(socket.get());
    if (!pipe_like) return fail(pipe_like.error());
    if (*pipe_like)
        return make_posix_pipe(*this, spares_, drivers_, std::move(socket), pipe_origin::foreign);
    if (auto ready = make_blocking(socket.get()); !ready) return fail(ready.error());
    return wrap(std::move(socket));
}

result<stream> uring_backend::adopt_own(unique_fd pipe_end) {
    return make_posix_pipe(*this, spares_, drivers_, std::move(pipe_end), pipe_origin::own);
}

bool uring_backend::start(connect_operation& op) {
    // A Unix socket connects at once, unless the backlog is full. That is EAGAIN, as on epoll: the
    // kernel would block a thread for each connect that waits.
    const bool at_once = op.peer().is_unix();
    auto socket = open_for_connect(op.peer(), op.from(), at_once);
    if (!socket) {
        op.set_error(socket.error());
        return true;
    }
    if (at_once) {
        if (connect(socket->get(), op.peer().data(), op.peer().size()) < 0) {
            op.set_error(errno_code(errno));
            return true;
        }
        auto connected = adopt(std::move(*socket));
        if (connected)
            op.set_connected(std::move(*connected));
        else
            op.set_error(connected.error());
        return true;
    }
    op.socket() = std::move(*socket);
    io_uring_sqe& entry = submission();
    io_uring_prep_connect(&entry, op.socket().get(), op.peer().data(), op.peer().size());
    io_uring_sqe_set_data(&entry, &op.when_done());
    return false;
}

void uring_backend::cancel(connect_operation& op) noexcept {
    cancel_request(op.when_done(), nullptr);
}

void uring_backend::start_poll(int fd, readiness wanted, completion& done) {
    io_uring_sqe& entry = submission();
    const unsigned events = wanted == readiness::readable   ? POLLIN
                            : wanted == readiness::writable ? POLLOUT
                                                            : POLLRDHUP;
    io_uring_prep_poll_add(&entry, fd, events);
    io_uring_sqe_set_data(&entry, &done);
}

void uring_backend::cancel_poll(completion& done) noexcept { cancel_request(done, nullptr); }

void uring_backend::start_file(const file_request& what, completion& done) {
    io_uring_sqe& entry = submission();
    const auto size = static_cast<unsigned>(what.size);
    switch (what.what) {
        case file_request::action::read:
            io_uring_prep_read(&entry, what.fd, what.data, size, what.offset);
            break;
        case file_request::action::write:
            io_uring_prep_write(&entry, what.fd, what.data, size, what.offset);
            break;
        case file_request::action::sync: io_uring_prep_fsync(&entry, what.fd, 0); break;
        case file_request::action::sync_data:
            io_uring_prep_fsync(&entry, what.fd, IORING_FSYNC_DATASYNC);
            break;
    }
    io_uring_sqe_set_data(&entry, &done);
}

}  // namespace eddy
