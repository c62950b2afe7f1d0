// datagram: message socket (UDP) over any io-backend.
//
// Messages keep their bounds: each arrives whole or not at all. One received message may stand for
// several datagrams that the kernel has joined (UDP_GRO), and one sent buffer may go out as several
// (UDP_SEGMENT); segments() makes one loop of both cases. See udp(7), ip(7), ipv6(7).
//
// The handle is a move-only value; behind it stands a driver, as with streams (stream.hpp). One
// loop's thread for everything here.
#pragma once

#include <eddy/base/bytes.hpp>
#include <eddy/base/result.hpp>
#include <eddy/io/endpoint.hpp>
#include <eddy/io/lease.hpp>
#include <eddy/io/operation.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <utility>

namespace eddy {

/// Options of a message socket, applied when it is opened. An option that the kernel does not know
/// or refuses fails with setsockopt(2)'s error. The simulator applies the ones that affect
/// delivery; it ignores buffer sizes, `ttl` and `traffic_class`.
struct datagram_options {
    /// SO_REUSEPORT: several sockets, each with a loop of its own, on one port; the kernel spreads
    /// the senders over them. Only at opening.
    bool reuse_port = false;
    /// SO_REUSEADDR: several sockets on one port, as members of a multicast group need it. Each
    /// gets every multicast datagram; of the others, the last bound socket gets all. Only at
    /// opening.
    bool reuse_address = false;
    /// An IPv6 wildcard takes IPv4 datagrams, too. Only at opening.
    bool dual_stack = true;
    /// SO_BROADCAST: may send to broadcast addresses; else that is EACCES.
    bool broadcast = false;
    /// UDP_GRO: datagrams of one sender and one size may be received joined into one message of up
    /// to 64 KiB; see datagram_message::segments(). Several times cheaper when they arrive in
    /// bursts.
    bool join_segments = false;
    /// Messages carry the address that they were sent to, and the interface (IP_PKTINFO). A socket
    /// of a wildcard address needs it to answer from the address that a peer has sent to, which
    /// connected peers and NATs expect: outgoing_datagram::from.
    bool local_address = false;
    /// The kernel's buffers in bytes, SO_RCVBUF and SO_SNDBUF; 0 leaves them as they are. The
    /// kernel doubles what it is given, and caps it silently (net.core.rmem_max, wmem_max).
    int receive_buffer = 0;
    /// SO_SNDBUF.
    int send_buffer = 0;
    /// Routers that a unicast datagram may pass (IP_TTL, IPV6_UNICAST_HOPS), 1 to 255; 0 leaves the
    /// system's default.
    int ttl = 0;
    /// The byte with DSCP in its upper six bits (IP_TOS, IPV6_TCLASS); -1 leaves it as it is.
    int traffic_class = -1;
    /// The same as `ttl` for multicast, 0 to 255: 1 stays in the local network, 0 on this host.
    int multicast_ttl = 1;
    /// Members of a group on this host get what this socket sends to it.
    bool multicast_loop = true;
    /// The index of the interface that multicast datagrams leave by; 0 lets the routes decide.
    std::uint32_t multicast_interface = 0;
};

/// The single datagrams of a message, in order: a forward range of const_bytes, valid as long as
/// the message's payload. All have the message's segment_size, the last may be shorter. One loop's
/// thread.
class datagram_segments {
public:
    /// Walks the datagrams of a message.
    class iterator {
    public:
        /// One datagram.
        using value_type = const_bytes;
        /// Between two iterators.
        using difference_type = std::ptrdiff_t;
        /// It may be walked more than once.
        using iterator_concept = std::forward_iterator_tag;

        /// The end of every message.
        iterator() noexcept = default;
        /// The datagram's bytes, as long as the message's payload lives.
        const_bytes operator*() const noexcept {
            return bytes_.first(std::min(segment_, bytes_.size()));
        }
        /// Goes to the next datagram.
        iterator& operator++() noexcept {
            bytes_ = bytes_.subspan(std::min(segment_, bytes_.size()));
            --left_;
            return *this;
        }
        /// The same, and yields where it was.
        iterator operator++(int) noexcept {
            iterator before = *this;
            ++*this;
            return before;
        }
        /// Compares iterators of one message, or with its end.
        friend bool operator==(const iterator& a, const iterator& b) noexcept {
            return a.left_ == b.left_;
        }

    private:
        friend class datagram_segments;
        iterator(const_bytes bytes, std::size_t segment, std::size_t left) noexcept
            : bytes_(bytes), segment_(segment), left_(left) {}

        const_bytes bytes_;
        std::size_t segment_ = 0;
        std::size_t left_ = 0;
    };

