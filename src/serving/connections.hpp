// Connections of a server: accepting them within a limit, closing idle and stuck ones, and draining
// them when the server stops.
//
// A server derives its own connection class from `connection` and serves each in one coroutine,
// which runs under the connection's own cancel_source: cancelling that ends the coroutine at its
// current wait, whatever it is.
#pragma once

#include <eddy/base/intrusive_list.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/stream.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>

#include "io/sockets/linger.hpp"
#include "serving/connection_slot.hpp"
#include "serving/counters.hpp"
#include "serving/journal.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <system_error>

namespace eddy::serving {

class connections;

/// Purpose of a connection's current wait. A pause that the server imposes (a rate limit) counts as
/// working.
enum class activity : std::uint8_t {
    resting,    ///< for bytes, with nothing owed in either direction: may be closed at any time
    listening,  ///< the same, but for messages of other clients: never idle
    reading,    ///< for the rest of a message
    working,    ///< for something on this side
    writing,    ///< for the peer to take bytes
};

/// One accepted connection; it counts as long as it lives.
class connection : public list_link<> {
public:
    /// Owns `slot` until its end; see connections::use_slots().
    connection(connections& all, stream accepted, cancel_source& parent,
               connection_slot slot = nullptr);

    stream socket;
    cancel_source cancel;

    std::uint64_t id() const noexcept { return id_; }

    /// Closes the connection: its waits end with errc::cancelled, for good.
    void close() noexcept {
        is_closing_ = true;
        cancel.request();
    }
    /// Ends the wait that is under way with errc::cancelled, without closing the connection; the
    /// coroutine then calls take_interruption(). Costs no memory, which a source of its own would.
    void interrupt() noexcept {
        // More than once before the coroutine runs it is the same.
        if (!cancel.requested()) is_interrupted_ = true;
        cancel.request();
    }
    /// After a wait that failed: true if the cause was interrupt() alone. Then `cancel` is a fresh
    /// child of `parent`, and the connection continues. Only while nothing waits under `cancel`.
    bool take_interruption(cancel_source& parent) noexcept;

    /// Sets the purpose of the next wait. Both idle and stuck times count from the last call of
    /// touch().
    void enter(activity now) noexcept { doing_ = now; }
    activity doing() const noexcept { return doing_; }
    /// Bytes came or went.
    void touch() noexcept;
    /// Time of the last touch().
    time_point touched_at() const noexcept { return active_at_; }
    /// True if the connection is to close instead of resting: connections::drain().
    bool draining() const noexcept;

protected:
    ~connection();
    /// For a connection that closes `socket` itself, before it does so: see
    /// connections::shut_down_if().
    void end_sending() noexcept;

    connections& all_;

private:
    friend class connections;
    time_point active_at_;
    std::uint64_t id_ : 48;  // at a million connections a second, enough for nine years
    activity doing_ : 8 = activity::resting;
    bool is_closing_ : 1 = false;
    bool is_interrupted_ : 1 = false;
};

/// The connections of one loop. Only the loop's thread.
class connections : private timer {
public:
    struct limits {
        std::uint64_t most = 10'000;
        duration idle{};   ///< silent for this long: closed; 0 means never
        duration stuck{};  ///< takes no byte of what is written for this long: closed; 0 is never
    };

    /// `counted` and `events` outlive it.
    connections(counters& counted, journal& events) noexcept : counted_(counted), events_(events) {}

    void set_limits(const limits& chosen) noexcept;
    /// Adds `others`, connections counted elsewhere, to the count for the limit. It must outlive
    /// this object.
    void count_also(const std::atomic<std::uint64_t>& others) noexcept { others_ = &others; }

    /// Shuts down the sending side of ending connections while `shares` is true: another process
    /// may have the socket, and then closing it here does not signal the end to the peer. `shares`
    /// must outlive this object.
    void shut_down_if(const std::atomic<bool>& shares) noexcept { has_shared_sockets_ = &shares; }

    /// Slots of the connections, one each, passed to the constructor. They must outlive this
    /// object.
    void use_slots(connection_slots& of) noexcept { slots_ = &of; }
    /// Calls `f` with each connection before it is closed for a time limit or for a drain: other
    /// coroutines may use it until its own has ended.
    void before_closing(void (*f)(connection&) noexcept) noexcept { before_closing_ = f; }
    /// Numbers the connections first, first + step and so on, so that numbers are unique among
    /// several objects of one server. Before the first connection.
    void number_by(std::uint64_t first, std::uint64_t step) noexcept {
        last_id_ = first - step;
        id_step_ = step;
    }

    /// At most so many rejected connections linger at once, so that their refusal reaches clients
    /// that have sent bytes. Further ones are closed at once.
    static constexpr std::size_t max_lingering_rejects = 128;
    /// Times of their lingering.
    static constexpr linger_limits reject_linger{.whole = std::chrono::seconds(5),
                                                 .idle = std::chrono::seconds(1)};

    /// Awaits the next connection that is within the limit; the others get `refusal`, which must
    /// outlive this object, and linger in `rejected`, which has no other tasks. Without a refusal
    /// they are reset, as an end without a byte could pass for an empty answer. When only reserved
    /// descriptors are free, it waits for others. Fails when cancelled.
    task<result<stream>> accept(listener& from, std::string_view refusal, scope& rejected);

    bool draining() const noexcept { return draining_; }
    /// True if resting connections are closed: while draining, unless they are kept.
    bool closes_resting() const noexcept { return draining_ && !is_gentle_; }
    /// Keeps resting connections in a drain() of a server that was replaced: their protocol
    /// announces the end with the next response.
    void keep_resting() noexcept { keeps_resting_ = true; }
    /// Closes the connections that rest, and the others as soon as they would rest. `is_replaced`:
    /// see keep_resting().
    void drain(bool is_replaced = false) noexcept;
    /// Ends draining, for another start.
    void reset() noexcept;

    std::uint64_t count() const noexcept { return count_; }

    /// Calls f(connection&) for each; f may destroy the one that it is given.
    template <class F>
    void for_each(F&& f) {
        members_.for_each(static_cast<F&&>(f));
    }

private:
    friend class connection;
    void reject(stream peer, std::string_view refusal, scope& rejected);
    void fire() noexcept override;
    void watch() noexcept;
    duration shortest() const noexcept;
    void close(connection& c) noexcept;
    void end_sending(stream& on) const noexcept;
    task<result<>> wait_for_descriptors(std::error_code error);
    task<result<>> wait_for_room(const stream& accepted);

    counters& counted_;
    journal& events_;
    limits limits_;
    intrusive_list<connection> members_;
    std::uint64_t count_ = 0;
    const std::atomic<std::uint64_t>* others_ = nullptr;
    const std::atomic<bool>* has_shared_sockets_ = nullptr;
    std::uint64_t last_id_ = 0;
    std::uint64_t id_step_ = 1;
    connection_slots* slots_ = nullptr;
    void (*before_closing_)(connection&) noexcept = nullptr;
    bool draining_ = false;
    bool keeps_resting_ = false;
    bool is_gentle_ = false;  // the drain
    bool said_full_ = false;
    bool said_starved_ = false;
};

inline bool connection::draining() const noexcept { return all_.draining(); }

/// Lingering close of a connection, after its last bytes and shutdown_write(): reads and drops
/// further bytes of the peer, as eddy::linger(). It rests meanwhile, so drain() ends it at once;
/// while draining it does not linger.
task<void> linger(connection& of, linger_limits limits = {});

}  // namespace eddy::serving
