// Simulated datagrams: lost, doubled and overtaken; cut and joined; sent to groups.
#include "io/sim/sim_datagram.hpp"

#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace eddy {
namespace {

constexpr std::size_t max_payload = 65507;
/// The only interface: the loopback device's index on Linux.
constexpr std::uint32_t the_interface = 1;
/// A datagram that others overtake arrives this much later than it would have.
constexpr duration latest_detour = std::chrono::milliseconds(20);

bool is_broadcast(const endpoint& address) noexcept {
    if (address.family() != AF_INET) return false;
    return reinterpret_cast<const sockaddr_in*>(address.data())->sin_addr.s_addr ==
           INADDR_BROADCAST;
}

bool same_host(endpoint a, endpoint b) noexcept {
    a.set_port(0);
    b.set_port(0);
    return a == b;
}

}  // namespace

sim_datagram::~sim_datagram() { world_.remove(*this); }

bool sim_datagram::start(receive_from_operation& op) {
    EDDY_PRECONDITION(!receiver_,
                      "a second receive of one datagram socket: await the first before the next");
    if (try_complete(op, false)) return true;
    receiver_ = &op;
    return false;
}

bool sim_datagram::try_complete(receive_from_operation& op, bool after_spell) {
    if (arrived_.empty()) {
        if (error_ == 0) return false;
        op.set_error(errno_code(std::exchange(error_, 0)));
        return true;
    }
    if (!world_.may_lend_message()) {
        op.set_error(errc::no_buffers);
        return true;
    }
    if (const time_point when = world_.buffers_at(after_spell); when > world_.now()) {
        world_.schedule(when, [&world = world_, id = id_] {
            sim_datagram* socket = world.find_datagram(id);
            if (socket && socket->receiver_ && socket->try_complete(*socket->receiver_, true))
                std::exchange(socket->receiver_, nullptr)->complete_now();
        });
        return false;
    }
    deliver(op.message());
    return true;
}

result<> sim_datagram::try_receive(datagram_message& into) noexcept {
    EDDY_PRECONDITION(!receiver_,
                      "a second receive of one datagram socket: await the first before the next");
    if (arrived_.empty() && error_ != 0) return fail_errno(std::exchange(error_, 0));
    if (arrived_.empty()) return fail_errno(EAGAIN);
    if (!world_.may_lend_message()) return fail(errc::no_buffers);
    if (world_.buffers_at(true) > world_.now()) return fail_errno(EAGAIN);
    deliver(into);
    return {};
}

/// The first message, joined with later ones of the same sender and size; the last may be shorter.
void sim_datagram::deliver(datagram_message& into) {
    message first = std::move(arrived_.front());
    arrived_.pop_front();
    const std::size_t segment = first.bytes.size();
    for (std::size_t joined = 1;
         options_.join_segments && segment > 0 && first.bytes.size() % segment == 0 &&
         joined < datagram::max_segments && !arrived_.empty();
         ++joined) {
        const message& next = arrived_.front();
        if (next.bytes.empty() || next.bytes.size() > segment || next.from != first.from ||
            next.to != first.to || first.bytes.size() + next.bytes.size() > max_payload)
            break;
        first.bytes.insert(first.bytes.end(), next.bytes.begin(), next.bytes.end());
        arrived_.pop_front();
    }
    arrived_bytes_ -= first.bytes.size();
    into.payload = world_.lend_message(first.bytes);
    into.from = first.from;
    if (options_.local_address) {
        into.to = first.to;
        into.interface = the_interface;
    }
    into.segment_size = static_cast<std::uint32_t>(std::min(segment, into.payload.size()));
    into.truncated = first.bytes.size() > world_.message_size();
}

void sim_datagram::cancel(receive_from_operation& op) noexcept {
    EDDY_ASSERT(receiver_ == &op);
    receiver_ = nullptr;
    op.set_error(errc::cancelled);
    op.complete_later();
}

bool sim_datagram::start(send_datagrams_operation& op) {
    const auto sent = try_send(op.left());
    if (sent)
        op.count_sent(*sent);
    else
        op.set_error(sent.error());
    return true;
}

result<std::size_t> sim_datagram::try_send(std::span<const outgoing_datagram> batch) noexcept {
    std::size_t sent = 0;
    for (const outgoing_datagram& one : batch) {
        if (auto gone = send(one); !gone) {
            if (sent > 0) break;
            return fail(gone.error());
        }
        ++sent;
    }
    return sent;
}

