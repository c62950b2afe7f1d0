// Peers that are killed, thousands of them: nothing of them stays in the survivor. EDDY_KILLS is
// how many each test kills.
#include <eddy/net/blocking.hpp>
#include <eddy/shm/connection.hpp>

#include "base/test_rounds.hpp"
#include "io/testing.hpp"
#include "shm/testing.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string_view>
#include <thread>
#include <vector>

namespace eddy::shm {
namespace {

using testing::error_of;
using testing::kill_and_reap;
using testing::mappings;
using testing::must;
using testing::open_descriptors;
using testing::temporary_folder;
using testing::write_and_wait;
using namespace std::chrono_literals;

constexpr std::string_view greeting = "written";

int kills() {
    const char* const wanted = std::getenv("EDDY_KILLS");
    return wanted ? std::atoi(wanted) : testing::rounds(100);
}

/// The end of a killed peer, behind what it had written.
void expect_end(connection& survivor, pid_t child) {
    std::vector<std::byte> buffer(greeting.size());
    must(survivor.read_exactly(buffer, 40s));
    EXPECT_EQ(as_text(buffer), greeting);
    kill_and_reap(child);
    EXPECT_EQ(error_of(survivor.read_some(buffer, 40s)), errno_code(ECONNRESET));
    EXPECT_EQ(error_of(survivor.write_all(as_bytes("x"))), errno_code(EPIPE));
}

/// The watching thread lets go of a connection a little later than its reader.
void expect_nothing_left(std::size_t descriptors) {
    const auto deadline = std::chrono::steady_clock::now() + 40s;
    while ((open_descriptors() > descriptors || mappings() > 0) &&
           std::chrono::steady_clock::now() < deadline)
        std::this_thread::sleep_for(1ms);
    EXPECT_LE(open_descriptors(), descriptors);
    EXPECT_EQ(mappings(), 0u);
}

[[noreturn]] void be_client(const endpoint& server) {
    auto made = blocking::connect(server);
    if (!made) ::_exit(1);
    write_and_wait(side::client, made->native_handle());
}

[[noreturn]] void be_server(blocking::listener& at) {
    auto made = at.accept();
    if (!made) ::_exit(1);
    write_and_wait(side::server, made->native_handle());
}

TEST(shm_kills, of_clients_leave_nothing_in_a_server) {
    const temporary_folder folder;
    acceptor accepting = must(acceptor::listen(folder.file("s")));
    const endpoint where = must(endpoint::unix_path(folder.file("s")));
    std::size_t before = 0;
    for (int i = 0; i < kills() && !::testing::Test::HasFailure(); ++i) {
        const pid_t child = ::fork();
        if (child == 0) be_client(where);
        connection survivor = must(accepting.accept(40s));
        expect_end(survivor, child);
        survivor = connection();
        if (i > 0) continue;
        expect_nothing_left(SIZE_MAX);
        before = open_descriptors();
    }
    expect_nothing_left(before);
}

TEST(shm_kills, of_servers_leave_nothing_in_a_client) {
    const temporary_folder folder;
    const endpoint where = must(endpoint::unix_path(folder.file("s")));
    blocking::listener accepting = must(blocking::listen(where));
    std::size_t before = 0;
    for (int i = 0; i < kills() && !::testing::Test::HasFailure(); ++i) {
        const pid_t child = ::fork();
        if (child == 0) be_server(accepting);
        connection survivor = must(connection::connect(folder.file("s")));
        expect_end(survivor, child);
        survivor = connection();
        if (i > 0) continue;
        expect_nothing_left(SIZE_MAX);
        before = open_descriptors();
    }
    expect_nothing_left(before);
}

class shm_kills_in_a_loop : public testing::on_io_backend {
protected:
    static task<void> expect_end_of(stream survivor, pid_t child) {
        std::vector<std::byte> buffer(greeting.size());
        must(co_await survivor.read_exactly(buffer));
        EXPECT_EQ(as_text(buffer), greeting);
        kill_and_reap(child);
        EXPECT_EQ(error_of(co_await survivor.read()), errno_code(ECONNRESET));
        EXPECT_EQ(error_of(co_await survivor.write_all("x")), errno_code(EPIPE));
    }
    static task<void> wait_for_nothing_left(std::size_t descriptors) {
        while (open_descriptors() > descriptors || mappings() > 0)
            must(co_await loop::current().sleep_for(1ms));
    }
    temporary_folder folder_;
};
INSTANTIATE_TEST_SUITE_P(shm, shm_kills_in_a_loop,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll),
                         testing::io_backend_name);

TEST_P(shm_kills_in_a_loop, of_clients_leave_nothing_in_a_server) {
    const endpoint where = must(endpoint::unix_path(folder_.file("s")));
    run_with_threads([&]() -> task<> {
        listener accepting = must(shm::listen(folder_.file("s")));
        std::size_t before = 0;
        for (int i = 0; i < kills() && !HasFailure(); ++i) {
            const pid_t child = ::fork();
            if (child == 0) be_client(where);
            co_await expect_end_of(must(co_await accepting.accept()), child);
            if (i > 0) continue;
            co_await wait_for_nothing_left(SIZE_MAX);
            before = open_descriptors();
        }
        co_await wait_for_nothing_left(before);
    });
}

TEST_P(shm_kills_in_a_loop, of_servers_leave_nothing_in_a_client) {
    const endpoint where = must(endpoint::unix_path(folder_.file("s")));
    blocking::listener accepting = must(blocking::listen(where));
    run_with_threads([&]() -> task<> {
        std::size_t before = 0;
        for (int i = 0; i < kills() && !HasFailure(); ++i) {
            const pid_t child = ::fork();
            if (child == 0) be_server(accepting);
            co_await expect_end_of(must(co_await shm::connect(folder_.file("s"))), child);
            if (i > 0) continue;
            co_await wait_for_nothing_left(SIZE_MAX);
            before = open_descriptors();
        }
        co_await wait_for_nothing_left(before);
    });
}

}  // namespace
}  // namespace eddy::shm
