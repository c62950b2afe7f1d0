// Watch over the sockets of connections whose threads sleep by futex(2), and so cannot see that the
// peer has gone: one thread a process reads them, and wakes the sleepers of one that ends. A
// connection is watched from its first sleep on, or after some calls: short ones never are, since
// that costs more than connecting.
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/base/unique_fd.hpp>
#include <eddy/io/task.hpp>

#include "shm/channel.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

namespace eddy::shm {

/// State of a connection that its threads and the watch share. Any thread. A std::shared_ptr owns
/// it.
class liveness : public std::enable_shared_from_this<liveness> {
public:
    explicit liveness(unique_fd socket) noexcept : socket_(std::move(socket)) {}

    int socket() const noexcept { return socket_.get(); }
    /// The peer has gone: what it had published is all there will be.
    bool is_peer_gone() noexcept {
        if (!is_watched_.load(std::memory_order_relaxed)) check();
        return is_peer_gone_.load(std::memory_order_acquire);
    }
    /// close() was called.
    bool is_closed() const noexcept { return is_closed_.load(std::memory_order_acquire); }

    /// Around a sleep on one of the channel's bells; what can end it is checked in between.
    void begin_sleep() noexcept {
        // Before it counts: a failure wakes all that do, and waits for them.
        if (!is_watched_.load(std::memory_order_relaxed)) watch();
        sleepers_.fetch_add(1, std::memory_order_seq_cst);
    }
    void end_sleep() noexcept { sleepers_.fetch_sub(1, std::memory_order_release); }

    /// The channel whose sleepers are woken; null from the end of its life on.
    void set_channel(channel* shared) noexcept;
    void mark_peer_gone() noexcept;
    void mark_closed() noexcept;
    /// In a child of fork(2): closes the copy of the socket. Other threads of the parent may have
    /// held the mutex, and their sleeps stay counted here, so nothing else may be called.
    void drop_copy() noexcept { socket_.reset(); }

private:
    /// Checks of a connection that is not watched, each a system call, before it is.
    static constexpr std::uint32_t most_checks = 16;

    void check() noexcept;
    void watch() noexcept;
    void wake_all() noexcept;

    unique_fd socket_;
    std::atomic<bool> is_watched_{false};
    std::atomic<std::uint32_t> checks_{0};
    std::atomic<bool> is_peer_gone_{false};
    std::atomic<bool> is_closed_{false};
    std::atomic<std::uint32_t> sleepers_{0};
    std::mutex mutex_;
    channel* shared_ = nullptr;
};

/// Waits, on the running loop, until the socket ends, or until the wait itself fails; then the peer
/// counts as gone.
task<void> watch_until_gone(std::shared_ptr<liveness> of);

/// Starts the process's thread, unless it runs. Errors are those of starting a thread and a loop.
result<> start_watching() noexcept;

}  // namespace eddy::shm
