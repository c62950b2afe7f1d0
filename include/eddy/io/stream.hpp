// stream and listener: a connection and an accepting socket over any carrier (TCP, a Unix socket,
// TLS, a pipe, the simulator). Message sockets are in datagram.hpp.
//
// Handles are move-only values; behind each stands a driver, an abstract class that the io-backends
// implement. Closing a handle cancels the waits of its coroutines; the driver frees itself after
// its last completion. One loop's thread for everything here.
#pragma once

#include <eddy/base/assert.hpp>
#include <eddy/base/bytes.hpp>
#include <eddy/base/result.hpp>
#include <eddy/base/unique_fd.hpp>
#include <eddy/io/endpoint.hpp>
#include <eddy/io/lease.hpp>
#include <eddy/io/operation.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace eddy {

class stream_driver;
class listener_driver;
class stream;

/// Waits for received bytes: into `into` when that is not empty, else as a lease.
class read_operation : public operation {
public:
    read_operation(stream_driver& driver, mutable_bytes into) noexcept
        : driver_(&driver), into_(into) {}

    mutable_bytes into() const noexcept { return into_; }
    /// For a driver that passes it on, before it starts: it is `other`'s from now on.
    void pass_to(stream_driver& other) noexcept { driver_ = &other; }
    /// True when it has taken as many bytes as a turn of the loop allows: its driver must then wait
    /// for the next turn, even if more bytes are there.
    bool had_its_share() const noexcept { return had_its_share_; }
    void set_received(lease received) noexcept { received_ = std::move(received); }
    /// One read of the kernel brings less than 2 GiB, read(2).
    void set_size(std::size_t size) noexcept {
        EDDY_ASSERT(size <= UINT32_MAX);
        size_ = static_cast<std::uint32_t>(size);
    }
    void set_error(std::error_code error) noexcept final { error_ = error; }

protected:
    ~read_operation() = default;
    stream_driver* driver_;
    mutable_bytes into_;
    lease received_;
    std::error_code error_;
    std::uint32_t size_ = 0;
    bool had_its_share_ = false;

    bool start() override;

private:
    void on_cancel() noexcept final;
};

class read_lease_operation final : public read_operation {
public:
    /// select() takes it.
    using keeps_when_withdrawn = void;

    explicit read_lease_operation(stream_driver& driver) noexcept : read_operation(driver, {}) {}
    result<lease> take_result() noexcept {
        if (error_) return fail(error_);
        return std::move(received_);
    }
};

class read_some_operation final : public read_operation {
public:
    /// select() takes it.
    using keeps_when_withdrawn = void;

    using read_operation::read_operation;
    result<std::size_t> take_result() const noexcept {
        if (error_) return fail(error_);
        return size_;
    }
};

/// Reads until `into` is full. For its driver it is one read after another.
class read_exactly_operation final : public read_operation {
public:
    read_exactly_operation(stream_driver& driver, mutable_bytes into, std::size_t* received)
        : read_operation(driver, into), received_size_(received) {
        if (received) *received = 0;
    }
    result<> take_result() const noexcept {
        if (!error_) return {};
        if (error_ == errc::end_of_stream && total_ > 0) return fail(errc::truncated);
        return fail(error_);
    }

    /// Most bytes, and most reads, of one turn of the loop where a stream has them at once.
    static constexpr std::size_t most_bytes_a_turn = 1024 * 1024;
    static constexpr std::uint32_t most_reads_a_turn = 64;

private:
    bool start() override;
    bool goes_on() override;
    void count() noexcept;

    std::size_t* received_size_;
    std::size_t total_ = 0;
    std::size_t bytes_this_turn_ = 0;
    std::uint32_t reads_this_turn_ = 0;
};

