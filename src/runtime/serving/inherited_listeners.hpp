// Inherited listeners: the listeners of an instance, on their way to the next one over a restart.
// Clients that connect meanwhile wait in the kernel's queues.
#pragma once

#include <eddy/base/unique_fd.hpp>
#include <eddy/io/endpoint.hpp>
#include <eddy/io/stream.hpp>
#include <eddy/net/unix.hpp>
#include <eddy/transport/transport.hpp>

#include "handoff/receiver.hpp"
#include "runtime/listening.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace eddy::runtime {

/// One loop's thread, on which both instances are.
struct inherited_listeners {
    struct entry {
        transport::address where;
        noted_listener from;
        std::uint16_t port = 0;  ///< the real one
    };
    std::vector<entry> all;

    /// Peer of a server over UDP that has shown that its address is not forged.
    struct datagram_peer {
        endpoint where;
        endpoint local;  ///< see datagram_server::peer
        time_point seen_at{};
    };
    /// Socket of a server over UDP, and its peers, the one that was silent longest first.
    struct bound_datagram {
        transport::address where;
        noted_datagram from;
        std::vector<datagram_peer> peers;
    };
    std::optional<bound_datagram> bound;

    /// Instances before of a stream runtime, whose streams may be continued.
    class handoff_predecessor {
    public:
        /// Takes the client if its message continues a stream of theirs, or its client has the
        /// whole of one.
        virtual bool take(handoff::arrival& what) = 0;

    protected:
        ~handoff_predecessor() = default;
    };
    /// UDP socket of a program, which alone reads it.
    struct unread_datagram {
        transport::address where;
        unique_fd socket;
        endpoint local;
        address_note note;
    };
    std::vector<unread_datagram> unread;

    /// Expires with the instance before.
    std::weak_ptr<handoff_predecessor> predecessor;
    /// Kept by the next instance while it may pass clients on.
    std::shared_ptr<void> successor;

    /// Socket of a stream runtime, with the options that it was made with.
    struct handoffs {
        handoff::handoff_socket from;
        unix_socket::socket_type type;
        int mode;
        socket_file file;
        address_note note;
        bool has_owner = false;  ///< its file was given to another user or group
    };
    std::optional<handoffs> senders;

    inherited_listeners() = default;
    inherited_listeners(const inherited_listeners&) = delete;
    inherited_listeners& operator=(const inherited_listeners&) = delete;
    ~inherited_listeners() { close(); }
    /// Closes what no instance has taken.
    void close() noexcept;
    void close_senders() noexcept;

    /// Port of the instance before, if the kernel chose it; else 0. It stays the runtime's while
    /// that runs.
    std::uint16_t chosen_port = 0;
    /// The same address, with that port in place of one that the kernel would choose.
    transport::address with_chosen_port(transport::address wanted) const;

    /// True once a listener that stood in the way was closed: the kernel may have its address for a
    /// moment.
    bool has_closed = false;

    /// Takes the listener of an address out, with the handshake of `wanted` and the note of the
    /// instance before. None: no listener here can serve the address; one that stands in the way is
    /// closed then. Errors are those of transport::listen_in_parts(); the listener stays here.
    result<std::optional<noted_listener>> take(const transport::address& wanted, bool is_in_parts);
    /// The same of a program's UDP socket. None: it is to be opened.
    std::optional<unread_datagram> take_unread(const transport::address& wanted);
    /// The same without a handshake, for the instance that it was from.
    std::optional<noted_listener> take_back(const transport::address& own);

private:
    void close_excluded(const transport::address& by);
    std::vector<entry>::iterator find(const transport::address& wanted);
};

}  // namespace eddy::runtime
