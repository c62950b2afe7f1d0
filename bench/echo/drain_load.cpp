// The load on send_eddy: reads what comes, as fast as it comes, and prints one JSON object. An
// operation is a message; its time is that from the end of the one before on its connection.
//
//     drain_load --port N --payload BYTES [--connections 1] [--milliseconds 3000]
//                [--server-pid PID]
#include <eddy/base/histogram.hpp>

#include "socket.hpp"
#include "window.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace {

/// One connection, and how far its present message has come.
struct incoming {
    std::size_t received = 0;
    std::uint64_t begun_at = 0;
};

int connect_to(const sockaddr_in& address) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) die("socket");
    if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) < 0)
        die("connect");
    return fd;
}

}  // namespace

int main(int argc, char** argv) {
    const auto payload = static_cast<std::size_t>(
        number_option(argc, argv, "--payload", 65536, 1, 64 * 1024 * 1024));
    const auto connections =
        static_cast<std::size_t>(number_option(argc, argv, "--connections", 1, 1, 1000));
    window measured(argc, argv);
    const sockaddr_in address = loopback(port_option(argc, argv));
    std::vector<pollfd> sockets;
    std::vector<incoming> messages(connections);
    for (std::size_t i = 0; i < connections; ++i)
        sockets.push_back({.fd = connect_to(address), .events = POLLIN, .revents = 0});

    std::vector<char> buffer(1024 * 1024);
    eddy::histogram latency;
    std::uint64_t wrong = 0;
    while (measured.goes_on(now_ns())) {
        if (::poll(sockets.data(), sockets.size(), 1000) < 0) die("poll");
        for (std::size_t i = 0; i < connections; ++i) {
            if (sockets[i].revents == 0) continue;
            const ssize_t size = ::recv(sockets[i].fd, buffer.data(), buffer.size(), MSG_DONTWAIT);
            if (size <= 0) die("recv");
            if (buffer[0] != 'x' || buffer[static_cast<std::size_t>(size) - 1] != 'x') ++wrong;
            incoming& one = messages[i];
            one.received += static_cast<std::size_t>(size);
            for (; one.received >= payload; one.received -= payload) {
                const std::uint64_t now = now_ns();
                if (measured.is_open() && one.begun_at != 0) latency.record(now - one.begun_at);
                one.begun_at = now;
            }
        }
    }
    return measured.report("\"test\": \"drain\", \"connections\": " + std::to_string(connections) +
                               ", \"payload\": " + std::to_string(payload),
                           latency, latency.count(), wrong, wrong);
}
