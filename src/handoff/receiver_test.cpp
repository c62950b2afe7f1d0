// Receivers of handoffs: what senders may do, and what counts as a failure.
#include "handoff/receiver.hpp"

#include "handoff/testing.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::handoff {
namespace {

using testing::must;
using testing::until;
using unix_socket::socket_type;
using namespace std::chrono_literals;

/// Sink that records arrivals.
struct notes : receiver::sink {
    void arrive(arrival what) override {
        messages.emplace_back(what.message);
        were_too_large.push_back(what.is_too_large);
        clients.push_back(std::move(what.client));
    }
    void fail_handoff(fault why) noexcept override { ++faults[why]; }
    void end_group() noexcept override { ++groups; }

    std::vector<std::string> messages;
    std::vector<bool> were_too_large;
    std::vector<unique_fd> clients;
    std::map<fault, int> faults;
    int groups = 0;
};

class handoff_receivers : public testing::on_kernel_io_backend {};

EDDY_HANDOFFS_ON_KERNEL_BACKENDS(handoff_receivers);

TEST_P(handoff_receivers, take_messages_of_senders_that_have_closed) {
    run([this]() -> task<void> {
        notes all;
        receiver from(all);
        must(from.open(path(), {}));
        for (int i = 0; i < 500; ++i) send(sender(), "message " + std::to_string(i));
        co_await until([&] { return all.messages.size() == 500; });
        EXPECT_EQ(all.messages[499], "message 499");
        EXPECT_TRUE(all.faults.empty());
        EXPECT_LT(all.groups, 500) << "many of them at once";
        co_await from.close();
    });
}

TEST_P(handoff_receivers, share_a_socket_that_listens_already) {
    run([this]() -> task<void> {
        const receiver_options options;
        const handoff_socket listening = must(listen_for_handoffs(path(), options));
        const auto copy = [&] {
            const int fd = ::fcntl(listening.socket.socket.get(), F_DUPFD_CLOEXEC, 0);
            return handoff_socket{{unique_fd(fd), {}, {}}, listening.local};
        };
        notes of_first;
        notes of_second;
        receiver first(of_first);
        receiver second(of_second);
        must(first.open(copy(), options));
        must(second.open(copy(), options));
        EXPECT_EQ(first.local(), listening.local);
        for (int i = 0; i < 50; ++i) send(sender(), "x");
        co_await until([&] { return of_first.messages.size() + of_second.messages.size() == 50; });
        co_await first.close();
        EXPECT_EQ(::access(path().c_str(), F_OK), 0) << "the file belongs to the other one";
        const std::size_t before = of_second.messages.size();
        send(sender(), "x");
        co_await until([&] { return of_second.messages.size() == before + 1; });
        co_await second.close();
        remove_socket_file(listening.local, listening.socket.file);
        EXPECT_NE(::access(path().c_str(), F_OK), 0);
    });
}

TEST_P(handoff_receivers, take_what_waits_in_the_queue_before_they_close) {
    run([this]() -> task<void> {
        const receiver_options options;
        for (const bool is_shared : {false, true}) {
            notes all;
            receiver from(all);
            if (is_shared)
                must(from.open(must(listen_for_handoffs(path(), options)), options));
            else
                must(from.open(path(), options));
            // No turn of the loop passes before the close.
            for (int i = 0; i < 300; ++i) send(sender(), "message " + std::to_string(i));
            co_await from.close();
            EXPECT_EQ(all.messages.size(), 300U);
            EXPECT_TRUE(all.faults.empty());
            EXPECT_NE(::access(path().c_str(), F_OK), 0);
            EXPECT_THROW(sender(), std::runtime_error) << "further ones are refused";
        }
    });
}

TEST_P(handoff_receivers, leave_handoffs_to_others_but_not_for_long) {
    run([this]() -> task<void> {
        struct modest_notes : notes {
            bool prefers_others() const noexcept override { return true; }
        };
        const receiver_options options;
        const handoff_socket listening = must(listen_for_handoffs(path(), options));
        const auto copy = [&] {
            const int fd = ::fcntl(listening.socket.socket.get(), F_DUPFD_CLOEXEC, 0);
            return handoff_socket{{unique_fd(fd), {}, {}}, listening.local};
        };
        modest_notes of_modest;
        notes of_other;
        receiver modest(of_modest);
        must(modest.open(copy(), options));
        send(sender(), "alone");
        co_await until([&] { return of_modest.messages.size() == 1; });
        receiver other(of_other);
        must(other.open(copy(), options));
        for (int i = 0; i < 50; ++i) send(sender(), "x");
        co_await until([&] { return of_modest.messages.size() + of_other.messages.size() == 51; });
        EXPECT_GT(of_other.messages.size(), of_modest.messages.size());
        co_await modest.close();
        co_await other.close();
        remove_socket_file(listening.local, listening.socket.file);
    });
}

TEST_P(handoff_receivers, wait_for_senders_that_take_their_time) {
    run([this]() -> task<void> {
        notes all;
        receiver from(all);
        must(from.open(path(), {}));
        const unique_fd slow = sender();
        send(sender(), "fast");
        co_await until([&] { return all.messages.size() == 1; });
        send(slow, "slow");
        co_await until([&] { return all.messages.size() == 2; });
        EXPECT_EQ(all.messages[1], "slow");
        co_await from.close();
    });
}

TEST_P(handoff_receivers, give_up_senders_that_never_send) {
    run([this]() -> task<void> {
        notes all;
        receiver from(all);
        receiver_options options;
        options.message_time = 10ms;
        must(from.open(path(), options));
        const unique_fd silent = sender();
        co_await until([&] { return all.faults[fault::incomplete_message] == 1; });
        EXPECT_TRUE(all.messages.empty());
        co_await from.close();
    });
}

TEST_P(handoff_receivers, bound_the_senders_that_they_wait_for) {
    run([this]() -> task<void> {
        notes all;
        receiver from(all);
        must(from.open(path(), {}));
        std::vector<unique_fd> silent;
        for (std::size_t i = 0; i < receiver::max_pending; ++i) {
            silent.push_back(sender());
            if (i % 100 == 0) co_await loop::current().yield();
        }
        send(sender(), "whole");  // needs no wait
        co_await until([&] { return all.messages.size() == 1; });
        EXPECT_TRUE(all.faults.empty());
        const unique_fd one_more = sender();
        co_await until([&] { return all.faults[fault::too_many_senders] == 1; });
        send(silent[0], "late");
        co_await until([&] { return all.messages.size() == 2; });
        const unique_fd again = sender();
        send(again, "again");
        co_await until([&] { return all.messages.size() == 3; });
        co_await from.close();
    });
}

TEST_P(handoff_receivers, let_senders_wait_while_there_is_no_room) {
    run([this]() -> task<void> {
        rlimit before{};
        EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
        const rlimit few{512, before.rlim_max};
        EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
        notes all;
        receiver from(all);
        must(from.open(path(), {}));
        std::vector<unique_fd> others;
        while (others.empty() || others.back().get() < 512 - 512 / 4)
            others.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
        send(sender(), "waits");
        must(co_await loop::current().sleep_for(3 * receiver::crowded_pause));
        EXPECT_TRUE(all.messages.empty());
        // The last one, within the reserve, stays: the holes below count all the same.
        others.erase(others.begin(), others.end() - 1);
        co_await until([&] { return all.messages.size() == 1; });
        EXPECT_TRUE(all.faults.empty());
        co_await from.close();
        EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    });
}

TEST_P(handoff_receivers, lose_no_descriptor_of_a_small_table) {
    run([this]() -> task<void> {
        rlimit before{};
        EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
        const rlimit few{128, before.rlim_max};
        EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
        notes all;
        receiver from(all);
        receiver_options options;
        options.message_time = std::chrono::minutes(1);
        must(from.open(path(), options));
        for (int i = 0; i < 126; ++i) send(sender(), "x");
        std::size_t arrived = 0;
        co_await until([&] {
            if (all.messages.size() == arrived) all.clients.clear();
            arrived = all.messages.size();
            return arrived == 126;
        });
        all.clients.clear();
        // Senders that were accepted while there was room.
        std::vector<unique_fd> slow;
        for (int i = 0; i < 20; ++i) slow.push_back(sender());
        send(slow.back(), "y");
        co_await until([&] { return all.messages.size() == 127; });
        std::vector<unique_fd> others;
        do others.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
        while (others.back());
        for (int i = 0; i < 19; ++i) send(slow[static_cast<std::size_t>(i)], "z");
        must(co_await loop::current().sleep_for(3 * receiver::crowded_pause));
        EXPECT_EQ(all.messages.size(), 127U);
        others.clear();
        co_await until([&] { return all.messages.size() == 146; });
        EXPECT_TRUE(all.faults.empty());
        co_await from.close();
        EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    });
}

TEST_P(handoff_receivers, bound_a_message) {
    run([this]() -> task<void> {
        for (const socket_type type : {socket_type::seqpacket, socket_type::stream}) {
            notes all;
            receiver from(all);
            receiver_options options;
            options.type = type;
            options.max_message = 10;
            must(from.open(path(), options));
            send(sender(type), "{\"a\":1234}");
            co_await until([&] { return all.messages.size() == 1; });
            send(sender(type), "{\"a\":12345}");
            co_await until([&] { return all.messages.size() == 2; });
            EXPECT_EQ(all.were_too_large, (std::vector{false, true}));
            EXPECT_EQ(all.messages[1], "{\"a\":12345");
            co_await from.close();
        }
    });
}

TEST_P(handoff_receivers, take_a_message_in_parts) {
    run([this]() -> task<void> {
        notes all;
        receiver from(all);
        receiver_options options;
        options.type = socket_type::stream;
        must(from.open(path(), options));
        const std::string message = R"({"a":"}","b":[1,2]})";
        const unique_fd slow = sender(socket_type::stream);
        send(slow, message.substr(0, 1));
        for (std::size_t i = 1; i < message.size(); ++i) {
            co_await loop::current().yield();
            EXPECT_EQ(::send(slow.get(), &message[i], 1, 0), 1);
        }
        co_await until([&] { return all.messages.size() == 1; });
        EXPECT_EQ(all.messages[0], message);
        // A message of another form: it ends with its sender.
        send(sender(socket_type::stream), "no object");
        co_await until([&] { return all.messages.size() == 2; });
        EXPECT_EQ(all.messages[1], "no object");
        co_await from.close();
    });
}

TEST_P(handoff_receivers, end_while_senders_are_in_the_middle) {
    run([this]() -> task<void> {
        notes all;
        {
            receiver from(all);
            must(from.open(path(), {}));
            const unique_fd silent = sender();
            send(sender(), "x");
            co_await until([&] { return all.messages.size() == 1; });
            co_await from.close();
        }
        EXPECT_THROW(sender(), std::runtime_error);
        receiver again(all);
        must(again.open(path(), {}));
        send(sender(), "y");
        co_await until([&] { return all.messages.size() == 2; });
        co_await again.close();
    });
}

}  // namespace
}  // namespace eddy::handoff
