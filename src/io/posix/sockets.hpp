// Common parts of the io_uring and epoll io-backends: opening sockets, the speculative inline send,
// and the pool of receive buffers that are lent as leases.
#pragma once

#include <eddy/io/loop.hpp>
#include <eddy/io/stream.hpp>

#include <sys/socket.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <system_error>
#include <vector>

namespace eddy {

/// The file of a bound Unix socket, by its identity: its path may name another file by now.
struct socket_file {
    dev_t device = 0;
    ino_t inode = 0;  ///< 0 for no file, as of abstract names and of other families
};

/// A listening socket, and its file.
struct opened_listener {
    unique_fd socket;
    socket_file file;
    endpoint local;           ///< with the real port, or the path
    bool is_adopted = false;  ///< other processes may listen on it, and keep doing so
};

/// EINVAL for permissions of an abstract Unix socket, which has no file.
result<> check_unix_mode(const endpoint& local, const listen_options& options) noexcept;

/// A listening socket, close-on-exec. TCP sockets have SO_REUSEADDR, and TCP_NODELAY, which
/// accepted sockets inherit. The file of a Unix socket is there once it listens: listen_at_path().
result<opened_listener> open_listener(const endpoint& local, const listen_options& options,
                                      bool nonblocking);
/// The same for a Unix socket of type `socket_type`, such as SOCK_SEQPACKET.
result<opened_listener> open_unix_listener(const endpoint& local, const listen_options& options,
                                           int socket_type, bool nonblocking);

/// A listening stream socket that something else has opened, close-on-exec and with TCP_NODELAY for
/// TCP. errc::unsupported for other types, EINVAL for one that does not listen.
result<opened_listener> adopt_listener(unique_fd socket);

/// The file at the path of a Unix listener; none for abstract names and other families.
socket_file file_of(const endpoint& local) noexcept;

/// Removes the file of a Unix listener bound to `local` if it is still there: another file, or
/// another process's socket, of the same path stays. Before the socket is closed: until then its
/// inode cannot be another file's.
void remove_socket_file(const endpoint& local, const socket_file& file) noexcept;

/// A stream socket for connecting to `peer`, close-on-exec, with TCP_NODELAY for TCP, bound to the
/// local side `from`, which may be null.
result<unique_fd> open_for_connect(const endpoint& peer, const local_binding* from,
                                   bool nonblocking);

/// True for an errno of accept(2) that concerns one connection, which is already gone, and not the
/// listener.
bool concerns_one_connection(int error) noexcept;

/// True for a TCP connection, whose unread bytes can be dropped without a copy (MSG_TRUNC, tcp(7)).
bool is_tcp(int fd) noexcept;

/// Address by which connect(2) dissolves a connection: TCP resets it, a UDP socket has no peer any
/// more.
inline constexpr sockaddr no_peer{.sa_family = AF_UNSPEC, .sa_data = {}};

/// Resets a TCP connection, even if other processes have the socket, too; a close would do so only
/// in the last one. Bytes that the peer has not acknowledged are lost. Other sockets ignore it.
void reset_connection(int fd) noexcept;

/// Drops the bytes received by now, at most max_dropped bytes: closing a TCP socket with unread
/// bytes resets the connection, and the peer may lose what was sent to it (RFC 2525, 2.17).
void drop_unread(int fd) noexcept;
inline constexpr std::size_t max_dropped = 8 * 1024 * 1024;

/// Local address. For a Unix listener and its connections the path: published().
endpoint local_endpoint(int fd) noexcept;
/// Peer's address, also of a connection that the peer has reset.
endpoint peer_endpoint(int fd) noexcept;

/// Most pieces that one system call takes.
inline constexpr std::size_t max_write_pieces = 16;

/// Fills `vectors` with the next pieces of `op`; returns their number.
std::size_t gather(const write_operation& op, struct iovec (&vectors)[max_write_pieces]) noexcept;

/// Most bytes that one write sends in one turn of the loop, however fast its peer reads, so that
/// other connections are served in between.
inline constexpr std::size_t most_bytes_a_turn = 1024 * 1024;

/// Sends without waiting until all is gone (0), the socket is full (EAGAIN), or another errno.
/// EINPROGRESS: most_bytes_a_turn have gone; continue in the next turn.
int send_now(int fd, write_operation& op) noexcept;

/// Sends `head` and a part of `file` without waiting, as stream::try_send_file() does, through a
/// socket that has O_NONBLOCK. Errors are errnos; EAGAIN when nothing went since it is full.
result<std::size_t> send_file_now(int socket, const_bytes head, int file, std::uint64_t offset,
                                  std::size_t size) noexcept;

/// True for a failure of send_file_now() after which the connection is as it was.
bool concerns_file(std::error_code error) noexcept;

/// Receive buffers: `keep` of them are kept, further ones come from the heap and go back to it. At
/// most `most` are lent at one time.
class buffer_pool final : public lease_owner {
public:
    buffer_pool(std::uint32_t keep, std::uint32_t size, std::size_t most) noexcept;
    ~buffer_pool();
    buffer_pool(const buffer_pool&) = delete;
    buffer_pool& operator=(const buffer_pool&) = delete;

