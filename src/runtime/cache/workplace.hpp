// What all workers of one cache share: the engine, its time, and what is told to the cache's own
// tasks.
//
// With several workers the engine, like all of this, belongs to the home loop, whose turns are
// shared: a worker on another loop touches it within a visit alone. With one worker there is no
// lock, and a visit is nothing.
#pragma once

#include <eddy/io/event.hpp>
#include <eddy/io/executor.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/turns.hpp>

#include "cache/engine/engine.hpp"
#include "runtime/journal.hpp"
#include "runtime/metrics.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

namespace eddy::runtime::cache {

class append_file;
class replicator;

/// Tells the engine the time, once a turn of each loop.
class engine_clock {
public:
    explicit engine_clock(eddy::cache::engine& of) : engine_(of), kind_(loop::current().kind()) {
        // A simulated run is repeated exactly: no slice of work may depend on how fast it went.
        if (kind_ == backend_kind::sim) engine_.set_slice_clock(nullptr);
    }

    /// It is `now` of the calling thread's own loop. Of several loops the latest counts: the
    /// engine's time does not go back with each that began its turn a little earlier.
    void tell(time_point now) noexcept {
        if (now <= told_) return;
        told_ = now;
        using namespace std::chrono;
        of_day_ = kind_ == backend_kind::sim
                      ? duration_cast<microseconds>(now.time_since_epoch())
                      : duration_cast<microseconds>(system_clock::now().time_since_epoch());
        const auto even = duration_cast<microseconds>(now.time_since_epoch());
        if (!began_) began_ = of_day_ - even;
        steady_ = *began_ + even;
        engine_.set_time(of_day_, steady_);
    }
    /// Whether the engine's time is right enough. Also within a shared visit.
    bool is_told(time_point now) const noexcept {
        return now - told_ < std::chrono::milliseconds(1);
    }
    /// The engine's steady time, as it was last told.
    std::chrono::microseconds steady() const noexcept { return steady_; }

private:
    eddy::cache::engine& engine_;
    backend_kind kind_;
    time_point told_{};
    std::chrono::microseconds of_day_{};
    /// Between the loops' time and the system's, when this began.
    std::optional<std::chrono::microseconds> began_;
    std::chrono::microseconds steady_{};
};

/// Handshakes that the workers have under way at once; those who come then wait in the backlog.
inline constexpr std::uint64_t max_handshakes = 1024;
/// How long one may take; less while many are under way.
inline constexpr duration handshake_timeout = std::chrono::seconds(10);
inline constexpr duration pressed_handshake_timeout = std::chrono::seconds(1);

struct handshake_ender {
    void operator()(std::atomic<std::uint64_t>* of) const noexcept { --*of; }
};
/// One that is counted until this dies; null where there is none.
using handshake = std::unique_ptr<std::atomic<std::uint64_t>, handshake_ender>;

/// One for each start of a cache; it outlives the workers.
struct workplace final : turn_listener {
    workplace(eddy::cache::engine& its_engine, journal& its_events)
        : engine(its_engine), events(its_events), clock(its_engine) {}

    void is_alone() noexcept override { engine.settle_lanes(); }

    /// Has keys that end looked for, and memory given back.
    void ask_upkeep() noexcept {
        if (!work_done.is_set()) work_done.set();
    }

    /// Whether replies must wait for the append-only file; the other also of commands that change
    /// nothing. Also within a shared visit.
    bool holds_replies() const noexcept;
    bool holds_reads() const noexcept;

    /// A client was closed for want of memory: counted by the caller's own counters, and told if
    /// there is memory for that. Its id is 0 when it had no session yet. Any thread.
    void note_no_memory(counters& its, std::uint64_t client_id = 0) const noexcept;

    eddy::cache::engine& engine;
    journal& events;
    engine_clock clock;
    executor home = executor::current();
    std::unique_ptr<shared_turns> turns;  // null with one worker
    append_file* append = nullptr;        // null without a folder
    replicator* replicating = nullptr;
    std::size_t max_queue = 0;          // bytes of replies that one client may leave unread
    std::size_t max_pending_reply = 0;  // as of the engine's options
    event work_done;                    // clients have done something
    event is_behind;                    // the engine is: see engine::is_behind()
    std::atomic<std::uint64_t> clients_elsewhere{0};  // given to workers on other loops
    std::atomic<std::uint64_t> handshakes{0};         // under way on other loops
};

}  // namespace eddy::runtime::cache
