// Proxy: the runtime that passes clients on to backends, by connection or by HTTP request.
#pragma once

#include "proxy/balancer.hpp"
#include "proxy/health.hpp"
#include "runtime/metrics.hpp"
#include "runtime/proxy/http_proxy_worker.hpp"
#include "runtime/proxy/options.hpp"
#include "runtime/proxy/proxy_worker.hpp"
#include "runtime/proxy/source_watches.hpp"
#include "runtime/serving/served_log.hpp"
#include "runtime/serving/served_requests.hpp"
#include "runtime/serving/served_runtime.hpp"

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::runtime::proxy {

/// One loop's thread.
class proxy_server final : public served_runtime, private eddy::proxy::health_observer {
public:
    explicit proxy_server(creation from);

    task<outcome<>> reload_script() override;

private:
    outcome<config_pointer> read(const settings& chosen) const override;
    outcome<> prepare() override;
    task<outcome<>> check(config_pointer next, bool discards_data) override;
    serving::loop_pool::factory worker_factory() override;
    task<outcome<>> begin() override;
    void retire(const serving::loop_worker& last) override;
    task<void> begin_stop() override;
    task<void> clients_ended(bool has_started) override;
    task<void> end() override;
    void add_counts(metrics& to) const override;
    std::string lack() const override;
    std::string detail() const override;
    script_tallies script_counts() const;
    task<outcome<bool>> reread_files() override;
    void apply_live() override;
    std::string_view refusal() const override;

    const proxy::config& chosen() const noexcept;
    bool is_http() const noexcept { return chosen().speaks == protocol::http; }
    void note_absent(const std::vector<backend_source>& sources);
    std::shared_ptr<eddy::proxy::balancer> balance(const std::vector<backend_source>& sources,
                                                   std::string flag);
    void forget_backends();
    std::vector<backend_source> all_sources() const;
    http_plan plan();
    eddy::proxy::named_routes name_routes(const std::vector<eddy::proxy::route>& routes) const;
    tunnel_routes tunnel_plan();
    void forget_former_backends();
    bool is_own_address(const transport::address& where) const;
    followed_addresses known() const noexcept {
        return watches_ ? watches_->known() : followed_addresses();
    }
    void note_down(const eddy::proxy::backend& which, std::string_view why) noexcept override;
    void note_up(const eddy::proxy::backend& which) noexcept override;
    void update_workers();

    /// Balancer in force.
    struct route_balancer {
        std::string flag;  ///< that names its backends
        std::shared_ptr<eddy::proxy::balancer> its;
    };

    eddy::proxy::backend_list backends_;                // of all routes, each of them once
    std::vector<route_balancer> balancers_;             // of those with sources
    std::set<std::string> absent_;                      // names in the journal
    eddy::proxy::backend_list before_;                  // while new ones are made
    std::optional<eddy::proxy::health_checks> checks_;  // while it runs
    std::optional<source_watches> watches_;             // while it runs
    request_totals requests_;                           // of workers that have ended
    script_tallies script_counts_;                      // the same
    bool is_stopping_ = false;
    served_log log_;
    std::optional<request_log> written_;  // while it runs
    const std::shared_ptr<eddy::proxy::buffer_budget> budget_ =
        std::make_shared<eddy::proxy::buffer_budget>();
    std::shared_ptr<const eddy::proxy::error_pages> pages_;  // as they were read last
};

}  // namespace eddy::runtime::proxy
