// Io-backend of a loop: the abstract class between it and the kernel, implemented by io_uring,
// epoll and the simulator. The layers above see completions, never readiness.
#pragma once

#include <eddy/io/loop.hpp>
#include <eddy/io/pipe.hpp>

#include "io/loop/loop_mutex.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace eddy {

class bank_observer;
class socket_bank;
struct socket_bank_options;

/// One step of a file's work.
struct file_request {
    enum class action : std::uint8_t { read, write, sync, sync_data };

    action what = action::read;
    int fd = -1;
    std::byte* data = nullptr;
    std::size_t size = 0;  ///< below 2 GiB
    std::uint64_t offset = 0;
};

class io_backend {
public:
    virtual ~io_backend() = default;

    virtual io_backend_kind kind() const noexcept = 0;

    /// The clock that timers follow.
    virtual time_point now() const noexcept = 0;

    /// One turn: passes pending work to the kernel, waits until something has happened or `until`
    /// has passed (time_point::min() polls without waiting, time_point::max() waits for ever), and
    /// completes what is done with operation::complete_now() or complete_later(). True when
    /// anything was completed.
    virtual bool poll(time_point until) = 0;

    /// End of the wait of the last poll() that was allowed to wait, before any completion. Not set
    /// by the simulator.
    time_point woke_at() const noexcept { return woke_at_; }

    /// Ends a wait in poll(), now or the next one. From any thread.
    virtual void wake() noexcept = 0;

    /// True if requests that were begun under a loop_lock are not part of the current wait, and
    /// need another poll().
    virtual bool has_begun() const noexcept { return false; }
    /// True if there is room for the loop_lock::max_requests of one more lock; only the loop's own
    /// thread submits them.
    virtual bool has_room_for_lock() const noexcept { return true; }
    /// The mutex that poll() unlocks while it waits; null for none.
    void set_mutex(detail::loop_mutex* mutex) noexcept { mutex_ = mutex; }

    virtual result<listener> listen(const endpoint& local, const listen_options& options) = 0;
    /// A UDP socket bound to `local`, or unbound and connected to `peer`: the other one is empty.
    virtual result<datagram> open_datagram(const endpoint& local, const endpoint& peer,
                                           const datagram_options& options) = 0;
    virtual result<datagram> adopt_datagram(unique_fd socket) = 0;
    virtual result<listener> adopt_listener(unique_fd socket) = 0;
    virtual result<stream> adopt(unique_fd socket) = 0;
    /// The same for an end of a pipe that was made for this process alone, non-blocking.
    virtual result<stream> adopt_own(unique_fd pipe_end) { return adopt(std::move(pipe_end)); }
    /// A pipe of the kernel, both ends adopted.
    virtual result<pipe_ends> open_pipe();
    /// As socket_bank::open(), whose options are in their range.
    virtual result<std::unique_ptr<socket_bank>> open_socket_bank(
        const socket_bank_options& options, bank_observer& to);

    /// True when the operation completed at once, as in stream_driver. Otherwise op.when_done() is
    /// called with 0 or a negative errno, or the io-backend sets the result and completes it.
    virtual bool start(connect_operation& op) = 0;
    /// Ends a connect that waits; it completes soon, with success if that came first.
    virtual void cancel(connect_operation& op) noexcept = 0;

    /// Calls `done` once, with 0 when `fd` is ready or a negative errno, always from poll().
    virtual void start_poll(int fd, readiness wanted, completion& done) = 0;
    /// Ends that wait; `done` is still called once, with -ECANCELED if nothing came first.
    virtual void cancel_poll(completion& done) noexcept = 0;

    /// True if the kernel takes file requests here. Only then the two functions below are called:
    /// `done` is called once, with a count or a negative errno, and the bytes are in use until
    /// then.
    virtual bool has_file_requests() const noexcept { return false; }
    virtual void start_file(const file_request&, completion&) { EDDY_ASSERT(false); }
    virtual void cancel_file(completion&) noexcept {}

protected:
    /// For poll(), between its wait and what it completes.
    void note_wake() noexcept { woke_at_ = now(); }
    detail::loop_mutex* mutex() const noexcept { return mutex_; }

private:
    detail::loop_mutex* mutex_ = nullptr;
    time_point woke_at_{};
};

result<std::unique_ptr<io_backend>> make_uring_backend(const loop_options& options);
result<std::unique_ptr<io_backend>> make_epoll_backend(const loop_options& options);
result<std::unique_ptr<io_backend>> make_sim_backend(const loop_options& options);

}  // namespace eddy
