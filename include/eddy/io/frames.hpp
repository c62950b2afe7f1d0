// Allocation of coroutine frames from the caller's memory, for one body and all that it runs.
//
//     std::pmr::monotonic_buffer_resource arena;
//     std::string page = co_await with_frames(arena, [&] { return fetch(uri); });
//
// Without it frames come from the thread's pool (base/frame_pool.hpp), which allocates nothing once
// it is warm: this is for counting, limits and locality.
#pragma once

#include <eddy/base/frame_pool.hpp>
#include <eddy/io/task.hpp>

#include <coroutine>
#include <memory_resource>
#include <type_traits>
#include <utility>

namespace eddy {

/// Memory for the frames of coroutines made now, as with_frames() has set it for the calling
/// coroutine. Null for the pool, and where no coroutine runs. Any thread.
inline std::pmr::memory_resource* frame_memory() noexcept { return detail::current_frame_memory; }

namespace detail {

/// The result of `body`, with a frame from `memory`. Not inlined: a compiler that sees the
/// coroutine here would put its frame into with_frames()'s own, which is from elsewhere.
template <class Body>
[[gnu::noinline]] auto made_from(std::pmr::memory_resource& memory, Body& body) {
    const frames_from here(&memory);
    return body();
}

/// Awaits a task that makes frames from `memory`.
template <class T>
class framed {
public:
    using keeps_frame_memory = void;

    framed(std::pmr::memory_resource& memory, task<T> work) noexcept
        : memory_(&memory), work_(std::move(work)), inner_(std::move(work_).operator co_await()) {}
    framed(const framed&) = delete;
    framed& operator=(const framed&) = delete;

    bool await_ready() const noexcept { return false; }
    template <class Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> parent) noexcept {
        before_ = std::exchange(current_frame_memory, memory_);
        return inner_.await_suspend(parent);
    }
    T await_resume() {
        current_frame_memory = before_;
        return inner_.await_resume();
    }

private:
    std::pmr::memory_resource* memory_;
    std::pmr::memory_resource* before_ = nullptr;
    task<T> work_;
    typename task<T>::awaiter inner_;
};

}  // namespace detail

/// Runs `body()`, a callable that returns a task, with coroutine frames from `memory`: that of the
/// task itself, and those of all coroutines that it makes, at any depth: tasks that it awaits or
/// spawns, what those await and spawn, generators, when_all() and its like. Yields what the task
/// yields; an exception comes out. `body` and what it captured live until the task has ended, and
/// the body runs under the awaiter's cancel_source. Bodies may be nested: each frame goes back to
/// where it came from.
///
/// `memory` must outlive every coroutine that was made under it. Tasks that the body awaits or
/// spawns into scopes of its own end before this does. Others may not: tasks and generators that it
/// yields or keeps elsewhere, tasks that it spawns into a scope from outside, and tasks that it
/// posts.
///
/// It is used only on this loop's thread, also while the body is suspended. Frames of tasks that
/// move to another loop (resume_on(), strand, executor::post()) are freed there: then it must be
/// safe to use from any thread, as std::pmr::synchronized_pool_resource is. Coroutines that such a
/// task makes over there come from that loop's pool; so do tasks for executor::dispatch(), and
/// coroutines of other code of this loop, such as timers' functions, even if the body started it.
///
/// An exception of `memory`, such as std::bad_alloc, leaves the call that would have made the
/// coroutine. Requests are a few bytes larger than the frame, aligned to 16; and fewer than there
/// are coroutines, where the compiler puts one's frame into its caller's. Operations lie in frames;
/// streams and other objects of the loop have memory of their own.
///
/// Awaitables from elsewhere may resume a coroutine from anywhere: it keeps its own choice.
/// Coroutines that they start come from the pool, unless the awaitable has a member type
/// `keeps_frame_memory` (void will do), which is right for one that passes its wait on to a task or
/// operation. Code of the body that itself calls resume() on a coroutine has the pool afterwards.
template <class Body>
    requires detail::is_task<std::invoke_result_t<Body&>>
auto with_frames(std::pmr::memory_resource& memory, Body body) -> std::invoke_result_t<Body&> {
    co_return co_await detail::framed(memory, detail::made_from(memory, body));
}

}  // namespace eddy
