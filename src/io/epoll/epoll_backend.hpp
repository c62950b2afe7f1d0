// The epoll io-backend: for kernels and containers that refuse io_uring. See epoll(7).
//
// A stream or listener is registered once, edge-triggered, and keeps epoll's last report: reading
// or writing may get further. Operations are tried inline first and wait only after EAGAIN (or
// after a short read, which says the same without a system call).
//
// A coroutine that an event resumes may close any other object, while events for that one still
// stand in the same batch. Closed objects therefore stay in memory until the batch is done.
#pragma once

#include <eddy/base/intrusive_list.hpp>
#include <eddy/base/unique_fd.hpp>

#include "io/io_backend.hpp"
#include "io/posix/posix_datagram.hpp"
#include "io/posix/sockets.hpp"

#include <sys/epoll.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

namespace eddy {

/// Target of an epoll event.
class event_target {
public:
    /// `events` as epoll_wait(2) returns them. Ignored after the object was closed.
    virtual void on_events(std::uint32_t events) = 0;

protected:
    ~event_target() = default;
};

/// A driver that owns a registered socket and is freed by the io-backend after its close().
class epoll_driver : public event_target, public list_link<> {
public:
    virtual ~epoll_driver() = default;
};

class epoll_backend final : public io_backend {
public:
    explicit epoll_backend(const loop_options& options) noexcept;
    ~epoll_backend() override;
    result<> open();

    io_backend_kind kind() const noexcept override { return io_backend_kind::epoll; }
    time_point now() const noexcept override;
    bool poll(time_point until) override;
    void wake() noexcept override;
    bool has_begun() const noexcept override { return !due_.empty(); }
    result<listener> listen(const endpoint& local, const listen_options& options) override;
    result<datagram> open_datagram(const endpoint& local, const endpoint& peer,
                                   const datagram_options& options) override;
    result<datagram> adopt_datagram(unique_fd socket) override;
    result<listener> adopt_listener(unique_fd socket) override;
    result<stream> adopt(unique_fd socket) override;
    result<stream> adopt_own(unique_fd pipe_end) override;
    result<std::unique_ptr<socket_bank>> open_socket_bank(const socket_bank_options& options,
                                                          bank_observer& to) override;
    bool start(connect_operation& op) override;
    void cancel(connect_operation& op) noexcept override;
    void start_poll(int fd, readiness wanted, completion& done) override;
    void cancel_poll(completion& done) noexcept override;

    // For the drivers.

    /// Makes a stream of a socket that is non-blocking already.
    result<stream> wrap(unique_fd socket);
    /// Receive buffers, taken only at the moment of a receive.
    buffer_pool& buffers() noexcept { return buffers_; }
    /// For streams that fill those; taken only while has_spare().
    buffer_pool& large_buffers() noexcept { return large_buffers_; }
    /// Reads messages of all message sockets.
    message_reader& reader() noexcept { return reader_; }
    result<> add(int fd, std::uint32_t events, event_target& target) noexcept;
    /// Makes the next turn report to `target` everything that is true then, though nothing changed.
    void report_again(int fd, std::uint32_t events, event_target& target) noexcept;
    /// Explicit, since only closing leaves the registration behind when another process or a
    /// duplicate holds the same socket.
    void remove(int fd) noexcept;
    void driver_opened() noexcept {
        ++drivers_.existing;
        ++drivers_.open;
    }
    /// For a driver that is closed: frees it when the present batch of events is done.
    void retire(epoll_driver& driver) noexcept {
        --drivers_.open;
        retired_.push_back(driver);
    }

    /// Events fetched by one epoll_wait(2).
    static constexpr int batch_size = 256;
    /// Entries for start_poll() that are kept for reuse.
    static constexpr std::size_t spare_polls_kept = 64;

private:
    /// A wait of start_poll(). Each has a registration of its own; a descriptor that is already
    /// registered is duplicated for the wait.
    struct poll_wait final : event_target {
        void on_events(std::uint32_t events) override;

        epoll_backend* owner = nullptr;
        completion* done = nullptr;  // null once the wait has ended
        int fd = -1;
        unique_fd duplicate;
    };
    using poll_table = std::unordered_map<completion*, poll_wait>;

    struct wake_target final : event_target {
        explicit wake_target(epoll_backend& of) noexcept : owner(of) {}
        void on_events(std::uint32_t events) override;

        epoll_backend& owner;
    };

    struct due_completion {
        completion* done;
        int result;
    };

    /// A non-blocking socket's driver.
    result<listener> make_listener(opened_listener opened);
    result<datagram> make_datagram(unique_fd socket) noexcept;
    bool run_due();
    int wait(time_point until, epoll_event* events) noexcept;
    void end_batch() noexcept;
    poll_table::iterator new_poll(completion& done);
    void end_poll(poll_table::iterator at) noexcept;

    unique_fd epoll_;
    unique_fd wake_fd_;
    wake_target wake_target_{*this};
    std::atomic<bool> wake_pending_{false};
    bool has_pwait2_ = true;
    buffer_pool buffers_;
    buffer_pool large_buffers_;
    buffer_pool messages_;
    message_reader reader_{messages_};
    driver_counts drivers_;
    intrusive_list<epoll_driver> retired_;
    poll_table polls_;
    std::vector<poll_table::node_type> ended_polls_;  // events of this batch may point to them
    std::vector<poll_table::node_type> spare_polls_;
    std::vector<due_completion> due_;  // to be called in the next turn
};

}  // namespace eddy