/// Waits until every byte of its pieces went to the kernel, or an error.
class write_operation final : public operation {
public:
    write_operation(stream_driver& driver, const_bytes bytes) noexcept
        : driver_(&driver), single_(bytes), pieces_(&single_), count_(1) {}
    write_operation(stream_driver& driver, std::span<const const_bytes> pieces) noexcept
        : driver_(&driver), pieces_(pieces.data()), count_(pieces.size()) {}

    /// For a driver that passes it on, before it starts: it is `other`'s from now on.
    void pass_to(stream_driver& other) noexcept { driver_ = &other; }
    /// The pieces not yet fully written. Its first piece is without the bytes already written.
    std::size_t pieces_left() const noexcept { return count_; }
    const_bytes piece(std::size_t index) const noexcept {
        return index == 0 ? pieces_[0].subspan(offset_) : pieces_[index];
    }
    /// Counts `size` more bytes as written. True when nothing is left.
    bool advance(std::size_t size) noexcept;

    void set_error(std::error_code error) noexcept override { error_ = error; }
    result<> take_result() const noexcept {
        if (error_) return fail(error_);
        return {};
    }

private:
    bool start() override;
    void on_cancel() noexcept override;

    stream_driver* driver_;
    const_bytes single_;
    const const_bytes* pieces_;
    std::size_t count_;
    std::size_t offset_ = 0;
    std::error_code error_;
};

/// Driver of a stream: the io-backend's half. At most one read and one write wait at a time. One
/// loop's thread.
class stream_driver {
public:
    /// True when `op` completed at once, with its result stored.
    virtual bool start(read_operation& op) = 0;
    virtual bool start(write_operation& op) = 0;
    /// Takes as many bytes as it can without waiting, and says how many; 0 while a write waits.
    [[nodiscard]] virtual result<std::size_t> try_write(const_bytes bytes) noexcept;
    /// As stream::try_send_file(). A driver that copies the bytes anyway does not override it.
    [[nodiscard]] virtual result<std::size_t> try_send_file(const_bytes head, int file,
                                                            std::uint64_t offset,
                                                            std::size_t size) noexcept;
    /// Ends the wait of `op` as soon as its buffers are no longer in use.
    virtual void cancel(read_operation& op) noexcept = 0;
    virtual void cancel(write_operation& op) noexcept = 0;
    [[nodiscard]] virtual result<> shutdown_write() noexcept = 0;
    virtual endpoint local() const noexcept = 0;
    virtual endpoint peer() const noexcept = 0;
    /// As stream::may_have_input(). A driver that does not override it cannot say.
    virtual bool may_have_input() const noexcept { return true; }
    /// The socket, still owned by the driver; -1 where there is none (the simulator).
    virtual int native_handle() const noexcept = 0;
    /// The socket at the bottom, to set its options and nothing else; -1 where there is none. A
    /// layer above another stream has no descriptor of its own, and passes this one on.
    virtual int option_handle() const noexcept { return native_handle(); }
    /// Receives no more from the kernel, for good: reads yield the bytes that have come, and then
    /// fail with errc::closed. Before stream::detach(), so that no byte stays here. False where a
    /// stream cannot be moved, such as TLS.
    virtual bool end_receiving() noexcept { return false; }
    /// The handle is gone: release everything, after the last completion.
    virtual void close() noexcept = 0;
    /// As close(), but the peer sees a reset instead of an end: stream::abort(). A driver without
    /// one does not override it.
    virtual void abort() noexcept { close(); }

protected:
    ~stream_driver() = default;
};

/// The driver of every stream without a connection: each operation ends with errc::closed.
stream_driver& closed_stream_driver() noexcept;

