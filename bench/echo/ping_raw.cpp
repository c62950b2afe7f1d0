// One message to and fro without any library: both ends ask recv(2) again and again, so that
// neither sleeps. What is left is the kernel's. The client prints one JSON object.
//
//     ping_raw --serve yes --port N
//     ping_raw --port N [--milliseconds 3000] [--server-pid PID]
#include <eddy/base/histogram.hpp>

#include "window.hpp"

#include <array>
#include <cerrno>

namespace {

using message = std::array<char, 64>;

/// False at the end of the connection.
bool receive(int fd, message& into) {
    for (std::size_t have = 0; have < into.size();) {
        const ssize_t size = recv(fd, into.data() + have, into.size() - have, MSG_DONTWAIT);
        if (size > 0)
            have += static_cast<std::size_t>(size);
        else if (size == 0 || (errno != EAGAIN && errno != EINTR))
            return false;
    }
    return true;
}

/// It fits into the socket's buffer, which is empty.
bool send_all(int fd, const message& bytes) {
    return send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

[[noreturn]] void serve(long port) {
    const int listener = listen_on(port, 0);
    say_ready(port);
    for (;;) {
        const int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
        if (fd < 0) die("accept");
        message bytes;
        while (receive(fd, bytes) && send_all(fd, bytes)) {
        }
        close(fd);
    }
}

int ping(long port, window measured) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in address = loopback(port);
    if (fd < 0 || connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) < 0)
        die("connect");
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    message sent{};
    message reply{};
    eddy::histogram latency;
    std::uint64_t wrong = 0;
    std::uint64_t number = 0;
    for (auto begun = now_ns(); measured.goes_on(begun);) {
        stamp(sent.data(), sent.size(), ++number);
        if (!send_all(fd, sent) || !receive(fd, reply)) die("ping_raw");
        const std::uint64_t now = now_ns();
        if (measured.is_open()) latency.record(now - begun);
        if (reply != sent) ++wrong;
        begun = now;
    }
    return measured.report("\"test\": \"ping\"", latency, latency.count(), wrong, wrong);
}

}  // namespace

int main(int argc, char** argv) {
    const long port = port_option(argc, argv);
    if (text_option(argc, argv, "--serve", nullptr)) serve(port);
    return ping(port, window(argc, argv));
}
