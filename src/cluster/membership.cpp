// Search in snapshots of a cluster.
#include "cluster/membership.hpp"

#include <algorithm>

namespace eddy::cluster {

const member_info* snapshot::find(std::string_view member) const noexcept {
    const auto found = std::ranges::lower_bound(
        members, member, {}, [](const auto& each) -> std::string_view { return each->name; });
    return found != members.end() && (*found)->name == member ? found->get() : nullptr;
}

}  // namespace eddy::cluster
