// Event loop, one a thread: an io-backend (io_uring, epoll or the simulator), timers, and the list
// of ready coroutines.
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/io/datagram.hpp>
#include <eddy/io/stream.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

namespace eddy {

class io_backend;
class blocking_pool;
class executor;
class scope;
class lockable_loop;
class shared_loop_lock;
class loop_lock;
struct file_access;
struct pipe_ends;

namespace detail {
class loop_gate;
class loop_mutex;
class promise_state;
struct posted_task_access;
}  // namespace detail

/// Kinds of io-backend.
enum class io_backend_kind {
    automatic,  ///< io_uring, or epoll where the kernel or a container refuses it
    uring,
    epoll,
    sim,
};

/// "auto", "uring", "epoll", "sim".
std::string_view to_string(io_backend_kind kind) noexcept;
/// The kind of that name, exactly as to_string() writes it; else errc::malformed.
[[nodiscard]] result<io_backend_kind> parse_io_backend_kind(std::string_view text) noexcept;

/// Faults that the simulator injects; each is a chance from 0 to 1 an operation.
struct sim_options {
    /// Everything that is drawn follows from it: the same seed gives the same run.
    std::uint64_t seed = 1;
    double short_read = 0;  ///< a read gets fewer bytes than have arrived

    /// A connection is reset at a read or write; an end of a pipe loses the other one.
    double reset = 0;

    double no_buffers = 0;          ///< the receive-buffer pool is empty for a while
    double datagram_loss = 0;       ///< a datagram vanishes
    double datagram_reorder = 0;    ///< a datagram arrives after later ones
    double datagram_duplicate = 0;  ///< a datagram arrives twice
    duration min_delay{};           ///< network delay of each piece of bytes, drawn evenly

    /// The longest such delay; both 0 for none.
    duration max_delay{};
    std::size_t socket_buffer = 64 * 1024;  ///< bytes in flight before a writer waits, at least 1

    /// Resumes coroutines that are ready at the same time in an order drawn from the seed, not in
    /// the order in which they became ready. It exposes accidental dependencies on that order. The
    /// other draws stay the same.
    bool shuffle = false;
};

/// Options of loop::create(). A value outside of its range is EINVAL, unless it says otherwise.
struct loop_options {
    /// Least bytes of a receive buffer.
    static constexpr std::uint32_t min_buffer_size = 64;
    /// Most bytes of a receive buffer.
    static constexpr std::uint32_t max_buffer_size = 64 * 1024 * 1024;
    /// Most receive buffers of a kind.
    static constexpr std::uint32_t max_buffer_count = 32 * 1024;
    /// Most threads for files.
    static constexpr std::size_t max_file_threads = 256;

    /// Kind of io-backend.
    io_backend_kind kind = io_backend_kind::automatic;
    /// Receive buffers lent to all connections of the loop (io_uring rounds up to a power of 2). 1
    /// to max_buffer_count; beyond that it is the nearest of these.
    std::uint32_t buffer_count = 256;
    /// Bytes of each of them, which hold a TLS record of 16 KiB whole. A read() yields no more; but
    /// a stream that keeps filling them may be lent one of four that are 8 times as large.
    /// min_buffer_size to max_buffer_size.
    std::uint32_t buffer_size = 16 * 1024 + 512;
    /// The same for messages. The first message socket takes the room for them; memory is used only
    /// as far as messages have filled it. Of the default size each datagram is received whole.
    std::uint32_t datagram_count = 256;
    /// Bytes of each of them, in the same range.
    std::uint32_t datagram_size = 64 * 1024;
    /// At most so many buffers from the heap at one time, lent when leases are held so long that
    /// the buffers above do not suffice: this number for streams, and again for messages. At least
    /// 1; 0 means 1. A read() or receive() that finds none fails with errc::no_buffers; nothing is
    /// lost, and another one succeeds once leases have been given back. Pipes are lent only these
    /// on io_uring.
    std::uint32_t max_spare_buffers = 16 * 1024;
    /// Time to spin before sleeping. Lowers latency, costs the core. duration::max(): never sleep.
    /// 0, the default: see `polling`.
    duration spin{};
    /// Adaptive polling, without `spin`: poll before sleeping as long as that brings completions,
    /// at most for a third of the time that the loop worked, and at most 16 µs at once. An idle
    /// loop uses no CPU either way. False: sleep at once, which costs less CPU where peers are
    /// never that fast, and latency where they are.
    bool polling = true;
    /// io_uring only: a kernel thread submits. It costs a core even when idle for a while, and a
    /// peer that sends TCP urgent data may stall what it sends behind it, for good. Seen on Linux
    /// 6.18 with only liburing, in some runs; the cause is not known for certain.
    bool sqpoll = false;
    /// io_uring only: writes of at least this many bytes go without a copy. Loopback copies
    /// anyway, so the default is never. Cancelling such a write may reset the connection: a peer
    /// that does not read would else hold its bytes for ever.
    std::size_t zero_copy_threshold = SIZE_MAX;
    /// At most so many tasks and callables that executors have posted are queued; one more fails
    /// with errc::limit_reached.
    std::size_t max_posted = 64 * 1024;
    /// Threads for what files cannot do otherwise (file.hpp), started when they are first needed.
    /// 1 to max_file_threads.
    std::size_t file_threads = 4;
    /// At most so many pieces of work wait for them; one more fails with errc::limit_reached.
    /// SIZE_MAX for no limit.
    std::size_t max_file_queue = 1024;
    /// Only for io_backend_kind::sim.
    sim_options sim;
};

/// Work posted to a loop from any thread. The object must live until run() was called.
class posted_work {
public:
    /// Does the work, on the loop's thread, once.
    virtual void run() noexcept = 0;

protected:
    ~posted_work() = default;

private:
    friend class loop;
    posted_work* next_ = nullptr;
};

/// Readiness of a descriptor, to wait for.
enum class readiness { readable, writable, hung_up };

/// Waits until a descriptor is readable or writable, or its peer has hung up (or it has failed),
/// poll(2). For descriptors of other libraries; Eddy's sockets have their own operations.
class poll_operation final : public operation, private completion {
public:
    poll_operation(io_backend& where, int fd, readiness wanted) noexcept
        : io_backend_(&where), fd_(fd), wanted_(wanted) {}
    void set_error(std::error_code error) noexcept override { error_ = error; }
    result<> take_result() const noexcept {
        if (error_) return fail(error_);
        return {};
    }

private:
    bool start() override;
    void on_cancel() noexcept override;
    void on_completion(int result, unsigned flags) override;

