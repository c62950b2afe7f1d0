// The engine over memory, from its parts.
#include "cluster/memory/memory_membership.hpp"

#include <memory>

namespace eddy::cluster {

memory_membership::memory_membership(memory_cluster& of, observer& reports, const beat_rules& rules)
    : beat_membership(std::make_unique<memory_store>(of), reports, rules) {}

}  // namespace eddy::cluster
