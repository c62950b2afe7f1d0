// The server runtime over streams: TCP, TLS, Unix sockets, and what else a URI may name. Its loop
// accepts, and serves the clients (worker.hpp) or, with --threads, has other loops serve them.
#pragma once

#include <eddy/base/histogram.hpp>

#include "runtime/host.hpp"
#include "runtime/instance.hpp"
#include "runtime/journal.hpp"
#include "runtime/line_log.hpp"
#include "runtime/metrics.hpp"
#include "runtime/problem.hpp"
#include "runtime/server/options.hpp"
#include "runtime/server/worker.hpp"
#include "runtime/settings.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace eddy::runtime::server {

/// One loop's thread.
class stream_server final : public instance {
public:
    explicit stream_server(creation from);
    ~stream_server() override;

    task<outcome<>> start() override;
    task<void> stop(duration drain) override;
    metrics count() const override;
    endpoint local() const override;
    task<outcome<std::uint64_t>> send(std::string message) override;
    outcome<> apply(const settings& changed) override;
    task<outcome<>> check_restart(settings next, bool discards_data) override;
    task<outcome<bool>> reread() override;

private:
    task<outcome<>> give_up(outcome<> why);
    task<void> end_workers();
    worker& here() const noexcept;
    task<outcome<std::uint64_t>> send_to_all(shared_messages what);
    std::unexpected<problem> too_slow(std::uint64_t reached) const;

    std::string name_;
    settings options_;
    std::shared_ptr<host> host_;  // null without one
    journal& events_;
    config config_;
    counters counted_;
    histogram latency_;                // of workers that have ended
    std::uint64_t http_requests_ = 0;  // of those
    line_log log_;

    // While it runs.
    struct running;
    std::unique_ptr<running> running_;
};

}  // namespace eddy::runtime::server