/// A connected byte stream. Its handle may move while operations wait: they know the driver.
/// Without a connection, and once closed, every operation fails with errc::closed. One loop's
/// thread.
class stream {
public:
    stream() noexcept : driver_(&closed_stream_driver()) {}
    /// For factories of streams: the handle of `driver`, whose end closes the driver.
    explicit stream(stream_driver& driver) noexcept : driver_(&driver) {}
    /// `other` is closed afterwards; waits continue.
    stream(stream&& other) noexcept
        : driver_(std::exchange(other.driver_, &closed_stream_driver())) {}
    /// Closes its own connection first. `other` is closed afterwards; its waits continue.
    stream& operator=(stream&& other) noexcept {
        if (this != &other) {
            close();
            driver_ = std::exchange(other.driver_, &closed_stream_driver());
        }
        return *this;
    }
    ~stream() { close(); }

    /// True until close(). The peer may be gone all the same.
    explicit operator bool() const noexcept { return driver_ != &closed_stream_driver(); }

    /// Awaits the next received bytes. Yields a result<lease> on one of the loop's buffers: no
    /// copy. Fails with errc::end_of_stream when the peer finished sending, errc::cancelled, or the
    /// socket's error; with errc::no_buffers while so many leases are held that there may be no
    /// more (loop_options::max_spare_buffers).
    awaiting<read_lease_operation> read() { return awaiting<read_lease_operation>(*driver_); }
    /// Awaits at least one byte into `into`, which must live until completion and not be empty.
    /// Yields how many came, a result<std::size_t>, never 0. Errors as with read(), but for
    /// errc::no_buffers: it needs none.
    awaiting<read_some_operation> read_some(mutable_bytes into) {
        EDDY_PRECONDITION(!into.empty(),
                          "read_some() into an empty span: it has to hold at least one byte");
        return awaiting<read_some_operation>(*driver_, into);
    }
    /// Awaits until `into` is full; it must live until completion. An empty one is full at once.
    /// Yields a result<>: errc::end_of_stream when the peer had finished before the first byte,
    /// errc::truncated when it finished in the middle, errc::cancelled, or the socket's error.
    /// `received`, if given, must live as long and says also after an error how many bytes came:
    /// they are the first of `into`, and the next read begins behind them.
    awaiting<read_exactly_operation> read_exactly(mutable_bytes into,
                                                  std::size_t* received = nullptr) {
        return awaiting<read_exactly_operation>(*driver_, into, received);
    }
    /// Awaits until the kernel took every byte. The bytes must live until completion. Yields a
    /// result<>: EPIPE or ECONNRESET once the peer has gone (never SIGPIPE), errc::cancelled, or
    /// another error of the socket; it is unknown then how many bytes went out.
    awaiting<write_operation> write_all(const_bytes bytes) {
        return awaiting<write_operation>(*driver_, bytes);
    }
    /// The same for text.
    awaiting<write_operation> write_all(std::string_view text) { return write_all(as_bytes(text)); }
    /// The same for several pieces in order, in as few system calls as possible. The array of
    /// pieces must live until completion, too.
    awaiting<write_operation> write_all(std::span<const const_bytes> pieces) {
        return awaiting<write_operation>(*driver_, pieces);
    }
    /// Bytes of a temporary would be gone while they are written, unless the whole wait is one
    /// expression, and some compilers end it too early even then. Name it first.
    template <owning_temporary Bytes>
    awaiting<write_operation> write_all(Bytes&& bytes) = delete;

    /// Writes as many of the bytes as go without waiting, and returns how many; 0 when none do, or
    /// while a write waits. The bytes are the caller's again when it returns. Fails with EPIPE or
    /// ECONNRESET once the peer has gone, errc::closed, or another error of the socket; what TLS
    /// adds to that is in tls.hpp.
    [[nodiscard]] result<std::size_t> try_write(const_bytes bytes) noexcept {
        return driver_->try_write(bytes);
    }

