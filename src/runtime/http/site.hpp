// Site: the http runtime, which serves the files of a folder.
#pragma once

#include <eddy/base/histogram.hpp>

#include "runtime/host.hpp"
#include "runtime/http/options.hpp"
#include "runtime/http/worker.hpp"
#include "runtime/instance.hpp"
#include "runtime/journal.hpp"
#include "runtime/line_log.hpp"
#include "runtime/metrics.hpp"
#include "runtime/problem.hpp"
#include "runtime/settings.hpp"

#include <memory>
#include <string>

namespace eddy::runtime::http {

/// One loop's thread.
class site final : public instance {
public:
    explicit site(creation from);
    ~site() override;

    task<outcome<>> start() override;
    task<void> stop(duration drain) override;
    metrics count() const override;
    endpoint local() const override;
    outcome<> apply(const settings& changed) override;
    task<outcome<>> check_restart(settings next, bool discards_data) override;
    task<outcome<bool>> reread() override;

private:
    task<outcome<>> give_up(outcome<> why);
    task<void> end_workers();

    std::string name_;
    settings options_;
    std::shared_ptr<host> host_;  // null without one
    journal& events_;
    config config_;
    counters counted_;
    status_classes by_status_;  // of workers that have ended
    histogram latency_;         // the same
    line_log log_;

    // While it runs.
    struct running;
    std::unique_ptr<running> running_;
};

}  // namespace eddy::runtime::http
