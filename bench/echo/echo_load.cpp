// The load on an echo server: one thread that does little more than send and receive, checks every
// byte that comes back, and prints one JSON object.
//
//     echo_load --port N --mode each|lockstep|accept [--connections 50] [--payload 64]
//               [--milliseconds 3000] [--server-pid PID]
//
// each      every connection has one message under way and sends the next when it is back
// lockstep  all connections send, all replies are awaited, and so on
// accept    all connections are opened, exchange one message and are closed, and so on
//
// Built as tls_load, with EDDY_LOAD_TLS, it speaks TLS 1.3 and believes any server.
#include <eddy/base/histogram.hpp>

#include "clock.hpp"
#include "socket.hpp"

#if defined(EDDY_LOAD_TLS)
#include "tls_connection.hpp"
#else
#include "plain_connection.hpp"
#endif

#include <cerrno>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr long most_connections = 10'000;
// A message must fit into the socket's buffers: it is sent before anything is read.
constexpr long most_payload = 64 * 1024;
constexpr std::uint64_t warm_up_ns = 300'000'000;

/// One message that goes out and must come back.
struct exchange {
    int fd = -1;
    bench_connection connection = {};
    std::uint64_t sent_at = 0;
    std::vector<char> message;
};

class load {
public:
    load(long port, std::size_t connections, std::size_t payload, long server)
        : address_(loopback(port)), exchanges_(connections), input_(payload), server_(server) {
        for (std::size_t i = 0; i < connections; ++i) {
            exchanges_[i].message.resize(payload);
            for (std::size_t at = 0; at < payload; ++at)
                exchanges_[i].message[at] = static_cast<char>('!' + (i * 31 + at * 7) % 90);
        }
    }

    void run(std::string_view mode, std::uint64_t length_ns) {
        if (mode != "accept")
            for (exchange& each : exchanges_) open(each);
        length_ns_ = length_ns;
        begin_at_ = now_ns() + warm_up_ns;
        if (mode == "each")
            run_each();
        else
            run_batches(mode == "accept");
    }

    int report(std::string_view mode) const {
        const double seconds = static_cast<double>(ended_ns_ - begun_ns_) / 1e9;
        const double rate = static_cast<double>(latency_.count()) / seconds;
        const double own = static_cast<double>(own_cpu_ns_) / 1e9 / seconds;
        const double server = static_cast<double>(server_cpu_ns_) / 1e9 / seconds;
        const bool limited = own > 0.95 && server > 0 && server < 0.95;
        const bool verified = wrong_ == 0 && latency_.count() > 0;
        std::printf(
            "{\"test\": \"%.*s\", \"connections\": %zu, \"payload\": %zu, "
            "\"messages\": %llu, \"seconds\": %.4f, \"ops_per_second\": %.1f, "
            "\"p50_us\": %.2f, \"p99_us\": %.2f, \"generator_cpu\": %.4f, "
            "\"server_cpu\": %.4f, \"server_ns_per_op\": %.1f, \"void\": %s, "
            "\"verified\": %s, \"errors\": %llu}\n",
            static_cast<int>(mode.size()), mode.data(), exchanges_.size(), input_.size(),
            static_cast<unsigned long long>(latency_.count()), seconds, rate,
            static_cast<double>(latency_.percentile(50)) / 1e3,
            static_cast<double>(latency_.percentile(99)) / 1e3, own, server, server * 1e9 / rate,
            limited ? "true" : "false", verified ? "true" : "false",
            static_cast<unsigned long long>(wrong_));
        return verified ? 0 : 2;
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

    /// No two messages are equal: each carries its number.
    void send_next(exchange& each, std::uint64_t now) {
        const std::uint64_t number = ++sequence_;
        std::memcpy(each.message.data(), &number, std::min(sizeof number, each.message.size()));
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
        if (begun_ns_ != 0) latency_.record(now - each.sent_at);
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

    /// Takes the connections in turn, as they were sent to. No call of epoll, whose cost would fall
    /// on both sides: this is the cheapest load there is, and a server that is busy has the reply
    /// of the first before that of the next.
    void run_each() {
        std::uint64_t now = now_ns();
        for (exchange& each : exchanges_) send_next(each, now);
        while (goes_on(now)) {
            for (exchange& each : exchanges_) {
                receive(each);
                now = now_ns();
                record(each, now);
                send_next(each, now);
            }
        }
    }

    void run_batches(bool open_and_close) {
        std::uint64_t now = now_ns();
        while (goes_on(now)) {
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
    long server_;
    std::uint64_t sequence_ = 0;
    std::uint64_t length_ns_ = 0;
    std::uint64_t begin_at_ = 0;
    std::uint64_t begun_ns_ = 0;
    std::uint64_t ended_ns_ = 0;
    std::uint64_t own_cpu_ns_ = 0;
    std::uint64_t server_cpu_ns_ = 0;
    std::uint64_t wrong_ = 0;
    eddy::histogram latency_;
};

}  // namespace

int main(int argc, char** argv) {
    std::string_view mode;
    for (int i = 1; i + 1 < argc; ++i)
        if (std::strcmp(argv[i], "--mode") == 0) mode = argv[i + 1];
    const long connections = number_option(argc, argv, "--connections", 50);
    const long payload = number_option(argc, argv, "--payload", 64);
    const long length_ms = number_option(argc, argv, "--milliseconds", 3000);
    if ((mode != "each" && mode != "lockstep" && mode != "accept") || connections < 1 ||
        connections > most_connections || payload < 1 || payload > most_payload || length_ms < 1) {
        std::fputs(
            "usage: echo_load --port N --mode each|lockstep|accept [--connections N]\n"
            "                 [--payload BYTES] [--milliseconds N] [--server-pid PID]\n",
            stderr);
        return 1;
    }
    load generator(number_option(argc, argv, "--port", 7000), static_cast<std::size_t>(connections),
                   static_cast<std::size_t>(payload), number_option(argc, argv, "--server-pid", 0));
    generator.run(mode, static_cast<std::uint64_t>(length_ms) * 1'000'000);
    return generator.report(mode);
}
