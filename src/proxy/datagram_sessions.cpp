// Sessions of UDP clients: choice of the backend, both directions, refusals and expiry.
#include "proxy/datagram_sessions.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/timeout.hpp>
#include <eddy/net/resolver.hpp>

#include "base/files/descriptors.hpp"
#include "net/network.hpp"

#include <algorithm>
#include <cerrno>
#include <functional>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace eddy::proxy {
namespace {

/// After an error of a socket, before the next receive.
constexpr duration error_pause = std::chrono::milliseconds(50);
/// Datagrams that were received together, answered without a wait in between.
constexpr int most_at_once = 32;

/// The backend is not there. Other errors, such as a full buffer or a datagram that is too long for
/// the way, say nothing about it.
bool is_refusal(std::error_code error) noexcept {
    return error == errno_code(ECONNREFUSED) || error == errno_code(EHOSTUNREACH) ||
           error == errno_code(ENETUNREACH);
}

bool is_want_of_resources(std::error_code error) noexcept {
    return error == errno_code(EMFILE) || error == errno_code(ENFILE) ||
           error == errno_code(ENOBUFS) || error == errno_code(ENOMEM) ||
           error == errno_code(EAGAIN);
}

}  // namespace

struct datagram_sessions::session : list_link<> {
    endpoint client;
    /// The address of this machine that it sends to, and gets answers from; empty where the front
    /// socket is bound to one, or the kernel refuses to send from it.
    endpoint local;
    backend_use to;
    datagram socket;                  // to the backend; closed while there is none
    std::uint64_t socket_number = 0;  // of the sockets that it has had
    std::vector<endpoint> others;     // addresses of the backend that are not tried yet
    std::shared_ptr<backend> failed;  // the last one that has
    std::vector<byte_buffer> waiting;
    time_point used_at{};
    time_point chosen_at{};  // the backend
    bool is_proven = false;  // the backend serves it
    bool is_looking_up = false;
    cancel_source cancel;
};

std::size_t datagram_sessions::endpoint_hash::operator()(const endpoint& where) const noexcept {
    return std::hash<std::string_view>()(
        std::string_view(reinterpret_cast<const char*>(where.data()), where.size()));
}

datagram_sessions::datagram_sessions(datagram& front, serving::counters& counted,
                                     datagram_observer& observer) noexcept
    : front_(front), counted_(counted), observer_(observer) {}

datagram_sessions::~datagram_sessions() { EDDY_ASSERT(sessions_.empty()); }

void datagram_sessions::set(const datagram_limits& limits, std::shared_ptr<balancer> backends) {
    limits_ = limits;
    backends_ = std::move(backends);
    last_used_.clear();
    loop::current().disarm(*this);
    watch();
}

task<void> datagram_sessions::end() {
    loop::current().disarm(*this);
    while (!by_use_.empty()) forget(by_use_.front());
    co_await tasks_.join();
}

// ---- from clients

void datagram_sessions::take(const datagram_message& received) {
    ++counted_.messages_in;
    counted_.bytes_in += received.payload.size();
    if (received.truncated) {
        ++counted_.errors;
        return;
    }
    const session_pointer by = find(received);
    if (!by) return;
    by->local = received.to;
    touch(*by);
    for (const const_bytes each : received.segments()) send(by, each);
}

/// The session of a datagram's sender, a new one if there is room.
datagram_sessions::session_pointer datagram_sessions::find(const datagram_message& received) {
    const auto found = sessions_.find(received.from);
    if (found != sessions_.end()) return found->second;
    if (!may_begin(received.from)) return nullptr;
    auto made = std::make_shared<session>();
    made->client = received.from;
    sessions_.emplace(received.from, made);
    by_use_.push_back(*made);
    ++counted_.connections_total;
    counted_.connections_now = sessions_.size();
    return made;
}

bool datagram_sessions::may_begin(const endpoint& client) {
    if (client.port() == 0 || is_backend(client) || is_own(client)) {
        ++counted_.dropped;
        return false;
    }
    if (sessions_.size() >= limits_.sessions) {
        ++counted_.connections_refused;
        drop("the limit of clients is reached (--max-connections)");
        return false;
    }
    if (!descriptors::has_room(descriptors::use::client)) {
        ++counted_.connections_refused;
        drop(
            "no descriptor is free for its session; raise the limit of open files (ulimit -n) or "
            "lower --max-connections");
        return false;
    }
    return true;
}

