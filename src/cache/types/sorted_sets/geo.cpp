// Interleaving of bits, distances on great circles, squares.
#include "cache/types/sorted_sets/geo.hpp"

#include <eddy/base/assert.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

namespace eddy::cache::geo {
namespace {

constexpr double earth_radius_m = 6372797.560856;
constexpr double radian = std::numbers::pi / 180;
constexpr unsigned bits_each = 26;
constexpr std::uint64_t steps_each = std::uint64_t{1} << bits_each;

// Moves bits 0 .. 31 to the positions 0, 2, 4 ..
std::uint64_t spread(std::uint64_t bits) noexcept {
    bits &= 0xffff'ffff;
    bits = (bits | bits << 16) & 0x0000'ffff'0000'ffffULL;
    bits = (bits | bits << 8) & 0x00ff'00ff'00ff'00ffULL;
    bits = (bits | bits << 4) & 0x0f0f'0f0f'0f0f'0f0fULL;
    bits = (bits | bits << 2) & 0x3333'3333'3333'3333ULL;
    return (bits | bits << 1) & 0x5555'5555'5555'5555ULL;
}

// The reverse: the bits at even positions.
std::uint32_t gather(std::uint64_t bits) noexcept {
    bits &= 0x5555'5555'5555'5555ULL;
    bits = (bits | bits >> 1) & 0x3333'3333'3333'3333ULL;
    bits = (bits | bits >> 2) & 0x0f0f'0f0f'0f0f'0f0fULL;
    bits = (bits | bits >> 4) & 0x00ff'00ff'00ff'00ffULL;
    bits = (bits | bits >> 8) & 0x0000'ffff'0000'ffffULL;
    return static_cast<std::uint32_t>(bits | bits >> 16);
}

std::uint64_t weave(std::uint64_t longitude, std::uint64_t latitude) noexcept {
    return spread(longitude) << 1 | spread(latitude);
}

// Number of the step, of 2^26 between -limit and limit; 2^26 at the very end.
std::uint64_t step_of(double degrees, double limit) noexcept {
    const double part = (degrees + limit) / (2 * limit);
    return static_cast<std::uint64_t>(part * static_cast<double>(steps_each));
}

double middle_of(std::uint32_t step, double limit) noexcept {
    const auto edge = [limit](double number) {
        return -limit + number / static_cast<double>(steps_each) * (2 * limit);
    };
    const double low = edge(step);
    // The next number, in 32 bits.
    const double high = edge(static_cast<std::uint32_t>(step + 1));
    return std::clamp((low + high) / 2, -limit, limit);
}

// A score is any double; those out of range are converted as processors do.
std::uint64_t bits_of(double score) noexcept {
    constexpr double two_63 = 9223372036854775808.0;
    if (score >= 0 && score < 2 * two_63) return static_cast<std::uint64_t>(score);
    if (score < 0 && score > -two_63) {
        return static_cast<std::uint64_t>(static_cast<std::int64_t>(score));
    }
    return score > 0 ? 0 : std::uint64_t{1} << 63;
}

double latitude_distance(double a, double b) noexcept {
    return earth_radius_m * std::fabs(b * radian - a * radian);
}

// Degrees of longitude to each side of the centre within which all points at most `metres` away
// are, at this latitude.
double longitudes_within(double metres, double latitude) noexcept {
    const double half_angle = metres / earth_radius_m / 2;
    const double narrowed = std::cos(latitude * radian);
    if (half_angle >= std::numbers::pi / 2 || std::sin(half_angle) >= narrowed) return 180;
    return 2 * std::asin(std::sin(half_angle) / narrowed) / radian;
}

}  // namespace

bool is_valid(position where) noexcept {
    return where.longitude >= -max_longitude && where.longitude <= max_longitude &&
           where.latitude >= -max_latitude && where.latitude <= max_latitude;
}

std::uint64_t encode(position where) noexcept {
    return weave(step_of(where.longitude, max_longitude), step_of(where.latitude, max_latitude));
}

std::uint64_t encode_for_text(position where) noexcept {
    return weave(step_of(where.longitude, max_longitude), step_of(where.latitude, 90));
}

position decode(double score) noexcept {
    const std::uint64_t bits = bits_of(score);
    return {middle_of(gather(bits >> 1), max_longitude), middle_of(gather(bits), max_latitude)};
}

// The haversine formula.
double distance(position a, position b) noexcept {
    const double v = std::sin((b.longitude * radian - a.longitude * radian) / 2);
    if (v == 0) return latitude_distance(a.latitude, b.latitude);
    const double south = a.latitude * radian;
    const double north = b.latitude * radian;
    const double u = std::sin((north - south) / 2);
    const double h = u * u + std::cos(south) * std::cos(north) * v * v;
    return 2.0 * earth_radius_m * std::asin(std::sqrt(h));
}

bool area::has(position where, double& metres) const noexcept {
    if (is_box) {
        if (latitude_distance(where.latitude, centre.latitude) > height / 2) return false;
        if (distance(where, {centre.longitude, where.latitude}) > width / 2) return false;
        metres = distance(centre, where);
        return true;
    }
    metres = distance(centre, where);
    return !(metres > radius);
}

cover::cover(const area& of) noexcept {
    const double up = (of.is_box ? of.height / 2 : of.radius) / earth_radius_m / radian;
    const double north = of.centre.latitude + up;
    const double south = of.centre.latitude - up;
    double aside = 180;
    // With a pole inside, all longitudes are.
    if (north < 90 && south > -90) {
        if (of.is_box) {
            const double farthest = std::max(std::fabs(north), std::fabs(south));
            aside = longitudes_within(of.width / 2, farthest);
        } else {
            const double angle = of.radius / earth_radius_m;
            const double narrowed = std::cos(of.centre.latitude * radian);
            if (angle < std::numbers::pi / 2 && std::sin(angle) < narrowed) {
                aside = std::asin(std::sin(angle) / narrowed) / radian;
            }
        }
    }
    const double west = of.centre.longitude - aside;
    const double east = of.centre.longitude + aside;
    if (aside >= 179) {
        add_squares(-180, 180, south, north);
    } else {
        add_squares(std::max(west, -180.0), std::min(east, 180.0), south, north);
        if (west < -180) add_squares(west + 360, 180, south, north);
        if (east > 180) add_squares(-180, east - 360, south, north);
    }
    // 180 degrees east and the northern limit themselves need one more bit.
    add(steps_each * steps_each, 4 * steps_each * steps_each);
    sort_and_join();
}

// The smallest squares of which three in each direction suffice.
void cover::add_squares(double west, double east, double south, double north) noexcept {
    const auto clamped = [](double degrees, double limit) {
        return step_of(std::clamp(degrees, -limit, limit), limit);
    };
    // One more step on each side, for rounding.
    const auto down = [](std::uint64_t step) { return step == 0 ? 0 : step - 1; };
    const auto up = [](std::uint64_t step) { return std::min(step + 1, steps_each - 1); };
    const std::uint64_t x0 = down(clamped(west, max_longitude));
    const std::uint64_t x1 = up(clamped(east, max_longitude));
    const std::uint64_t y0 = down(clamped(south, max_latitude));
    const std::uint64_t y1 = up(clamped(north, max_latitude));
    unsigned shift = 0;
    while ((x1 >> shift) - (x0 >> shift) > 2 || (y1 >> shift) - (y0 >> shift) > 2) ++shift;
    for (std::uint64_t x = x0 >> shift; x <= x1 >> shift; ++x) {
        for (std::uint64_t y = y0 >> shift; y <= y1 >> shift; ++y) {
            const std::uint64_t square = weave(x, y);
            add(square << 2 * shift, (square + 1) << 2 * shift);
        }
    }
}

void cover::add(std::uint64_t begin, std::uint64_t end) noexcept {
    EDDY_ASSERT(count_ < max_ranges);
    ranges_[count_++] = {static_cast<double>(begin), static_cast<double>(end)};
}

void cover::sort_and_join() noexcept {
    std::sort(ranges_.begin(), ranges_.begin() + count_,
              [](const score_range& a, const score_range& b) { return a.begin < b.begin; });
    std::size_t last = 0;
    for (std::size_t i = 1; i < count_; ++i) {
        if (ranges_[i].begin <= ranges_[last].end) {
            ranges_[last].end = std::max(ranges_[last].end, ranges_[i].end);
        } else {
            ranges_[++last] = ranges_[i];
        }
    }
    count_ = last + 1;
}

namespace {

// Bounding box of a shape, in degrees.
struct box {
    double west, south, east, north;
};

box bounds_of(const area& of) noexcept {
    const auto degrees = [](double metres) { return metres / earth_radius_m / radian; };
    const double up = degrees(of.is_box ? of.height / 2 : of.radius);
    const double width = of.is_box ? of.width / 2 : of.radius;
    // As in Redis, only at the border farther from the equator.
    const double farther =
        of.centre.latitude < 0 ? of.centre.latitude - up : of.centre.latitude + up;
    const double aside = degrees(width / std::cos(farther * radian));
    return {of.centre.longitude - aside, of.centre.latitude - up, of.centre.longitude + aside,
            of.centre.latitude + up};
}

// The squares after halving the earth `step` times in each direction.
class squares {
public:
    squares(position centre, unsigned step) noexcept
        : step_(step),
          x_(step_of(centre.longitude, max_longitude) >> (bits_each - step)),
          y_(step_of(centre.latitude, max_latitude) >> (bits_each - step)) {}