    io_backend* io_backend_;
    int fd_;
    readiness wanted_;
    std::error_code error_;
};

class sleep_operation final : public operation, private timer {
public:
    /// select() takes it.
    using keeps_when_withdrawn = void;

    sleep_operation(loop& where, time_point when) noexcept : loop_(&where), until_(when) {}
    void set_error(std::error_code error) noexcept override { error_ = error; }
    result<> take_result() const noexcept {
        if (error_) return fail(error_);
        return {};
    }

private:
    bool start() override;
    void on_cancel() noexcept override;
    void fire() noexcept override;

    loop* loop_;
    time_point until_;
    std::error_code error_;
};

/// Puts the coroutine at the end of the loop's ready list, so that the others run first.
class yield_operation final : public operation {
public:
    void set_error(std::error_code) noexcept override {}
    void take_result() const noexcept {}

private:
    bool start() override;
    void on_cancel() noexcept override {}
};

/// Waits for an outgoing connection.
class connect_operation final : public operation, private completion {
public:
    connect_operation(io_backend& where, const endpoint& peer,
                      const local_binding* from = nullptr) noexcept
        : io_backend_(&where), peer_(peer), from_(from) {}
    const endpoint& peer() const noexcept { return peer_; }
    /// Local address to bind first; null for none.
    const local_binding* from() const noexcept { return from_; }
    void set_connected(stream connected) noexcept { connected_ = std::move(connected); }
    void set_error(std::error_code error) noexcept override { error_ = error; }
    result<stream> take_result() noexcept {
        if (error_) return fail(error_);
        return std::move(connected_);
    }
    /// For the io-backend: the socket that is connecting, and its completion.
    unique_fd& socket() noexcept { return socket_; }
    completion& when_done() noexcept { return *this; }

private:
    bool start() override;
    void on_cancel() noexcept override;
    void on_completion(int result, unsigned flags) override;

    io_backend* io_backend_;
    endpoint peer_;
    const local_binding* from_;
    unique_fd socket_;
    stream connected_;
    std::error_code error_;
};

/// An event loop. Create it and run it on the same thread, which has no other loop meanwhile; every
/// member function but post() belongs to that thread.
class loop {
public:
    /// Fails with the io-backend's error when no io-backend of the wanted kind is available, and
    /// with EINVAL for options out of their range.
    [[nodiscard]] static result<std::unique_ptr<loop>> create(const loop_options& wanted = {});
    /// Closes its executors. Posted tasks that have not begun run now, cancelled from their
    /// beginning.
    ~loop();
    loop(const loop&) = delete;
    loop& operator=(const loop&) = delete;

    /// The loop that runs on this thread; there must be one.
    static loop& current() noexcept;

    /// Runs until `root` has finished; returns its value or throws its exception. Everything that
    /// `root` started must be finished by then, which scopes ensure. Tasks that executors posted
    /// (executor.hpp) are then cancelled, and awaited before this returns.
    template <class T>
    T run(task<T> root) {
        std::optional<T> value;
        run_until_done(store_result(std::move(root), value));
        return std::move(*value);
    }
    /// The same for a task without a value.
    void run(task<void> root) { run_until_done(std::move(root)); }

