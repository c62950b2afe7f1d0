// The simulator: an io-backend whose clock, network and faults exist in memory only.
//
// Everything that will happen is an event with a time. When the loop has nothing to do, the clock
// jumps to the next event, so a year of sleeping costs nothing. All choices come from one seeded
// generator, so a run repeats exactly from its seed, as long as only this thread posts work.
//
// The network is one host that owns every address; the io-backend knows its listeners, streams and
// datagram sockets. Addresses of 192.0.2.0/24 and 2001:db8::/32 (documentation, RFC 5737 and
// RFC 3849) never answer a connect.
#pragma once

#include <eddy/base/random.hpp>

#include "io/io_backend.hpp"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace eddy {

class sim_datagram;
class sim_listener;
class sim_stream;

/// The form in which a socket sees the address `plain` of the network: IPv4 peers of an IPv6 socket
/// appear as ::ffff:a.b.c.d.
endpoint sim_seen_by(int family, const endpoint& plain);
/// The reverse: ::ffff:a.b.c.d becomes a.b.c.d.
endpoint sim_unmapped(const endpoint& address);
bool sim_is_wildcard(const endpoint& address);
bool sim_is_multicast(const endpoint& address);
/// True if a socket bound to `bound` receives datagrams to `to`, which is unmapped.
bool sim_reaches(const endpoint& bound, bool dual_stack, const endpoint& to);

class sim_backend final : public io_backend, public lease_owner {
public:
    explicit sim_backend(const loop_options& options);
    ~sim_backend() override;

    io_backend_kind kind() const noexcept override { return io_backend_kind::sim; }
    time_point now() const noexcept override { return now_; }
    bool poll(time_point until) override;
    void wake() noexcept override;

    result<listener> listen(const endpoint& local, const listen_options& options) override;
    result<datagram> open_datagram(const endpoint& local, const endpoint& peer,
                                   const datagram_options& options) override;
    result<datagram> adopt_datagram(unique_fd socket) override;
    result<listener> adopt_listener(unique_fd socket) override;
    result<stream> adopt(unique_fd socket) override;
    result<pipe_ends> open_pipe() override;
    result<std::unique_ptr<socket_bank>> open_socket_bank(const socket_bank_options& options,
                                                          bank_observer& to) override;
    bool start(connect_operation& op) override;
    void cancel(connect_operation& op) noexcept override;
    void start_poll(int fd, readiness wanted, completion& done) override;
    void cancel_poll(completion& done) noexcept override;

    void give_back(std::byte* data, std::uint32_t id) noexcept override;

    // For the drivers.

    const sim_options& options() const noexcept { return options_; }
    random_generator& random() noexcept { return random_; }
    /// Travel time of the next piece of bytes.
    duration delay() noexcept;
    void schedule(time_point when, std::function<void()> what);

    /// A copy of the first bytes, as many as a receive buffer holds, as a lease. Only while
    /// may_lend().
    lease lend(const_bytes bytes) { return lend(bytes, for_streams_); }
    lease lend_message(const_bytes bytes) { return lend(bytes, for_messages_); }
    bool may_lend() const noexcept { return for_streams_.lent < for_streams_.most; }
    bool may_lend_message() const noexcept { return for_messages_.lent < for_messages_.most; }
    std::size_t buffer_size() const noexcept { return for_streams_.size; }
    std::size_t message_size() const noexcept { return for_messages_.size; }
    /// During a shortage of receive buffers, the time of its end; else now(). A call may begin a
    /// shortage, unless `begin_none`.
    time_point buffers_at(bool begin_none) noexcept;

    std::uint64_t add(sim_stream& made) noexcept;
    sim_stream* find_stream(std::uint64_t id) noexcept;
    void remove(sim_stream& gone) noexcept;
    void remove(sim_listener& gone) noexcept;
    std::uint64_t add(sim_datagram& made) noexcept;
    /// The socket that receives from `from` at `to`; null when there is none.
    sim_datagram* find_datagram(const endpoint& to, const endpoint& from) noexcept;
    /// All sockets that `wanted` accepts. The result is valid until a socket opens or closes.
    template <class Wanted>
    std::vector<sim_datagram*> find_datagrams(Wanted wanted) const {
        std::vector<sim_datagram*> found;
        for (sim_datagram* one : datagrams_)
            if (wanted(*one)) found.push_back(one);
        return found;
    }
    sim_datagram* find_datagram(std::uint64_t id) noexcept;
    void remove(sim_datagram& gone) noexcept;

private:
    struct connecting {
        std::uint64_t id;
        connect_operation* op;
    };

    /// Receive buffers of a kind.
    struct buffers {
        std::size_t size;
        std::size_t most;
        std::uint32_t id;  // of its leases
        std::size_t lent = 0;
    };

    lease lend(const_bytes bytes, buffers& of);
    std::uint16_t free_port() noexcept;
    int refused_binding(const endpoint& peer, const local_binding& from) const noexcept;
    bool take_wake() noexcept;
    void wait_for_wake();
    void connect_arrives(std::uint64_t id);
    void connect_fails(std::uint64_t id, int error);
    connect_operation* take_connecting(std::uint64_t id) noexcept;
    sim_listener* find_listener(const endpoint& to) noexcept;

    sim_options options_;
    random_generator random_;
    buffers for_streams_;
    buffers for_messages_;
    time_point now_;
    time_point buffers_back_{};
    std::uint64_t next_id_ = 1;
    std::uint16_t next_port_;

    // By time, then by the order of scheduling.
    std::map<std::pair<time_point, std::uint64_t>, std::function<void()>> events_;
    std::uint64_t scheduled_ = 0;
    std::map<completion*, int> polls_;

    std::vector<connecting> connecting_;
    std::vector<sim_listener*> listeners_;
    std::unordered_map<std::uint64_t, sim_stream*> streams_;
    std::vector<sim_datagram*> datagrams_;

    std::mutex wake_mutex_;
    std::condition_variable wake_condition_;
    bool woken_ = false;
};

}  // namespace eddy
