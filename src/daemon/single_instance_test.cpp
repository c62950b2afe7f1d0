// Tests of the single instance: one daemon a folder and a socket.
#include "daemon/single_instance.hpp"

#include <eddy/io/endpoint.hpp>

#include "base/files/temporary_folder.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace eddy::daemon {
namespace {

class single_instance_test : public ::testing::Test {
protected:
    const eddy::testing::temporary_folder temporary_;
    const std::string folder_ = temporary_.path();
};

TEST_F(single_instance_test, a_second_lock_is_refused_with_the_pid) {
    const auto first = state_lock::take(folder_);
    ASSERT_TRUE(first);
    const auto second = state_lock::take(folder_);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().status, 409);
    EXPECT_NE(second.error().message.find(std::to_string(::getpid())), std::string::npos);
    EXPECT_NE(second.error().message.find("--state"), std::string::npos);
}

TEST_F(single_instance_test, the_lock_ends_with_its_holder) {
    {
        ASSERT_TRUE(state_lock::take(folder_));
    }
    EXPECT_TRUE(state_lock::take(folder_));
}

TEST_F(single_instance_test, knows_whether_the_last_daemon_ended_in_order) {
    EXPECT_FALSE(state_lock::take(folder_)->after_a_crash());
    auto after_crash = state_lock::take(folder_);
    ASSERT_TRUE(after_crash);
    EXPECT_TRUE(after_crash->after_a_crash());
    after_crash->release();
    {
        const auto dropped = std::move(after_crash);
    }
    EXPECT_FALSE(state_lock::take(folder_)->after_a_crash());
}

TEST_F(single_instance_test, a_missing_folder_is_refused_with_advice) {
    const auto taken = state_lock::take(folder_ + "/missing");
    ASSERT_FALSE(taken);
    EXPECT_NE(taken.error().message.find("--state"), std::string::npos);
}

TEST_F(single_instance_test, a_lock_that_is_a_link_leaves_its_target_alone) {
    const std::string precious = folder_ + "/precious";
    for (const bool is_hard : {false, true}) {
        std::ofstream(precious) << "precious";
        if (is_hard)
            std::filesystem::create_hard_link(precious, folder_ + "/lock");
        else
            std::filesystem::create_symlink(precious, folder_ + "/lock");
        const auto taken = state_lock::take(folder_);
        ASSERT_FALSE(taken);
        EXPECT_NE(taken.error().message.find("must be a regular file"), std::string::npos)
            << taken.error().message;
        EXPECT_EQ(std::filesystem::file_size(precious), 8U);
        std::filesystem::remove(folder_ + "/lock");
    }
    EXPECT_TRUE(state_lock::take(folder_));
}

TEST_F(single_instance_test, a_lock_that_is_no_regular_file_is_refused_at_once) {
    ASSERT_EQ(::mkfifo((folder_ + "/lock").c_str(), 0600), 0);
    EXPECT_FALSE(state_lock::take(folder_));
    std::filesystem::remove(folder_ + "/lock");
    std::filesystem::create_directory(folder_ + "/lock");
    EXPECT_FALSE(state_lock::take(folder_));
}

TEST_F(single_instance_test, another_users_lock_is_refused) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can make a file of another user";
    std::ofstream(folder_ + "/lock") << "precious";
    ASSERT_EQ(::chown((folder_ + "/lock").c_str(), 65534, 65534), 0);
    const auto taken = state_lock::take(folder_);
    ASSERT_FALSE(taken);
    EXPECT_NE(taken.error().message.find("belongs to user id 65534"), std::string::npos);
    EXPECT_EQ(std::filesystem::file_size(folder_ + "/lock"), 8U);
}

TEST_F(single_instance_test, a_socket_with_a_listener_is_not_free) {
    const std::string path = folder_ + "/s.sock";
    EXPECT_TRUE(check_socket_is_free(path));
    const auto address = endpoint::unix_path(path);
    unique_fd listening(::socket(AF_UNIX, SOCK_STREAM, 0));
    ASSERT_EQ(::bind(listening.get(), address->data(), address->size()), 0);
    ASSERT_EQ(::listen(listening.get(), 1), 0);
    const auto taken = check_socket_is_free(path);
    ASSERT_FALSE(taken);
    EXPECT_NE(taken.error().message.find(std::to_string(::getpid())), std::string::npos);
    listening.reset();
    // The file is still there, but no process listens.
    EXPECT_TRUE(check_socket_is_free(path));
}

TEST_F(single_instance_test, a_path_that_is_too_long_is_refused) {
    EXPECT_FALSE(check_socket_is_free("/" + std::string(200, 'x')));
}

}  // namespace
}  // namespace eddy::daemon
