// Virtual time, the event queue, and the sockets by address.
#include "io/sim/sim_backend.hpp"

#include "io/posix/sockets.hpp"
#include "io/sim/sim_datagram.hpp"
#include "io/sim/sim_listener.hpp"
#include "io/sim/sim_socket_bank.hpp"
#include "io/sim/sim_stream.hpp"

#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstring>

namespace eddy {
namespace {

/// Virtual time that a busy turn of the loop takes: with it, a busy program's deadlines pass as
/// they do on a real clock.
constexpr duration turn_cost = std::chrono::microseconds(1);
/// Start of the clock. Not at its epoch, which programs may use for "never".
constexpr duration clock_start = std::chrono::hours(1);
/// Time after which the kernel gives up on a peer that never answers (tcp_syn_retries).
constexpr duration connect_gives_up = std::chrono::seconds(130);
/// A connect that a full backlog dropped is tried again after this long.
constexpr duration connect_retry = std::chrono::seconds(1);
/// Longest shortage of receive buffers.
constexpr duration longest_spell = std::chrono::milliseconds(10);
constexpr std::uint16_t first_ephemeral_port = 32768;
/// Real time after which a simulation that waits for another thread reports that.
constexpr std::chrono::seconds patience{10};

const sockaddr_in& v4(const endpoint& address) noexcept {
    return *reinterpret_cast<const sockaddr_in*>(address.data());
}
const sockaddr_in6& v6(const endpoint& address) noexcept {
    return *reinterpret_cast<const sockaddr_in6*>(address.data());
}
bool is_ip(const endpoint& address) noexcept {
    return address.family() == AF_INET || address.family() == AF_INET6;
}

bool never_answers(const endpoint& peer) noexcept {
    if (peer.family() == AF_INET) return ntohl(v4(peer).sin_addr.s_addr) >> 8 == 0xc00002;
    constexpr unsigned char documentation[] = {0x20, 0x01, 0x0d, 0xb8};
    return peer.family() == AF_INET6 &&
           std::memcmp(&v6(peer).sin6_addr, documentation, sizeof(documentation)) == 0;
}

/// True if two sockets of one kind cannot be bound at the same time.
bool collide(const endpoint& a, bool a_dual, const endpoint& b, bool b_dual) noexcept {
    if (a.is_unix() || b.is_unix()) return a == b;
    if (a.port() != b.port()) return false;
    return sim_reaches(a, a_dual, sim_unmapped(b)) || sim_reaches(b, b_dual, sim_unmapped(a));
}

endpoint unnamed_unix() noexcept {
    endpoint made;
    made.data()->sa_family = AF_UNIX;
    made.resize(sizeof(sa_family_t));
    return made;
}

}  // namespace

endpoint sim_unmapped(const endpoint& address) {
    if (address.family() != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&v6(address).sin6_addr))
        return address;
    sockaddr_in plain{};
    plain.sin_family = AF_INET;
    plain.sin_port = v6(address).sin6_port;
    std::memcpy(&plain.sin_addr, v6(address).sin6_addr.s6_addr + 12, 4);
    return {reinterpret_cast<const sockaddr*>(&plain), sizeof(plain)};
}

endpoint sim_seen_by(int family, const endpoint& plain) {
    if (family != AF_INET6 || plain.family() != AF_INET) return plain;
    sockaddr_in6 mapped{};
    mapped.sin6_family = AF_INET6;
    mapped.sin6_port = v4(plain).sin_port;
    mapped.sin6_addr.s6_addr[10] = mapped.sin6_addr.s6_addr[11] = 0xff;
    std::memcpy(mapped.sin6_addr.s6_addr + 12, &v4(plain).sin_addr, 4);
    return {reinterpret_cast<const sockaddr*>(&mapped), sizeof(mapped)};
}

