// Shared-memory connections for threads of their own, without a loop: calls that return at once,
// and calls that wait by spinning and then by sleeping. The other side may be one of these, a
// stream of shm.hpp, or the Java library.
//
//     const auto sent = ends->first.write_all(as_bytes("ping"));
//     const auto got = ends->first.read_exactly(reply);
//
// After fork(2), connections and acceptors stay the parent's. In the child all calls of its copies
// fail with errc::closed, and destroying one closes the child's descriptors and mappings alone; a
// child that keeps its copies delays the notice of the parent's death. A child can make others, and
// accept() at a copy of an acceptor on which its parent has never called it. Children of clone(2)
// and _Fork(3) must not touch their copies.
#pragma once

#include <eddy/base/bytes.hpp>
#include <eddy/base/result.hpp>
#include <eddy/io/timer.hpp>
#include <eddy/shm/shm.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace eddy::shm {

/// A thread's way to wait for its peer.
enum class waiting : std::uint8_t {
    /// Spin while that has paid off lately, at most max_spin; then sleep. No spinning where it
    /// would keep the peer from running: with one processor, under a CPU quota, and while both run
    /// on the same one.
    adaptive,
    spin,   ///< never sleep: the lowest latency, for a processor
    sleep,  ///< sleep at once
};

/// Longest spin before a sleep, about twice what a wake-up costs on other processors.
inline constexpr duration max_spin = std::chrono::microseconds(50);

/// Options of both sides; what concerns a listener has no effect on the other one.
struct connection_options : listen_options {
    /// Default of both sides.
    waiting wait = waiting::adaptive;
    /// At most so many flushes that the peer has not read; 0 for no limit. try_write() takes
    /// nothing beyond it, and write_all() waits.
    std::size_t max_packets = 0;
};

/// Longest queue of packets.
inline constexpr std::size_t most_packets = 1024 * 1024;

struct connection_state;

/// A connection. One thread may read while another one writes; close(), abort() and is_open() are
/// for any thread. It must outlive the calls of other threads. Errors of all of them: errc::closed
/// after close(); ECONNRESET, from reading after everything was read, if the peer died or broke the
/// protocol; EPIPE from writing to a peer that is gone.
class connection {
public:
    /// Without a connection: every call is errc::closed.
    connection() noexcept;
    /// `other` is without a connection afterwards.
    connection(connection&& other) noexcept;
    /// Closes its own connection first. `other` is without a connection afterwards.
    connection& operator=(connection&& other) noexcept;
    /// Closes it.
    ~connection();

    /// Connects to a listener at `path`: a file, "@name", or a port, ":4242". Errors as
    /// shm::connect()'s.
    [[nodiscard]] static result<connection> connect(std::string_view path,
                                                    const connection_options& wanted = {});
    /// Both ends of one within this process, for two threads. Errors are EINVAL, and the system's
    /// of connect().
    [[nodiscard]] static result<std::pair<connection, connection>> pair(
        const connection_options& wanted = {});

    /// True until close(), if there is a connection.
    bool is_open() const noexcept;

    // ---- reading: one thread

    /// Copies what has arrived, without waiting; 0 while nothing has. errc::end_of_stream once the
    /// peer has finished and everything was read.
    [[nodiscard]] result<std::size_t> try_read(mutable_bytes into) noexcept;
    /// Waits for bytes, at most for `limit`: errc::timed_out. Yields at least 1, but 0 if `into` is
    /// empty.
    [[nodiscard]] result<std::size_t> read_some(mutable_bytes into,
                                                duration limit = duration::max()) noexcept;
    /// Waits until `into` is full. errc::truncated if the peer finished in the middle; after
    /// errc::timed_out, which counts for all of it, the bytes so far are lost.
    [[nodiscard]] result<> read_exactly(mutable_bytes into,
                                        duration limit = duration::max()) noexcept;
    /// The bytes that have arrived, where they lie; empty while there are none. They stay valid
    /// until consume(). A peer that is not trusted may change them. errc::unsupported over the
    /// socket.
    [[nodiscard]] result<const_bytes> peek() noexcept;
    /// The same, waiting for at least one.
    [[nodiscard]] result<const_bytes> peek_some(duration limit = duration::max()) noexcept;
    /// Gives the first bytes of peek() back.
    void consume(std::size_t size) noexcept;
    /// Bytes that can be read without waiting, also over the socket.
    std::size_t available() noexcept;

