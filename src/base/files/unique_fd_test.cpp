// Ownership of a descriptor: the object that closes it, and the time.
#include <eddy/base/unique_fd.hpp>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <utility>

namespace eddy {
namespace {

int open_one() { return ::open("/dev/null", O_RDONLY | O_CLOEXEC); }
bool is_open(int fd) { return ::fcntl(fd, F_GETFD) != -1; }

TEST(unique_fd, owns_nothing_at_first) {
    const unique_fd none;
    EXPECT_FALSE(none);
    EXPECT_EQ(none.get(), -1);
    EXPECT_TRUE(unique_fd(0).release() == 0) << "descriptor 0 is a descriptor";
}

TEST(unique_fd, closes_at_its_end) {
    const int raw = open_one();
    {
        const unique_fd fd(raw);
        EXPECT_TRUE(fd);
        EXPECT_EQ(fd.get(), raw);
        EXPECT_TRUE(is_open(raw));
    }
    EXPECT_FALSE(is_open(raw));
}

TEST(unique_fd, moves_its_descriptor) {
    const int raw = open_one();
    unique_fd first(raw);
    unique_fd second(std::move(first));
    EXPECT_EQ(second.get(), raw);
    const int other = open_one();
    unique_fd third(other);
    third = std::move(second);
    EXPECT_EQ(third.get(), raw);
    EXPECT_FALSE(is_open(other)) << "assigning closes what was held";
    unique_fd& self = third;
    third = std::move(self);
    EXPECT_TRUE(is_open(raw));
}

TEST(unique_fd, releases_and_resets) {
    unique_fd fd(open_one());
    const int raw = fd.release();
    EXPECT_FALSE(fd);
    EXPECT_TRUE(is_open(raw));
    fd.reset(raw);
    fd.reset();
    EXPECT_FALSE(is_open(raw));
    EXPECT_FALSE(fd);
    fd.reset();
}

}  // namespace
}  // namespace eddy
