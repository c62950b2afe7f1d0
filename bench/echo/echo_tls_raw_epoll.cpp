// A TLS echo server of OpenSSL and epoll alone: one thread, and OpenSSL reads and writes the
// sockets itself. What is left of a server's time when it has no library but the one that encrypts.
//
//     echo_tls_raw_epoll --port N
#include "socket.hpp"
#include "test_certificate.hpp"

#include <openssl/ssl.h>
#include <sys/epoll.h>

#include <unordered_map>

namespace {

constexpr int events_a_turn = 256;
constexpr int receive_size = 16 * 1024;

struct connection {
    SSL* ssl = nullptr;
    int size = 0;  // of a message that was not sent yet; OpenSSL has the same bytes offered again
    char bytes[receive_size];
};

std::unordered_map<int, connection> connections;  // by descriptor
int poller;

void watch(int how, int fd, std::uint32_t events) {
    epoll_event event{};
    event.events = events;
    event.data.fd = fd;
    if (epoll_ctl(poller, how, fd, &event) < 0) die("epoll_ctl");
}

void accept_all(int listener, SSL_CTX* with) {
    for (;;) {
        const int fd = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) return;
        connection& peer = connections[fd];
        peer.ssl = SSL_new(with);
        if (!peer.ssl || SSL_set_fd(peer.ssl, fd) != 1) die("SSL_new");
        SSL_set_accept_state(peer.ssl);
        watch(EPOLL_CTL_ADD, fd, EPOLLIN);
    }
}

void end(int fd) {
    SSL_free(connections[fd].ssl);
    connections.erase(fd);
    close(fd);
}

/// Reads, which makes the handshake first, and writes until one of them has to wait.
void serve(int fd) {
    connection& peer = connections[fd];
    const bool had_waited = peer.size > 0;
    for (;;) {
        if (peer.size == 0) {
            const int got = SSL_read(peer.ssl, peer.bytes, receive_size);
            if (got <= 0) {
                if (SSL_get_error(peer.ssl, got) != SSL_ERROR_WANT_READ) return end(fd);
                break;
            }
            peer.size = got;
        }
        const int sent = SSL_write(peer.ssl, peer.bytes, peer.size);
        if (sent <= 0) {
            if (SSL_get_error(peer.ssl, sent) != SSL_ERROR_WANT_WRITE) return end(fd);
            if (!had_waited) watch(EPOLL_CTL_MOD, fd, EPOLLOUT);
            return;
        }
        peer.size = 0;
        // Another read would only find that nothing is there.
        if (SSL_has_pending(peer.ssl) == 0) break;
    }
    if (had_waited) watch(EPOLL_CTL_MOD, fd, EPOLLIN);
}

}  // namespace

int main(int argc, char** argv) {
    const long port = port_option(argc, argv);
    SSL_CTX* const with = SSL_CTX_new(TLS_server_method());
    use_bench_certificate(with);
    SSL_CTX_set_min_proto_version(with, TLS1_3_VERSION);
    SSL_CTX_set_mode(with, SSL_MODE_RELEASE_BUFFERS);
    // One recv(2) a record in place of two.
    SSL_CTX_set_read_ahead(with, 1);
    const int listener = listen_on(port, SOCK_NONBLOCK);
    poller = epoll_create1(EPOLL_CLOEXEC);
    if (poller < 0) die("epoll_create1");
    watch(EPOLL_CTL_ADD, listener, EPOLLIN);
    say_ready(port);

    epoll_event events[events_a_turn];
    for (;;) {
        const int count = epoll_wait(poller, events, events_a_turn, -1);
        for (int i = 0; i < count; ++i) {
            const int fd = events[i].data.fd;
            if (fd == listener)
                accept_all(listener, with);
            else
                serve(fd);
        }
    }
}
