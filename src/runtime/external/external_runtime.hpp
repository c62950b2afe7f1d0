// External: the runtime that watches a process which something else has started.
#pragma once

#include <eddy/base/unique_fd.hpp>
#include <eddy/io/blocking.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/scope.hpp>

#include "runtime/external/options.hpp"
#include "runtime/host/registry.hpp"
#include "runtime/instance.hpp"
#include "serving/counters.hpp"

#include <memory>
#include <optional>
#include <string>

namespace eddy::runtime::external {

/// It only looks: the process gets no signal. One that is held (creation::is_held) was there before
/// an upgrade, or one that has failed: it starts without what it watches, too, which may be a
/// program that the upgrade stops. One loop's thread.
class external_runtime final : public instance {
public:
    explicit external_runtime(creation from);

    /// Checks the process and the port.
    task<outcome<>> start() override;
    /// Ends the watch; the process stays.
    task<void> stop(duration drain) override;
    void open() override;
    metrics count() const override { return metrics(counted_); }
    /// The port, at this machine's own address.
    endpoint local() const override { return local_; }
    std::string fault() const override { return tasks_ ? fault_ : std::string(); }
    std::string detail() const override;
    task<outcome<>> check_restart(settings next, bool discards_data) override;
    outcome<> apply(const settings& changed) override;

private:
    task<outcome<unique_fd>> check(config of, bool was_watched);
    void begin_watch();
    task<void> watch_process();
    task<void> watch_port();

    const std::string name_;
    settings given_;
    serving::journal& events_;
    const std::shared_ptr<runtime::host> host_;
    bool is_held_;  // until open()
    config chosen_;
    serving::counters counted_;
    blocking_pool disk_{{.max_threads = 1}};
    unique_fd process_;  // a pidfd; none without --pid
    endpoint local_;
    address_note note_;
    std::string fault_;
    std::optional<scope> tasks_;  // while it runs
};

}  // namespace eddy::runtime::external
