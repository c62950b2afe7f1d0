// Descriptors passed over Unix sockets.
#include <eddy/net/descriptors.hpp>

#include "net/lingering_socket.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string>
#include <utility>

namespace eddy::unix_socket {
namespace {

struct ends {
    unique_fd sender;
    unique_fd receiver;
};

ends make_pair(int type) {
    int pair[2];
    EXPECT_EQ(::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, pair), 0);
    return {unique_fd(pair[0]), unique_fd(pair[1])};
}

/// Sends "x" with `count` copies of `descriptor`.
void send_many(int socket, int descriptor, std::size_t count) {
    std::array<int, 16> copies;
    copies.fill(descriptor);
    ASSERT_LE(count, copies.size());
    char byte = 'x';
    iovec bytes{&byte, 1};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(copies))] = {};
    msghdr header{};
    header.msg_iov = &bytes;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE(count * sizeof(int));
    cmsghdr* const rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(count * sizeof(int));
    std::memcpy(CMSG_DATA(rights), copies.data(), count * sizeof(int));
    ASSERT_EQ(::sendmsg(socket, &header, 0), 1);
}

std::size_t open_descriptors() {
    std::size_t count = 0;
    for (int fd = 0; fd < 1024; ++fd)
        if (::fcntl(fd, F_GETFD) >= 0) ++count;
    return count;
}

class passed_descriptors : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(net, passed_descriptors, ::testing::Values(SOCK_STREAM, SOCK_SEQPACKET),
                         [](const auto& type) {
                             return type.param == SOCK_STREAM ? "stream" : "seqpacket";
                         });

TEST_P(passed_descriptors, arrive_with_their_message) {
    const ends pair = make_pair(GetParam());
    const ends passed = make_pair(SOCK_STREAM);
    ASSERT_EQ(send_descriptor(pair.sender.get(), "hello", passed.sender.get()), 5U);
    std::array<std::byte, 64> room;
    auto received = receive_message(pair.receiver.get(), room);
    ASSERT_TRUE(received);
    EXPECT_EQ(received->size, 5U);
    EXPECT_EQ(std::memcmp(room.data(), "hello", 5), 0);
    ASSERT_TRUE(received->descriptor);
    EXPECT_EQ(received->surplus, 0U);
    EXPECT_NE(::fcntl(received->descriptor.get(), F_GETFD) & FD_CLOEXEC, 0);
    ASSERT_EQ(::write(received->descriptor.get(), "ok", 2), 2);
    char back[2];
    EXPECT_EQ(::read(passed.receiver.get(), back, 2), 2);
}

TEST_P(passed_descriptors, beyond_the_first_are_closed) {
    const ends pair = make_pair(GetParam());
    const std::size_t before = open_descriptors();
    send_many(pair.sender.get(), pair.sender.get(), 16);
    std::array<std::byte, 64> room;
    auto received = receive_message(pair.receiver.get(), room);
    ASSERT_TRUE(received);
    EXPECT_TRUE(received->descriptor);
    EXPECT_EQ(received->surplus, 15U);
    EXPECT_EQ(open_descriptors(), before + 1);
}

TEST_P(passed_descriptors, do_not_block_who_closes_them) {
    const ends pair = make_pair(GetParam());
    const unique_fd passed(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const linger wait{1, 1000};
    ASSERT_EQ(::setsockopt(passed.get(), SOL_SOCKET, SO_LINGER, &wait, sizeof(wait)), 0);
    ASSERT_EQ(send_descriptor(pair.sender.get(), "x", passed.get()), 1U);
    std::array<std::byte, 8> room;
    auto received = receive_message(pair.receiver.get(), room);
    ASSERT_TRUE(received && received->descriptor);
    linger found{1, 1};
    socklen_t size = sizeof(found);
    ASSERT_EQ(::getsockopt(received->descriptor.get(), SOL_SOCKET, SO_LINGER, &found, &size), 0);
    EXPECT_EQ(found.l_onoff, 0);
}

TEST(refused_descriptors, do_not_linger_where_they_are_queued) {
    const ends pair = make_pair(SOCK_STREAM);
    const testing::lingering_socket passed[2];
    for (const auto& each : passed)
        ASSERT_EQ(send_descriptor(pair.sender.get(), "ab", each.get()), 2U);
    const std::size_t before = open_descriptors();
    refuse_descriptors(pair.receiver.get());
    for (const auto& each : passed) {
        linger found{1, 1};
        socklen_t size = sizeof(found);
        ASSERT_EQ(::getsockopt(each.get(), SOL_SOCKET, SO_LINGER, &found, &size), 0);
        EXPECT_EQ(found.l_onoff, 0);
    }
    EXPECT_EQ(open_descriptors(), before);
    if (testing::can_refuse_descriptors()) {
        const auto sent = send_descriptor(pair.sender.get(), "c", pair.sender.get());
        EXPECT_EQ(sent.error(), errno_code(EPERM));
    }
    // No byte is lost.
    for (int i = 0; i < 2; ++i) {
        char bytes[8];
        ASSERT_EQ(::recv(pair.receiver.get(), bytes, sizeof(bytes), MSG_DONTWAIT), 2);
        EXPECT_EQ(std::string_view(bytes, 2), "ab");
    }
    EXPECT_LT(::recv(pair.receiver.get(), nullptr, 0, MSG_DONTWAIT | MSG_PEEK), 1);
}

TEST_P(passed_descriptors, are_not_needed_for_a_message) {
    const ends pair = make_pair(GetParam());
    ASSERT_EQ(::send(pair.sender.get(), "hello", 5, 0), 5);
    std::array<std::byte, 3> room;
    auto received = receive_message(pair.receiver.get(), room);
    ASSERT_TRUE(received);
    EXPECT_EQ(received->size, 3U);
    EXPECT_FALSE(received->descriptor);
    EXPECT_EQ(received->is_cut, GetParam() == SOCK_SEQPACKET) << "of a stream the rest follows";
}

TEST_P(passed_descriptors, nothing_yet_and_the_end_differ) {
    ends pair = make_pair(GetParam());
    std::array<std::byte, 8> room;
    EXPECT_EQ(receive_message(pair.receiver.get(), room).error(), errno_code(EAGAIN));
    pair.sender.reset();
    const auto end = receive_message(pair.receiver.get(), room);
    ASSERT_TRUE(end);
    EXPECT_EQ(end->size, 0U);
}

TEST_P(passed_descriptors, report_a_full_socket_and_a_peer_that_is_gone) {
    ends pair = make_pair(GetParam());
    const std::string block(16 * 1024, 'x');
    result<std::size_t> sent = 0;
    while (sent) sent = send_descriptor(pair.sender.get(), block, pair.sender.get());
    // A socket in flight to itself keeps its own buffer; either limit may come first.
    EXPECT_TRUE(sent.error() == errno_code(EAGAIN) || sent.error() == errno_code(ETOOMANYREFS))
        << sent.error().message();
    // Unreceived bytes change the first error for packets.
    pair.receiver.reset();
    sent = send_descriptor(pair.sender.get(), "x", pair.sender.get());
    EXPECT_TRUE(sent.error() == errno_code(EPIPE) || sent.error() == errno_code(ECONNRESET))
        << sent.error().message();
}

}  // namespace
}  // namespace eddy::unix_socket
