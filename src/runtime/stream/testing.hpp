// Fixture of the tests of stream runtimes: a handoff socket, and clients that are handed over.
#pragma once

#include <eddy/net/descriptors.hpp>

#include "runtime/testing.hpp"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <string>
#include <string_view>
#include <utility>

namespace eddy::runtime::stream::testing {

using namespace runtime::testing;

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

/// Connects to a handoff socket of this type, without waiting.
inline unique_fd connect_sender(const endpoint& to, int type) {
    unique_fd sender(::socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!sender || ::connect(sender.get(), to.data(), to.size()) < 0)
        throw std::runtime_error("connect to the handoff socket: " + errno_code(errno).message());
    return sender;
}

/// Hands a socket over as a web server does: one message, then the sender closes.
inline void hand_over(const endpoint& to, unique_fd client, std::string_view message,
                      int type = SOCK_SEQPACKET) {
    const unique_fd sender = connect_sender(to, type);
    const auto sent = unix_socket::send_descriptor(sender.get(), message, client.get());
    if (!sent || *sent != message.size()) throw std::runtime_error("the handoff was not sent");
}

/// A new client of the runtime: hands one end over and reads from the other.
inline talker make_client(subject& of, std::string_view message, int type = SOCK_SEQPACKET) {
    client_ends ends = socket_pair();
    hand_over(of->local(), std::move(ends.ours), message, type);
    return talker(must(loop::current().adopt(std::move(ends.theirs))));
}

/// Count of a metric by reason; 0 if there is none.
inline double count_of(subject& of, std::string_view name, std::string_view reason) {
    for (const metric_sample& each : of->count().samples)
        if (each.of->name == name && each.labels.size() == 1 && each.labels[0] == reason)
            return std::get<double>(each.value);
    return 0;
}

}  // namespace eddy::runtime::stream::testing
