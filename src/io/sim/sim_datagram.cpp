// Datagrams that get lost, doubled and overtaken.
#include "io/sim/sim_datagram.hpp"

#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace eddy {
namespace {

constexpr std::size_t max_payload = 65507;
/// A datagram that others overtake arrives this much later than it would have.
constexpr duration latest_detour = std::chrono::milliseconds(20);

}  // namespace

sim_datagram::~sim_datagram() { world_.remove(*this); }

bool sim_datagram::start(receive_from_operation& op) {
    EDDY_ASSERT(!receiver_);
    if (try_complete(op, false)) return true;
    receiver_ = &op;
    return false;
}

bool sim_datagram::try_complete(receive_from_operation& op, bool after_spell) {
    if (arrived_.empty()) return false;
    if (const time_point when = world_.buffers_at(after_spell); when > world_.now()) {
        world_.schedule(when, [&world = world_, id = id_] {
            sim_datagram* socket = world.find_datagram(id);
            if (socket && socket->receiver_ && socket->try_complete(*socket->receiver_, true))
                std::exchange(socket->receiver_, nullptr)->complete_now();
        });
        return false;
    }
    const message first = std::move(arrived_.front());
    arrived_.pop_front();
    arrived_bytes_ -= first.bytes.size();
    op.set_message(
        {world_.lend(first.bytes), first.from, first.bytes.size() > world_.buffer_size()});
    return true;
}

void sim_datagram::cancel(receive_from_operation& op) noexcept {
    EDDY_ASSERT(receiver_ == &op);
    receiver_ = nullptr;
    op.set_error(errc::cancelled);
    op.complete_later();
}

result<> sim_datagram::send_to(const_bytes bytes, const endpoint& to) noexcept {
    if (to.family() == AF_UNSPEC) return fail_errno(EDESTADDRREQ);
    if (to.family() != AF_INET && to.family() != AF_INET6) return fail_errno(EAFNOSUPPORT);
    if (bytes.size() > max_payload) return fail_errno(EMSGSIZE);
    const endpoint target = sim_unmapped(to);
    if (local_.family() == AF_INET && target.family() == AF_INET6) return fail_errno(EAFNOSUPPORT);
    if (local_.family() == AF_INET6 && target.family() == AF_INET && !options_.dual_stack)
        return fail_errno(ENETUNREACH);

    message sent{{bytes.begin(), bytes.end()}, sim_unmapped(local_)};
    if (sim_is_wildcard(local_)) {
        // The network is one host: the address that was asked is also the one that asks.
        sent.from = target;
        sent.from.set_port(local_.port());
    }
    transmit(sent, target);
    if (world_.random().chance(world_.options().datagram_duplicate)) transmit(sent, target);
    return {};
}

void sim_datagram::transmit(const message& sent, const endpoint& to) {
    if (world_.random().chance(world_.options().datagram_loss)) return;
    sim_datagram* socket = world_.find_datagram(to);
    if (!socket) return;
    time_point when = world_.now() + world_.delay();
    if (world_.random().chance(world_.options().datagram_reorder)) {
        const auto detour = static_cast<std::uint64_t>(latest_detour.count());
        when += duration(1 + static_cast<duration::rep>(world_.random().below(detour)));
    } else {
        when = socket->last_arrival_ = std::max(socket->last_arrival_, when);
    }
    world_.schedule(when, [&world = world_, id = socket->id_, sent] {
        if (sim_datagram* there = world.find_datagram(id)) there->arrive(sent);
    });
}

void sim_datagram::arrive(message received) {
    if (arrived_bytes_ + received.bytes.size() > world_.options().socket_buffer) return;
    received.from = sim_seen_by(local_.family(), received.from);
    arrived_bytes_ += received.bytes.size();
    arrived_.push_back(std::move(received));
    if (receiver_ && try_complete(*receiver_, false))
        std::exchange(receiver_, nullptr)->complete_now();
}

void sim_datagram::close() noexcept {
    if (receiver_) cancel(*receiver_);
    delete this;
}

}  // namespace eddy
