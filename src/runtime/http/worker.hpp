// Worker of a site: the clients of one loop.
#pragma once

#include <eddy/base/histogram.hpp>
#include <eddy/http/session.hpp>
#include <eddy/http/static_files.hpp>

#include "runtime/http/options.hpp"
#include "transport/serving/loop_worker.hpp"
#include "runtime/shared_log.hpp"

#include <array>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string_view>

namespace eddy::runtime::http {

/// What the workers of a site share, one for each start of it. It outlives them.
struct site_context {
    journal& events;
    shared_log log;
    bool has_log = false;
};

/// Requests by status, 1xx to 5xx.
using status_classes = std::array<tally, 5>;

/// One loop's thread, but for what says otherwise.
class worker final : public serving::loop_worker, private eddy::http::request_handler {
public:
    /// Sent to a client beyond --max-connections.
    static constexpr std::string_view refusal =
        "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Type: text/plain\r\n"
        "Content-Length: 38\r\nConnection: close\r\n\r\nthe server is full; try again shortly\n";

    /// On its loop. `of` outlives it.
    worker(const serving::worker_place& place, site_context& of, const config& chosen,
           eddy::http::static_files files);
    ~worker() override;

    void take(stream accepted, serving::connection_slot slot) override;

    /// Applies live options.
    void apply(const config& chosen);

    /// Any thread.
    const status_classes& by_status() const noexcept { return by_status_; }
    /// Times from a request's head to the end of its response. Any thread.
    histogram latency() const;

private:
    class client;

    task<eddy::http::response> handle(eddy::http::request& incoming) override;
    task<eddy::http::response> answer_compressed(eddy::http::request& incoming);
    eddy::http::response reject(int status, std::string_view what) override;
    task<void> serve(std::unique_ptr<client> c);
    void note(client& c, const eddy::http::exchange_record& what);

    site_context& context_;
    config config_;
    eddy::http::static_files files_;
    status_classes by_status_;
    bool is_shared_;  // the latency, with the home loop's thread
    mutable std::mutex latency_guard_;
    histogram latency_;
};

}  // namespace eddy::runtime::http
