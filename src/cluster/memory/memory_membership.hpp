// Membership over memory that members of one process share: for tests and the simulator.
#pragma once

#include "cluster/beats/beat_membership.hpp"
#include "cluster/membership.hpp"
#include "cluster/memory/memory_cluster.hpp"

namespace eddy::cluster {

/// The engine. One loop's thread.
class memory_membership final : public beat_membership {
public:
    /// `of` and `reports` must outlive it.
    memory_membership(memory_cluster& of, observer& reports, const beat_rules& rules = {});

    /// Faults of this member's process: memory_store::kill(), stop(), resume(), step_clock(). One
    /// that was killed is freed after end(), which removes nothing then.
    memory_store& process() noexcept { return static_cast<memory_store&>(store()); }
};

}  // namespace eddy::cluster
