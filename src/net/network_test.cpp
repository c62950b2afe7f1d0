// Networks: texts, and the addresses that they hold.
#include "net/network.hpp"

#include "io/testing.hpp"

#include <gtest/gtest.h>

#include <initializer_list>

namespace eddy {
namespace {

using testing::must;

bool holds(std::string_view range, std::string_view address) {
    return must(network::parse(range)).contains(must(endpoint::ip(address, 80)));
}

TEST(network, holds_the_addresses_of_its_prefix) {
    EXPECT_TRUE(holds("10.0.0.0/8", "10.255.1.2"));
    EXPECT_FALSE(holds("10.0.0.0/8", "11.0.0.0"));
    EXPECT_TRUE(holds("192.168.1.128/25", "192.168.1.200"));
    EXPECT_FALSE(holds("192.168.1.128/25", "192.168.1.127"));
    EXPECT_TRUE(holds("127.0.0.1", "127.0.0.1"));
    EXPECT_FALSE(holds("127.0.0.1", "127.0.0.2"));
    EXPECT_TRUE(holds("fd00::/8", "fd12::1"));
    EXPECT_FALSE(holds("fd00::/8", "fe80::1"));
    EXPECT_TRUE(holds("0.0.0.0/0", "8.8.8.8"));
    EXPECT_FALSE(holds("0.0.0.0/0", "2001:db8::1")) << "IPv4 alone";
    EXPECT_TRUE(holds("::/0", "2001:db8::1"));
}

TEST(network, holds_mapped_addresses) {
    EXPECT_TRUE(holds("10.0.0.0/8", "::ffff:10.1.2.3"));
    EXPECT_FALSE(holds("10.0.0.0/8", "::ffff:11.1.2.3"));
    EXPECT_EQ(unmapped(must(endpoint::ip("::ffff:10.1.2.3", 7))).to_string(), "10.1.2.3:7");
    EXPECT_EQ(unmapped(must(endpoint::ip("fd00::1", 7))).to_string(), "[fd00::1]:7");
}

TEST(network, unix_holds_clients_of_unix_sockets) {
    const network all = must(network::parse("unix"));
    EXPECT_TRUE(all.contains(must(endpoint::unix_path("/run/x.sock"))));
    EXPECT_FALSE(all.contains(must(endpoint::ip("127.0.0.1", 80))));
    EXPECT_FALSE(must(network::parse("127.0.0.1")).contains(must(endpoint::unix_path("@x"))));
}

TEST(network, refuses_other_texts) {
    for (const std::string_view each :
         {"", "*", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1", "10.0.0.0/8x", "fd00::/129",
          "10.1.0.0/8", "example.org", "10.0.0/8", "/8", "fe80::1%lo/128"})
        EXPECT_FALSE(network::parse(each)) << each;
}

}  // namespace
}  // namespace eddy
