// Host of an instance. Requests are tasks for the control loop; one from an instance that is no
// longer the runtime's is dropped.
#include "daemon/runtimes/instance_host.hpp"

#include <eddy/base/log.hpp>
#include <eddy/io/executor.hpp>

#include "daemon/runtimes/runtime_parts.hpp"

#include <utility>

namespace eddy::daemon {
namespace {

/// Null when there is none any more.
runtime_ref find_instance(runtime_parts* of, const std::string& name, std::uint64_t number) {
    if (of == nullptr) return nullptr;
    auto found = of->registry.find(name);
    return found && (*found)->running.number() == number ? *found : nullptr;
}

task<void> stop_there(std::shared_ptr<runtime_parts*> of, std::string name, std::uint64_t number) {
    const runtime_ref which = find_instance(*of, name, number);
    if (which == nullptr) co_return;
    const auto stopped = co_await (*of)->lifecycle.stop_instance(which, number);
    if (!stopped) log_warn(name, stopped.error().message);
}

task<void> end_there(std::shared_ptr<runtime_parts*> of, std::string name, std::uint64_t number,
                     std::string how, bool is_failure) {
    const runtime_ref which = find_instance(*of, name, number);
    if (which == nullptr || !which->running.has_instance()) co_return;
    const auto stopped =
        co_await (*of)->lifecycle.end_instance(which, {number, std::move(how), is_failure});
    if (!stopped) log_warn(name, stopped.error().message);
}

task<outcome<>> keep_there(std::shared_ptr<runtime_parts*> of, std::string name,
                           std::uint64_t number, json options) {
    const runtime_ref which = find_instance(*of, name, number);
    if (which == nullptr) co_return refuse(409, "the daemon is stopping it");
    co_return co_await (*of)->editor.keep_options(which, std::move(options));
}

class instance_host final : public runtime::host {
public:
    instance_host(std::shared_ptr<runtime_parts*> of, shared_services with,
                  std::shared_ptr<message_feed> messages, std::string name, std::uint64_t number)
        : host(std::move(name), std::move(with.runtimes), std::move(with.messages)),
          access_(std::move(with.control)),
          of_(std::move(of)),
          messages_(std::move(messages)),
          number_(number) {}

    void request_stop() override {
        // When the control loop is gone, so is everything soon.
        static_cast<void>(control_.post(stop_there(of_, name(), number_)));
    }

    void request_end(std::string how, bool is_failure) override {
        static_cast<void>(
            control_.post(end_there(of_, name(), number_, std::move(how), is_failure)));
    }

    task<outcome<>> keep_options(nlohmann::json changed) override {
        auto kept =
            co_await resume_on(control_, keep_there(of_, name(), number_, std::move(changed)));
        if (!kept) co_return refuse(503, "the daemon did not answer");
        co_return std::move(*kept);
    }

    runtime::control_access control() const override { return access_; }

    bool has_followers() const noexcept override {
        return messages_ != nullptr && messages_->has_followers();
    }
    void show_received(std::string_view message) override {
        if (messages_ != nullptr) messages_->write(message);
    }

private:
    const runtime::control_access access_;
    const executor control_ = executor::current();
    const std::shared_ptr<runtime_parts*> of_;
    const std::shared_ptr<message_feed> messages_;
    const std::uint64_t number_;
};

}  // namespace

std::shared_ptr<runtime::host> make_host(std::shared_ptr<runtime_parts*> of, shared_services with,
                                         std::shared_ptr<message_feed> messages, std::string name,
                                         std::uint64_t number) {
    return std::make_shared<instance_host>(std::move(of), std::move(with), std::move(messages),
                                           std::move(name), number);
}

}  // namespace eddy::daemon
