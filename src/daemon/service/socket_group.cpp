// Group of the control socket.
#include "daemon/service/socket_group.hpp"

#include "base/files/socket_owner.hpp"

#include <fmt/format.h>

#include <optional>

namespace eddy::daemon {

outcome<> give_to_group(const std::string& path, gid_t group) {
    constexpr mode_t of_group = 0660;
    const auto given = give_socket(path, std::nullopt, group, of_group);
    if (given) return {};
    return refuse(500, fmt::format("could not give {} to the group {}: {}. The daemon's user must "
                                   "be root or in the group of --socket-group",
                                   path, group, given.error().message()));
}

}  // namespace eddy::daemon
