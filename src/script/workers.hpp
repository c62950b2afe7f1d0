// Worker threads for scripts that may block: each has a Lua state of its own, with the same script
// loaded. A loop submits jobs; they wait in one queue, and complete on the loop by a post.
//
// The threads are detached: one that hangs in a library of C cannot be ended, and must not block
// the daemon.
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/io/executor.hpp>
#include <eddy/io/timer.hpp>

#include "lua/blocking_state.hpp"

#include <cstddef>
#include <expected>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::script {

/// Call of a script on a worker thread. Destroyed on the loop's thread after complete(), or on any
/// thread if the workers end first.
class job {
public:
    virtual ~job() = default;
    /// Calls the script, with a limit of time for each call. The worker's thread. Only
    /// std::bad_alloc may be thrown.
    virtual void run(lua::blocking_state& in) = 0;
    /// run() has thrown. The worker's thread.
    virtual void fail_without_memory() noexcept = 0;
    /// After either. The loop's thread.
    virtual void complete() = 0;
};

/// Owner of the workers. Called on the loop's thread, never within a call of the workers'.
class workers_observer {
public:
    /// One thread has loaded the script: which of the functions it has defined, or why it has
    /// ended.
    virtual void worker_loaded(std::expected<std::vector<bool>, std::string> defined) = 0;
    /// A line that the script has printed, at most lua::blocking_state::max_error bytes.
    virtual void worker_printed(std::string line) = 0;
    virtual void worker_ended() = 0;

protected:
    ~workers_observer() = default;
};

struct worker_options {
    std::size_t threads = 2;  ///< from 1 to workers::max_threads
    std::string text;         ///< of the script
    std::string name;         ///< as errors call it
    std::string owner;        ///< as workers::await_all() calls it
    /// Names of the functions that jobs call. In static storage: threads may outlive all else.
    std::span<const char* const> functions;
    lua::blocking_state::limits limits;  ///< of each thread
    /// Jobs that may wait beside the running ones.
    std::size_t max_waiting = 1000;
};

/// On the thread of its loop.
class workers {
public:
    static constexpr std::size_t max_threads = 64;
    /// Lines of scripts that wait for the loop; more are dropped.
    static constexpr std::size_t max_lines = 1000;

    /// Waits until the threads of all workers of this process have ended, at most for `limit`.
    /// Yields the owners of the others. Blocks. Any thread.
    static std::vector<std::string> await_all(duration limit);

    /// Starts the threads, which load the script one after another. `observer` must outlive this.
    /// Throws std::system_error when there can be no thread.
    workers(worker_options options, workers_observer& observer);
    workers(const workers&) = delete;
    workers& operator=(const workers&) = delete;
    /// Threads that are still at work are left alone: they end by themselves, unobserved. Jobs that
    /// have not completed do not.
    ~workers();

    std::size_t threads() const noexcept { return threads_; }
    /// Jobs that have not completed.
    std::size_t unfinished() const noexcept { return unfinished_; }
    /// True if a job would run at once.
    bool has_free() const noexcept { return unfinished_ < threads_; }
    /// Queues the job for the next free thread; jobs begin in the order of submission. Fails with
    /// errc::limit_reached when max_waiting wait.
    result<> submit(std::unique_ptr<job> work);
    /// Asks the threads to end, each after the job that it runs; jobs that wait are dropped.
    void end();

private:
    struct notification;
    struct shared;
    static void work(std::shared_ptr<shared> with);
    static void notify(const std::shared_ptr<shared>& with, notification what) noexcept;

    std::shared_ptr<shared> shared_;
    std::size_t threads_;
    std::size_t max_unfinished_;
    std::size_t unfinished_ = 0;
};

}  // namespace eddy::script