    // ---- writing: one thread

    /// Writes as many bytes as there is room for, without waiting, and flushes; 0 when full. Errors
    /// are those of all calls; so they are below.
    [[nodiscard]] result<std::size_t> try_write(const_bytes bytes) noexcept;
    /// Writes all of them and flushes, waiting for room, at most for `limit`: errc::timed_out, and
    /// some have gone.
    [[nodiscard]] result<> write_all(const_bytes bytes, duration limit = duration::max()) noexcept;
    /// Room to write to, where the peer will read it; empty while full or over the socket. Followed
    /// by append(). Errors are try_write()'s.
    [[nodiscard]] result<mutable_bytes> room() noexcept;
    /// Adds the first bytes of room() to the next flush(). All of them must have been written: a
    /// peer ends a connection with pages that never were.
    void append(std::size_t size) noexcept;
    /// Publishes the appended bytes to the peer: one packet. Errors are try_write()'s.
    [[nodiscard]] result<> flush() noexcept;
    /// No more bytes follow. What was appended is flushed. Errors are errc::closed, and
    /// shutdown(2)'s over the socket.
    [[nodiscard]] result<> shutdown_write() noexcept;

    // ---- any thread

    /// Flushes, and ends all waits of this side. The peer reads what was written before it sees the
    /// end, which is ECONNRESET if this cuts off a write of another thread. The memory stays mapped
    /// until this object dies.
    void close() noexcept;
    /// As close() without the end: the peer reads what was flushed, then ECONNRESET, so that it
    /// does not take a message that broke off for a whole one. Without shared memory as close().
    void abort() noexcept;

    /// True if the bytes go over shared memory, and not over the socket.
    bool shares_memory() const noexcept;
    /// The connection's socket, for options and the peer's credentials. The connection keeps it.
    int native_handle() const noexcept;

private:
    friend class acceptor;
    explicit connection(std::unique_ptr<connection_state> made) noexcept;
    bool is_usable() const noexcept;
    std::unique_ptr<connection_state> state_;
};

/// Listener for connections. One thread accepts; close() is for any thread. From the first accept()
/// on, a thread of its own ("eddy-shm-accept") makes the handshakes, also while the server does
/// other things: at most max_waiting_connections are in their handshake or wait for accept().
class acceptor {
public:
    /// Listens nowhere: accept() is errc::closed.
    acceptor() noexcept;
    /// `other` listens nowhere afterwards.
    acceptor(acceptor&& other) noexcept;
    /// Ends its own listening first. `other` listens nowhere afterwards.
    acceptor& operator=(acceptor&& other) noexcept;
    /// Ends listening, waits for the end of its thread, and removes the socket's file.
    ~acceptor();

    /// Listens at `path`: a file, "@name", or a port, ":4242". Errors as shm::listen()'s.
    [[nodiscard]] static result<acceptor> listen(std::string_view path,
                                                 const connection_options& wanted = {});
    /// Takes a connection with a completed handshake, in the order of their completion, or waits
    /// for one; errc::timed_out, errc::closed, accept(2)'s errors during the wait, and those of
    /// starting a thread. Peers that fail, stall or may not connect are closed and do not end the
    /// wait; beyond max_waiting_connections stalled peers, as in shm::listen().
    [[nodiscard]] result<connection> accept(duration limit = duration::max());
    /// Ends accept() and listening. Connections that wait for accept() are reset.
    void close() noexcept;
    /// The port at which it listens, also the one found for ":0"; 0 without one.
    std::uint16_t port() const noexcept;
    /// Connections that failed before accept().
    std::uint64_t failures() const noexcept;

private:
    struct state;
    explicit acceptor(std::shared_ptr<state> made) noexcept;
    void end() noexcept;
    std::shared_ptr<state> state_;
};

}  // namespace eddy::shm
