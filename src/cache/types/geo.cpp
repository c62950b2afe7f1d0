// Interleaving of bits, distances on great circles, squares.
#include "cache/types/geo.hpp"

#include <eddy/base/assert.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace eddy::cache::geo {
namespace {

constexpr double earth_radius_m = 6372797.560856;
constexpr double radian = std::numbers::pi / 180;
constexpr unsigned bits_each = 26;
constexpr std::uint64_t steps_each = std::uint64_t{1} << bits_each;

// Bits 0 .. 31 go to the places 0, 2, 4 ..
std::uint64_t spread(std::uint64_t bits) noexcept {
    bits &= 0xffff'ffff;
    bits = (bits | bits << 16) & 0x0000'ffff'0000'ffffULL;
    bits = (bits | bits << 8) & 0x00ff'00ff'00ff'00ffULL;
    bits = (bits | bits << 4) & 0x0f0f'0f0f'0f0f'0f0fULL;
    bits = (bits | bits << 2) & 0x3333'3333'3333'3333ULL;
    return (bits | bits << 1) & 0x5555'5555'5555'5555ULL;
}

// The reverse: the bits at even places.
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

// Which of 2^26 steps between -limit and limit; 2^26 at the very end.
std::uint64_t step_of(double degrees, double limit) noexcept {
    const double part = (degrees + limit) / (2 * limit);
    return static_cast<std::uint64_t>(part * static_cast<double>(steps_each));
}

double middle_of(std::uint32_t step, double limit) noexcept {
    const auto edge = [limit](double number) {
        return -limit + number / static_cast<double>(steps_each) * (2 * limit);
    };
    const double low = edge(step);
    // The next number as 32 bits have it.
    const double high = edge(static_cast<std::uint32_t>(step + 1));
    return std::clamp((low + high) / 2, -limit, limit);
}

// A score is any double; as processors convert those that are no such number.
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

// The degrees of longitude within which everything is whose way to the middle, at this latitude, is
// `metres` at most.
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
    // Where a pole is inside, so are all longitudes.
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
    // 180 degrees east and the northern limit themselves have one bit more.
    add(steps_each * steps_each, 4 * steps_each * steps_each);
    sort_and_join();
}

// The smallest squares of which three each way are enough.
void cover::add_squares(double west, double east, double south, double north) noexcept {
    const auto clamped = [](double degrees, double limit) {
        return step_of(std::clamp(degrees, -limit, limit), limit);
    };
    // A step more on each side, for what is rounded.
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

}  // namespace eddy::cache::geo
