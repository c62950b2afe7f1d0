// Liveness of the members that an engine observes by their beats: sightings in, living members out.
// No I/O; the clock is passed in.
//
// A member lives as long as its beat changes. The time without a change is measured by the reader's
// monotonic clock, from round to round, so no clock of another machine counts, and no step of a
// wall clock. Time in which nothing could be observed does not count, either: after an outage each
// member has its full time again.
#pragma once

#include <eddy/io/timer.hpp>

#include "cluster/membership.hpp"
#include "cluster/snapshot_feed.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::cluster {

/// Sign of life of a member. Any difference from the one before counts.
struct beat {
    std::string id;              ///< member_info::id, of a start of the daemon
    std::uint64_t term = 0;      ///< one more than that of the silent start whose name it took over
    std::uint64_t count = 0;     ///< of the beats of this start
    std::uint64_t sequence = 0;  ///< of what this start shows of itself; another one, other content

    friend bool operator==(const beat&, const beat&) = default;
};

/// True if a start with the beat `other` keeps a name against one with the beat `own`: the later
/// term wins, and of two that began at the same time the lower id. All members decide alike.
bool outranks(const beat& other, const beat& own) noexcept;

/// A member as it was read.
struct sighting {
    std::string name;
    beat its;
    std::shared_ptr<const member_info> info;  ///< null: it cannot be read
};
/// By name, each name once.
using sightings = std::vector<std::shared_ptr<const sighting>>;

/// State of a member in the eyes of the reader.
enum class liveness : std::uint8_t {
    unproven,  ///< its beat was there at the first round, and has not changed since
    alive,
    gone,  ///< silent for too long; its remains are still there
};

/// The members that one reader knows. One thread.
class member_table {
public:
    /// A longer pause between two rounds counts as so much: nothing was observed meanwhile.
    static constexpr duration longest_step = std::chrono::seconds(1);

    /// A member whose beat does not change for `silence` is gone; it is forgotten after `memory`
    /// more.
    member_table(duration silence, duration memory) noexcept : silence_(silence), memory_(memory) {}

    /// A round: all that was read at `now`. A name that is missing in two rounds has left: one
    /// round may have come into the middle of something, such as the removal of the whole store.
    /// False if members() stays the same.
    bool judge(const sightings& seen, time_point now);
    /// The time until `now` does not count, since nothing could be read, or this member's own
    /// beats were not written. Members have their full time again. Implies doubt().
    void skip(time_point now) noexcept;
    /// For the next `silence` a missing name is silent, and has not left: the place that is read
    /// may be a new one, in which the members have not written yet.
    void doubt() noexcept { doubt_until_ = clock_ + silence_; }

    /// The living members that can be read, by name.
    const member_list& members() const noexcept { return members_; }
    /// Time until the next member is gone, if it stays silent, and 0 while one is missing;
    /// duration::max() for none.
    duration next_end() const noexcept;
    /// True while a member is unproven.
    bool has_unproven() const noexcept;

    /// A known name; null for none. Valid until the next judge().
    const sighting* find(std::string_view name) const noexcept;
    /// Its state; `gone` for a name that is not known.
    liveness state_of(std::string_view name) const noexcept;
    /// The members that have been forgotten since the last call.
    sightings take_forgotten() { return std::exchange(forgotten_, {}); }

private:
    struct entry {
        std::shared_ptr<const sighting> last;
        liveness state;
        bool is_missing;  // since the last round
        bool is_forgotten;
        duration silent_since;  // of clock_: the last round in which it may have been silent
    };

    const entry* entry_of(std::string_view name) const noexcept;
    void see(entry& its, const std::shared_ptr<const sighting>& now, duration before);
    void age(entry& its);
    bool collect();

    duration silence_;
    duration memory_;
    duration clock_{};  // observed time
    duration doubt_until_{};
    time_point last_round_{};
    bool has_begun_ = false;
    std::vector<entry> entries_;  // by name
    member_list members_;
    sightings forgotten_;
};

}  // namespace eddy::cluster
