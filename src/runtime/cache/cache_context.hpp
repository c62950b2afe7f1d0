// Context of a running cache: its engine with the clock, and what its parts (workers, files,
// replication, commands about the server) share.
//
// With several workers the engine, like all of this, belongs to the home loop, which is lockable: a
// worker on another loop touches it only with the loop locked. With one worker there is no lock,
// and a loop_lock does nothing.
#pragma once

#include <eddy/io/event.hpp>
#include <eddy/io/executor.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/loop_lock.hpp>
#include <eddy/io/task.hpp>

#include "cache/config/server_settings.hpp"
#include "cache/engine/engine.hpp"
#include "cache/engine/traffic.hpp"
#include "serving/connections.hpp"
#include "serving/counters.hpp"
#include "serving/journal.hpp"
#include "serving/loop_pool.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

namespace eddy::runtime::cache {

class append_file;
class cache_files;
class replica_feed;

/// Limits of a worker's clients.
struct worker_limits {
    serving::connections::limits of_connections;
    std::size_t max_argument = 0;      ///< bytes of one, as proto-max-bulk-len
    std::size_t max_query_buffer = 0;  ///< client-query-buffer-limit
};

/// The engine's clock: set once a turn of each loop.
class engine_clock {
public:
    explicit engine_clock(eddy::cache::engine& of) : engine_(of), kind_(loop::current().kind()) {
        // A simulated run is repeated exactly: no slice of work may depend on how fast it went.
        if (kind_ == io_backend_kind::sim) engine_.set_slice_clock(nullptr);
    }

    /// `now` is that of the calling thread's own loop. Of several loops the latest counts: the
    /// engine's time does not go back with each that began its turn a little earlier.
    void update(time_point now) noexcept {
        if (now <= updated_at_) return;
        updated_at_ = now;
        using namespace std::chrono;
        of_day_ = kind_ == io_backend_kind::sim
                      ? duration_cast<microseconds>(now.time_since_epoch())
                      : duration_cast<microseconds>(system_clock::now().time_since_epoch());
        const auto even = duration_cast<microseconds>(now.time_since_epoch());
        if (!began_) began_ = of_day_ - even;
        steady_ = *began_ + even;
        engine_.set_time(of_day_, steady_);
    }
    /// True while the engine's time is less than a millisecond old. Also with the loop locked
    /// shared.
    bool is_current(time_point now) const noexcept {
        return now - updated_at_ < std::chrono::milliseconds(1);
    }
    /// The engine's steady time, as of the last update().
    std::chrono::microseconds steady() const noexcept { return steady_; }

private:
    eddy::cache::engine& engine_;
    io_backend_kind kind_;
    time_point updated_at_{};
    std::chrono::microseconds of_day_{};
    /// Between the loops' time and the system's, when this began.
    std::optional<std::chrono::microseconds> began_;
    std::chrono::microseconds steady_{};
};

/// One for each start of a cache; it outlives the workers and all other parts. The home loop's
/// thread, or with the loop locked, where nothing else is said.
struct cache_context final : loop_lock_observer {
    /// Default limit of await_progress().
    static constexpr duration longest_wait = std::chrono::seconds(1);

    /// `its_counters` are the cache's own, beside those of its workers. All references outlive it.
    cache_context(eddy::cache::engine& its_engine, serving::journal& its_events,
                  serving::counters& its_counters)
        : engine(its_engine), events(its_events), counted(its_counters), clock(its_engine) {}

    void became_exclusive() noexcept override { engine.merge_lanes(); }

    /// Updates the engine's clock. The home loop's thread, once in each of its turns in which the
    /// engine works; also with the loop locked.
    void update_time() noexcept { clock.update(loop::current().now()); }

    /// Requests a sweep of expired keys, and that memory is given back.
    void ask_upkeep() noexcept {
        if (!work_done.is_set()) work_done.set();
    }

    /// Notes that a client was closed for want of memory: in the caller's own counters, and in the
    /// journal if there is memory for that. Its id is 0 when it had no session yet. Any thread.
    void note_no_memory(serving::counters& its, std::uint64_t client_id = 0) const noexcept;

    /// Bytes and calls of all connections so far.
    eddy::cache::traffic traffic() const noexcept;

    /// The workers' limits, by the settings of now, which CONFIG SET changes.
    worker_limits limits() const noexcept;

    /// Waits for progress, but at most so long: what a stop waits for may also end without a
    /// notification. False when it is cancelled. The home loop's thread.
    task<bool> await_progress(duration limit = longest_wait);
    /// The same, but at most until this time of the engine's steady clock, in microseconds: the end
    /// of a pause, or a session's deadline.
    task<bool> await_progress_until(std::int64_t steady_us);

    eddy::cache::engine& engine;
    serving::journal& events;
    serving::counters& counted;
    engine_clock clock;
    /// Changed by CONFIG SET once clients are served.
    eddy::cache::server_settings settings;
    executor home = executor::current();
    std::unique_ptr<lockable_loop> lockable;  // null with one worker
    serving::loop_pool* pool = nullptr;       // of workers; null before their time
    cache_files* files = nullptr;             // null without a folder
    append_file* append = nullptr;            // the same
    replica_feed* replicas = nullptr;         // null until clients are served
    duration write_timeout{};                 // 0: none
    std::size_t max_queue = 0;                // bytes of replies that one client may leave unread
    std::size_t max_pending_reply = 0;        // as of the engine's options
    event work_done;                          // clients have done something
    event is_behind;                          // the engine is: see engine::is_behind()
    event outputs_due;  // a client over a soft limit is due earlier than before
    event limits_due;   // limits() are others than the workers have
    /// Saves, the append-only file, replicas or a master's stream got further; or an obstacle of
    /// server_host::obstacle_ended() has ended, or a stop was given up.
    event progress;
    event keys_sent;  // by a migration
};

}  // namespace eddy::runtime::cache
