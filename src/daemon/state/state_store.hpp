// State store: the records of runtimes that outlive the daemon. An interface; state_folder is the
// implementation in files.
#pragma once

#include "base/problem.hpp"
#include "daemon/state/runtime_record.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::daemon {

struct loaded_state {
    std::vector<runtime_record> records;  ///< in the order of creation
    std::vector<std::string> complaints;  ///< a sentence for each record that was set aside
};

/// Records that are saved and erased in one step.
struct state_change {
    std::vector<runtime_record> saved;
    std::vector<std::string> erased;  ///< names
};

/// Remains of saves that have not ended: of a daemon that was killed, or of a save that is under
/// way.
enum class unfinished : std::uint8_t { kept, removed };

/// Members may block: call them where that is allowed, on any thread. They share nothing, but two
/// calls about one name at the same time are the caller's mistake.
class state_store {
public:
    state_store() = default;
    state_store(const state_store&) = delete;
    state_store& operator=(const state_store&) = delete;
    virtual ~state_store() = default;

    /// Saves a record durably, in the place of one of its name; on failure the old one is still
    /// there.
    virtual outcome<> save(const runtime_record& record) const = 0;

    /// Removes a record; one that is not there is no error.
    virtual outcome<> erase(std::string_view name) const = 0;

    /// First half of a change in one step: writes all that it needs beside the records. On failure
    /// nothing is left of it. At most one change is staged at a time.
    virtual outcome<> stage(const state_change& change) const = 0;
    /// Second half: from an instant on all records are as in the staged change, whatever ends the
    /// process. On failure none is, and nothing is left of it.
    virtual outcome<> commit(const state_change& change) const = 0;
    /// In place of commit(): removes what was staged.
    virtual void discard(const state_change& change) const = 0;

    /// True when there is a record of that name, damaged or not.
    virtual bool contains(std::string_view name) const = 0;

    /// Reads every record and sets damaged ones aside. While one may be whole but cannot be read,
    /// all is refused (500), so that no runtime of its name takes its place.
    virtual outcome<loaded_state> load(unfinished what) const = 0;
};

}  // namespace eddy::daemon
