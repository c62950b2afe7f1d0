// Owner and group of a socket's file.
#include "base/files/socket_owner.hpp"

#include <eddy/base/unique_fd.hpp>

#include "base/files/temporary_folder.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <string>

namespace eddy {
namespace {

class socket_owner : public ::testing::Test {
protected:
    socket_owner() : path_(folder_.file("s")), socket_(::socket(AF_UNIX, SOCK_STREAM, 0)) {
        sockaddr_un at{};
        at.sun_family = AF_UNIX;
        std::memcpy(at.sun_path, path_.c_str(), path_.size() + 1);
        EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&at), sizeof(at)), 0);
    }
    struct stat info() const {
        struct stat read{};
        EXPECT_EQ(::stat(path_.c_str(), &read), 0);
        return read;
    }

    testing::temporary_folder folder_;
    std::string path_;
    unique_fd socket_;
};

TEST_F(socket_owner, changes_permissions_and_what_is_its_own_already) {
    EXPECT_TRUE(give_socket(path_, ::geteuid(), ::getegid(), 0640));
    EXPECT_EQ(info().st_mode & 0777U, 0640U);
    EXPECT_TRUE(give_socket(path_, std::nullopt, std::nullopt));
    EXPECT_EQ(info().st_mode & 0777U, 0640U);
}

TEST_F(socket_owner, changes_owner_and_group_where_it_may) {
    const auto given = give_socket(path_, std::nullopt, gid_t{54321});
    if (::geteuid() != 0) {
        EXPECT_EQ(given.error(), std::errc::operation_not_permitted);
        return;
    }
    EXPECT_TRUE(given);
    EXPECT_TRUE(give_socket(path_, uid_t{12345}, std::nullopt));
    EXPECT_EQ(info().st_uid, 12345U);
    EXPECT_EQ(info().st_gid, 54321U);
    EXPECT_TRUE(give_socket(path_, uid_t{12345}, gid_t{54322})) << "it is that user's";
    EXPECT_EQ(info().st_gid, 54322U);
    EXPECT_EQ(give_socket(path_, uid_t{1}, std::nullopt).error(), errc::bad_address);
}

TEST_F(socket_owner, leaves_other_files_alone) {
    const std::string link = folder_.file("link");
    ASSERT_EQ(::symlink(path_.c_str(), link.c_str()), 0);
    EXPECT_EQ(give_socket(link, std::nullopt, ::getegid()).error(), errc::bad_address);
    EXPECT_EQ(give_socket(folder_.path(), std::nullopt, ::getegid()).error(), errc::bad_address);
    EXPECT_EQ(give_socket(folder_.file("none"), std::nullopt, ::getegid()).error(),
              std::errc::no_such_file_or_directory);
}

TEST(socket_owner_names, are_those_of_this_machine) {
    EXPECT_EQ(find_user("root", "--x").value(), 0U);
    EXPECT_EQ(find_user("4294967294", "--x").value(), 4294967294U);
    EXPECT_EQ(find_group("root", "--x").value(), 0U);
    EXPECT_EQ(find_group("17", "--x").value(), 17U);
    for (const char* const none : {"no-such-name", "", "4294967295", "-1"}) {
        EXPECT_EQ(find_user(none, "--x").error().message.find("--x: this machine has no user"), 0U);
        EXPECT_EQ(find_group(none, "--y").error().message.find("--y: this machine has no group"),
                  0U);
    }
}

}  // namespace
}  // namespace eddy
