// URLs, references to them, and the proxies that are chosen for them.
#include "http/agent/url.hpp"

#include "http/agent/proxies.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace eddy::http {
namespace {

std::string parsed(std::string_view text) {
    const auto read = url::parse(text);
    if (!read) return "none";
    return read->to_string() + (read->user.empty() ? "" : " as " + read->user);
}

TEST(http_url, is_taken_apart) {
    EXPECT_EQ(parsed("http://example.com"), "http://example.com/");
    EXPECT_EQ(parsed("HTTPS://Example.COM:443/A?b#c"), "https://example.com/A?b");
    EXPECT_EQ(parsed("http://example.com:8080?a=b"), "http://example.com:8080/?a=b");
    EXPECT_EQ(parsed("http://example.com:/x"), "http://example.com/x");
    EXPECT_EQ(parsed("http://[::1]:81/"), "http://[::1]:81/");
    EXPECT_EQ(parsed("http://me:p%40ss@host/"), "http://host/ as me:p@ss");
    EXPECT_EQ(parsed("http://host/a b\xc3\xa4"), "http://host/a%20b%C3%A4");
    EXPECT_EQ(url::parse("https://a/")->port, 443);
    EXPECT_EQ(url::parse("http://a/b?c/d")->path(), "/b");
    EXPECT_EQ(url::parse("https://a:80/")->authority(), "a:80");
    EXPECT_EQ(url::parse("https://a/")->host_and_port(), "a:443");
}

TEST(http_url, has_a_zone_for_this_machine_alone) {
    const url link = *url::parse("http://[fe80::1%eth0]:81/a?b");
    EXPECT_EQ(link.host, "fe80::1%eth0") << "it is connected to with it";
    EXPECT_EQ(link.authority(), "[fe80::1]:81");
    EXPECT_EQ(link.host_and_port(), "[fe80::1]:81");
    EXPECT_EQ(link.absolute_form(), "http://[fe80::1]:81/a?b");
    EXPECT_EQ(link.to_string(), "http://[fe80::1%eth0]:81/a?b");
    EXPECT_EQ(link.resolve("/c")->host, "fe80::1%eth0");
    EXPECT_EQ(url::parse("http://[fe80::1%eth0]/")->authority(), "[fe80::1]");
}

TEST(http_url, refuses_what_is_none) {
    for (const char* text : {"",
                             "example.com",
                             "ftp://example.com/",
                             "http:/a",
                             "http://",
                             "http:///a",
                             "http://:80/",
                             "http://a:0/",
                             "http://a:65536/",
                             "http://a:x/",
                             "http://a:80:80/",
                             "http://[::1/",
                             "http://[a]/",
                             "http://[::1]x/",
                             "http://a%2fb/",
                             "http://a\r\n/",
                             "http://a/\r\nX: y",
                             "http://a/\x01",
                             "http://us%er@a/",
                             "http://a\\b/",
                             "unix:///run/x",
                             "http://\x7f/"})
        EXPECT_EQ(parsed(text), "none") << text;
}

TEST(http_url, references_are_resolved) {
    const url base = *url::parse("http://me@a/b/c/d;p?q");
    const auto resolved = [&](std::string_view reference) {
        const auto made = base.resolve(reference);
        return made ? made->to_string() : "none";
    };
    // RFC 3986, 5.4.
    for (const auto& [reference, target] :
         std::map<std::string, std::string>{{"g", "http://a/b/c/g"},
                                            {"./g", "http://a/b/c/g"},
                                            {"g/", "http://a/b/c/g/"},
                                            {"/g", "http://a/g"},
                                            {"//g", "http://g/"},
                                            {"?y", "http://a/b/c/d;p?y"},
                                            {"g?y", "http://a/b/c/g?y"},
                                            {"#s", "http://a/b/c/d;p?q"},
                                            {"g#s", "http://a/b/c/g"},
                                            {";x", "http://a/b/c/;x"},
                                            {"", "http://a/b/c/d;p?q"},
                                            {".", "http://a/b/c/"},
                                            {"./", "http://a/b/c/"},
                                            {"..", "http://a/b/"},
                                            {"../", "http://a/b/"},
                                            {"../g", "http://a/b/g"},
                                            {"../..", "http://a/"},
                                            {"../../g", "http://a/g"},
                                            {"../../../g", "http://a/g"},
                                            {"/./g", "http://a/g"},
                                            {"/../g", "http://a/g"},
                                            {"g.", "http://a/b/c/g."},
                                            {"..g", "http://a/b/c/..g"},
                                            {"./g/.", "http://a/b/c/g/"},
                                            {"g/../h", "http://a/b/c/h"},
                                            {"g?y/../x", "http://a/b/c/g?y/../x"},
                                            {"https://b:444/x", "https://b:444/x"}})
        EXPECT_EQ(resolved(reference), target) << reference;
    EXPECT_EQ(resolved("mailto:me@a"), "none");
    EXPECT_EQ(resolved("javascript:x"), "none");
    EXPECT_EQ(base.resolve("/x")->user, "");
    EXPECT_EQ(base.resolve("http://you@a/x")->user, "you");
}

class http_proxies : public ::testing::Test {
protected:
    std::string chosen(const std::string& for_url) {
        const proxy_settings read = read_proxies([this](const char* name) -> const char* {
            const auto at = variables_.find(name);
            return at == variables_.end() ? nullptr : at->second.c_str();
        });
        const auto proxy = proxy_for(read, *url::parse(for_url));
        if (!proxy) return proxy.error().message();
        return *proxy ? (*proxy)->to_string() : "none";
    }