    std::uint32_t buffer_size() const noexcept { return size_; }
    /// The most recently returned buffer, since the processor's caches still hold it. Null when
    /// none is available; refusal() has the reason.
    std::byte* take() noexcept;
    /// Reason of the last null of take(): errc::no_buffers or ENOMEM.
    std::error_code refusal() const noexcept;
    /// False once more buffers are out than the pool keeps: the next one may come from the heap.
    bool has_spare() const noexcept { return lent_ < keep_; }
    /// `offset`: how far `data` lies behind the buffer's begin.
    void give_back(std::byte* data, std::uint32_t offset) noexcept override;
    lease lend(std::byte* buffer, std::size_t size, std::uint32_t offset = 0) noexcept {
        return {*this, buffer + offset, static_cast<std::uint32_t>(size), offset};
    }

private:
    std::uint32_t keep_;
    std::uint32_t size_;
    std::size_t most_;
    std::size_t lent_ = 0;
    std::vector<std::byte*> free_;
};

/// Larger receive buffers, for streams whose bytes keep filling whole ones: so few a loop, of so
/// many ordinary sizes each. Bytes that come in few pieces are cut, copied and answered less often.
inline constexpr std::uint32_t large_buffer_count = 4;
inline constexpr std::uint32_t large_buffer_factor = 8;
static_assert(loop_options::max_buffer_size <= UINT32_MAX / large_buffer_factor);

/// Decision for a large buffer in a stream's next read, by how its last reads filled ordinary ones.
class fill_score {
public:
    bool wants_large() const noexcept { return score_ >= enough; }
    void note(std::size_t received, std::size_t ordinary_size) noexcept {
        if (received >= ordinary_size)
            score_ = static_cast<std::uint8_t>(score_ < most ? score_ + 1 : most);
        else if (score_ > 0)
            --score_;
    }

private:
    static constexpr std::uint8_t enough = 3;
    static constexpr std::uint8_t most = 6;
    std::uint8_t score_ = 0;
};

class io_backend;

/// True if a stream over `fd` needs read(2) and write(2): all but sockets. errc::unsupported for
/// descriptors that are always ready, such as files.
result<bool> is_pipe_like(int fd) noexcept;

/// Origin of an end of a pipe.
enum class pipe_origin : std::uint8_t {
    own,      ///< private: made here, non-blocking
    foreign,  ///< others, in this process or another, may share its open file description
};

/// An io-backend's drivers. One whose handle was closed may exist for a while: until its last
/// completion.
struct driver_counts {
    std::size_t existing = 0;
    std::size_t open = 0;
};

/// A driver for a pipe, FIFO or terminal over an io-backend's readiness polls. `drivers` counts it
/// while it exists: after close() that is until its last poll has ended, which the io-backend must
/// outlive.
result<stream> make_posix_pipe(io_backend& where, buffer_pool& buffers, driver_counts& drivers,
                               unique_fd fd, pipe_origin origin);

}  // namespace eddy
