// Where requests go.
#include "http/router.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace eddy::http {
namespace {

constexpr route table[] = {
    {"GET", "/v1/runtimes"},
    {"POST", "/v1/runtimes"},
    {"GET", "/v1/runtimes/{name}"},
    {"POST", "/v1/runtimes/{name}/start"},
};

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

TEST(find_route, chooses_by_method_and_path) {
    EXPECT_EQ(find_route(table, "GET", "/v1/runtimes").index, 0U);
    EXPECT_EQ(find_route(table, "POST", "/v1/runtimes").index, 1U);
    const routing start = find_route(table, "POST", "/v1/runtimes/db/start");
    EXPECT_EQ(start.index, 3U);
    EXPECT_EQ(start.parameters, std::vector<std::string>{"db"});
}

TEST(find_route, answers_head_as_get) {
    EXPECT_EQ(find_route(table, "HEAD", "/v1/runtimes").index, 0U);
}

TEST(find_route, names_the_methods_that_would_do) {
    const routing wrong = find_route(table, "PUT", "/v1/runtimes");
    EXPECT_FALSE(wrong.index);
    EXPECT_EQ(wrong.allow, "GET, HEAD, POST");
}

TEST(find_route, knows_no_other_paths) {
    const routing nowhere = find_route(table, "GET", "/v2/runtimes");
    EXPECT_FALSE(nowhere.index);
    EXPECT_EQ(nowhere.allow, "");
}

}  // namespace
}  // namespace eddy::http