    /// Cuts `bytes` into pieces of `segment` bytes.
    datagram_segments(const_bytes bytes, std::size_t segment) noexcept
        : bytes_(bytes), segment_(std::max<std::size_t>(segment, 1)) {}

    /// At least 1: an empty datagram is one, too.
    std::size_t size() const noexcept {
        return bytes_.empty() ? 1 : (bytes_.size() + segment_ - 1) / segment_;
    }
    /// The first datagram.
    iterator begin() const noexcept { return {bytes_, segment_, size()}; }
    /// Behind the last one.
    iterator end() const noexcept { return {}; }

private:
    const_bytes bytes_;
    std::size_t segment_;
};

/// A received datagram, or several of one sender that were joined, and where they came from.
struct datagram_message {
    /// The bytes, lent by the loop.
    lease payload;
    /// The sender's address. Empty for a Unix socket that is bound to nothing, or to a path of more
    /// than 29 bytes.
    endpoint from;
    /// With datagram_options::local_address, the address that it was sent to, with this socket's
    /// port, and the index of the interface that it came in by; else empty and 0. It is
    /// outgoing_datagram::from of an answer, unless it is a group's or a broadcast address.
    endpoint to;
    /// See `to`.
    std::uint32_t interface = 0;
    /// The size of each datagram in the payload but the last, which may be shorter. Of a single
    /// one, its size.
    std::uint32_t segment_size = 0;
    /// The datagram was longer than a receive buffer (loop_options::datagram_size); its end is
    /// lost.
    bool truncated = false;

    /// The single datagrams; one, unless datagram_options::join_segments is on.
    datagram_segments segments() const noexcept { return {payload.bytes(), segment_size}; }
};

/// One datagram to send, or several of one size to one peer.
struct outgoing_datagram {
    /// The bytes to send; they stay the caller's until they were sent.
    const_bytes bytes;
    /// Null for the connected peer. It must live as long as the bytes.
    const endpoint* to = nullptr;
    /// 0: one datagram. Else the bytes go out as datagrams of this size, the last may be shorter
    /// (UDP_SEGMENT): at most datagram::max_segments, and 65,507 bytes in all.
    std::uint16_t segment_size = 0;
    /// The address of this machine that it is sent from, such as datagram_message::to of the
    /// message that it answers (IP_PKTINFO, IPV6_PKTINFO); its port is ignored. Null or empty: the
    /// socket's, or what the routes choose. It must live as long as the bytes. ENETUNREACH or
    /// EINVAL for one that this machine does not have, a group's, and a broadcast address.
    const endpoint* from = nullptr;
};

class datagram_driver;

class receive_from_operation final : public operation {
public:
    /// select() takes it.
    using keeps_when_withdrawn = void;

    explicit receive_from_operation(datagram_driver& driver) noexcept : driver_(&driver) {}
    /// For the drivers, to be filled in.
    datagram_message& message() noexcept { return message_; }
    void set_error(std::error_code error) noexcept override { error_ = error; }
    result<datagram_message> take_result() noexcept {
        if (error_) return fail(error_);
        return std::move(message_);
    }

private:
    bool start() override;
    void on_cancel() noexcept override;

