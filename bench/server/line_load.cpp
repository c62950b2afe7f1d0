// The load on a server of lines: one thread, which checks each line that comes for its place and
// its content, and prints one JSON object.
//
//     line_load --port N --mode echo|broadcast|connect [--senders 1] [--receivers 1]
//               [--payload 64] [--window 1000] [--milliseconds 3000] [--server-pid PID]
//
// echo       each of `--senders` clients has `--window` lines under way, which come back to it
// broadcast  lines of the senders come to all other clients; `--receivers` of them send none. An
//            operation is a delivery. A sender waits for the slowest one when `--window` lines are
//            under way
// connect    `--senders` clients connect at a time, end their half, and await the server's end
//
// A line begins with its sender and its number, so one that is lost, doubled or moved is seen.
#include <eddy/base/histogram.hpp>

#include "../echo/socket.hpp"
#include "../echo/window.hpp"

#include <fcntl.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr long most_clients = 10'000;
constexpr int events_a_turn = 256;
constexpr std::size_t receive_size = 256 * 1024;
constexpr std::size_t sender_digits = 8;
constexpr std::size_t number_digits = 16;
constexpr std::string_view greeting = "hello\n";

struct client {
    int fd = -1;
    std::size_t index = 0;
    std::uint64_t sent = 0;             // lines
    std::string unsent;                 // bytes
    std::string begun;                  // of a line
    std::vector<char> lines;            // that are under way, one after the other
    std::vector<std::uint64_t> counts;  // of lines that came, by sender
};

class load {
public:
    load(int argc, char** argv, std::string_view mode)
        : is_echo_(mode == "echo"),
          measured_(argc, argv),
          address_(loopback(port_option(argc, argv))),
          senders_(count(argc, argv, "--senders", 1)),
          clients_(senders_ + (mode == "broadcast" ? count(argc, argv, "--receivers", 1) : 0)),
          size_(static_cast<std::size_t>(number_option(argc, argv, "--payload", 64, 32, 16384))),
          window_(static_cast<std::uint64_t>(
              number_option(argc, argv, "--window", 1000, 1, 1'000'000))),
          input_(receive_size) {
        poll_ = epoll_create1(EPOLL_CLOEXEC);
        if (poll_ < 0) die("epoll_create1");
    }

    void run_lines() {
        for (std::size_t i = 0; i < clients_.size(); ++i) {
            client& each = clients_[i];
            each.index = i;
            each.counts.resize(is_echo_ ? 1 : senders_);
            each.lines.resize(i < senders_ ? 2 * window_ * size_ : 0);
            each.fd = open();
            fcntl(each.fd, F_SETFL, O_NONBLOCK);
            watch(each, EPOLLIN);
            // Shows the server that it speaks no HTTP.
            each.unsent = greeting;
            flush(each);
        }
        await_greetings();
        std::uint64_t now = now_ns();
        while (measured_.goes_on(now)) {
            for (std::size_t i = 0; i < senders_; ++i) send_lines(clients_[i]);
            take_events(is_waiting() ? 1000 : 0);
            now = now_ns();
        }
    }

    void run_connects() {
        std::uint64_t now = now_ns();
        while (measured_.goes_on(now)) {
            for (client& each : clients_) {
                each.sent = now_ns();
                each.fd = open();
                watch(each, EPOLLIN | EPOLLRDHUP);
                if (shutdown(each.fd, SHUT_WR) < 0) die("shutdown");
            }
            for (std::size_t left = clients_.size(); left > 0;) left -= await_ends();
            now = now_ns();
        }
    }

    int report(const std::string& mode) const {
        return measured_.report("\"test\": \"" + mode + "\", \"longest_gap_us\": " +
                                    std::to_string(longest_gap_ / 1000) +
                                    ", \"connections\": " + std::to_string(clients_.size()) +
                                    ", \"payload\": " + std::to_string(size_),
                                latency_, operations_, wrong_, wrong_);
    }

private:
    static std::size_t count(int argc, char** argv, const char* name, long usual) {
        return static_cast<std::size_t>(number_option(argc, argv, name, usual, 1, most_clients));
    }

