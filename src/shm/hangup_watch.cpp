// Watch thread for hang-ups, and wake-ups of sleeping threads.
#include "shm/hangup_watch.hpp"

#include <eddy/io/executor.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/loop_group.hpp>
#include <eddy/net/descriptors.hpp>

#include "shm/futex.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <new>
#include <thread>
#include <utility>

namespace eddy::shm {
namespace {

/// The thread of one process. A child of fork(2) has a copy of its parent's, without the thread: it
/// starts its own, and leaves the copy as it is, since ending it would wait for that thread.
struct watcher {
    watcher() = default;
    watcher(const watcher&) = delete;
    watcher& operator=(const watcher&) = delete;
    ~watcher() { drop_inherited(); }

    void drop_inherited() noexcept {
        if (group && process != ::getpid()) inherited = group.release();
    }

    std::unique_ptr<loop_group> group;
    loop_group* inherited = nullptr;  // never freed
    pid_t process = 0;
};

result<loop_group*> watching_thread() {
    static std::mutex starting;
    static watcher only;
    const std::scoped_lock lock(starting);
    only.drop_inherited();
    if (!only.group) {
        loop_group_options options;
        options.threads = 1;
        options.name = "eddy-shm";
        // A ring of io_uring holds the sockets that it polls until its own end, which comes
        // milliseconds after that of a killed process: the peer would notice that late.
        options.loop.kind = io_backend_kind::epoll;
        auto started = loop_group::start(options);
        if (!started) return fail(started.error());
        only.group = std::move(*started);
        only.process = ::getpid();
    }
    return only.group.get();
}

}  // namespace

void liveness::set_channel(channel* shared) noexcept {
    const std::scoped_lock lock(mutex_);
    shared_ = shared;
}

/// Checks for the end of the socket, by a system call.
void liveness::check() noexcept {
    if (checks_.fetch_add(1, std::memory_order_relaxed) >= most_checks) return watch();
    char next = 0;
    const ssize_t size = ::recv(socket(), &next, 1, MSG_PEEK | MSG_DONTWAIT);
    if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR)) mark_peer_gone();
}

/// Watches the socket from now on. A connection that cannot be watched ends: otherwise its threads
/// could sleep for ever.
void liveness::watch() noexcept try {
    if (is_watched_.exchange(true)) return;
    auto group = watching_thread();
    if (!group || !(*group)->executor(0).post(watch_until_gone(shared_from_this())))
        mark_peer_gone();
} catch (const std::bad_alloc&) {
    mark_peer_gone();
}

void liveness::mark_peer_gone() noexcept {
    is_peer_gone_.store(true, std::memory_order_seq_cst);
    wake_all();
}

void liveness::mark_closed() noexcept {
    is_closed_.store(true, std::memory_order_seq_cst);
    wake_all();
}

/// Repeated, since the word does not change: a thread that was about to sleep misses at most one
/// call.
void liveness::wake_all() noexcept {
    const std::scoped_lock lock(mutex_);
    while (shared_ && sleepers_.load(std::memory_order_seq_cst) > 0) {
        futex_wake(shared_->reader_bell());
        futex_wake(shared_->writer_bell());
        std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
}

/// Bytes that come are dropped.
task<void> watch_until_gone(std::shared_ptr<liveness> of) {
    while (co_await loop::current().wait_readable(of->socket())) {
        std::array<std::byte, 256> dropped;
        // With room for descriptors, which kernels before 6.16 cannot refuse.
        const auto received = unix_socket::receive_message(of->socket(), dropped);
        if (received ? received->size == 0 : received.error() != errno_code(EAGAIN)) break;
    }
    // Also after a failed wait: a peer that is not watched could die without waking its readers.
    of->mark_peer_gone();
}

result<> start_watching() noexcept try {
    auto group = watching_thread();
    if (!group) return fail(group.error());
    return {};
} catch (const std::bad_alloc&) {
    return fail_errno(ENOMEM);
}

}  // namespace eddy::shm
