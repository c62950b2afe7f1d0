// Proxy: the runtime that passes each client's connection on to a backend.
#pragma once

#include "runtime/host.hpp"
#include "runtime/instance.hpp"
#include "runtime/journal.hpp"
#include "runtime/metrics.hpp"
#include "runtime/problem.hpp"
#include "runtime/proxy/balancer.hpp"
#include "runtime/proxy/options.hpp"
#include "runtime/settings.hpp"

#include <memory>
#include <string>

namespace eddy::runtime::proxy {

/// One loop's thread.
class proxy_server final : public instance {
public:
    explicit proxy_server(creation from);
    ~proxy_server() override;

    task<outcome<>> start() override;
    task<void> stop(duration drain) override;
    metrics count() const override;
    endpoint local() const override;
    outcome<> apply(const settings& changed) override;
    task<outcome<>> check_restart(settings next, bool discards_data) override;
    task<outcome<bool>> reread() override;

private:
    task<outcome<>> give_up(outcome<> why);
    task<void> end_workers();
    std::shared_ptr<balancer> balance();

    std::string name_;
    settings options_;
    std::shared_ptr<host> host_;  // null without one
    journal& events_;
    config config_;
    counters counted_;       // of workers that have ended
    backend_list backends_;  // those that the options name

    // While it runs.
    struct running;
    std::unique_ptr<running> running_;
};

}  // namespace eddy::runtime::proxy