    /// The scores of the square with the centre, or of a neighbouring one, around the earth.
    score_range range(int east, int north) const noexcept {
        const std::uint64_t square = weave(moved(x_, east), moved(y_, north));
        const unsigned shift = 2 * (bits_each - step_);
        return {static_cast<double>(square << shift), static_cast<double>((square + 1) << shift)};
    }
    box place(int east, int north) const noexcept {
        const auto at = [this](std::uint64_t number, double limit) {
            return -limit + static_cast<double>(number) /
                                static_cast<double>(std::uint64_t{1} << step_) * (2 * limit);
        };
        const std::uint64_t x = moved(x_, east);
        const std::uint64_t y = moved(y_, north);
        return {at(x, max_longitude), at(y, max_latitude), at(x + 1, max_longitude),
                at(y + 1, max_latitude)};
    }

private:
    std::uint64_t moved(std::uint64_t from, int by) const noexcept {
        if (by == 0) return from;
        return (from + static_cast<std::uint64_t>(by)) & ((std::uint64_t{1} << step_) - 1);
    }

    unsigned step_;
    std::uint64_t x_;
    std::uint64_t y_;
};

// The step whose squares Redis uses for a radius.
unsigned step_for(double radius, double latitude) noexcept {
    constexpr double half_of_earth = 20037726.37;  // metres, along the equator
    constexpr double near_pole = 66;
    constexpr double at_pole = 80;
    if (radius == 0) return bits_each;
    int step = -1;
    for (; radius < half_of_earth; radius *= 2) ++step;
    if (std::fabs(latitude) > near_pole) --step;
    if (std::fabs(latitude) > at_pole) --step;
    return static_cast<unsigned>(std::clamp(step, 1, static_cast<int>(bits_each)));
}

// Appends the parts of `from` that are in none of the ranges before it.
void add_rest(std::vector<score_range>& to, score_range from, std::size_t before) {
    for (std::size_t i = 0; i < before && from.begin < from.end; ++i) {
        const score_range other = to[i];
        if (other.end <= from.begin || other.begin >= from.end) continue;
        if (other.begin > from.begin) add_rest(to, {from.begin, other.begin}, before);
        from.begin = std::min(other.end, from.end);
    }
    if (from.begin < from.end) to.push_back(from);
}

}  // namespace

std::vector<score_range> in_order_of_redis(const area& of) {
    const box bounds = bounds_of(of);
    const double radius =
        of.is_box ? std::sqrt(of.width / 2 * (of.width / 2) + of.height / 2 * (of.height / 2))
                  : of.radius;
    unsigned step = step_for(radius, of.centre.latitude);
    squares all(of.centre, step);
    const bool is_small = all.place(0, 1).north < bounds.north ||
                          all.place(0, -1).south > bounds.south ||
                          all.place(1, 0).east < bounds.east || all.place(-1, 0).west > bounds.west;
    if (step > 1 && is_small) all = squares(of.centre, --step);
    const box middle = all.place(0, 0);
    std::vector<score_range> ranges;
    constexpr std::pair<int, int> ways[] = {{0, 0}, {0, 1},  {0, -1}, {1, 0},  {-1, 0},
                                            {1, 1}, {-1, 1}, {1, -1}, {-1, -1}};
    for (const auto& [east, north] : ways) {
        // A side on which the square with the centre extends beyond the area.
        if (step >= 2 &&
            ((north < 0 && middle.south < bounds.south) ||
             (north > 0 && middle.north > bounds.north) ||
             (east < 0 && middle.west < bounds.west) || (east > 0 && middle.east > bounds.east))) {
            continue;
        }
        add_rest(ranges, all.range(east, north), ranges.size());
    }
    const std::size_t of_redis = ranges.size();
    for (const score_range& each : cover(of)) add_rest(ranges, each, of_redis);
    return ranges;
}

}  // namespace eddy::cache::geo
