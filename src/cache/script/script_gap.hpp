// A time without a script that is left in the middle, for tasks that need whole data: snapshots,
// copies for replicas, a master's stream. Where one long script follows another no such time comes
// by itself.
#pragma once

#include "cache/engine/engine.hpp"

namespace eddy::cache {

/// The loop's thread. Must not outlive the engine.
class script_gap {
public:
    explicit script_gap(engine& of) noexcept : home_(of) {}
    ~script_gap() { release(); }
    script_gap(const script_gap&) = delete;
    script_gap& operator=(const script_gap&) = delete;

    /// Whether no script is late: what has waited for the gap is to be done now, without a wait. If
    /// one is, scripts that would begin wait until the next call, or release(). False, without
    /// holding scripts up, while something else is in the way, which may take long.
    bool is_there(bool is_wanted = true) noexcept;
    /// Lets scripts begin.
    void release() noexcept;

private:
    engine& home_;
    bool holds_scripts_ = false;
};

}  // namespace eddy::cache
