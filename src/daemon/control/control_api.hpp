// The control API: what each request of docs/control-api.openapi.json does.
#pragma once

#include <eddy/http/router.hpp>
#include <eddy/http/session.hpp>
#include <eddy/io/task.hpp>

#include "daemon/control/metrics.hpp"
#include "daemon/runtimes/runtime_parts.hpp"
#include "daemon/upgrade/outgoing_upgrade.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace eddy::daemon {

/// The largest body of a request; a message to send may take it all.
inline constexpr std::uint64_t control_body_limit = 1024 * 1024;

/// An error as the API answers it: {"error": {"status": 404, "message": "..."}}.
http::response error_response(int status, std::string_view message);

class cluster_service;
class console;

/// Replies to requests of users that may control the daemon. Everything given outlives it; control
/// loop.
class control_api final : public http::request_handler {
public:
    control_api(runtime_parts& runtimes, const daemon_facts& facts, daemon_counters& counted);
    control_api(const control_api&) = delete;
    control_api& operator=(const control_api&) = delete;

    /// Every method and path that is answered.
    static std::span<const http::route> routes();

    /// The console that /v1/console opens and closes; without one that is 403. It outlives the
    /// api's requests.
    void set_console(console& which) noexcept { console_ = &which; }

    /// The cluster of /v1/cluster; without one that is 404. It outlives the api's requests.
    void set_cluster(const cluster_service& which) noexcept { cluster_ = &which; }

    task<http::response> handle(http::request& request) override;
    http::response reject(int status, std::string_view what) override;

    /// Runs an upgrade; without one it is refused.
    using upgrader = std::function<task<outcome<upgrade_report>>(upgrade_request)>;
    void set_upgrader(upgrader by) { upgrader_ = std::move(by); }
    /// While it is true, changes are refused (409). Requests that were accepted before are still
    /// under way.
    void refuse_changes(bool are_refused) noexcept { refuses_changes_ = are_refused; }
    std::size_t changes_under_way() const noexcept { return changes_under_way_; }

private:
    using handler = task<http::response> (control_api::*)(http::request&);
    struct entry;
    static std::span<const entry> table();

    task<http::response> get_version(http::request& request);
    task<http::response> get_daemon(http::request& request);
    task<http::response> reload_daemon(http::request& request);
    task<http::response> upgrade_daemon(http::request& request);
    task<http::response> get_types(http::request& request);
    task<http::response> get_metrics(http::request& request);
    task<http::response> get_console(http::request& request);
    task<http::response> open_console(http::request& request);
    task<http::response> close_console(http::request& request);
    task<http::response> get_events(http::request& request);
    task<http::response> get_cluster(http::request& request);
    task<http::response> get_member(http::request& request);
    task<http::response> list_cluster_runtimes(http::request& request);
    task<http::response> list_cluster_groups(http::request& request);
    task<http::response> get_cluster_events(http::request& request);
    task<http::response> list_runtimes(http::request& request);
    task<http::response> create_runtime(http::request& request);
    task<http::response> get_runtime(http::request& request);
    task<http::response> edit_runtime(http::request& request);
    task<http::response> remove_runtime(http::request& request);
    task<http::response> start_runtime(http::request& request);
    task<http::response> stop_runtime(http::request& request);
    task<http::response> restart_runtime(http::request& request);
    task<http::response> rename_runtime(http::request& request);
    task<http::response> reload_runtime(http::request& request);
    task<http::response> reload_script(http::request& request);
    task<http::response> send_to_runtime(http::request& request);
    task<http::response> run_command(http::request& request);
    task<http::response> put_stack(http::request& request);
    task<http::response> get_stats(http::request& request);
    task<http::response> list_stats(http::request& request);
    task<http::response> get_logs(http::request& request);
    task<http::response> follow_messages(http::request& request);

    task<http::response> answer(http::request& request);
    void count(const http::response& response, time_point began);

    runtime_parts& runtimes_;
    const daemon_facts& facts_;
    daemon_counters& counted_;
    http::router router_;
    console* console_ = nullptr;
    const cluster_service* cluster_ = nullptr;
    upgrader upgrader_;
    bool refuses_changes_ = false;
    std::size_t changes_under_way_ = 0;
};

/// Replies to all requests with the same refusal: for peers that may not control the daemon.
class refusing_handler final : public http::request_handler {
public:
    refusing_handler(int status, std::string message)
        : status_(status), message_(std::move(message)) {}
    task<http::response> handle(http::request& request) override;
    http::response reject(int status, std::string_view what) override;

private:
    int status_;
    std::string message_;
};

/// Answers GET /metrics and nothing else: for the TCP port.
class metrics_page final : public http::request_handler {
public:
    metrics_page(runtime_parts& runtimes, const daemon_facts& facts,
                 const daemon_counters& counted);
    metrics_page(const metrics_page&) = delete;
    metrics_page& operator=(const metrics_page&) = delete;
    task<http::response> handle(http::request& request) override;
    http::response reject(int status, std::string_view what) override;

private:
    runtime_parts& runtimes_;
    const daemon_facts& facts_;
    const daemon_counters& counted_;
    http::router router_;
};

}  // namespace eddy::daemon