    /// The io-backend that was chosen; never `automatic`.
    io_backend_kind kind() const noexcept;
    /// The time of this turn, read from the clock once it has ended waiting.
    time_point now() const noexcept {
        if (!now_is_known_) read_clock();
        return now_;
    }

    /// now() + time, or the end of time where that is later: duration::max() means never.
    time_point after(duration time) const noexcept {
        const time_point present = now();
        return time < time_point::max() - present ? present + time : time_point::max();
    }

    /// Queues `work` on the loop, from any thread, without a lock. Wake-ups of one turn are merged.
    /// The loop must exist, which an executor (executor.hpp) checks by itself.
    void post(posted_work& work) noexcept;

    /// Arms `node` to fire at `when` (at once in the next turn if that has passed).
    void arm(timer& node, time_point when) noexcept;
    /// Disarms a timer; does nothing to one that is not armed.
    void disarm(timer& node) noexcept;

    /// Awaits a moment on the loop's clock; yields a result<>, whose only error is errc::cancelled.
    [[nodiscard]] awaiting<sleep_operation> sleep_until(time_point when) {
        return awaiting<sleep_operation>(*this, when);
    }
    /// The same, `time` from now().
    [[nodiscard]] awaiting<sleep_operation> sleep_for(duration time) {
        return sleep_until(after(time));
    }
    /// Lets all other ready coroutines run first. Yields nothing and cannot fail; once its source
    /// is cancelled, it passes at once, as often in a row as inline_budget allows.
    [[nodiscard]] awaiting<yield_operation> yield() { return awaiting<yield_operation>(); }

    /// Listens on `local`; errors are bind(2)'s and listen(2)'s.
    [[nodiscard]] result<listener> listen(const endpoint& local,
                                          const listen_options& options = {});
    /// Connects. Yields a result<stream>: connect(2)'s errors, or errc::cancelled. Bound it by
    /// with_timeout(). `peer` is copied. The stream allocates its driver; waiting costs nothing
    /// more once warm.
    [[nodiscard]] awaiting<connect_operation> connect(const endpoint& peer) {
        return awaiting<connect_operation>(*io_backend_, peer);
    }
    /// The same from an address or a device of this machine. `from` must live until completion.
    [[nodiscard]] awaiting<connect_operation> connect(const endpoint& peer,
                                                      const local_binding& from) {
        return awaiting<connect_operation>(*io_backend_, peer, &from);
    }
    /// A temporary would be gone. Name it first.
    awaiting<connect_operation> connect(const endpoint& peer, const local_binding&& from) = delete;
    /// A UDP socket bound to `local` (port 0 for any). Errors are bind(2)'s and setsockopt(2)'s.
    [[nodiscard]] result<datagram> bind_datagram(const endpoint& local,
                                                 const datagram_options& options = {});
    /// A UDP socket at a port of the kernel's choice that receives only from `peer`. It does not
    /// wait: nothing is sent. Errors are connect(2)'s and setsockopt(2)'s.
    [[nodiscard]] result<datagram> connect_datagram(const endpoint& peer,
                                                    const datagram_options& options = {});
    /// Takes over a message socket (UDP, or Unix SOCK_DGRAM, whose senders are known by short names
    /// alone: datagram_message::from) that something else has opened, and changes its O_NONBLOCK
    /// flag as the io-backend needs it. Errors are errc::unsupported on the
    /// simulator, ENOMEM, and the kernel's for that flag, such as EBADF; the socket is closed then.
    [[nodiscard]] result<datagram> adopt_datagram(unique_fd socket);
    /// Takes over a listening stream socket (TCP, or Unix SOCK_STREAM) that something else has
    /// opened, such as systemd (sd_listen_fds(3)). Its descriptor becomes close-on-exec, accepted
    /// TCP sockets have TCP_NODELAY, and the O_NONBLOCK flag is changed as the io-backend needs it,
    /// in all processes that share the socket. They keep listening when this listener is closed,
    /// and a Unix socket's file stays; connections that this one has taken and not accepted are
    /// reset. Errors are errc::unsupported for sockets of other types, such as UDP or
    /// SOCK_SEQPACKET, and on the simulator, EINVAL for one that does not listen, ENOTSOCK, and the
    /// kernel's for those changes, such as EBADF; the descriptor is closed then.
    [[nodiscard]] result<listener> adopt_listener(unique_fd socket);
    /// Takes a connected stream socket over, and changes its O_NONBLOCK flag as the io-backend
    /// needs it. The same for an end of a pipe (pipe.hpp), a FIFO, or a terminal: it gets an open
    /// file description of its own, where /proc gives one, so that others that share the old one (a
    /// shell, a child, another stream) neither see that flag nor can clear it. Elsewhere the flag
    /// is set for all of them until the stream is closed, and checked before each read and write.
    /// errc::unsupported for files, which file.hpp opens, and on the simulator.
    [[nodiscard]] result<stream> adopt(unique_fd from);