/// True for an address of the front socket, which has all of this machine where it is a wildcard:
/// all that a socket can be bound to.
bool datagram_sessions::is_own(const endpoint& client) const {
    const endpoint own = front_.local();
    if (client.port() != own.port()) return false;
    const std::string host = own.host();
    if (host != "0.0.0.0" && host != "::") return unmapped(client) == unmapped(own);
    endpoint there = client;
    there.set_port(0);
    const result<datagram> bound = loop::current().bind_datagram(there);
    return bound || bound.error() != errno_code(EADDRNOTAVAIL);
}

bool datagram_sessions::is_backend(const endpoint& client) const {
    const endpoint plain = unmapped(client);
    return std::ranges::any_of(backends_->all(), [&](const balanced_backend& each) {
        return each.its->numeric() && unmapped(*each.its->numeric()) == plain;
    });
}

/// Sends to the session's backend, another one if that has failed.
void datagram_sessions::send(const session_pointer& by, const_bytes bytes) {
    for (std::size_t tries = 0; tries <= backends_->all().size(); ++tries) {
        if (by->is_looking_up) return wait(*by, bytes);
        if (!by->socket) {
            if (!open(by)) return drop("no backend takes it");
            continue;
        }
        const result<> sent = by->socket.send_to(bytes, endpoint());
        if (sent) {
            by->to->counted_by(0).bytes_sent += bytes.size();
            if (loop::current().now() - by->chosen_at >= unrefused_time) prove(*by);
            return;
        }
        if (!is_refusal(sent.error())) return drop(sent.error().message());
        // The error of an earlier datagram: this one has not gone.
        refuse(by, sent.error());
    }
    drop("no backend takes it");
}

/// Chooses a backend and opens a socket to it, or begins its look-up. False: none takes clients.
bool datagram_sessions::open(const session_pointer& by) {
    loop& here = loop::current();
    const std::shared_ptr<balancer> backends = backends_;
    const std::string host = by->client.host();
    balancer::selection order = backends->select({.hash = hash_key(host)});
    for (;;) {
        by->to = next_for(*by, order);
        if (!by->to) return false;
        if (!by->to->numeric()) {
            by->is_looking_up = true;
            tasks_.spawn(look_up(by).under(by->cancel));
            return true;
        }
        auto made = here.connect_datagram(*by->to->numeric());
        if (made) {
            begin(by, std::move(*made));
            return true;
        }
        if (is_want_of_resources(made.error())) {
            by->to = {};
            return false;
        }
        fail(*by, made.error());
    }
}

/// The next one in order, but not the one that has just failed while there is another.
backend_use datagram_sessions::next_for(const session& by, balancer::selection& order) const {
    const time_point now = loop::current().now();
    backend_use first = order.next(now);
    if (!first || first.shared() != by.failed) return first;
    backend_use second = order.next(now);
    return second ? std::move(second) : std::move(first);
}

void datagram_sessions::begin(const session_pointer& by, datagram socket) {
    by->socket = std::move(socket);
    by->chosen_at = loop::current().now();
    by->is_proven = false;
    try {
        tasks_.spawn(receive_all(by, ++by->socket_number).under(by->cancel));
    } catch (const std::bad_alloc&) {
        by->socket.close();
        by->to = {};
        throw;
    }
    ++by->to->counted_by(0).connections;
}

void datagram_sessions::wait(session& by, const_bytes bytes) {
    if (waiting_bytes_ + bytes.size() > max_waiting_bytes)
        return drop("too many wait for the look-up of a backend's name");
    byte_buffer copy;
    copy.append(bytes);
    by.waiting.push_back(std::move(copy));
    waiting_bytes_ += bytes.size();
}

task<void> datagram_sessions::look_up(session_pointer by) {
    const transport::address where = by->to->where();
    resolver& names = resolver::of_this_thread();
    const auto found = co_await with_timeout(limits_.connect_timeout,
                                             names.resolve(std::string(where.host), where.port));
    by->is_looking_up = false;
    std::vector<byte_buffer> waiting = std::exchange(by->waiting, {});
    for (const byte_buffer& each : waiting) waiting_bytes_ -= each.size();
    if (!by->linked()) co_return;
    try {
        if (found) {
            by->others = *found;
            // From the one that was not refused last.
            const auto last = last_used_.find(by->to->name());
            if (last != last_used_.end())
                if (const auto first = std::ranges::find(by->others, last->second);
                    first != by->others.end())
                    std::rotate(by->others.begin(), first, first + 1);
            const result<> begun = begin_at_next(by);
            if (begun) {
                for (const byte_buffer& each : waiting) send(by, each.bytes());
                co_return;
            }
            fail(*by, begun.error());
        } else {
            fail(*by, found.error());
        }
    } catch (const std::bad_alloc&) {
        ++counted_.errors;
    }
    counted_.dropped += waiting.size();
}

