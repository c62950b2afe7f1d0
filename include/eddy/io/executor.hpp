// executor: handle through which other threads post work to a loop, and resume_on(): a task that
// runs on another loop and is awaited on this one.
//
//     executor disk_loop = group->executor(1);
//     result<> posted = disk_loop.post([] { log_info("demo", "runs over there"); });
//     result<int> lines = co_await resume_on(disk_loop, count_lines(path));
//     // and we are back here
//
// An executor refers to a small block that the loop shares with all its executors. It does not keep
// the loop alive: once the loop is gone, everything fails with errc::closed. Any thread; lock-free.
#pragma once

#include <eddy/base/frame_pool.hpp>
#include <eddy/base/result.hpp>
#include <eddy/io/blocking.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/operation.hpp>
#include <eddy/io/task.hpp>

#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace eddy {

namespace detail {

class loop_gate;

/// Logs the exception that is being handled: the work that threw it has no awaiter.
void log_posted_failure() noexcept;

/// A callable on its way to a loop. It frees itself once it has run.
class posted_call : public posted_work {
public:
    virtual ~posted_call() = default;
    void run() noexcept final;

    std::shared_ptr<loop_gate> gate;  // where it counts as pending

private:
    virtual void call() = 0;
};

template <class Work>
class posted_callable final : public posted_call {
public:
    explicit posted_callable(Work work) : work_(std::move(work)) {}

private:
    void call() override { work_(); }

    Work work_;
};

/// A callable that can be posted like a task: called once, returning nothing. A callable that
/// returns a task is refused, since its captures would die before the task; post the task itself.
template <class Work>
concept postable = std::is_invocable_v<Work&> && std::is_void_v<std::invoke_result_t<Work&>>;

}  // namespace detail

/// A handle to a loop that any thread may hold, copy and use. One that was default-constructed, or
/// whose loop is gone, is closed.
class executor {
public:
    executor() noexcept = default;

    /// The executor of the calling thread's loop; there must be one, running or not.
    static executor current() noexcept;

    /// True on the thread of its loop.
    bool is_current() const noexcept;
    /// True once the loop's end has begun; it never becomes false again. While it is false the
    /// next call may still fail with errc::closed.
    bool closed() const noexcept;

    /// Runs `work` on the loop, in its next turn. Everything that the task refers to must live
    /// until it has ended and be safe to use from there. An exception that leaves it is logged and
    /// ends nothing else.
    ///
    /// A task that was accepted always runs. When loop::run() returns or the loop is destroyed,
    /// tasks that still run are cancelled and awaited first; tasks that come later run under a
    /// cancelled source in the next run() or in the loop's destructor.
    ///
    /// Fails with errc::closed, and with errc::limit_reached when loop_options::max_posted pieces
    /// of work are queued. The task is then destroyed here and never runs. Throws std::bad_alloc.
    [[nodiscard]] result<> post(task<void> work) const;

    /// The same for a callable without a result.
    template <detail::postable Work>
    [[nodiscard]] result<> post(Work work) const {
        return post_call(std::make_unique<detail::posted_callable<Work>>(std::move(work)));
    }

    /// The same for a node of the caller's own: no allocation, and no limit. It must live until its
    /// run() is called. After errc::closed run() is never called.
    [[nodiscard]] result<> post(posted_work& work) const noexcept;

    /// Runs `work` inside this call until its first wait when this is the thread of the running
    /// loop; posts it otherwise, and then fails as post() does.
    [[nodiscard]] result<> dispatch(task<void> work) const;
    /// The same for a callable; an exception that leaves it is logged.
    template <detail::postable Work>
    [[nodiscard]] result<> dispatch(Work work) const {
        if (!runs_here()) return post(std::move(work));
        try {
            work();
        } catch (...) {
            detail::log_posted_failure();
        }
        return {};
    }

    /// True for executors of the same loop, and for two without a loop.
    friend bool operator==(const executor&, const executor&) noexcept = default;

private:
    explicit executor(std::shared_ptr<detail::loop_gate> gate) noexcept : gate_(std::move(gate)) {}
    bool runs_here() const noexcept;
    [[nodiscard]] result<> post_call(std::unique_ptr<detail::posted_call> work) const;

