// Tests of what the control client says of daemons that it cannot reach.
#include "cli/control_client.hpp"

#include <gtest/gtest.h>

#include <sstream>

namespace eddy::cli {
namespace {

TEST(control_client, listeners_are_found_among_the_kernels_sockets) {
    const auto listens = [](const char* path) {
        std::istringstream sockets(
            "Num       RefCount Protocol Flags    Type St Inode Path\n"
            "0000000000000000: 00000003 00000000 00000000 0001 03 11 /run/connected.sock\n"
            "0000000000000000: 00000002 00000000 00010000 0001 01 12 /run/eddy/eddy.sock\n"
            "0000000000000000: 00000002 00000000 00010000 0001 01 15 /run/eddy/.before.sock.eddy\n"
            "0000000000000000: 00000002 00000000 00010000 0005 01 13 @abstract\n"
            "0000000000000000: 00000002 00000000 00010000 0001 01 14\n");
        return has_listener(sockets, path);
    };
    EXPECT_TRUE(listens("/run/eddy/eddy.sock"));
    EXPECT_TRUE(listens("@abstract"));
    EXPECT_TRUE(listens("/run/eddy/before.sock")) << "under the name before the rename";
    EXPECT_FALSE(listens("eddy.sock"));
    EXPECT_FALSE(listens("/run/connected.sock"));
    EXPECT_FALSE(listens("/eddy/eddy.sock"));
    EXPECT_FALSE(listens("14"));
}

}  // namespace
}  // namespace eddy::cli
