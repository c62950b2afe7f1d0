// Worker of a site: the clients of one loop.
#pragma once

#include <eddy/http/session.hpp>
#include <eddy/http/static_files.hpp>

#include "http/codings/coded_cache.hpp"
#include "http/server/server_worker.hpp"
#include "runtime/http/options.hpp"
#include "runtime/http/script/site_script.hpp"
#include "runtime/serving/served_requests.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace eddy::runtime::http {

/// One loop's thread, but for what says otherwise.
class site_worker final : private eddy::http::request_handler, public eddy::http::server_worker {
public:
    /// On its loop. `log` outlives it.
    site_worker(const serving::worker_place& place, request_log& log, const config& chosen,
                std::optional<eddy::http::static_files> files, const script_identity& identity);
    ~site_worker() override;

    task<void> drain(duration limit) override;
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

    /// Applies live options.
    void apply(const config& chosen);
    /// Serves another folder, from the next request on.
    void replace_files(std::optional<eddy::http::static_files> files);
    /// Index among the workers. Any thread.
    std::size_t index() const noexcept { return index_; }

    const served_requests& requests() const noexcept { return requests_; }

private:
    task<eddy::http::response> handle(eddy::http::request& incoming) override;
    task<eddy::http::response> serve(eddy::http::request& incoming);
    task<eddy::http::response> answer_by_script(eddy::http::request& incoming);
    task<eddy::http::response> answer_compressed(eddy::http::request& incoming);
    eddy::http::response reject(int status, std::string_view what) override;
    std::unique_ptr<const eddy::http::client_label> label(const stream& accepted) const override;
    void note(const eddy::http::client_label* from,
              const eddy::http::exchange_record& what) override;

    config config_;
    served_requests requests_;
    std::unique_ptr<site_script> script_;  // null without one
    std::string script_fault_;             // why it was not made
    std::optional<eddy::http::static_files> files_;
    eddy::http::coded_cache compressed_;
    const std::size_t index_;
    const std::size_t compressed_bytes_;
};

}  // namespace eddy::runtime::http
