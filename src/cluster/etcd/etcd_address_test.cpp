// Tests of addresses of etcd.
#include "cluster/etcd/etcd_address.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace eddy::cluster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> endpoints_of(std::string_view uri) {
    const auto parsed = parse_etcd_address(uri);
    if (!parsed) return {parsed.error().message};
    std::vector<std::string> names;
    for (const transport::address& each : parsed->endpoints)
        names.push_back(etcd_endpoint_name(each));
    return names;
}

std::string refusal_of(std::string_view uri) {
    const auto parsed = parse_etcd_address(uri);
    if (parsed) return "taken";
    EXPECT_EQ(parsed.error().status, 400);
    return parsed.error().message;
}

TEST(etcd_address, names_endpoints) {
    EXPECT_THAT(endpoints_of("etcd://10.0.0.1:2379"), ElementsAre("etcd://10.0.0.1:2379"));
    EXPECT_THAT(endpoints_of("etcd://a.example,b.example:1,[::1],[::1]:7"),
                ElementsAre("etcd://a.example:2379", "etcd://b.example:1", "etcd://[::1]:2379",
                            "etcd://[::1]:7"));
    EXPECT_THAT(endpoints_of("ETCDS://a"), ElementsAre("etcds://a:2379"));
    // One that is named twice is one.
    EXPECT_THAT(endpoints_of("etcd://a,b,a:2379"), ElementsAre("etcd://a:2379", "etcd://b:2379"));
}

TEST(etcd_address, has_a_prefix) {
    EXPECT_EQ(parse_etcd_address("etcd://a")->prefix, "eddy");
    EXPECT_EQ(parse_etcd_address("etcd://a/")->prefix, "eddy");
    EXPECT_EQ(parse_etcd_address("etcd://a/shop")->prefix, "shop");
    EXPECT_EQ(parse_etcd_address("etcd://a//teams/shop//?user=u&password-file=/p")->prefix,
              "teams/shop");
    EXPECT_THAT(refusal_of("etcd://a/" + std::string(max_etcd_prefix + 1, 'x')),
                HasSubstr("over 253 bytes"));
    EXPECT_EQ(parse_etcd_address("etcd://a/" + std::string(max_etcd_prefix, 'x'))->prefix.size(),
              max_etcd_prefix);
    EXPECT_THAT(refusal_of("etcd://a/x\ny"), HasSubstr("cannot be printed"));
}

TEST(etcd_address, has_files_and_a_user) {
    const auto parsed = parse_etcd_address(
        "etcds://a,b/p?ca=/ca.pem&cert=/c.pem&key=/k.pem&user=eddy&password-file=/etc/p=w");
    ASSERT_TRUE(parsed) << parsed.error().message;
    for (const transport::address& each : parsed->endpoints) {
        EXPECT_EQ(each.kind, transport::scheme::tls);
        EXPECT_EQ(each.tls.ca, "/ca.pem");
        EXPECT_EQ(each.tls.cert, "/c.pem");
        EXPECT_EQ(each.tls.key, "/k.pem");
    }
    EXPECT_EQ(parsed->user, "eddy");
    EXPECT_EQ(parsed->password_file, "/etc/p=w");
    const auto plain = parse_etcd_address("etcd://a?user=eddy&password-file=/p");
    ASSERT_TRUE(plain) << plain.error().message;
    EXPECT_EQ(plain->endpoints.front().kind, transport::scheme::tcp);
}

TEST(etcd_address, says_what_is_wrong) {
    EXPECT_FALSE(is_etcd_address("/srv/cluster"));
    EXPECT_FALSE(is_etcd_address("http://a"));
    EXPECT_TRUE(is_etcd_address("etcd://"));
    EXPECT_TRUE(is_etcd_address("etcds://a"));
    EXPECT_THAT(refusal_of("http://a:2379"), HasSubstr("etcd://10.0.0.1:2379"));
    EXPECT_THAT(refusal_of("etcd://"), HasSubstr("is no endpoint"));
    EXPECT_THAT(refusal_of("etcd://:2379"), HasSubstr("name a host"));
    EXPECT_THAT(refusal_of("etcd://a,,b"), HasSubstr("is no endpoint"));
    EXPECT_THAT(refusal_of("etcd://a:0"), HasSubstr("is no endpoint"));
    EXPECT_THAT(refusal_of("etcd://a:70000"), HasSubstr("70000"));
    EXPECT_THAT(refusal_of("etcd://me@a"), HasSubstr("is no endpoint"));
    EXPECT_THAT(refusal_of("etcd://a?ca=/x"), HasSubstr("ca= is for etcds://"));
    EXPECT_THAT(refusal_of("etcds://a?ca="), HasSubstr("ca= of the address of etcd has no value"));
    EXPECT_THAT(refusal_of("etcd://a?tls=yes"), HasSubstr("\"tls\" is no parameter"));
    EXPECT_THAT(refusal_of("etcd://a?password=x"), HasSubstr("password-file"));
    EXPECT_THAT(refusal_of("etcd://a?user=x"), HasSubstr("go together"));
    EXPECT_THAT(refusal_of("etcds://a?key=/k"), HasSubstr("cert="));
    EXPECT_THAT(refusal_of("etcd://" + std::string(max_etcd_uri, 'a')), HasSubstr("over 4096"));
}

TEST(etcd_address, has_so_many_endpoints_at_most) {
    std::string uri = "etcd://h0";
    for (std::size_t i = 1; i < max_etcd_endpoints; ++i) uri += ",h" + std::to_string(i);
    EXPECT_EQ(endpoints_of(uri).size(), max_etcd_endpoints);
    EXPECT_THAT(refusal_of(uri + ",one-more"), HasSubstr("more than 16 endpoints"));
}

}  // namespace
}  // namespace eddy::cluster
