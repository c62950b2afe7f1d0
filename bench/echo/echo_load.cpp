// The load on an echo server: one thread that does little more than send and receive, checks every
// byte that comes back, and prints one JSON object.
//
//     echo_load --port N --mode each|any|lockstep|accept [--connections 50] [--payload 64]
//               [--milliseconds 3000] [--server-pid PID]
//
// each      every connection has one message under way and sends the next when it is back
// any       the same, but replies are taken as they come, by epoll: it costs the load more, and
//           shows servers that make some connections wait longer than others
// lockstep  all connections send, all replies are awaited, and so on
// accept    all connections are opened, exchange one message and are closed, and so on
//
// Built as tls_load, with EDDY_LOAD_TLS, it speaks TLS 1.3 and accepts any certificate; it offers
// `--ciphers LIST`.
#include <eddy/base/histogram.hpp>

#include "socket.hpp"
#include "window.hpp"

#if defined(EDDY_LOAD_TLS)
#include "tls_connection.hpp"
#else
#include "plain_connection.hpp"
#endif

#include <sys/epoll.h>

#include <cerrno>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr long most_connections = 10'000;
// A message must fit into the socket's buffers: it is sent before anything is read.
constexpr long most_payload = 64 * 1024;

/// One message that goes out and must come back.
struct exchange {
    int fd = -1;
    bench_connection connection = {};
    std::uint64_t sent_at = 0;
    std::vector<char> message;
};

class load {
public:
    load(long port, std::size_t connections, std::size_t payload, window measured)
        : address_(loopback(port)), exchanges_(connections), input_(payload), measured_(measured) {
        for (std::size_t i = 0; i < connections; ++i)
            exchanges_[i].message = make_message(i, payload);
    }

    void run(std::string_view mode) {
        if (mode != "accept")
            for (exchange& each : exchanges_) open(each);
        if (mode == "each")
            run_each();
        else if (mode == "any")
            run_any();
        else
            run_batches(mode == "accept");
    }

    int report(const std::string& mode) const {
        return measured_.report("\"test\": \"" + mode +
                                    "\", \"connections\": " + std::to_string(exchanges_.size()) +
                                    ", \"payload\": " + std::to_string(input_.size()),
                                latency_, latency_.count(), wrong_, wrong_);
    }

private:
    void open(exchange& each) {
        each.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (each.fd < 0) die("socket");
        const int on = 1;
        setsockopt(each.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        if (connect(each.fd, reinterpret_cast<const sockaddr*>(&address_), sizeof address_) < 0)
            die("connect");
        each.connection.open(each.fd);
    }

    /// A reset leaves no TIME_WAIT behind, of which the kernel would run out of ports.
    static void reset(exchange& each) {
        each.connection.close();
        const linger at_once{.l_onoff = 1, .l_linger = 0};
        setsockopt(each.fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
        close(each.fd);
    }

    void send_next(exchange& each, std::uint64_t now) {
        stamp(each.message.data(), each.message.size(), ++sequence_);
        each.sent_at = now;
        // The socket blocks and takes it whole: only one message is under way.
        const ssize_t sent = each.connection.send(each.message.data(), each.message.size());
        if (sent != static_cast<ssize_t>(each.message.size())) die("send");
    }

    /// Waits for the message to come back, and compares it.
    void receive(exchange& each) {
        const std::size_t size = each.message.size();
        for (std::size_t received = 0; received < size;) {
            const ssize_t count =
                each.connection.receive(input_.data() + received, size - received);
            if (count < 0 && errno == EINTR) continue;
            if (count < 0) die("recv");
            if (count == 0) {
                std::fputs("echo_load: the server closed a connection\n", stderr);
                std::exit(1);
            }
            received += static_cast<std::size_t>(count);
        }
        if (std::memcmp(input_.data(), each.message.data(), size) != 0) ++wrong_;
    }

    void record(const exchange& each, std::uint64_t now) {
        if (measured_.is_open()) latency_.record(now - each.sent_at);
    }

    /// Takes the connections in turn, as they were sent to. No call of epoll, whose cost would fall
    /// on both sides: this is the cheapest load there is, and a server that is busy has the reply
    /// of the first before that of the next.
    void run_each() {
        std::uint64_t now = now_ns();
        for (exchange& each : exchanges_) send_next(each, now);
        while (measured_.goes_on(now)) {
            for (exchange& each : exchanges_) {
                receive(each);
                now = now_ns();
                record(each, now);
                send_next(each, now);
            }
        }
    }

    void run_any() {
        constexpr int most_events = 64;
        const int poll = epoll_create1(EPOLL_CLOEXEC);
        if (poll < 0) die("epoll_create1");
        for (exchange& each : exchanges_) {
            epoll_event wanted{.events = EPOLLIN, .data = {.ptr = &each}};
            if (epoll_ctl(poll, EPOLL_CTL_ADD, each.fd, &wanted) < 0) die("epoll_ctl");
            send_next(each, now_ns());
        }
        std::uint64_t now = now_ns();
        while (measured_.goes_on(now)) {
            epoll_event ready[most_events];
            const int count = epoll_wait(poll, ready, most_events, -1);
            if (count < 0 && errno != EINTR) die("epoll_wait");
            for (int i = 0; i < count; ++i) {
                exchange& each = *static_cast<exchange*>(ready[i].data.ptr);
                receive(each);
                now = now_ns();
                record(each, now);
                send_next(each, now);
            }
        }
        close(poll);
    }

    void run_batches(bool open_and_close) {
        std::uint64_t now = now_ns();
        while (measured_.goes_on(now)) {
            if (open_and_close)
                for (exchange& each : exchanges_) {
                    const std::uint64_t opened_at = now_ns();
                    open(each);
                    send_next(each, opened_at);
                }
            else
                for (exchange& each : exchanges_) send_next(each, now);
            for (exchange& each : exchanges_) {
                receive(each);
                now = now_ns();
                record(each, now);
                if (open_and_close) reset(each);
            }
        }
    }

    sockaddr_in address_;
    std::vector<exchange> exchanges_;
    std::vector<char> input_;
    window measured_;
    std::uint64_t sequence_ = 0;
    std::uint64_t wrong_ = 0;
    eddy::histogram latency_;
};

}  // namespace

int main(int argc, char** argv) {
    const std::string mode = text_option(argc, argv, "--mode", "");
    if (mode != "each" && mode != "any" && mode != "lockstep" && mode != "accept") {
        std::fputs("echo_load: --mode takes each, any, lockstep or accept\n", stderr);
        return 1;
    }
    const long connections = number_option(argc, argv, "--connections", 50, 1, most_connections);
    const long payload = number_option(argc, argv, "--payload", 64, 1, most_payload);
    bench_connection::configure(argc, argv);
    window measured(argc, argv);
    load generator(port_option(argc, argv), static_cast<std::size_t>(connections),
                   static_cast<std::size_t>(payload), measured);
    generator.run(mode);
    return generator.report(mode);
}