    /// Awaits that `fd`, which stays the caller's and open, is readable or has failed; poll(2).
    /// Yields a result<>: errc::cancelled, or the io-backend's error. For descriptors of other
    /// libraries.
    [[nodiscard]] awaiting<poll_operation> wait_readable(int fd) {
        return awaiting<poll_operation>(*io_backend_, fd, readiness::readable);
    }
    /// The same for writable.
    [[nodiscard]] awaiting<poll_operation> wait_writable(int fd) {
        return awaiting<poll_operation>(*io_backend_, fd, readiness::writable);
    }
    /// The same for the end of what comes from a connected stream socket's peer, which has closed
    /// or shut its sending side down (POLLRDHUP), also while bytes before it are unread.
    [[nodiscard]] awaiting<poll_operation> wait_hangup(int fd) {
        return awaiting<poll_operation>(*io_backend_, fd, readiness::hung_up);
    }

    /// Operations in a row that may complete at once before a coroutine waits for the next turn.
    static constexpr std::uint32_t inline_budget = 64;

private:
    struct shuffler;
    friend class executor;
    friend class operation;
    friend class lockable_loop;
    friend class shared_loop_lock;
    friend class loop_lock;
    friend struct file_access;
    friend result<pipe_ends> make_pipe();
    friend struct detail::posted_task_access;
    friend class detail::promise_state;
    loop(const loop_options& options);
    static loop* of_this_thread() noexcept;

    template <class T>
    static task<void> store_result(task<T> root, std::optional<T>& value) {
        value.emplace(co_await std::move(root));
    }
    void run_until_done(task<void> root);
    void run_while_any(const scope& tasks);
    void poll(time_point until);
    bool spin(time_point begin, time_point stop);
    bool poll_adaptively(time_point until);
    void run_ready();
    void run_posted() noexcept;
    void fire_timers() noexcept;
    void read_clock() const noexcept;
    void make_ready(operation& op) noexcept { ready_.push_back(op); }
    /// False when the running coroutine has used up its budget and must queue up.
    bool spend_inline_budget() noexcept {
        if (budget_left_ == 0) return false;
        --budget_left_;
        return true;
    }
    void resume(const operation& op) {
        budget_left_ = inline_budget;
        detail::current_frame_memory = op.frame_memory_;
        op.waiter_.resume();
        detail::current_frame_memory = nullptr;
    }

    std::unique_ptr<io_backend> io_backend_;
    std::unique_ptr<blocking_pool> file_threads_;
    std::size_t most_file_threads_;
    std::size_t most_file_queue_;
    intrusive_list<operation> ready_;
    timer_wheel timers_;
    mutable time_point now_{};
    mutable bool now_is_known_ = false;
    duration spin_;
    bool polling_;
    time_point working_since_{};  // end of the last wait that poll_adaptively() knows
    duration polling_budget_{};   // earned by work, not yet spent on polling
    std::uint32_t vain_polls_ = 0;
    std::uint32_t waits_without_polling_ = 0;
    std::uint32_t budget_left_ = inline_budget;
    std::atomic<posted_work*> posted_{nullptr};
    std::shared_ptr<detail::loop_gate> gate_;
    scope* posted_tasks_ = nullptr;       // tasks of executors; null while the loop does not run
    std::unique_ptr<shuffler> shuffler_;  // sim_options::shuffle
    std::unique_ptr<detail::loop_mutex> mutex_;  // null while it is not lockable
    time_point waits_until_{};                   // as known to loop_lock
};

/// loop::sleep_for() of this thread's loop: `co_await sleep_for(10ms)`. Yields a result<>, whose
/// only error is errc::cancelled.
[[nodiscard]] inline awaiting<sleep_operation> sleep_for(duration time) {
    return loop::current().sleep_for(time);
}
/// The same until a moment on the loop's clock.
[[nodiscard]] inline awaiting<sleep_operation> sleep_until(time_point when) {
    return loop::current().sleep_until(when);
}

namespace detail {
/// As loop::create(), whose error it throws as a std::system_error.
std::unique_ptr<loop> make_loop(const loop_options& options);
}  // namespace detail

/// For a `main`: runs `root` on a loop that lives for this call, and returns its value or throws
/// its exception, as loop::run() does. The thread must have no loop. Throws std::system_error with
/// the error of loop::create() when no loop can be made; `root` never runs then.
template <class T>
T run(task<T> root, const loop_options& options = {}) {
    return detail::make_loop(options)->run(std::move(root));
}

}  // namespace eddy
