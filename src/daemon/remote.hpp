// Remote calls: a task runs on another loop, and its value comes back here.
#pragma once

#include <eddy/io/loop_group.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>

#include "daemon/problem.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

namespace eddy::daemon {

namespace detail {

/// Runs `work` on the loop `index` and waits here, at most for `patience`, in which this process is
/// not stopped. The work goes on there when the wait for it has ended.
task<outcome<>> run_on(loop_group& group, std::size_t index, task<void> work, duration patience);

template <class T>
task<void> store(task<T> work, std::shared_ptr<std::optional<T>> into) {
    into->emplace(co_await std::move(work));
}

}  // namespace detail

/// Runs `work` on the loop `index` of `group` and awaits its value here. What the task refers to
/// must outlive it even when the wait has ended. Fails with status 503 when the value has not
/// come within `patience` (the work goes on), or when the wait is cancelled; with 500 when an
/// exception left the task.
template <class T>
task<outcome<T>> run_on(loop_group& group, std::size_t index, task<T> work, duration patience) {
    auto value = std::make_shared<std::optional<T>>();
    auto done =
        co_await detail::run_on(group, index, detail::store(std::move(work), value), patience);
    if (!done) co_return std::unexpected(std::move(done.error()));
    co_return std::move(**value);
}

}  // namespace eddy::daemon
