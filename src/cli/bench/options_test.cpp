// Tests of URLs of load generators: the parts that a request and a connection take of them.
#include "cli/bench/options.hpp"

#include <gtest/gtest.h>

namespace eddy::cli::bench {
namespace {

TEST(bench_url, is_taken_apart) {
    const auto read = read_url("https://localhost:8443/a?b", "http");
    ASSERT_TRUE(read);
    EXPECT_TRUE(read->is_tls);
    EXPECT_EQ(read->host, "localhost");
    EXPECT_EQ(read->port, 8443);
    EXPECT_EQ(read->authority, "localhost:8443");
    EXPECT_EQ(read->path, "/a?b");
    EXPECT_EQ(read_url("ws://localhost", "ws")->port, 80);
    EXPECT_EQ(read_url("ws://localhost", "ws")->path, "/");
}

TEST(bench_url, an_address_in_brackets_has_them_in_the_authority_alone) {
    const auto read = read_url("http://[::1]:8080", "http");
    ASSERT_TRUE(read);
    EXPECT_EQ(read->host, "::1");
    EXPECT_EQ(read->authority, "[::1]:8080");
}

TEST(bench_url, a_zone_is_for_the_connection_alone) {
    for (const auto& [url, authority] :
         {std::pair("http://[fe80::1%eth0]:8080/%25", "[fe80::1]:8080"),
          std::pair("http://[fe80::1%eth0]/", "[fe80::1]"),
          std::pair("http://[fe80::1%0]?%61", "[fe80::1]")}) {
        const auto read = read_url(url, "http");
        ASSERT_TRUE(read) << url;
        EXPECT_EQ(read->authority, authority);
        EXPECT_TRUE(read->host.starts_with("fe80::1%")) << read->host;
        http1::header_list headers;
        EXPECT_TRUE(headers.add("Host", read->authority));
    }
}

TEST(bench_url, others_are_refused) {
    for (const auto* url : {"", "localhost", "http://", "http://[::1", "http://a:0/", "http://a:x/",
                            "http://a@b/", "ftp://a/"})
        EXPECT_FALSE(read_url(url, "http")) << url;
}

}  // namespace
}  // namespace eddy::cli::bench
