// Listener of connections for threads. A thread of its own accepts and makes handshakes, so that a
// client can connect while the server does other things; accept() takes what is ready. The first
// accept() starts it: until then children of fork(2) may accept in the place of their parent.
#include <eddy/base/assert.hpp>
#include <eddy/base/random.hpp>
#include <eddy/io/endpoint.hpp>
#include <eddy/net/descriptors.hpp>
#include <eddy/shm/connection.hpp>

#include "io/posix/signals.hpp"
#include "io/posix/sockets.hpp"
#include "net/peer_process.hpp"
#include "shm/connection_state.hpp"
#include "shm/crowd.hpp"
#include "shm/deadlines.hpp"
#include "shm/origin.hpp"
#include "shm/port_names.hpp"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace eddy::shm {
namespace {

/// Pause after a failed accept(2): of those for want of descriptors or memory.
constexpr duration crowded_pause = std::chrono::milliseconds(5);

/// A peer with its exchange in progress.
struct guest {
    unique_fd socket;
    unix_socket::peer_process process;
    exchange with;
    exchange::wait next;
    time_point deadline;
};

/// Before the end of a guest with an incomplete exchange: closing the socket would drop queued
/// descriptors.
void give_up(const guest& one) noexcept { unix_socket::refuse_descriptors(one.socket.get()); }

}  // namespace

/// The thread of handshakes owns it, too.
struct acceptor::state {
    explicit state(const connection_options& chosen) : wanted(chosen) {
        guests.reserve(max_waiting_connections);
    }
    ~state() { end_listening(); }

    // ---- any thread

    /// False for the copy that a child of fork(2) has, without the thread.
    bool is_usable() const noexcept { return !has_begun || begun_in.is_here(); }
    /// Starts the thread; of an accepting one.
    static result<> begin_accepting(const std::shared_ptr<state>& self);
    result<connection> accept(time_point deadline);
    void close() noexcept;
    /// Then nothing listens any more.
    void close_and_wait() noexcept;
    /// A child closes its socket alone.
    void end_listening() noexcept;

    const connection_options wanted;
    const origin listened_in;
    endpoint local;
    opened_listener listening;
    std::atomic<std::uint64_t> failures{0};
    std::atomic<bool> has_begun{false};  // the thread runs, or did

private:
    void run() noexcept;
    bool has_room();
    void make_progress();
    void take_waiting();
    void begin(unique_fd socket);
    void step_all();
    result<std::optional<connection>> step(guest& its);
    void offer(connection made);
    void report(std::error_code error) noexcept;
    void drop_late(time_point now);
    void wait_for_peers();
    void end() noexcept;
    std::size_t count_ready() noexcept;

    origin begun_in;
    unique_fd wakeup;           // of the thread: eventfd(2)
    std::vector<guest> guests;  // oldest first; with those ready at most max_waiting_connections

    // ---- both, by the mutex

    std::mutex mutex;
    std::condition_variable changed;
    std::deque<connection> ready;
    std::error_code failure;  // for accept() that waits
    bool is_awaited = false;  // accept() waits
    bool is_closed = false;
    bool has_ended = false;  // the thread uses nothing more
};

// ---- the thread of handshakes

void acceptor::state::run() noexcept {
    while (has_room()) {
        try {
            make_progress();
        } catch (const std::bad_alloc&) {
            report(errno_code(ENOMEM));
        }
    }
    end();
}

/// Waits until one more connection may be ready. False once closed.
bool acceptor::state::has_room() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return is_closed || ready.size() < max_waiting_connections; });
    return !is_closed;
}

std::size_t acceptor::state::count_ready() noexcept {
    const std::scoped_lock lock(mutex);
    return ready.size();
}

void acceptor::state::make_progress() {
    take_waiting();
    step_all();
    drop_late(clock_now());
    wait_for_peers();
}

