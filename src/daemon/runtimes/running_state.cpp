// Changes of a runtime's status, and what holds after each.
#include "daemon/runtimes/running_state.hpp"

#include <eddy/base/assert.hpp>

#include <utility>

namespace eddy::daemon {

std::string_view to_string(runtime_status status) noexcept {
    switch (status) {
        case runtime_status::created: return "created";
        case runtime_status::starting: return "starting";
        case runtime_status::running: return "running";
        case runtime_status::stopping: return "stopping";
        case runtime_status::stopped: return "stopped";
        case runtime_status::failed: return "failed";
    }
    return "unknown";
}

bool may_change(runtime_status from, runtime_status to) noexcept {
    using enum runtime_status;
    switch (from) {
        case created: return to == starting || to == stopped || to == failed;
        // From starting to starting: one that waits for its start begins it.
        case starting: return to == starting || to == running || to == stopped || to == failed;
        case running: return to == stopping || to == failed;
        case stopping: return to == stopped || to == failed;
        // From stopped to failed: the instance had failed before it was stopped.
        case stopped: return to == starting || to == stopped || to == failed;
        // From failed to stopping: a second attempt at a stop that its loop did not answer.
        case failed: return to == starting || to == stopping || to == stopped || to == failed;
    }
    return false;
}

bool is_degraded(const running_state& of) noexcept {
    return of.status() == runtime_status::running && !of.vitals().fault.empty();
}

void running_state::change_to(runtime_status next) {
    EDDY_ASSERT(may_change(status_, next));
    status_ = next;
    EDDY_ASSERT(is_consistent());
}

/// Invariants of each status.
bool running_state::is_consistent() const noexcept {
    if (has_instance() && (number_ == 0 || status_ == runtime_status::created)) return false;
    switch (status_) {
        case runtime_status::running:
        case runtime_status::stopping: return has_instance();
        case runtime_status::created:
        case runtime_status::stopped: return !has_instance();
        case runtime_status::starting:
        case runtime_status::failed: return true;
    }
    return false;
}

void running_state::await_start() {
    EDDY_ASSERT(!has_instance());
    change_to(runtime_status::starting);
}

void running_state::begin_start(loop_runtimes& where, std::uint64_t number,
                                std::shared_ptr<runtime::host> host) {
    EDDY_ASSERT(!has_instance());
    EDDY_ASSERT(number > number_);
    reason_.clear();
    ending_.clear();
    is_failing_ = false;
    lost_.clear();
    where_ = &where;
    number_ = number;
    host_ = std::move(host);
    change_to(runtime_status::starting);
}

void running_state::finish_start(time_point now, const endpoint& local) {
    EDDY_ASSERT(status_ == runtime_status::starting);
    handover_.reset();
    started_at_ = now;
    vitals_ = {};
    vitals_.local = local;
    change_to(runtime_status::running);
    EDDY_ASSERT(reason_.empty());
}

void running_state::fail_start(std::string reason) {
    EDDY_ASSERT(status_ == runtime_status::starting && has_instance());
    where_ = nullptr;
    reason_ = std::move(reason);
    change_to(runtime_status::failed);
}

void running_state::give_up_retry() {
    EDDY_ASSERT(status_ == runtime_status::starting && !has_instance());
    change_to(runtime_status::failed);
}

void running_state::replace(std::uint64_t number, std::shared_ptr<runtime::host> host,
                            time_point now, const endpoint& local) {
    EDDY_ASSERT(status_ == runtime_status::running && number > number_);
    number_ = number;
    host_ = std::move(host);
    started_at_ = now;
    vitals_ = {};
    vitals_.local = local;
    EDDY_ASSERT(is_consistent());
}

void running_state::note_ending(std::string how, bool is_failure) {
    EDDY_ASSERT(has_instance() && !how.empty());
    ending_ = std::move(how);
    is_failing_ = is_failure;
}

void running_state::finish_ending(std::string how, bool is_failure) {
    EDDY_ASSERT(!has_instance() && !how.empty());
    reason_.clear();
    ending_.clear();
    (is_failure ? reason_ : ending_) = std::move(how);
    change_to(is_failure ? runtime_status::failed : runtime_status::stopped);
}

void running_state::begin_stop() {
    EDDY_ASSERT(has_instance());
    change_to(runtime_status::stopping);
}

void running_state::finish_stop(std::string lost) {
    EDDY_ASSERT(status_ == runtime_status::stopping);
    where_ = nullptr;
    vitals_.counted.connections_now = 0;
    vitals_.counted.handshakes_now = 0;
    vitals_.local = {};
    lost_ = std::move(lost);
    if (!std::exchange(is_failing_, false)) return change_to(runtime_status::stopped);
    reason_ = std::exchange(ending_, {});
    change_to(runtime_status::failed);
}

void running_state::fail_stop(std::string reason) {
    EDDY_ASSERT(has_instance());
    reason_ = std::move(reason);
    change_to(runtime_status::failed);
}

void running_state::reject(std::string reason) {
    EDDY_ASSERT(!has_instance() && !reason.empty());
    reason_ = std::move(reason);
    change_to(runtime_status::failed);
}

void running_state::mark_stopped() {
    EDDY_ASSERT(!has_instance());
    reason_.clear();
    change_to(runtime_status::stopped);
}

void running_state::refresh(runtime_vitals fresh) {
    EDDY_ASSERT(has_instance());
    vitals_ = std::move(fresh);
}

void running_state::refresh(runtime_brief fresh) {
    EDDY_ASSERT(has_instance() && fresh.number == number_);
    vitals_.counted.connections_now = fresh.clients.connections;
    vitals_.counted.handshakes_now = fresh.clients.handshakes;
    vitals_.local = fresh.local;
    vitals_.fault = std::move(fresh.fault);
    vitals_.detail = std::move(fresh.detail);
}

void running_state::keep_handover(std::shared_ptr<const runtime::handover> data) {
    EDDY_ASSERT(!has_instance());
    handover_ = std::move(data);
}

}  // namespace eddy::daemon
