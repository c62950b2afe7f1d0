// Children of fork(2): what a child does with its copies leaves the parent's connections and
// listeners as they are.
#include <eddy/shm/connection.hpp>

#include "io/testing.hpp"
#include "shm/testing.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace eddy::shm {
namespace {

using testing::error_of;
using testing::is_thread_sanitized;
using testing::must;
using namespace std::chrono_literals;

using both = std::pair<connection, connection>;

/// Runs `what` in a child, which starts no threads, and expects true.
void expect_in_child(const auto& what) {
    std::fflush(nullptr);
    const pid_t child = ::fork();
    if (child == 0) ::_exit(what() ? 0 : 1);
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

void expect_text(connection& from, std::string_view text) {
    std::vector<std::byte> buffer(text.size());
    must(from.read_exactly(buffer, 40s));
    EXPECT_EQ(as_text(buffer), text);
}

/// Over shared memory, and over the socket.
class shm_forks : public ::testing::TestWithParam<bool> {
protected:
    connection_options wanted() const {
        connection_options made;
        made.share_memory = GetParam();
        made.handshake_timeout = 40s;
        return made;
    }
    both connected() const { return must(connection::pair(wanted())); }
    std::string path() const { return folder_.file("s"); }

private:
    testing::temporary_folder folder_;
};
std::string carrier_name(const ::testing::TestParamInfo<bool>& of) {
    return of.param ? "memory" : "socket";
}
INSTANTIATE_TEST_SUITE_P(shm, shm_forks, ::testing::Bool(), carrier_name);

TEST_P(shm_forks, whose_child_destroys_its_copies_keep_the_connection) {
    both pair = connected();
    must(pair.first.write_all(as_bytes("before ")));
    expect_in_child([&] {
        const std::size_t before = testing::open_descriptors();
        pair.first = connection();
        pair.second = connection();
        return testing::open_descriptors() == before - 2 && testing::mappings() == 0;
    });
    must(pair.first.write_all(as_bytes("after")));
    expect_text(pair.second, "before after");
    std::vector<std::byte> buffer(1);
    EXPECT_EQ(must(pair.second.try_read(buffer)), 0u) << "no end";
    must(pair.second.write_all(as_bytes("back")));
    expect_text(pair.first, "back");
}

TEST_P(shm_forks, whose_child_closes_its_copies_keep_the_connection) {
    both pair = connected();
    for (const bool aborts : {false, true})
        expect_in_child([&] {
            for (connection* each : {&pair.first, &pair.second})
                aborts ? each->abort() : each->close();
            return !pair.first.is_open() && !pair.second.is_open();
        });
    must(pair.first.write_all(as_bytes("there")));
    expect_text(pair.second, "there");
}

TEST_P(shm_forks, keep_a_connection_on_which_a_thread_waits) {
    both pair = connected();
    std::thread reading([&] { expect_text(pair.second, "late"); });
    for (int round = 0; round < 20; ++round)
        expect_in_child([&] {
            pair.first = connection();
            pair.second = connection();
            return true;
        });
    must(pair.first.write_all(as_bytes("late")));
    reading.join();
}

TEST_P(shm_forks, have_no_connection_in_the_child) {
    both pair = connected();
    must(pair.second.write_all(as_bytes("for the parent")));
    expect_in_child([&] {
        connection& copy = pair.first;
        std::vector<std::byte> buffer(5);
        const std::error_code errors[] = {error_of(copy.try_read(buffer)),
                                          error_of(copy.read_some(buffer)),
                                          error_of(copy.peek()),
                                          error_of(copy.peek_some()),
                                          error_of(copy.try_write(buffer)),
                                          error_of(copy.write_all(buffer)),
                                          error_of(copy.room()),
                                          error_of(copy.flush()),
                                          error_of(copy.shutdown_write())};
        if (GetParam()) copy.consume(5);
        for (const std::error_code& each : errors)
            if (each != errc::closed) return false;
        return copy.available() == 0;
    });
    expect_text(pair.first, "for the parent");
    must(pair.first.write_all(as_bytes("answer")));
    expect_text(pair.second, "answer");
}

TEST_P(shm_forks, whose_child_ends_its_copy_of_an_acceptor_go_on_accepting) {
    for (const bool has_accepted : {false, true}) {
        acceptor accepting = must(acceptor::listen(path(), wanted()));
        if (has_accepted) EXPECT_EQ(error_of(accepting.accept(0s)), errc::timed_out);
        expect_in_child([&] {
            accepting.close();
            return error_of(accepting.accept(0s)) == errc::closed;
        });
        expect_in_child([&] {
            accepting = acceptor();
            return true;
        });
        connection client;
        std::thread connecting([&] { client = must(connection::connect(path(), wanted())); });
        connection server = must(accepting.accept(40s));
        connecting.join();
        must(client.write_all(as_bytes("hello")));
        expect_text(server, "hello");
    }
}

TEST_P(shm_forks, may_accept_in_a_child_what_the_parent_does_not) {
    if (is_thread_sanitized) GTEST_SKIP() << "a child of several threads may start none";
    acceptor accepting = must(acceptor::listen(path(), wanted()));
    for (int round = 0; round < 2; ++round) {
        std::fflush(nullptr);
        const pid_t child = ::fork();
        if (child == 0) {
            connection server = must(accepting.accept(40s));
            must(server.write_all(as_bytes("from the child")));
            accepting = acceptor();
            // Until the parent has read it, and closes.
            std::byte one;
            ::_exit(server.read_some(mutable_bytes(&one, 1)) ? 1 : 0);
        }
        connection client = must(connection::connect(path(), wanted()));
        expect_text(client, "from the child");
        client.close();
        int status = 0;
        EXPECT_EQ(::waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0);
    }
}

}  // namespace
}  // namespace eddy::shm
