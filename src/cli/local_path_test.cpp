// Tests of paths of the command line: what is relative is one of the working folder.
#include "cli/local_path.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

namespace eddy::cli {
namespace {

const std::string here = std::filesystem::current_path().string();

TEST(local_path, relative_paths_are_of_the_working_folder) {
    EXPECT_EQ(absolute_path("a/b"), here + "/a/b");
    EXPECT_EQ(absolute_path("./a/../b"), here + "/b");
    EXPECT_EQ(absolute_path("/a/b"), "/a/b");
    EXPECT_EQ(absolute_path(""), "");
    EXPECT_EQ(absolute_socket("a.sock"), here + "/a.sock");
    EXPECT_EQ(absolute_socket("@a"), "@a");
}

TEST(local_path, so_are_those_within_uris) {
    EXPECT_EQ(absolute_uris("unix://./a.sock"), "unix://" + here + "/a.sock");
    EXPECT_EQ(absolute_uris("UNIX://a.sock?x"), "UNIX://" + here + "/a.sock?x");
    EXPECT_EQ(absolute_uris("shm://a.sock?allow=33,1000"),
              "shm://" + here + "/a.sock?allow=33,1000");
    EXPECT_EQ(absolute_uris("handoff://../a.sock?type=stream"),
              "handoff://" + (std::filesystem::current_path().parent_path() / "a.sock").string() +
                  "?type=stream");
    EXPECT_EQ(absolute_uris("tls://*:1?cert=a.pem&min=1.3&key=/b.key&ca=./c"),
              "tls://*:1?cert=" + here + "/a.pem&min=1.3&key=/b.key&ca=" + here + "/c");
    EXPECT_EQ(absolute_uris(":1,unix://a,tls://h:2?ca=b"),
              ":1,unix://" + here + "/a,tls://h:2?ca=" + here + "/b");
}

TEST(local_path, all_else_stays) {
    for (const char* const uri : {"", ",", "unix:///a.sock", "unix://@a", "unix://", "tcp://h:1",
                                  "10.0.0.1:2,:3", "tls://h:1", "tls://h:1?", "tls://h:1?cert",
                                  "tls://h:1?cert=", "nonsense", "http://h/a?ca=b"})
        EXPECT_EQ(absolute_uris(uri), uri);
}

}  // namespace
}  // namespace eddy::cli
