// limited_scope: scope with bounded concurrency. At most `limit` of its children run at a time.
//
//     co_await join_scope(2, [&](limited_scope& children) -> task<> {
//         for (const int job : jobs) {
//             auto spawned = co_await children.spawn(work_on(job));
//             if (!spawned) co_return;  // cancelled
//         }
//     });  // all children have ended here
//
// A server that accepts in such a scope leaves further connections in the kernel's backlog.
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/semaphore.hpp>
#include <eddy/io/task.hpp>

#include <cstddef>
#include <optional>
#include <utility>

namespace eddy {

/// A scope whose spawn() waits while `limit` children run. with_scope() and join_scope() make it.
/// One loop's thread.
class limited_scope {
public:
    /// At most `limit` children at a time, at least 1. `children` must outlive its use, and its
    /// join() must come before this dies.
    limited_scope(scope& children, std::size_t limit);
    limited_scope(const limited_scope&) = delete;
    limited_scope& operator=(const limited_scope&) = delete;

    /// Awaits that fewer than limit() children run, in the order of the calls, and starts `child`
    /// as scope::spawn() does. Yields a result<>: errc::cancelled when the caller or the scope was
    /// cancelled first, which an exception of another child does, too. The child is then destroyed
    /// and never runs.
    ///
    /// A child that awaits it in its own scope keeps counting meanwhile: when all of them do so,
    /// the wait ends only by cancellation.
    [[nodiscard]] task<result<>> spawn(task<void> child);

    /// Most children at a time.
    std::size_t limit() const noexcept { return limit_; }
    /// Children that run.
    std::size_t children() const noexcept { return children_.children(); }
    /// Cancels every child, and ends the waits of spawn().
    void cancel() noexcept { children_.cancel(); }
    /// The source that the children run under.
    cancel_source& source() noexcept { return children_.source(); }

private:
    static task<void> run(task<void> child, permit place);
    static task<result<permit>> acquire(semaphore& places);

    scope& children_;
    std::size_t limit_;
    semaphore places_;
};

/// Runs `body(limited_scope&)`, a callable that returns task<void>, with at most `limit` children
/// at a time; then cancels and awaits the children. `body` and what it captured live until then.
/// Yields nothing; an exception from the body or a child comes out.
template <class Body>
task<void> with_scope(std::size_t limit, Body body) {
    std::optional<limited_scope> limited;
    co_await with_scope([&](scope& children) -> task<void> {
        limited.emplace(children, limit);
        return body(*limited);
    });
}

/// The same, but waits for the children to finish by themselves when the body ends well.
template <class Body>
task<void> join_scope(std::size_t limit, Body body) {
    std::optional<limited_scope> limited;
    co_await join_scope([&](scope& children) -> task<void> {
        limited.emplace(children, limit);
        return body(*limited);
    });
}

}  // namespace eddy
