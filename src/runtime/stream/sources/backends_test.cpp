// Backends of a source: how they are written, and the order in which they are tried.
#include "runtime/stream/sources/backends.hpp"

#include "runtime/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace eddy::runtime::stream {
namespace {

using namespace runtime::testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string refusal_of(std::string_view text) {
    const auto read = read_backend("source-backend", text);
    return read ? std::string() : read.error().message;
}

std::vector<std::string> names_of(const backend_list& list, std::string_view chosen) {
    std::vector<std::string> names;
    for (const backend* each : list.order(chosen)) names.push_back(each->name);
    return names;
}

TEST(backends, have_a_name_a_url_a_key_and_a_model) {
    const temporary_folder folder;
    std::ofstream(folder.file("key")) << "sk-2\n";
    const backend read = must_do(
        read_backend("source-backend", "azure=https://a.example/openai?api-version=1  key-file=" +
                                           folder.file("key") + " key-field=api-key model=gpt=4"));
    EXPECT_EQ(read, (backend{.name = "azure",
                             .url = "https://a.example/openai?api-version=1",
                             .socket = {},
                             .key = "sk-2",
                             .key_field = "api-key",
                             .model = "gpt=4"}));
    EXPECT_EQ(must_do(read_backend("source-backend", "a=http://b")).key, "");
}

TEST(backends, are_refused_where_they_are_written_wrongly) {
    const temporary_folder folder;
    std::ofstream(folder.file("key")) << "sk-2\n";
    EXPECT_THAT(refusal_of("http://a/"), HasSubstr("NAME=URL"));
    EXPECT_THAT(refusal_of("http://a/?b=c"), HasSubstr("NAME=URL"));
    EXPECT_THAT(refusal_of("=http://a/"), HasSubstr("NAME=URL"));
    EXPECT_THAT(refusal_of("default=http://a/"), HasSubstr("--source-url"));
    EXPECT_THAT(refusal_of("a=ftp://b/"), HasSubstr("cannot be \"ftp://b/\""));
    EXPECT_THAT(refusal_of("a=http://b/ c"), HasSubstr("\"c\" is none of"));
    EXPECT_THAT(refusal_of("a=http://b/ model="), HasSubstr("is none of"));
    EXPECT_THAT(refusal_of("a=http://b/ key-file=c"), HasSubstr("whole path"));
    EXPECT_THAT(refusal_of("a=http://b/ key-file=" + folder.file("none")), HasSubstr("read"));
    EXPECT_THAT(refusal_of("a=http://b/ key-field=k"), HasSubstr("without key-file"));
    EXPECT_THAT(refusal_of("a=http://b/ key-field=Content-Length key-file=" + folder.file("key")),
                HasSubstr("Content-Length"));
    const std::string name(max_backend_name, 'n');
    EXPECT_EQ(refusal_of(name + "=http://b"), "");
    EXPECT_THAT(refusal_of(name + "n=http://b"), HasSubstr("at most 64"));
}

TEST(backends, have_urls_without_spaces) {
    for (const char* const good : {"http://a", "https://a:1/b?c=d", "http://[::1]:1/", "HTTP://a/",
                                   "http://a/caf\xc3\xa9", "http://u:p@a/"})
        EXPECT_TRUE(check_url("x", good)) << good;
    for (const char* const bad : {"http://a b/", "http://a/b c", "http://", "http://a:0/",
                                  "ftp://a", "a", "", "http://a/\tb", "http://a:x/"})
        EXPECT_FALSE(check_url("x", bad)) << bad;
    const auto refused = check_url("x", "http://name:word@a b/c?key=secret#part");
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message, HasSubstr("http://***@a b/c?***"));
}

TEST(backends, are_shown_without_secrets) {
    EXPECT_EQ(shown_backend("a=https://n:p@b/c?k=v key-file=/k model=m"),
              "a=https://***@b/c?*** key-file=/k model=m");
    EXPECT_EQ(shown_backend("a=http://b/c"), "a=http://b/c");
    EXPECT_EQ(shown_backend("a"), "a");
}

TEST(backends, have_paths_before_the_query) {
    EXPECT_EQ(url_below("http://a/v1", "/c"), "http://a/v1/c");
    EXPECT_EQ(url_below("http://a/v1//", "/c"), "http://a/v1/c");
    EXPECT_EQ(url_below("http://a", "/c"), "http://a/c");
    EXPECT_EQ(url_below("http://a/v1?q=1", "/c"), "http://a/v1/c?q=1");
    EXPECT_EQ(url_below("http://a/v1/?q=/", "/c"), "http://a/v1/c?q=/");
    EXPECT_EQ(url_below("http://a/v1/?q=1", ""), "http://a/v1/?q=1");
}

backend named(std::string name) {
    backend made;
    made.url = "http://" + name;
    made.name = std::move(name);
    return made;
}

TEST(backends, are_tried_in_the_order_that_is_asked_for) {
    const backend_list one({named("default")});
    EXPECT_NE(one.only(), nullptr);
    EXPECT_THAT(names_of(one, "whatever"), ElementsAre("default"));
    const backend_list list({named("default"), named("b"), named("c")});
    EXPECT_EQ(list.only(), nullptr);
    EXPECT_THAT(names_of(list, ""), ElementsAre("default", "b", "c"));
    EXPECT_THAT(names_of(list, "c"), ElementsAre("c"));
    EXPECT_THAT(names_of(list, "c,default,c"), ElementsAre("c", "default"));
    for (const char* const unknown : {"d", "b,d", "b,", ",", " b", "B"})
        EXPECT_THAT(names_of(list, unknown), IsEmpty()) << unknown;
}

}  // namespace
}  // namespace eddy::runtime::stream
