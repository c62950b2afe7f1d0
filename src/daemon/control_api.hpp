// The control API: what each request of docs/control-api.openapi.json does.
#pragma once

#include <eddy/io/task.hpp>

#include "daemon/http_session.hpp"
#include "daemon/manager.hpp"
#include "daemon/metrics.hpp"
#include "daemon/router.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::daemon {

/// The largest body of a request; a message to send may take it all.
inline constexpr std::uint64_t control_body_limit = 1024 * 1024;

/// An error as the API answers it: {"error": {"status": 404, "message": "..."}}.
http_response error_response(int status, std::string_view message);

/// Answers requests of whoever may control the daemon. Everything given outlives it; control loop.
class control_api final : public request_handler {
public:
    control_api(manager& runtimes, const daemon_facts& facts, daemon_counters& counted)
        : runtimes_(runtimes), facts_(facts), counted_(counted) {}

    /// Every method and path that is answered.
    static std::span<const route> routes();

    task<http_response> handle(http_request request) override;
    http_response reject(int status, std::string_view what) override;

private:
    using parameters = std::vector<std::string>;
    using handler = task<http_response> (control_api::*)(http_request, parameters);
    struct entry;
    static std::span<const entry> table();

    task<http_response> get_version(http_request request, parameters with);
    task<http_response> get_daemon(http_request request, parameters with);
    task<http_response> reload_daemon(http_request request, parameters with);
    task<http_response> get_types(http_request request, parameters with);
    task<http_response> get_metrics(http_request request, parameters with);
    task<http_response> list_runtimes(http_request request, parameters with);
    task<http_response> create_runtime(http_request request, parameters with);
    task<http_response> get_runtime(http_request request, parameters with);
    task<http_response> edit_runtime(http_request request, parameters with);
    task<http_response> remove_runtime(http_request request, parameters with);
    task<http_response> start_runtime(http_request request, parameters with);
    task<http_response> stop_runtime(http_request request, parameters with);
    task<http_response> reload_runtime(http_request request, parameters with);
    task<http_response> send_to_runtime(http_request request, parameters with);
    task<http_response> get_stats(http_request request, parameters with);
    task<http_response> get_logs(http_request request, parameters with);

    void count(const http_response& response, time_point began);

    manager& runtimes_;
    const daemon_facts& facts_;
    daemon_counters& counted_;
};

/// Answers everybody with the same refusal: for peers who may not control the daemon.
class closed_door final : public request_handler {
public:
    closed_door(int status, std::string message) : status_(status), message_(std::move(message)) {}
    task<http_response> handle(http_request request) override;
    http_response reject(int status, std::string_view what) override;

private:
    int status_;
    std::string message_;
};

/// Answers GET /metrics and nothing else: for the TCP port.
class metrics_page final : public request_handler {
public:
    metrics_page(manager& runtimes, const daemon_facts& facts, const daemon_counters& counted)
        : runtimes_(runtimes), facts_(facts), counted_(counted) {}
    task<http_response> handle(http_request request) override;
    http_response reject(int status, std::string_view what) override;

private:
    manager& runtimes_;
    const daemon_facts& facts_;
    const daemon_counters& counted_;
};

}  // namespace eddy::daemon