/// Opens a socket to the next address of the session's backend; the last error if there is none.
result<> datagram_sessions::begin_at_next(const session_pointer& by) {
    std::error_code last = errno_code(EADDRNOTAVAIL);
    while (!by->others.empty()) {
        const endpoint next = by->others.front();
        by->others.erase(by->others.begin());
        auto made = loop::current().connect_datagram(next);
        if (!made) {
            last = made.error();
            continue;
        }
        last_used_[by->to->name()] = next;
        begin(by, std::move(*made));
        return {};
    }
    return eddy::fail(last);
}

/// The address of the session's backend refuses datagrams: the next ones go to another of its
/// addresses, or to another backend.
void datagram_sessions::refuse(const session_pointer& by, std::error_code why) {
    if (!by->others.empty()) {
        by->socket.close();
        ++by->socket_number;
        if (begin_at_next(by)) return;
    }
    last_used_.erase(by->to->name());
    fail(*by, why);
}

/// The session's backend has failed: its next datagram gets another one.
void datagram_sessions::fail(session& by, std::error_code why) noexcept {
    const backend_use gone = std::exchange(by.to, {});
    by.socket.close();
    by.others.clear();
    ++by.socket_number;
    ++gone->counted_by(0).failures;
    by.failed = gone.shared();
    backends_->note_failure(*gone, loop::current().now());
    observer_.note_failed_backend(*gone, why);
}

/// The session's backend serves it.
void datagram_sessions::prove(session& by) noexcept {
    if (std::exchange(by.is_proven, true)) return;
    by.failed.reset();
    backends_->note_success(*by.to, loop::current().now());
}

// ---- from backends

task<void> datagram_sessions::receive_all(session_pointer by, std::uint64_t socket_number) {
    for (;;) {
        auto got = co_await by->socket.receive();
        if (by->socket_number != socket_number || !by->linked()) co_return;
        for (int i = 0; got && i < most_at_once; ++i) {
            answer(*by, *got);
            got = by->socket.try_receive();
        }
        if (got) {
            answer(*by, *got);
            continue;
        }
        if (got.error() == errno_code(EAGAIN)) continue;
        if (got.error() == errc::cancelled || got.error() == errc::closed) co_return;
        if (is_refusal(got.error())) {
            try {
                refuse(by, got.error());
            } catch (const std::bad_alloc&) {
                ++counted_.errors;
            }
            co_return;
        }
        ++counted_.errors;
        if (!co_await loop::current().sleep_for(error_pause)) co_return;
        if (by->socket_number != socket_number || !by->linked()) co_return;
    }
}

void datagram_sessions::answer(session& by, const datagram_message& received) {
    by.to->counted_by(0).bytes_received += received.payload.size();
    prove(by);
    touch(by);
    if (received.truncated) {
        ++counted_.errors;
        return;
    }
    const outgoing_datagram one{received.payload.bytes(), &by.client, 0, &by.local};
    auto sent = front_.try_send({&one, 1});
    const bool is_full = !sent && sent.error() == errno_code(EAGAIN);
    if (!sent && !is_full && by.local.family() != AF_UNSPEC) {
        // A client that has sent to a broadcast address, or to one that this machine has lost:
        // Linux answers EINVAL or ENETUNREACH.
        by.local = {};
        sent = front_.try_send({&one, 1});
    }
    if (!sent) {
        ++counted_.dropped;
        return;
    }
    ++counted_.messages_out;
    counted_.bytes_out += received.payload.size();
}

// ---- expiry

void datagram_sessions::touch(session& used) noexcept {
    used.used_at = loop::current().now();
    used.unlink();
    by_use_.push_back(used);
    watch();
}

void datagram_sessions::forget(session& gone) noexcept {
    gone.unlink();
    gone.socket.close();
    const auto found = sessions_.find(gone.client);
    EDDY_ASSERT(found != sessions_.end());
    const session_pointer last = std::move(found->second);
    sessions_.erase(found);
    counted_.connections_now = sessions_.size();
    last->to = {};
    last->cancel.request();
}

/// Arms the timer for the session that was silent longest; without sessions nothing ticks.
void datagram_sessions::watch() noexcept {
    if (armed() || by_use_.empty()) return;
    loop::current().arm(*this, by_use_.front().used_at + limits_.idle);
}

void datagram_sessions::fire() noexcept {
    const time_point silent_since = loop::current().now() - limits_.idle;
    while (!by_use_.empty() && by_use_.front().used_at <= silent_since) forget(by_use_.front());
    watch();
}

void datagram_sessions::drop(std::string_view why) noexcept {
    ++counted_.dropped;
    observer_.note_dropped(why);
}

}  // namespace eddy::proxy
