// Listening and connecting over TCP, and the race between a host's addresses.
#include <eddy/net/tcp.hpp>

#include <eddy/io/scope.hpp>
#include <eddy/io/timeout.hpp>
#include <eddy/net/resolver.hpp>

#include "io/posix/sockets.hpp"
#include "net/address.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace eddy::tcp {
namespace {

result<> set(int fd, int level, int option, int value) noexcept {
    if (::setsockopt(fd, level, option, &value, sizeof(value)) < 0) return fail_errno();
    return {};
}

int seconds(std::chrono::seconds time) noexcept {
    constexpr int most = 32767;  // MAX_TCP_KEEPIDLE and MAX_TCP_KEEPINTVL
    return static_cast<int>(std::clamp<std::chrono::seconds::rep>(time.count(), 1, most));
}

/// How far an attempt came: errors of a machine without that address family say nothing about the
/// peer.
int progress(std::error_code error) noexcept {
    for (int local : {EAFNOSUPPORT, EADDRNOTAVAIL, ENETUNREACH, EACCES, EPERM, EINVAL})
        if (error == errno_code(local)) return 1;
    return error == errno_code(EHOSTUNREACH) ? 2 : 3;
}

/// The attempts to reach one host. Each address starts when the one before has failed or has kept
/// the others waiting for too long.
class connection_race final : private timer {
public:
    connection_race(cancel_source* parent, std::vector<endpoint> addresses, duration delay)
        : attempts_(parent), addresses_(std::move(addresses)), delay_(delay) {}
    ~connection_race() { loop::current().disarm(*this); }

    void begin() { start_next(); }
    joining finish() noexcept { return attempts_.join(); }

    result<stream> outcome() noexcept {
        if (winner_) return std::move(winner_);
        return fail(error_ ? error_ : make_error_code(errc::cancelled));
    }

private:
    void start_next() {
        loop::current().disarm(*this);
        if (decided_ || next_ == addresses_.size()) return;
        const endpoint& peer = addresses_[next_++];
        if (next_ < addresses_.size()) loop::current().arm(*this, loop::current().now() + delay_);
        attempts_.spawn(attempt(*this, peer));
    }
    void fire() noexcept override { start_next(); }

    static task<void> attempt(connection_race& race, endpoint peer) {
        auto connected = co_await loop::current().connect(peer);
        if (connected) {
            // One that comes second closes as it goes out of scope.
            if (race.decided_) co_return;
            race.winner_ = std::move(*connected);
            race.decide();
        } else if (connected.error() == errc::cancelled) {
            race.decide();
        } else {
            if (!race.error_ || progress(connected.error()) > progress(race.error_))
                race.error_ = connected.error();
            race.start_next();
        }
    }
    void decide() noexcept {
        decided_ = true;
        loop::current().disarm(*this);
        attempts_.cancel();
    }

    scope attempts_;
    std::vector<endpoint> addresses_;
    std::size_t next_ = 0;
    duration delay_;
    stream winner_;
    std::error_code error_;
    bool decided_ = false;
};

task<result<stream>> race(std::vector<endpoint> addresses, duration delay) {
    if (addresses.empty()) co_return fail(errc::bad_address);
    connection_race attempts(co_await current_source(), std::move(addresses), delay);
    attempts.begin();
    co_await attempts.finish();
    co_return attempts.outcome();
}

task<result<stream>> race_and_apply(std::vector<endpoint> addresses, connect_options options) {
    auto connected = co_await race(std::move(addresses), options.attempt_delay);
    if (!connected) co_return connected;
    if (auto applied = apply(*connected, options.socket); !applied) co_return fail(applied.error());
    co_return connected;
}

task<result<stream>> resolve_and_race(std::string host, std::uint16_t port,
                                      connect_options options) {
    resolver& names = options.names ? *options.names : resolver::of_this_thread();
    auto addresses = co_await names.resolve(std::move(host), port);
    if (!addresses) co_return fail(addresses.error());
    co_return co_await race_and_apply(interleave_families(std::move(*addresses)), options);
}

}  // namespace

result<> apply(const stream& connection, const socket_options& options) noexcept {
    if (connection.native_handle() < 0) return {};
    return apply(connection.native_handle(), options);
}

result<> apply(int fd, const socket_options& options) noexcept {
    const int family = local_endpoint(fd).family();
    if (family != AF_INET && family != AF_INET6) return {};
    if (auto done = set(fd, IPPROTO_TCP, TCP_NODELAY, options.nodelay); !done) return done;
    if (auto done = set(fd, SOL_SOCKET, SO_KEEPALIVE, options.keepalive); !done) return done;
    if (options.keepalive) {
        const int probes = std::clamp(options.keepalive_probes, 1, 127);
        if (auto done = set(fd, IPPROTO_TCP, TCP_KEEPIDLE, seconds(options.keepalive_idle)); !done)
            return done;
        if (auto done = set(fd, IPPROTO_TCP, TCP_KEEPINTVL, seconds(options.keepalive_interval));
            !done)
            return done;
        if (auto done = set(fd, IPPROTO_TCP, TCP_KEEPCNT, probes); !done) return done;
    }
    if (options.send_buffer > 0)
        if (auto done = set(fd, SOL_SOCKET, SO_SNDBUF, options.send_buffer); !done) return done;
    if (options.receive_buffer > 0)
        if (auto done = set(fd, SOL_SOCKET, SO_RCVBUF, options.receive_buffer); !done) return done;
    return {};
}

result<listener> listen(std::string_view address, std::uint16_t port,
                        const listen_options& options) {
    const auto local = address_to_bind(address, port);
    if (!local) return fail(local.error());
    return loop::current().listen(*local, options);
}

task<result<stream>> connect_any(std::vector<endpoint> addresses, connect_options options) {
    return with_timeout(options.timeout, race_and_apply(std::move(addresses), options));
}

task<result<stream>> connect(std::string host, std::uint16_t port, connect_options options) {
    return with_timeout(options.timeout, resolve_and_race(std::move(host), port, options));
}

task<result<stream>> connect(std::string_view host, std::uint16_t port) {
    return connect(std::string(host), port, connect_options());
}

std::vector<endpoint> interleave_families(std::vector<endpoint> addresses) {
    const auto next_of = [&addresses](std::size_t from, bool six) {
        while (from < addresses.size() && (addresses[from].family() == AF_INET6) != six) ++from;
        return from;
    };
    std::vector<endpoint> mixed;
    mixed.reserve(addresses.size());
    std::size_t six = next_of(0, true);
    std::size_t other = next_of(0, false);
    while (mixed.size() < addresses.size()) {
        if (six < addresses.size()) {
            mixed.push_back(addresses[six]);
            six = next_of(six + 1, true);
        }
        if (other < addresses.size()) {
            mixed.push_back(addresses[other]);
            other = next_of(other + 1, false);
        }
    }
    return mixed;
}

}  // namespace eddy::tcp
