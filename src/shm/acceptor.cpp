// Connections for threads: connecting, accepting, and pairs.
#include <eddy/base/assert.hpp>
#include <eddy/io/endpoint.hpp>
#include <eddy/net/blocking.hpp>
#include <eddy/net/descriptors.hpp>
#include <eddy/shm/connection.hpp>

#include "io/posix/sockets.hpp"
#include "net/peer_process.hpp"
#include "shm/connection_state.hpp"
#include "shm/crowd.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <new>
#include <optional>
#include <utility>
#include <vector>

namespace eddy::shm {
namespace {

int milliseconds_of(duration time) noexcept {
    constexpr duration longest = std::chrono::hours(1);
    const duration counted = std::min(time, longest);
    return static_cast<int>((counted + std::chrono::microseconds(999)) /
                            std::chrono::milliseconds(1));
}

duration until(time_point deadline, time_point now) noexcept {
    if (deadline == time_point::max()) return duration::max();
    return std::max(deadline - now, duration::zero());
}

time_point after(duration time) noexcept {
    const time_point now = clock_now();
    return time < time_point::max() - now ? now + time : time_point::max();
}

short events_of(exchange::wait what) noexcept {
    return what == exchange::wait::writable ? POLLOUT : POLLIN;
}

/// Drives an exchange to its end.
result<> complete(exchange& with, int socket, duration limit) noexcept {
    const time_point deadline = after(limit);
    for (;;) {
        const auto next = with.step();
        if (!next) return fail(next.error());
        if (*next == exchange::wait::none) return {};
        const duration left = until(deadline, clock_now());
        if (left == duration::zero()) return fail(errc::timed_out);
        pollfd watched{socket, events_of(*next), 0};
        static_cast<void>(::poll(&watched, 1, milliseconds_of(left)));
    }
}

result<unique_fd> connect_socket(const endpoint& to, duration limit) {
    auto plain = blocking::connect(to, limit);
    if (!plain) return fail(plain.error());
    return plain->release();
}

}  // namespace

result<connection> connection::connect(std::string_view path,
                                       const connection_options& wanted) try {
    if (auto usable = check(wanted); !usable) return fail(usable.error());
    const auto to = endpoint::unix_path(path);
    if (!to) return fail(to.error());
    auto socket = connect_socket(*to, wanted.handshake_timeout);
    if (!socket) return fail(socket.error());
    if (!unix_socket::has_allowed_peer(socket->get(), wanted.server_users))
        return fail_errno(EACCES);
    exchange with(side::client, socket->get(), offer_of(wanted));
    if (auto done = complete(with, socket->get(), wanted.handshake_timeout); !done)
        return fail(done.error());
    auto made = make_state(std::move(*socket), with, wanted);
    if (!made) return fail(made.error());
    return connection(std::move(*made));
} catch (const std::bad_alloc&) {
    return fail_errno(ENOMEM);
}

result<std::pair<connection, connection>> connection::pair(const connection_options& wanted) try {
    if (auto usable = check(wanted); !usable) return fail(usable.error());
    int numbers[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, numbers) < 0) return fail_errno();
    unique_fd sockets[2] = {unique_fd(numbers[0]), unique_fd(numbers[1])};
    exchange first(side::client, numbers[0], offer_of(wanted));
    exchange second(side::server, numbers[1], offer_of(wanted));
    // The first sends; the second has both messages; then so has the first.
    for (exchange* each : {&first, &second, &first})
        if (auto stepped = each->step(); !stepped) return fail(stepped.error());
    auto one = make_state(std::move(sockets[0]), first, wanted);
    if (!one) return fail(one.error());
    auto other = make_state(std::move(sockets[1]), second, wanted);
    if (!other) return fail(other.error());
    return std::pair(connection(std::move(*one)), connection(std::move(*other)));
} catch (const std::bad_alloc&) {
    return fail_errno(ENOMEM);
}

// ---- accepting

struct acceptor::state {
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
    static void give_up(const guest& one) noexcept {
        unix_socket::refuse_descriptors(one.socket.get());
    }

    explicit state(const connection_options& chosen) : wanted(chosen) {}
    ~state() {
        for (const guest& each : guests) give_up(each);
        remove_socket_file(local, listening.file);
    }

    void take_waiting(std::size_t most);
    void begin(unique_fd socket);
    result<std::optional<connection>> step(std::size_t index);
    void drop_late(time_point now);
    time_point next_deadline(time_point last) const noexcept;

    connection_options wanted;
    endpoint local;
    opened_listener listening;
    std::vector<guest> guests;
    std::atomic<bool> is_closed{false};
    std::atomic<std::uint64_t> failures{0};
    std::error_code failure;  // of accept(2), to be reported
};

