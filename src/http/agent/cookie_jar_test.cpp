// Cookies: which are kept, for what, until when, and how many.
#include <eddy/http/cookie_jar.hpp>

#include <gtest/gtest.h>

#include <string>

namespace eddy::http {
namespace {

constexpr std::int64_t now = 1'700'000'000;

/// Cookies sent to `host` after one field Set-Cookie from `from`.
std::string kept(std::string set_cookie, std::string host = "www.example.com",
                 std::string from = "www.example.com", bool is_secure = true) {
    cookie_jar jar;
    jar.store(set_cookie, from, "/a/b", is_secure, now);
    return jar.value_for(host, "/a/b", is_secure, now);
}

TEST(http_cookie_jar, keeps_names_and_values) {
    EXPECT_EQ(kept("a=b"), "a=b");
    EXPECT_EQ(kept(" a = b ; HttpOnly; SameSite=Lax; unknown"), "a=b");
    EXPECT_EQ(kept("a=\"b=c\""), "a=\"b=c\"");
    EXPECT_EQ(kept("a="), "a=");
    EXPECT_EQ(kept("ab"), "");
    EXPECT_EQ(kept("=b"), "");
    EXPECT_EQ(kept(""), "");
    EXPECT_EQ(kept("a=" + std::string(cookie_jar::max_cookie_bytes - 1, 'x')).size(),
              cookie_jar::max_cookie_bytes + 1);
    EXPECT_EQ(kept("a=" + std::string(cookie_jar::max_cookie_bytes, 'x')), "");
}

TEST(http_cookie_jar, belong_to_a_host_or_a_domain) {
    EXPECT_EQ(kept("a=b", "example.com"), "");
    EXPECT_EQ(kept("a=b", "x.www.example.com"), "") << "without a domain it is the host's alone";
    EXPECT_EQ(kept("a=b; Domain=example.com", "example.com"), "a=b");
    EXPECT_EQ(kept("a=b; domain=.Example.com", "other.example.com"), "a=b");
    EXPECT_EQ(kept("a=b; Domain=example.com", "badexample.com"), "");
    EXPECT_EQ(kept("a=b; Domain=www.example.com", "example.com"), "");
    EXPECT_EQ(kept("a=b; Domain=other.com", "other.com"), "") << "no host sets another's";
    EXPECT_EQ(kept("a=b; Domain=x.www.example.com", "x.www.example.com"), "");
    EXPECT_EQ(kept("a=b; Domain=com", "other.com"), "") << "a single label";
    EXPECT_EQ(kept("a=b; Domain=localhost", "localhost", "localhost"), "a=b");
    EXPECT_EQ(kept("a=b; Domain=localhost", "x.localhost", "localhost"), "");
    EXPECT_EQ(kept("a=b; Domain=1.2.3.4", "1.2.3.4", "1.2.3.4"), "a=b");
    EXPECT_EQ(kept("a=b; Domain=2.3.4", "9.2.3.4", "1.2.3.4"), "");
}

TEST(http_cookie_jar, belong_to_a_path) {
    cookie_jar jar;
    jar.store("folder=1", "h.x", "/a/b", false, now);
    jar.store("root=1; Path=/", "h.x", "/a/b", false, now);
    jar.store("deep=1; Path=/a/b/c", "h.x", "/", false, now);
    jar.store("relative=1; Path=x", "h.x", "/", false, now);
    EXPECT_EQ(jar.value_for("h.x", "/a/b/c/d", false, now), "deep=1; folder=1; root=1; relative=1");
    EXPECT_EQ(jar.value_for("h.x", "/a", false, now), "folder=1; root=1; relative=1");
    EXPECT_EQ(jar.value_for("h.x", "/ab", false, now), "root=1; relative=1");
}

TEST(http_cookie_jar, secure_ones_go_over_tls_alone) {
    cookie_jar jar;
    jar.store("s=1; Secure", "h.x", "/", true, now);
    jar.store("p=1; Secure", "h.x", "/", false, now);
    EXPECT_EQ(jar.value_for("h.x", "/", true, now), "s=1");
    EXPECT_EQ(jar.value_for("h.x", "/", false, now), "");
    jar.store("s=2", "h.x", "/", false, now);
    EXPECT_EQ(jar.value_for("h.x", "/", true, now), "s=1") << "nor are they replaced without";
    EXPECT_EQ(kept("__Secure-a=b"), "");
    EXPECT_EQ(kept("__SECURE-a=b"), "");
    EXPECT_EQ(kept("__host-a=b; Secure"), "");
    EXPECT_EQ(kept("__Secure-a=b; Secure"), "__Secure-a=b");
    EXPECT_EQ(kept("__Host-a=b; Secure; Path=/"), "__Host-a=b");
    EXPECT_EQ(kept("__Host-a=b; Secure"), "");
    EXPECT_EQ(kept("__Host-a=b; Secure; Path=/; Domain=example.com"), "");
}

TEST(http_cookie_jar, expire) {
    cookie_jar jar;
    jar.store("age=1; Max-Age=10; Expires=Wed, 21 Oct 2015 07:28:00 GMT", "h.x", "/", false, now);
    jar.store("date=1; Expires=Fri, 01 Jan 2027 00:00:00 GMT", "h.x", "/", false, now);
    jar.store("session=1; Max-Age=x", "h.x", "/", false, now);
    EXPECT_EQ(jar.value_for("h.x", "/", false, now + 9), "age=1; date=1; session=1");
    EXPECT_EQ(jar.value_for("h.x", "/", false, now + 10), "date=1; session=1");
    EXPECT_EQ(jar.value_for("h.x", "/", false, 1'800'000'000), "session=1");
    jar.store("session=2; Max-Age=0", "h.x", "/", false, now);
    EXPECT_EQ(jar.size(), 0U);
    for (const char* age : {"-1", "0", "-99999999999999999999"})
        EXPECT_EQ(kept("a=b; Max-Age=" + std::string(age)), "") << age;
    EXPECT_EQ(kept("a=b; Max-Age=99999999999999999999"), "a=b");
    EXPECT_EQ(kept("a=b; Max-Age=9223372036854775807"), "a=b");
}

TEST(http_cookie_jar, are_replaced_and_bounded) {
    cookie_jar jar;
    jar.store("a=1", "h.x", "/", false, now);
    jar.store("b=1", "h.x", "/", false, now);
    jar.store("a=2", "h.x", "/", false, now);
    EXPECT_EQ(jar.value_for("h.x", "/", false, now), "a=2; b=1");
    for (std::size_t i = 0; i < 2 * cookie_jar::max_domain_cookies; ++i)
        jar.store("n" + std::to_string(i) + "=1", "h.x", "/", false, now);
    EXPECT_EQ(jar.size(), cookie_jar::max_domain_cookies);
    EXPECT_TRUE(jar.value_for("h.x", "/", false, now).ends_with("n99=1"));
    for (std::size_t i = 0; i < 2 * cookie_jar::max_cookies; ++i)
        jar.store("a=1", "h" + std::to_string(i) + ".x", "/", false, now);
    EXPECT_EQ(jar.size(), cookie_jar::max_cookies);
    EXPECT_EQ(jar.value_for("h.x", "/", false, now), "");
    jar.clear();
    EXPECT_EQ(jar.size(), 0U);
}

}  // namespace
}  // namespace eddy::http
