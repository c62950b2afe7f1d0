// Site: the http runtime, which serves the files of a folder.
#pragma once

#include "runtime/http/options.hpp"
#include "runtime/http/site_worker.hpp"
#include "runtime/scripting/script_reload.hpp"
#include "runtime/serving/served_log.hpp"
#include "runtime/serving/served_requests.hpp"
#include "runtime/serving/served_runtime.hpp"

#include <memory>
#include <optional>
#include <vector>

namespace eddy::runtime::http {

/// One loop's thread.
class site final : public served_runtime {
public:
    explicit site(creation from);

    task<outcome<>> reload_script() override;
    void give_up_start() noexcept override { reloads_.give_up(); }

private:
    /// One for each worker. Shared, since what makes the workers is copied.
    using all_files = std::shared_ptr<std::vector<std::optional<eddy::http::static_files>>>;

    outcome<config_pointer> read(const settings& chosen) const override;
    outcome<> prepare() override;
    task<outcome<>> check(config_pointer next, bool discards_data) override;
    serving::loop_pool::factory worker_factory() override;
    task<outcome<>> begin() override;
    void retire(const serving::loop_worker& last) override;
    task<void> begin_stop() override;
    task<void> end() override;
    void add_counts(metrics& to) const override;
    task<outcome<bool>> reread_files() override;
    void apply_live() override;
    std::string_view refusal() const override { return site_worker::refusal; }

    const http::config& chosen() const noexcept;
    task<outcome<>> read_and_replace_script();
    script_tallies script_counts() const;
    std::string lack() const override;

    request_totals requests_;       // of workers that have ended
    script_tallies script_counts_;  // the same
    served_log log_;

    // While it runs.
    all_files files_;  // until the workers have them
    std::optional<request_log> written_;
    script_reloads reloads_;
    bool is_stopping_ = false;
};

}  // namespace eddy::runtime::http