/// Accepts what has come. At the limit one by one: each guest has had a step before it may be
/// dropped.
void acceptor::state::take_waiting() {
    const std::size_t taken = guests.size() + count_ready();
    std::size_t most = std::max<std::size_t>(max_waiting_connections - taken, 1);
    while (most-- > 0) {
        unique_fd socket(::accept4(listening.socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
        if (!socket) {
            if (errno == EINTR || concerns_one_connection(errno)) continue;
            if (errno != EAGAIN) report(errno_code(errno));
            return;
        }
        begin(std::move(socket));
    }
}

void acceptor::state::begin(unique_fd socket) {
    const auto process = unix_socket::peer_of(socket.get());
    if (!process || !unix_socket::is_allowed(process->user, wanted.allowed_users)) {
        unix_socket::refuse_descriptors(socket.get());
        ++failures;
        return;
    }
    if (!guests.empty() && guests.size() + count_ready() >= max_waiting_connections) {
        const auto chosen = most_crowding(guests, [](const guest& one) { return one.process; });
        give_up(*chosen);
        guests.erase(chosen);
        ++failures;
    }
    exchange with(side::server, socket.get(), offer_of(wanted));
    guests.push_back({std::move(socket), *process, std::move(with), exchange::wait::readable,
                      deadline_after(wanted.handshake_timeout)});
}

void acceptor::state::step_all() {
    for (std::size_t i = 0; i < guests.size();) {
        auto stepped = step(guests[i]);
        if (stepped && !*stepped && guests[i].next != exchange::wait::none) {
            ++i;
            continue;
        }
        guests.erase(guests.begin() + static_cast<std::ptrdiff_t>(i));
        if (!stepped)
            report(stepped.error());
        else if (*stepped)
            offer(std::move(**stepped));
    }
}

/// The connection, if the exchange is complete. The guest has no next step then, as after a failure
/// of its own; an error is this process's.
result<std::optional<connection>> acceptor::state::step(guest& its) try {
    const auto next = its.with.step();
    its.next = next.value_or(exchange::wait::none);
    if (!next) {
        ++failures;
        return std::nullopt;
    }
    if (*next != exchange::wait::none) return std::nullopt;
    auto made = make_state(std::move(its.socket), its.with, wanted);
    if (!made) return fail(made.error());
    return connection(std::move(*made));
} catch (const std::bad_alloc&) {
    return fail_errno(ENOMEM);
}

void acceptor::state::offer(connection made) {
    const std::scoped_lock lock(mutex);
    ready.push_back(std::move(made));
    changed.notify_all();
}

/// An error of this process, for accept() if it waits, which passes.
void acceptor::state::report(std::error_code error) noexcept {
    std::unique_lock lock(mutex);
    if (is_awaited) failure = error;
    changed.notify_all();
    changed.wait_for(lock, crowded_pause, [this] { return is_closed; });
}

void acceptor::state::drop_late(time_point now) {
    failures += std::erase_if(guests, [now](const guest& one) {
        if (one.deadline > now) return false;
        give_up(one);
        return true;
    });
}

void acceptor::state::wait_for_peers() {
    pollfd watched[max_waiting_connections + 2];
    std::size_t count = 0;
    time_point next = time_point::max();
    for (const guest& each : guests) {
        watched[count++] = {each.socket.get(), events_of(each.next), 0};
        next = std::min(next, each.deadline);
    }
    watched[count++] = {listening.socket.get(), POLLIN, 0};
    watched[count++] = {wakeup.get(), POLLIN, 0};
    const duration left = left_until(next, clock_now());
    static_cast<void>(::poll(watched, count, milliseconds_of(left)));
}

void acceptor::state::end() noexcept {
    for (const guest& each : guests) give_up(each);
    guests.clear();
    const std::scoped_lock lock(mutex);
    // Their clients may have written: that is not received, so it is no orderly end.
    for (connection& each : ready) each.abort();
    ready.clear();
    end_listening();
    has_ended = true;
    changed.notify_all();
}

// ---- any thread

result<> acceptor::state::begin_accepting(const std::shared_ptr<state>& self) {
    const std::scoped_lock lock(self->mutex);
    if (self->has_begun || self->is_closed) return {};
    self->wakeup.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!self->wakeup) return fail_errno();
    self->begun_in = origin();
    const signals_blocked blocked;
    std::thread thread([self] { self->run(); });
    ::pthread_setname_np(thread.native_handle(), "eddy-shm-accept");
    // A child of fork(2) has no such thread, and could not join it.
    thread.detach();
    self->has_begun = true;
    return {};
}

void acceptor::state::end_listening() noexcept {
    if (listening.socket && listened_in.is_here()) remove_socket_file(local, listening.file);
    listening.socket.reset();
}

/// Without shutdown(2), which would end the listening of other processes at the socket, too.
void acceptor::state::close() noexcept {
    const std::scoped_lock lock(mutex);
    if (std::exchange(is_closed, true)) return;
    if (!has_begun) return end_listening();
    constexpr std::uint64_t one = 1;
    const ssize_t written = ::write(wakeup.get(), &one, sizeof(one));
    EDDY_ASSERT(written == sizeof(one));
    changed.notify_all();
}

void acceptor::state::close_and_wait() noexcept {
    close();
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return has_ended; });
}

