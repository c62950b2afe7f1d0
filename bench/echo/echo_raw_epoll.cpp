// An echo server without any library: one thread, level-triggered epoll, recv and send. The floor
// that a readiness-based library can be held against.
//
//     echo_raw_epoll --port N
#include "socket.hpp"

#include <sys/epoll.h>

#include <cerrno>
#include <vector>

namespace {

constexpr int events_a_turn = 256;
constexpr std::size_t receive_size = 16 * 1024;

struct connection {
    std::vector<char> unsent;  // while not empty, the socket is watched for writing only
    std::size_t sent = 0;
};

std::vector<connection> connections;  // by descriptor
int poller;

void watch(int how, int fd, std::uint32_t events) {
    epoll_event event{};
    event.events = events;
    event.data.fd = fd;
    if (epoll_ctl(poller, how, fd, &event) < 0) die("epoll_ctl");
}

void end(int fd) {
    connections[static_cast<std::size_t>(fd)] = {};
    close(fd);
}

void accept_all(int listener) {
    for (;;) {
        const int fd = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) return;
        if (connections.size() <= static_cast<std::size_t>(fd))
            connections.resize(static_cast<std::size_t>(fd) * 2);
        watch(EPOLL_CTL_ADD, fd, EPOLLIN);
    }
}

/// Number of bytes that the socket took; -1 when the connection has failed.
ssize_t send_now(int fd, const char* bytes, std::size_t size) {
    const ssize_t sent = send(fd, bytes, size, MSG_NOSIGNAL);
    if (sent >= 0) return sent;
    return errno == EAGAIN || errno == EINTR ? 0 : -1;
}

void echo(int fd) {
    static char bytes[receive_size];
    const ssize_t size = recv(fd, bytes, sizeof bytes, 0);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (size <= 0) return end(fd);
    const ssize_t sent = send_now(fd, bytes, static_cast<std::size_t>(size));
    if (sent < 0) return end(fd);
    if (sent < size) {
        connections[static_cast<std::size_t>(fd)].unsent.assign(bytes + sent, bytes + size);
        watch(EPOLL_CTL_MOD, fd, EPOLLOUT);
    }
}

void send_rest(int fd) {
    connection& peer = connections[static_cast<std::size_t>(fd)];
    const ssize_t sent =
        send_now(fd, peer.unsent.data() + peer.sent, peer.unsent.size() - peer.sent);
    if (sent < 0) return end(fd);
    peer.sent += static_cast<std::size_t>(sent);
    if (peer.sent == peer.unsent.size()) {
        peer = {};
        watch(EPOLL_CTL_MOD, fd, EPOLLIN);
    }
}

}  // namespace

int main(int argc, char** argv) {
    const long port = port_option(argc, argv);
    const int listener = listen_on(port, SOCK_NONBLOCK);
    poller = epoll_create1(EPOLL_CLOEXEC);
    if (poller < 0) die("epoll_create1");
    connections.resize(1024);
    watch(EPOLL_CTL_ADD, listener, EPOLLIN);
    say_ready(port);

    epoll_event events[events_a_turn];
    for (;;) {
        const int count = epoll_wait(poller, events, events_a_turn, -1);
        for (int i = 0; i < count; ++i) {
            const int fd = events[i].data.fd;
            if (fd == listener)
                accept_all(listener);
            else if (events[i].events & EPOLLOUT)
                send_rest(fd);
            else
                echo(fd);
        }
    }
}
