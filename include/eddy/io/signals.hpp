// Signals as values that a coroutine awaits. See signal(7) and signalfd(2).
//
//     auto signals = signal_set::take({SIGINT, SIGTERM});
//     auto number = co_await signals->next();
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/base/unique_fd.hpp>
#include <eddy/io/task.hpp>

#include <initializer_list>
#include <utility>

namespace eddy {

/// Some signals of the process, taken away from their usual effect. Take them before any other
/// thread starts: a signal is delivered here only if every thread blocks it, and threads inherit
/// what their creator blocks. They stay blocked when this object dies.
class signal_set {
public:
    /// Blocks the signals `numbers` in the calling thread. SIGKILL and SIGSTOP cannot be taken and
    /// are errno EINVAL; other errors are signalfd(2)'s.
    [[nodiscard]] static result<signal_set> take(std::initializer_list<int> numbers);

    /// Awaits the next signal and yields its number. Several of the same kind that come before it
    /// is read are one. Only one wait at a time; any loop's thread. A result<int>, whose error is
    /// errc::cancelled or read(2)'s; no signal is lost by a cancellation.
    task<result<int>> next();

private:
    explicit signal_set(unique_fd from) noexcept : from_(std::move(from)) {}

    unique_fd from_;
};

}  // namespace eddy