    /// Most bytes of a file that one try_send_file() sends, so that other streams are served in
    /// between.
    static constexpr std::size_t max_sent_of_file = 256 * 1024;
    /// Writes `head`, then `size` bytes of the regular file of the descriptor `file` from `offset`
    /// on, as far as they go without waiting for room, and says how many bytes went, those of
    /// `head` first; 0 when none do, or while a write waits. Both are the caller's again when it
    /// returns. The file's pages are not copied (sendfile(2)): what is written to them before the
    /// peer has them may be sent instead. What is not in memory it reads from the disk, and the
    /// loop waits. After an error nothing went: errc::unsupported where the stream would copy (TLS,
    /// the simulator, pipes, a ring with loop_options::sqpoll) or the file cannot be sent this way,
    /// errc::truncated when it ends at `offset` or before, and try_write()'s.
    [[nodiscard]] result<std::size_t> try_send_file(const_bytes head, int file,
                                                    std::uint64_t offset,
                                                    std::size_t size) noexcept {
        return driver_->try_send_file(head, file, offset, size);
    }

    /// False if nothing has come since the last read, neither bytes nor an end, as far as the loop
    /// has noticed: a read would wait. True also where the stream cannot say, such as before the
    /// first read. It costs no system call.
    bool may_have_input() const noexcept { return driver_->may_have_input(); }

    /// Signals to the peer that no more bytes follow; shutdown(2), whose errors these are, such as
    /// ENOTCONN. errc::closed, and errc::unsupported for pipes and terminals.
    [[nodiscard]] result<> shutdown_write() noexcept { return driver_->shutdown_write(); }
    /// Closes the connection: the peer reads what was written, then the end. Waits of its
    /// coroutines end with errc::cancelled. The destructor does the same. TLS and shared memory
    /// signal no end after a write that was cut off.
    void close() noexcept { std::exchange(driver_, &closed_stream_driver())->close(); }
    /// Closes the connection by a reset, so that the peer does not take a message that broke off
    /// for a whole one, and may lose what was written last. TCP sends RST, also while other
    /// processes have the socket; TLS sends no close_notify; over shared memory the peer reads what
    /// was written, then ECONNRESET. Unix sockets and pipes have no reset: as close(), and the peer
    /// of a Unix socket sees ECONNRESET only where bytes that it sent were not read.
    void abort() noexcept { std::exchange(driver_, &closed_stream_driver())->abort(); }

    /// Gives the connection to another loop: yields a descriptor for its adopt(), and closes this
    /// stream. Only before the first read and after the last write: bytes that came would stay
    /// here. Errors are fcntl(2)'s, EBADF in the simulator; this stream is then as it was.
    [[nodiscard]] result<unique_fd> detach();

    /// This end's address; empty when it is closed.
    endpoint local() const noexcept { return driver_->local(); }
    /// The other end's address; empty when it is closed or has none. Also after the other end has
    /// reset the connection; no longer after this one has.
    endpoint peer() const noexcept { return driver_->peer(); }
    /// The descriptor, still owned by the stream, for options; -1 where there is none.
    int native_handle() const noexcept { return driver_->native_handle(); }

    /// The driver: for layers that build a stream on another one.
    stream_driver& driver() const noexcept { return *driver_; }

private:
    stream_driver* driver_;
};

/// Waits for a connection.
class accept_operation final : public operation {
public:
    /// select() takes it.
    using keeps_when_withdrawn = void;

    explicit accept_operation(listener_driver& driver) noexcept : driver_(&driver) {}
    void set_accepted(stream accepted) noexcept { accepted_ = std::move(accepted); }
    void set_error(std::error_code error) noexcept override { error_ = error; }
    result<stream> take_result() noexcept {
        if (error_) return fail(error_);
        return std::move(accepted_);
    }

private:
    bool start() override;
    void on_cancel() noexcept override;

    listener_driver* driver_;
    stream accepted_;
    std::error_code error_;
};

