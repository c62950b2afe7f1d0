// Part of the daemon in a cluster: joins, shows the others what runs here, and gives the proxies
// here what runs there.
#pragma once

#include <eddy/io/event.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>

#include "base/problem.hpp"
#include "cluster/membership.hpp"
#include "daemon/cluster/own_member.hpp"
#include "daemon/journal/event_feed.hpp"
#include "daemon/runtimes/runtime_parts.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::daemon {

/// Pauses between attempts to join while the engine cannot be reached.
inline constexpr duration first_join_pause = std::chrono::milliseconds(250);
inline constexpr duration longest_join_pause = std::chrono::seconds(10);
/// Changes within this time are published together. It grows with the time that gathering takes,
/// which is long with thousands of runtimes.
inline constexpr duration publish_pause = std::chrono::milliseconds(50);
inline constexpr duration longest_publish_pause = std::chrono::seconds(1);
/// Numbers of connections are refreshed so often: with thousands of runtimes less often.
inline constexpr duration load_interval = std::chrono::seconds(2);
/// Time for the others to follow, before a member that leaves closes its listeners.
inline constexpr duration leave_time = std::chrono::seconds(1);
/// Time after joining in which an engine finds all living members.
inline constexpr duration inheritance_time = std::chrono::seconds(3);

/// Start of a daemon as the cluster knows it: an upgrade passes it on.
struct member_start {
    std::string id;            ///< see member_info::id
    std::int64_t started = 0;  ///< seconds since 1970
};
/// A new one, with a random id.
member_start begin_member();

/// Members as text, for an upgrade. What cannot be read back is left out, on both sides.
std::string encode_members(const cluster::snapshot& all);
std::vector<std::shared_ptr<const cluster::member_info>> decode_members(std::string_view text);

/// The control loop's. end() or pass_on() after begin(), before the destructor.
class cluster_service final : private cluster::observer {
public:
    using engine_factory =
        std::function<outcome<std::unique_ptr<cluster::membership>>(cluster::observer& to)>;

    /// `runtimes` outlive it. An empty host in the options is chosen, and noted in the log.
    cluster_service(cluster_options options, std::string name, std::string version,
                    runtime_parts& runtimes);
    cluster_service(const cluster_service&) = delete;
    cluster_service& operator=(const cluster_service&) = delete;
    ~cluster_service();

    /// Makes the engine, and begins to join; returns at once. Refuses what the engine refuses.
    /// `on_refusal` is called at most once: when the first answer of the engine is that this member
    /// is not taken. Later refusals, and all without it, are logged, and followed by other
    /// attempts.
    outcome<> begin(const engine_factory& make, member_start as,
                    std::function<void(problem)> on_refusal);
    /// Before begin(): members that another process knew. Proxies use them until the engine has
    /// had the time to find them.
    void inherit(std::vector<std::shared_ptr<const cluster::member_info>> known);
    /// Awaits the first answer of the engine, but not for long: it may be away.
    task<void> await_answer(duration patience);

    /// While it is true, what the others see stays as it is.
    void hold_published(bool is_held);
    /// The others drain this member from now on. Returns when they had the time to follow, at once
    /// if there are none.
    task<void> begin_leaving();
    /// It does not leave after all.
    void stay();
    /// Leaves, and ends all work.
    task<void> end();
    /// Ends all work, and stays in the cluster: another process is the same member.
    task<void> pass_on();

    /// Never null.
    std::shared_ptr<const cluster::snapshot> current() const;
    const std::string& name() const noexcept { return identity_.name; }
    const member_start& start() const noexcept { return start_; }
    /// The engine, without its password.
    std::string engine() const;
    /// True once it is a member.
    bool has_joined() const noexcept { return has_joined_; }
    /// Why the members are those known last; empty if they are those of now.
    std::string stale_reason() const;
    /// Events of all members and their runtimes.
    const std::shared_ptr<event_feed>& changes() const noexcept { return changes_; }

private:
    task<void> run();
    task<bool> join();
    task<void> follow();
    task<void> forget_inherited();
    task<void> watch_runtimes();
    task<void> watch_events();
    task<void> keep_published();
    void publish();
    void take(std::shared_ptr<const cluster::snapshot> fresh);
    void use_runtimes();
    duration load_pause() const noexcept;

    void note_trouble(std::string sentence) override;
    void note_recovery(std::string sentence) override;

    const cluster_options options_;
    runtime_parts& runtimes_;
    cluster::member_info identity_;  // without runtimes
    member_start start_;
    std::unique_ptr<cluster::membership> engine_;
    std::function<void(problem)> on_refusal_;
    cluster::member_info shown_;  // as it was published last
    std::shared_ptr<const cluster::snapshot> used_ = std::make_shared<cluster::snapshot>();
    std::map<std::string, std::shared_ptr<const cluster::member_info>> given_;  // to the registry
    std::vector<std::shared_ptr<const cluster::member_info>> inherited_;
    own_places judged_by_;  // those of given_
    const std::shared_ptr<event_feed> changes_ = std::make_shared<event_feed>();
    std::string join_trouble_;
    event answered_;  // the engine has answered, or was found to be away
    event dirty_;     // something may have to be published
    duration gather_time_{};
    bool has_joined_ = false;
    bool is_held_ = false;
    bool is_ended_ = true;
    scope tasks_;
};

}  // namespace eddy::daemon
