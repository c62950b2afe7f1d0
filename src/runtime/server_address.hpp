// Address of a client's server: a transport's, or the URL of a WebSocket.
#pragma once

#include <eddy/transport/transport.hpp>

#include "base/problem.hpp"

#include <string>
#include <string_view>
#include <system_error>

namespace eddy::runtime {

/// Where a client connects to.
struct server_address {
    /// The transport's address; for a WebSocket that of its server: tcp for ws, tls for wss.
    transport::address where;
    /// ws://HOST[:PORT][/PATH][?QUERY] or wss://…, without a fragment; empty for other transports.
    std::string url = {};

    bool is_websocket() const noexcept { return !url.empty(); }
    bool is_datagram() const noexcept { return where.kind == transport::scheme::udp; }
    /// True when the connection is a stream of bytes, which has no messages of its own.
    bool is_stream() const noexcept { return !is_websocket() && !is_datagram(); }
    bool has_keepalive() const noexcept;
    /// The URI for messages: of a WebSocket without its query, which may have a secret.
    std::string to_string() const;
    /// The reason of a failed attempt to connect, as one sentence. It may read files of TLS.
    std::string explain(std::error_code error) const;
    bool operator==(const server_address&) const = default;
};

/// The address that `text`, a value of `flag`, names: a URI, HOST:PORT, or :PORT of this machine.
/// The fragment of a wss URL has the parameters of TLS that a tls URI has behind its `?`. The
/// refusal (400) says what is wrong.
outcome<server_address> read_server_address(std::string_view text,
                                            std::string_view flag = "--target");

}  // namespace eddy::runtime
