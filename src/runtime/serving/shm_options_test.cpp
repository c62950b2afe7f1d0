// Tests of --shm: the address that it names, what it refuses, and a runtime that serves there.
#include "runtime/serving/shm_options.hpp"

#include <eddy/shm/shm.hpp>

#include "runtime/testing.hpp"
#include "shm/port_names.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

namespace eddy::runtime {
namespace {

using namespace runtime::testing;
using ::testing::HasSubstr;

std::string address_by(const json& options, std::string uri = "tcp://127.0.0.1:7") {
    const std::vector<option> table = shm_options();
    const settings chosen = must_do(settings::parse(table, options));
    auto read = read_shm(chosen, *transport::parse(uri));
    if (!read) return read.error().message;
    if (!*read) return "none";
    return shm_address(std::move(**read), 7).to_string();
}

TEST(shm_options, name_an_address_by_the_port_or_a_path) {
    EXPECT_EQ(address_by(json::object()), "none");
    const std::string port = "shm://" + shm::port_name(7, ::geteuid());
    EXPECT_EQ(address_by({{"shm", true}}), port);
    EXPECT_EQ(address_by({{"shm", true}}, "tls://127.0.0.1:7"), port);
    EXPECT_EQ(address_by({{"shm", true}, {"shm_path", "/run/x.sock"}}), "shm:///run/x.sock");
    EXPECT_EQ(address_by({{"shm", true}, {"shm_path", "@x"}}, "unix:///s"), "shm://@x");
}

TEST(shm_options, that_contradict_each_other_are_refused) {
    EXPECT_EQ(address_by({{"shm_path", "/x"}}), "--shm-path has no effect without --shm");
    EXPECT_THAT(address_by({{"shm", true}}, "unix:///s"), HasSubstr("add --shm-path PATH"));
    EXPECT_THAT(address_by({{"shm", true}}, "udp://127.0.0.1:7"), HasSubstr("no effect with UDP"));
    EXPECT_THAT(address_by({{"shm", true}, {"shm_path", "x"}}), HasSubstr("write the whole path"));
}

}  // namespace
}  // namespace eddy::runtime
