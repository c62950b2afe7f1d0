// Connections for threads: transfer, waits, ends, limits, and peers that die or stall.
#include <eddy/shm/connection.hpp>

#include <eddy/base/random.hpp>
#include <eddy/net/blocking.hpp>

#include "io/testing.hpp"
#include "shm/hello.hpp"
#include "shm/spinning.hpp"
#include "shm/testing.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
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

std::string text_of(result<std::size_t> size, const std::vector<std::byte>& buffer) {
    return std::string(as_text(const_bytes(buffer).first(must(size))));
}

class shm_connections : public ::testing::TestWithParam<waiting> {
protected:
    connection_options wanted() const {
        connection_options made;
        made.wait = GetParam();
        made.handshake_timeout = 40s;
        return made;
    }
    both connected() const { return must(connection::pair(wanted())); }
    std::string path() const { return folder_.file("s"); }

private:
    testing::temporary_folder folder_;
};
std::string name_of(const ::testing::TestParamInfo<waiting>& of) {
    if (of.param == waiting::adaptive) return "adaptive";
    return of.param == waiting::spin ? "spin" : "sleep";
}
INSTANTIATE_TEST_SUITE_P(shm, shm_connections,
                         ::testing::Values(waiting::adaptive, waiting::spin, waiting::sleep),
                         name_of);

