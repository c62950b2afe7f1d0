// Positions and distances as arguments and replies of the GEO commands.
#pragma once

#include "cache/types/sorted_sets/geo.hpp"

#include <cstddef>
#include <optional>

namespace eddy::cache {

struct call;

/// The arguments args[at] and args[at + 1] as longitude and latitude, or none with the error
/// replied.
std::optional<geo::position> geo_position(call& c, std::size_t at);

/// The metres that this unit has, or none with the error replied.
std::optional<double> geo_unit(call& c, std::size_t at);

/// With up to 17 digits behind the point.
void reply_coordinate(call& c, double degrees);

/// With four digits behind the point, as a bulk string in either protocol.
void reply_distance(call& c, double distance);

}  // namespace eddy::cache
