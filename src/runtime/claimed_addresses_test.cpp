// Tests of the addresses that options claim.
#include "runtime/claimed_addresses.hpp"

#include "runtime/type.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace eddy::runtime {
namespace {

using nlohmann::json;

std::vector<transport::address> claims(const char* type_name, const json& options) {
    const type& of = *find_type(type_name);
    return claimed_addresses(of, *settings::parse(of.options, options));
}

bool meet(const json& one, const json& other) {
    return is_same_claim(claims("server", one).at(0), claims("server", other).at(0));
}

TEST(claimed_addresses, are_those_of_the_options) {
    EXPECT_EQ(claims("cache", {{"port", 6379}}).at(0).to_string(), "tcp://127.0.0.1:6379");
    EXPECT_EQ(claims("server", {{"port", 53}, {"udp", true}}).at(0).kind, transport::scheme::udp);
    EXPECT_EQ(claims("http", {{"unix", "/run/a.sock"}}).at(0).path, "/run/a.sock");
    EXPECT_EQ(claims("stream", {{"handoff", "unix:///run/s"}}).at(0).path, "/run/s");
    EXPECT_EQ(claims("cache", {{"port", 6379}, {"tls_port", 6380}}).size(), 2U);
    const auto sockets = claims("program", {{"command", "/bin/true"},
                                            {"listen", {":80", "udp://*:53", "unix:///a", ":0"}}});
    ASSERT_EQ(sockets.size(), 3U);
    EXPECT_EQ(sockets.at(0).to_string(), "tcp://127.0.0.1:80");
    EXPECT_EQ(sockets.at(1).kind, transport::scheme::udp);
    EXPECT_EQ(sockets.at(2).path, "/a");
    EXPECT_TRUE(claims("cache", {{"port", 0}}).empty());
    EXPECT_TRUE(claims("client", {{"target", "10.0.0.1:7000"}}).empty());
}

TEST(claimed_addresses, meet_on_a_port_of_one_protocol_and_overlapping_addresses) {
    EXPECT_TRUE(meet({{"port", 80}}, {{"port", 80}}));
    EXPECT_TRUE(meet({{"port", 80}}, {{"port", 80}, {"bind", "*"}}));
    EXPECT_TRUE(meet({{"port", 80}}, {{"port", 80}, {"bind", "localhost"}}));
    EXPECT_TRUE(meet({{"listen", "tcp://127.0.0.1:80"}}, {{"port", 80}}));
    EXPECT_TRUE(meet({{"unix", "/a"}}, {{"listen", "unix:///a"}}));
    EXPECT_FALSE(meet({{"port", 80}}, {{"port", 81}}));
    EXPECT_FALSE(meet({{"port", 80}}, {{"port", 80}, {"bind", "127.0.0.2"}}));
    EXPECT_FALSE(meet({{"port", 80}}, {{"port", 80}, {"udp", true}}));
    EXPECT_FALSE(meet({{"unix", "/a"}}, {{"unix", "/b"}}));
}

}  // namespace
}  // namespace eddy::runtime
