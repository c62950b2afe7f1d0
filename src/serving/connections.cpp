// Connections of a server: accepting, limits in time, draining.
#include "serving/connections.hpp"

#include "base/files/descriptors.hpp"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>
#include <utility>

namespace eddy::serving {
namespace {

/// Pause of accepting after descriptors or memory have run out.
constexpr duration starved_pause = std::chrono::milliseconds(50);

/// A round over all connections is O(their number), so rounds are at least this part of the limit
/// apart: a connection is closed between its limit and 1/64 later.
constexpr int rounds_per_limit = 64;

/// Kept bits of a connection's number.
constexpr std::uint64_t id_mask = (std::uint64_t{1} << 48) - 1;

}  // namespace

connection::connection(connections& all, stream accepted, cancel_source& parent,
                       connection_slot slot)
    : socket(std::move(accepted)),
      cancel(&parent),
      all_(all),
      active_at_(loop::current().now()),
      id_((all.last_id_ += all.id_step_) & id_mask) {
    all.members_.push_back(*this);
    ++all.count_;
    all.counted_.connections_now = all.count_;
    ++all.counted_.connections_total;
    all.watch();
    // The slot itself is not kept: that would cost each connection a pointer.
    static_cast<void>(slot.release());
}

bool connection::take_interruption(cancel_source& parent) noexcept {
    const bool was_interrupted = is_interrupted_;
    is_interrupted_ = false;
    if (!was_interrupted || is_closing_) return false;
    EDDY_ASSERT(cancel.requested());
    // Tasks know the source by its address.
    std::destroy_at(&cancel);
    std::construct_at(&cancel, &parent);
    return !cancel.requested();
}

connection::~connection() {
    end_sending();
    unlink();
    --all_.count_;
    all_.counted_.connections_now = all_.count_;
    if (all_.count_ == 0 && all_.armed()) loop::current().disarm(all_);
    if (all_.slots_ != nullptr) all_.slots_->leave();
}

void connection::end_sending() noexcept { all_.end_sending(socket); }

void connections::end_sending(stream& on) const noexcept {
    if (has_shared_sockets_ == nullptr || !has_shared_sockets_->load(std::memory_order_relaxed))
        return;
    // One that the peer has closed is at its end anyway.
    static_cast<void>(on.shutdown_write());
}

void connection::touch() noexcept { active_at_ = loop::current().now(); }

void connections::set_limits(const limits& chosen) noexcept {
    limits_ = chosen;
    if (armed()) loop::current().disarm(*this);
    watch();
}

duration connections::shortest() const noexcept {
    if (limits_.idle == duration{}) return limits_.stuck;
    if (limits_.stuck == duration{}) return limits_.idle;
    return std::min(limits_.idle, limits_.stuck);
}

void connections::watch() noexcept {
    if (armed() || count_ == 0 || shortest() == duration{}) return;
    loop& here = loop::current();
    here.arm(*this, here.after(shortest()));
}

void connections::close(connection& c) noexcept {
    if (before_closing_ != nullptr) before_closing_(c);
    c.close();
}

void connections::fire() noexcept {
    loop& here = loop::current();
    const time_point now = here.now();
    time_point next = time_point::max();
    members_.for_each([&](connection& c) {
        if (c.doing_ == activity::working || c.doing_ == activity::listening) {
            // The pause is this side's and ends by itself, or has no limit.
            c.active_at_ = now;
            return;
        }
        const duration allowed = c.doing_ == activity::writing ? limits_.stuck : limits_.idle;
        if (allowed == duration{}) return;
        const time_point until = c.active_at_ + allowed;
        if (until <= now) return close(c);
        next = std::min(next, until);
    });
    if (count_ == 0) return;
    const time_point soonest = now + shortest() / rounds_per_limit;
    here.arm(*this, std::max(soonest, std::min(next, now + shortest())));
}

task<result<>> connections::wait_for_descriptors(std::error_code error) {
    if (!std::exchange(said_starved_, true)) {
        const std::string shortage = descriptors::explain_shortage(error);
        events_.write("cannot accept connections for now, and clients wait: " +
                      (shortage.empty() ? error.message() : shortage));
    }
    co_return co_await loop::current().sleep_for(starved_pause);
}

/// Waits, with a connection that has a reserved descriptor, until others have ended; later ones
/// wait in the kernel's queue. Fails if the connection is to be closed.
task<result<>> connections::wait_for_room(const stream& accepted) {
    using namespace descriptors;
    if (!in_reserve(accepted.driver().option_handle(), use::client)) co_return result<>();
    const waiting_connection waiting;
    if (!waiting.may_wait()) co_return fail(errc::limit_reached);
    while (!has_room(use::client)) {
        const result<> slept = co_await wait_for_descriptors(errno_code(EMFILE));
        if (!slept) co_return slept;
    }
    co_return result<>();
}

/// Does not wait, so that a rejected connection delays no other.
void connections::reject(stream peer, std::string_view refusal, scope& rejected) {
    if (refusal.empty()) return peer.abort();
    // The text fits a new socket's buffer. A handed-over socket may be full: it gets nothing.
    static_cast<void>(peer.try_write(as_bytes(refusal)));
    const bool may_linger = rejected.children() < max_lingering_rejects &&
                            descriptors::has_room(descriptors::use::client);
    if (!may_linger) return end_sending(peer);
    if (peer.shutdown_write()) rejected.spawn(linger_and_close(std::move(peer), reject_linger));
}

task<result<stream>> connections::accept(listener& from, std::string_view refusal,
                                         scope& rejected) {
    for (;;) {
        result<stream> peer = co_await from.accept();
        if (!peer) {
            if (peer.error() == errc::cancelled || peer.error() == errc::closed) co_return peer;
            (void)co_await wait_for_descriptors(peer.error());
            continue;
        }
        const result<> room = co_await wait_for_room(*peer);
        if (!room && room.error() == errc::cancelled) co_return fail(room.error());
        if (!room) {
            ++counted_.connections_refused;
            peer->close();
            (void)co_await wait_for_descriptors(errno_code(EMFILE));
            continue;
        }
        said_starved_ = false;
        const std::uint64_t all = count_ + (others_ != nullptr ? others_->load() : 0);
        if (all < limits_.most) {
            said_full_ = false;
            co_return peer;
        }

        ++counted_.connections_refused;
        if (!std::exchange(said_full_, true)) {
            events_.write(std::to_string(limits_.most) +
                          " connections, which is the limit; further ones are refused");
        }
        reject(std::move(*peer), refusal, rejected);
    }
}

task<void> linger(connection& of, linger_limits limits) {
    of.enter(activity::resting);
    if (of.draining()) co_return;
    co_await eddy::linger(of.socket, limits);
}

void connections::drain(bool is_replaced) noexcept {
    draining_ = true;
    is_gentle_ = is_replaced && keeps_resting_;
    if (is_gentle_) return;
    members_.for_each([this](connection& c) {
        if (c.doing_ == activity::resting || c.doing_ == activity::listening) close(c);
    });
}

void connections::reset() noexcept {
    draining_ = is_gentle_ = false;
    said_full_ = false;
    said_starved_ = false;
}

}  // namespace eddy::serving