bool sim_is_wildcard(const endpoint& address) {
    if (address.family() == AF_INET) return v4(address).sin_addr.s_addr == INADDR_ANY;
    return address.family() == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&v6(address).sin6_addr);
}

bool sim_is_multicast(const endpoint& address) {
    if (address.family() == AF_INET) return IN_MULTICAST(ntohl(v4(address).sin_addr.s_addr));
    return address.family() == AF_INET6 && IN6_IS_ADDR_MULTICAST(&v6(address).sin6_addr);
}

bool sim_reaches(const endpoint& bound, bool dual_stack, const endpoint& to) {
    if (bound.is_unix() || to.is_unix()) return bound == to;
    if (bound.port() != to.port()) return false;
    if (!sim_is_wildcard(bound)) return sim_unmapped(bound) == to;
    return bound.family() == to.family() || (bound.family() == AF_INET6 && dual_stack);
}

sim_backend::sim_backend(const loop_options& options)
    : options_(options.sim),
      random_(options.sim.seed),
      for_streams_{options.buffer_size,
                   std::size_t{options.buffer_count} + options.max_spare_buffers, 0},
      for_messages_{options.datagram_size,
                    std::size_t{options.datagram_count} + options.max_spare_buffers, 1},
      now_(clock_start),
      next_port_(first_ephemeral_port) {}

sim_backend::~sim_backend() {
    // A handle or a lease that outlives its loop would call into freed memory later.
    EDDY_PRECONDITION(
        streams_.empty() && listeners_.empty() && datagrams_.empty(),
        "a stream, listener or datagram socket outlived its loop: close it before the loop ends");
    EDDY_PRECONDITION(for_streams_.lent == 0 && for_messages_.lent == 0,
                      "a lease outlived its loop: return it before the loop ends");
}

// ---- time

bool sim_backend::take_wake() noexcept {
    const std::lock_guard lock(wake_mutex_);
    return std::exchange(woken_, false);
}

void sim_backend::wake() noexcept {
    const std::lock_guard lock(wake_mutex_);
    woken_ = true;
    wake_condition_.notify_one();
}

void sim_backend::wait_for_wake() {
    std::unique_lock lock(wake_mutex_);
    if (!wake_condition_.wait_for(lock, patience, [this] { return woken_; })) {
        std::fprintf(stderr,
                     "simulation with seed %" PRIu64
                     ": every task waits and no event is to come; only another thread can end it\n",
                     options_.seed);
        wake_condition_.wait(lock, [this] { return woken_; });
    }
    woken_ = false;
}

bool sim_backend::poll(time_point until) {
    const time_point next = events_.empty() ? time_point::max() : events_.begin()->first.first;
    if (take_wake() || next <= now_ || until <= now_) {
        now_ += turn_cost;
    } else if (std::min(next, until) == time_point::max()) {
        wait_for_wake();
        return false;
    } else {
        now_ = std::min(next, until);
    }

    // Consequences of these events wait for the next turn, so that all coroutines run first.
    const std::uint64_t end = scheduled_;
    bool any = false;
    while (!events_.empty()) {
        const auto first = events_.begin();
        const auto [when, order] = first->first;
        if (when > now_ || order >= end) break;
        const std::function<void()> what = std::move(first->second);
        events_.erase(first);
        what();
        any = true;
    }
    return any;
}

void sim_backend::schedule(time_point when, std::function<void()> what) {
    events_.emplace(std::pair(std::max(when, now_), scheduled_++), std::move(what));
}

duration sim_backend::delay() noexcept {
    const duration range = options_.max_delay - options_.min_delay;
    if (range <= duration::zero()) return options_.min_delay;
    const auto extra = random_.below(static_cast<std::uint64_t>(range.count()) + 1);
    return options_.min_delay + duration(static_cast<duration::rep>(extra));
}

// ---- receive buffers

