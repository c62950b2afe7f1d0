// Loop worker: the connections that one loop of a server serves. A server derives its own worker,
// which knows the protocol.
#pragma once

#include <eddy/base/unique_fd.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/stream.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>

#include "serving/connection_slot.hpp"
#include "serving/connections.hpp"
#include "serving/counters.hpp"
#include "serving/handshake_budget.hpp"
#include "serving/journal.hpp"
#include "serving/passed_client.hpp"
#include "serving/served_listener.hpp"
#include "wire/proxy_protocol/client_values.hpp"

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

namespace eddy::serving {

/// Limits that hold across the loops of one server. Any thread.
struct shared_limits {
    handshake_budget handshakes;
    std::atomic<std::uint64_t> assigned{0};  ///< connections of other loops than the accepting one
    /// Clients are handed over: the programs that hand them over may keep their sockets.
    std::atomic<bool> has_shared_sockets{false};
    /// Another server has the listeners: a drain lets handshakes end, and connections end as gently
    /// as their protocol allows.
    std::atomic<bool> is_replaced{false};
};

/// A worker's place in its pool. The references outlive the worker.
struct worker_place {
    shared_limits& limits;
    journal& events;
    std::size_t index = 0;  ///< 0 is the worker on the loop that accepts
    std::size_t count = 1;  ///< workers of the pool, that one included
};

/// The least time between two journal lines of a worker about failures of a kind, handshakes or
/// handoffs; those between are counted, and the next line, or the end of the worker, gives their
/// number.
inline constexpr duration failure_report_interval = std::chrono::seconds(10);

class loop_worker;

/// The connections of a worker. Each of them reaches the worker through it.
class worker_connections final : public connections {
public:
    worker_connections(loop_worker& of, counters& counted, journal& events) noexcept
        : connections(counted, events), worker_(of) {}

    /// The worker of a connection's `all`, which is an object of this class.
    static loop_worker& worker_of(connections& all) noexcept {
        return static_cast<worker_connections&>(all).worker_;
    }

private:
    loop_worker& worker_;
};

/// Made, used and destroyed on its loop's thread, except where noted. drain() must have ended
/// before the destructor.
class loop_worker {
public:
    explicit loop_worker(const worker_place& place);
    virtual ~loop_worker() = default;
    loop_worker(const loop_worker&) = delete;
    loop_worker& operator=(const loop_worker&) = delete;

    /// Serves a connection of this loop; where listeners work in parts, as with TLS, its handshake
    /// is complete. Throws std::bad_alloc; the connection is closed then.
    virtual void take(stream accepted, connection_slot slot) = 0;
    /// Drains: closes resting connections now, and the others when they would rest or after
    /// `limit`. See shared_limits::is_replaced.
    virtual task<void> drain(duration limit);
    /// Takes out the connections that another server can continue: they rest, or their requests
    /// have had no effect yet. The others stay. No more come meanwhile.
    virtual task<std::vector<passed_client>> move_clients() {
        co_return std::vector<passed_client>();
    }
    /// Serves such a connection. One that it cannot continue is closed.
    virtual void take_moved(passed_client /*from*/, connection_slot /*slot*/) {}
    /// Connections that are taken from now on begin when `all_there` is set on this loop.
    void hold_until(std::shared_ptr<event> all_there) noexcept { gate_ = std::move(all_there); }
    /// Closes the connections that a running drain() waits for.
    void end_drain() noexcept {
        handshakes_.cancel();
        tasks_.cancel();
    }

    /// Takes a connection that another loop has accepted from a listener in parts, `from`, which
    /// outlives the connection: makes the steps from `first` on, within the budget of `begun`, and
    /// calls take(). Failures are counted in counters::errors and written to the journal, those of
    /// handshakes and of PROXY headers at most once per failure_report_interval. A proxy's
    /// connection that ends without a byte, as health checks do, is no failure.
    void adopt(unique_fd accepted, const served_listener& from, connection_slot slot,
               handshake begun, preamble first) noexcept;
    /// The same for a stream of this loop.
    void adopt(stream accepted, const served_listener& from, connection_slot slot, handshake begun,
               preamble first) noexcept;

    /// Counts a connection that was closed for want of memory, and notes it in the journal if there
    /// is memory for that.
    void note_no_memory() noexcept;
    /// Counts a connection that was closed because it could not be given to another loop.
    void note_lost(std::string_view why, std::error_code error);
    /// Counts a handoff that yielded no connection in counters::errors, and writes its reason to
    /// the journal at most once per failure_report_interval.
    void note_failed_handoff(std::string_view reason) noexcept;
    /// Counts a connection whose user may not connect in counters::connections_refused, and writes
    /// it to the journal at most once per failure_report_interval.
    void note_rejected_user(std::optional<uid_t> user) noexcept;

    /// The connections, for accepting them and for their limits.
    connections& clients() noexcept { return clients_; }
    scope& tasks() noexcept { return tasks_; }
    /// Any thread.
    connection_slots& slots() noexcept { return slots_; }
    /// Any thread.
    const counters& counted() const noexcept { return counted_; }

protected:
    /// Values of the PROXY header of the connection that take() is called for; null without a
    /// header, or where it has none. Within take().
    const proxy_protocol::client_values* announced() const noexcept { return announced_; }
    /// True if that connection has begun with a PROXY header.
    bool is_announced() const noexcept { return is_announced_; }
    /// Event of hold_until(), until it is set; null where connections begin at once.
    std::shared_ptr<event> gate() noexcept {
        if (gate_ && gate_->is_set()) gate_.reset();
        return gate_;
    }
    /// For drain(): in a server that was replaced, handshakes may end within `limit`; otherwise
    /// they are cancelled.
    task<void> end_handshakes(duration limit);
    bool is_replaced() const noexcept { return shared_.is_replaced; }

    /// Failures of a kind in the journal.
    struct failure_report {
        std::string_view many;  ///< for a sentence about their number, such as "handshakes failed"
        std::optional<time_point> written_at = {};
        std::uint64_t unreported = 0;  ///< since then
    };
    /// Writes a failure, `kind` and `why` together, at most once per failure_report_interval.
    void note_failure(failure_report& of, std::string_view kind, std::string_view why) noexcept;
    /// Writes the number of failures that were not written.
    void report_rest(failure_report& of) noexcept;

    counters counted_;
    worker_connections clients_;
    scope handshakes_;
    scope tasks_;

private:
    task<void> shake_hands(stream plain, const served_listener& from, connection_slot slot,
                           handshake under_way, preamble first);
    void take_announced(stream peer, connection_slot slot,
                        const proxy_protocol::client_values* values);
    void note_failed_handshake(std::error_code error) noexcept;
    void note_failed_header(const endpoint& proxy, std::error_code error) noexcept;

    shared_limits& shared_;
    journal& events_;
    connection_slots slots_;
    const bool is_accepting_;
    bool is_announced_ = false;  // while take() runs
    std::shared_ptr<event> gate_;
    const proxy_protocol::client_values* announced_ = nullptr;
    failure_report handshake_failures_{"handshakes failed"};
    failure_report header_failures_{"connections had no valid PROXY header"};
    failure_report handoff_failures_{"handoffs brought no client"};
    failure_report rejected_users_{"clients of users that may not connect were refused"};
};

}  // namespace eddy::serving
