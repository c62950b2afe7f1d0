// Tests of paths of the command line: what is relative is one of the working folder.
#include "cli/local_path.hpp"

#include "base/files/temporary_folder.hpp"
#include "cli/flags.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

namespace eddy::cli {
namespace {

const std::string here = std::filesystem::current_path().string();

TEST(local_path, relative_paths_are_of_the_working_folder) {
    EXPECT_EQ(absolute_path("a/b"), here + "/a/b");
    EXPECT_EQ(absolute_path("././/b"), here + "/b");
    EXPECT_EQ(absolute_path("b/."), here + "/b");
    EXPECT_EQ(absolute_path("b/"), here + "/b/");
    EXPECT_EQ(absolute_path("."), here);
    EXPECT_EQ(absolute_path("/.."), "/");
    EXPECT_EQ(absolute_path("/a/b"), "/a/b");
    EXPECT_EQ(absolute_path(""), "");
    EXPECT_EQ(absolute_socket("a.sock"), here + "/a.sock");
    EXPECT_EQ(absolute_socket("@a"), "@a");
}

TEST(local_path, two_dots_lead_where_the_kernel_goes) {
    const eddy::testing::temporary_folder folder;
    std::filesystem::create_directories(folder.file("real/deep"));
    std::filesystem::create_directory(folder.file("a"));
    std::filesystem::create_directory_symlink(folder.file("real/deep"), folder.file("link"));
    EXPECT_EQ(absolute_path(folder.file("a/../b")), folder.file("b"));
    EXPECT_EQ(absolute_path(folder.file("a/../a/../b")), folder.file("b"));
    // Not folder/b, but folder/real/b.
    EXPECT_EQ(absolute_path(folder.file("link/../b")), folder.file("link/../b"));
    EXPECT_EQ(absolute_path(folder.file("link/../../b")), folder.file("link/../../b"));
    EXPECT_EQ(absolute_path(folder.file("none/../b")), folder.file("none/../b"));
}

TEST(local_path, a_removed_working_folder_is_named_as_the_reason) {
    const eddy::testing::temporary_folder folder;
    std::filesystem::create_directory(folder.file("gone"));
    std::filesystem::current_path(folder.file("gone"));
    std::filesystem::remove(folder.file("gone"));
    const local_path path = absolute_path("a.sock");
    const local_path uri = absolute_uris(":1,unix://a.sock");
    const local_path certificate = absolute_uris("tls://*:1?cert=a.pem");
    const local_path whole = absolute_uris("unix:///a.sock");
    const std::vector<flag> table = {{.name = "unix", .value_name = "PATH", .is_path = true}};
    const std::vector<std::string> words = {"--unix", "a.sock"};
    const auto parsed = parse_arguments(words, table);
    std::filesystem::current_path(here);
    for (const local_path* const each : {&path, &uri, &certificate}) {
        ASSERT_FALSE(*each);
        EXPECT_NE(each->error().find("working folder, which cannot be had"), std::string::npos);
    }
    EXPECT_EQ(whole, "unix:///a.sock");
    ASSERT_FALSE(parsed);
    EXPECT_TRUE(parsed.error().starts_with("--unix: \"a.sock\" is a path of")) << parsed.error();
}

TEST(local_path, so_are_those_within_uris) {
    EXPECT_EQ(absolute_uris("unix://./a.sock"), "unix://" + here + "/a.sock");
    EXPECT_EQ(absolute_uris("UNIX://a.sock?x"), "UNIX://" + here + "/a.sock?x");
    EXPECT_EQ(absolute_uris("shm://:4242?allow=33"), "shm://:4242?allow=33");
    EXPECT_EQ(absolute_uris("shm://a.sock?allow=33,1000"),
              "shm://" + here + "/a.sock?allow=33,1000");
    EXPECT_EQ(absolute_uris("handoff://../a.sock?type=stream"),
              "handoff://" + (std::filesystem::current_path().parent_path() / "a.sock").string() +
                  "?type=stream");
    EXPECT_EQ(absolute_uris("tls://*:1?cert=a.pem&min=1.3&key=/b.key&ca=./c"),
              "tls://*:1?cert=" + here + "/a.pem&min=1.3&key=/b.key&ca=" + here + "/c");
    EXPECT_EQ(absolute_uris(":1,unix://a,tls://h:2?ca=b"),
              ":1,unix://" + here + "/a,tls://h:2?ca=" + here + "/b");
    EXPECT_EQ(absolute_uris("wss://h/p?ca=a#ca=b&min=1.3"),
              "wss://h/p?ca=a#ca=" + here + "/b&min=1.3");
}

TEST(local_path, all_else_stays) {
    for (const char* const uri :
         {"", ",", "unix:///a.sock", "unix://@a", "unix://", "tcp://h:1", "10.0.0.1:2,:3",
          "tls://h:1", "tls://h:1?", "tls://h:1?cert", "tls://h:1?cert=", "nonsense",
          "http://h/a?ca=b", "ws://h/a?ca=b#ca=c", "wss://h/a?ca=b"})
        EXPECT_EQ(absolute_uris(uri), uri);
}

}  // namespace
}  // namespace eddy::cli
