// The load for the UDP echo servers: sends, awaits the replies, compares each byte, and prints one
// line of JSON.
//
//     udp_load --port N [--clients N] [--row N] [--payload BYTES] [--milliseconds N]
//              [--server-pid PID]
//
// Each client is a socket with a row of datagrams under way; it sends the next row when the last
// one is back. A row goes out as segments of one buffer (UDP_SEGMENT) and what comes joined is
// received joined (UDP_GRO): the cheapest there is, so that the server is the limit. A server that
// does not ask for joined datagrams gets single ones. No two datagrams are equal. One that does not
// come back within a second counts as an error, and its client starts again with a new row.
#include <eddy/base/histogram.hpp>

#include "../echo/window.hpp"
#include "buffer.hpp"

#include <netinet/udp.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <vector>

namespace {

constexpr long most_clients = 1000;
constexpr long most_row = 64;  // UDP_MAX_SEGMENTS
constexpr long most_payload = 1400;
constexpr std::size_t most_bytes = 65507;
constexpr unsigned most_at_once = 64;
constexpr timeval patience{1, 0};

struct client {
    int fd = -1;
    std::uint64_t sent_at = 0;
    std::size_t back = 0;  // bytes of the row that have come back
    std::vector<char> row;
};

class load {
public:
    load(long port, std::size_t clients, std::size_t row, std::size_t payload, window measured)
        : payload_(payload), clients_(clients), measured_(measured) {
        const sockaddr_in address = loopback(port);
        for (std::size_t i = 0; i < clients; ++i) {
            clients_[i].row = make_message(i, row * payload);
            open(clients_[i], address);
        }
        for (unsigned i = 0; i < most_at_once; ++i) {
            vectors_[i] = {input_[i].data(), input_[i].size()};
            headers_[i].msg_hdr.msg_iov = &vectors_[i];
            headers_[i].msg_hdr.msg_iovlen = 1;
        }
    }

    void run() {
        std::uint64_t now = now_ns();
        for (client& each : clients_) send_next(each, now);
        while (measured_.goes_on(now)) {
            for (client& each : clients_) {
                receive(each);
                now = now_ns();
                if (measured_.is_open()) {
                    latency_.record(now - each.sent_at);
                    datagrams_ += each.row.size() / payload_;
                }
                send_next(each, now);
            }
        }
    }

    int report() const {
        return measured_.report(
            "\"test\": \"udp\", \"clients\": " + std::to_string(clients_.size()) +
                ", \"row\": " + std::to_string(clients_.front().row.size() / payload_) +
                ", \"payload\": " + std::to_string(payload_),
            latency_, datagrams_, wrong_, lost_);
    }

private:
    void open(client& each, const sockaddr_in& server) {
        each.fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (each.fd < 0) die("socket");
        const int on = 1;
        if (each.row.size() > payload_) {
            const int segment = static_cast<int>(payload_);
            if (setsockopt(each.fd, SOL_UDP, UDP_SEGMENT, &segment, sizeof segment) < 0 ||
                setsockopt(each.fd, SOL_UDP, UDP_GRO, &on, sizeof on) < 0)
                die("UDP_SEGMENT, UDP_GRO");
        }
        setsockopt(each.fd, SOL_SOCKET, SO_RCVBUF, &udp_receive_buffer, sizeof udp_receive_buffer);
        setsockopt(each.fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        if (connect(each.fd, reinterpret_cast<const sockaddr*>(&server), sizeof server) < 0)
            die("connect");
    }

    void send_next(client& each, std::uint64_t now) {
        for (std::size_t at = 0; at < each.row.size(); at += payload_)
            stamp(each.row.data() + at, payload_, ++sequence_);
        each.sent_at = now;
        each.back = 0;
        const ssize_t sent = send(each.fd, each.row.data(), each.row.size(), 0);
        if (sent != static_cast<ssize_t>(each.row.size())) die("send");
    }

    /// Waits until the row is back, and compares it. Loopback keeps the order.
    void receive(client& each) {
        while (each.back < each.row.size()) {
            const std::size_t left = (each.row.size() - each.back) / payload_;
            const int count =
                left == 1
                    ? receive_one(each)
                    : recvmmsg(each.fd, headers_.data(),
                               static_cast<unsigned>(std::min<std::size_t>(left, most_at_once)),
                               MSG_WAITFORONE, nullptr);
            if (count < 0 && errno == EINTR) continue;
            if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
                ++lost_;
                return;
            }
            if (count < 0) die("recv");
            for (int i = 0; i < count; ++i) {
                const auto index = static_cast<std::size_t>(i);
                compare(each, input_[index].data(), headers_[index].msg_len);
            }
        }
    }

    int receive_one(client& each) {
        const ssize_t size = recv(each.fd, input_[0].data(), input_[0].size(), 0);
        if (size < 0) return -1;
        headers_[0].msg_len = static_cast<unsigned>(size);
        return 1;
    }

    void compare(client& each, const char* bytes, std::size_t size) {
        if (size == 0 || size % payload_ != 0 || size > each.row.size() - each.back ||
            std::memcmp(bytes, each.row.data() + each.back, size) != 0)
            ++wrong_;
        each.back += std::min(size, each.row.size() - each.back);
    }

    std::size_t payload_;
    std::vector<client> clients_;
    std::vector<std::array<char, most_bytes + 1>> input_{most_at_once};
    std::array<iovec, most_at_once> vectors_{};
    std::array<mmsghdr, most_at_once> headers_{};
    window measured_;
    std::uint64_t sequence_ = 0;
    std::uint64_t datagrams_ = 0;
    std::uint64_t wrong_ = 0;
    std::uint64_t lost_ = 0;
    eddy::histogram latency_;
};

}  // namespace

int main(int argc, char** argv) {
    const long clients = number_option(argc, argv, "--clients", 8, 1, most_clients);
    const long row = number_option(argc, argv, "--row", 1, 1, most_row);
    const long payload = number_option(argc, argv, "--payload", 64, 1, most_payload);
    if (row * payload > static_cast<long>(most_bytes)) {
        std::fprintf(stderr, "udp_load: a row has at most %zu bytes\n", most_bytes);
        return 1;
    }
    window measured(argc, argv);
    load generator(port_option(argc, argv), static_cast<std::size_t>(clients),
                   static_cast<std::size_t>(row), static_cast<std::size_t>(payload), measured);
    generator.run();
    return generator.report();
}
