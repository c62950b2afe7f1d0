// Fixture of the tests of handoffs: senders, and clients that are handed over.
#pragma once

#include <eddy/io/endpoint.hpp>
#include <eddy/net/descriptors.hpp>

#include "io/testing.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cerrno>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace eddy::handoff::testing {

using namespace eddy::testing;

/// Both ends of a connection.
struct client_ends {
    unique_fd theirs;  ///< the client's
    unique_fd ours;    ///< that is handed over
};

inline client_ends socket_pair() {
    int pair[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        throw std::runtime_error("socketpair");
    return {unique_fd(pair[0]), unique_fd(pair[1])};
}

/// Waits until `met()`; the fixture's patience bounds it.
inline task<void> until(const auto& met) {
    while (!met()) must(co_await loop::current().sleep_for(std::chrono::milliseconds(1)));
}

/// Fixture with a socket's path in a folder of its own.
class on_kernel_io_backend : public on_io_backend {
protected:
    std::string path() const { return folder_.file("s"); }

    /// A connection to the receiver, which does not block.
    unique_fd sender(unix_socket::socket_type type = unix_socket::socket_type::seqpacket) const {
        const int kind = type == unix_socket::socket_type::stream ? SOCK_STREAM : SOCK_SEQPACKET;
        unique_fd made(::socket(AF_UNIX, kind | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        const endpoint to = must(endpoint::unix_path(path()));
        if (::connect(made.get(), to.data(), to.size()) < 0)
            throw std::runtime_error("connect: " + errno_code(errno).message());
        return made;
    }
    /// Sends a message with a descriptor; without one given, with that of the standard input.
    static void send(const unique_fd& from, std::string_view message, int descriptor = 0) {
        must(unix_socket::send_descriptor(from.get(), message, descriptor));
    }
    /// A new client: hands one end over and reads from the other.
    stream hand_over_client(
        unix_socket::socket_type type = unix_socket::socket_type::seqpacket) const {
        client_ends ends = socket_pair();
        send(sender(type), std::string_view("\0", 1), ends.ours.get());
        return must(loop::current().adopt(std::move(ends.theirs)));
    }

    temporary_folder folder_;
};

}  // namespace eddy::handoff::testing

#define EDDY_HANDOFFS_ON_KERNEL_BACKENDS(suite)                                            \
    INSTANTIATE_TEST_SUITE_P(                                                              \
        handoff, suite,                                                                    \
        ::testing::Values(::eddy::io_backend_kind::uring, ::eddy::io_backend_kind::epoll), \
        ::eddy::testing::io_backend_name)
