// Loop pool: the loops that serve the connections of one server, with a worker on each.
//
// The loop of the server itself accepts. With one thread it also serves; with more, as many loops
// on threads of their own do, and each connection lives and dies on the one that it was assigned
// to. The simulator has one thread and networks that no two loops share: there the workers are as
// many, all of them on the one loop, so that what holds between them is tested with it.
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/io/executor.hpp>
#include <eddy/io/loop_group.hpp>
#include <eddy/io/task.hpp>

#include "serving/journal.hpp"
#include "serving/loop_worker.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace eddy::serving {

/// Threads that a server may have at most. More than the machine has processors are of no use;
/// this bounds what a mistake costs.
inline constexpr std::size_t max_threads = 64;

/// The thread of the loop that accepts, but for what says otherwise. end() must have ended before
/// it dies.
class loop_pool {
public:
    /// Makes a worker on the loop that calls it, which is the worker's own.
    using factory = std::function<std::unique_ptr<loop_worker>(const worker_place& place)>;

    /// Of the loop that runs. `events` outlives it.
    explicit loop_pool(journal& events) noexcept : events_(events) {}
    loop_pool(const loop_pool&) = delete;
    loop_pool& operator=(const loop_pool&) = delete;
    ~loop_pool();

    /// Starts `threads` loops, if they are more than one, on threads that are named `thread_name`
    /// and a number. Fails with the system's error when they cannot be had.
    result<> start_threads(std::size_t threads, std::string thread_name);
    /// Makes all workers: the one here first, then the others on their loops. What `make` refers to
    /// is used until this has ended. errc::closed when a loop has ended meanwhile; end() then
    /// destroys what was made.
    task<result<>> make_workers(factory make);

    /// Serves a connection here, or on the loop that has the fewest, round robin among those with
    /// as many. `from` outlives the connection. Throws std::bad_alloc.
    void assign(stream accepted, const served_listener& from);

    /// Has the connections of all loops end, as loop_worker::drain().
    task<void> drain(duration limit);
    /// Ends a drain() that is under way soon, as loop_worker::end_drain().
    void end_drain() noexcept;
    /// Destroys the workers, each on its loop after `retire` was called with it here, and ends the
    /// threads. They were drained before.
    task<void> end(std::function<void(loop_worker& last)> retire);

    /// Whether there are loops on threads of their own.
    bool has_threads() const noexcept { return threads_ != nullptr; }
    /// Workers that connections are assigned to; 0 where the one here serves.
    std::size_t assigned_workers() const noexcept { return others_.size(); }

    /// The worker here; from the beginning of make_workers() to the end of end(), else null.
    loop_worker* here() const noexcept { return here_.get(); }
    /// The others, and their loops.
    struct remote_worker {
        executor where;
        std::unique_ptr<loop_worker> its;
    };
    const std::vector<remote_worker>& others() const noexcept { return others_; }

    /// Calls f(loop_worker&) for each worker on its own loop: here now, on the others soon. Throws
    /// std::bad_alloc. `f` is copied.
    template <class F>
    void post_to_all(const F& f) {
        if (here_) f(*here_);
        for (const remote_worker& each : others_) {
            // Destroyed there as well, later.
            loop_worker* const its = each.its.get();
            static_cast<void>(each.where.post([its, f] { f(*its); }));
        }
    }

    shared_limits& limits() noexcept { return limits_; }

private:
    journal& events_;
    shared_limits limits_;
    std::unique_ptr<loop_worker> here_;
    std::unique_ptr<loop_group> threads_;
    std::vector<executor> loops_;  // that get a worker each
    std::vector<remote_worker> others_;
    std::size_t next_ = 0;
};

}  // namespace eddy::serving
