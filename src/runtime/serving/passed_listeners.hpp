// Passed listeners: copies of an instance's sockets, on their way to an instance of another process
// (the daemon's upgrade).
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/base/unique_fd.hpp>
#include <eddy/transport/transport.hpp>

#include "runtime/listening.hpp"
#include "runtime/serving/inherited_listeners.hpp"

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace eddy::runtime {

/// A listener's socket.
struct passed_listener {
    enum class kind : std::uint8_t {
        stream,    ///< it accepts connections
        datagram,  ///< UDP
        senders,   ///< handoffs of a stream runtime
        unread,    ///< UDP, of a program that alone reads it
    };
    kind what = kind::stream;
    transport::address where = {};
    std::uint16_t port = 0;  ///< the real one
    socket_file file = {};
    int mode = 0;               ///< of senders: permissions of the file
    bool is_seqpacket = false;  ///< of senders
    unique_fd socket = {};
};

/// All sockets of an instance. Any thread.
struct passed_listeners {
    std::vector<passed_listener> all;
    std::uint16_t chosen_port = 0;  ///< as inherited_listeners::chosen_port
};

/// A copy of a socket, for `passed_listener::socket`. Errors are fcntl(2)'s.
result<unique_fd> copy_of(int socket) noexcept;

/// A copy of an instance's UDP socket, which it serves on; nothing where it has none. `name` is
/// the runtime's, for the refusal (503).
outcome<std::shared_ptr<passed_listeners>> share_datagram(const transport::address& where,
                                                          const noted_datagram& bound,
                                                          std::uint16_t port,
                                                          std::string_view name);

/// The listeners for an instance on the running loop. As long as they are shared, their end neither
/// ends listening nor removes files. Errors are those of loop::adopt_listener() and
/// loop::adopt_datagram().
result<std::shared_ptr<inherited_listeners>> adopt(passed_listeners from);

/// The same listeners of this process alone: another process has none of them any more, or will
/// close its own without effect. The loop's thread.
void take_possession(const listener& of) noexcept;
/// Another process has a copy of the socket.
void share(const listener& of) noexcept;

}  // namespace eddy::runtime
