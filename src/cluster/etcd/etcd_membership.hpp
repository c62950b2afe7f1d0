// Membership by etcd: each member is a key under a lease, and all members follow the keys by a
// watch.
#pragma once

#include <eddy/base/random.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>

#include "cluster/etcd/etcd_address.hpp"
#include "cluster/etcd/etcd_client.hpp"
#include "cluster/etcd/etcd_members.hpp"
#include "cluster/membership.hpp"
#include "cluster/snapshot_feed.hpp"
#include "io/tasks/backoff.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace eddy::cluster {

/// Membership of members below PREFIX/members/ in etcd.
///
/// While etcd is away the members stay as they were known last, and the snapshots are stale; when
/// it is back, those whose keys have gone meanwhile have lease_time to make them again. A member
/// whose lease has ended, as after a long stop of its process, joins again by itself, unless
/// another one has taken its name: then it is not published, and tries again until it can be.
///
/// A list and a watch from the next revision follow the keys; whatever ends a watch (a lost
/// connection, a compacted revision, an etcd restored from a backup or set up anew) is answered by
/// a new list.
class etcd_membership final : public membership {
public:
    /// Time after which a silent member's key is gone.
    static constexpr std::chrono::seconds lease_time{5};
    /// Time between renewals of the lease, and for each of them.
    static constexpr duration renewal_interval = duration(lease_time) / 3;
    /// Pauses between attempts to reach etcd: the first, and the longest.
    static constexpr duration first_pause = std::chrono::milliseconds(100);
    static constexpr duration longest_pause = std::chrono::seconds(1);
    /// Between attempts to publish what etcd has refused, or under a name that another has.
    static constexpr duration refused_pause = std::chrono::seconds(5);
    /// Least time between two values that are published, and between two snapshots.
    static constexpr duration publish_interval = std::chrono::milliseconds(100);
    static constexpr duration snapshot_interval = std::chrono::milliseconds(20);
    /// A watch that ends sooner is made again after a pause.
    static constexpr duration least_watch_time = std::chrono::seconds(1);
    /// Longest wait of join() for the end of the lease of a member that may be dead.
    static constexpr std::chrono::seconds takeover_time = lease_time + std::chrono::seconds(2);

    /// Bytes of a value at first, below the 1.5 MiB that a request to etcd has by default, and at
    /// least: it is halved when etcd finds it too large.
    static constexpr std::size_t max_value = 1536UZ * 1024 - 16UZ * 1024;
    static constexpr std::size_t least_max_value = 64UZ * 1024;
    /// Members in an answer, at first: it is halved when the answer is too large.
    static constexpr std::int64_t page_size = 64;

    /// `notes` must outlive it.
    etcd_membership(etcd_address where, observer& notes);
    ~etcd_membership() override;

    task<outcome<>> join(member_info self) override;
    void publish(member_info self) override;
    std::shared_ptr<const snapshot> current() const override { return feed_.current(); }
    task<result<>> changed(std::uint64_t known) override { return feed_.changed(known); }
    task<void> end() override;
    task<void> pass_on() override;

private:
    /// The entry of the other member that has the name; none where it is ours.
    using holder = std::optional<etcd_entry>;

    // Joining.
    task<outcome<>> take_name();
    task<outcome<bool>> awaits_end(std::int64_t lease, time_point deadline);
    task<void> release(duration time);
    task<void> stop(bool leaves);

    // The own key: lease and value.
    task<void> keep();
    task<void> renew_lease();
    task<void> write_self();
    task<etcd_result<holder>> claim();
    task<etcd_result<>> update();
    bool needs_write() const noexcept { return !is_ours_ || is_dirty_; }
    time_point next_work() const noexcept;
    bool is_own(const etcd_entry& entry) const;
    outcome<std::string> make_value();
    bool halves_value() noexcept;
    void note_written(std::int64_t revision, const std::shared_ptr<const member_info>& what);
    void note_refusal(const etcd_problem& why);
    void note_taken(const etcd_entry& by);
    void set_trouble(std::string sentence);
    void lose_lease() noexcept;
    void lose_key() noexcept;

    // The others.
    task<void> follow();
    task<etcd_result<>> list();
    task<etcd_result<bool>> list_page(etcd_range& keys);
    task<etcd_result<bool>> skip_large(etcd_range& keys);
    task<etcd_result<>> watch_changes();
    void begin_list(const etcd_header& by);
    void end_list(const etcd_header& by);
    void note_entry(const etcd_entry& entry);
    void note_own(const etcd_entry& entry);
    void note_event(const etcd_event& change);
    void set_away(const etcd_problem& why);
    void set_back();
    std::string stale_reason() const;

    task<void> announce();
    void show();

    observer& notes_;
    etcd_client client_;
    etcd_members others_;
    snapshot_feed feed_;
    scope tasks_;
    event work_;     // for keep()
    event changes_;  // for announce()

    std::shared_ptr<const member_info> self_;
    std::string own_key_;
    std::int64_t lease_ = 0;             // 0: none
    std::int64_t own_revision_ = 0;      // of the last write of the own key
    std::int64_t removed_revision_ = 0;  // of the last removal of it that was seen
    std::size_t value_limit_ = max_value;
    std::string trouble_;  // that keeps it from being published; empty: none
    time_point next_renewal_{};
    time_point next_write_{};
    backoff renewal_pauses_{first_pause, longest_pause, entropy_seed()};
    backoff write_pauses_{first_pause, longest_pause, entropy_seed()};
    bool is_ours_ = false;   // the key
    bool is_dirty_ = false;  // the key's value is not self_
    bool is_taken_ = false;  // the key, by another
    bool is_cut_ = false;    // the value, to the limit
    bool has_joined_ = false;
    bool has_ended_ = false;

    backoff follow_pauses_{first_pause, longest_pause, entropy_seed()};
    std::uint64_t cluster_id_ = 0;  // of the last list
    std::int64_t revision_ = 0;     // the last one that was seen
    std::int64_t page_ = page_size;
    std::string away_reason_;  // empty: etcd answers
    bool is_own_listed_ = false;
    bool is_watching_ = false;
};

}  // namespace eddy::cluster
