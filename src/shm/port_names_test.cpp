// Ports as addresses: the names that follow from them, and the order in which they are tried.
#include "shm/port_names.hpp"

#include <eddy/shm/connection.hpp>

#include "io/testing.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <set>
#include <string>
#include <vector>

namespace eddy::shm {
namespace {

using testing::error_of;
using testing::must;
using namespace std::chrono_literals;

using texts = std::vector<std::string>;

TEST(shm_ports, have_a_name_for_each_user) {
    EXPECT_EQ(port_name(4242, 1000), "@eddy-shm-1000-4242");
    EXPECT_EQ(port_name(1, 0), "@eddy-shm-0-1");
    EXPECT_EQ(port_of("@eddy-shm-1000-4242"), 4242);
    for (const char* other : {"", "@eddy-shm-", "@eddy-shm-1000", "/run/eddy-shm-1000-4242", "@x"})
        EXPECT_EQ(port_of(other), 0) << other;
}

TEST(shm_ports, are_numbers_behind_a_colon) {
    EXPECT_EQ(must(port_in(":4242")), 4242);
    EXPECT_EQ(must(port_in(":65535")), 65535);
    EXPECT_EQ(must(port_in(":0")), 0);
    for (const char* other : {"/run/x", "@x", "x:1", ""})
        EXPECT_FALSE(must(port_in(other))) << other;
    for (const char* bad : {":", ":65536", ":x", ":1x", ": 1", ":-1", ":000001"})
        EXPECT_EQ(error_of(port_in(bad)), errc::bad_address) << bad;
}

TEST(shm_ports, are_those_of_the_users_whose_servers_are_accepted) {
    EXPECT_EQ(must(paths_of(":7", {33, 0, 33})), texts({"@eddy-shm-33-7", "@eddy-shm-0-7"}));
    const std::string own = port_name(7, ::geteuid());
    const texts both = must(paths_of(":7", {}));
    EXPECT_EQ(both.front(), own);
    EXPECT_EQ(both.back(), "@eddy-shm-0-7");
    EXPECT_EQ(both.size(), ::geteuid() == 0 ? 1u : 2u);
    EXPECT_EQ(must(paths_of("@x", {33})), texts({"@x"}));
    EXPECT_EQ(error_of(paths_of(":0", {})), errc::bad_address);
}

TEST(shm_ports, of_a_listener_that_takes_any_are_tried_until_one_is_free) {
    std::set<std::string> tried;
    const auto taken = [&](const std::string& at) -> result<int> {
        tried.insert(at);
        return fail_errno(EADDRINUSE);
    };
    EXPECT_EQ(error_of(open_at(":0", 12'345'678'901, taken)), errno_code(EADDRINUSE));
    EXPECT_EQ(tried.size(), EDDY_SHM_LAST_FREE_PORT - EDDY_SHM_FIRST_FREE_PORT + 1);
    EXPECT_TRUE(tried.contains(port_name(49152, ::geteuid())));
    EXPECT_TRUE(tried.contains(port_name(65535, ::geteuid())));
    const auto broken = [](const std::string&) -> result<int> { return fail_errno(EMFILE); };
    EXPECT_EQ(error_of(open_at(":0", 0, broken)), errno_code(EMFILE));
}

TEST(shm_ports, connect_threads) {
    acceptor accepting = must(acceptor::listen(":0"));
    const std::string path = ":" + std::to_string(accepting.port());
    EXPECT_NE(path, ":0");
    EXPECT_EQ(error_of(acceptor::listen(path)), errno_code(EADDRINUSE));
    EXPECT_EQ(error_of(accepting.accept(0s)), errc::timed_out);  // handshakes begin
    connection client = must(connection::connect(path));
    must(client.write_all(as_bytes("hello")));
    connection server = must(accepting.accept());
    std::vector<std::byte> buffer(5);
    must(server.read_exactly(buffer));
    EXPECT_EQ(as_text(buffer), "hello");
    connection_options others;
    others.server_users = {::geteuid() + 1};
    EXPECT_EQ(error_of(connection::connect(path, others)), errno_code(ECONNREFUSED));
    others.server_users.push_back(::geteuid());
    EXPECT_TRUE(connection::connect(path, others));
    accepting = acceptor();
    EXPECT_EQ(error_of(connection::connect(path)), errno_code(ECONNREFUSED));
    EXPECT_EQ(error_of(connection::connect(":")), errc::bad_address);
    EXPECT_EQ(acceptor().port(), 0);
}

}  // namespace
}  // namespace eddy::shm
