// Host for tests: instances that share a registry and a message bus, without a daemon.
#pragma once

#include <eddy/io/task.hpp>

#include "runtime/host/host.hpp"
#include "runtime/host/message_bus.hpp"
#include "runtime/host/registry.hpp"

#include <nlohmann/json.hpp>

#include <memory>
#include <string>
#include <utility>

namespace eddy::runtime::testing {

/// Services that the instances of a test share in place of a daemon.
struct neighbours {
    std::shared_ptr<registry> runtimes = std::make_shared<registry>();
    std::shared_ptr<message_bus> messages = std::make_shared<message_bus>();
};

/// Host of an instance of a test: it counts requests, and does nothing else about them.
class test_host final : public host {
public:
    test_host(const neighbours& of, std::string name)
        : host(name, of.runtimes, of.messages), runtimes_(of.runtimes), name_(std::move(name)) {
        runtimes_->add(name_, "id-of-" + name_, "");
    }
    /// As the daemon does after a start, and before and after a stop.
    void has_started() { runtimes_->set_running(name_, true); }
    void stops() { runtimes_->set_running(name_, false); }

    void request_stop() override { ++stop_requests; }
    task<outcome<>> keep_options(nlohmann::json changed) override {
        kept = std::move(changed);
        co_return outcome<>();
    }

    int stop_requests = 0;
    nlohmann::json kept;

private:
    const std::shared_ptr<registry> runtimes_;
    const std::string name_;
};

}  // namespace eddy::runtime::testing