/// Accepts at most `most` waiting connections.
void acceptor::state::take_waiting(std::size_t most) {
    while (most-- > 0) {
        unique_fd socket(::accept4(listening.socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
        if (!socket) {
            if (errno == EINTR || concerns_one_connection(errno)) continue;
            if (errno != EAGAIN) failure = errno_code(errno);
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
    if (guests.size() >= max_waiting_connections) {
        const auto chosen = most_crowding(guests, [](const guest& one) { return one.process; });
        give_up(*chosen);
        guests.erase(chosen);
        ++failures;
    }
    exchange with(side::server, socket.get(), offer_of(wanted));
    guests.push_back({std::move(socket), *process, std::move(with), exchange::wait::readable,
                      after(wanted.handshake_timeout)});
}

/// The connection, if the exchange of guest `index` is complete. The guest is then removed, as
/// after a failure of its own; an error is this process's.
result<std::optional<connection>> acceptor::state::step(std::size_t index) {
    guest& its = guests[index];
    const auto next = its.with.step();
    if (next && *next != exchange::wait::none) {
        its.next = *next;
        return std::nullopt;
    }
    guest over = std::move(its);
    guests.erase(guests.begin() + static_cast<std::ptrdiff_t>(index));
    if (!next) {
        ++failures;
        return std::nullopt;
    }
    auto made = make_state(std::move(over.socket), over.with, wanted);
    if (!made) return fail(made.error());
    return connection(std::move(*made));
}

void acceptor::state::drop_late(time_point now) {
    failures += std::erase_if(guests, [now](const guest& one) {
        if (one.deadline > now) return false;
        give_up(one);
        return true;
    });
}

time_point acceptor::state::next_deadline(time_point last) const noexcept {
    for (const guest& each : guests) last = std::min(last, each.deadline);
    return last;
}

acceptor::acceptor() noexcept = default;
acceptor::acceptor(std::unique_ptr<state> made) noexcept : state_(std::move(made)) {}
acceptor::acceptor(acceptor&& other) noexcept = default;
acceptor& acceptor::operator=(acceptor&& other) noexcept = default;
acceptor::~acceptor() = default;

result<acceptor> acceptor::listen(std::string_view path, const connection_options& wanted) try {
    if (auto usable = check(wanted); !usable) return fail(usable.error());
    const auto local = endpoint::unix_path(path);
    if (!local) return fail(local.error());
    auto made = std::make_unique<state>(wanted);
    eddy::listen_options options;
    if (!path.starts_with('@')) options.unix_mode = wanted.mode;
    auto opened = open_listener(*local, options, true);
    if (!opened) return fail(opened.error());
    made->local = *local;
    made->listening = std::move(*opened);
    return acceptor(std::move(made));
} catch (const std::bad_alloc&) {
    return fail_errno(ENOMEM);
}

result<connection> acceptor::accept(duration limit) try {
    if (!state_) return fail(errc::closed);
    state& its = *state_;
    const time_point deadline = after(limit);
    std::vector<pollfd> watched;
    for (;;) {
        if (its.is_closed) return fail(errc::closed);
        // At the limit one by one: each guest has had a step before it may be dropped.
        const std::size_t room = max_waiting_connections - its.guests.size();
        its.take_waiting(std::max<std::size_t>(room, 1));
        for (std::size_t i = its.guests.size(); i-- > 0;) {
            auto stepped = its.step(i);
            if (!stepped) return fail(stepped.error());
            if (*stepped) return std::move(**stepped);
        }
        if (its.failure) return fail(std::exchange(its.failure, {}));
        const time_point now = clock_now();
        its.drop_late(now);
        if (now >= deadline) return fail(errc::timed_out);
        watched.clear();
        for (const state::guest& each : its.guests)
            watched.push_back({each.socket.get(), events_of(each.next), 0});
        watched.push_back({its.listening.socket.get(), POLLIN, 0});
        const duration left = until(its.next_deadline(deadline), now);
        static_cast<void>(::poll(watched.data(), watched.size(), milliseconds_of(left)));
    }
} catch (const std::bad_alloc&) {
    return fail_errno(ENOMEM);
}

void acceptor::close() noexcept {
    if (!state_ || state_->is_closed.exchange(true)) return;
    // Ends a poll(2) of another thread.
    ::shutdown(state_->listening.socket.get(), SHUT_RDWR);
}

std::uint64_t acceptor::failures() const noexcept { return state_ ? state_->failures.load() : 0; }

}  // namespace eddy::shm
