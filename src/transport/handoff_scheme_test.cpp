// Scheme handoff://: parameters.
#include <eddy/transport/transport.hpp>

#include "handoff/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <string_view>

namespace eddy::transport {
namespace {

using eddy::testing::error_of;
using eddy::testing::must;
using ::testing::HasSubstr;
using unix_socket::socket_type;

class handoff_scheme : public handoff::testing::on_kernel_io_backend {
protected:
    std::string uri(std::string_view query = {}) const {
        return "handoff://" + path() + std::string(query);
    }
};
EDDY_HANDOFFS_ON_KERNEL_BACKENDS(handoff_scheme);

TEST_P(handoff_scheme, listens_as_its_parameters_say) {
    run([&]() -> task<void> {
        const auto mode = [this] {
            struct stat file{};
            EXPECT_EQ(::stat(path().c_str(), &file), 0);
            return file.st_mode & 0777;
        };
        {
            listener from = must(transport::listen(uri()));
            EXPECT_EQ(mode(), 0660U);
            const stream client = hand_over_client();
            must(co_await from.accept());
            EXPECT_THROW(sender(socket_type::stream), std::runtime_error);
        }
        {
            const std::string users = std::to_string(::geteuid());
            listener from =
                must(transport::listen(uri("?type=stream&mode=600&allow=4000000000," + users)));
            EXPECT_EQ(mode(), 0600U);
            const stream client = hand_over_client(socket_type::stream);
            must(co_await from.accept());
            EXPECT_THROW(sender(socket_type::seqpacket), std::runtime_error);
        }
        listen_options open_to_all;
        open_to_all.unix_mode = 0666;
        {
            const listener from = must(transport::listen(uri(), open_to_all));
            EXPECT_EQ(mode(), 0666U);
        }
        address bad = must(parse(uri()));
        bad.handoff.mode = "9";
        EXPECT_EQ(error_of(transport::listen(bad)), errc::bad_address);
        bad.handoff = {.allow = "root"};
        EXPECT_EQ(error_of(transport::listen(bad)), errc::bad_address);
        address abstract = must(parse("handoff://@eddy-handoff-scheme-test"));
        EXPECT_EQ(error_of(transport::listen(abstract, open_to_all)), errno_code(EINVAL));
        abstract.handoff.mode = "0600";
        EXPECT_EQ(error_of(transport::listen(abstract)), errc::bad_address);
    });
}

TEST_P(handoff_scheme, listens_and_does_not_connect) {
    run([&]() -> task<void> {
        const listener from = must(transport::listen(uri()));
        EXPECT_EQ(error_of(co_await transport::connect(uri())), errc::unsupported);
        EXPECT_THAT(explain(uri(), errc::unsupported), HasSubstr("an address to serve on"));
        EXPECT_EQ(error_of(transport::listen(uri())), std::errc::address_in_use);
    });
}

}  // namespace
}  // namespace eddy::transport
