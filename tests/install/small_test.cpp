// The library without io_uring: loops that ask for it are refused; loops without a choice have
// epoll.
#include <eddy/io/loop.hpp>

#include <gtest/gtest.h>

namespace eddy {
namespace {

TEST(without_uring, is_refused_and_not_chosen) {
    loop_options options;
    options.kind = io_backend_kind::uring;
    const auto refused = loop::create(options);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error(), errc::unsupported);
    const auto made = loop::create();
    ASSERT_TRUE(made) << made.error().message();
    EXPECT_EQ((*made)->kind(), io_backend_kind::epoll);
}

}  // namespace
}  // namespace eddy
