// Worker of a site: the clients of one loop.
#pragma once

#include <eddy/base/histogram.hpp>
#include <eddy/http/session.hpp>
#include <eddy/http/static_files.hpp>

#include "http/codings/coded_cache.hpp"
#include "http/server/server_worker.hpp"
#include "runtime/http/access_log.hpp"
#include "runtime/http/options.hpp"
#include "runtime/logs/shared_log.hpp"
#include "serving/counters.hpp"

#include <array>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string_view>

namespace eddy::runtime::http {

/// Context that the workers of a site share, one for each start of it. It outlives them.
struct site_context {
    serving::journal& events;
    shared_log& log;
    bool has_log = false;
};

/// Requests by status, 1xx to 5xx.
using status_classes = std::array<serving::tally, 5>;

/// One loop's thread, but for what says otherwise.
class site_worker final : private eddy::http::request_handler, public eddy::http::server_worker {
public:
    /// On its loop. `of` outlives it.
    site_worker(const serving::worker_place& place, site_context& of, const config& chosen,
                eddy::http::static_files files);
    ~site_worker() override;

    /// Applies live options.
    void apply(const config& chosen);
    /// Serves another folder, from the next request on.
    void replace_files(eddy::http::static_files files);
    /// Index among the workers. Any thread.
    std::size_t index() const noexcept { return index_; }

    /// Any thread.
    const status_classes& by_status() const noexcept { return by_status_; }
    /// Times from a request's head to the end of its response. Any thread.
    histogram latency() const;

private:
    task<eddy::http::response> handle(eddy::http::request& incoming) override;
    task<eddy::http::response> answer_compressed(eddy::http::request& incoming);
    eddy::http::response reject(int status, std::string_view what) override;
    std::unique_ptr<const eddy::http::client_label> label(const stream& accepted) const override;
    void note(const eddy::http::client_label* from,
              const eddy::http::exchange_record& what) override;

    site_context& context_;
    config config_;
    access_log_writer lines_;
    eddy::http::static_files files_;
    eddy::http::coded_cache compressed_;
    status_classes by_status_;
    const std::size_t index_;
    const std::size_t compressed_bytes_;
    bool is_shared_;  // the latency, with the home loop's thread
    mutable std::mutex latency_guard_;
    histogram latency_;
};

}  // namespace eddy::runtime::http