    datagram_driver* driver_;
    datagram_message message_;
    std::error_code error_;
};

/// Waits until the kernel took all of its datagrams, or an error. Any number may wait; they go out
/// in the order in which they were started.
class send_datagrams_operation : public operation, public list_link<datagram_driver> {
public:
    std::span<const outgoing_datagram> left() const noexcept {
        return {first_ + sent_, count_ - sent_};
    }
    void count_sent(std::size_t more) noexcept { sent_ += more; }
    void set_error(std::error_code error) noexcept final { error_ = error; }

protected:
    send_datagrams_operation(datagram_driver& driver, const outgoing_datagram* first,
                             std::size_t count) noexcept
        : driver_(&driver), first_(first), count_(count) {}
    ~send_datagrams_operation() = default;
    datagram_driver* driver_;
    const outgoing_datagram* first_;
    std::size_t count_;
    std::size_t sent_ = 0;
    std::error_code error_;

private:
    bool start() final;
    void on_cancel() noexcept final;
};

class send_one_operation final : public send_datagrams_operation {
public:
    send_one_operation(datagram_driver& driver, const outgoing_datagram& single) noexcept
        : send_datagrams_operation(driver, &single_, 1), single_(single) {}
    result<> take_result() const noexcept {
        if (error_) return fail(error_);
        return {};
    }

private:
    outgoing_datagram single_;
};

class send_batch_operation final : public send_datagrams_operation {
public:
    send_batch_operation(datagram_driver& driver, std::span<const outgoing_datagram> batch) noexcept
        : send_datagrams_operation(driver, batch.data(), batch.size()) {}
    result<std::size_t> take_result() const noexcept {
        if (error_ && sent_ == 0) return fail(error_);
        return sent_;
    }
};

/// Driver of a message socket: the io-backend's half. At most one receive waits at a time. One
/// loop's thread.
class datagram_driver {
public:
    /// True when `op` completed at once, with its result stored.
    virtual bool start(receive_from_operation& op) = 0;
    virtual bool start(send_datagrams_operation& op) = 0;
    virtual void cancel(receive_from_operation& op) noexcept = 0;
    virtual void cancel(send_datagrams_operation& op) noexcept = 0;
    /// EAGAIN when no message is there.
    [[nodiscard]] virtual result<> try_receive(datagram_message& into) noexcept = 0;
    /// Datagrams taken, at least one; EAGAIN when there is no room.
    [[nodiscard]] virtual result<std::size_t> try_send(
        std::span<const outgoing_datagram> batch) noexcept = 0;
    [[nodiscard]] virtual result<> connect(const endpoint& peer) noexcept = 0;
    [[nodiscard]] virtual result<> set(const datagram_options& options) noexcept = 0;
    [[nodiscard]] virtual result<> set_member(const endpoint& group, std::uint32_t interface,
                                              bool member) noexcept = 0;
    virtual endpoint local() const noexcept = 0;
    virtual endpoint peer() const noexcept = 0;
    virtual int native_handle() const noexcept = 0;
    virtual void close() noexcept = 0;

protected:
    ~datagram_driver() = default;
};

/// The driver of every datagram socket that is not open: all fails with errc::closed.
datagram_driver& closed_datagram_driver() noexcept;

/// A message socket (UDP), made by loop::bind_datagram(), loop::connect_datagram(),
/// loop::adopt_datagram() or udp.hpp. One receive waits at a time; any number of sends may. Once
/// closed, everything fails with errc::closed.
///
/// A connected socket receives only from its peer. An ICMP error of it, such as a closed port, is
/// ECONNREFUSED of the next receive or send. Such an error ends nothing; call again. See udp(7).
/// One loop's thread.
class datagram {
public:
    /// Most datagrams that one batch takes; a longer one is errc::limit_reached and sends nothing.
    static constexpr std::size_t max_batch = 64;
    /// Most datagrams that one buffer with a segment_size is cut into; more is EINVAL.
    static constexpr std::size_t max_segments = 64;

    datagram() noexcept : driver_(&closed_datagram_driver()) {}
    /// For factories of message sockets: the handle of `driver`.
    explicit datagram(datagram_driver& driver) noexcept : driver_(&driver) {}
    /// `other` is closed afterwards; waits continue.
    datagram(datagram&& other) noexcept
        : driver_(std::exchange(other.driver_, &closed_datagram_driver())) {}
    /// Closes its own socket first. `other` is closed afterwards; its waits continue.
    datagram& operator=(datagram&& other) noexcept {
        if (this != &other) {
            close();
            driver_ = std::exchange(other.driver_, &closed_datagram_driver());
        }
        return *this;
    }
    ~datagram() { close(); }

    /// True if it is open.
    explicit operator bool() const noexcept { return driver_ != &closed_datagram_driver(); }

    /// Awaits the next message. Yields a result<datagram_message>, whose payload is lent by the
    /// loop: copy what must be kept, and release it. An empty datagram is a message like any other.
    /// Fails with errc::cancelled (no message is lost by that), errc::closed, or the socket's
    /// error; with errc::no_buffers while so many leases are held that there may be no more
    /// (loop_options::max_spare_buffers).
    awaiting<receive_from_operation> receive() {
        return awaiting<receive_from_operation>(*driver_);
    }
    /// The next message if the loop has it already, else EAGAIN. After a receive() it yields what
    /// came together with that one, for programs that answer in batches. Not while a receive waits.
    [[nodiscard]] result<datagram_message> try_receive() noexcept {
        datagram_message message;
        if (auto got = driver_->try_receive(message); !got) return fail(got.error());
        return message;
    }

