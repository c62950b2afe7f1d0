// FAILOVER, in functions of `replication`.
#include <eddy/base/assert.hpp>

#include "cache/clients/waits.hpp"
#include "cache/replication/replication.hpp"
#include "cache/replication/replication_info.hpp"
#include "cache/script/scripting.hpp"

#include <algorithm>
#include <utility>

namespace eddy::cache {

const replica* replication::find_replica(std::string_view at, std::uint16_t port) const {
    const auto found = std::ranges::find_if(replicas_, [&](const replica* each) {
        return each->port == port && replica_host(*each) == at;
    });
    return found == replicas_.end() ? nullptr : *found;
}

const replica* replication::find_failover_target() const {
    const auto found = std::ranges::find_if(replicas_, [&](const replica* each) {
        if (each->now != replica::stage::online || each->acked < feed_.end()) return false;
        // A replica that has just reconnected may not know the stream's new ID yet. A request to
        // take over would then be refused, and require a full copy.
        if (!each->confirmed) return false;
        return failover_.host.empty() ||
               (each->port == failover_.port && replica_host(*each) == failover_.host);
    });
    return found == replicas_.end() ? nullptr : *found;
}

void replication::begin_failover(failover_plan plan) {
    EDDY_ASSERT(!is_failing_over() && !is_replica());
    failover_ = std::move(plan);
    // Otherwise replicas acknowledge once a second. No further byte is written. At offset 0 the
    // other's data could not be distinguished from a new server's, so a request moves it.
    if (find_failover_target() == nullptr || feed_.end() == 0) ask_for_acknowledgements();
    if (const replica* const target = find_replica(failover_.host, failover_.port))
        failover_.least = target->acked;
    failover_.now = failover_stage::waiting_for_sync;
    hold_writes(state_, write_hold::failover);
    if (host != nullptr) host->link_changed();
}

void replication::advance_failover() {
    // A late script may still write.
    if (failover_.now != failover_stage::waiting_for_sync || scripting::is_late(state_)) return;
    const bool is_late = state_.data.env.steady_us >= failover_.deadline_us;
    const replica* const found = find_failover_target();
    if (found == nullptr && !(is_late && failover_.force)) {
        if (is_late) abort_failover("no replica had everything in time");
        return;
    }
    if (found != nullptr) {
        failover_.host = replica_host(*found);
        failover_.port = found->port;
        failover_.least = found->acked;
    } else if (const replica* const late = find_replica(failover_.host, failover_.port)) {
        failover_.least = std::max(failover_.least, late->acked);
    }
    failover_.now = failover_stage::in_progress;
    become_replica(failover_.host, failover_.port);
}

void replication::end_failover() {
    if (!is_failing_over()) return;
    failover_ = {};
    let_write(state_, write_hold::failover);
}

void replication::abort_failover(std::string_view why) {
    if (!is_failing_over()) return;
    const bool is_replica = failover_.now == failover_stage::in_progress;
    if (host != nullptr) host->log("the failover is given up: " + std::string(why));
    if (is_replica) become_master();
    end_failover();
}

}  // namespace eddy::cache