result<connection> acceptor::state::accept(time_point deadline) {
    std::unique_lock lock(mutex);
    failure = {};
    is_awaited = true;
    const auto has_come = [this] { return is_closed || failure || !ready.empty(); };
    if (deadline == time_point::max())
        changed.wait(lock, has_come);
    else
        changed.wait_until(lock, deadline, has_come);
    is_awaited = false;
    if (is_closed) return fail(errc::closed);
    if (ready.empty()) return fail(failure ? failure : make_error_code(errc::timed_out));
    connection made = std::move(ready.front());
    ready.pop_front();
    changed.notify_all();
    return made;
}

acceptor::acceptor() noexcept = default;
acceptor::acceptor(std::shared_ptr<state> made) noexcept : state_(std::move(made)) {}
acceptor::acceptor(acceptor&& other) noexcept = default;
acceptor& acceptor::operator=(acceptor&& other) noexcept {
    if (this != &other) {
        end();
        state_ = std::move(other.state_);
    }
    return *this;
}
acceptor::~acceptor() { end(); }

void acceptor::end() noexcept {
    if (!state_) return;
    if (!state_->is_usable())
        state_->listening.socket.reset();  // the parent's thread, which has the rest, is not here
    else if (state_->has_begun)
        state_->close_and_wait();
    state_.reset();
}

result<acceptor> acceptor::listen(std::string_view path, const connection_options& wanted) try {
    if (auto usable = check(wanted); !usable) return fail(usable.error());
    auto made = std::make_shared<state>(wanted);
    eddy::listen_options options;
    if (has_file(path)) options.unix_mode = wanted.mode;
    random_generator dice(entropy_seed());
    auto opened = open_at(path, dice(), [&](const std::string& at) -> result<opened_listener> {
        const auto local = endpoint::unix_path(at);
        if (!local) return fail(local.error());
        made->local = *local;
        return open_listener(*local, options, true);
    });
    if (!opened) return fail(opened.error());
    made->listening = std::move(*opened);
    return acceptor(std::move(made));
} catch (const std::bad_alloc&) {
    return fail_errno(ENOMEM);
}

result<connection> acceptor::accept(duration limit) try {
    if (!state_ || !state_->is_usable()) return fail(errc::closed);
    const time_point deadline = deadline_after(limit);
    if (auto begun = state::begin_accepting(state_); !begun) return fail(begun.error());
    return state_->accept(deadline);
} catch (const std::bad_alloc&) {
    return fail_errno(ENOMEM);
} catch (const std::system_error& error) {
    return fail(error.code());
}

void acceptor::close() noexcept {
    if (state_ && state_->is_usable()) state_->close();
}

std::uint16_t acceptor::port() const noexcept { return state_ ? port_of(state_->local.host()) : 0; }

std::uint64_t acceptor::failures() const noexcept { return state_ ? state_->failures.load() : 0; }

}  // namespace eddy::shm
