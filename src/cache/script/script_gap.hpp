// Time without a suspended script, for tasks that need consistent data: snapshots, copies for
// replicas, a master's stream. While long scripts follow each other there is no such time by
// itself.
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

    /// True if no script is late: the waiting task must run now, without another wait. If one is
    /// late, scripts that would begin wait until the next call, or release(). `is_wanted` is false
    /// while another obstacle exists, which may last long: then returns false, and scripts are not
    /// held back.
    bool is_there(bool is_wanted = true) noexcept;
    /// Lets scripts begin.
    void release() noexcept;

private:
    engine& home_;
    bool holds_scripts_ = false;
};

}  // namespace eddy::cache
