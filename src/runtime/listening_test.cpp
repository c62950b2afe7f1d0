// Tests of addresses that cannot be had: a mistake of the user is no fault of the server.
#include "runtime/listening.hpp"

#include "runtime/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

namespace eddy::runtime {
namespace {

using namespace runtime::testing;
using ::testing::HasSubstr;

EDDY_ON_EVERY_KERNEL_IO_BACKEND(addresses);

problem refusal_of(const std::string& uri) {
    const auto where = transport::parse(uri);
    if (!where) return {0, "no address: " + uri};
    host without_daemon;
    if (where->kind == transport::scheme::udp) {
        const auto bound = bind_datagram_on(*where, without_daemon);
        return bound ? problem{0, "it was bound"} : bound.error();
    }
    const auto opened = listen_on(*where, without_daemon);
    return opened ? problem{0, "it was opened"} : opened.error();
}

std::string chosen_by(const std::string& uri) {
    const std::vector<option> table = {port_option(), bind_option(), unix_option(),
                                       listen_option("a URI to serve on")};
    const auto read = settings::parse(table, {{"listen", uri}});
    if (!read) return read.error().message;
    const auto where = choose_address(*read, transport::scheme::tcp);
    return where ? where->to_string() : where.error().message;
}

TEST(address_choice, a_uri_without_a_host_is_this_machines_alone) {
    EXPECT_EQ(chosen_by("tcp://:0"), "tcp://127.0.0.1:0");
    EXPECT_EQ(chosen_by("udp://:514"), "udp://127.0.0.1:514");
    EXPECT_EQ(chosen_by("tls://:6380?cert=/c"), "tls://127.0.0.1:6380?cert=/c");
    EXPECT_EQ(chosen_by("tcp://*:0"), "tcp://*:0");
    EXPECT_EQ(chosen_by("tcp://[::]:0"), "tcp://[::]:0");
    EXPECT_EQ(chosen_by("unix:///a:1"), "unix:///a:1");
}

TEST(address_choice, a_port_of_shared_memory_is_a_name_of_this_user) {
    const std::string user = std::to_string(::geteuid());
    EXPECT_EQ(chosen_by("shm://:4242"), "shm://@eddy-shm-" + user + "-4242");
    EXPECT_EQ(chosen_by("shm://:4242?allow=33"), "shm://@eddy-shm-" + user + "-4242?allow=33");
    EXPECT_THAT(chosen_by("shm://:0"), HasSubstr("needs a port from 1"));
    EXPECT_THAT(chosen_by("shm://:x"), HasSubstr("is no number"));
}

TEST_P(addresses, of_one_link_need_the_interface) {
    run([&]() -> task<void> {
        for (const std::string scheme : {"tcp", "udp"}) {
            for (const std::string host : {"fe80::1", "ff02::1"}) {
                const problem told = refusal_of(scheme + "://[" + host + "]:0");
                EXPECT_EQ(told.status, 400) << told.message;
                EXPECT_THAT(told.message, HasSubstr("such as " + host + "%eth0"));
            }
        }
        co_return;
    });
}

TEST_P(addresses, that_are_not_this_machines_are_mistakes_of_the_user) {
    run([&]() -> task<void> {
        for (const std::string uri :
             {"tcp://192.0.2.1:0", "udp://192.0.2.1:0", "tcp://[2001:db8::1]:0",
              "tcp://255.255.255.255:0", "tcp://224.0.0.1:0", "tcp://[ff0e::1]:0"}) {
            const problem told = refusal_of(uri);
            // A kernel may allow a group's address for TCP.
            if (told.status != 0) EXPECT_EQ(told.status, 400) << uri << ": " << told.message;
        }
        EXPECT_EQ(refusal_of("tcp://192.0.2.1:0").status, 400);
        co_return;
    });
}

TEST_P(addresses, with_a_wrong_path_are_mistakes_of_the_user) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        std::filesystem::create_symlink("loop", folder.file("loop"));
        EXPECT_EQ(refusal_of("unix://" + folder.file("loop") + "/s").status, 400);
        EXPECT_EQ(refusal_of("unix://" + folder.file("none") + "/s").status, 400);
        co_return;
    });
}

}  // namespace
}  // namespace eddy::runtime
