// Balancer: the order in which a client's backends are tried.
#include "runtime/proxy/balancer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace eddy::runtime::proxy {
namespace {

using ::testing::ElementsAre;

transport::address at(std::uint16_t port) {
    transport::address made;
    made.host = "10.0.0.1";
    made.port = port;
    return made;
}

backend_list three() { return update_backends({}, {at(1), at(2), at(3)}, 2); }

/// Ports, in the order in which one client tries them.
std::vector<int> order_of(balancer& from) {
    std::vector<int> ports;
    balancer::selection order = from.select();
    for (auto next = order.next(); next != nullptr; next = order.next())
        ports.push_back(next->where().port);
    return ports;
}

TEST(balancer, round_robin_begins_with_the_next_one_and_tries_each_once) {
    balancer all(strategy::round_robin, three());
    EXPECT_THAT(order_of(all), ElementsAre(1, 2, 3));
    EXPECT_THAT(order_of(all), ElementsAre(2, 3, 1));
    EXPECT_THAT(order_of(all), ElementsAre(3, 1, 2));
    EXPECT_THAT(order_of(all), ElementsAre(1, 2, 3));
}

TEST(balancer, least_connections_goes_from_the_fewest_to_the_most) {
    const backend_list backends = three();
    balancer all(strategy::least_connections, backends);
    const backend_use a(backends[0]);
    {
        const backend_use b(backends[0]);
        const backend_use c(backends[2]);
        EXPECT_THAT(order_of(all), ElementsAre(2, 3, 1));
    }
    EXPECT_EQ(backends[0]->open(), 1U);
    EXPECT_THAT(order_of(all), ElementsAre(2, 3, 1));
    EXPECT_THAT(order_of(all), ElementsAre(3, 2, 1)) << "with as many they take turns";
}

TEST(balancer, sixty_four_backends_are_all_tried) {
    for (const strategy each : {strategy::round_robin, strategy::least_connections}) {
        std::vector<transport::address> wanted;
        for (std::uint16_t i = 0; i < max_backends; ++i) wanted.push_back(at(i + 1));
        balancer all(each, update_backends({}, wanted, 1));
        std::vector<int> ports = order_of(all);
        EXPECT_EQ(ports.size(), max_backends);
        std::ranges::sort(ports);
        EXPECT_EQ(std::ranges::adjacent_find(ports), ports.end());
    }
}

TEST(balancer, backends_that_stay_keep_their_counts) {
    const backend_list before = three();
    before[1]->counted_by(1).bytes_sent += 7;
    before[1]->counted_by(0).bytes_sent += 1;
    const backend_list after = update_backends(before, {at(4), at(2)}, 2);
    EXPECT_EQ(after[1], before[1]);
    EXPECT_EQ(after[1]->sum(&backend_counters::bytes_sent), 8U);
    EXPECT_EQ(after[0]->sum(&backend_counters::bytes_sent), 0U);
    EXPECT_NE(update_backends(before, {at(2)}, 3)[0], before[1]) << "other workers count";
}

TEST(balancer, an_address_with_a_numeric_host_needs_no_look_up) {
    EXPECT_EQ(backend(at(5), 1).numeric()->to_string(), "10.0.0.1:5");
    transport::address named = at(5);
    named.host = "db.example";
    EXPECT_FALSE(backend(named, 1).numeric());
    named.kind = transport::scheme::tls;
    named.host = "10.0.0.1";
    EXPECT_FALSE(backend(named, 1).numeric()) << "TLS is not TCP";
    EXPECT_EQ(backend(named, 1).name(), "tls://10.0.0.1:5");
}

}  // namespace
}  // namespace eddy::runtime::proxy
