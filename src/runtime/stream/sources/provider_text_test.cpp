// Texts of sources: where APIs have them, secrets, and what could harm a log.
#include "runtime/stream/sources/provider_text.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace eddy::runtime::stream {
namespace {

TEST(provider_text, is_found_where_apis_have_it) {
    EXPECT_EQ(error_text_of(R"({"error":{"message":"no","type":"t","code":null}})"), "no (t)");
    EXPECT_EQ(error_text_of(R"({"error":{"message":"no","code":"c","type":"t"}})"), "no (c)");
    EXPECT_EQ(error_text_of(R"({"error":"no"})"), "no");
    EXPECT_EQ(error_text_of(R"({"detail":"no"})"), "no");
    EXPECT_EQ(error_text_of(R"({"object":"error","message":"no"})"), "no");
    EXPECT_EQ(error_text_of(R"({"error":{"reason":"x"}})"), R"({"error":{"reason":"x"}})");
    EXPECT_EQ(error_text_of("<h1>Bad Gateway</h1>"), "<h1>Bad Gateway</h1>");
    EXPECT_EQ(error_text_of("[1, 2]"), "[1,2]");
    EXPECT_EQ(error_text_of(""), "");
    const std::string deep(100'000, '[');
    EXPECT_EQ(error_text_of(deep), deep);
    std::string members = R"({"error":"no")";
    for (int i = 1; i < 4096; ++i) members += ",\"" + std::to_string(i) + "\":1";
    EXPECT_EQ(error_text_of(members + "}"), "no");
    members += R"(,"0":1})";
    EXPECT_EQ(error_text_of(members), members) << "above the limit it is shown as it came";
    EXPECT_FALSE(reports_error(members));
    EXPECT_TRUE(reports_error(R"({"error":{}})"));
    for (const std::string_view other : {R"({"error":null})", "{}", "[]", "", "error"})
        EXPECT_FALSE(reports_error(other)) << other;
}

TEST(provider_text, has_no_secrets) {
    const secret_texts secrets("sk-abc/def\"g",
                               "https://me:pass%20word@host:1/v1?api_key=AIza12&v=2#part");
    EXPECT_EQ(secrets.hide("wrong key sk-abc/def\"g, really sk-abc/def\"g"),
              "wrong key ***, really ***");
    EXPECT_EQ(secrets.hide(R"({"echo":"sk-abc/def\"g"})"), R"({"echo":"***"})");
    EXPECT_EQ(secrets.hide("for me:pass%20word, or pass%20word"), "for ***, or ***");
    EXPECT_EQ(secrets.hide("Basic bWU6cGFzcyUyMHdvcmQ="), "Basic ***");
    EXPECT_EQ(secrets.hide("key AIza12 is wrong"), "key *** is wrong");
    EXPECT_EQ(secrets.hide("host"), "host");
    EXPECT_EQ(secret_texts("", "http://host/v1").hide("text"), "text");
    EXPECT_EQ(secret_texts("k", "").hide("kk"), "******");
}

TEST(provider_text, has_no_beginning_of_a_secret_at_a_cut) {
    const secret_texts secrets("sk-abcdef", "http://host/");
    EXPECT_EQ(secrets.hide("key sk-abcde", true), "key ***");
    EXPECT_EQ(secrets.hide("key sk-abcdef", true), "key ***");
    EXPECT_EQ(secrets.hide("sk-abcdef and more", true), "*** and more");
    EXPECT_EQ(secrets.hide("key sk-abcde"), "key ***") << "the provider may have cut it";
    EXPECT_EQ(secrets.hide("key sk-a"), "key ***");
    EXPECT_EQ(secrets.hide("key sk-"), "key sk-") << "too short to tell";
    EXPECT_EQ(secrets.hide("key sk-", true), "key ***");
    EXPECT_EQ(secrets.hide("sk-abcde is no key"), "sk-abcde is no key");
    EXPECT_EQ(secret_texts("k", "").hide("k", true), "***");
    EXPECT_EQ(secret_texts("", "").hide("text"), "text");
}

TEST(provider_text, has_no_decoded_secrets_of_the_url) {
    const secret_texts secrets("", "https://al%40ice:p%40ss@host/v1?key=a%2Fbcd&bad=%zz9");
    EXPECT_EQ(secrets.hide("user al@ice:p@ss"), "user ***");
    EXPECT_EQ(secrets.hide("password p@ss, or p%40ss"), "password ***, or ***");
    EXPECT_EQ(secrets.hide("Basic YWxAaWNlOnBAc3M="), "Basic ***");
    EXPECT_EQ(secrets.hide("key a/bcd, or a%2Fbcd"), "key ***, or ***");
    EXPECT_EQ(secrets.hide("%zz9"), "***");
    EXPECT_EQ(secrets.hide("no user al@ice, al%40ice"), "no user ***, ***");
}

TEST(provider_text, cannot_harm_a_log) {
    EXPECT_EQ(shown("a\nb\x1b[2J\t\xFF"), R"(a\x0ab\x1b[2J\x09\xff)");
    EXPECT_EQ(shown("\u202Eevil"), R"(\xe2\x80\xaeevil)");
    EXPECT_EQ(shown("Grüße\r\n \n"), "Grüße");
    EXPECT_EQ(shown(""), "");
}

TEST(provider_text, is_bounded) {
    EXPECT_EQ(shown(std::string(max_shown_text / 2, 'x')), std::string(max_shown_text / 2, 'x'));
    for (const std::string_view each : {"x", "\x01", "ä", "\xFF"}) {
        std::string text;
        while (text.size() < 10 * max_shown_text) text += each;
        const std::string line = shown(text);
        EXPECT_LE(line.size(), max_shown_text + 3);
        EXPECT_GE(line.size(), max_shown_text - 16);
        EXPECT_TRUE(line.ends_with("..."));
    }
}

}  // namespace
}  // namespace eddy::runtime::stream
