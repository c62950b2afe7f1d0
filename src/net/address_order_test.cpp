// The examples of RFC 6724, section 10.2, and the kernel's routes.
#include "net/address_order.hpp"

#include "io/testing.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy {
namespace {

using list = std::vector<std::string>;

/// Pairs of a destination and the source for it; "" where nothing leads there.
list ordered(const std::vector<std::pair<std::string_view, std::string_view>>& pairs) {
    std::vector<address_route> routes;
    for (const auto& [to, from] : pairs) {
        address_route one{testing::must(endpoint::ip(to, 80))};
        if (!from.empty()) one.from = testing::must(endpoint::ip(from, 0));
        routes.push_back(one);
    }
    order_routes(routes);
    list made;
    for (const address_route& one : routes) made.push_back(one.to.host());
    return made;
}

TEST(address_order, prefers_what_can_be_reached) {
    EXPECT_EQ(ordered({{"2001:db8:1::1", ""}, {"198.51.100.121", "198.51.100.117"}}),
              (list{"198.51.100.121", "2001:db8:1::1"}));
    EXPECT_EQ(ordered({{"198.51.100.121", ""}, {"2001:db8:1::1", "2001:db8:1::2"}}),
              (list{"2001:db8:1::1", "198.51.100.121"}));
}

TEST(address_order, prefers_a_matching_scope) {
    EXPECT_EQ(ordered({{"2001:db8:1::1", "fe80::1"}, {"198.51.100.121", "198.51.100.117"}}),
              (list{"198.51.100.121", "2001:db8:1::1"}));
    EXPECT_EQ(ordered({{"198.51.100.121", "169.254.13.78"}, {"2001:db8:1::1", "2001:db8:1::2"}}),
              (list{"2001:db8:1::1", "198.51.100.121"}));
}

TEST(address_order, prefers_a_matching_label_and_a_higher_precedence) {
    // 6to4, and a native address of the same machine.
    EXPECT_EQ(ordered({{"2001:db8:1::1", "2002:c633:6401::2"},
                       {"2002:c633:6401::1", "2002:c633:6401::2"}}),
              (list{"2002:c633:6401::1", "2001:db8:1::1"}));
    EXPECT_EQ(ordered({{"10.1.2.3", "10.1.2.4"}, {"2001:db8:1::1", "2001:db8:1::2"}}),
              (list{"2001:db8:1::1", "10.1.2.3"}));
    // Unique local addresses have a low one.
    EXPECT_EQ(ordered({{"fc00::1", "fc00::2"}, {"10.1.2.3", "10.1.2.4"}}),
              (list{"10.1.2.3", "fc00::1"}));
    EXPECT_EQ(ordered({{"127.0.0.1", "127.0.0.1"}, {"::1", "::1"}}), (list{"::1", "127.0.0.1"}));
}

TEST(address_order, prefers_what_is_nearer) {
    EXPECT_EQ(ordered({{"2001:db8:1::1", "2001:db8:1::2"}, {"fe80::1", "fe80::2"}}),
              (list{"fe80::1", "2001:db8:1::1"}));
    EXPECT_EQ(ordered({{"2001:db8:3ffe::1", "2001:db8:1::2"}, {"2001:db8:1::1", "2001:db8:1::2"}}),
              (list{"2001:db8:1::1", "2001:db8:3ffe::1"}));
}

TEST(address_order, leaves_equals_as_they_came) {
    const list same = {"10.0.0.3", "10.0.0.1", "10.0.0.2"};
    EXPECT_EQ(
        ordered({{"10.0.0.3", "10.0.0.9"}, {"10.0.0.1", "10.0.0.9"}, {"10.0.0.2", "10.0.0.9"}}),
        same);
    EXPECT_EQ(ordered({{"10.0.0.3", ""}, {"10.0.0.1", ""}, {"10.0.0.2", ""}}), same);
}

TEST(address_order, asks_the_kernel_for_the_source) {
    std::vector<address_route> routes;
    for (const char* to : {"127.0.0.1", "127.0.0.2", "::1"})
        routes.push_back({testing::must(endpoint::ip(to, 80))});
    find_sources(routes);
    EXPECT_EQ(routes[0].from.host(), "127.0.0.1");
    EXPECT_EQ(routes[1].from.family(), AF_INET);
    EXPECT_EQ(routes[2].from.host(), "::1");
}

}  // namespace
}  // namespace eddy
