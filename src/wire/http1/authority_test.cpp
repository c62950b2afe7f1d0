// Authorities: each form of a host, its port, and what is none.
#include "wire/http1/authority.hpp"

#include <gtest/gtest.h>

#include <string>

namespace eddy::http1 {
namespace {

TEST(http1_authority, has_a_name_or_an_address) {
    for (const char* host : {"h",
                             "localhost",
                             "a-b_c.example",
                             "example.org.",
                             "xn--bcher-kva.example",
                             "127.0.0.1",
                             "256.1.1.1",
                             "1.2.3",
                             "80",
                             "a%20b",
                             "%C3%a4",
                             "~!$&'()*+,;=",
                             "[::]",
                             "[::1]",
                             "[1::]",
                             "[2001:DB8::0:1]",
                             "[1:2:3:4:5:6:7:8]",
                             "[1:2:3:4:5:6:7::]",
                             "[::ffff:10.0.0.7]",
                             "[v1.x]",
                             "[vF.a:b~!$&'()*+,;=]",
                             "[V0a.:]"}) {
        EXPECT_TRUE(is_host(host)) << host;
        EXPECT_TRUE(is_authority(host)) << host;
        EXPECT_TRUE(is_host(std::string(host) + ":80")) << host << ":80";
        EXPECT_FALSE(is_host(std::string(host) + ":80:80")) << host << ":80:80";
        EXPECT_FALSE(is_host(std::string(host) + "@")) << host << "@";
    }
}

TEST(http1_authority, has_a_port_of_digits_or_none) {
    for (const char* port : {"", "0", "80", "00080", "65535", "99999", "123456789012345678901"})
        EXPECT_TRUE(is_host("h:" + std::string(port))) << port;
    for (const char* port : {"a", "8a", "a8", "+80", "-1", " 80", "80 ", "0x50", ":", ":80", "80:"})
        EXPECT_FALSE(is_host("h:" + std::string(port))) << port;
}

TEST(http1_authority, may_be_empty_in_host_alone) {
    EXPECT_TRUE(is_host(""));
    EXPECT_FALSE(is_authority(""));
    EXPECT_FALSE(is_host(":"));
    EXPECT_FALSE(is_host(":80"));
    EXPECT_FALSE(is_host(":a"));
}

TEST(http1_authority, refuses_what_is_no_host) {
    const std::string too_long = "[" + std::string(1000, ':') + "]";
    for (const std::string& host :
         {std::string("a b"), std::string("u@h"), std::string("a/b"), std::string("a\\b"),
          std::string("a\"b"), std::string("<a>"), std::string("\xc3\xa4"), std::string("a\0b", 3),
          std::string("%"), std::string("%4"), std::string("%4g"), std::string("%%41"),
          std::string("a%2"), too_long}) {
        EXPECT_FALSE(is_host(host)) << host;
        EXPECT_FALSE(is_host(host + ":80")) << host;
    }
}

TEST(http1_authority, refuses_malformed_literals) {
    using namespace std::string_view_literals;
    constexpr std::string_view hosts[] = {"[",
                                          "]",
                                          "[]",
                                          "[::1",
                                          "::1]",
                                          "::1",
                                          "1::2",
                                          "[zz]",
                                          "[:]",
                                          "[:::]",
                                          "[1]",
                                          "[1::2::3]",
                                          "[1:2:3:4:5:6:7]",
                                          "[1:2:3:4:5:6:7:8:9]",
                                          "[12345::]",
                                          "[::1.2.3]",
                                          "[::256.1.1.1]",
                                          "[127.0.0.1]",
                                          "[::1]x",
                                          "x[::1]",
                                          "[[::1]]",
                                          "[::1]]",
                                          "[::1][::1]",
                                          "[ ::1]",
                                          "[::1 ]",
                                          "[::%31]",
                                          "[fe80::1%eth0]",
                                          "[fe80::1%25eth0]",
                                          "[v]",
                                          "[v1]",
                                          "[v.x]",
                                          "[v1.]",
                                          "[vg.x]",
                                          "[v1.a/b]",
                                          "[v1.[]",
                                          "[1.x]",
                                          "[::1\0]"sv};
    for (const std::string_view host : hosts) {
        EXPECT_FALSE(is_host(host)) << host;
        EXPECT_FALSE(is_host(std::string(host) + ":80")) << host;
    }
}

}  // namespace
}  // namespace eddy::http1