    std::shared_ptr<detail::loop_gate> gate_;
};

namespace detail {

/// Remote call: a task on another loop, awaited by a coroutine of this one. It lives in that
/// coroutine's frame, and both threads use it: see the members for their owners.
class remote_operation : public operation {
public:
    explicit remote_operation(executor there) noexcept : there_(std::move(there)) {}
    void set_error(std::error_code error) noexcept final { error_ = error; }

protected:
    ~remote_operation() = default;

    /// Runs the work on the other loop, under `source`, and ends its frame there. Throws nothing
    /// but what the frame of this coroutine itself costs.
    virtual task<void> work(cancel_source& source) = 0;

    std::error_code error_;
    std::exception_ptr failure_;  // written on the other loop, before completion
    frame_block memory_;          // the same: the memory of the work's frame, from this loop's pool

private:
    template <void (remote_operation::*Step)() noexcept>
    struct posted_step final : posted_work {
        explicit posted_step(remote_operation& of) noexcept : owner(of) {}
        void run() noexcept override { (owner.*Step)(); }

        remote_operation& owner;
    };

    bool start() final;
    void on_cancel() noexcept final;
    static task<void> run_work(remote_operation& self);
    void begin_work() noexcept;   // on the other loop
    void cancel_work() noexcept;  // on the other loop
    void complete_at_origin() noexcept;
    void end_step() noexcept;  // on the other loop: the work or a cancellation has ended

    executor there_;
    loop* origin_ = nullptr;               // alive as long as this coroutine waits
    std::optional<cancel_source> source_;  // made, used and ended on the other loop
    /// Steps in progress on the other loop: the work, and a cancellation. The last of them to end
    /// completes the operation here, so that this object never dies while the other thread may
    /// touch it.
    std::atomic<int> steps_{0};
    posted_step<&remote_operation::begin_work> beginning_{*this};
    posted_step<&remote_operation::cancel_work> cancelling_{*this};
    posted_step<&remote_operation::complete_at_origin> completing_{*this};
};

template <class T>
class remote_task final : public remote_operation {
    using outcome = typename blocking_result<T>::type;

public:
    remote_task(executor there, task<T> work) noexcept
        : remote_operation(std::move(there)),
          own_(own_source::take(work)),
          work_(std::move(work)) {}

    /// Source of this loop that the work was put under: what cancels the wait here.
    cancel_source* task_source() const noexcept { return own_; }

    outcome take_result() {
        if (failure_) std::rethrow_exception(failure_);
        if (error_) return fail(error_);
        return std::move(*outcome_);
    }

private:
    task<void> work(cancel_source& source) override {
        return run(std::move(work_).under(source), outcome_, memory_);
    }
    static task<void> run(task<T> work, std::optional<outcome>& place, frame_block& memory) {
        if constexpr (std::is_void_v<T>) {
            co_await std::move(work);
            place.emplace();
        } else {
            place.emplace(co_await std::move(work));
        }
        {
            task<T> ended = std::move(work);  // NOLINT(bugprone-use-after-move): awaited only
        }
        memory = frame_take_back();
    }

    cancel_source* own_;
    task<T> work_;
    std::optional<outcome> outcome_;
};

}  // namespace detail

/// `co_await resume_on(there, work)`: runs `work` on the loop of `there` and awaits it. The caller
/// resumes on its own loop, after the work has ended and its frame is gone: the work may refer to
/// what the caller holds, but must not use objects of this loop, such as its streams. Yields a
/// result<T>; that of a task<result<T>> stays one. An exception that leaves the work is thrown
/// here.
///
/// Cancelling the caller cancels the work in that loop's next turn; the result is then what the
/// work makes of it. Work that was put under a source of this loop is cancelled by that one
/// instead. It is also cancelled when its own loop ends. errc::cancelled when the cancellation came
/// before the work began, and errc::closed when that loop is gone; the work never runs then. No
/// allocation but the frames, which come from the pools; the memory of the work's frame returns to
/// this thread's pool.
template <class T>
[[nodiscard]] auto resume_on(executor there, task<T> work) {
    return awaiting<detail::remote_task<T>>(std::move(there), std::move(work));
}

}  // namespace eddy
