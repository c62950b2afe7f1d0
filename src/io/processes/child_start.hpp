// Start of a child process with what posix_spawn(3) cannot set: numbered descriptors, limits, a
// user, a signal at its parent's end, and its own number in its environment.
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/io/process.hpp>

#include <vector>

namespace eddy::detail {

/// Plan of a child. All that it points to is prepared by the parent, since the child shares its
/// memory and may only make system calls.
struct child_plan {
    const char* program = nullptr;  ///< with a slash: $PATH is not searched
    char* const* arguments = nullptr;
    char* const* environment = nullptr;
    std::vector<int> descriptors;  ///< become 0, 1, 2, …; all others are closed
    const char* folder = nullptr;  ///< null: the parent's
    bool leads_group = false;
    const std::vector<process_limit>* limits = nullptr;
    const process_user* user = nullptr;  ///< null: the parent's
    int death_signal = 0;
    char* number = nullptr;  ///< place of its process number, of max_number_size bytes; null: none
};

/// Digits of a process number, and the 0 behind them.
inline constexpr int max_number_size = 12;

/// Starts it as posix_spawn(3) does: the parent's thread waits until the program runs or has
/// failed. Yields its process number. Errors are those of the step that failed.
result<int> start_child(child_plan& plan);

}  // namespace eddy::detail
