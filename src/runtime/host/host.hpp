// Host of a runtime: what the daemon does for a running instance. It takes requests about the
// instance itself, resolves other runtimes, and carries messages between them (docs/adr/0022).
#pragma once

#include <eddy/io/endpoint.hpp>
#include <eddy/io/task.hpp>
#include <eddy/transport/transport.hpp>

#include "base/problem.hpp"
#include "runtime/host/message_bus.hpp"
#include "runtime/host/registry.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::runtime {

/// Watches and subscriptions that one instance has at a time, together.
inline constexpr std::size_t max_watches = 1024;

/// The daemon as one instance sees it. The thread of any of the instance's loops, except end().
class host {
public:
    /// Host of an instance without a daemon: nothing can be resolved, nothing is published, and
    /// requests have no effect.
    host() = default;
    /// Host of an instance of the runtime `name`.
    host(std::string name, std::shared_ptr<registry> runtimes,
         std::shared_ptr<message_bus> messages) noexcept;
    host(const host&) = delete;
    host& operator=(const host&) = delete;
    virtual ~host() = default;

    /// True when there is no daemon.
    bool is_alone() const noexcept { return runtimes_ == nullptr; }

    /// Requests a stop of the instance, as `eddy stop` does; returns at once.
    virtual void request_stop() {}
    /// Saves changed options for the next start, by their names in JSON (null takes one back). They
    /// are not applied to the instance.
    virtual task<outcome<>> keep_options(nlohmann::json changed);

    /// The addresses of a runtime, or of all that a pattern names: see registry::resolve().
    outcome<served_addresses> resolve(std::string_view target) const;
    /// Watches them. The watch belongs to the calling thread's loop and ends (errc::closed) with
    /// the instance. Refuses (503) more than max_watches.
    outcome<address_watch> watch(std::string target);

    /// See message_bus. A subscription belongs to the calling thread's loop and ends (errc::closed)
    /// with the instance; more than max_watches are refused (503).
    outcome<std::uint64_t> publish(std::string_view topic, std::string message);
    outcome<subscription> subscribe(std::string topic);

    /// Notes an address as served by the instance: for listening.hpp.
    address_note note_address(const transport::address& where, const endpoint& bound);
    /// The runtime that has an address: see registry::server_at().
    std::string server_at(const endpoint& where, bool is_datagram) const;

    /// The instance has stopped: ends its watches and subscriptions; later ones are refused (409).
    /// Any thread.
    void end() noexcept;

private:
    outcome<> add(const std::shared_ptr<loop_notifier>& subscriber);

    const std::string name_;
    const std::shared_ptr<registry> runtimes_;
    const std::shared_ptr<message_bus> messages_;
    std::mutex mutex_;
    std::vector<std::weak_ptr<loop_notifier>> subscribers_;
    bool has_ended_ = false;
};

}  // namespace eddy::runtime
