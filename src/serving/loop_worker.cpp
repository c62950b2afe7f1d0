// Loop workers: connections on their way from the loop that accepted them, and their end.
#include "serving/loop_worker.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/loop.hpp>

#include "base/rollback.hpp"
#include "serving/proxy_header.hpp"
#include "serving/stop_timer.hpp"

#include <memory>
#include <new>
#include <string>
#include <utility>

namespace eddy::serving {

loop_worker::loop_worker(const worker_place& place)
    : clients_(*this, counted_, place.events),
      shared_(place.limits),
      events_(place.events),
      slots_(place.limits.assigned),
      is_accepting_(place.index == 0) {
    clients_.shut_down_if(place.limits.has_shared_sockets);
    if (!is_accepting_) {
        clients_.number_by(place.index, place.count - 1);
        clients_.use_slots(slots_);
    } else {
        clients_.count_also(shared_.assigned);
    }
}

void loop_worker::adopt(unique_fd accepted, const served_listener& from, connection_slot slot,
                        handshake begun, preamble first) noexcept {
    try {
        result<stream> peer = loop::current().adopt(std::move(accepted));
        if (peer) return adopt(std::move(*peer), from, std::move(slot), std::move(begun), first);
        ++counted_.errors;
        events_.write("a client was lost on its way to its thread: " + peer.error().message());
    } catch (const std::bad_alloc&) {
        note_no_memory();
    }
}

void loop_worker::adopt(stream accepted, const served_listener& from, connection_slot slot,
                        handshake begun, preamble first) noexcept {
    try {
        if (from.has_steps(first))
            handshakes_.spawn(
                shake_hands(std::move(accepted), from, std::move(slot), std::move(begun), first));
        else
            take(std::move(accepted), std::move(slot));
    } catch (const std::bad_alloc&) {
        note_no_memory();
    }
}

/// The steps of a connection before it is served, which have one time limit together.
task<void> loop_worker::shake_hands(stream plain, const served_listener& from, connection_slot slot,
                                    handshake under_way, preamble first) {
    const duration patience = shared_.handshakes.patience();
    const time_point deadline = loop::current().after(patience);
    ++counted_.handshakes_now;
    struct end {
        ~end() { of = of - 1; }
        tally& of;
    };
    std::optional<end> counted(std::in_place, counted_.handshakes_now);
    try {
        EDDY_ASSERT(from.has_steps(first));
        std::unique_ptr<const proxy_protocol::client_values> values;
        const bool is_announced = first == preamble::proxy_header;
        if (is_announced) {
            const endpoint proxy = plain.peer();
            auto announced = co_await take_proxy_header(std::move(plain), patience);
            if (!announced) {
                note_failed_header(proxy, announced.error());
                co_return;
            }
            plain = std::move(announced->its);
            values = std::move(announced->values);
        }
        result<stream> peer;
        if (from.finish != nullptr)
            peer = co_await from.finish(std::move(plain), deadline - loop::current().now());
        else
            peer = std::move(plain);
        under_way.reset();
        counted.reset();
        // Connections of the loop that accepts count by themselves.
        if (is_accepting_) slot.reset();
        if (peer && is_announced)
            take_announced(std::move(*peer), std::move(slot), values.get());
        else if (peer)
            take(std::move(*peer), std::move(slot));
        else if (peer.error() != errc::cancelled)
            note_failed_handshake(peer.error());
    } catch (const std::bad_alloc&) {
        note_no_memory();
    }
}

void loop_worker::take_announced(stream peer, connection_slot slot,
                                 const proxy_protocol::client_values* values) {
    EDDY_ASSERT(!is_announced_ && announced_ == nullptr);
    is_announced_ = true;
    announced_ = values;
    const rollback forget([this]() noexcept {
        is_announced_ = false;
        announced_ = nullptr;
    });
    take(std::move(peer), std::move(slot));
}

task<void> loop_worker::end_handshakes(duration limit) {
    const stop_timer patience(handshakes_, shared_.is_replaced ? limit : duration::zero());
    co_await handshakes_.join();
}

task<void> loop_worker::drain(duration limit) {
    // The time counts from here, so that no handshake, whatever it waits for, adds to it.
    stop_timer patience(tasks_, limit);
    const bool is_replaced = shared_.is_replaced;
    clients_.drain(is_replaced);
    co_await end_handshakes(limit);
    report_rest(handshake_failures_);
    report_rest(header_failures_);
    report_rest(handoff_failures_);
    report_rest(rejected_users_);
    // One whose handshake ended in that moment was taken.
    clients_.drain(is_replaced);
    co_await tasks_.join();
}

void loop_worker::note_no_memory() noexcept {
    ++counted_.errors;
    try {
        events_.write("a client was closed: there is no memory for it");
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): it is counted
    }
}

void loop_worker::note_failed_handshake(std::error_code error) noexcept {
    ++counted_.errors;
    try {
        note_failure(handshake_failures_, "a handshake with a client failed: ", error.message());
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): it is counted
    }
}

void loop_worker::note_failed_header(const endpoint& proxy, std::error_code error) noexcept {
    if (error == errc::cancelled || error == errc::end_of_stream) return;
    ++counted_.errors;
    try {
        const std::string why =
            error == errc::timed_out ? "it was not sent in time" : error.message();
        note_failure(header_failures_, "a connection without a valid PROXY header was closed: ",
                     "from " + proxy.to_string() + " (--accept-proxy): " + why);
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): it is counted
    }
}

void loop_worker::note_failed_handoff(std::string_view reason) noexcept {
    ++counted_.errors;
    note_failure(handoff_failures_, "a handoff brought no client: ", reason);
}

void loop_worker::note_rejected_user(std::optional<uid_t> user) noexcept {
    ++counted_.connections_refused;
    try {
        note_failure(rejected_users_, "a client was refused: ",
                     (user ? "the user " + std::to_string(*user) : "an unknown user") +
                         " may not connect to this socket (--allow-users)");
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): it is counted
    }
}

void loop_worker::note_failure(failure_report& of, std::string_view kind,
                               std::string_view why) noexcept {
    const time_point now = loop::current().now();
    if (of.written_at && now - *of.written_at < failure_report_interval) {
        ++of.unreported;
        return;
    }
    report_rest(of);
    of.written_at = now;
    try {
        events_.write(std::string(kind).append(why));
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): it is counted
    }
}

void loop_worker::report_rest(failure_report& of) noexcept {
    const std::uint64_t failed = std::exchange(of.unreported, 0);
    if (failed == 0) return;
    try {
        std::string line = std::to_string(failed) + " more ";
        events_.write(line.append(of.many).append(" since the last report"));
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): it is counted
    }
}

void loop_worker::note_lost(std::string_view why, std::error_code error) {
    ++counted_.errors;
    std::string line = "a client was closed: ";
    events_.write(line.append(why).append(": ").append(error.message()));
}

}  // namespace eddy::serving