    /// Sends one datagram now; an empty `to` means the connected peer. It never waits: a full
    /// socket buffer is EAGAIN and the datagram is lost, as on the network. Errors are
    /// sendmsg(2)'s; EMSGSIZE for more than fits into a datagram.
    [[nodiscard]] result<> send_to(const_bytes bytes, const endpoint& to) noexcept {
        return send_segments(bytes, 0, to);
    }
    /// The same for several datagrams in one buffer, each of `segment_size` bytes but the last,
    /// which may be shorter; limits at outgoing_datagram::segment_size. Several times cheaper than
    /// one by one. EIO and EOPNOTSUPP where a network device or the kernel cannot do it.
    [[nodiscard]] result<> send_segments(const_bytes bytes, std::uint16_t segment_size,
                                         const endpoint& to) noexcept {
        const outgoing_datagram one{bytes, to.family() == AF_UNSPEC ? nullptr : &to, segment_size};
        if (auto sent = driver_->try_send({&one, 1}); !sent) return fail(sent.error());
        return {};
    }
    /// Sends up to max_batch datagrams now, to any peers. Returns how many went: fewer than all
    /// when the next one met an error, which a call that begins with that datagram returns. EAGAIN
    /// as above.
    [[nodiscard]] result<std::size_t> try_send(std::span<const outgoing_datagram> batch) noexcept {
        if (batch.size() > max_batch) return fail(errc::limit_reached);
        if (batch.empty()) return 0;
        return driver_->try_send(batch);
    }

    /// Awaits until the kernel took the datagram. The bytes and the address must live until then.
    /// Yields a result<>: errors as with send_to(), except EAGAIN; errc::cancelled, errc::closed.
    awaiting<send_one_operation> send(const_bytes bytes) {
        return awaiting<send_one_operation>(*driver_, outgoing_datagram{bytes});
    }
    /// The same to any peer, and several datagrams at once, as send_segments() does.
    awaiting<send_one_operation> send(const_bytes bytes, const endpoint& to,
                                      std::uint16_t segment_size = 0) {
        return awaiting<send_one_operation>(*driver_, outgoing_datagram{bytes, &to, segment_size});
    }
    /// The same for up to max_batch datagrams, whose array must live until completion, too. Yields
    /// a result<std::size_t>, the number sent: fewer than all when the next one met an error, or it
    /// was cancelled. An error only when none went.
    awaiting<send_batch_operation> send(std::span<const outgoing_datagram> batch) {
        return awaiting<send_batch_operation>(*driver_, batch);
    }
    /// A temporary would be gone while it is sent, unless the whole wait is one expression, and
    /// some compilers end it too early even then. Name it first: the bytes, the array, the address.
    template <owning_temporary Bytes>
    awaiting<send_one_operation> send(Bytes&& bytes_or_batch) = delete;
    /// The same with an address.
    template <owning_temporary Bytes>
    awaiting<send_one_operation> send(Bytes&& bytes, const endpoint& to,
                                      std::uint16_t segment_size = 0) = delete;
    /// The same for an address that is a temporary.
    awaiting<send_one_operation> send(const_bytes bytes, const endpoint&& to,
                                      std::uint16_t segment_size = 0) = delete;

    /// Sets the peer, or another one; an empty endpoint dissolves the connection. Datagrams that
    /// came before from others are still received. Errors are connect(2)'s.
    [[nodiscard]] result<> connect(const endpoint& peer) noexcept { return driver_->connect(peer); }

    /// Joins or leaves a multicast group on an interface, by its index; 0 lets the routes decide.
    /// The socket must be bound to the group's port. Errors are setsockopt(2)'s for
    /// MCAST_JOIN_GROUP: ENODEV without a route or such an interface, EADDRINUSE for a member.
    [[nodiscard]] result<> join(const endpoint& group, std::uint32_t interface = 0) noexcept {
        return driver_->set_member(group, interface, true);
    }
    /// Leaves a group that was joined with the same arguments. Errors are setsockopt(2)'s for
    /// MCAST_LEAVE_GROUP: EADDRNOTAVAIL when this socket is no member.
    [[nodiscard]] result<> leave(const endpoint& group, std::uint32_t interface = 0) noexcept {
        return driver_->set_member(group, interface, false);
    }

    /// Applies all options except the ones marked "Only at opening". Errors are setsockopt(2)'s;
    /// options after the failed one may then be unchanged.
    [[nodiscard]] result<> set(const datagram_options& options) noexcept {
        return driver_->set(options);
    }

    /// This end's address; empty when it is closed.
    endpoint local() const noexcept { return driver_->local(); }
    /// Empty when it is not connected.
    endpoint peer() const noexcept { return driver_->peer(); }
    /// The socket, still owned by the driver; -1 in the simulator.
    int native_handle() const noexcept { return driver_->native_handle(); }
    /// Ends waiting operations with errc::cancelled, and drops messages that were not received.
    void close() noexcept { std::exchange(driver_, &closed_datagram_driver())->close(); }

private:
    datagram_driver* driver_;
};

}  // namespace eddy
