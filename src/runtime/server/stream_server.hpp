// The server runtime over streams: TCP, TLS, Unix sockets, and what else a URI may name. Its loop
// accepts, and serves the clients (worker.hpp) or, with --threads, has other loops serve them.
#pragma once

#include <eddy/base/histogram.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/task.hpp>

#include "base/problem.hpp"
#include "runtime/scripting/script_reload.hpp"
#include "runtime/server/options.hpp"
#include "runtime/server/server_context.hpp"
#include "runtime/server/server_worker.hpp"
#include "runtime/server/upstreams.hpp"
#include "runtime/serving/served_log.hpp"
#include "runtime/serving/served_runtime.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::runtime::server {

/// One loop's thread.
class stream_server final : public served_runtime {
public:
    /// `connect` makes the clients of --upstream.
    stream_server(creation from, kept_client_factory connect);

    task<outcome<std::uint64_t>> send(std::string message) override;
    task<outcome<>> reload_script() override;
    void give_up_start() noexcept override { reloads_.give_up(); }

private:
    /// For each worker those of --http; none without. Of several loops each has its own.
    using all_files = std::shared_ptr<std::vector<std::optional<eddy::http::static_files>>>;
    class send_under_way;

    outcome<config_pointer> read(const settings& options) const override;
    outcome<> prepare() override;
    task<outcome<>> check(config_pointer next, bool discards_data) override;
    serving::loop_pool::factory worker_factory() override;
    task<outcome<>> begin() override;
    task<void> begin_stop() override;
    task<void> accepting_ended(duration drain) override;
    task<void> clients_ended(bool has_started) override;
    void retire(const serving::loop_worker& last) override;
    task<void> end() override;
    void add_counts(metrics& to) const override;
    script_tallies script_counts() const;
    task<outcome<bool>> reread_files() override;
    void apply_live() override;
    void apply_live_to_workers();
    void set_master(const server::config& by);
    void add_claims(metrics& to) const;
    std::string_view refusal() const override;
    std::string lack() const override;
    task<outcome<>> take_upstream(upstream_event what);

    const server::config& chosen() const noexcept;
    server_worker& here() const noexcept;
    task<outcome<std::optional<std::string>>> ask_script(std::string text);
    task<outcome<std::uint64_t>> send_text(std::string message);
    task<outcome<std::uint64_t>> send_to_all(shared_messages what);
    task<outcome<>> read_and_replace_script();
    std::unexpected<problem> stopped() const;
    std::unexpected<problem> too_slow(std::uint64_t reached) const;

    const kept_client_factory connect_;
    histogram latency_;                // of workers that have ended
    std::uint64_t http_requests_ = 0;  // of those
    script_tallies script_counts_;     // of those
    std::uint64_t cache_commands_ = 0;
    std::uint64_t cache_failures_ = 0;
    std::uint64_t claims_ = 0;  // of starts before
    std::uint64_t claims_refused_ = 0;
    served_log log_;

    // While it runs.
    all_files files_;  // until the workers have them
    std::optional<server_context> context_;
    std::uint64_t global_rate_limit_ = 0;  // of the context's pace
    std::vector<cancel_source*> sends_;
    event send_ended_;
    script_reloads reloads_;
    bool is_stopping_ = false;
};

}  // namespace eddy::runtime::server
