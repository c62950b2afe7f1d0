// TCP keepalive of a test's connections, as the kernel has it: both ends are of this process.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <ostream>
#include <string>

namespace eddy::runtime::testing {

/// SO_KEEPALIVE, TCP_KEEPIDLE, TCP_KEEPINTVL and TCP_KEEPCNT.
struct keepalive {
    int on = 0;
    int idle = 0;
    int interval = 0;
    int probes = 0;
    bool operator==(const keepalive&) const = default;
    friend std::ostream& operator<<(std::ostream& out, const keepalive& of) {
        return out << of.on << ' ' << of.idle << ' ' << of.interval << ' ' << of.probes;
    }
};

inline int option_of(int socket, int level, int name) {
    int value = 0;
    socklen_t size = sizeof value;
    EXPECT_EQ(::getsockopt(socket, level, name, &value, &size), 0);
    return value;
}

inline keepalive keepalive_of(int socket) {
    return {
        option_of(socket, SOL_SOCKET, SO_KEEPALIVE), option_of(socket, IPPROTO_TCP, TCP_KEEPIDLE),
        option_of(socket, IPPROTO_TCP, TCP_KEEPINTVL), option_of(socket, IPPROTO_TCP, TCP_KEEPCNT)};
}

inline std::uint16_t port_of(const sockaddr_storage& address) {
    if (address.ss_family != AF_INET) return 0;
    return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

/// Keepalive of the end whose own port is `near`; none where there is no such socket.
inline std::optional<keepalive> keepalive_between(std::uint16_t near, std::uint16_t far) {
    for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) {
        const int fd = std::stoi(each.path().filename());
        sockaddr_storage own{};
        sockaddr_storage peer{};
        socklen_t own_size = sizeof own;
        socklen_t peer_size = sizeof peer;
        if (::getsockname(fd, reinterpret_cast<sockaddr*>(&own), &own_size) != 0) continue;
        if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_size) != 0) continue;
        if (port_of(own) == near && port_of(peer) == far) return keepalive_of(fd);
    }
    return std::nullopt;
}

}  // namespace eddy::runtime::testing