    std::map<std::string, std::string> variables_;
};

TEST_F(http_proxies, come_from_the_environment) {
    EXPECT_EQ(chosen("http://a/"), "none");
    variables_ = {{"HTTP_PROXY", "http://of-the-client/"}, {"REQUEST_METHOD", "GET"}};
    EXPECT_EQ(chosen("http://a/"), "none") << "a CGI program has the field Proxy in it";
    variables_["http_proxy"] = "http://p:3128";
    EXPECT_EQ(chosen("http://a/"), "http://p:3128/");
    EXPECT_EQ(chosen("https://a/"), "none");
    variables_["HTTPS_PROXY"] = "https://upper";
    EXPECT_EQ(chosen("https://a/"), "https://upper/");
    variables_["https_proxy"] = "lower:8080";
    EXPECT_EQ(chosen("https://a/"), "http://lower:8080/");
    variables_ = {{"ALL_PROXY", "http://all"}, {"https_proxy", ""}};
    EXPECT_EQ(chosen("http://a/"), "http://all/");
    EXPECT_EQ(chosen("https://a/"), "http://all/");
    variables_ = {{"http_proxy", "socks5://p"}};
    EXPECT_EQ(chosen("http://a/"), make_error_code(errc::unsupported).message());
    variables_ = {{"http_proxy", "http://p:x"}};
    EXPECT_EQ(chosen("http://a/"), make_error_code(errc::bad_address).message());
}

TEST_F(http_proxies, some_hosts_are_reached_without) {
    variables_ = {{"http_proxy", "p"},
                  {"NO_PROXY", "example.com, .dots.org ,*.star.net,1.2.3.4,[::1],port.com:81"}};
    for (const char* without : {"http://example.com/", "http://a.EXAMPLE.com:99/",
                                "http://dots.org/", "http://a.dots.org", "http://a.star.net/",
                                "http://1.2.3.4/", "http://[::1]:80/", "http://port.com:81/"})
        EXPECT_EQ(chosen(without), "none") << without;
    for (const char* with : {"http://badexample.com/", "http://com/", "http://example.com.evil/",
                             "http://11.2.3.4/", "http://port.com/", "http://[::2]/"})
        EXPECT_EQ(chosen(with), "http://p/") << with;
    variables_["no_proxy"] = "*";
    EXPECT_EQ(chosen("http://com/"), "none");
}

}  // namespace
}  // namespace eddy::http
