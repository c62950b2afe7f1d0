// Proxy: the runtime that passes each client's connection on to a backend.
#pragma once

#include "runtime/metrics.hpp"
#include "runtime/proxy/balancer.hpp"
#include "runtime/proxy/options.hpp"
#include "runtime/serving/served_runtime.hpp"

#include <memory>

namespace eddy::runtime::proxy {

/// One loop's thread.
class proxy_server final : public served_runtime {
public:
    explicit proxy_server(creation from);

private:
    outcome<config_pointer> read(const settings& chosen) const override;
    serving::loop_pool::factory worker_factory() override;
    void add_counts(metrics& to) const override;
    void apply_live() override;

    const proxy::config& chosen() const noexcept;
    std::shared_ptr<balancer> balance();

    backend_list backends_;  // named by the options
};

}  // namespace eddy::runtime::proxy
