// Socket addresses: parsing, printing, equality.
#include <eddy/io/endpoint.hpp>

#include <gtest/gtest.h>
#include <netinet/in.h>

#include <cstddef>
#include <string>

namespace eddy {
namespace {

TEST(endpoint, prints_what_it_parsed) {
    struct row {
        std::string_view address;
        std::string text;
        int family;
    };
    const row rows[] = {
        {"127.0.0.1", "127.0.0.1:80", AF_INET},
        {"0.0.0.0", "0.0.0.0:80", AF_INET},
        {"::1", "[::1]:80", AF_INET6},
        {"2001:DB8::0:1", "[2001:db8::1]:80", AF_INET6},
        {"::ffff:10.0.0.7", "[::ffff:10.0.0.7]:80", AF_INET6},
        {"", "[::]:80", AF_INET6},
        {"*", "[::]:80", AF_INET6},
        {"fe80::1%lo", "[fe80::1%lo]:80", AF_INET6},
        {"fe80::1%1", "[fe80::1%lo]:80", AF_INET6},
        {"fe80::1%987654", "[fe80::1%987654]:80", AF_INET6},
    };
    for (const row& row : rows) {
        const auto parsed = endpoint::ip(row.address, 80);
        ASSERT_TRUE(parsed) << row.address;
        EXPECT_EQ(parsed->to_string(), row.text);
        EXPECT_EQ(parsed->family(), row.family) << row.address;
        EXPECT_EQ(parsed->port(), 80);
        EXPECT_FALSE(parsed->is_unix());
    }
}

TEST(endpoint, refuses_what_is_no_numeric_address) {
    const std::string long_zone = "fe80::1%" + std::string(300, 'x');
    for (std::string_view address :
         {"localhost", "1.2.3", "1.2.3.4.5", "256.1.1.1", "1.2.3.4 ", ":", ":::", "[::1]",
          "1.2.3.4%lo", "fe80::1%", "fe80::1%no-such-interface", "fe80::1%0",
          "g::", "1:2:3:4:5:6:7:8:9", "0000:0000:0000:0000:0000:0000:0000:0000:0000:0000",
          long_zone.c_str()}) {
        const auto parsed = endpoint::ip(address, 1);
        ASSERT_FALSE(parsed) << address;
        EXPECT_EQ(parsed.error(), errc::bad_address) << address;
    }
    EXPECT_FALSE(endpoint::ip(std::string_view("127.0.0.1\0x", 11), 1));
}

TEST(endpoint, changes_its_port) {
    endpoint v4 = *endpoint::ip("10.0.0.1", 0);
    v4.set_port(65535);
    EXPECT_EQ(v4.to_string(), "10.0.0.1:65535");
    endpoint v6 = *endpoint::ip("::", 0);
    v6.set_port(6379);
    EXPECT_EQ(v6.port(), 6379);
    endpoint path = *endpoint::unix_path("/run/x");
    path.set_port(1);
    EXPECT_EQ(path.port(), 0);
    EXPECT_EQ(path.to_string(), "/run/x");
}

TEST(endpoint, takes_unix_paths_up_to_the_kernels_limit) {
    const std::string longest(107, 'p');
    const auto fits = endpoint::unix_path(longest);
    ASSERT_TRUE(fits);
    EXPECT_TRUE(fits->is_unix());
    EXPECT_EQ(fits->host(), longest);
    EXPECT_EQ(fits->size(), sizeof(sockaddr_un));
    for (const std::string& path :
         {std::string(), std::string("@"), std::string(108, 'p'), std::string("a\0b", 3)})
        EXPECT_EQ(endpoint::unix_path(path).error(), errc::bad_address) << path;
}

TEST(endpoint, knows_abstract_names) {
    const endpoint name = *endpoint::unix_path("@eddy");
    EXPECT_EQ(name.to_string(), "@eddy");
    EXPECT_EQ(reinterpret_cast<const sockaddr_un*>(name.data())->sun_path[0], '\0');
    EXPECT_EQ(name.size(), offsetof(sockaddr_un, sun_path) + 5);
    EXPECT_NE(name, *endpoint::unix_path("eddy"));
    EXPECT_NE(name, *endpoint::unix_path("@eddy2"));
}

TEST(endpoint, compares_by_address_and_port) {
    EXPECT_EQ(*endpoint::ip("::1", 1), *endpoint::ip("0:0::1", 1));
    EXPECT_NE(*endpoint::ip("::1", 1), *endpoint::ip("::1", 2));
    EXPECT_NE(*endpoint::ip("::1", 1), *endpoint::ip("::2", 1));
    EXPECT_NE(*endpoint::ip("fe80::1%1", 1), *endpoint::ip("fe80::1%2", 1));
    EXPECT_NE(*endpoint::ip("127.0.0.1", 1), *endpoint::ip("::1", 1));
    EXPECT_NE(*endpoint::ip("127.0.0.1", 1), *endpoint::ip("127.0.0.2", 1));
    EXPECT_EQ(*endpoint::unix_path("/a"), *endpoint::unix_path("/a"));
    EXPECT_NE(*endpoint::unix_path("/a"), *endpoint::unix_path("/b"));
    EXPECT_EQ(endpoint(), endpoint());
    EXPECT_NE(endpoint(), *endpoint::unix_path("/a"));
}

TEST(endpoint, keeps_what_the_kernel_writes) {
    const endpoint original = *endpoint::ip("192.0.2.1", 99);
    endpoint copy(original.data(), original.size());
    EXPECT_EQ(copy, original);
    endpoint unnamed;
    unnamed.data()->sa_family = AF_UNIX;
    unnamed.resize(sizeof(sa_family_t));
    EXPECT_EQ(unnamed.to_string(), "");
    unnamed.resize(10000);
    EXPECT_EQ(unnamed.size(), endpoint::capacity()) << "a size beyond the storage is cut";
    EXPECT_EQ(endpoint().to_string(), "");
    EXPECT_EQ(endpoint().family(), AF_UNSPEC);
}

}  // namespace
}  // namespace eddy
