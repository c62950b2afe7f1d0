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

/// Control socket of the daemon for its own runtimes; without a daemon both are empty.
struct control_access {
    std::string socket = {};  ///< its path
    std::string key = {};     ///< in the header `control_key_header` of each request
};
inline constexpr std::string_view control_key_header = "Eddy-Key";

/// The daemon as one instance sees it. The thread of any of the instance's loops, except end()
/// and rename().
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

    /// The runtime has another name from now on; what it opens is noted under that. Any thread.
    void rename(std::string name);
    std::string name() const;

    /// True when there is no daemon.
    bool is_alone() const noexcept { return runtimes_ == nullptr; }

    /// Requests a stop of the instance, as `eddy stop` does; returns at once.
    virtual void request_stop() {}
    /// The same of an instance whose work has ended by itself, with how it ended, such as "exited
    /// with status 1": the runtime is shown as stopped, or as failed.
    virtual void request_end(std::string /*how*/, bool /*is_failure*/) { request_stop(); }
    /// Saves changed options for the next start, by their names in JSON (null takes one back). They
    /// are not applied to the instance.
    virtual task<outcome<>> keep_options(nlohmann::json changed);

    /// Way to the daemon for the scripts that may change it.
    virtual control_access control() const { return {}; }

    /// True while a user follows the messages that the instance receives (`eddy attach`).
    virtual bool has_followers() const noexcept { return false; }
    /// Shows followers a received message as it is, with what ends it. Never waits; a follower that
    /// reads slowly misses messages.
    virtual void show_received(std::string_view /*message*/) {}

    /// The addresses of a runtime, or of all that a pattern names: see registry::resolve().
    outcome<served_addresses> resolve(std::string_view target) const;
    /// Watches them. The watch belongs to the calling thread's loop and ends (errc::closed) with
    /// the instance. Refuses (503) more than max_watches.
    outcome<address_watch> watch(std::string target);

    /// The instance is a cache that scripts of others may use from now on; null: no longer.
    void offer_cache(std::shared_ptr<local_cache> cache);
    /// See registry::find_cache().
    outcome<std::shared_ptr<local_cache>> find_cache(std::string_view target) const;

    /// See message_bus. A subscription belongs to the calling thread's loop and ends (errc::closed)
    /// with the instance; more than max_watches are refused (503).
    outcome<std::uint64_t> publish(std::string_view topic, std::string message);
    outcome<subscription> subscribe(std::string topic, std::size_t most = max_queued_messages);
    /// See message_bus::last_number(); 0 without a daemon.
    std::uint64_t last_message() const;

    /// Notes an address as served by the instance: for listening.hpp.
    address_note note_address(const transport::address& where, const endpoint& bound);
    /// The runtime that has an address: see registry::server_at().
    std::string server_at(const endpoint& where, bool is_datagram) const;

    /// The instance has stopped: ends its watches and subscriptions; later ones are refused (409).
    /// Any thread.
    void end() noexcept;

private:
    outcome<> add(const std::shared_ptr<loop_notifier>& subscriber);

    const std::shared_ptr<registry> runtimes_;
    const std::shared_ptr<message_bus> messages_;
    mutable std::mutex mutex_;
    std::string name_;
    std::vector<std::weak_ptr<loop_notifier>> subscribers_;
    bool has_ended_ = false;
};

}  // namespace eddy::runtime
