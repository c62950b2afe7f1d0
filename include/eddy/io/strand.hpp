// strand: serial execution of work from any thread; never two pieces at once, however often one
// waits.
//
//     strand account(group->executor(0));
//     result<int> left = co_await account.run(withdraw(20));   // from any loop
//
// It is a queue for the coroutines of one loop. Within one loop async_mutex is enough.
#pragma once

#include <eddy/base/frame_pool.hpp>
#include <eddy/base/result.hpp>
#include <eddy/io/executor.hpp>
#include <eddy/io/semaphore.hpp>
#include <eddy/io/task.hpp>

#include <atomic>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

namespace eddy {

/// Runs pieces of work on one loop in the order in which they reach it. Pieces from one thread keep
/// their order. A handle: copies name the same strand, and any thread may use them. A piece that
/// runs keeps the strand itself alive.
///
/// A piece that awaits run() of its own strand waits for itself, for ever.
///
/// Posted work has no awaiter: it must refer to nothing that may be gone by then. To know that all
/// of it has ended, await run() of one more piece.
class strand {
public:
    /// At most so many pieces wait; one more fails with errc::limit_reached.
    static constexpr std::size_t default_limit = 1024;

    /// A strand on the loop of `where`, with at most `limit` pieces waiting.
    explicit strand(executor where, std::size_t limit = default_limit)
        : state_(std::make_shared<state>(std::move(where), limit)) {}

    /// The loop on which its pieces run.
    const executor& where() const noexcept { return state_->where; }
    /// Pieces that wait; out of date at once where other threads submit.
    std::size_t waiting() const noexcept { return state_->waiting.load(std::memory_order_relaxed); }

    /// Awaits `work`, which runs after everything submitted before has ended. The caller resumes on
    /// its own loop. Yields a result<T>; that of a task<result<T>> stays one. An exception that
    /// leaves the work is thrown here.
    ///
    /// Cancelling the caller withdraws a piece that waits, with errc::cancelled, and cancels one
    /// that runs, as resume_on() does; so does cancelling the source of this loop that the piece
    /// was put under, which counts instead of the caller's. Fails with errc::limit_reached, and
    /// with errc::closed when the loop is gone: the work never runs then.
    ///
    /// No allocation but the frames, which come from the pools; their memory returns to this
    /// thread's pool.
    template <class T>
    task<typename detail::blocking_result<T>::type> run(task<T> work) const {
        cancel_source* const own = detail::own_source::take(work);
        return detail::own_source::put(run_there(state_, std::move(work)), own);
    }

    /// Runs `work` without waiting for it. An exception that leaves it is logged. Errors are those
    /// of executor::post(), beside errc::limit_reached. Work that was accepted is dropped only when
    /// the loop ends before it has begun.
    [[nodiscard]] result<> post(task<void> work) const {
        if (!state_->enter()) return fail(errc::limit_reached);
        return state_->where.post(run_posted(queue_slot(state_), std::move(work)));
    }
    /// The same for a callable without a result.
    template <detail::postable Work>
    [[nodiscard]] result<> post(Work work) const {
        return post(call(std::move(work)));
    }

private:
    struct state {
        state(executor on, std::size_t most) noexcept : where(std::move(on)), limit(most) {}

        /// Counts one more piece that waits; false at the limit.
        bool enter() noexcept {
            if (waiting.fetch_add(1, std::memory_order_relaxed) < limit) return true;
            waiting.fetch_sub(1, std::memory_order_relaxed);
            return false;
        }

        const executor where;
        const std::size_t limit;
        std::atomic<std::size_t> waiting{0};
        async_mutex running;  // held by the piece that runs; of the loop's thread
    };

    /// Slot of a waiting piece in the queue, until it runs or ends. It keeps the strand alive.
    class queue_slot {
    public:
        explicit queue_slot(std::shared_ptr<state> of) noexcept : of_(std::move(of)) {}
        queue_slot(queue_slot&&) noexcept = default;
        queue_slot& operator=(queue_slot&&) = delete;
        ~queue_slot() {
            if (of_ && waits_) leave();
        }

        awaiting<acquire_operation> lock() noexcept { return of_->running.lock(); }
        /// It no longer counts as waiting.
        void leave() noexcept {
            waits_ = false;
            of_->waiting.fetch_sub(1, std::memory_order_relaxed);
        }

    private:
        std::shared_ptr<state> of_;
        bool waits_ = true;
    };

    template <class T>
    static task<typename detail::blocking_result<T>::type> run_there(std::shared_ptr<state> on,
                                                                     task<T> work) {
        if (!on->enter()) co_return fail(errc::limit_reached);
        const executor where = on->where;
        // The frame of run_locked() returns by resume_on().
        struct returned_frame {
            ~returned_frame() { frame_free(block.memory, block.size); }
            frame_block block;
        } of_work;
        co_return co_await resume_on(
            where, run_locked(queue_slot(std::move(on)), std::move(work), &of_work.block));
    }

    // The next piece begins when this ends, in a later turn of the loop. By then the frame of the
    // work is gone, too; its memory is in `memory`.
    template <class T>
    static task<typename detail::blocking_result<T>::type> run_locked(
        queue_slot slot, task<T> work, frame_block* memory = nullptr) {
        const result<permit> held = co_await slot.lock();
        slot.leave();
        if (!held) co_return fail(held.error());
        const auto end_work = [&] {
            {
                task<T> ended = std::move(work);  // NOLINT(bugprone-use-after-move): awaited only
            }
            if (memory != nullptr) *memory = frame_take_back();
        };
        if constexpr (std::is_void_v<T>) {
            co_await std::move(work);
            end_work();
            co_return result<>();
        } else {
            typename detail::blocking_result<T>::type outcome(co_await std::move(work));
            end_work();
            co_return outcome;
        }
    }

    template <class Work>
    static task<void> call(Work work) {
        work();
        co_return;
    }

    static task<void> run_posted(queue_slot slot, task<void> work) {
        static_cast<void>(co_await run_locked(std::move(slot), std::move(work)));
    }

    std::shared_ptr<state> state_;
};

}  // namespace eddy