    /// From an address of its own among many, since ports of ended connections stay in use.
    int open() {
        const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0) die("socket");
        const int on = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
        sockaddr_in own = loopback(0);
        own.sin_addr.s_addr = htonl(INADDR_LOOPBACK + opened_++ % 200);
        if (bind(fd, reinterpret_cast<const sockaddr*>(&own), sizeof own) < 0) die("bind");
        if (connect(fd, reinterpret_cast<const sockaddr*>(&address_), sizeof address_) < 0)
            die("connect");
        return fd;
    }

    void watch(client& of, std::uint32_t events) const {
        epoll_event event{};
        event.events = events;
        event.data.ptr = &of;
        if (epoll_ctl(poll_, EPOLL_CTL_ADD, of.fd, &event) < 0) die("epoll_ctl");
    }

    std::size_t await_ends() {
        epoll_event events[events_a_turn];
        const int count = epoll_wait(poll_, events, events_a_turn, 10'000);
        if (count <= 0) die("epoll_wait");
        std::size_t ended = 0;
        for (int i = 0; i < count; ++i) {
            client& which = *static_cast<client*>(events[i].data.ptr);
            char byte = 0;
            const ssize_t size = recv(which.fd, &byte, 1, 0);
            if (size < 0 && errno == EAGAIN) continue;
            if (size != 0) ++wrong_;
            close(which.fd);
            if (measured_.is_open()) latency_.record(now_ns() - which.sent);
            if (measured_.is_open()) ++operations_;
            ++ended;
        }
        return ended;
    }

    /// Until all clients have what the others greet with: they get messages from then on.
    void await_greetings() {
        const std::uint64_t all =
            is_echo_ ? clients_.size() : clients_.size() * (clients_.size() - 1);
        const std::uint64_t ends = now_ns() + 20'000'000'000;
        // Greetings of clients that came before another one do not reach it.
        std::uint64_t before = 0;
        std::uint64_t quiet_since = now_ns();
        while (greeted_ < all && now_ns() < ends) {
            take_events(100);
            if (greeted_ != before) quiet_since = now_ns();
            before = greeted_;
            if (now_ns() - quiet_since > 500'000'000) break;
        }
    }

    /// Where a sender's line of that number stands while it is under way.
    char* place_of(client& sender, std::uint64_t number) const {
        return sender.lines.data() + number % (2 * window_) * size_;
    }

    std::string_view make_line(client& from, std::uint64_t number) const {
        char digits[sender_digits + number_digits + 1];
        std::snprintf(digits, sizeof digits, "%08zx%016llx", from.index,
                      static_cast<unsigned long long>(number));
        char* const place = place_of(from, number);
        std::memset(place, '.', size_);
        std::memcpy(place, digits, sender_digits + number_digits);
        place[size_ - 1] = '\n';
        return {place, size_};
    }

    /// senders_ for none.
    std::size_t sender_of(std::string_view whole) const {
        std::size_t index = 0;
        if (whole.size() < sender_digits) return senders_;
        for (const char each : whole.substr(0, sender_digits)) {
            const std::size_t digit = each <= '9' ? static_cast<std::size_t>(each - '0')
                                                  : static_cast<std::size_t>(each - 'a' + 10);
            index = index * 16 + digit % 16;
        }
        return std::min(index, senders_);
    }

    /// Lines that the slowest of a sender's receivers has.
    std::uint64_t least_received(const client& sender) const {
        if (is_echo_) return sender.counts[0];
        std::uint64_t least = sender.sent;
        for (const client& each : clients_)
            if (each.index != sender.index) least = std::min(least, each.counts[sender.index]);
        return least;
    }

    void send_lines(client& from) {
        if (!from.unsent.empty() && !flush(from)) return;
        const std::uint64_t under_way = from.sent - least_received(from);
        if (under_way > window_ / 2) return;
        for (std::uint64_t i = under_way; i < window_; ++i)
            from.unsent.append(make_line(from, from.sent++));
        flush(from);
    }

    bool flush(client& from) {
        const ssize_t size = send(from.fd, from.unsent.data(), from.unsent.size(), MSG_NOSIGNAL);
        if (size < 0 && errno != EAGAIN) die("send");
        if (size > 0) from.unsent.erase(0, static_cast<std::size_t>(size));
        return from.unsent.empty();
    }

    /// True if no sender can send.
    bool is_waiting() const {
        for (std::size_t i = 0; i < senders_; ++i)
            if (!clients_[i].unsent.empty()) return false;
        return true;
    }

    void take_events(int milliseconds) {
        epoll_event events[events_a_turn];
        const int count = epoll_wait(poll_, events, events_a_turn, milliseconds);
        if (count > 0 && measured_.is_open()) {
            const std::uint64_t now = now_ns();
            if (arrived_ != 0) longest_gap_ = std::max(longest_gap_, now - arrived_);
            arrived_ = now;
        }
        for (int i = 0; i < count; ++i) receive(*static_cast<client*>(events[i].data.ptr));
    }

    void receive(client& to) {
        const ssize_t size = recv(to.fd, input_.data(), input_.size(), 0);
        if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (size <= 0) {
            std::fputs("line_load: the server closed a connection\n", stderr);
            std::exit(1);
        }
        std::string_view came(input_.data(), static_cast<std::size_t>(size));
        if (!to.begun.empty()) {
            const std::size_t end = came.find('\n');
            to.begun.append(came.substr(0, end == came.npos ? end : end + 1));
            if (end == came.npos) return;
            came.remove_prefix(end + 1);
            const std::string whole = std::move(to.begun);
            to.begun.clear();
            take(to, whole);
        }
        while (!came.empty()) {
            // Nearly all lines are of this size.
            std::size_t end = size_ - 1;
            if (came.size() < size_ || came[end] != '\n' || came.starts_with(greeting))
                end = came.find('\n');
            if (end == came.npos) break;
            take(to, came.substr(0, end + 1));
            came.remove_prefix(end + 1);
        }
        to.begun.assign(came);
    }

    void take(client& to, std::string_view whole) {
        if (whole == greeting) {
            ++greeted_;
            return;
        }
        const std::size_t sender = sender_of(whole);
        if (sender == senders_ || (is_echo_ && sender != to.index)) {
            ++wrong_;
            return;
        }
        // Some servers send to all clients.
        if (!is_echo_ && sender == to.index) return;
        std::uint64_t& count = to.counts[is_echo_ ? 0 : sender];
        if (whole.size() != size_ ||
            std::memcmp(whole.data(), place_of(clients_[sender], count), size_) != 0)
            ++wrong_;
        ++count;
        if (measured_.is_open()) ++operations_;
    }

    const bool is_echo_;
    window measured_;
    const sockaddr_in address_;
    const std::size_t senders_;
    std::vector<client> clients_;
    const std::size_t size_;
    const std::uint64_t window_;
    std::vector<char> input_;
    int poll_ = -1;
    std::uint32_t opened_ = 0;
    std::uint64_t greeted_ = 0;
    std::uint64_t operations_ = 0;
    std::uint64_t wrong_ = 0;
    std::uint64_t arrived_ = 0;      // last, of whatever client
    std::uint64_t longest_gap_ = 0;  // between two arrivals, in ns
    eddy::histogram latency_;
};

}  // namespace

int main(int argc, char** argv) {
    const std::string mode = text_option(argc, argv, "--mode", "");
    if (mode != "echo" && mode != "broadcast" && mode != "connect") {
        std::fputs("line_load: --mode takes echo, broadcast or connect\n", stderr);
        return 1;
    }
    load generator(argc, argv, mode);
    if (mode == "connect")
        generator.run_connects();
    else
        generator.run_lines();
    return generator.report(mode);
}
