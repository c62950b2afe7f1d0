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

#include "../echo/clock.hpp"
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
constexpr std::uint64_t warm_up_ns = 300'000'000;
constexpr timeval patience{1, 0};

struct client {
    int fd = -1;
    std::uint64_t sent_at = 0;
    std::size_t back = 0;  // bytes of the row that have come back
    std::vector<char> row;
};

class load {
public:
    load(long port, std::size_t clients, std::size_t row, std::size_t payload, long server)
        : payload_(payload), clients_(clients), server_(server) {
        const sockaddr_in address = loopback(port);
        for (std::size_t i = 0; i < clients; ++i) {
            clients_[i].row.resize(row * payload);
            for (std::size_t at = 0; at < clients_[i].row.size(); ++at)
                clients_[i].row[at] = static_cast<char>('!' + (i * 31 + at * 7) % 90);
            open(clients_[i], address);
        }
        for (unsigned i = 0; i < most_at_once; ++i) {
            vectors_[i] = {input_[i].data(), input_[i].size()};
            headers_[i].msg_hdr.msg_iov = &vectors_[i];
            headers_[i].msg_hdr.msg_iovlen = 1;
        }
    }

    void run(std::uint64_t length_ns) {
        length_ns_ = length_ns;
        begin_at_ = now_ns() + warm_up_ns;
        std::uint64_t now = now_ns();
        for (client& each : clients_) send_next(each, now);
        while (goes_on(now)) {
            for (client& each : clients_) {
                receive(each);
                now = now_ns();
                if (begun_ns_ != 0) {
                    latency_.record(now - each.sent_at);
                    datagrams_ += each.row.size() / payload_;
                }
                send_next(each, now);
            }
        }
    }

    int report() const {
        const double seconds = static_cast<double>(ended_ns_ - begun_ns_) / 1e9;
        const double rate = static_cast<double>(datagrams_) / seconds;
        const double own = static_cast<double>(own_cpu_ns_) / 1e9 / seconds;
        const double server = static_cast<double>(server_cpu_ns_) / 1e9 / seconds;
        const bool limited = own > 0.95 && server > 0 && server < 0.95;
        const bool verified = wrong_ == 0 && datagrams_ > 0;
        std::printf(
            "{\"test\": \"udp\", \"clients\": %zu, \"row\": %zu, \"payload\": %zu, "
            "\"messages\": %llu, \"seconds\": %.4f, \"ops_per_second\": %.1f, "
            "\"p50_us\": %.2f, \"p99_us\": %.2f, \"generator_cpu\": %.4f, "
            "\"server_cpu\": %.4f, \"server_ns_per_op\": %.1f, \"void\": %s, "
            "\"verified\": %s, \"errors\": %llu}\n",
            clients_.size(), clients_.front().row.size() / payload_, payload_,
            static_cast<unsigned long long>(datagrams_), seconds, rate,
            static_cast<double>(latency_.percentile(50)) / 1e3,
            static_cast<double>(latency_.percentile(99)) / 1e3, own, server, server * 1e9 / rate,
            limited ? "true" : "false", verified ? "true" : "false",
            static_cast<unsigned long long>(lost_));
        return verified && lost_ == 0 ? 0 : 2;
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
        for (std::size_t at = 0; at < each.row.size(); at += payload_) {
            const std::uint64_t number = ++sequence_;
            std::memcpy(each.row.data() + at, &number, std::min(sizeof number, payload_));
        }
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

    /// Begins the measurement after the warm-up. False when the time is over.
    bool goes_on(std::uint64_t now) {
        if (begun_ns_ == 0) {
            if (now < begin_at_) return true;
            server_cpu_ns_ = process_cpu_ns(server_);
            own_cpu_ns_ = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
            begun_ns_ = now_ns();
            return true;
        }
        if (now - begun_ns_ < length_ns_) return true;
        ended_ns_ = now_ns();
        own_cpu_ns_ = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - own_cpu_ns_;
        server_cpu_ns_ = process_cpu_ns(server_) - server_cpu_ns_;
        return false;
    }

    std::size_t payload_;
    std::vector<client> clients_;
    std::vector<std::array<char, most_bytes + 1>> input_{most_at_once};
    std::array<iovec, most_at_once> vectors_{};
    std::array<mmsghdr, most_at_once> headers_{};
    long server_;
    std::uint64_t sequence_ = 0;
    std::uint64_t length_ns_ = 0;
    std::uint64_t begin_at_ = 0;
    std::uint64_t begun_ns_ = 0;
    std::uint64_t ended_ns_ = 0;
    std::uint64_t own_cpu_ns_ = 0;
    std::uint64_t server_cpu_ns_ = 0;
    std::uint64_t datagrams_ = 0;
    std::uint64_t wrong_ = 0;
    std::uint64_t lost_ = 0;
    eddy::histogram latency_;
};

}  // namespace

int main(int argc, char** argv) {
    const long clients = number_option(argc, argv, "--clients", 8);
    const long row = number_option(argc, argv, "--row", 1);
    const long payload = number_option(argc, argv, "--payload", 64);
    const long length_ms = number_option(argc, argv, "--milliseconds", 3000);
    if (clients < 1 || clients > most_clients || row < 1 || row > most_row || payload < 1 ||
        payload > most_payload || row * payload > static_cast<long>(most_bytes) || length_ms < 1) {
        std::fputs(
            "usage: udp_load --port N [--clients N] [--row 1..64] [--payload 1..1400]\n"
            "                [--milliseconds N] [--server-pid PID]\n",
            stderr);
        return 1;
    }
    load generator(number_option(argc, argv, "--port", 7000), static_cast<std::size_t>(clients),
                   static_cast<std::size_t>(row), static_cast<std::size_t>(payload),
                   number_option(argc, argv, "--server-pid", 0));
    generator.run(static_cast<std::uint64_t>(length_ms) * 1'000'000);
    return generator.report();
}
