// Connections for threads: calls that return at once, and waits that spin and then sleep.
#include <eddy/shm/connection.hpp>

#include <eddy/base/assert.hpp>

#include "shm/connection_state.hpp"
#include "shm/futex.hpp"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

namespace eddy::shm {
namespace {

using state = connection_state;

/// Polls of the ring before the first reading of the clock: about a microsecond.
constexpr int quick_looks = 40;
/// Polls between two readings of the clock, and checks of what else ends a wait.
constexpr int looks_between = 32;
/// Bytes of a message up to which lines for the next ones are claimed, whatever came before.
constexpr std::size_t small_write = 256;

/// Polls some times.
bool comes_soon(const auto& has_come) noexcept {
    for (int i = 0; i < looks_between; ++i) {
        if (has_come()) return true;
        relax();
    }
    return false;
}

time_point deadline_of(duration limit) noexcept {
    // Without reading the clock, which takes as long as the rest of a write.
    if (limit == duration::max()) return time_point::max();
    const time_point now = clock_now();
    return limit < time_point::max() - now ? now + limit : time_point::max();
}

duration left_until(time_point deadline) noexcept {
    if (deadline == time_point::max()) return duration::max();
    return std::max(deadline - clock_now(), duration::zero());
}

void ring_socket(int socket) noexcept {
    // A socket that is full has been signalled already.
    static_cast<void>(::send(socket, "!", 1, MSG_DONTWAIT | MSG_NOSIGNAL));
}

void wake_reader(const state& of) noexcept {
    if (of.shared->peer_doorbell() == EDDY_SHM_DOORBELL_FUTEX)
        futex_wake(of.shared->raise_reader_bell());
    else
        ring_socket(of.life->socket());
}

void wake_writer(const state& of) noexcept {
    if (of.shared->peer_doorbell() == EDDY_SHM_DOORBELL_FUTEX)
        futex_wake(of.shared->raise_writer_bell());
    else
        ring_socket(of.life->socket());
}

// ---- reading

/// The error that ends reading while there are no bytes; none while more may come.
std::error_code read_end(const state& of) noexcept {
    if (of.life->is_closed()) return errc::closed;
    // Read before the end of the ring, so that bytes that a peer published before it died are
    // found.
    const bool is_gone = of.life->is_peer_gone();
    const auto ended = of.shared->is_at_end();
    if (!ended) return ended.error();
    if (*ended) return errc::end_of_stream;
    if (!is_gone) return {};
    const auto left = of.shared->bytes();
    if (!left) return left.error();
    return left->empty() ? errno_code(ECONNRESET) : std::error_code();
}

/// Waits until there are bytes to read, or an error.
result<> wait_for_bytes(state& of, time_point deadline) noexcept {
    channel& shared = *of.shared;
    const auto has_come = [&shared]() noexcept {
        const auto found = shared.bytes();
        return !found || !found->empty();
    };
    // For a peer that only writes, the line would be fetched just before the peer writes to it.
    const bool has_written = !of.alternates.load(std::memory_order_relaxed);
    if (has_written) of.alternates.store(true, std::memory_order_relaxed);
    const bool may_spin = of.reading.may_spin(shared.peer_processor());
    for (int i = 0; may_spin && i < quick_looks; ++i) {
        if (has_come()) return {};
        if (has_written) shared.fetch_bytes();
        relax();
    }
    if (shared.settle()) wake_writer(of);
    const time_point begun = clock_now();
    const duration spin = may_spin ? of.reading.budget() : duration::zero();
    time_point now = begun;
    for (; !has_come(); now = clock_now()) {
        if (const auto end = read_end(of)) return fail(end);
        if (now >= deadline) return fail(errc::timed_out);
        if (now - begun < spin) {
            // The clock is not read after bytes have come: that would delay them.
            if (comes_soon(has_come)) break;
            continue;
        }
        shared.set_processor(this_processor() - 1);
        const std::uint32_t seen = __atomic_load_n(shared.reader_bell(), __ATOMIC_ACQUIRE);
        of.life->begin_sleep();
        if (shared.arm_reader()) wake_writer(of);
        if (!has_come() && !read_end(of))
            futex_wait(shared.reader_bell(), seen, left_until(deadline));
        of.life->end_sleep();
        shared.disarm_reader();
    }
    of.reading.note(now - begun);
    return {};
}

// ---- writing

bool may_write(const state& of) noexcept {
    return !of.life->is_peer_gone() && !of.shared->is_finished() && !of.life->is_closed();
}
/// Reason when may_write() is false.
std::error_code write_end(const state& of) noexcept {
    // In this order: close() marks it closed, then finishes.
    const bool has_ended = of.life->is_peer_gone() || of.shared->is_finished();
    if (of.life->is_closed()) return errc::closed;
    return has_ended ? errno_code(EPIPE) : std::error_code();
}

/// True if one more packet may be written, with some bytes.
result<bool> has_room(state& of) noexcept {
    channel& shared = *of.shared;
    if (!of.packets.has_room(shared.read_by_peer(), shared.appended())) {
        if (auto looked = shared.look_at_tail(); !looked) return fail(looked.error());
        if (!of.packets.has_room(shared.read_by_peer(), shared.appended())) return false;
    }
    const auto found = shared.room();
    if (!found) return fail(found.error());
    return !found->empty();
}

result<> wait_for_room(state& of, time_point deadline) noexcept {
    channel& shared = *of.shared;
    const auto has_come = [&of]() noexcept {
        const auto found = has_room(of);
        return !found || *found;
    };
    const bool may_spin = of.writing.may_spin(shared.peer_processor());
    for (int i = 0; may_spin && i < quick_looks; ++i) {
        if (has_come()) return {};
        relax();
    }
    const time_point begun = clock_now();
    const duration spin = may_spin ? of.writing.budget() : duration::zero();
    time_point now = begun;
    for (; !has_come(); now = clock_now()) {
        if (const auto end = write_end(of)) return fail(end);
        if (now >= deadline) return fail(errc::timed_out);
        if (now - begun < spin) {
            // The clock is not read after room has come: that would delay the write.
            if (comes_soon(has_come)) break;
            continue;
        }
        const std::uint32_t seen = __atomic_load_n(shared.writer_bell(), __ATOMIC_ACQUIRE);
        of.life->begin_sleep();
        shared.arm_writer();
        if (!has_come() && !write_end(of))
            futex_wait(shared.writer_bell(), seen, left_until(deadline));
        of.life->end_sleep();
        shared.disarm_writer();
    }
    of.writing.note(now - begun);
    return {};
}

void flush_shared(state& of) noexcept {
    if (of.unflushed == 0) return;
    of.unflushed = 0;
    of.packets.add(of.shared->appended());
    if (of.shared->publish()) wake_reader(of);
}

// ---- over the socket

/// Waits until the socket is ready; close() shuts it down, which ends the wait.
result<> wait_for_socket(const state& of, short events, time_point deadline) noexcept {
    const duration left = left_until(deadline);
    if (left == duration::zero()) return fail(errc::timed_out);
    pollfd watched{of.life->socket(), events, 0};
    const timespec time{static_cast<time_t>(left.count() / 1'000'000'000),
                        static_cast<long>(left.count() % 1'000'000'000)};
    static_cast<void>(::ppoll(&watched, 1, left == duration::max() ? nullptr : &time, nullptr));
    if (of.life->is_closed()) return fail(errc::closed);
    return {};
}

result<std::size_t> receive(const state& of, mutable_bytes into) noexcept {
    if (of.life->is_closed()) return fail(errc::closed);
    if (into.empty()) return 0;
    const ssize_t size = ::recv(of.life->socket(), into.data(), into.size(), MSG_DONTWAIT);
    if (size > 0) return static_cast<std::size_t>(size);
    if (size == 0) return fail(errc::end_of_stream);
    if (errno == EAGAIN || errno == EINTR) return 0;
    return fail_errno();
}

/// Bytes that receive() finds; 0 if the kernel cannot say.
std::size_t unread(const state& of) noexcept {
    int size = 0;
    if (of.life->is_closed()) return 0;
    if (::ioctl(of.life->socket(), FIONREAD, &size) < 0 || size < 0) return 0;
    return static_cast<std::size_t>(size);
}

result<std::size_t> send(const state& of, const_bytes bytes) noexcept {
    if (of.life->is_closed()) return fail(errc::closed);
    if (bytes.empty()) return 0;
    const ssize_t size =
        ::send(of.life->socket(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (size >= 0) return static_cast<std::size_t>(size);
    if (errno == EAGAIN || errno == EINTR) return 0;
    return fail_errno();
}

}  // namespace

connection_state::~connection_state() {
    if (made_in.is_here())
        life->set_channel(nullptr);
    else
        life->drop_copy();
}

offer offer_of(const connection_options& wanted) noexcept {
    offer made;
    made.ring_size = wanted.ring_size;
    made.position = wanted.first_position;
    made.shares_memory = wanted.share_memory;
    made.is_asymmetric = wanted.asymmetric_fence;
    made.doorbell = EDDY_SHM_DOORBELL_FUTEX;
    return made;
}

result<> check(const connection_options& wanted) noexcept {
    if (!is_ring_size(wanted.ring_size) || !is_first_position(wanted.first_position) ||
        wanted.max_packets > most_packets)
        return fail_errno(EINVAL);
    return {};
}

result<std::unique_ptr<connection_state>> make_state(unique_fd socket, exchange& over,
                                                     const connection_options& wanted) {
    auto made = std::make_unique<state>(std::move(socket), wanted);
    made->shared = over.take_channel();
    if (!made->shared) return made;
    made->life->set_channel(made->shared.get());
    if (auto started = start_watching(); !started) return fail(started.error());
    return made;
}

connection::connection() noexcept = default;
connection::connection(std::unique_ptr<connection_state> made) noexcept : state_(std::move(made)) {}
connection::connection(connection&& other) noexcept = default;
connection& connection::operator=(connection&& other) noexcept {
    if (this != &other) {
        close();
        state_ = std::move(other.state_);
    }
    return *this;
}
connection::~connection() { close(); }

bool connection::is_usable() const noexcept { return state_ && state_->made_in.is_here(); }
bool connection::is_open() const noexcept { return is_usable() && !state_->life->is_closed(); }
bool connection::shares_memory() const noexcept { return state_ && state_->shared; }
int connection::native_handle() const noexcept { return state_ ? state_->life->socket() : -1; }

result<std::size_t> connection::try_read(mutable_bytes into) noexcept {
    if (!is_usable()) return fail(errc::closed);
    if (!state_->shared) return receive(*state_, into);
    bool wakes = false;
    const auto size = state_->shared->read(into, wakes);
    if (wakes) wake_writer(*state_);
    if (!size || *size > 0) return size;
    if (state_->shared->settle()) wake_writer(*state_);
    if (into.empty()) return 0;
    if (const auto end = read_end(*state_)) return fail(end);
    return 0;
}

// Flattened, like the other functions that move bytes: calls between them took a third of a round
// trip of 0.2 µs.
[[gnu::flatten]] result<std::size_t> connection::read_some(mutable_bytes into,
                                                           duration limit) noexcept {
    if (!is_usable()) return fail(errc::closed);
    if (into.empty()) return 0;
    const time_point deadline = deadline_of(limit);
    for (;;) {
        if (!state_->shared) {
            const auto size = receive(*state_, into);
            if (!size || *size > 0) return size;
            if (auto waited = wait_for_socket(*state_, POLLIN, deadline); !waited)
                return fail(waited.error());
            continue;
        }
        bool wakes = false;
        const auto size = state_->shared->read(into, wakes);
        if (wakes) wake_writer(*state_);
        if (!size || *size > 0) return size;
        if (auto waited = wait_for_bytes(*state_, deadline); !waited) return fail(waited.error());
    }
}

[[gnu::flatten]] result<> connection::read_exactly(mutable_bytes into, duration limit) noexcept {
    const time_point deadline = deadline_of(limit);
    bool has_some = false;
    while (!into.empty()) {
        const auto size = read_some(into, left_until(deadline));
        if (!size && size.error() == errc::end_of_stream && has_some) return fail(errc::truncated);
        if (!size) return fail(size.error());
        into = into.subspan(*size);
        has_some = true;
    }
    return {};
}

result<const_bytes> connection::peek() noexcept {
    if (!is_usable()) return fail(errc::closed);
    if (!state_->shared) return fail(errc::unsupported);
    const auto found = state_->shared->all_bytes();
    if (!found || !found->empty()) return found;
    if (state_->shared->settle()) wake_writer(*state_);
    if (const auto end = read_end(*state_)) return fail(end);
    return state_->shared->bytes();
}

result<const_bytes> connection::peek_some(duration limit) noexcept {
    if (!is_usable()) return fail(errc::closed);
    if (!state_->shared) return fail(errc::unsupported);
    const time_point deadline = deadline_of(limit);
    for (;;) {
        const auto found = state_->shared->bytes();
        if (!found || !found->empty()) return found;
        if (auto waited = wait_for_bytes(*state_, deadline); !waited) return fail(waited.error());
    }
}

void connection::consume(std::size_t size) noexcept {
    EDDY_ASSERT(state_ && state_->shared);
    if (!is_usable()) return;
    if (state_->shared->consume(size)) wake_writer(*state_);
}

std::size_t connection::available() noexcept {
    if (!is_usable()) return 0;
    if (!state_->shared) return unread(*state_);
    const auto found = state_->shared->all_bytes();
    return found ? found->size() : 0;
}

[[gnu::flatten]] result<std::size_t> connection::try_write(const_bytes bytes) noexcept {
    if (!is_usable()) return fail(errc::closed);
    if (!state_->shared) return send(*state_, bytes);
    if (!may_write(*state_)) return fail(write_end(*state_));
    const auto free = has_room(*state_);
    if (!free) return fail(free.error());
    if (!*free || bytes.empty()) return 0;
    const auto found = state_->shared->room(bytes.size());
    if (!found) return fail(found.error());
    const std::size_t size = std::min(found->size(), bytes.size());
    std::memcpy(found->data(), bytes.data(), size);
    append(size);
    flush_shared(*state_);
    // Many large messages in a row are faster without.
    const bool alternates = state_->alternates.load(std::memory_order_relaxed);
    if (alternates || size <= small_write) state_->shared->claim_room(alternates);
    if (alternates) state_->alternates.store(false, std::memory_order_relaxed);
    return size;
}

[[gnu::flatten]] result<> connection::write_all(const_bytes bytes, duration limit) noexcept {
    const time_point deadline = deadline_of(limit);
    while (!bytes.empty()) {
        const auto size = try_write(bytes);
        if (!size) return fail(size.error());
        bytes = bytes.subspan(*size);
        if (*size > 0) continue;
        const auto waited = state_->shared ? wait_for_room(*state_, deadline)
                                           : wait_for_socket(*state_, POLLOUT, deadline);
        if (!waited) return fail(waited.error());
    }
    return {};
}

result<mutable_bytes> connection::room() noexcept {
    if (!is_usable()) return fail(errc::closed);
    if (!state_->shared) return mutable_bytes();
    if (!may_write(*state_)) return fail(write_end(*state_));
    const auto free = has_room(*state_);
    if (!free) return fail(free.error());
    if (!*free) return mutable_bytes();
    return state_->shared->room();
}

void connection::append(std::size_t size) noexcept {
    EDDY_ASSERT(state_ && state_->shared);
    state_->shared->append(size);
    state_->unflushed += size;
}

result<> connection::flush() noexcept {
    if (!is_usable()) return fail(errc::closed);
    if (!state_->shared) return {};
    if (!may_write(*state_)) return fail(write_end(*state_));
    flush_shared(*state_);
    return {};
}

result<> connection::shutdown_write() noexcept {
    if (!is_open()) return fail(errc::closed);
    if (!state_->shared) {
        if (::shutdown(state_->life->socket(), SHUT_WR) < 0) return fail_errno();
        return {};
    }
    if (state_->shared->is_finished()) return {};
    flush_shared(*state_);
    if (state_->shared->finish()) wake_reader(*state_);
    return {};
}

void connection::close() noexcept {
    if (!is_open()) return;
    // Before the end, so that a write that it cuts off fails with errc::closed.
    state_->life->mark_closed();
    // The peer reads what is in the ring, and then this end.
    if (state_->shared && state_->shared->finish_from_any_thread()) wake_reader(*state_);
    // Ends waits over the socket, the watch, and the peer's.
    ::shutdown(state_->life->socket(), SHUT_RDWR);
}

void connection::abort() noexcept {
    if (!is_open()) return;
    state_->life->mark_closed();
    ::shutdown(state_->life->socket(), SHUT_RDWR);
}

}  // namespace eddy::shm
