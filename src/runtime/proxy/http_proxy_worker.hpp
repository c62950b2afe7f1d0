// HTTP proxy worker: the HTTP clients of one loop, whose requests are forwarded.
#pragma once

#include <eddy/io/stream.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>

#include "http/server/server_worker.hpp"
#include "proxy/http/forwarder.hpp"
#include "runtime/proxy/options.hpp"
#include "runtime/proxy/script/proxy_script.hpp"
#include "runtime/serving/served_requests.hpp"

#include <memory>
#include <string>
#include <string_view>

namespace eddy::runtime::proxy {

/// Where requests go, and how.
struct http_plan {
    std::shared_ptr<const eddy::proxy::forwarding_rules> rules;
    std::shared_ptr<const eddy::proxy::route_table> routes;
    std::shared_ptr<const eddy::proxy::error_pages> pages;  ///< null for none
    std::shared_ptr<eddy::proxy::buffer_budget> budget;     ///< the same for all workers, always
    std::shared_ptr<const eddy::proxy::named_routes> named = nullptr;  ///< for a script
    script_identity identity = {};                                     ///< the same
};

/// One loop's thread, but for what says otherwise.
class http_proxy_worker final : public eddy::http::server_worker,
                                private eddy::proxy::forwarding_observer {
public:
    /// On its loop. `log` outlives it.
    http_proxy_worker(const serving::worker_place& place, request_log& log, const config& chosen,
                      http_plan plan);
    ~http_proxy_worker() override;

    task<void> drain(duration limit) override;
    /// Applies live options. Requests under way keep theirs.
    void apply(const config& chosen, http_plan plan);

    /// Runs the script's on_start(), if there is one. Its failure is the start's, and so is that of
    /// loading it.
    task<outcome<>> start_script();
    /// Replaces the script by another version, in two steps: see loop_script::prepare().
    task<outcome<>> prepare_script(script_file by);
    void adopt_script();
    void discard_script();
    /// Counts of the script; null without one. Any thread.
    const script_tallies* script_counts() const noexcept {
        return script_ ? &script_->counted() : nullptr;
    }

    /// Its members are for any thread.
    const served_requests& requests() const noexcept { return requests_; }

private:
    void set_plan(http_plan plan);
    std::unique_ptr<const eddy::http::client_label> label(const stream& accepted) const override;
    void note(const eddy::http::client_label* from,
              const eddy::http::exchange_record& what) override;

    void note_failed_backend(const eddy::proxy::backend& which,
                             std::string_view why) noexcept override;
    void note_unanswered(int status, std::string_view why) noexcept override;
    void note_ejected(const eddy::proxy::backend& which) noexcept override;
    void note_returned(const eddy::proxy::backend& which) noexcept override;
    void note_slow(const eddy::proxy::slow_backend& which) noexcept override;
    void note_no_memory() noexcept override;

    serving::journal& events_;
    served_requests requests_;
    std::unique_ptr<proxy_script> script_;  // null without one
    std::string script_fault_;              // why it was not loaded
    eddy::proxy::forwarder forwarder_;
    failure_report failed_backends_{"requests failed at backends"};
    failure_report refused_{"requests of clients were refused"};
    failure_report unanswered_{"requests were answered by the proxy itself"};
};

}  // namespace eddy::runtime::proxy
