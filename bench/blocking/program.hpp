// The tests of run_blocking.py, the same for every library: a server and a client with blocking
// calls, a thread each on a core of its own, and a loop without events. A program gives a class of
// socket calls and one function; this does the rest and prints one JSON object.
//
//     --test echo|churn|idle --port N [--payload 64] [--connections 16] [--milliseconds 3000]
//     [--server-core 0] [--client-core 1]
//
// echo   one connection; a message goes out when the one before it is back
// churn  all connections are opened, exchange one message each and are closed, and so on
// idle   turns of a loop with a timer an hour away and a connection from which nothing comes
#pragma once

#include <eddy/base/histogram.hpp>

#include "../echo/socket.hpp"
#include "../echo/window.hpp"

#include <sched.h>

#include <array>
#include <atomic>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

/// Keeps the calling thread on one core.
inline void stay_on(long core) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<std::size_t>(core), &set);
    if (sched_setaffinity(0, sizeof set, &set) < 0) die("sched_setaffinity");
}

/// Time in nanoseconds for which the calling thread was ready to run but had no core; proc(5),
/// schedstat.
inline unsigned long long waited_for_core_ns() {
    unsigned long long waited = 0;
    if (std::FILE* file = std::fopen("/proc/thread-self/schedstat", "r")) {
        if (std::fscanf(file, "%*u %llu", &waited) != 1) waited = 0;
        std::fclose(file);
    }
    return waited;
}

/// Counts a loop's waits that find nothing. The clock would cost as much as a wait, so it is read
/// once a batch.
class idle_waits {
public:
    static constexpr std::uint64_t batch = 1024;

    explicit idle_waits(window& measured) : measured_(&measured) {}

    /// Called after each batch of waits; false at the end of the run.
    bool go_on() {
        const std::uint64_t now = now_ns();
        if (begun_ns_ != 0) {
            count_ += batch;
            length_.record((now - begun_ns_) / batch);
        }
        const bool goes_on = measured_->goes_on(now);
        if (measured_->is_open()) begun_ns_ = now_ns();
        return goes_on;
    }

    /// Counts an event, which makes the run worthless.
    void found() { ++found_; }

    std::uint64_t count() const { return count_; }
    std::uint64_t found_count() const { return found_; }
    const eddy::histogram& length() const { return length_; }

private:
    window* measured_;
    std::uint64_t begun_ns_ = 0;
    std::uint64_t count_ = 0;
    std::uint64_t found_ = 0;
    eddy::histogram length_;
};

/// One run. `Sockets` has acceptor, connection, and calls that end the program when they fail; each
/// thread has one of its own. Sockets::wait_for_nothing() is the loop of the test idle.
template <class Sockets>
class blocking_run {
    using acceptor = typename Sockets::acceptor;
    using connection = typename Sockets::connection;

public:
    blocking_run(int argc, char** argv)
        : port_(port_option(argc, argv)),
          payload_(
              static_cast<std::size_t>(number_option(argc, argv, "--payload", 64, 1, 64 * 1024))),
          connections_(
              static_cast<std::size_t>(number_option(argc, argv, "--connections", 16, 1, 1024))),
          server_core_(number_option(argc, argv, "--server-core", 0, 0, CPU_SETSIZE - 1)),
          client_core_(number_option(argc, argv, "--client-core", 1, 0, CPU_SETSIZE - 1)),
          measured_(argc, argv) {}

    int run(int argc, char** argv) {
        const std::string test = text_option(argc, argv, "--test", "");
        if (test == "echo") {
            both(&blocking_run::serve_echo, &blocking_run::echo);
        } else if (test == "churn") {
            both(&blocking_run::serve_churn, &blocking_run::churn);
        } else if (test == "idle") {
            return idle(argc, argv);
        } else {
            std::fputs("--test takes echo, churn or idle\n", stderr);
            return 1;
        }
        return report(test, latency_, latency_.count());
    }

private:
    int report(const std::string& test, const eddy::histogram& latency, std::uint64_t operations) {
        return measured_.report("\"test\": \"" + test + "\", \"waited_ns\": [" +
                                    std::to_string(server_waited_ns_) + ", " +
                                    std::to_string(client_waited_ns_) + "]",
                                latency, operations, wrong_, wrong_);
    }

    void both(void (blocking_run::*serve)(Sockets&, acceptor&),
              void (blocking_run::*load)(Sockets&)) {
        Sockets sockets(port_);
        acceptor listening = sockets.listen();
        std::thread server([&] {
            stay_on(server_core_);
            (this->*serve)(sockets, listening);
            server_waited_ns_ = waited_for_core_ns();
        });
        stay_on(client_core_);
        Sockets own(port_);
        (this->*load)(own);
        client_waited_ns_ = waited_for_core_ns();
        server.join();
    }