lease sim_backend::lend(const_bytes bytes, buffers& of) {
    EDDY_ASSERT(of.lent < of.most);
    const std::size_t size = std::min(bytes.size(), of.size);
    // Exactly as large as its content, so that a read past its end is seen by the sanitizer.
    auto* data = new std::byte[size];
    std::copy_n(bytes.begin(), size, data);
    ++of.lent;
    return {*this, data, static_cast<std::uint32_t>(size), of.id};
}

void sim_backend::give_back(std::byte* data, std::uint32_t id) noexcept {
    buffers& of = id == for_streams_.id ? for_streams_ : for_messages_;
    EDDY_ASSERT(of.lent > 0);
    --of.lent;
    delete[] data;
}

time_point sim_backend::buffers_at(bool begin_none) noexcept {
    if (buffers_back_ <= now_ && !begin_none && random_.chance(options_.no_buffers)) {
        const auto most = static_cast<std::uint64_t>(longest_spell.count());
        buffers_back_ = now_ + duration(1 + static_cast<duration::rep>(random_.below(most)));
    }
    return std::max(now_, buffers_back_);
}

// ---- sockets

std::uint16_t sim_backend::free_port() noexcept {
    const auto taken = [this](std::uint16_t port) {
        const auto has_port = [port](const auto* socket) { return socket->local().port() == port; };
        return std::any_of(listeners_.begin(), listeners_.end(), has_port) ||
               std::any_of(datagrams_.begin(), datagrams_.end(), has_port);
    };
    for (int tries = 0; tries <= UINT16_MAX - first_ephemeral_port; ++tries) {
        const std::uint16_t port = next_port_;
        next_port_ =
            port == UINT16_MAX ? first_ephemeral_port : static_cast<std::uint16_t>(port + 1);
        if (!taken(port)) return port;
    }
    return 0;
}

result<listener> sim_backend::listen(const endpoint& local, const listen_options& options) {
    if (!is_ip(local) && !local.is_unix()) return fail_errno(EAFNOSUPPORT);
    if (auto usable = check_unix_mode(local, options); !usable) return fail(usable.error());
    endpoint address = local;
    if (is_ip(local) && local.port() == 0) {
        address.set_port(free_port());
        if (address.port() == 0) return fail_errno(EADDRINUSE);
    }
    for (const sim_listener* other : listeners_) {
        const bool shared = !local.is_unix() && options.reuse_port && other->options().reuse_port;
        if (!shared &&
            collide(address, options.dual_stack, other->local(), other->options().dual_stack))
            return fail_errno(EADDRINUSE);
    }
    auto* made = new sim_listener(*this, address, options);
    listeners_.push_back(made);
    return listener(*made);
}

result<datagram> sim_backend::open_datagram(const endpoint& local, const endpoint& peer,
                                            const datagram_options& options) {
    const bool connecting = local.family() == AF_UNSPEC;
    endpoint address = connecting ? peer : local;
    if (!is_ip(address)) return fail(errc::unsupported);
    // The network is one host: the destination address is also the source.
    if (connecting && (sim_is_wildcard(address) || sim_is_multicast(address)))
        address = *endpoint::ip(address.family() == AF_INET ? "127.0.0.1" : "::1", 0);
    if (connecting || local.port() == 0) {
        address.set_port(free_port());
        if (address.port() == 0) return fail_errno(EADDRINUSE);
    }
    for (const sim_datagram* other : datagrams_) {
        const bool shared = (options.reuse_port && other->options().reuse_port) ||
                            (options.reuse_address && other->options().reuse_address);
        if (!shared &&
            collide(address, options.dual_stack, other->local(), other->options().dual_stack))
            return fail_errno(EADDRINUSE);
    }
    datagram made(*new sim_datagram(*this, address, options));
    if (connecting)
        if (auto connected = made.connect(peer); !connected) return fail(connected.error());
    return made;
}

result<datagram> sim_backend::adopt_datagram(unique_fd) { return fail(errc::unsupported); }