result<> sim_datagram::send(const outgoing_datagram& one) noexcept {
    if (error_ != 0) return fail_errno(std::exchange(error_, 0));
    const endpoint& to = one.to ? *one.to : peer_;
    if (to.family() == AF_UNSPEC) return fail_errno(EDESTADDRREQ);
    if (to.family() != AF_INET && to.family() != AF_INET6) return fail_errno(EAFNOSUPPORT);
    if (one.bytes.size() > max_payload) return fail_errno(EMSGSIZE);
    const endpoint target = sim_unmapped(to);
    if (local_.family() == AF_INET && target.family() == AF_INET6) return fail_errno(EAFNOSUPPORT);
    if (local_.family() == AF_INET6 && target.family() == AF_INET && !options_.dual_stack)
        return fail_errno(ENETUNREACH);
    if (is_broadcast(target) && !options_.broadcast) return fail_errno(EACCES);

    const datagram_segments segments(one.bytes,
                                     one.segment_size > 0 ? one.segment_size : one.bytes.size());
    if (segments.size() > datagram::max_segments) return fail_errno(EINVAL);
    message sent{{}, sim_unmapped(local_), target};
    if (sim_is_wildcard(local_)) {
        // The network is one host: the destination address is also the source.
        sent.from = sim_is_multicast(target) || is_broadcast(target)
                        ? *endpoint::ip(target.family() == AF_INET ? "127.0.0.1" : "::1", 0)
                        : target;
        sent.from.set_port(local_.port());
    }
    if (one.from && one.from->family() != AF_UNSPEC) {
        const endpoint source = sim_unmapped(*one.from);
        if (source.family() != target.family() || sim_is_multicast(source) || is_broadcast(source))
            return fail_errno(EINVAL);
        if (!sim_is_wildcard(source)) {
            sent.from = source;
            sent.from.set_port(local_.port());
        }
    }
    for (const const_bytes segment : segments) {
        sent.bytes.assign(segment.begin(), segment.end());
        transmit(sent);
        if (world_.random().chance(world_.options().datagram_duplicate)) transmit(sent);
    }
    return {};
}

void sim_datagram::transmit(const message& sent) {
    if (sim_is_multicast(sent.to) || is_broadcast(sent.to)) return send_to_many(sent);
    if (world_.random().chance(world_.options().datagram_loss)) return;
    if (sim_datagram* socket = world_.find_datagram(sent.to, sent.from))
        return transmit(sent, *socket);
    if (!receives_only(sent.to)) return;
    world_.schedule(world_.now() + world_.delay(), [&world = world_, id = id_] {
        if (sim_datagram* here = world.find_datagram(id)) here->refused();
    });
}

void sim_datagram::send_to_many(const message& sent) {
    const bool group = sim_is_multicast(sent.to);
    if (group && !options_.multicast_loop) return;
    const auto everybody = world_.find_datagrams([&](const sim_datagram& one) {
        if (one.local().port() != sent.to.port() || (group && !one.is_member(sent.to)))
            return false;
        return sim_is_wildcard(one.local()) || same_host(one.local(), sent.to);
    });
    for (sim_datagram* one : everybody)
        if (!world_.random().chance(world_.options().datagram_loss)) transmit(sent, *one);
}

void sim_datagram::transmit(const message& sent, sim_datagram& to) {
    time_point when = world_.now() + world_.delay();
    if (world_.random().chance(world_.options().datagram_reorder)) {
        const auto detour = static_cast<std::uint64_t>(latest_detour.count());
        when += duration(1 + static_cast<duration::rep>(world_.random().below(detour)));
    } else {
        when = to.last_arrival_ = std::max(to.last_arrival_, when);
    }
    world_.schedule(when, [&world = world_, id = to.id_, sent] {
        if (sim_datagram* there = world.find_datagram(id)) there->arrive(sent);
    });
}

void sim_datagram::arrive(message received) {
    if (!receives_all() && !receives_only(received.from)) return;
    if (arrived_bytes_ + received.bytes.size() > world_.options().socket_buffer) return;
    received.from = sim_seen_by(local_.family(), received.from);
    received.to = sim_seen_by(local_.family(), received.to);
    arrived_bytes_ += received.bytes.size();
    arrived_.push_back(std::move(received));
    if (!receiver_) return;
    if (!options_.join_segments) return complete_receiver();
    // Datagrams that arrive at the same time are delivered first, so that they are joined.
    world_.schedule(world_.now(), [&world = world_, id = id_] {
        if (sim_datagram* here = world.find_datagram(id)) here->complete_receiver();
    });
}

void sim_datagram::complete_receiver() {
    if (receiver_ && try_complete(*receiver_, false))
        std::exchange(receiver_, nullptr)->complete_now();
}

/// No socket has the destination address.
void sim_datagram::refused() {
    error_ = ECONNREFUSED;
    complete_receiver();
}

result<> sim_datagram::connect(const endpoint& peer) noexcept {
    if (peer.family() != AF_UNSPEC) {
        const endpoint plain = sim_unmapped(peer);
        const bool fits =
            local_.family() == AF_INET
                ? plain.family() == AF_INET
                : plain.family() == AF_INET6 || (plain.family() == AF_INET && options_.dual_stack);
        if (!fits) return fail_errno(EAFNOSUPPORT);
    }
    peer_ = peer;
    return {};
}

result<> sim_datagram::set(const datagram_options& options) noexcept {
    const datagram_options before = std::exchange(options_, options);
    options_.reuse_port = before.reuse_port;
    options_.reuse_address = before.reuse_address;
    options_.dual_stack = before.dual_stack;
    return {};
}

bool sim_datagram::is_member(const endpoint& group) const noexcept {
    return std::any_of(groups_.begin(), groups_.end(),
                       [&](const membership& one) { return same_host(one.group, group); });
}

result<> sim_datagram::set_member(const endpoint& group, std::uint32_t interface,
                                  bool member) noexcept {
    if (!sim_is_multicast(group)) return fail_errno(EINVAL);
    if (interface > the_interface) return fail_errno(ENODEV);
    if (member) {
        if (is_member(group)) return fail_errno(EADDRINUSE);
        groups_.push_back({group, interface});
    } else if (std::erase_if(groups_, [&](const membership& one) {
                   return same_host(one.group, group);
               }) == 0) {
        return fail_errno(EADDRNOTAVAIL);
    }
    return {};
}

void sim_datagram::close() noexcept {
    if (receiver_) cancel(*receiver_);
    delete this;
}

}  // namespace eddy
