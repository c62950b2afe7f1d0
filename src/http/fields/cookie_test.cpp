// Cookies: reading what browsers send, and what may be set.
#include <eddy/http/cookie.hpp>

#include "http/testing.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace eddy::http {
namespace {

using testing::error_of;

std::string read(std::string_view field) {
    std::string out;
    cookie_reader reader(field);
    while (const auto found = reader.next())
        out.append("<").append(found->name).append("=").append(found->value).append(">");
    return out;
}

TEST(http_cookie, reads_what_browsers_send) {
    EXPECT_EQ(read("a=b"), "<a=b>");
    EXPECT_EQ(read("a=b; c=d;e=f ;  g = h"), "<a=b><c=d><e=f><g=h>");
    EXPECT_EQ(read("a=\"b\"; c=\"; d=\"\""), "<a=b><c=\"><d=>");
    EXPECT_EQ(read("a=b=c==; d={\"e\":1, 2}; f=\xc3\xa9"), "<a=b=c==><d={\"e\":1, 2}><f=\xc3\xa9>");
    EXPECT_EQ(read("; ;;nameless; =x; a="), "<a=>");
    EXPECT_EQ(read(""), "");
}

std::string format(const cookie& set) {
    const auto text = format_cookie(set);
    return text ? *text : text.error() == errc::malformed ? "malformed" : "limit";
}

cookie named(std::string name, std::string value = "v") {
    cookie made;
    made.name = std::move(name);
    made.value = std::move(value);
    return made;
}

TEST(http_cookie, has_safe_defaults) {
    EXPECT_EQ(format(named("id", "a1")), "id=a1; Path=/; HttpOnly; SameSite=Lax");
}

TEST(http_cookie, writes_all_attributes) {
    cookie set = named("__Secure-id", "");
    set.path = "/a b";
    set.domain = "example.org";
    set.max_age = std::chrono::hours(1);
    set.expires = 784111777;
    set.secure = set.partitioned = true;
    set.http_only = false;
    set.same_site = same_site_policy::none;
    EXPECT_EQ(format(set),
              "__Secure-id=; Path=/a b; Domain=example.org; Max-Age=3600; "
              "Expires=Sun, 06 Nov 1994 08:49:37 GMT; Secure; SameSite=None; Partitioned");
    set = named("a");
    set.same_site = same_site_policy::unset;
    set.max_age = std::chrono::seconds(-5);
    EXPECT_EQ(format(set), "a=v; Path=/; Max-Age=0; HttpOnly");
    set.same_site = same_site_policy::strict;
    EXPECT_EQ(format(set), "a=v; Path=/; Max-Age=0; HttpOnly; SameSite=Strict");
}

TEST(http_cookie, refuses_bytes_that_may_not_stand_there) {
    for (const char* name : {"", "a b", "a;", "a=", "\xc3\xa9", "a\r\nb"})
        EXPECT_EQ(format(named(name)), "malformed") << name;
    for (const char* value : {"a b", "a;b", "a,b", "\"a\"", "a\\b", "a\r\nSet-Cookie: x=y", "\x7f"})
        EXPECT_EQ(format(named("a", value)), "malformed") << value;
    for (const char* path : {"", "a", "/;Secure", "/\n", "/ ", "/\xc3\xa9"}) {
        cookie set = named("a");
        set.path = path;
        EXPECT_EQ(format(set), "malformed") << path;
    }
    for (const char* domain : {"a b", "a;b", "a:80", "a/b"}) {
        cookie set = named("a");
        set.domain = domain;
        EXPECT_EQ(format(set), "malformed") << domain;
    }
    EXPECT_EQ(format(named("a", std::string(cookie_size_limit - 1, 'v'))).substr(0, 2), "a=");
    EXPECT_EQ(format(named("a", std::string(cookie_size_limit, 'v'))), "limit");
}

TEST(http_cookie, refuses_what_browsers_would_drop) {
    cookie set = named("a");
    set.same_site = same_site_policy::none;
    EXPECT_EQ(format(set), "malformed");
    set = named("a");
    set.partitioned = true;
    EXPECT_EQ(format(set), "malformed");
    EXPECT_EQ(format(named("__secure-a")), "malformed");
    set = named("__Host-a");
    EXPECT_EQ(format(set), "malformed");
    set.secure = true;
    EXPECT_EQ(format(set), "__Host-a=v; Path=/; Secure; HttpOnly; SameSite=Lax");
    set.path = "/a";
    EXPECT_EQ(format(set), "malformed");
    set.path = "/";
    set.domain = "example.org";
    EXPECT_EQ(format(set), "malformed");
}

class http_cookies : public testing::with_server {};

TEST_P(http_cookies, are_read_from_requests_and_set_by_responses) {
    handler_.answer = [](request& incoming) -> task<response> {
        std::string all;
        for (const cookie_pair& each : incoming.cookies())
            all.append(each.name).append("=").append(each.value).append(",");
        all += incoming.cookie("b").value_or("none");
        all += incoming.cookie("B") ? "!" : "";
        response made = text(all);
        cookie id;
        id.name = "id";
        id.value = "1";
        made.set_cookie(id);
        id.name = "other";
        co_return std::move(made.set_cookie(id));
    };
    const std::string answer = talk(
        "GET / HTTP/1.1\r\nHost: x\r\nCookie: a=1; b=\"2\"\r\ncookie: b=3\r\n"
        "Connection: close\r\n\r\n");
    EXPECT_NE(answer.find("\r\nSet-Cookie: id=1; Path=/; HttpOnly; SameSite=Lax\r\n"),
              std::string::npos)
        << answer;
    EXPECT_NE(answer.find("\r\nSet-Cookie: other=1; "), std::string::npos) << answer;
    EXPECT_TRUE(answer.ends_with("\r\n\r\na=1,b=2,b=3,2")) << answer;
}

TEST_P(http_cookies, that_may_not_be_set_make_the_response_invalid) {
    handler_.answer = [](request&) -> task<response> {
        response made(204);
        cookie bad;
        bad.name = "a";
        bad.value = "b\r\nX: y";
        co_return std::move(made.set_cookie(bad));
    };
    const std::string answer = talk("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 500 ")) << answer;
    EXPECT_EQ(answer.find("X: y"), std::string::npos);
}

EDDY_HTTP_ON_EVERY_BACKEND(http_cookies);

}  // namespace
}  // namespace eddy::http