result<listener> sim_backend::adopt_listener(unique_fd) { return fail(errc::unsupported); }

result<stream> sim_backend::adopt(unique_fd) { return fail(errc::unsupported); }

result<pipe_ends> sim_backend::open_pipe() {
    auto* reader = new sim_stream(*this, sim_stream::way::from_peer);
    auto* writer = new sim_stream(*this, sim_stream::way::to_peer);
    sim_stream::join(*reader, *writer);
    return pipe_ends{stream(*reader), stream(*writer)};
}

result<std::unique_ptr<socket_bank>> sim_backend::open_socket_bank(
    const socket_bank_options& options, bank_observer& to) {
    return sim_socket_bank::open(options, to);
}

std::uint64_t sim_backend::add(sim_stream& made) noexcept {
    streams_.emplace(next_id_, &made);
    return next_id_++;
}
sim_stream* sim_backend::find_stream(std::uint64_t id) noexcept {
    const auto found = streams_.find(id);
    return found == streams_.end() ? nullptr : found->second;
}
void sim_backend::remove(sim_stream& gone) noexcept { streams_.erase(gone.id()); }
void sim_backend::remove(sim_listener& gone) noexcept { std::erase(listeners_, &gone); }

std::uint64_t sim_backend::add(sim_datagram& made) noexcept {
    datagrams_.push_back(&made);
    return next_id_++;
}
void sim_backend::remove(sim_datagram& gone) noexcept { std::erase(datagrams_, &gone); }

sim_datagram* sim_backend::find_datagram(std::uint64_t id) noexcept {
    for (sim_datagram* one : datagrams_)
        if (one->id() == id) return one;
    return nullptr;
}

namespace {

/// The receiver among the sockets that `to` reaches: sockets bound to exactly that address come
/// before wildcards; among equals (SO_REUSEPORT) chance decides.
template <class Socket>
Socket* choose(const std::vector<Socket*>& sockets, const endpoint& to, random_generator& random) {
    std::vector<Socket*> exact;
    std::vector<Socket*> any;
    for (Socket* one : sockets)
        if (sim_reaches(one->local(), one->options().dual_stack, to))
            (sim_is_wildcard(one->local()) ? any : exact).push_back(one);
    const std::vector<Socket*>& best = exact.empty() ? any : exact;
    if (best.empty()) return nullptr;
    return best.size() == 1 ? best.front() : best[random.below(best.size())];
}

}  // namespace

sim_datagram* sim_backend::find_datagram(const endpoint& to, const endpoint& from) noexcept {
    // Connected sockets come before unconnected ones.
    const auto connected = find_datagrams([&](const sim_datagram& one) {
        return one.receives_only(from) && sim_reaches(one.local(), one.options().dual_stack, to);
    });
    if (!connected.empty()) return choose(connected, to, random_);
    return choose(find_datagrams([](const sim_datagram& one) { return one.receives_all(); }), to,
                  random_);
}
sim_listener* sim_backend::find_listener(const endpoint& to) noexcept {
    return choose(listeners_, to, random_);
}

// ---- connecting

bool sim_backend::start(connect_operation& op) {
    const endpoint& peer = op.peer();
    if (!is_ip(peer) && !peer.is_unix()) {
        op.set_error(errno_code(EAFNOSUPPORT));
        return true;
    }
    if (peer.is_unix() && op.from() && !op.from()->empty()) {
        op.set_error(errc::unsupported);
        return true;
    }
    if (op.from() && !op.from()->empty())
        if (const int error = refused_binding(peer, *op.from()); error != 0) {
            op.set_error(errno_code(error));
            return true;
        }
    const std::uint64_t id = next_id_++;
    connecting_.push_back({id, &op});
    if (never_answers(peer))
        schedule(now_ + connect_gives_up, [this, id] { connect_fails(id, ETIMEDOUT); });
    else
        schedule(now_ + delay(), [this, id] { connect_arrives(id); });
    return false;
}

