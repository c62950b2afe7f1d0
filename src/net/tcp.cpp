// TCP: listening, connecting, and the race between a host's addresses.
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
#include <limits>
#include <new>
#include <utility>

namespace eddy::tcp {
namespace {

result<> set(int fd, int level, int option, int value) noexcept {
    if (::setsockopt(fd, level, option, &value, sizeof(value)) < 0) return fail_errno();
    return {};
}

/// close(2) of such a socket waits for the peer, non-blocking or not, and the loop with it.
bool waits_at_close(const socket_options& options) noexcept {
    return options.linger && *options.linger > std::chrono::seconds(0);
}

int seconds(std::chrono::seconds time) noexcept {
    constexpr int most = 32767;  // MAX_TCP_KEEPIDLE and MAX_TCP_KEEPINTVL
    return static_cast<int>(std::clamp<std::chrono::seconds::rep>(time.count(), 1, most));
}

/// Progress of an attempt: errors of a machine without that address family imply nothing about the
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
    /// `local` must live until finish() has ended.
    connection_race(cancel_source* parent, std::vector<endpoint> addresses,
                    const local_binding& local, duration delay)
        : attempts_(parent), addresses_(std::move(addresses)), local_(&local), delay_(delay) {}
    ~connection_race() { loop::current().disarm(*this); }

    void begin() { start_next(); }
    joining finish() noexcept { return attempts_.join(); }

    result<stream> outcome() noexcept {
        if (winner_) return std::move(winner_);
        return fail(error_ ? error_ : make_error_code(errc::cancelled));
    }

private:
    void start_next() noexcept {
        loop::current().disarm(*this);
        if (decided_ || next_ == addresses_.size()) return;
        const endpoint& peer = addresses_[next_++];
        if (next_ < addresses_.size()) loop::current().arm(*this, loop::current().after(delay_));
        try {
            attempts_.spawn(attempt(*this, peer));
        } catch (const std::bad_alloc&) {
            // Attempts under way may still succeed.
            note(errno_code(ENOMEM));
        }
    }
    void note(std::error_code error) noexcept {
        if (!error_ || progress(error) > progress(error_)) error_ = error;
    }
    void fire() noexcept override { start_next(); }

    static task<void> attempt(connection_race& race, endpoint peer) {
        auto connected = co_await loop::current().connect(peer, *race.local_);
        if (connected) {
            // One that comes second closes as it goes out of scope.
            if (race.decided_) co_return;
            race.winner_ = std::move(*connected);
            race.decide();
        } else if (connected.error() == errc::cancelled) {
            // The others' errors are not the reason for its end.
            if (!race.decided_) race.error_ = errc::cancelled;
            race.decide();
        } else {
            race.note(connected.error());
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
    const local_binding* local_;
    std::size_t next_ = 0;
    duration delay_;
    stream winner_;
    std::error_code error_;
    bool decided_ = false;
};

/// `local` must live until the end.
task<result<stream>> race(std::vector<endpoint> addresses, const local_binding& local,
                          duration delay) {
    if (addresses.empty()) co_return fail(errc::bad_address);
    connection_race attempts(co_await current_source(), std::move(addresses), local, delay);
    attempts.begin();
    co_await attempts.finish();
    co_return attempts.outcome();
}

task<result<stream>> race_and_apply(std::vector<endpoint> addresses, connect_options options) {
    if (waits_at_close(options.socket)) co_return fail(errc::unsupported);
    auto connected = co_await race(std::move(addresses), options.local, options.attempt_delay);
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

socket_options keepalive_after(std::chrono::seconds idle) noexcept {
    socket_options options;
    if (idle.count() <= 0) return options;
    options.keepalive = true;
    options.keepalive_idle = idle;
    options.keepalive_interval = std::max(idle / 3, std::chrono::seconds(1));
    options.keepalive_probes = 3;
    return options;
}

result<> apply(const stream& connection, const socket_options& options) noexcept {
    if (waits_at_close(options)) return fail(errc::unsupported);
    const int socket = connection.driver().option_handle();
    if (socket < 0) return {};
    return apply(socket, options);
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
    if (options.linger) {
        const auto most = std::chrono::seconds(std::numeric_limits<int>::max() / 1000);
        linger how{};
        how.l_onoff = 1;
        how.l_linger =
            static_cast<int>(std::clamp(*options.linger, std::chrono::seconds(0), most).count());
        if (::setsockopt(fd, SOL_SOCKET, SO_LINGER, &how, sizeof(how)) < 0) return fail_errno();
    }
    if (options.user_timeout) {
        const auto most = std::chrono::milliseconds(std::numeric_limits<int>::max());
        const auto time = std::clamp(*options.user_timeout, std::chrono::milliseconds(0), most);
        if (auto done = set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(time.count()));
            !done)
            return done;
    }
    if (options.traffic_class >= 0) {
        // An IPv6 socket may carry IPv4, too, and takes the one option for each.
        if (family == AF_INET6)
            if (auto done = set(fd, IPPROTO_IPV6, IPV6_TCLASS, options.traffic_class); !done)
                return done;
        if (auto done = set(fd, IPPROTO_IP, IP_TOS, options.traffic_class); !done) return done;
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
