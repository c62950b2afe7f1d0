// Incoming side of an upgrade: the new daemon takes everything over from the one that has started
// it. If anything fails before it serves, it says why and ends.
#pragma once

#include <eddy/base/unique_fd.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/task.hpp>

#include "base/problem.hpp"
#include "daemon/cluster/cluster_service.hpp"
#include "daemon/runtimes/runtime_parts.hpp"
#include "daemon/upgrade/upgrade_channel.hpp"

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace eddy::daemon {

/// News of the other daemon, each comes once.
struct incoming_events {
    std::function<void()> own_left;     ///< it accepts no more from the daemon's own sockets
    std::function<void()> became_main;  ///< this process is the one of the service manager's unit
};

/// The control loop's.
class incoming_upgrade {
public:
    explicit incoming_upgrade(upgrade_channel channel) : channel_(std::move(channel)) {}

    /// Takes the lock of the state folder and the daemon's own listeners. Refuses (500) a daemon
    /// whose upgrades, or stored state, this one does not understand.
    task<outcome<>> begin();
    unique_fd take_lock() noexcept { return std::move(lock_); }
    /// A socket by its name; none if there is none.
    unique_fd take_listener(std::string_view name);
    const std::string& console_token() const noexcept { return console_token_; }
    /// Its place in the cluster, which is kept; an empty id without one. And the other members, as
    /// encode_members().
    const member_start& membership() const noexcept { return membership_; }
    const std::string& members() const noexcept { return members_; }

    /// Starts what the other daemon passes on, and returns when it says that this one may serve.
    /// All instances are held then.
    task<outcome<>> take_over(runtime_parts& runtimes, std::string version);
    /// Opens all instances, and says that this daemon serves.
    task<outcome<>> serve(runtime_parts& runtimes);
    /// Takes living connections from the other daemon, until that ends. Sockets at which it accepts
    /// no more are this daemon's alone then.
    task<void> take_clients(runtime_parts& runtimes, incoming_events news);
    /// True once the other daemon has passed on all sockets and clients, or has ended.
    bool is_settled() const noexcept { return has_own_sockets_ && has_clients_; }
    /// Says why it ends.
    task<void> fail(std::string why);

private:
    task<outcome<>> take(runtime_parts& runtimes, upgrade_message what, scope& starting);
    task<void> start(runtime_parts& runtimes, std::string name);
    task<void> end(runtime_parts& runtimes, std::string name, json how);
    task<void> answer(std::string name, outcome<> done);
    task<void> show_life();
    task<void> take_over_from(runtime_parts& runtimes, std::string name);

    upgrade_channel channel_;
    bool has_own_sockets_ = false;
    bool has_clients_ = false;
    unique_fd lock_;
    std::map<std::string, unique_fd, std::less<>> listeners_;
    std::string console_token_;
    member_start membership_;
    std::string members_;
    std::map<std::string, departure, std::less<>> arrivals_;
};

}  // namespace eddy::daemon