/// Driver of a listener. One accept waits at a time. One loop's thread.
class listener_driver {
public:
    virtual bool start(accept_operation& op) = 0;
    virtual void cancel(accept_operation& op) noexcept = 0;
    virtual endpoint local() const noexcept = 0;
    virtual int native_handle() const noexcept = 0;
    virtual void close() noexcept = 0;
    /// Takes no more connections from the kernel's queue, until resume(): accepts yield the ones
    /// that it has taken, then errc::closed. A driver that takes none ahead ignores it.
    virtual void pause() noexcept {}
    virtual void resume() noexcept {}
    /// True: another process listens on the socket, too, so that close() neither ends listening nor
    /// removes a Unix socket's file. False: the socket, and the file at its path, are this one's.
    virtual void set_shared(bool /*is_shared*/) noexcept {}

protected:
    ~listener_driver() = default;
};

/// Options of a listener; listen(2), socket(7).
struct listen_options {
    /// Connections that wait for accept(); the kernel caps it (net.core.somaxconn).
    int backlog = 4096;
    /// SO_REUSEPORT: several loops listen on one port and the kernel spreads the connections.
    bool reuse_port = false;
    /// An IPv6 wildcard takes IPv4 connections, too.
    bool dual_stack = true;
    /// Permissions of a Unix socket's file, which it has before it has its path; -1 leaves the
    /// process's umask to decide. EINVAL for an abstract name, which has no file: check peers by
    /// unix_socket::peer_credentials().
    int unix_mode = -1;
};

/// Local side of an outgoing connection; ip(7), ipv6(7), socket(7). Not for Unix sockets:
/// errc::unsupported.
struct local_binding {
    /// Its own address. With port 0 the kernel chooses one; an empty address leaves both to it. The
    /// peer must be of the same family, else EAFNOSUPPORT. Errors are bind(2)'s.
    endpoint address = {};
    /// The interface's name, such as "eth0" (SO_BINDTODEVICE); empty for any. ENODEV when there is
    /// none. The simulator knows only "lo".
    std::string device = {};

    /// True if it is unset.
    bool empty() const noexcept { return address.size() == 0 && device.empty(); }
};

/// The driver of every listener that listens nowhere: each accept ends with errc::closed.
listener_driver& closed_listener_driver() noexcept;

/// An accepting socket. One accept waits at a time. Once closed, every accept fails with
/// errc::closed. One loop's thread.
class listener {
public:
    listener() noexcept : driver_(&closed_listener_driver()) {}
    /// For factories of listeners: the handle of `driver`, whose end closes the driver.
    explicit listener(listener_driver& driver) noexcept : driver_(&driver) {}
    /// `other` is closed afterwards; a wait continues.
    listener(listener&& other) noexcept
        : driver_(std::exchange(other.driver_, &closed_listener_driver())) {}
    /// Closes its own socket first. `other` is closed afterwards; its wait continues.
    listener& operator=(listener&& other) noexcept {
        if (this != &other) {
            close();
            driver_ = std::exchange(other.driver_, &closed_listener_driver());
        }
        return *this;
    }
    ~listener() { close(); }

    /// True if it listens.
    explicit operator bool() const noexcept { return driver_ != &closed_listener_driver(); }

    /// Awaits the next connection. Yields a result<stream>: errc::cancelled, or accept(2)'s errors,
    /// of which EMFILE, ENFILE, ENOBUFS and ENOMEM are passing conditions: wait a little and call
    /// again. TCP streams have TCP_NODELAY set. A stream allocates its driver.
    awaiting<accept_operation> accept() { return awaiting<accept_operation>(*driver_); }

    /// The address that it listens on, with the port that the kernel chose for port 0.
    endpoint local() const noexcept { return driver_->local(); }
    /// The descriptor, still owned by the listener; -1 in the simulator.
    int native_handle() const noexcept { return driver_->native_handle(); }
    /// Stops listening. Connections that were not accepted are reset.
    void close() noexcept { std::exchange(driver_, &closed_listener_driver())->close(); }

    /// The driver: for layers that build a listener on another one.
    listener_driver& driver() const noexcept { return *driver_; }

private:
    listener_driver* driver_;
};

}  // namespace eddy
