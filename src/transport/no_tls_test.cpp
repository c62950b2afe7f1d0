// Scheme tls:// in a build without TLS.
#include <eddy/transport/transport.hpp>

#include "io/testing.hpp"
#include "transport/digest.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace eddy::transport {
namespace {

using testing::error_of;
using ::testing::HasSubstr;

EDDY_ON_EVERY_IO_BACKEND(transport_without_tls);

TEST_P(transport_without_tls, says_so) {
    run([]() -> task<> {
        EXPECT_EQ(error_of(transport::listen("tls://127.0.0.1:0?cert=/x")), errc::unsupported);
        EXPECT_EQ(error_of(co_await transport::connect("tls://h:1")), errc::unsupported);
        EXPECT_THAT(explain("tls://h:1", errc::unsupported), HasSubstr("tls layer"));
        EXPECT_FALSE(md5("x").has_value());
    });
}

}  // namespace
}  // namespace eddy::transport
