// Shared store in which members leave beats and what they show of themselves, for each other to
// read: a folder, or the memory of tests. It neither judges nor notifies, and has no locks.
#pragma once

#include <eddy/io/event.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>

#include "base/problem.hpp"
#include "cluster/member_table.hpp"
#include "cluster/membership.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace eddy::cluster {

/// A beat to write.
struct beat_request {
    std::string name;
    beat its;
    std::shared_ptr<const member_info> info;  ///< of its.sequence
    std::shared_ptr<const std::string> text;  ///< the same, encoded
    /// Do not replace the beat of any other start. False: replace one that `its` outranks.
    bool is_yielding = false;
};

/// All that could be read.
struct store_view {
    sightings seen;
    std::uint64_t place = 0;  ///< another number: another store is at this place now
    /// Sentences about damaged or foreign entries, each once until it has changed.
    std::vector<std::string> troubles;
    std::vector<std::string> recoveries;
};

/// One member's access to the store. At most one write and one read are in flight. A refusal's
/// status is 400 for a store that cannot be used at all, 503 for one that cannot be reached now; it
/// may heal by itself. One loop's thread.
class beat_store {
public:
    beat_store() = default;
    beat_store(const beat_store&) = delete;
    beat_store& operator=(const beat_store&) = delete;
    virtual ~beat_store() = default;

    /// The store, as a part of a sentence: "the folder /srv/eddy".
    virtual std::string description() const = 0;
    /// The clock by which this member judges: the loop's.
    virtual time_point now() const { return loop::current().now(); }

    /// Checks that a member of this name can be written. Before the first write.
    virtual task<outcome<>> prepare(std::string name) = 0;
    /// Writes the beat, and before it the text where the store does not have that of this sequence.
    /// Yields the other start's beat where that keeps its place: nothing was written.
    virtual task<outcome<std::optional<beat>>> write(beat_request request) = 0;
    virtual task<outcome<store_view>> read() = 0;
    /// Removes what a member has written, if the beat there is of the same start, and `last` or an
    /// earlier one. Failures are ignored.
    virtual task<void> erase(std::string name, beat last) = 0;
    /// Sets `changed` when another member may have written something new, until cancelled. A store
    /// that cannot notice returns.
    virtual task<void> watch(event& changed) = 0;
};

}  // namespace eddy::cluster
