// The threads are detached: one that hangs in a library of C cannot be ended, and must hold up
// nobody.
#include "runtime/cache/hook_workers.hpp"

#include <eddy/base/assert.hpp>

#include <pthread.h>

#include <condition_variable>
#include <csignal>
#include <deque>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

namespace eddy::runtime::cache {

using eddy::cache::hook_answer;
using eddy::cache::hook_job;
using eddy::cache::hook_script;

/// Lives as long as the last thread.
struct hook_workers::shared {
    // Set before the threads begin.
    std::string script;
    std::string name;
    limits most;
    executor home;

    std::mutex mutex;  // of what follows
    std::condition_variable changed;
    std::condition_variable may_load;
    bool loads = false;  // one of the threads loads the script
    std::deque<hook_job> jobs;
    std::deque<hook_news> news;
    std::size_t lines = 0;  // of news
    bool posted = false;    // news is on its way to the loop
    bool ends = false;

    // The loop's; null after the end.
    hook_workers* owner = nullptr;
    std::function<void(hook_news&&)> hears;

    void hand_over() {
        std::deque<hook_news> all;
        {
            const std::lock_guard lock(mutex);
            all.swap(news);
            lines = 0;
            posted = false;
        }
        for (hook_news& each : all) {
            if (owner == nullptr) return;
            if (each.what == hook_news::kind::answered) --owner->running_;
            hears(std::move(each));
        }
    }
};

hook_workers::hook_workers(std::size_t threads, std::string script, std::string name, limits most,
                           std::function<void(hook_news&&)> hears)
    : shared_(std::make_shared<shared>()), threads_(threads) {
    shared_->script = std::move(script);
    shared_->name = std::move(name);
    shared_->most = most;
    shared_->home = executor::current();
    shared_->owner = this;
    shared_->hears = std::move(hears);
    // Signals are the main thread's.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
        for (std::size_t i = 0; i < threads; ++i) std::thread(work, shared_).detach();
    } catch (const std::system_error&) {
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        shared_->owner = nullptr;
        end();
        throw;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

hook_workers::~hook_workers() {
    shared_->owner = nullptr;
    shared_->hears = nullptr;
    end();
}

void hook_workers::give(hook_job job) {
    EDDY_ASSERT(has_free());
    ++running_;
    {
        const std::lock_guard lock(shared_->mutex);
        shared_->jobs.push_back(std::move(job));
    }
    shared_->changed.notify_one();
}

void hook_workers::end() {
    {
        const std::lock_guard lock(shared_->mutex);
        shared_->ends = true;
    }
    shared_->changed.notify_all();
    shared_->may_load.notify_all();
}

/// Any thread. What is printed may be lost, an answer never is: somebody waits for it.
void hook_workers::deliver(const std::shared_ptr<shared>& with, hook_news news) noexcept {
    constexpr auto pause = std::chrono::milliseconds(1);
    for (bool kept = false; !kept;) {
        try {
            const std::lock_guard lock(with->mutex);
            if (news.what == hook_news::kind::printed && with->lines >= max_lines) return;
            const bool is_line = news.what == hook_news::kind::printed;
            with->news.push_back(std::move(news));
            if (is_line) ++with->lines;
            kept = true;
            if (with->posted) return;
            with->posted = true;
        } catch (const std::bad_alloc&) {
            if (news.what == hook_news::kind::printed) return;
            std::this_thread::sleep_for(pause);
        }
    }
    for (;;) {
        try {
            const result<> sent = with->home.post([with] { with->hand_over(); });
            // A loop that is behind takes it later; one that has ended wants nothing.
            if (sent || sent.error() != errc::limit_reached) return;
        } catch (const std::bad_alloc&) {
            // Later, as well.
        }
        std::this_thread::sleep_for(pause);
    }
}

void hook_workers::work(std::shared_ptr<shared> with) {
    const auto say = [&with](std::string_view line) {
        hook_news news;
        news.text = line.substr(0, hook_script::max_error);
        deliver(with, std::move(news));
    };
    std::unique_ptr<hook_script> script;
    hook_news loaded;
    loaded.what = hook_news::kind::loaded;
    const auto load = [&] {
        try {
            auto made = hook_script::load(with->script, with->name, say);
            loaded.succeeded = made.has_value();
            if (made)
                script = std::move(*made);
            else
                loaded.text = std::move(made.error());
        } catch (const std::bad_alloc&) {
            loaded.text = "not enough memory";
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
    if (script) loaded.functions = script->functions();
    deliver(with, std::move(loaded));
    while (script) {
        hook_news answered;
        answered.what = hook_news::kind::answered;
        hook_job job;
        {
            std::unique_lock lock(with->mutex);
            with->changed.wait(lock, [&] { return with->ends || !with->jobs.empty(); });
            if (with->ends) break;
            job = std::move(with->jobs.front());
            with->jobs.pop_front();
        }
        try {
            answered.answer = script->run(
                job, job.what == hook_job::kind::miss ? with->most.miss : with->most.change);
        } catch (const std::bad_alloc&) {
            answered.answer = {};
            answered.answer.result.id = job.id;
            answered.answer.result.failed = true;
            answered.answer.error = "not enough memory";
        }
        deliver(with, std::move(answered));
    }
    script.reset();
    hook_news left;
    left.what = hook_news::kind::left;
    deliver(with, std::move(left));
}

}  // namespace eddy::runtime::cache
