// Positions on the earth as scores of a sorted set (geohash), in Redis's form.
//
// Longitude and latitude are each cut into 2^26 steps (the latitude from -85.05 to 85.05 degrees,
// as in Mercator's projection), and the two numbers are interleaved into one of 52 bits, the
// longitude first. Near positions are mostly near in that order, too: the squares that result from
// repeated halving of the earth are ranges of scores. A search covers its area with a few of them
// and checks the members there.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace eddy::cache::geo {

/// Degrees, east and north.
struct position {
    double longitude = 0;
    double latitude = 0;
};

inline constexpr double max_longitude = 180;
inline constexpr double max_latitude = 85.05112878;

/// True if the position can be stored.
bool is_valid(position where) noexcept;

/// A valid position's 52 bits, or 54 at the limits.
std::uint64_t encode(position where) noexcept;
/// The centre of the square of these bits, or of a score of any value.
position decode(double score) noexcept;

/// The bits of the standard geohash, whose latitude ranges from -90 to 90 degrees.
std::uint64_t encode_for_text(position where) noexcept;

/// Metres along a great circle; the earth is a ball of 6372797.560856 m.
double distance(position a, position b) noexcept;

/// A circle or a box around a centre, in metres.
struct area {
    position centre;
    bool is_box = false;
    double radius = 0;
    double width = 0;
    double height = 0;

    /// True if the position is inside, borders included; then `metres` is its distance to the
    /// centre.
    bool has(position where, double& metres) const noexcept;
};

/// Scores from `begin` up to, but not including, `end`.
struct score_range {
    double begin = 0;
    double end = 0;
};

/// Ranges of scores that contain all positions of an area, and others; ascending, disjoint.
class cover {
public:
    explicit cover(const area& of) noexcept;
    const score_range* begin() const noexcept { return ranges_.data(); }
    const score_range* end() const noexcept { return ranges_.data() + count_; }

private:
    // Three squares each way, for both sides of the 180th meridian, and the ends of the earth.
    static constexpr std::size_t max_ranges = 2 * 9 + 1;

    void add_squares(double west, double east, double south, double north) noexcept;
    void add(std::uint64_t begin, std::uint64_t end) noexcept;
    void sort_and_join() noexcept;

    std::array<score_range, max_ranges> ranges_;
    std::size_t count_ = 0;
};

/// The same ranges in the order in which Redis finds positions: the square with the centre, then
/// its neighbours north, south, east, west and at its corners, if they intersect the area. Ranges
/// that Redis leaves out, where its squares end before the area does, come last.
std::vector<score_range> in_order_of_redis(const area& of);

}  // namespace eddy::cache::geo
