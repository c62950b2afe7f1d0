// Membership over a store of beats, by polling: each member writes a beat of its own at intervals,
// and reads the beats of all others.
//
// Names. A joining member waits until an earlier beat of its name has changed, which refuses it
// (409), or has been silent for beat_rules::silence, as after kill -9: then it takes the name over
// with the next term. Two members that join with one name at the same time see each other's beats:
// the one that is outranked (member_table.hpp) withdraws. A member that was stopped for longer than
// `silence` and wakes writes only if no other start has taken its name meanwhile. One that has lost
// its name reports trouble, still reads, and comes back once the name is free.
//
// Outages. While the store cannot be read, or does not take this member's beats, snapshots are
// stale, members stay as known last, and none is judged to be gone.
#pragma once

#include <eddy/io/event.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>

#include "base/problem.hpp"
#include "cluster/beats/beat_store.hpp"
#include "cluster/member_table.hpp"
#include "cluster/membership.hpp"
#include "cluster/snapshot_feed.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace eddy::cluster {

/// Time from the start of a beat to the start of the next.
inline constexpr duration beat_interval = std::chrono::milliseconds(500);
/// Time without a new beat after which a member is gone, measured from the last poll before its
/// last beat was seen: between this minus beat_interval and this after that beat.
inline constexpr duration silence_limit = std::chrono::milliseconds(2500);
/// Pause between two polls of a store that does not notify.
inline constexpr duration poll_interval = std::chrono::milliseconds(500);
/// Least pause between two polls, and between two writes: changes meanwhile are one.
inline constexpr duration least_pause = std::chrono::milliseconds(100);
/// Time after which the remains of a member that is gone are removed.
inline constexpr duration remains_memory = std::chrono::hours(1);

/// Times of the engine, which tests shorten.
struct beat_rules {
    duration beat = beat_interval;
    duration silence = silence_limit;
    duration poll = poll_interval;
    duration pause = least_pause;
    duration memory = remains_memory;
};

/// The engine. One loop's thread.
class beat_membership : public membership {
public:
    /// `reports` must outlive it.
    beat_membership(std::unique_ptr<beat_store> store, observer& reports,
                    const beat_rules& rules = {});
    ~beat_membership() override;

    /// As membership::join(). It takes one to two beats, in which a start that took the name at the
    /// same time would be seen; members whose beat was seen to change meanwhile are in the first
    /// snapshot. It takes `silence` more when the name has remains. Not twice at a time, nor beside
    /// end(); an attempt that was refused or cancelled leaves nothing, and may be repeated.
    task<outcome<>> join(member_info self) override;
    /// As membership::publish(). A member that exceeds a bound is reported, and the others see the
    /// one before.
    void publish(member_info self) override;
    std::shared_ptr<const snapshot> current() const override { return feed_.current(); }
    task<result<>> changed(std::uint64_t known) override { return feed_.changed(known); }
    task<void> end() override;
    task<void> pass_on() override;

    beat_store& store() noexcept { return *store_; }

private:
    struct stall_timer;
    enum class standing : std::uint8_t { outside, joining, member, nameless, ended };

    outcome<> set_self(member_info self);
    bool is_name_free() const;
    void take_term();
    outcome<> check_holder() const;

    task<outcome<>> join_store();
    task<outcome<>> claim_name();
    task<outcome<>> confirm_name(time_point begun);
    task<outcome<>> beat_for_name();
    task<void> withdraw();
    task<void> stop();
    task<outcome<bool>> beat_once();
    task<outcome<>> read_once();
    void take_view(store_view view);
    void check_own(const sighting* own);

    task<void> run_beats();
    task<bool> wait_for_beat();
    task<void> beat_or_return();
    task<void> run_reads();
    task<bool> wait_for_read();
    task<void> remove_forgotten();

    void lose_name();
    void note_read(const outcome<>& done);
    void report_faults();
    void show();

    std::unique_ptr<beat_store> store_;
    observer& observer_;
    const beat_rules rules_;

    standing standing_ = standing::outside;
    std::shared_ptr<const member_info> self_;
    std::shared_ptr<const std::string> text_;  // of self_
    std::uint64_t sequence_ = 0;               // of self_
    beat own_;                                 // the last one that was written, or is being written
    bool has_written_ = false;
    time_point last_written_{};  // on the store's clock: begin of the last write that succeeded
    time_point last_try_{};      // on the loop's clock: begin of the last write
    time_point last_read_{};     // on the loop's clock: begin of the last read
    time_point lost_at_{};       // on the loop's clock, the name
    bool has_read_since_loss_ = false;  // of the name
    bool is_loss_reported_ = false;

    member_table table_;
    std::uint64_t place_ = 0;
    bool has_place_ = false;
    snapshot_feed feed_;

    std::string read_fault_;  // sentences; empty: none
    std::string write_fault_;
    bool is_fault_reported_ = false;
    bool is_oversized_reported_ = false;

    event news_;     // of this member, to write
    event changed_;  // in the store, to read
    scope tasks_;
};

}  // namespace eddy::cluster
