// Loop pool: the loops that serve the connections of one server, with a worker on each.
//
// The loop of the server itself accepts. With one thread it also serves; with more, that many loops
// on threads of their own serve, and each connection stays on the loop that it was assigned to. The
// simulator has one thread, and a network of its own for each loop: there all workers are on the
// one loop, so that their interaction is tested, too.
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

/// At most so many threads of a server. More than the machine has processors are of no use; this
/// bounds the cost of a mistake.
inline constexpr std::size_t max_threads = 64;

/// Only the thread of the loop that accepts, except where noted. end() must have ended before the
/// destructor.
class loop_pool {
public:
    /// Makes a worker on the loop that calls it, which is the worker's own.
    using factory = std::function<std::unique_ptr<loop_worker>(const worker_place& place)>;

    /// A pool on the running loop. `events` must outlive it.
    explicit loop_pool(journal& events) noexcept : events_(events) {}
    loop_pool(const loop_pool&) = delete;
    loop_pool& operator=(const loop_pool&) = delete;
    ~loop_pool();

    /// Starts `threads` loops, if more than one, on threads named `thread_name` and a number. Fails
    /// with the system's error.
    result<> start_threads(std::size_t threads, std::string thread_name);
    /// Makes all workers: the one here first, then the others on their loops. Objects that `make`
    /// refers to must outlive this call. Fails with errc::closed when a loop has ended meanwhile;
    /// end() then destroys the workers made so far.
    task<result<>> make_workers(factory make);

    /// Serves a connection here, or on the loop with the fewest, round robin among equals. `from`
    /// outlives the connection. Throws std::bad_alloc.
    void assign(stream accepted, const served_listener& from);

    /// The same for connections that were moved: loop_worker::take_moved(). On several loops none
    /// of them, and none that assign() is given later, begins before all are there. Throws
    /// std::bad_alloc.
    void assign(std::vector<passed_client> moved);
    /// loop_worker::move_clients() of all workers.
    task<std::vector<passed_client>> move_clients();

    /// Ends the connections of all loops, as loop_worker::drain().
    task<void> drain(duration limit);
    /// Ends a drain() that is under way soon, as loop_worker::end_drain().
    void end_drain() noexcept;
    /// Destroys the workers, each on its loop after `retire` was called with it here, and ends the
    /// threads. After drain().
    task<void> end(std::function<void(loop_worker& last)> retire);

    /// True if there are loops on threads of their own.
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
    std::size_t choose_other() noexcept;
    journal& events_;
    shared_limits limits_;
    std::unique_ptr<loop_worker> here_;
    std::unique_ptr<loop_group> threads_;
    std::vector<executor> loops_;  // that get a worker each
    std::vector<remote_worker> others_;
    std::size_t next_ = 0;
};

}  // namespace eddy::serving
