// Tests of positions as scores, and of searches against a check of every member.
#include "cache/types/sorted_sets/geo.hpp"

#include <eddy/base/random.hpp>

#include "base/test_seed.hpp"
#include "cache/engine/engine.hpp"
#include "cache/testing/test_client.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::cache {
namespace {

using testing::parse_reply;
using testing::test_client;

geo::position anywhere(random_generator& random) {
    return {random.unit() * 360 - 180, (random.unit() * 2 - 1) * geo::max_latitude};
}

TEST(geo, a_position_comes_back_within_a_metre) {
    random_generator random(eddy::testing::seed_of_this_run());
    for (int i = 0; i < 10'000; ++i) {
        const geo::position where = anywhere(random);
        const auto score = static_cast<double>(geo::encode(where));
        EXPECT_LT(score, std::ldexp(1.0, 52));
        const geo::position back = geo::decode(score);
        EXPECT_LT(geo::distance(where, back), 1) << where.longitude << " " << where.latitude;
        EXPECT_EQ(static_cast<double>(geo::encode(back)), score);
    }
}

TEST(geo, any_score_is_some_valid_position) {
    for (const double score :
         {0.0, -0.0, -1.0, 0.5, 1e300, -1e300, HUGE_VAL, -HUGE_VAL, 1e19, std::ldexp(1.0, 52)}) {
        EXPECT_TRUE(geo::is_valid(geo::decode(score))) << score;
    }
    EXPECT_FALSE(geo::is_valid({180.1, 0}));
    EXPECT_FALSE(geo::is_valid({0, 85.06}));
    EXPECT_TRUE(geo::is_valid({-180, -85.05112878}));
}

geo::area any_area(random_generator& random) {
    geo::area area;
    area.centre = anywhere(random);
    // The ends of the earth are where mistakes are.
    if (random.below(4) == 0) area.centre.longitude = random.below(2) == 0 ? 180 : -179.999;
    if (random.below(4) == 0) area.centre.latitude = random.below(2) == 0 ? 85.05 : -84.9;
    const auto length = [&] { return std::pow(10.0, 2 + random.unit() * 5.4); };
    area.is_box = random.below(2) == 0;
    area.radius = length();
    area.width = length();
    area.height = length();
    return area;
}

TEST(geo, a_cover_misses_nobody) {
    const std::uint64_t seed = eddy::testing::seed_of_this_run();
    SCOPED_TRACE(seed);
    random_generator random(seed);
    std::size_t inside = 0;
    for (int i = 0; i < 3'000; ++i) {
        const geo::area area = any_area(random);
        const geo::cover cover(area);
        ASSERT_TRUE(std::is_sorted(cover.begin(), cover.end(),
                                   [](const auto& a, const auto& b) { return a.end < b.begin; }));
        for (int j = 0; j < 100; ++j) {
            geo::position where = anywhere(random);
            if (j % 2 == 0) {
                // Near enough to matter.
                const double reach = (area.is_box ? area.width : area.radius) / 60'000;
                where = area.centre;
                where.longitude += (random.unit() * 2 - 1) * reach;
                where.latitude += (random.unit() * 2 - 1) * reach;
                if (where.longitude > 180) where.longitude -= 360;
                if (where.longitude < -180) where.longitude += 360;
                if (!geo::is_valid(where)) continue;
            }
            const auto score = static_cast<double>(geo::encode(where));
            double metres = 0;
            if (!area.has(geo::decode(score), metres)) continue;
            ++inside;
            const bool covered = std::any_of(cover.begin(), cover.end(), [&](const auto& range) {
                return score >= range.begin && score < range.end;
            });
            ASSERT_TRUE(covered) << "centre " << area.centre.longitude << " "
                                 << area.centre.latitude << " box " << area.is_box << " radius "
                                 << area.radius << " width " << area.width << " height "
                                 << area.height << " at " << where.longitude << " "
                                 << where.latitude;
        }
    }
    EXPECT_GT(inside, 10'000U);
}

class geo_commands : public ::testing::Test {
protected:
    void expect(std::string_view line, std::string_view reply) {
        EXPECT_EQ(client_(line), reply) << line;
    }

    engine engine_;
    test_client client_{engine_};
};

TEST_F(geo_commands, find_the_same_as_looking_at_everyone) {
    const std::uint64_t seed = eddy::testing::seed_of_this_run();
    SCOPED_TRACE(seed);
    random_generator random(seed);
    std::vector<std::pair<std::string, geo::position>> all;
    for (int i = 0; i < 3'000; ++i) {
        geo::position where = anywhere(random);
        where.latitude *= 0.999999;  // the greatest would be rounded to one that is refused
        all.emplace_back("m" + std::to_string(i),
                         geo::decode(static_cast<double>(geo::encode(where))));
        client_({"GEOADD", "g", std::to_string(where.longitude), std::to_string(where.latitude),
                 all.back().first});
    }
    // As the set has them: the text of a coordinate has six digits behind the point.
    for (auto& [name, where] : all) {
        where = geo::decode(std::stod(parse_reply(client_({"ZSCORE", "g", name})).text));
    }
    for (int i = 0; i < 200; ++i) {
        geo::area area = any_area(random);
        const std::string longitude = std::to_string(area.centre.longitude);
        const std::string latitude = std::to_string(area.centre.latitude);
        area.centre = {std::stod(longitude), std::stod(latitude)};
        const auto text = [](double& metres) {
            const std::string digits = std::to_string(metres);
            metres = std::stod(digits);
            return digits;
        };
        testing::arguments args{"GEOSEARCH", "g", "FROMLONLAT", longitude, latitude};
        if (area.is_box) {
            args.insert(args.end(), {"BYBOX", text(area.width), text(area.height), "m"});
        } else {
            args.insert(args.end(), {"BYRADIUS", text(area.radius), "m"});
        }
        std::vector<std::string> expected;
        for (const auto& [name, where] : all) {
            double metres = 0;
            if (area.has(where, metres)) expected.push_back(name);
        }
        std::vector<std::string> got;
        for (const auto& each : parse_reply(client_.ask(args)).children) got.push_back(each.text);
        std::ranges::sort(expected);
        std::ranges::sort(got);
        ASSERT_EQ(got, expected);
    }
}

TEST_F(geo_commands, search_by_box_over_the_180th_meridian) {
    expect("GEOADD g 179.9 10 east -179.9 10 west 0 0 far", ":3\r\n");
    expect("GEOSEARCH g FROMLONLAT 179.99 10 BYRADIUS 50 km ASC",
           "*2\r\n$4\r\neast\r\n$4\r\nwest\r\n");
    expect("GEOSEARCH g FROMMEMBER west BYBOX 60 60 km DESC", "*2\r\n$4\r\neast\r\n$4\r\nwest\r\n");
    expect("GEOSEARCHSTORE d g FROMMEMBER west BYBOX 60 60 km STOREDIST", ":2\r\n");
    expect("ZSCORE d west", "$1\r\n0\r\n");
    expect("GEOSEARCH g FROMMEMBER west BYRADIUS 100 km COUNT 1 ANY", "*1\r\n$4\r\nwest\r\n");
    expect("GEODIST g east west km", "$7\r\n21.9075\r\n");
    expect("GEOADD g 180 85.05112878 corner", ":1\r\n");
    expect("GEOSEARCH g FROMLONLAT 180 85 BYRADIUS 10 km", "*1\r\n$6\r\ncorner\r\n");
}

}  // namespace
}  // namespace eddy::cache
