// Remote calls: a task runs on another loop, and its value comes back here.
#pragma once

#include <eddy/io/loop_group.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>

#include "base/problem.hpp"

#include <concepts>
#include <cstddef>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace eddy::daemon {

namespace detail {

/// Runs `work` on the loop `index` and waits here for at most `patience`, not counting time in
/// which this process is stopped. The work continues there when the wait for it has ended.
task<outcome<>> run_on(loop_group& group, std::size_t index, task<void> work, duration patience);

template <class T>
task<void> store(task<T> work, std::shared_ptr<std::optional<T>> into) {
    into->emplace(co_await std::move(work));
}

/// Calls what lives in its own frame.
template <class F>
task<std::invoke_result_t<F&>> call(F what) {
    co_return what();
}

}  // namespace detail

/// Runs `work` on the loop `index` of `group` and awaits its value here. What the task refers to
/// must outlive it even when the wait has ended. Fails with status 503 when the value has not come
/// within `patience` (the work continues), or when the wait is cancelled; with 500 when an
/// exception left the task.
template <class T>
task<outcome<T>> run_on(loop_group& group, std::size_t index, task<T> work, duration patience) {
    auto value = std::make_shared<std::optional<T>>();
    auto done =
        co_await detail::run_on(group, index, detail::store(std::move(work), value), patience);
    if (!done) co_return std::unexpected(std::move(done.error()));
    co_return std::move(**value);
}

/// The same for a function that returns a value at once.
template <std::invocable F>
task<outcome<std::invoke_result_t<F&>>> run_on(loop_group& group, std::size_t index, F what,
                                               duration patience) {
    co_return co_await run_on(group, index, detail::call(std::move(what)), patience);
}

/// One outcome of both: the error of the way there, or what came back.
template <class T>
outcome<T> flatten(outcome<outcome<T>> nested) {
    if (!nested) return std::unexpected(std::move(nested.error()));
    return std::move(*nested);
}

}  // namespace eddy::daemon
