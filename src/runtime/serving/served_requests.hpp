// Served requests: the counts, times and log lines of the HTTP responses of a runtime.
#pragma once

#include <eddy/base/histogram.hpp>
#include <eddy/http/session.hpp>
#include <eddy/io/stream.hpp>

#include "http/server/server_worker.hpp"
#include "runtime/logs/access_log.hpp"
#include "runtime/logs/shared_log.hpp"
#include "runtime/metrics.hpp"
#include "serving/counters.hpp"

#include <array>
#include <memory>
#include <mutex>

namespace eddy::runtime {

/// Access log of a runtime that the workers share, one for each start of it. It outlives them.
struct request_log {
    shared_log& lines;
    bool is_open = false;  ///< there is a file
};

/// Responses by status, 1xx to 5xx.
using status_classes = std::array<serving::tally, 5>;

/// Responses of one worker. Its loop's thread, but for by_status() and latency(): any.
class served_requests {
public:
    /// `is_shared`: other threads ask for the latency. `is_proxy`: other servers answer.
    served_requests(request_log& log, access_format format, bool is_shared,
                    bool is_proxy = false) noexcept
        : log_(log), lines_(format, is_proxy), is_shared_(is_shared) {}

    /// For server_worker::label(). `announced`: as loop_worker::announced().
    std::unique_ptr<const eddy::http::client_label> label(
        const stream& accepted, const proxy_protocol::client_values* announced) const;
    /// Counts and writes a response that has ended; lines that are lost are added to `dropped`.
    void note(const eddy::http::client_label* from, const eddy::http::exchange_record& what,
              serving::tally& dropped);

    const status_classes& by_status() const noexcept { return by_status_; }
    /// Times from a request's head to the end of its response.
    histogram latency() const;

private:
    request_log& log_;
    access_log_writer lines_;
    status_classes by_status_;
    const bool is_shared_;
    mutable std::mutex latency_guard_;
    histogram latency_;
};

/// Sum of the responses of several workers. One thread.
class request_totals {
public:
    void add(const served_requests& of);
    /// Adds the metrics requests_total{code=}, request_seconds, and metrics::latency.
    void add_to(metrics& to) const;

private:
    status_classes by_status_;
    histogram latency_;
};

}  // namespace eddy::runtime