void send_all(connection& to, std::uint64_t number, std::size_t total) {
    testing::pattern content(number);
    random_generator dice(number);
    while (content.position() < total) {
        const std::size_t size =
            std::min<std::size_t>(total - content.position(), 1 + dice.below(20'000));
        must(to.write_all(content.next(size)));
    }
}

void expect_all(connection& from, std::uint64_t number, std::size_t total) {
    testing::pattern content(number);
    std::vector<std::byte> buffer(9000);
    while (content.position() < total) {
        const std::size_t size = must(from.read_some(buffer));
        if (!content.continues_with(const_bytes(buffer).first(size))) {
            ADD_FAILURE() << "other bytes before " << content.position();
            return;
        }
    }
}

TEST_P(shm_connections, carry_bytes_both_ways_between_four_threads) {
    for (const std::uint64_t begin :
         {0ull, (1ull << 31) - 9000, (1ull << 32) - 9000, (1ull << 63) - 9000}) {
        connection_options small = wanted();
        small.ring_size = min_ring_size;
        small.first_position = begin;
        small.asymmetric_fence = begin == 0;
        both pair = must(connection::pair(small));
        constexpr std::size_t total = 500'000;
        std::thread writing([&] { send_all(pair.first, 1, total); });
        std::thread reading([&] { expect_all(pair.first, 2, total); });
        std::thread answering([&] { send_all(pair.second, 2, total); });
        expect_all(pair.second, 1, total);
        for (std::thread* each : {&writing, &reading, &answering}) each->join();
    }
}

TEST_P(shm_connections, end_after_what_was_written) {
    both pair = connected();
    must(pair.first.write_all(as_bytes("last words")));
    pair.first.close();
    std::vector<std::byte> buffer(100);
    EXPECT_EQ(pair.second.available(), 10u);
    EXPECT_EQ(text_of(pair.second.read_some(buffer), buffer), "last words");
    EXPECT_EQ(error_of(pair.second.read_some(buffer)), errc::end_of_stream);
    EXPECT_EQ(error_of(pair.second.read_some(buffer)), errc::end_of_stream) << "for ever";
    EXPECT_EQ(error_of(pair.first.write_all(as_bytes("x"))), errc::closed);
    EXPECT_EQ(error_of(pair.first.read_some(buffer)), errc::closed);
    const auto until_noticed = clock_now() + 40s;
    std::error_code refused;
    while (!refused && clock_now() < until_noticed)
        refused = error_of(pair.second.write_all(as_bytes("x")));
    EXPECT_EQ(refused, errno_code(EPIPE));
}

TEST_P(shm_connections, flush_what_was_appended_when_they_close) {
    both pair = connected();
    std::ranges::copy(as_bytes("appended"), must(pair.first.room()).begin());
    pair.first.append(8);
    pair.first.close();
    std::vector<std::byte> buffer(100);
    EXPECT_EQ(text_of(pair.second.read_some(buffer), buffer), "appended");
    EXPECT_EQ(error_of(pair.second.read_some(buffer)), errc::end_of_stream);
}

TEST_P(shm_connections, end_by_a_reset_after_an_abort) {
    both pair = connected();
    must(pair.first.write_all(as_bytes("part of it")));
    pair.first.abort();
    EXPECT_FALSE(pair.first.is_open());
    EXPECT_EQ(error_of(pair.first.write_all(as_bytes("x"))), errc::closed);
    std::vector<std::byte> buffer(100);
    EXPECT_EQ(text_of(pair.second.read_some(buffer, 40s), buffer), "part of it");
    EXPECT_EQ(error_of(pair.second.read_some(buffer, 40s)), errno_code(ECONNRESET));
}

TEST_P(shm_connections, close_in_one_thread_while_another_one_writes) {
    for (int round = 0; round < 50; ++round) {
        both pair = connected();
        std::error_code refused;
        std::thread writing([&] {
            while (!refused) refused = error_of(pair.first.write_all(as_bytes("some bytes")));
        });
        std::vector<std::byte> buffer(1000);
        must(pair.second.read_some(buffer, 40s));
        std::thread reading([&] {
            while (pair.second.read_some(buffer)) {
            }
        });
        pair.first.close();
        writing.join();
        reading.join();
        EXPECT_EQ(refused, errc::closed);
    }
}

TEST_P(shm_connections, end_one_way_alone) {
    both pair = connected();
    must(pair.first.shutdown_write());
    std::vector<std::byte> buffer(100);
    EXPECT_EQ(error_of(pair.second.read_some(buffer)), errc::end_of_stream);
    must(pair.second.write_all(as_bytes("still")));
    EXPECT_EQ(text_of(pair.first.read_some(buffer), buffer), "still");
    EXPECT_EQ(error_of(pair.first.write_all(as_bytes("x"))), errno_code(EPIPE));
}

TEST_P(shm_connections, wake_a_reader_and_a_writer_at_the_end) {
    for (const bool own : {true, false}) {
        both pair = connected();
        std::error_code read;
        std::error_code written;
        std::thread reading([&] {
            std::vector<std::byte> buffer(10);
            read = error_of(pair.first.read_some(buffer));
        });
        std::thread writing([&] {
            const std::vector<std::byte> many(1'000'000);
            written = error_of(pair.first.write_all(many));
        });
        std::this_thread::sleep_for(5ms);  // so that both wait, mostly
        (own ? pair.first : pair.second).close();
        reading.join();
        writing.join();
        EXPECT_EQ(read, own ? errc::closed : errc::end_of_stream);
        EXPECT_EQ(written, own ? make_error_code(errc::closed) : errno_code(EPIPE));
    }
}

TEST_P(shm_connections, wait_only_as_long_as_they_may) {
    both pair = connected();
    std::vector<std::byte> buffer(10);
    EXPECT_EQ(error_of(pair.first.read_some(buffer, 1ms)), errc::timed_out);
    EXPECT_EQ(error_of(pair.first.read_some(buffer, 0ms)), errc::timed_out);
    const std::vector<std::byte> many(1'000'000);
    EXPECT_EQ(error_of(pair.first.write_all(many, 1ms)), errc::timed_out);
    must(pair.second.write_all(as_bytes("abc")));
    EXPECT_EQ(error_of(pair.first.read_exactly(buffer, 1ms)), errc::timed_out);
}

TEST_P(shm_connections, wait_without_end_for_limits_beyond_the_clock) {
    both pair = connected();
    std::thread writing([&] {
        std::this_thread::sleep_for(20ms);
        must(pair.first.write_all(as_bytes("late"), duration::max() - 1s));
    });
    std::vector<std::byte> buffer(100);
    EXPECT_EQ(text_of(pair.second.read_some(buffer, duration::max() - 1s), buffer), "late");
    writing.join();
}

TEST_P(shm_connections, return_at_once_from_calls_that_do_not_wait) {
    both pair = connected();
    std::vector<std::byte> buffer(10);
    EXPECT_EQ(must(pair.first.try_read(buffer)), 0u);
    EXPECT_EQ(must(pair.first.read_some({})), 0u);
    EXPECT_TRUE(must(pair.first.peek()).empty());
    const std::vector<std::byte> many(1'000'000);
    EXPECT_EQ(must(pair.first.try_write(many)), wanted().ring_size);
    EXPECT_EQ(must(pair.first.try_write(many)), 0u);
    EXPECT_TRUE(must(pair.first.room()).empty());
}

TEST_P(shm_connections, send_packets_up_to_their_limit) {
    connection_options few = wanted();
    few.max_packets = 3;
    both pair = must(connection::pair(few));
    for (int i = 0; i < 3; ++i) EXPECT_EQ(must(pair.first.try_write(as_bytes("ab"))), 2u);
    EXPECT_EQ(must(pair.first.try_write(as_bytes("ab"))), 0u);
    EXPECT_TRUE(must(pair.first.room()).empty());
    std::vector<std::byte> buffer(3);
    EXPECT_EQ(must(pair.second.try_read(buffer)), 3u);
    EXPECT_EQ(must(pair.first.try_write(as_bytes("cd"))), 2u) << "one packet was read whole";
    EXPECT_EQ(must(pair.first.try_write(as_bytes("ef"))), 0u);
    std::thread reading([&] {
        std::vector<std::byte> all(9);
        must(pair.second.read_exactly(all));
    });
    for (int i = 0; i < 2; ++i) must(pair.first.write_all(as_bytes("gh")));
    reading.join();
}

TEST_P(shm_connections, have_what_was_appended_read_after_a_flush) {
    both pair = connected();
    for (const std::string_view part : {"one ", "packet"}) {
        const mutable_bytes room = must(pair.first.room());
        std::copy(part.begin(), part.end(), reinterpret_cast<char*>(room.data()));
        pair.first.append(part.size());
    }
    EXPECT_TRUE(must(pair.second.peek()).empty());
    must(pair.first.flush());
    EXPECT_EQ(as_text(must(pair.second.peek())), "one packet");
    pair.second.consume(4);
    EXPECT_EQ(as_text(must(pair.second.peek_some())), "packet");
}

TEST_P(shm_connections, are_accepted_beside_stalled_and_bad_peers) {
    connection_options patient = wanted();
    patient.handshake_timeout = 1h;
    acceptor accepting = must(acceptor::listen(path(), patient));
    const endpoint to = must(endpoint::unix_path(path()));
    std::vector<blocking::stream> stalled;
    for (int i = 0; i < 20; ++i) stalled.push_back(must(blocking::connect(to)));
    blocking::stream bad = must(blocking::connect(to));
    must(bad.write_all("GET / HTTP/1.1\r\nHost: example\r\n\r\n"));
    connection client;
    std::thread connecting([&] { client = must(connection::connect(path(), wanted())); });
    connection server = must(accepting.accept());
    connecting.join();
    must(client.write_all(as_bytes("hello")));
    std::vector<std::byte> buffer(5);
    must(server.read_exactly(buffer));
    EXPECT_EQ(as_text(buffer), "hello");
    EXPECT_EQ(error_of(accepting.accept(1ms)), errc::timed_out);
    EXPECT_EQ(accepting.failures(), 1u);
}

TEST_P(shm_connections, are_accepted_beside_more_stalled_clients_than_may_wait) {
    connection_options patient = wanted();
    patient.handshake_timeout = 1h;
    acceptor accepting = must(acceptor::listen(path(), patient));
    const endpoint to = must(endpoint::unix_path(path()));
    std::vector<blocking::stream> stalled;
    std::thread connecting([&] {
        for (std::size_t i = 0; i < 2 * max_waiting_connections; ++i)
            stalled.push_back(must(blocking::connect(to)));
        connection client = must(connection::connect(path(), wanted()));
        must(client.write_all(as_bytes("hello")));
    });
    connection server = must(accepting.accept(40s));
    std::vector<std::byte> buffer(5);
    must(server.read_exactly(buffer));
    connecting.join();
    EXPECT_EQ(accepting.failures(), max_waiting_connections + 1);
}

TEST_P(shm_connections, are_made_with_servers_of_users_that_may_serve) {
    const acceptor accepting = must(acceptor::listen(path(), wanted()));
    connection_options choosy = wanted();
    choosy.server_users = {::geteuid() + 1};
    EXPECT_EQ(error_of(connection::connect(path(), choosy)), errno_code(EACCES));
}

TEST_P(shm_connections, go_over_the_socket_where_a_side_shares_no_memory) {
    acceptor accepting = must(acceptor::listen(path(), wanted()));
    connection_options without = wanted();
    without.share_memory = false;
    connection client;
    std::thread connecting([&] { client = must(connection::connect(path(), without)); });
    connection server = must(accepting.accept());
    connecting.join();
    EXPECT_FALSE(client.shares_memory());
    std::thread writing([&] { send_all(client, 4, 500'000); });
    expect_all(server, 4, 500'000);
    writing.join();
    client.close();
    std::vector<std::byte> buffer(5);
    EXPECT_EQ(error_of(server.read_some(buffer)), errc::end_of_stream);
}

TEST_P(shm_connections, count_what_can_be_read_over_the_socket) {
    connection_options without = wanted();
    without.share_memory = false;
    both pair = must(connection::pair(without));
    EXPECT_EQ(pair.second.available(), 0u);
    must(pair.first.write_all(as_bytes("ten bytes.")));
    EXPECT_EQ(pair.second.available(), 10u);
    std::vector<std::byte> buffer(4);
    must(pair.second.read_exactly(buffer));
    EXPECT_EQ(pair.second.available(), 6u);
    pair.second.close();
    EXPECT_EQ(pair.second.available(), 0u);
}

/// A listener that accepts nothing, with its backlog full.
struct full_listener {
    explicit full_listener(const endpoint& at) {
        eddy::listen_options least;
        least.backlog = 0;
        listening = must(blocking::listen(at, least));
        listening.set_timeout(40s);
        for (;;) {
            auto made = blocking::connect(at, 0s);
            if (!made) break;
            waiting.push_back(std::move(*made));
        }
    }
    blocking::listener listening;
    std::vector<blocking::stream> waiting;
};

TEST_P(shm_connections, wait_for_room_in_a_full_backlog) {
    full_listener full(must(endpoint::unix_path(path())));
    connection_options brief = wanted();
    brief.handshake_timeout = 20ms;
    EXPECT_EQ(error_of(connection::connect(path(), brief)), errc::timed_out);
    connection client;
    std::thread connecting([&] {
        connection_options patient = wanted();
        patient.handshake_timeout = 40s;
        client = must(connection::connect(path(), patient));
    });
    std::this_thread::sleep_for(5ms);  // so that it waits, mostly
    blocking::stream accepted;
    for (std::size_t i = 0; i <= full.waiting.size(); ++i) accepted = must(full.listening.accept());
    exchange with(side::server, accepted.native_handle(), {});
    while (must(with.step()) != exchange::wait::none) std::this_thread::yield();
    connecting.join();
    EXPECT_TRUE(client.shares_memory());
}

TEST_P(shm_connections, are_made_while_the_server_does_other_things) {
    acceptor accepting = must(acceptor::listen(path(), wanted()));
    EXPECT_EQ(error_of(accepting.accept(0s)), errc::timed_out);
    connection first = must(connection::connect(path(), wanted()));
    connection second = must(connection::connect(path(), wanted()));
    must(first.write_all(as_bytes("1")));
    must(second.write_all(as_bytes("2")));
    for (const std::string_view expected : {"1", "2"}) {
        connection server = must(accepting.accept(40s));
        std::vector<std::byte> buffer(1);
        must(server.read_exactly(buffer));
        EXPECT_EQ(as_text(buffer), expected) << "in the order of connecting";
    }
    EXPECT_EQ(error_of(accepting.accept(0s)), errc::timed_out);
}

TEST_P(shm_connections, that_wait_for_accept_are_reset_when_listening_ends) {
    acceptor accepting = must(acceptor::listen(path(), wanted()));
    EXPECT_EQ(error_of(accepting.accept(0s)), errc::timed_out);
    connection client = must(connection::connect(path(), wanted()));
    accepting = acceptor();
    std::vector<std::byte> buffer(1);
    EXPECT_EQ(error_of(client.read_some(buffer, 40s)), errno_code(ECONNRESET));
    EXPECT_EQ(error_of(connection::connect(path(), wanted())), errno_code(ENOENT));
    EXPECT_TRUE(acceptor::listen(path(), wanted())) << "at once";
}

TEST_P(shm_connections, wait_for_accept_up_to_a_limit) {
    acceptor accepting = must(acceptor::listen(path(), wanted()));
    EXPECT_EQ(error_of(accepting.accept(0s)), errc::timed_out);
    connection_options small = wanted();
    small.ring_size = min_ring_size;
    std::vector<connection> clients;
    while (clients.size() < max_waiting_connections)
        clients.push_back(must(connection::connect(path(), small)));
    small.handshake_timeout = 20ms;
    EXPECT_EQ(error_of(connection::connect(path(), small)), errc::timed_out);
    small.handshake_timeout = 40s;
    must(accepting.accept(40s));
    clients.push_back(must(connection::connect(path(), small)));
    for (std::size_t i = 1; i < clients.size(); ++i) must(accepting.accept(40s));
}

TEST_P(shm_connections, notice_a_killed_peer_after_what_it_had_written) {
    if (is_thread_sanitized) GTEST_SKIP() << "a child of several threads may start none";
    acceptor accepting = must(acceptor::listen(path(), wanted()));
    const pid_t child = ::fork();
    if (child == 0) {
        auto client = connection::connect(path(), wanted());
        if (client && client->write_all(as_bytes("written"))) ::pause();
        ::_exit(1);
    }
    connection server = must(accepting.accept());
    std::vector<std::byte> buffer(7);
    must(server.read_exactly(buffer));
    std::thread killing([child] {
        std::this_thread::sleep_for(2ms);
        ::kill(child, SIGKILL);
    });
    EXPECT_EQ(error_of(server.read_some(buffer)), errno_code(ECONNRESET));
    EXPECT_EQ(error_of(server.write_all(as_bytes("x"))), errno_code(EPIPE));
    killing.join();
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
}

/// Ends as a program does, with its destructors: 0 if it notices the end of a peer.
[[noreturn]] void connect_in_a_child(const connection_options& wanted, const std::string& path) {
    auto ours = connection::connect(path, wanted);
    std::byte one;
    const bool noticed =
        ours && ours->read_some(mutable_bytes(&one, 1), 40s).error() == errno_code(ECONNRESET);
    ours = connection();
    // LeakSanitizer takes what only the parent's threads knew for leaks.
    if (sanitizer_needs_descriptors()) ::_exit(noticed ? 0 : 1);
    std::exit(noticed ? 0 : 1);
}

TEST_P(shm_connections, work_in_a_child_of_a_process_that_had_some) {
    if (is_thread_sanitized) GTEST_SKIP() << "a child of several threads may start none";
    const both before = connected();
    acceptor accepting = must(acceptor::listen(path(), wanted()));
    std::fflush(nullptr);
    const pid_t child = ::fork();
    if (child == 0) connect_in_a_child(wanted(), path());
    const connection server = must(accepting.accept());
    // As if this process had died: without an end.
    ::shutdown(server.native_handle(), SHUT_RDWR);
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

TEST_P(shm_connections, end_listening_that_has_not_accepted) {
    acceptor accepting = must(acceptor::listen(path(), wanted()));
    accepting.close();
    EXPECT_EQ(error_of(connection::connect(path(), wanted())), errno_code(ENOENT));
    EXPECT_EQ(error_of(accepting.accept(40s)), errc::closed);
    accepting = must(acceptor::listen(path(), wanted()));
    accepting = acceptor();
    EXPECT_EQ(error_of(connection::connect(path(), wanted())), errno_code(ENOENT));
}

TEST_P(shm_connections, end_accepting_from_another_thread) {
    acceptor accepting = must(acceptor::listen(path(), wanted()));
    std::thread closing([&] {
        std::this_thread::sleep_for(2ms);
        accepting.close();
    });
    EXPECT_EQ(error_of(accepting.accept()), errc::closed);
    closing.join();
}

TEST(shm_connection, without_a_peer_is_closed) {
    connection none;
    std::vector<std::byte> buffer(5);
    EXPECT_FALSE(none.is_open());
    EXPECT_EQ(error_of(none.try_read(buffer)), errc::closed);
    EXPECT_EQ(error_of(none.read_some(buffer)), errc::closed);
    EXPECT_EQ(error_of(none.write_all(buffer)), errc::closed);
    EXPECT_EQ(error_of(none.flush()), errc::closed);
    EXPECT_EQ(error_of(none.shutdown_write()), errc::closed);
    EXPECT_EQ(error_of(connection::connect("@eddy-no-such-listener")), errno_code(ECONNREFUSED));
    connection_options bad;
    bad.ring_size = 1000;
    EXPECT_EQ(error_of(connection::pair(bad)), errno_code(EINVAL));
    bad = {};
    bad.max_packets = most_packets + 1;
    EXPECT_EQ(error_of(connection::pair(bad)), errno_code(EINVAL));
    bad = {};
    bad.first_position = 1ull << 63;
    EXPECT_EQ(error_of(connection::pair(bad)), errno_code(EINVAL));
}

TEST(shm_spin_history, does_not_spin_on_the_processor_that_the_peer_waits_for) {
    // This thread may move between the two calls, but not each time.
    const spin_history history(waiting::adaptive);
    bool spins = true;
    for (int i = 0; i < 1000 && spins; ++i) spins = history.may_spin(this_processor());
    EXPECT_FALSE(spins);
}

TEST(shm_spin_history, spins_on_after_a_peer_was_kept_from_running) {
    if (spinning_takes_turns()) GTEST_SKIP() << "one processor, or a quota";
    spin_history history(waiting::adaptive);
    for (int i = 0; i < 100; ++i) history.note(1us);
    for (int i = 0; i < 3; ++i) {
        history.note(4ms);  // a time slice of another program
        EXPECT_GT(history.budget(), 0ns);
        for (int j = 0; j < 20; ++j) history.note(1us);
    }
}

TEST(shm_spin_history, spins_only_where_it_has_been_worth_it) {
    if (spinning_takes_turns()) GTEST_SKIP() << "one processor, or a quota";
    spin_history history(waiting::adaptive);
    EXPECT_GT(history.budget(), 0ns);
    EXPECT_LE(history.budget(), max_spin);
    for (int i = 0; i < 100; ++i) history.note(10ms);
    int spins = 0;
    for (int i = 0; i < 640; ++i) spins += history.budget() > 0ns ? 1 : 0;
    EXPECT_EQ(spins, 10);
    for (int i = 0; i < 100; ++i) history.note(1us);
    EXPECT_GT(history.budget(), 0ns);
    EXPECT_TRUE(history.may_spin(0));
    EXPECT_FALSE(spin_history(waiting::sleep).may_spin(0));
    EXPECT_EQ(spin_history(waiting::spin).budget(), duration::max());
}

}  // namespace
}  // namespace eddy::shm
