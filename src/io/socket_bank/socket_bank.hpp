// Socket bank: connected stream sockets that are only written to, possibly many more than a process
// may have open files. On io_uring they are direct descriptors, which do not count as open files
// and take 18 bytes each here; on epoll plain descriptors; in the simulator streams.
#pragma once

#include <eddy/base/bytes.hpp>
#include <eddy/base/result.hpp>
#include <eddy/base/unique_fd.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/stream.hpp>

#include <cstdint>
#include <memory>

namespace eddy {

/// Options of socket_bank::open().
struct socket_bank_options {
    /// Most sockets of a bank.
    static constexpr std::uint32_t max_capacity = (1U << 24) - 1;

    /// At most so many sockets at one time, 1 to max_capacity; one more fails with
    /// errc::limit_reached. A socket counts until its on_closed().
    std::uint32_t capacity = 0;
    /// io_uring: at most so many direct descriptors of one ring; 0 for as many as the kernel
    /// allows, which is the soft limit of open files. The bank makes a further ring when all are
    /// full.
    std::uint32_t table_size = 0;
    /// io_uring: false takes plain descriptors and epoll all the same.
    bool direct_descriptors = true;
    /// close() shuts the sending side down first, so that the peer sees the end even while another
    /// process shares the description. On io_uring a thread of the kernel does it, which costs some
    /// microseconds.
    bool shuts_down = false;
};

/// Observer of the sockets of a bank, which it must outlive. All calls come from flush() or from
/// the loop's own turn, never from add(), write() or close(). They may call every function of the
/// bank but not destroy it; flush() does nothing there, since operations that they begin go to the
/// kernel after their return. A coroutine that one of them continues must be completed later
/// (operation::complete_later()).
class bank_observer {
public:
    /// The last write has ended: 0, or a negative errno after which it is unknown how many of its
    /// bytes went out. Its bytes are the caller's again.
    virtual void on_written(std::uint32_t slot, int result) noexcept = 0;
    /// The peer has closed, shut down its sending side, or reset the connection; or the socket
    /// failed. Once a slot. Writes may still succeed; the slot stays until close().
    virtual void on_hangup(std::uint32_t slot) noexcept = 0;
    /// After close(): the kernel no longer uses this slot, and add() may return its number again,
    /// also inside this call.
    virtual void on_closed(std::uint32_t slot) noexcept = 0;

protected:
    ~bank_observer() = default;
};

/// Sockets under small slot numbers: 0 is the first, and a closed socket's number is the next to be
/// assigned. Writes are batched: write() queues one, flush() passes all queued ones to the kernel.
/// One loop's thread; the bank must not outlive its loop.
class socket_bank {
public:
    using observer = bank_observer;

    /// A bank on loop::current(), with direct descriptors where the kernel has them. EINVAL for
    /// options out of their range; other errors are those of epoll_create1(2) and mmap(2).
    [[nodiscard]] static result<std::unique_ptr<socket_bank>> open(
        const socket_bank_options& options, observer& to);
    [[nodiscard]] static result<std::unique_ptr<socket_bank>> open(std::uint32_t capacity,
                                                                   observer& to) {
        socket_bank_options options;
        options.capacity = capacity;
        return open(options, to);
    }

    /// Closes all sockets at once, without on_closed(), and drops writes that have not ended; their
    /// bytes are the caller's again. A socket with unread input is reset.
    virtual ~socket_bank() = default;
    socket_bank(const socket_bank&) = delete;
    socket_bank& operator=(const socket_bank&) = delete;

    /// Implementation in use: uring with direct descriptors, epoll, or sim.
    virtual io_backend_kind kind() const noexcept = 0;

    /// Takes a connected stream socket over and returns its slot. The open file description, which
    /// another process may share, keeps its flags (O_NONBLOCK). errc::limit_reached at capacity,
    /// errc::unsupported in the simulator; else ENOMEM, EMFILE when a new ring finds no descriptor,
    /// or the errors of epoll_ctl(2). After a failure it is closed.
    [[nodiscard]] virtual result<std::uint32_t> add(unique_fd socket) = 0;
    /// The same for a simulated stream; errc::unsupported elsewhere. Bytes from the peer are read
    /// and dropped.
    [[nodiscard]] virtual result<std::uint32_t> add(stream connection) = 0;

    /// Begins to write all of `bytes`, at least one, which must stay valid until on_written(), or
    /// on_closed() after close(). One write of a slot at a time. It waits for room by itself.
    virtual void write(std::uint32_t slot, const_bytes bytes) = 0;
    /// Passes queued writes and closes to the kernel, and reports completed ones. Without it that
    /// happens in the loop's next turn.
    virtual void flush() = 0;
    /// Closes the socket. Written bytes reach the peer, even if bytes of the peer are unread (these
    /// are dropped, so that TCP does not reset the connection); an unfinished write is cut off.
    /// From now on only on_closed() comes for this slot. A description that another process shares
    /// stays open there, and so does the connection unless socket_bank_options::shuts_down.
    virtual void close(std::uint32_t slot) = 0;
    /// As close(), but a TCP connection is reset: the peer sees an error instead of an end, also
    /// while another process shares the description, and may lose the last bytes. For content that
    /// is delimited by the end of its connection, and broke off. Other sockets are closed.
    virtual void reset(std::uint32_t slot) = 0;

    /// Sockets that count against the capacity.
    virtual std::uint32_t size() const noexcept = 0;

protected:
    socket_bank() = default;
};

}  // namespace eddy
