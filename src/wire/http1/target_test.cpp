// Request targets in their four forms, percent-encoding and query parameters.
#include <eddy/wire/http1/target.hpp>

#include <gtest/gtest.h>

#include <string>

namespace eddy::http1 {
namespace {

TEST(http_target, origin_form_has_path_and_query) {
    const auto parts = split_target("GET", "/v1/runtimes/db%20x?all=1&q=a?b").value();
    EXPECT_EQ(parts.form, target_form::origin);
    EXPECT_EQ(parts.path, "/v1/runtimes/db%20x");
    EXPECT_EQ(parts.query, "all=1&q=a?b");
    EXPECT_EQ(split_target("GET", "/").value().path, "/");
    EXPECT_EQ(split_target("GET", "/?").value().query, "");
    EXPECT_EQ(split_target("GET", "//evil.example/x").value().form, target_form::origin);
}

TEST(http_target, absolute_form_has_an_authority) {
    const auto parts = split_target("GET", "http://[::1]:80/a?b").value();
    EXPECT_EQ(parts.form, target_form::absolute);
    EXPECT_EQ(parts.scheme, "http");
    EXPECT_EQ(parts.authority, "[::1]:80");
    EXPECT_EQ(parts.path, "/a");
    EXPECT_EQ(parts.query, "b");
    const auto bare = split_target("GET", "http://h?q").value();
    EXPECT_EQ(bare.path, "");
    EXPECT_EQ(bare.query, "q");
    for (const char* bad :
         {"http://", "://h/", "1http://h/", "http:/h", "h", "http:///x", "http://user@h/",
          "http://a\\b/", "ht_tp://h", "http://a:b/", "http://:80/", "http://[::1/", "http://[zz]/",
          "http://1.2.3.4:9000:80/"}) {
        EXPECT_EQ(split_target("GET", bad).error(), errc::malformed) << bad;
    }
}

TEST(http_target, authority_form_belongs_to_connect) {
    EXPECT_EQ(split_target("CONNECT", "example.org:443").value().authority, "example.org:443");
    for (const char* bad : {"example.org", ":443", "h:", "h:0", "h:65536", "h:+1", "/x", "h:1/x",
                            "a:b:80", "[::1:80", "[zz]:80"}) {
        EXPECT_FALSE(split_target("CONNECT", bad)) << bad;
    }
    EXPECT_EQ(split_target("CONNECT", "[::1]:443").value().authority, "[::1]:443");
    EXPECT_FALSE(split_target("GET", "example.org:443"));
}

TEST(http_target, asterisk_form_belongs_to_options) {
    EXPECT_EQ(split_target("OPTIONS", "*").value().form, target_form::asterisk);
    EXPECT_FALSE(split_target("GET", "*"));
}

TEST(http_target, refuses_bytes_that_no_target_has) {
    using namespace std::string_view_literals;
    for (const std::string_view bad :
         {""sv, "/a b"sv, "/a\tb"sv, "/\0"sv, "/\x7f"sv, "/\r"sv, "/a#b"sv, "/\xc3\xa4"sv}) {
        EXPECT_FALSE(split_target("GET", bad)) << bad;
    }
}

TEST(http_target, percent_decoding_is_exact) {
    EXPECT_EQ(percent_decode("a%20b%2Fc%2fd+e").value(), "a b/c/d+e");
    EXPECT_EQ(percent_decode("").value(), "");
    EXPECT_EQ(percent_decode("%00").value(), std::string(1, '\0'));
    EXPECT_EQ(percent_decode("%41%").error(), errc::malformed);
    for (const char* bad : {"%", "%4", "%g0", "%0g", "a%2", "%%41"}) {
        EXPECT_FALSE(percent_decode(bad)) << bad;
    }
}

TEST(http_target, percent_encoding_round_trips_every_byte) {
    std::string all;
    for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
    const std::string encoded = percent_encode(all);
    EXPECT_EQ(percent_decode(encoded).value(), all);
    EXPECT_TRUE(split_target("GET", "/" + encoded));
    EXPECT_EQ(percent_encode("aZ0-._~"), "aZ0-._~");
    EXPECT_EQ(percent_encode("a/b c"), "a%2Fb%20c");
}

std::string read_query(std::string_view query) {
    query_reader reader(query);
    std::string out;
    while (auto parameter = reader.next()) out += parameter->name + "=" + parameter->value + ";";
    EXPECT_FALSE(reader.next());
    return out + (reader.malformed() ? "malformed" : "");
}

TEST(http_target, query_parameters_are_decoded_in_order) {
    EXPECT_EQ(read_query(""), "");
    EXPECT_EQ(read_query("a=1&b=two+words&c=%26%3D"), "a=1;b=two words;c=&=;");
    EXPECT_EQ(read_query("flag&x=&=y&a=1=2"), "flag=;x=;=y;a=1=2;");
    EXPECT_EQ(read_query("&&a=1&&"), "a=1;");
    EXPECT_EQ(read_query("a=1&b=%z1&c=3"), "a=1;malformed");
    EXPECT_EQ(read_query("%=1"), "malformed");
}

}  // namespace
}  // namespace eddy::http1
