// loop_group: several loops, one thread each, for servers that use every core.
//
//     auto group = loop_group::start({});
//     for (std::size_t i = 0; i < (*group)->size(); ++i)
//         if (!(*group)->post(i, accept_connections(port))) return;
//
// Connections are spread by the kernel (listen_options::reuse_port), or moved: detach() the stream
// and post() a task that adopts the descriptor.
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/io/executor.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/task.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace eddy {

/// Options of loop_group::start().
struct loop_group_options {
    /// Number of loops; 0 means one for each processor that the process may use.
    std::size_t threads = 0;
    /// Name of the threads, with -0, -1 and so on appended; Linux keeps 15 bytes of it all.
    std::string name = "eddy-loop";
    /// The same for each loop.
    loop_options loop;
};

/// Loops on threads of their own. One owner; executor(), post() and size() from any thread.
class loop_group {
public:
    /// Starts the threads and their loops. Fails when one of the loops cannot be had. The threads
    /// take no signals.
    [[nodiscard]] static result<std::unique_ptr<loop_group>> start(
        const loop_group_options& options);
    /// stop().
    ~loop_group();
    loop_group(const loop_group&) = delete;
    loop_group& operator=(const loop_group&) = delete;

    /// Number of loops.
    std::size_t size() const noexcept { return members_.size(); }

    /// The loop `index` (below size()), for posting to it and for awaiting work on it. From any
    /// thread; it may outlive the group, and is closed once stop() has returned.
    eddy::executor executor(std::size_t index) const;

    /// The same as executor(index).post(work).
    [[nodiscard]] result<> post(std::size_t index, task<void> work) {
        return executor(index).post(std::move(work));
    }

    /// Cancels every task, waits until they have ended, and ends the threads. Accepted work that
    /// has not begun runs, too, cancelled from its beginning. Not from a thread of the group, and
    /// from one thread at a time.
    void stop();

private:
    class member;
    explicit loop_group(std::vector<std::unique_ptr<member>> members) noexcept;

    std::vector<std::unique_ptr<member>> members_;
};

}  // namespace eddy
