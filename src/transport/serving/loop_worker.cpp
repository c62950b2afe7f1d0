// Loop workers: connections on their way from the loop that accepted them, and their end.
#include "transport/serving/loop_worker.hpp"

#include <eddy/io/loop.hpp>

#include "transport/serving/stop_timer.hpp"

#include <new>
#include <string>
#include <utility>

namespace eddy::serving {

loop_worker::loop_worker(const worker_place& place)
    : clients_(*this, counted_, place.events),
      shared_(place.limits),
      events_(place.events),
      slots_(place.limits.assigned) {
    if (place.index != 0) {
        clients_.number_by(place.index, place.count - 1);
        clients_.use_slots(slots_);
    } else {
        clients_.count_also(shared_.assigned);
    }
}

void loop_worker::adopt(unique_fd accepted, const served_listener& from, connection_slot slot,
                        handshake begun) noexcept {
    try {
        result<stream> peer = loop::current().adopt(std::move(accepted));
        if (peer) return adopt(std::move(*peer), from, std::move(slot), std::move(begun));
        ++counted_.errors;
        events_.write("a client was lost on its way to its thread: " + peer.error().message());
    } catch (const std::bad_alloc&) {
        note_no_memory();
    }
}

void loop_worker::adopt(stream accepted, const served_listener& from, connection_slot slot,
                        handshake begun) noexcept {
    try {
        if (from.finish != nullptr)
            handshakes_.spawn(
                shake_hands(std::move(accepted), from, std::move(slot), std::move(begun)));
        else
            take(std::move(accepted), std::move(slot));
    } catch (const std::bad_alloc&) {
        note_no_memory();
    }
}

task<void> loop_worker::shake_hands(stream plain, const served_listener& from, connection_slot slot,
                                    handshake under_way) {
    const duration patience = shared_.handshakes.patience();
    try {
        result<stream> peer = co_await from.finish(std::move(plain), patience);
        under_way.reset();
        if (peer)
            take(std::move(*peer), std::move(slot));
        else if (peer.error() != errc::cancelled)
            note_failed_handshake(peer.error());
    } catch (const std::bad_alloc&) {
        note_no_memory();
    }
}

task<void> loop_worker::drain(duration limit) {
    handshakes_.cancel();
    co_await handshakes_.join();
    report_unreported_handshakes();
    clients_.drain();
    stop_timer patience(tasks_, limit);
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
    const time_point now = loop::current().now();
    if (handshake_reported_at_ && now - *handshake_reported_at_ < handshake_report_interval) {
        ++unreported_handshakes_;
        return;
    }
    report_unreported_handshakes();
    handshake_reported_at_ = now;
    try {
        events_.write("a TLS handshake with a client failed: " + error.message());
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): it is counted
    }
}

void loop_worker::report_unreported_handshakes() noexcept {
    const std::uint64_t failed = std::exchange(unreported_handshakes_, 0);
    if (failed == 0) return;
    try {
        events_.write(std::to_string(failed) + " more TLS handshakes failed since the last report");
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): it is counted
    }
}

void loop_worker::note_lost(std::string_view why, std::error_code error) {
    ++counted_.errors;
    std::string line = "a client was closed: ";
    events_.write(line.append(why).append(": ").append(error.message()));
}

}  // namespace eddy::serving
