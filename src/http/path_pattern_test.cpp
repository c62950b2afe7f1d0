// Which paths fit a pattern, and what stands for its braces.
#include "http/path_pattern.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace eddy::http {
namespace {

TEST(match_path, takes_parameters_out_decoded) {
    EXPECT_EQ(match_path("/v1/runtimes/{name}", "/v1/runtimes/db"), std::vector<std::string>{"db"});
    EXPECT_EQ(match_path("/v1/runtimes/{name}/start", "/v1/runtimes/a%20b/start"),
              std::vector<std::string>{"a b"});
    EXPECT_EQ(match_path("/metrics", "/metrics"), std::vector<std::string>{});
}

TEST(match_path, refuses_what_does_not_fit) {
    EXPECT_FALSE(match_path("/v1/runtimes", "/v1/runtimes/"));
    EXPECT_FALSE(match_path("/v1/runtimes", "/v1"));
    EXPECT_FALSE(match_path("/v1/runtimes", "v1/runtimes"));
    EXPECT_FALSE(match_path("/v1/runtimes/{name}", "/v1/runtimes/"));
    EXPECT_FALSE(match_path("/v1/runtimes/{name}", "/v1/runtimes/a/b"));
    EXPECT_FALSE(match_path("/v1/runtimes", ""));
}

TEST(match_path, refuses_segments_that_hide_something) {
    EXPECT_FALSE(match_path("/v1/runtimes/{name}", "/v1/runtimes/a%2Fb"));
    EXPECT_FALSE(match_path("/v1/runtimes/{name}", "/v1/runtimes/a%00b"));
    EXPECT_FALSE(match_path("/v1/runtimes/{name}", "/v1/runtimes/a%0Ab"));
    EXPECT_FALSE(match_path("/v1/runtimes/{name}", "/v1/runtimes/a%zz"));
    EXPECT_FALSE(match_path("/v1/runtimes/{name}", "/v1/runtimes/a%"));
}

TEST(parameter_index, counts_the_braces) {
    EXPECT_EQ(parameter_index("/a/{one}/b/{two}", "one"), 0U);
    EXPECT_EQ(parameter_index("/a/{one}/b/{two}", "two"), 1U);
    EXPECT_EQ(parameter_index("/a/{one}/b/{two}", "a"), std::nullopt);
    EXPECT_EQ(parameter_index("", "one"), std::nullopt);
}

}  // namespace
}  // namespace eddy::http
