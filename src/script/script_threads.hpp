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
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::script {

/// Call of a script on one of its threads. Destroyed on the loop's thread after complete(), or on
/// any thread if the threads end first.
class job {
public:
    virtual ~job() = default;
    /// Calls the script, with a limit of time for each call. The script's thread. Only
    /// std::bad_alloc may be thrown.
    virtual void run(lua::blocking_state& in) = 0;
    /// run() has thrown. The script's thread.
    virtual void fail_without_memory() noexcept = 0;
    /// After either. The loop's thread.
    virtual void complete() = 0;
};

/// Owner of the threads. Called on the loop's thread, never within a call of script_threads'.
class script_threads_observer {
public:
    /// One thread has loaded the script: which of the functions it has defined, or why it has
    /// ended.
    virtual void thread_loaded(std::expected<std::vector<bool>, std::string> defined) = 0;
    /// A line that the script has printed, at most lua::blocking_state::max_error bytes.
    virtual void thread_printed(std::string line) = 0;
    /// One thread has made the first of its own calls, or could not.
    virtual void thread_began(std::expected<void, std::string> /*begun*/) {}
    /// One thread has made a call of its own at its time: why it failed, or empty.
    virtual void thread_ticked(std::string /*fault*/) {}
    virtual void thread_ended() = 0;

protected:
    ~script_threads_observer() = default;
};

/// Calls that each thread makes by itself, beside jobs. On the script's thread; only std::bad_alloc
/// may be thrown.
struct script_own_calls {
    /// Once after script_threads::begin(), before its jobs and one thread after another. Yields the
    /// pause between ticks, 0 for none, or why the script cannot begin.
    std::function<std::expected<duration, std::string>(lua::blocking_state& in)> begin;
    /// At each pause's end, between jobs, with the time since the last one; and once more at the
    /// end of a thread that has begun. Yields why it has failed; empty if it has not.
    std::function<std::string(lua::blocking_state& in, duration since_last)> tick;
    /// The last call of a thread that has begun; the same.
    std::function<std::string(lua::blocking_state& in)> end;
};

struct script_threads_options {
    std::size_t threads = 2;  ///< from 1 to script_threads::max_threads
    std::string text;         ///< of the script
    std::string name;         ///< as errors call it
    std::string owner;        ///< as script_threads::await_all() calls it
    /// Names of the functions that jobs call. In static storage: threads may outlive all else.
    std::span<const char* const> functions;
    lua::blocking_state::limits limits;  ///< of each thread
    /// Without effect if there is no begin().
    script_own_calls own_calls;
    /// Jobs that may wait beside the running ones.
    std::size_t max_waiting = 1000;
};

/// On the thread of its loop.
class script_threads {
public:
    static constexpr std::size_t max_threads = 64;
    /// Lines of scripts that wait for the loop; more are dropped.
    static constexpr std::size_t max_lines = 1000;

    /// Waits until the threads of all scripts of this process have ended, at most for `limit`.
    /// Yields the owners of the others. Blocks. Any thread.
    static std::vector<std::string> await_all(duration limit);

    /// Starts the threads, which load the script one after another. `observer` must outlive this.
    /// Throws std::system_error when there can be no thread.
    script_threads(script_threads_options options, script_threads_observer& observer);
    script_threads(const script_threads&) = delete;
    script_threads& operator=(const script_threads&) = delete;
    /// Threads that are still at work are left alone: they end by themselves, unobserved. Jobs that
    /// have not completed do not.
    ~script_threads();

    /// Begins the threads' own calls. Once, after all have loaded the script.
    void begin();

    std::size_t threads() const noexcept { return threads_; }
    /// Jobs that have not completed.
    std::size_t unfinished() const noexcept { return unfinished_; }
    /// True if a job would run at once.
    bool has_free() const noexcept { return unfinished_ < threads_; }
    /// Queues the job for the next free thread; jobs begin in the order of submission. Fails with
    /// errc::limit_reached when max_waiting wait.
    result<> submit(std::unique_ptr<job> work);
    /// Asks the threads to end, each after the job that it runs and its own last calls; jobs that
    /// wait are dropped.
    void end();

private:
    struct notification;
    struct shared;
    class worker;
    static void work(std::shared_ptr<shared> with);
    static void notify(const std::shared_ptr<shared>& with, notification what) noexcept;

    std::shared_ptr<shared> shared_;
    std::size_t threads_;
    std::size_t max_unfinished_;
    std::size_t unfinished_ = 0;
};

}  // namespace eddy::script