    void receive(Sockets& sockets, connection& from, const std::vector<char>& sent) {
        input_.resize(sent.size());
        if (!sockets.read_exactly(from, input_) || input_ != sent) ++wrong_;
    }

    void record(std::uint64_t begun_ns, std::uint64_t now) {
        if (measured_.is_open()) latency_.record(now - begun_ns);
    }

    void serve_echo(Sockets& sockets, acceptor& listening) {
        connection peer = sockets.accept(listening);
        std::vector<char> bytes(payload_);
        while (sockets.read_exactly(peer, bytes)) sockets.write_all(peer, bytes);
    }

    void echo(Sockets& sockets) {
        connection peer = sockets.connect();
        std::vector<char> message = make_message(0, payload_);
        for (std::uint64_t sent_at = now_ns(); measured_.goes_on(sent_at);) {
            stamp(message.data(), message.size(), ++sequence_);
            sockets.write_all(peer, message);
            receive(sockets, peer, message);
            const std::uint64_t now = now_ns();
            record(sent_at, now);
            sent_at = now;
        }
    }

    /// The server closes first, so the client sees the end in order.
    void serve_churn(Sockets& sockets, acceptor& listening) {
        std::vector<connection> peers;
        peers.reserve(connections_);
        std::vector<char> bytes(payload_);
        for (;;) {
            peers.clear();
            while (peers.size() < connections_) {
                peers.push_back(sockets.accept(listening));
                if (over_) return;
            }
            for (connection& each : peers) {
                if (sockets.read_exactly(each, bytes)) sockets.write_all(each, bytes);
                sockets.close(each);
            }
        }
    }

    void churn(Sockets& sockets) {
        std::vector<connection> peers;
        peers.reserve(connections_);
        std::vector<std::uint64_t> opened_at(connections_);
        std::vector<std::vector<char>> messages;
        for (std::size_t i = 0; i < connections_; ++i)
            messages.push_back(make_message(i, payload_));
        std::array<char, 1> more{};
        for (std::uint64_t now = now_ns(); measured_.goes_on(now);) {
            peers.clear();
            for (std::uint64_t& each : opened_at) {
                each = now_ns();
                peers.push_back(sockets.connect());
            }
            for (std::size_t i = 0; i < connections_; ++i) {
                stamp(messages[i].data(), payload_, ++sequence_);
                sockets.write_all(peers[i], messages[i]);
            }
            for (std::size_t i = 0; i < connections_; ++i) {
                receive(sockets, peers[i], messages[i]);
                if (sockets.read_exactly(peers[i], more)) ++wrong_;  // the end was due
                reset_on_close(peers[i].native_handle());
                sockets.close(peers[i]);
                now = now_ns();
                record(opened_at[i], now);
            }
        }
        over_ = true;
        connection last = sockets.connect();
    }

    /// After the end in order, a reset: it leaves no TIME_WAIT behind on either side, of which the
    /// kernel would run out of ports.
    static void reset_on_close(int fd) {
        const linger at_once{.l_onoff = 1, .l_linger = 0};
        if (setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once) < 0)
            die("setsockopt SO_LINGER");
    }

    int idle(int argc, char** argv) {
        stay_on(server_core_);
        const int listening = listen_on(port_, 0);
        const int silent = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (silent < 0) die("socket");
        const sockaddr_in address = loopback(port_);
        if (connect(silent, reinterpret_cast<const sockaddr*>(&address), sizeof address) < 0)
            die("connect");
        const int watched = accept4(listening, nullptr, nullptr, SOCK_CLOEXEC);
        if (watched < 0) die("accept4");
        idle_waits waits(measured_);
        Sockets::wait_for_nothing(argc, argv, watched, waits);
        server_waited_ns_ = waited_for_core_ns();
        close(silent);
        close(listening);
        wrong_ += waits.found_count();
        return report("idle", waits.length(), waits.count());
    }

    long port_;
    std::size_t payload_;
    std::size_t connections_;
    long server_core_;
    long client_core_;
    window measured_;
    std::atomic<bool> over_{false};
    std::vector<char> input_;
    std::uint64_t sequence_ = 0;
    std::uint64_t wrong_ = 0;
    unsigned long long server_waited_ns_ = 0;
    unsigned long long client_waited_ns_ = 0;
    eddy::histogram latency_;
};
