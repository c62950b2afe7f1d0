// Outgoing side of an upgrade: the running daemon starts the new one, gives it everything, and goes
// on as before if that fails.
//
// Instances of most types serve in both processes for a moment: the new one is started, held, on
// copies of the sockets. Then types whose data must not be in two processes (caches) stop, and the
// new daemon starts them with their data; their clients wait in the kernel's queues. Once all have
// started, the new daemon accepts, and says that it serves; only then this one stops accepting.
// Programs end, and are started there, before caches stop: they may use them.
#pragma once

#include <eddy/io/process.hpp>
#include <eddy/io/semaphore.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>

#include "base/problem.hpp"
#include "daemon/cluster/cluster_service.hpp"
#include "daemon/runtimes/runtime_parts.hpp"
#include "daemon/upgrade/upgrade_channel.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::daemon {

/// Silence of the new daemon after which it counts as hung, by default and at most.
inline constexpr duration default_upgrade_patience = std::chrono::seconds(30);
inline constexpr duration longest_upgrade_patience = std::chrono::hours(1);
/// Time limit of an upgrade whose new daemon is alive and does not finish, as a multiple of that.
inline constexpr int upgrade_patiences = 20;

struct upgrade_request {
    std::string program;
    duration patience = default_upgrade_patience;
};

/// Effect of an upgrade.
struct upgrade_report {
    int pid = 0;  ///< of the new daemon
    std::string program;
    std::string version;
    /// Names of the runtimes that serve in the new daemon: without a pause, and after one, with
    /// their data.
    std::vector<std::string> beside;
    std::vector<std::string> with_data;
    /// Runtimes that began anew before the others: without clients, and programs.
    std::vector<std::string> again;
    duration longest_pause{};  ///< of those with data
    std::size_t clients = 0;   ///< living connections that were moved
    duration took{};
};

/// A listening socket of the daemon itself.
struct own_socket {
    std::string name;  ///< "control", "metrics", "console"
    int descriptor = -1;
    std::string token = {};  ///< of the console
};

/// Parts of the daemon that pass on. Descriptors stay the caller's.
struct passed_daemon {
    std::string version;
    int lock = -1;
    std::vector<own_socket> listeners = {};
    member_start membership = {};  ///< of the cluster; without one its id is empty
    std::string members = {};      ///< the others, as encode_members()
};

/// One upgrade. The control loop's. Everything given outlives it.
class outgoing_upgrade {
public:
    outgoing_upgrade(runtime_parts& runtimes, passed_daemon passed, upgrade_request wanted)
        : runtimes_(runtimes), passed_(std::move(passed)), wanted_(std::move(wanted)) {}

    /// Runs it. After success the new daemon serves on all sockets, and leave() follows. After a
    /// failure all runtimes are here, as before.
    task<outcome<upgrade_report>> run();
    /// Ends a run() that is under way soon, without success.
    void give_up() noexcept;
    /// The service manager knows that the other process is the service.
    task<void> note_main();
    /// The daemon's own sockets accept no more here.
    task<void> note_own_sockets_left();
    /// Stops accepting, and returns once the clients of all runtimes have finished.
    task<void> leave();

private:
    struct passenger {
        runtime_ref which;
        permit held;
        departure left = {};
        bool is_sent = false;
    };

    task<outcome<>> lock_all();
    outcome<> start_program();
    task<outcome<>> introduce();
    task<outcome<>> send_members();
    task<outcome<>> check_files();
    task<outcome<>> send_beside();
    task<outcome<>> send_with_data();
    task<outcome<>> send_stopped(bool (*which)(const runtime::type& type),
                                 std::vector<std::string>& names);
    task<outcome<>> send_ended();
    task<void> depart(passenger& each, outcome<>& all);
    task<outcome<>> send(passenger& each);
    task<outcome<>> send_clients(const std::string& name,
                                 const std::vector<runtime::passed_client>& clients);
    task<void> pass_on(std::string name, std::vector<runtime::passed_client> clients);
    task<void> leave_one(passenger& each);
    task<outcome<>> await_started(std::size_t count);
    task<outcome<upgrade_message>> next_answer();
    task<outcome<>> open_all();
    task<outcome<>> carry_out();
    task<std::string> explain(std::string why);
    task<std::string> take_all_back();

    runtime_parts& runtimes_;
    const passed_daemon passed_;
    const upgrade_request wanted_;
    std::optional<upgrade_channel> channel_;
    std::optional<process> program_;
    std::vector<passenger> passengers_;
    async_mutex passing_;         // of pass_on()
    std::size_t still_here_ = 0;  // runtimes whose sockets and clients have not been passed on
    time_point paused_at_{};
    bool is_given_up_ = false;
    upgrade_report report_;
};

}  // namespace eddy::daemon