int sim_backend::refused_binding(const endpoint& peer, const local_binding& from) const noexcept {
    if (!from.device.empty() && from.device != "lo") return ENODEV;
    if (from.address.family() == AF_UNSPEC) return 0;
    if (from.address.family() != peer.family()) return EAFNOSUPPORT;
    if (from.address.port() == 0) return 0;
    for (const sim_listener* other : listeners_)
        if (collide(from.address, false, other->local(), other->options().dual_stack))
            return EADDRINUSE;
    for (const auto& [id, other] : streams_)
        if (other->local() == from.address && other->peer() == peer) return EADDRNOTAVAIL;
    return 0;
}

void sim_backend::cancel(connect_operation& op) noexcept {
    std::erase_if(connecting_, [&op](const connecting& one) { return one.op == &op; });
    op.set_error(errc::cancelled);
    op.complete_later();
}

connect_operation* sim_backend::take_connecting(std::uint64_t id) noexcept {
    for (auto one = connecting_.begin(); one != connecting_.end(); ++one)
        if (one->id == id) {
            connect_operation* op = one->op;
            connecting_.erase(one);
            return op;
        }
    return nullptr;
}

void sim_backend::connect_fails(std::uint64_t id, int error) {
    connect_operation* op = take_connecting(id);
    if (!op) return;
    op->set_error(errno_code(error));
    op->complete_now();
}

void sim_backend::connect_arrives(std::uint64_t id) {
    const auto one = std::find_if(connecting_.begin(), connecting_.end(),
                                  [id](const connecting& each) { return each.id == id; });
    if (one == connecting_.end()) return;
    const endpoint peer = one->op->peer();
    endpoint target = sim_unmapped(peer);
    if (sim_is_wildcard(target))
        target = *endpoint::ip(target.family() == AF_INET ? "127.0.0.1" : "::1", target.port());

    sim_listener* listener = find_listener(target);
    if (!listener) {
        // A closed listener takes its file along; abstract names have none.
        const bool no_file = target.is_unix() && target.host().front() != '@';
        return connect_fails(id, no_file ? ENOENT : ECONNREFUSED);
    }
    if (listener->full()) {
        if (target.is_unix()) return connect_fails(id, EAGAIN);
        schedule(now_ + connect_retry, [this, id] { connect_arrives(id); });
        return;
    }

    endpoint from = unnamed_unix();
    if (!target.is_unix()) {
        const local_binding* const wanted = one->op->from();
        const bool chosen = wanted && wanted->address.family() != AF_UNSPEC;
        from = chosen && !sim_is_wildcard(wanted->address) ? sim_unmapped(wanted->address) : target;
        from.set_port(chosen ? wanted->address.port() : 0);
        if (from.port() == 0) from.set_port(free_port());
    }
    const int family = listener->local().family();
    auto* client = new sim_stream(*this, sim_seen_by(peer.family(), from), peer);
    auto* server = new sim_stream(*this, sim_seen_by(family, target), sim_seen_by(family, from));
    sim_stream::join(*client, *server);
    connect_operation* op = take_connecting(id);
    op->set_connected(stream(*client));
    listener->add(*server);
    op->complete_now();
}

// ---- descriptors, of which there are none

void sim_backend::start_poll(int, readiness, completion& done) {
    polls_[&done] = -ENOTSUP;
    schedule(now_, [this, &done] {
        const auto waiting = polls_.find(&done);
        const int result = waiting->second;
        polls_.erase(waiting);
        done.on_completion(result, 0);
    });
}

void sim_backend::cancel_poll(completion& done) noexcept {
    if (const auto waiting = polls_.find(&done); waiting != polls_.end())
        waiting->second = -ECANCELED;
}

result<std::unique_ptr<io_backend>> make_sim_backend(const loop_options& options) {
    return std::make_unique<sim_backend>(options);
}

}  // namespace eddy
