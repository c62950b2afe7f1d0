// Two queues under one lock: jobs to the threads, notifications to the loop.
#include "script/workers.hpp"

#include <eddy/base/assert.hpp>

#include "base/rollback.hpp"

#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

namespace eddy::script {
namespace {

/// Threads that have not ended, of all workers.
class living_threads {
public:
    void add(const std::string& owner) {
        const std::lock_guard lock(mutex_);
        ++counts_[owner];
    }
    void remove(const std::string& owner) {
        const std::lock_guard lock(mutex_);
        const auto found = counts_.find(owner);
        EDDY_ASSERT(found != counts_.end() && found->second > 0);
        if (--found->second == 0) counts_.erase(found);
        if (counts_.empty()) all_ended_.notify_all();
    }
    std::vector<std::string> await_end(duration limit) {
        std::unique_lock lock(mutex_);
        all_ended_.wait_for(lock, limit, [this] { return counts_.empty(); });
        std::vector<std::string> owners;
        for (const auto& [owner, count] : counts_) owners.push_back(owner);
        return owners;
    }

private:
    std::mutex mutex_;
    std::condition_variable all_ended_;
    std::map<std::string, std::size_t> counts_;  // by owner
};

/// Never destroyed: threads may run at the end of the process.
living_threads& all_threads() {
    static living_threads& all = *new living_threads;
    return all;
}

}  // namespace

/// From a thread to the loop.
struct workers::notification {
    enum class kind : std::uint8_t { loaded, completed, printed, ended };
    kind what = kind::printed;
    std::expected<std::vector<bool>, std::string> defined = {};
    std::unique_ptr<job> done = {};
    std::string line = {};
};

/// Lives as long as the last thread.
struct workers::shared {
    // Set before the threads begin.
    worker_options options;
    executor home;

    std::mutex mutex;  // of what follows
    std::condition_variable changed;
    std::condition_variable may_load;
    bool loads = false;  // one of the threads loads the script
    std::deque<std::unique_ptr<job>> jobs;
    std::deque<notification> notifications;
    std::size_t lines = 0;  // of notifications
    bool posted = false;    // notifications are on their way to the loop
    bool ends = false;

    // The loop's; null after the end.
    workers* owner = nullptr;
    workers_observer* observer = nullptr;

    void deliver() {
        std::deque<notification> all;
        {
            const std::lock_guard lock(mutex);
            all.swap(notifications);
            lines = 0;
            posted = false;
        }
        for (notification& each : all) {
            if (owner == nullptr) return;
            switch (each.what) {
                case notification::kind::loaded:
                    observer->worker_loaded(std::move(each.defined));
                    break;
                case notification::kind::completed:
                    --owner->unfinished_;
                    each.done->complete();
                    break;
                case notification::kind::printed:
                    observer->worker_printed(std::move(each.line));
                    break;
                case notification::kind::ended: observer->worker_ended(); break;
            }
        }
    }
};

workers::workers(worker_options options, workers_observer& observer)
    : shared_(std::make_shared<shared>()),
      threads_(options.threads),
      max_unfinished_(options.threads + options.max_waiting) {
    EDDY_ASSERT(threads_ > 0 && threads_ <= max_threads);
    shared_->options = std::move(options);
    shared_->home = executor::current();
    shared_->owner = this;
    shared_->observer = &observer;
    // Signals are the main thread's.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
        for (std::size_t i = 0; i < threads_; ++i) {
            all_threads().add(shared_->options.owner);
            rollback none([this] { all_threads().remove(shared_->options.owner); });
            std::thread(work, shared_).detach();
            none.keep();
        }
    } catch (const std::system_error&) {
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        shared_->owner = nullptr;
        end();
        throw;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

std::vector<std::string> workers::await_all(duration limit) {
    return all_threads().await_end(limit);
}

workers::~workers() {
    shared_->owner = nullptr;
    shared_->observer = nullptr;
    end();
}

result<> workers::submit(std::unique_ptr<job> work) {
    if (unfinished_ >= max_unfinished_) return fail(errc::limit_reached);
    {
        const std::lock_guard lock(shared_->mutex);
        shared_->jobs.push_back(std::move(work));
    }
    ++unfinished_;
    shared_->changed.notify_one();
    return {};
}

void workers::end() {
    {
        const std::lock_guard lock(shared_->mutex);
        shared_->ends = true;
    }
    shared_->changed.notify_all();
    shared_->may_load.notify_all();
}

/// Any thread. What is printed may be lost, a job never is: its completion is awaited.
void workers::notify(const std::shared_ptr<shared>& with, notification what) noexcept {
    constexpr auto pause = std::chrono::milliseconds(1);
    const bool is_line = what.what == notification::kind::printed;
    for (bool kept = false; !kept;) {
        try {
            const std::lock_guard lock(with->mutex);
            if (is_line && with->lines >= max_lines) return;
            with->notifications.push_back(std::move(what));
            if (is_line) ++with->lines;
            kept = true;
            if (with->posted) return;
            with->posted = true;
        } catch (const std::bad_alloc&) {
            if (is_line) return;
            std::this_thread::sleep_for(pause);
        }
    }
    for (;;) {
        try {
            const result<> sent = with->home.post([with] { with->deliver(); });
            // A loop that is behind takes it later; one that has ended wants nothing.
            if (sent || sent.error() != errc::limit_reached) return;
        } catch (const std::bad_alloc&) {
            // Later, as well.
        }
        std::this_thread::sleep_for(pause);
    }
}

void workers::work(std::shared_ptr<shared> with) {
    const worker_options& options = with->options;
    std::optional<lua::blocking_state> state;
    notification loaded;
    loaded.what = notification::kind::loaded;
    loaded.defined = std::unexpected(std::string());
    const auto load = [&] {
        try {
            state.emplace(options.limits, [&with](std::string_view line) {
                notification printed;
                printed.line = line.substr(0, lua::blocking_state::max_error);
                notify(with, std::move(printed));
            });
            auto made = state->load(options.text, options.name, options.functions);
            if (made)
                loaded.defined = state->defined();
            else
                loaded.defined = std::unexpected(std::move(made.error()));
        } catch (const std::bad_alloc&) {
            loaded.defined = std::unexpected("not enough memory");
        }
    };
    bool may_load = false;
    {
        // One after another: what a script prepares when it is loaded, a table perhaps, it need not
        // guard against itself.
        std::unique_lock lock(with->mutex);
        with->may_load.wait(lock, [&] { return with->ends || !with->loads; });
        may_load = !with->ends;
        if (may_load) with->loads = true;
    }
    if (may_load) {
        load();
        {
            const std::lock_guard lock(with->mutex);
            with->loads = false;
        }
        with->may_load.notify_one();
    }
    const bool is_loaded = loaded.defined.has_value();
    notify(with, std::move(loaded));
    while (is_loaded) {
        notification completed;
        completed.what = notification::kind::completed;
        {
            std::unique_lock lock(with->mutex);
            with->changed.wait(lock, [&] { return with->ends || !with->jobs.empty(); });
            if (with->ends) break;
            completed.done = std::move(with->jobs.front());
            with->jobs.pop_front();
        }
        try {
            completed.done->run(*state);
        } catch (const std::bad_alloc&) {
            completed.done->fail_without_memory();
        }
        notify(with, std::move(completed));
    }
    state.reset();
    notification ended;
    ended.what = notification::kind::ended;
    notify(with, std::move(ended));
    all_threads().remove(options.owner);
}

}  // namespace eddy::script
