// Threads that run a script with hooks: each has a Lua state of its own, which may block as it
// likes. The loop gives a worker one job at a time and hears of the answer by a post.
#pragma once

#include <eddy/io/executor.hpp>

#include "cache/script/hook_script.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace eddy::runtime::cache {

/// What workers have to say.
struct hook_news {
    enum class kind : std::uint8_t {
        loaded,    ///< the script is ready: `functions`; or is not: `text` says why
        answered,  ///< `answer` is there, and the worker free
        printed,   ///< `text` is a line of the script's
        left,      ///< the thread has ended
    };
    kind what = kind::printed;
    bool succeeded = false;
    eddy::cache::hook_functions functions = {};
    eddy::cache::hook_answer answer = {};
    std::string text = {};
};

/// On the thread of its loop.
class hook_workers {
public:
    static constexpr std::size_t max_threads = 64;
    /// Lines of scripts that wait for the loop; more are dropped.
    static constexpr std::size_t max_lines = 1000;

    struct limits {
        std::chrono::nanoseconds miss{};    ///< of one on_miss
        std::chrono::nanoseconds change{};  ///< of one other hook
    };

    /// Starts the threads, which load the script one after another. `hears` is called on this loop,
    /// never inside a call of this, and not after the end. Throws std::system_error when there can
    /// be no thread.
    hook_workers(std::size_t threads, std::string script, std::string name, limits most,
                 std::function<void(hook_news&&)> hears);
    hook_workers(const hook_workers&) = delete;
    hook_workers& operator=(const hook_workers&) = delete;
    /// Threads that are still at work are left alone: they end by themselves, unheard.
    ~hook_workers();

    std::size_t threads() const noexcept { return threads_; }
    /// Jobs that are not answered.
    std::size_t running() const noexcept { return running_; }
    bool has_free() const noexcept { return running_ < threads_; }
    /// There must be a free worker.
    void give(eddy::cache::hook_job job);
    /// Asks the threads to end, each after the job that it is at.
    void end();

private:
    struct shared;
    static void work(std::shared_ptr<shared> with);
    static void deliver(const std::shared_ptr<shared>& with, hook_news news) noexcept;

    std::shared_ptr<shared> shared_;
    std::size_t threads_;
    std::size_t running_ = 0;
};

}  // namespace eddy::runtime::cache
