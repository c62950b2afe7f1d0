// Executors: the path of work to a loop from other threads, and of its result back.
#include <eddy/io/executor.hpp>

#include <eddy/base/log.hpp>
#include <eddy/io/scope.hpp>

#include "io/loop/loop_gate.hpp"

#include <exception>
#include <string>
#include <utility>

namespace eddy {
namespace {

task<void> log_failure(task<void> work) {
    try {
        co_await std::move(work);
    } catch (...) {
        detail::log_posted_failure();
    }
}

/// Starts its task.
class task_starter {
public:
    explicit task_starter(task<void> work) noexcept : work_(std::move(work)) {}
    void operator()() {
        // It has no awaiter: within dispatch() it would outlive the caller's frame memory.
        const detail::frames_from pool(nullptr);
        detail::posted_task_access::start(log_failure(std::move(work_)));
    }

private:
    task<void> work_;
};

}  // namespace

void detail::log_posted_failure() noexcept {
    try {
        throw;
    } catch (const std::exception& failure) {
        log_error("loop", std::string("a task ended with an exception: ") + failure.what());
    } catch (...) {
        log_error("loop", "a task ended with an unknown exception");
    }
}

void detail::posted_call::run() noexcept {
    gate->remove_pending();
    const std::unique_ptr<posted_call> self(this);
    try {
        call();
    } catch (...) {
        log_posted_failure();
    }
}

executor executor::current() noexcept { return executor(loop::current().gate_); }

bool executor::is_current() const noexcept { return gate_ && gate_->is_of(loop::of_this_thread()); }

bool executor::closed() const noexcept { return !gate_ || gate_->closed(); }

bool executor::runs_here() const noexcept {
    return is_current() && loop::of_this_thread()->posted_tasks_ != nullptr;
}

result<> executor::post(posted_work& work) const noexcept {
    loop* const there = gate_ ? gate_->enter() : nullptr;
    if (!there) return fail(errc::closed);
    there->post(work);
    gate_->leave();
    return {};
}

result<> executor::post_call(std::unique_ptr<detail::posted_call> work) const {
    if (closed()) return fail(errc::closed);
    if (!gate_->add_pending()) return fail(errc::limit_reached);
    work->gate = gate_;
    if (auto posted = post(static_cast<posted_work&>(*work)); !posted) {
        gate_->remove_pending();
        return posted;
    }
    static_cast<void>(work.release());  // it frees itself
    return {};
}

result<> executor::post(task<void> work) const { return post(task_starter(std::move(work))); }

result<> executor::dispatch(task<void> work) const {
    return dispatch(task_starter(std::move(work)));
}

bool detail::remote_operation::start() {
    origin_ = &loop::current();
    steps_.store(1, std::memory_order_relaxed);
    if (there_.post(beginning_)) return false;
    error_ = errc::closed;
    return true;
}

void detail::remote_operation::begin_work() noexcept {
    source_.emplace(&posted_task_access::source());
    try {
        posted_task_access::start(run_work(*this));
    } catch (...) {  // no memory for a frame
        failure_ = std::current_exception();
        source_.reset();
        end_step();
    }
}

task<void> detail::remote_operation::run_work(remote_operation& self) {
    try {
        co_await self.work(*self.source_);
    } catch (...) {
        self.failure_ = std::current_exception();
    }
    self.source_.reset();
    self.end_step();
}

void detail::remote_operation::complete_at_origin() noexcept {
    frame_free(std::exchange(memory_.memory, nullptr), memory_.size);
    complete_later();
}

void detail::remote_operation::end_step() noexcept {
    // The waiting thread may destroy this object as soon as it is notified.
    loop& origin = *origin_;
    if (steps_.fetch_sub(1, std::memory_order_acq_rel) == 1) origin.post(completing_);
}

void detail::remote_operation::on_cancel() noexcept {
    int seen = steps_.load(std::memory_order_acquire);
    do {
        if (seen == 0) return;  // its completion is posted
    } while (!steps_.compare_exchange_weak(seen, seen + 1, std::memory_order_acq_rel,
                                           std::memory_order_acquire));
    if (there_.post(cancelling_)) return;
    // The other loop is ending, and has cancelled the work by itself. If it is done with it, this
    // is the last step.
    if (steps_.fetch_sub(1, std::memory_order_acq_rel) == 1) complete_at_origin();
}

void detail::remote_operation::cancel_work() noexcept {
    if (source_) source_->request();
    end_step();
}

}  // namespace eddy
