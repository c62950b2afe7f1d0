// Streams over shared memory between processes of one machine: shm://.
//
// Each side writes a ring of its own, which the other one can only read. A Unix socket beside them
// wakes a sleeping side and reports the other's end: layout.h has the protocol. The stream falls
// back to the socket itself, with the same behaviour, for a peer that cannot share memory, and when
// this process is out of descriptors or mappings.
//
// This header has streams of a loop; connection.hpp has the same for threads without a loop, which
// may spin.
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/io/stream.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// Sockets over shared memory. One loop's thread for everything here.
namespace eddy::shm {

/// Least bytes of a ring.
inline constexpr std::size_t min_ring_size = 64 * 1024;
/// Most bytes of a ring.
inline constexpr std::size_t max_ring_size = 1024 * 1024 * 1024;

/// At most so many connections of one listener are in their handshake or wait for accept(). At the
/// limit a new connection ends the oldest handshake of the process that has the most; while all of
/// them wait for accept(), no more are accepted.
inline constexpr std::size_t max_waiting_connections = 128;

/// Options of both sides.
struct options {
    /// Bytes that may be sent and not yet read, a power of two from min_ring_size to max_ring_size;
    /// the other side chooses its own. Memory is used as far as bytes have been written to it.
    std::size_t ring_size = 256 * 1024;
    /// Publish without a fence where the peer allows it, too: a side that goes to sleep then pays
    /// for both with a system call (membarrier(2)). For senders of very many small messages.
    bool asymmetric_fence = false;
    /// False: the bytes go over the Unix socket. For tests and comparisons.
    bool share_memory = true;
    /// Time for the exchange of the first messages; of a connecting side, with the wait for room in
    /// the listener's backlog.
    duration handshake_timeout = std::chrono::seconds(5);
    /// For a connecting side: effective users whose server it accepts; if empty, its own user and
    /// root. Any process may take the name of a server that does not run.
    std::vector<uid_t> server_users = {};
    /// First position of the own ring: a number below 2^63, else EINVAL.
    std::uint64_t first_position = 0;
};

/// Options of a listener.
struct listen_options : options {
    /// Permissions of the socket's file; unix(7). An abstract name ("@name") has none:
    /// `allowed_users` are checked in both cases.
    int mode = 0600;
    /// Effective users that may connect; if empty, its own user and root.
    std::vector<uid_t> allowed_users = {};
};

/// Port of the path of a listener at one, such as listener::local() of ":0" has it; 0 for other
/// paths.
std::uint16_t port_of(std::string_view path) noexcept;

/// Listens on the running loop at `path`: a file, "@name", or ":4242". The last is port 4242 of
/// this process's user, by the name that layout.h describes; port 0 is any free one, which
/// port_of() yields. Errors of a port are errc::bad_address. Yields streams with a completed
/// handshake. One that stalls does not delay the others; one that fails is closed and counted by
/// failed_handshakes(). EINVAL for an invalid ring size or first position, else as
/// unix_socket::listen(); errc::unsupported on the simulator, which shares no memory.
[[nodiscard]] result<listener> listen(std::string_view path, const listen_options& wanted = {});

/// The part below: yields plain Unix streams, for accept_over(). Errors are
/// unix_socket::listen()'s.
[[nodiscard]] result<listener> listen_plain(std::string_view path,
                                            const eddy::listen_options& wanted = {});

/// Connections to a listener of listen() that never became streams: by users that may not connect,
/// by peers that broke the protocol, or too late. 0 for other listeners.
std::uint64_t failed_handshakes(const listener& of) noexcept;

/// Connects to a `path` as listen() has it; of a port to the first of `server_users` that serves
/// it. Yields a result<stream>: unix_socket::connect()'s errors, errc::timed_out,
/// EACCES for a server of a user that is not one of `server_users`, errc::malformed for one of
/// another protocol, errc::truncated for one that closes, EMFILE and ENOMEM.
task<result<stream>> connect(std::string path, options wanted = {});

/// Makes the handshake over a Unix stream that was connected (or accepted), from which nothing was
/// read: for servers that accept in one place and serve in another. Yields a result<stream>: errors
/// are connect()'s, EACCES for a peer that is not one of `allowed_users`, as in listen_options.
task<result<stream>> accept_over(stream plain, listen_options wanted);

/// The bytes to read, in place: no copy. For streams of this header on which no read waits; other
/// streams, and streams over their socket, fail with errc::unsupported. The view stays valid until
/// consume(). It is the peer's memory: a peer that is not trusted may change it at any time. Empty
/// while there are no bytes; errc::end_of_stream once none will follow.
[[nodiscard]] result<const_bytes> peek(const stream& of) noexcept;
/// Frees the first `size` bytes of peek(); at most as many as peek() yielded.
void consume(const stream& of, std::size_t size) noexcept;

}  // namespace eddy::shm
