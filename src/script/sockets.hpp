// Sockets for scripts: connections that a script opens, and waits for without holding up its loop
// ("cosockets"). socket_prelude() makes the objects of them that drivers written for OpenResty and
// LuaSocket expect.
//
// A connection belongs to the call that has opened it, and is closed when that call ends, so a
// script cannot lose one. With setkeepalive() it is kept for later calls instead, by its name.
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/io/datagram.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/operation.hpp>
#include <eddy/io/stream.hpp>
#include <eddy/io/timer.hpp>

#include "script/library.hpp"

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

namespace eddy::script {

struct socket_limits {
    /// Sockets of a state at a time, kept ones included.
    std::size_t sockets = 1000;
    /// Kept connections of a name, where a script gives no limit.
    std::size_t kept = 30;
    /// Bytes of one received text.
    std::size_t received = std::size_t{16} << 20;
    /// Bytes of all sockets of a state that wait to be sent, or were received by a wait that has
    /// not ended.
    std::size_t waiting = std::size_t{64} << 20;
    /// Limit on each wait, where a script gives no limit.
    duration timeout = std::chrono::seconds(60);
};

/// Connection or UDP socket of a script.
struct script_socket {
    explicit script_socket(duration time) noexcept
        : connect_time(time), send_time(time), receive_time(time) {}

    stream peer;
    datagram messages;
    bool is_datagram = false;
    bool is_connected = false;
    bool is_connecting = false;
    bool is_sending = false;
    bool is_receiving = false;
    std::string received;  // and not taken yet
    duration connect_time;
    duration send_time;
    duration receive_time;
    std::string host;  // for TLS
    std::uint16_t port = 0;
    std::string name;  // that it is kept by
    std::size_t uses = 0;
    const call* owner = nullptr;
    cancel_source* closing = nullptr;  // of connect() and secure(), while they wait

    /// Ends what waits for it, too.
    void close() noexcept;
};

/// Sockets of one Lua state. It must outlive the host. One loop's thread.
class sockets final : timer {
public:
    explicit sockets(socket_limits limits = {}) noexcept : limits_(limits) {}
    sockets(const sockets&) = delete;
    sockets& operator=(const sockets&) = delete;
    /// Closes them.
    ~sockets();

    /// Table `sockets`, for socket_prelude().
    library functions() noexcept;

    /// Sockets at the time, and the kept ones among them.
    std::size_t count() const noexcept { return open_.size() + kept_.size(); }
    std::size_t kept() const noexcept { return kept_.size(); }

private:
    friend struct socket_functions;
    using socket_pointer = std::shared_ptr<script_socket>;
    struct kept_socket {
        socket_pointer socket;
        time_point ends;
        bool shows_input;  // may_have_input() will say whether its end came
    };

    socket_pointer find(double id) const noexcept;
    static bool has_ended(const kept_socket& which) noexcept;
    bool take_kept(script_socket& into);
    void keep(const socket_pointer& which, duration time, std::size_t most);
    void close_of(const call& of) noexcept;
    void fire() noexcept override;
    void arm() noexcept;

    const socket_limits limits_;
    std::uint64_t last_id_ = 0;
    std::unordered_map<std::uint64_t, socket_pointer> open_;
    std::list<kept_socket> kept_;  // the one kept last at the end
    std::size_t waiting_ = 0;      // see socket_limits::waiting
};

/// Defines in Lua: `eddy.tcp()` and `eddy.udp()`, the part of the table `ngx` that drivers for
/// OpenResty use, and `socket` as LuaSocket has it. Behind sockets::functions().
std::string_view socket_prelude() noexcept;

}  // namespace eddy::script
