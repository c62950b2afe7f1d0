// Streams over shared memory between processes of one machine: shm://.
//
// Each side writes a ring of its own, which the other one can only read, and a Unix socket beside
// them wakes the side that sleeps and reports the other's end: layout.h has the protocol. A peer
// that cannot share memory is served over the socket itself, and the stream looks the same; so it
// is where this process has no descriptors or mappings left for more.
//
// Here are streams of a loop; connection.hpp has the same for threads of their own, which need no
// loop and may spin.
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

/// Bytes of a ring at least.
inline constexpr std::size_t min_ring_size = 64 * 1024;
/// And at most.
inline constexpr std::size_t max_ring_size = 1024 * 1024 * 1024;

/// Connections whose handshake is under way, and those that wait for accept(), of one listener. At
/// the limit one more ends the oldest handshake of the process that has most of them under way; no
/// more are accepted while all wait for accept().
inline constexpr std::size_t max_waiting_connections = 128;

/// Options of both sides.
struct options {
    /// Bytes that may be sent and not yet read, a power of two from min_ring_size to max_ring_size;
    /// the other side chooses its own. Memory is used as far as bytes have been written to it.
    std::size_t ring_size = 256 * 1024;
    /// Whether publishing needs no fence where the peer allows it, too: a side that goes to sleep
    /// pays for both with a system call (membarrier(2)). For senders of very many small messages.
    bool asymmetric_fence = false;
    /// False: the bytes go over the Unix socket. For tests and comparisons.
    bool share_memory = true;
    /// Time for the exchange of the first messages.
    duration handshake_timeout = std::chrono::seconds(5);
    /// Of a connecting side: effective users whose server it connects to; the own one and root if
    /// it is empty. Any process may take the name of a server that does not run.
    std::vector<uid_t> server_users = {};
    /// Where the positions of the own ring begin: a number below 2^63. Others are EINVAL.
    std::uint64_t first_position = 0;
};

/// Options of a listener.
struct listen_options : options {
    /// Permissions of the socket's file; unix(7). An abstract name ("@name") has none:
    /// `allowed_users` are checked in both cases.
    int mode = 0600;
    /// Effective users that may connect; the own one and root if it is empty.
    std::vector<uid_t> allowed_users = {};
};

/// Listens on the running loop at `path`, a file or "@name". Yields streams whose handshake is
/// over; one that stalls holds up no other, and one that fails is closed and counted by
/// failed_handshakes(). EINVAL for a ring size or a first position that cannot be, else as
/// unix_socket::listen(); errc::unsupported on the simulator, which shares no memory.
[[nodiscard]] result<listener> listen(std::string_view path, const listen_options& wanted = {});

/// Connections to a listener of listen() that never became streams: by users that may not connect,
/// by peers that broke the protocol, or too late. 0 for other listeners.
std::uint64_t failed_handshakes(const listener& of) noexcept;

/// Connects. Yields a result<stream>: unix_socket::connect()'s errors, errc::timed_out,
/// EACCES for a server of a user that is not one of `server_users`, errc::malformed for one of
/// another protocol, errc::truncated for one that closes, EMFILE and ENOMEM.
task<result<stream>> connect(std::string path, options wanted = {});

/// Makes the handshake over a Unix stream that was connected (or accepted), from which nothing was
/// read: for servers that accept in one place and serve in another. Yields a result<stream>: errors
/// are connect()'s, EACCES for a peer that is not one of `allowed_users`, as in listen_options.
task<result<stream>> accept_over(stream plain, listen_options wanted);

/// The connection's bytes to read, where they lie, and how many are used up: no copy. For streams
/// of this header on which no read waits; others are errc::unsupported, as are those that go over
/// their socket. The view stays valid until consume(); it is the peer's memory, which a peer that
/// is not trusted may change at any time. Empty while there are none, errc::end_of_stream once none
/// will follow.
[[nodiscard]] result<const_bytes> peek(const stream& of) noexcept;
/// Gives the room of the first `size` bytes of peek() back. At most as many as peek() yielded.
void consume(const stream& of, std::size_t size) noexcept;

}  // namespace eddy::shm
