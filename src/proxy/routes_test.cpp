// Routes: which one a host and path have, and what is forwarded.
#include "proxy/routes.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace eddy::proxy {
namespace {

route made(std::string host, std::string path) {
    route r;
    r.host = std::move(host);
    r.path = std::move(path);
    return r;
}

/// "HOST PATH" of the route of a request; empty for none.
std::string found(const route_table& in, std::string_view host, std::string_view path) {
    const route* const at = in.find(host, path);
    return at == nullptr ? "" : at->host + " " + at->path;
}

TEST(routes, the_most_specific_one_counts) {
    const route_table all({made("", "/"), made("", "/api"), made("a.org", "/"),
                           made("a.org", "/api/v2"), made("*.a.org", "/"), made("*.b.a.org", "/"),
                           made("", "/api/v2/deep/")});
    EXPECT_EQ(found(all, "x", "/y"), " /");
    EXPECT_EQ(found(all, "x", "/api"), " /api");
    EXPECT_EQ(found(all, "x", "/api/z"), " /api");
    EXPECT_EQ(found(all, "x", "/apis"), " /") << "whole segments";
    EXPECT_EQ(found(all, "A.org:8080", "/api/v2/x"), "a.org /api/v2");
    EXPECT_EQ(found(all, "a.org.", "/api"), "a.org /") << "the host before the path";
    EXPECT_EQ(found(all, "www.a.org", "/api"), "*.a.org /");
    EXPECT_EQ(found(all, "x.b.a.org", "/"), "*.b.a.org /");
    EXPECT_EQ(found(all, "x", "/api/v2/deep/er"), " /api/v2/deep/");
    EXPECT_EQ(found(all, "x", "/api/v2/deep"), " /api");
    EXPECT_EQ(found(all, "[::1]:80", "/"), " /");
}

TEST(routes, without_a_route_for_all_there_may_be_none) {
    const route_table all({made("a.org", "/x")});
    EXPECT_EQ(found(all, "a.org", "/y"), "");
    EXPECT_EQ(found(all, "b.org", "/x"), "");
}

TEST(routes, paths_count_as_backends_read_them) {
    const route_table all({made("", "/"), made("", "/admin")});
    EXPECT_EQ(found(all, "x", "/static/../admin"), " /admin");
    EXPECT_EQ(found(all, "x", "/static/%2e%2e/admin/x"), " /admin");
    EXPECT_EQ(found(all, "x", "/%61dmin"), " /admin");
    EXPECT_EQ(found(all, "x", "//admin"), " /admin");
    EXPECT_EQ(found(all, "x", "/./admin/."), " /admin");
    EXPECT_EQ(found(all, "x", "/admin/.."), " /");
    // A server that takes a malformed '%' decodes the rest all the same.
    EXPECT_EQ(found(all, "x", "/x/%2e%2e/admin/%zz"), " /admin");
    EXPECT_EQ(found(all, "x", "/%61dmin/%"), " /admin");
}

TEST(routes, dot_segments_are_resolved) {
    EXPECT_EQ(resolved_path("/a/./b/../c"), "/a/c");
    EXPECT_EQ(resolved_path("/../.."), "/");
    EXPECT_EQ(resolved_path("/a//b/"), "/a/b/");
    EXPECT_EQ(resolved_path("/a/.."), "/");
    EXPECT_EQ(resolved_path("/a/b/."), "/a/b/");
    EXPECT_EQ(resolved_path("/a%2Fb"), "/a/b");
    EXPECT_EQ(resolved_path("/%4g%41%4"), "/%4gA%4");
}

TEST(routes, prefixes_are_replaced) {
    route by = made("", "/api");
    EXPECT_EQ(forwarded_target(by, "/api/x", "q=1").value(), "/api/x?q=1");
    by.prefix = "/";
    EXPECT_EQ(forwarded_target(by, "/api/x", "").value(), "/x");
    EXPECT_EQ(forwarded_target(by, "/api", "").value(), "/");
    by.prefix = "/v1";
    EXPECT_EQ(forwarded_target(by, "/api/x/%2F", "").value(), "/v1/x/%2F");
    EXPECT_EQ(forwarded_target(by, "/api", "a").value(), "/v1?a");
    EXPECT_FALSE(forwarded_target(by, "/x/../api/y", ""));
    EXPECT_EQ(forwarded_target(made("", "/"), "", "").value(), "/");
}

TEST(routes, no_path_leads_out_of_the_new_prefix) {
    route by = made("", "/");
    by.prefix = "/public";
    EXPECT_EQ(forwarded_target(by, "", "q").value(), "/public?q") << "of an absolute target";
    EXPECT_EQ(forwarded_target(by, "/a/../b", "").value(), "/public/a/../b");
    for (const char* const path :
         {"/../secret", "/%2e%2e/secret", "/a/../../secret", "/..%2fsecret", "/%zz/../../secret"})
        EXPECT_FALSE(forwarded_target(by, path, "")) << path;
    route api = made("", "/api");
    api.prefix = "/my%20v1";
    EXPECT_EQ(forwarded_target(api, "/api/./x", "").value(), "/my%20v1/./x");
    EXPECT_FALSE(forwarded_target(api, "/api/../../api/y", ""));
}

}  // namespace
}  // namespace eddy::proxy
