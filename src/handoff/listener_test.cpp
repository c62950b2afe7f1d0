// Listeners of handed-over sockets: what accept() yields, what it passes over, and the end.
#include "handoff/listener.hpp"

#include <eddy/handoff/sender.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/timeout.hpp>

#include "base/files/descriptors.hpp"
#include "handoff/testing.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace eddy::handoff {
namespace {

using namespace handoff::testing;
using unix_socket::socket_type;
using namespace std::chrono_literals;

class handoff_listeners : public on_kernel_io_backend {
protected:
    /// Listens, and counts failures by their reason.
    listener listen(const receiver_options& options = {}) {
        listener made = must(handoff::listen(path(), options));
        EXPECT_TRUE(observe_failures(
            made, [this](std::string_view reason) { ++failures_[std::string(reason)]; }));
        return made;
    }

    std::map<std::string, int> failures_;
};
EDDY_HANDOFFS_ON_KERNEL_BACKENDS(handoff_listeners);

task<result<stream>> accept_one(listener& from) { co_return co_await from.accept(); }

/// Sends a line each way.
task<void> expect_connected(stream& one, stream& other) {
    must(co_await one.write_all("hello"));
    EXPECT_EQ(must(co_await other.read()).text(), "hello");
    must(co_await other.write_all("hi"));
    EXPECT_EQ(must(co_await one.read()).text(), "hi");
}

TEST_P(handoff_listeners, yield_the_clients_that_are_handed_over) {
    run([&]() -> task<void> {
        for (const socket_type type : {socket_type::seqpacket, socket_type::stream}) {
            receiver_options options;
            options.type = type;
            listener from = listen(options);
            EXPECT_EQ(from.local().to_string(), must(endpoint::unix_path(path())).to_string());
            EXPECT_GE(from.native_handle(), 0);
            for (int i = 0; i < 3; ++i) {
                stream client = hand_over_client(type);
                stream accepted = must(co_await from.accept());
                co_await expect_connected(client, accepted);
            }
        }
        EXPECT_TRUE(failures_.empty());
        EXPECT_NE(::access(path().c_str(), F_OK), 0) << "the file goes with the listener";
    });
}

TEST_P(handoff_listeners, yield_tcp_clients_with_their_address_and_no_delay) {
    run([&]() -> task<void> {
        listener from = listen();
        auto [client, server] = co_await connect();
        const endpoint address = client.local();
        must(co_await hand_over(path(), R"({"user_id": 7})", server.native_handle()));
        server.close();
        stream accepted = must(co_await from.accept());
        EXPECT_EQ(accepted.peer().to_string(), address.to_string());
        int no_delay = 0;
        socklen_t size = sizeof(no_delay);
        ::getsockopt(accepted.native_handle(), IPPROTO_TCP, TCP_NODELAY, &no_delay, &size);
        EXPECT_EQ(no_delay, 1);
        co_await expect_connected(client, accepted);
        // Another loop may take it over.
        stream again = must(here().adopt(must(accepted.detach())));
        co_await expect_connected(client, again);
    });
}

TEST_P(handoff_listeners, pass_over_handoffs_without_a_client) {
    run([&]() -> task<void> {
        listener from = listen();
        {
            const unique_fd nothing = sender();
            EXPECT_EQ(::send(nothing.get(), "x", 1, 0), 1);
        }
        sender().reset();
        int ends[2];
        EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
        const unique_fd reader(ends[0]);
        const unique_fd writer(ends[1]);
        send(sender(), "{}", ends[0]);
        const listener other = must(here().listen(loopback()));
        send(sender(), "{}", other.native_handle());
        const unique_fd datagrams(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
        send(sender(), "{}", datagrams.get());
        const unique_fd unconnected(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        send(sender(), "{}", unconnected.get());

        stream client = hand_over_client();
        stream accepted = must(co_await from.accept());
        co_await expect_connected(client, accepted);
        const std::map<std::string, int> expected = {
            {"no_descriptor", 1},    {"incomplete_message", 1},  {"not_a_socket", 1},
            {"listening_socket", 1}, {"not_a_stream_socket", 1}, {"not_connected", 1}};
        EXPECT_EQ(failures_, expected);
    });
}

TEST_P(handoff_listeners, admit_the_users_on_their_list_alone) {
    run([&]() -> task<void> {
        receiver_options options;
        options.allowed_users = {::geteuid() + 1};
        {
            listener from = listen(options);
            const stream client = hand_over_client();
            EXPECT_EQ(testing::error_of(co_await with_timeout(20ms, from.accept())),
                      errc::timed_out);
            EXPECT_EQ(failures_["peer_not_allowed"], 1);
        }
        options.allowed_users.push_back(::geteuid());
        listener from = listen(options);
        const stream client = hand_over_client();
        must(co_await from.accept());
    });
}

TEST_P(handoff_listeners, give_up_silent_senders_and_go_on) {
    run([&]() -> task<void> {
        receiver_options options;
        options.message_time = 10ms;
        listener from = listen(options);
        const unique_fd silent = sender();
        EXPECT_EQ(testing::error_of(co_await with_timeout(1ms, from.accept())), errc::timed_out);
        co_await until([&] { return failures_["incomplete_message"] == 1; });
        const stream client = hand_over_client();
        must(co_await from.accept());
    });
}

TEST_P(handoff_listeners, bound_the_senders_that_are_silent) {
    run([&]() -> task<void> {
        listener from = listen();
        std::vector<unique_fd> silent;
        for (std::size_t i = 0; i <= receiver::max_pending; ++i) silent.push_back(sender());
        const stream client = hand_over_client();
        must(co_await from.accept());
        EXPECT_EQ(failures_["too_many_senders"], 1);
    });
}

TEST_P(handoff_listeners, take_clients_whose_message_is_too_large) {
    run([&]() -> task<void> {
        for (const socket_type type : {socket_type::seqpacket, socket_type::stream}) {
            receiver_options options;
            options.type = type;
            options.max_message = 10;
            listener from = listen(options);
            const client_ends ends = socket_pair();
            send(sender(type), std::string(1000, 'x'), ends.ours.get());
            must(co_await from.accept());
        }
        EXPECT_TRUE(failures_.empty());
    });
}

TEST_P(handoff_listeners, let_senders_wait_while_clients_wait_for_accept) {
    run([&]() -> task<void> {
        listener from = listen();
        const stream first = hand_over_client();
        must(co_await from.accept());
        std::vector<stream> clients;
        for (std::size_t i = 0; i < 3 * max_ready_clients; ++i) {
            clients.push_back(hand_over_client());
            co_await here().yield();
        }
        // Ready clients are open files of this process; the others are in the kernel's queue only.
        const auto open_files = [] {
            struct stat folder{};
            return ::stat("/proc/self/fd", &folder) == 0 ? static_cast<std::size_t>(folder.st_size)
                                                         : 0;
        };
        const std::size_t before = open_files();
        if (before > 0) EXPECT_LT(before, clients.size() + max_ready_clients + 64);
        for (stream& each : clients) {
            stream accepted = must(co_await from.accept());
            co_await expect_connected(each, accepted);
        }
        EXPECT_TRUE(failures_.empty());
    });
}

TEST_P(handoff_listeners, let_senders_wait_while_few_descriptors_are_free) {
    run([&]() -> task<void> {
        rlimit before{};
        EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
        const rlimit few{512, before.rlim_max};
        EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
        {
            listener from = listen();
            const stream client = hand_over_client();
            std::vector<unique_fd> others;
            while (others.empty() || others.back().get() < 512 - 512 / 4)
                others.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
            EXPECT_EQ(testing::error_of(co_await with_timeout(20ms, from.accept())),
                      errc::timed_out);
            others.clear();
            must(co_await from.accept());
            EXPECT_TRUE(failures_.empty());
        }
        EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    });
}

TEST_P(handoff_listeners, end_a_wait_that_is_cancelled_or_closed) {
    run([&]() -> task<void> {
        listener from = listen();
        EXPECT_EQ(co_await testing::cancelled_during(accept_one(from)), errc::cancelled);
        const stream client = hand_over_client();
        must(co_await from.accept());

        std::error_code closed;
        co_await join_scope([&](scope& children) -> task<void> {
            children.spawn([](listener& of, std::error_code& error) -> task<void> {
                error = testing::error_of(co_await of.accept());
            }(from, closed));
            co_await here().yield();
            from.close();
        });
        EXPECT_EQ(closed, errc::cancelled);
        EXPECT_EQ(testing::error_of(co_await from.accept()), errc::closed);
        EXPECT_THROW(sender(), std::runtime_error);
    });
}

TEST_P(handoff_listeners, close_the_clients_that_were_not_accepted) {
    run([&]() -> task<void> {
        listener from = listen();
        stream first = hand_over_client();
        stream second = hand_over_client();
        must(co_await from.accept());
        from.close();
        EXPECT_EQ(testing::error_of(co_await first.read()), errc::end_of_stream);
        EXPECT_EQ(testing::error_of(co_await second.read()), errc::end_of_stream);
    });
}

TEST_P(handoff_listeners, outlive_a_run_of_their_loop) {
    listener from;
    run([&]() -> task<void> {
        from = listen();
        const stream client = hand_over_client();
        must(co_await from.accept());
    });
    // Between the runs nothing is lost.
    stream client = hand_over_client();
    run([&]() -> task<void> { must(co_await from.accept()); });
    const unique_fd silent = sender();
    from.close();
    client.close();
    end_loop();
}

TEST_P(handoff_listeners, may_be_closed_before_their_first_accept) {
    run([&]() -> task<void> {
        for (int i = 0; i < 3; ++i) {
            listener from = listen();
            const unique_fd silent = sender();
            from.close();
            EXPECT_THROW(sender(), std::runtime_error);
        }
        EXPECT_EQ(testing::error_of(handoff::listen("", {})), errc::bad_address);
        listener from = listen();
        EXPECT_EQ(testing::error_of(handoff::listen(path(), {})), std::errc::address_in_use);
        EXPECT_TRUE(from);
        co_return;
    });
}

TEST_P(handoff_listeners, are_no_others) {
    run([&]() -> task<void> {
        listener plain = must(here().listen(loopback()));
        EXPECT_FALSE(observe_failures(plain, nullptr));
        co_return;
    });
}

}  // namespace
}  // namespace eddy::handoff
