// Proxy worker: the clients of one loop, each with a tunnel to a backend.
#pragma once

#include <eddy/base/byte_buffer.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/stream.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>

#include "proxy/balancer.hpp"
#include "proxy/tls_routes.hpp"
#include "proxy/tunnel.hpp"
#include "runtime/proxy/options.hpp"
#include "serving/loop_worker.hpp"

#include <cstddef>
#include <memory>

namespace eddy::runtime::proxy {

/// Backends of connections.
struct tunnel_routes {
    /// For TLS clients by their names; null: no client is asked for one.
    std::shared_ptr<const eddy::proxy::tls_route_table> by_name = nullptr;
    std::shared_ptr<eddy::proxy::balancer> others = nullptr;  ///< of all other clients
    /// `others` has masters that change: a client waits for the next one while none takes it.
    bool follows_masters = false;
};

/// One loop's thread, but for what says otherwise.
class proxy_worker final : public serving::loop_worker {
public:
    /// On its loop.
    proxy_worker(const serving::worker_place& place, const config& chosen, tunnel_routes routes);
    ~proxy_worker() override;

    void take(stream accepted, serving::connection_slot slot) override;
    task<void> drain(duration limit) override;

    /// Applies live options. Connections that exist keep their backends, but for those of abandoned
    /// ones, which are closed.
    void apply(const config& chosen, tunnel_routes routes);

private:
    class client;

    serving::connections::limits limits() const noexcept;
    task<void> serve(std::unique_ptr<client> c);
    task<std::shared_ptr<eddy::proxy::balancer>> choose_by_name(client& c, byte_buffer& received);
    task<bool> open(client& c, std::shared_ptr<eddy::proxy::balancer> backends);
    task<bool> try_each(client& c, std::shared_ptr<eddy::proxy::balancer> backends);
    task<bool> next_routes(std::shared_ptr<eddy::proxy::balancer> tried, time_point end);
    static std::string explained(const eddy::proxy::backend& of, std::error_code error);
    byte_buffer announcement(const client& c) const;

    serving::journal& events_;
    const std::size_t index_;
    config config_;
    tunnel_routes routes_;
    event changed_;  // set, and reset at once, with the routes
    eddy::proxy::tunnel_buffers buffers_;
    failure_report unreached_{"clients were closed, as they got no backend"};
    failure_report failed_backends_{"connections to backends failed"};
};

}  // namespace eddy::runtime::proxy
