// Server worker: the HTTP connections of one loop, of http::server and of the runtime `http`.
#pragma once

#include <eddy/http/session.hpp>
#include <eddy/io/stream.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>

#include "serving/loop_worker.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace eddy::http {

/// Client of a connection in the lines of a log.
struct client_label {
    std::string address;
    std::string user;
    std::string announced = {};  ///< what a proxy has said of the client, as the log has it
};

/// The loop's thread, unless a member says otherwise.
class server_worker : public serving::loop_worker {
public:
    /// Sent to a client beyond the limit of connections.
    static constexpr std::string_view refusal =
        "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Type: text/plain\r\n"
        "Content-Length: 38\r\nConnection: close\r\n\r\nthe server is full; try again shortly\n";

    /// A connection that has been idle for so long gives up its session until bytes come.
    static constexpr duration rest_after = std::chrono::seconds(1);

    /// On its loop. `handler` outlives it; null where the worker serves nothing.
    server_worker(const serving::worker_place& place, request_handler* handler,
                  const session_limits& limits, std::uint64_t max_connections);

    void take(stream accepted, serving::connection_slot slot) override;

    /// Limit for all loops together. Connections above a new limit stay.
    void set_max_connections(std::uint64_t most) noexcept;

protected:
    /// A stop gives connections that another protocol has taken over the time that requests have,
    /// instead of cancelling them at once.
    void drain_tunnels() noexcept { drains_tunnels_ = true; }
    /// Label of a new connection, for note(); null, which takes no memory, by default. Made once,
    /// at the beginning: a connection that was reset may have no address any more. May throw
    /// std::bad_alloc; the connection is closed then.
    virtual std::unique_ptr<const client_label> label(const stream& accepted) const;
    /// Counts a response that has ended on a connection; `from` is its label. May throw
    /// std::bad_alloc.
    virtual void note(const client_label* from, const exchange_record& what);

private:
    class client;
    class session_run;
    class takeover_run;
    class arrival;
    static task<void> serve(client& c);

    request_handler* handler_;
    session_limits limits_;
    bool drains_tunnels_ = false;
};

}  // namespace eddy::http
