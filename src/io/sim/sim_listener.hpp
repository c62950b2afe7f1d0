// A simulated listening socket.
#pragma once

#include "io/sim/sim_backend.hpp"
#include "io/sim/sim_stream.hpp"

#include <cstddef>
#include <deque>

namespace eddy {

class sim_listener final : public listener_driver {
public:
    sim_listener(sim_backend& world, const endpoint& local, const listen_options& options)
        : world_(world), local_(local), options_(options) {}

    bool start(accept_operation& op) override;
    void cancel(accept_operation& op) noexcept override;
    endpoint local() const noexcept override { return local_; }
    int native_handle() const noexcept override { return -1; }
    void close() noexcept override;

    const listen_options& options() const noexcept { return options_; }
    bool full() const noexcept {
        return backlog_.size() >= static_cast<std::size_t>(options_.backlog);
    }
    /// A connection has come in; not when full().
    void add(sim_stream& connected);

private:
    ~sim_listener();

    sim_backend& world_;
    endpoint local_;
    listen_options options_;
    std::deque<sim_stream*> backlog_;
    accept_operation* acceptor_ = nullptr;
};

}  // namespace eddy
