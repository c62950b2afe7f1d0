// Folders that are only this user's, and others.
#include "base/files/private_folder.hpp"

#include "base/files/temporary_folder.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace eddy {
namespace {

TEST(private_folder, only_of_this_user_is_trusted) {
    const testing::temporary_folder folder;
    EXPECT_EQ(private_folder_fault(folder.path()), "");
    EXPECT_EQ(private_folder_fault(folder.file("absent")), "");
    EXPECT_TRUE(own_folder_in_tmp().ends_with("-" + std::to_string(::geteuid())));
}

TEST(private_folder, that_others_may_use_is_refused) {
    const testing::temporary_folder folder;
    for (const mode_t mode : {0701U, 0710U, 0702U, 0755U, 0777U}) {
        ASSERT_EQ(::chmod(folder.path().c_str(), mode), 0);
        EXPECT_NE(private_folder_fault(folder.path()), "") << mode;
    }
}

TEST(private_folder, that_is_a_link_or_a_file_is_refused) {
    const testing::temporary_folder folder;
    std::filesystem::create_directory(folder.file("own"));
    ASSERT_EQ(::chmod(folder.file("own").c_str(), 0700), 0);
    EXPECT_EQ(private_folder_fault(folder.file("own")), "");
    std::filesystem::create_symlink("own", folder.file("link"));
    EXPECT_EQ(private_folder_fault(folder.file("link")), "is a link or no folder");
    std::ofstream(folder.file("file")) << "x";
    EXPECT_EQ(private_folder_fault(folder.file("file")), "is a link or no folder");
}

TEST(private_folder, of_another_user_is_refused) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can make a folder of another user";
    const testing::temporary_folder folder;
    ASSERT_EQ(::chown(folder.path().c_str(), 65534, 65534), 0);
    EXPECT_EQ(private_folder_fault(folder.path()), "belongs to user id 65534");
}

}  // namespace
}  // namespace eddy
