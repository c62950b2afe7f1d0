// Server: listeners and the sessions of their connections, on one loop or on several.
//
//     http::router app;
//     app.get("/greet/{name}", greet);
//     http::server site(app, {.listen = {"tcp://127.0.0.1:8080"}, .threads = 2});
//     if (auto ended = co_await site.run(); !ended) co_return ended.error().value();
//
// A program that does nothing else calls http::run(app, {.listen = {"tcp://127.0.0.1:8080"}}).
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/http/session.hpp>
#include <eddy/io/endpoint.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace eddy::http {

/// Connections that a server has at a time unless server_options::max_connections says otherwise.
inline constexpr std::size_t default_max_connections = 10'000;

/// Options of a server.
struct server_options {
    /// URIs to listen on, as of transport::listen(); one of the scheme tls names its certificate:
    /// "tls://*:8443?cert=/etc/tls/site.pem&key=/etc/tls/site.key". By ALPN it agrees on http/1.1,
    /// unless the URI names other protocols: a client that offers only others is refused.
    std::vector<std::string> listen = {"tcp://127.0.0.1:8080"};
    /// Loops that serve, 1 to 64. One is the loop that start() is called on; several have threads
    /// of their own, and that loop only accepts. The simulator's have one thread.
    std::size_t threads = 1;
    /// Limits on each client.
    session_limits limits = {};
    /// Connections at a time, of all loops. A further one gets "503 Service Unavailable" and is
    /// closed; with TLS it is closed without a response.
    std::size_t max_connections = default_max_connections;
    /// TCP keepalive as tcp::keepalive_after(), which ends connections to clients that vanished
    /// silently; zero: none.
    std::chrono::seconds keepalive{300};
    /// Time for responses at hand when run() ends the server, as of server::stop().
    duration stop_time = std::chrono::seconds(10);
};

/// Server of a handler, such as a router. Events of the server are logged as "http". Only the
/// thread of the loop that starts it, except where noted.
class server {
public:
    /// Makes the handler of a loop, 0 to server_options::threads - 1. Called on that loop's thread,
    /// where the handler also dies.
    using handler_factory = std::function<std::shared_ptr<request_handler>(std::size_t loop)>;

    /// One handler for all loops, which must outlive the server. With several threads it is called
    /// on all of them at a time; a router allows that if its handlers do.
    explicit server(request_handler& handler, server_options options = {});
    /// One handler for each loop, for state that needs no lock.
    explicit server(handler_factory make, server_options options = {});
    /// `other` may then only be assigned to or destroyed. Neither runs.
    server(server&& other) noexcept;
    /// The same.
    server& operator=(server&& other) noexcept;
    /// The server does not run: stop() has ended, or start() failed.
    ~server();

    /// Listens and starts serving, which continues after the return. Yields a result<>: of each URI
    /// the errors of transport::listen(), those of loop_group::start(), errc::closed when a loop
    /// ended at once. The reason is logged. A failed start leaves nothing behind. An exception of a
    /// handler_factory comes out.
    task<result<>> start();
    /// The addresses that it listens on, with the ports that the kernel chose, in the order of
    /// server_options::listen; none while it does not run. Valid until stop().
    std::span<const endpoint> addresses() const noexcept;
    /// Open connections of all loops.
    std::uint64_t connections() const noexcept;

    /// Ends the server: stops accepting, closes idle connections, lets the others finish the
    /// response at hand, which says "Connection: close", and cuts what is left after `limit`. Does
    /// nothing while it does not run. A cancellation of the caller does not end it. Yields nothing.
    task<void> stop(duration limit);

    /// start(), then waits until the caller is cancelled or stop() has ended; the former stops the
    /// server as stop(server_options::stop_time). Yields a result<>; errors
    /// as of start().
    task<result<>> run();

    /// Reads the certificates of tls URIs again, for later connections; open ones are not affected.
    /// On failure the previous ones stay in use: errc::unusable_certificate, which is logged with
    /// its reason.
    [[nodiscard]] result<> renew_certificates();

private:
    struct running;
    task<void> stop_uncancelled(duration limit);
    task<result<>> make_workers();
    void open_to_clients();

    handler_factory make_;
    server_options options_;
    std::unique_ptr<running> running_;
};

/// Runs a server in a loop of its own until SIGINT or SIGTERM, and stops it in order; for a main()
/// that has no thread yet, since threads must be started with these signals blocked. With a tls URI
/// SIGHUP makes it read its certificates again, as server::renew_certificates(). Blocks. The result
/// is the exit status: 0, or 1 when it cannot serve, for a reason that is logged.
int run(request_handler& handler, server_options options = {});
/// The same with a handler for each loop.
int run(server::handler_factory make, server_options options = {});

}  // namespace eddy::http
