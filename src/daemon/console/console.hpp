// The console: a web page about the daemon, on a port of this machine, behind a token.
#pragma once

#include <eddy/http/session.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/task.hpp>

#include "base/problem.hpp"
#include "daemon/console/console_handler.hpp"
#include "daemon/control/control_server.hpp"
#include "daemon/control/metrics.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace eddy::daemon {

/// Port and token of an open console.
struct console_place {
    std::uint16_t port = 0;
    std::string token;  ///< 64 hexadecimal digits, other ones each time that it is opened

    /// Address of the page, the token behind "#", which browsers do not send.
    std::string url() const;
};

/// Closed until it is asked for. Everything given outlives it; control loop.
class console {
public:
    /// Connections at a time: a page has a few.
    static constexpr std::size_t max_connections = 64;

    console(http::request_handler& api, daemon_counters& counted) noexcept
        : api_(api), counted_(counted) {}
    console(const console&) = delete;
    console& operator=(const console&) = delete;

    /// Listens on 127.0.0.1 with a new token; on `port`, 0 for any free one. One that is open stays
    /// as it is if the port is its own, or 0, and is refused (409) otherwise. Refuses (409) a port
    /// that is taken.
    outcome<console_place> open(std::uint16_t port);
    /// Serves the console of another daemon, whose place this one takes, on: its page keeps its
    /// token. Refuses (409) while one is open.
    outcome<> take_over(listener from, std::string token);
    /// The socket of an open one; null if none is.
    const listener* socket() const noexcept { return server_ ? &server_->socket() : nullptr; }
    /// Another daemon has the socket, too, and serves from now on. close() follows.
    void end_accepting() noexcept;
    bool is_accepting() const noexcept { return server_ && server_->is_accepting(); }
    /// The place of an open one.
    std::optional<console_place> place() const { return place_; }
    /// Ends its connections. Not from one of them.
    task<void> close();

private:
    void serve(listener from, console_place at);

    http::request_handler& api_;
    daemon_counters& counted_;
    std::optional<console_place> place_;
    std::unique_ptr<console_handler> handler_;
    std::unique_ptr<control_server> server_;
    std::unique_ptr<scope> serving_;
};

}  // namespace eddy::daemon
