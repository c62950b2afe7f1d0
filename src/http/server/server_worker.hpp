// Server worker: the HTTP connections of one loop, of http::server and of the runtime `http`.
#pragma once

#include <eddy/http/session.hpp>
#include <eddy/io/stream.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>

#include "serving/loop_worker.hpp"
#include "serving/passed_client.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

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
    /// See move_clients(). What has left waits for the end of a call.
    static constexpr duration batch_patience = std::chrono::milliseconds(50);
    static constexpr duration moving_patience = std::chrono::seconds(1);

    /// On its loop. `handler` outlives it; null where the worker serves nothing.
    server_worker(const serving::worker_place& place, request_handler* handler,
                  const session_limits& limits, std::uint64_t max_connections);

    void take(stream accepted, serving::connection_slot slot) override;
    task<void> drain(duration limit) override;
    /// The connections that are idle between two requests, or become so within batch_patience. To
    /// be called again until it yields none: others come to rest meanwhile, for moving_patience
    /// after the first call. Connections of TLS stay, and so do ones that began with a PROXY
    /// header.
    task<std::vector<serving::passed_client>> move_clients() override;
    void take_moved(serving::passed_client from, serving::connection_slot slot) override;

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
    struct moving {
        time_point until;  // others come to rest
        bool has_ended = false;
        std::size_t leaving = 0;  // on their way to `left`
        std::vector<serving::passed_client> left = {};
        std::unordered_set<const client*> interrupted = {};
    };
    static task<void> serve(client& c);
    void begin(stream accepted, serving::connection_slot slot);
    task<void> move(client& c);
    bool awaits_leavers(const std::vector<serving::passed_client>& left);

    request_handler* handler_;
    session_limits limits_;
    bool drains_tunnels_ = false;
    std::unique_ptr<moving> moving_;  // from the first move_clients() on
    std::string begun_;               // bytes of the connection that begins
    std::unordered_set<const client*>
        staying_;  // that cannot leave; few, so it costs others nothing
};

}  // namespace eddy::http
