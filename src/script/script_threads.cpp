// Two queues under one lock: jobs to the threads, notifications to the loop.
#include "script/script_threads.hpp"

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

/// Threads that have not ended, of all script_threads.
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
struct script_threads::notification {
    enum class kind : std::uint8_t { loaded, began, completed, printed, ticked, ended };
    kind what = kind::printed;
    std::expected<std::vector<bool>, std::string> defined = {};
    std::expected<void, std::string> begun = {};
    std::unique_ptr<job> done = {};
    std::string line = {};
};

/// Lives as long as the last thread.
struct script_threads::shared {
    // Set before the threads begin.
    script_threads_options options;
    executor home;

    std::mutex mutex;  // of what follows
    std::condition_variable changed;
    std::condition_variable may_load;
    bool loads = false;  // one of the threads loads the script, or begins
    std::deque<std::unique_ptr<job>> jobs;
    std::deque<notification> notifications;
    std::size_t lines = 0;  // of notifications
    bool posted = false;    // notifications are on their way to the loop
    bool begins = false;
    bool ends = false;

    // The loop's; null after the end.
    script_threads* owner = nullptr;
    script_threads_observer* observer = nullptr;

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
                    observer->thread_loaded(std::move(each.defined));
                    break;
                case notification::kind::began:
                    observer->thread_began(std::move(each.begun));
                    break;
                case notification::kind::ticked:
                    observer->thread_ticked(std::move(each.line));
                    break;
                case notification::kind::completed:
                    --owner->unfinished_;
                    each.done->complete();
                    break;
                case notification::kind::printed:
                    observer->thread_printed(std::move(each.line));
                    break;
                case notification::kind::ended: observer->thread_ended(); break;
            }
        }
    }
};

script_threads::script_threads(script_threads_options options, script_threads_observer& observer)
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

std::vector<std::string> script_threads::await_all(duration limit) {
    return all_threads().await_end(limit);
}

script_threads::~script_threads() {
    shared_->owner = nullptr;
    shared_->observer = nullptr;
    end();
}

result<> script_threads::submit(std::unique_ptr<job> work) {
    if (unfinished_ >= max_unfinished_) return fail(errc::limit_reached);
    {
        const std::lock_guard lock(shared_->mutex);
        shared_->jobs.push_back(std::move(work));
    }
    ++unfinished_;
    shared_->changed.notify_one();
    return {};
}

void script_threads::begin() {
    EDDY_ASSERT(shared_->options.own_calls.begin != nullptr);
    {
        const std::lock_guard lock(shared_->mutex);
        shared_->begins = true;
    }
    shared_->changed.notify_all();
}

void script_threads::end() {
    {
        const std::lock_guard lock(shared_->mutex);
        shared_->ends = true;
    }
    shared_->changed.notify_all();
    shared_->may_load.notify_all();
}

/// Any thread. What is printed may be lost, a job never is: its completion is awaited.
void script_threads::notify(const std::shared_ptr<shared>& with, notification what) noexcept {
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

/// One thread, with its state.
class script_threads::worker {
public:
    explicit worker(const std::shared_ptr<shared>& with) : with_(with) {}

    /// Loads the script, unless the end comes before. True if it is loaded.
    bool load();
    /// Runs jobs and its own calls until the end.
    void work();
    void end();

private:
    using clock = std::chrono::steady_clock;
    enum class next : std::uint8_t { begin, tick, job, end };

    bool take_turn();
    void give_turn();
    std::expected<std::vector<bool>, std::string> try_load();
    next wait(std::unique_ptr<job>& work);
    void begin();
    void tick();
    void run(std::unique_ptr<job> work);
    void note_fault(const std::string& fault) const;
    template <class F>
    std::string guarded(F call) const;

    const std::shared_ptr<shared>& with_;
    std::optional<lua::blocking_state> state_;
    bool has_begun_ = false;
    bool has_failed_ = false;  // to begin: it makes no calls of its own
    duration pause_{};         // between ticks; 0: none
    clock::time_point last_tick_;
};

/// One thread after another: what a script prepares when it is loaded or begins, a table perhaps,
/// it need not guard against itself. False at the end.
bool script_threads::worker::take_turn() {
    std::unique_lock lock(with_->mutex);
    with_->may_load.wait(lock, [&] { return with_->ends || !with_->loads; });
    if (with_->ends) return false;
    with_->loads = true;
    return true;
}

void script_threads::worker::give_turn() {
    {
        const std::lock_guard lock(with_->mutex);
        with_->loads = false;
    }
    with_->may_load.notify_one();
}

std::expected<std::vector<bool>, std::string> script_threads::worker::try_load() {
    const script_threads_options& options = with_->options;
    try {
        state_.emplace(options.limits, [this](std::string_view line) {
            notification printed;
            printed.line = line.substr(0, lua::blocking_state::max_error);
            notify(with_, std::move(printed));
        });
        auto made = state_->load(options.text, options.name, options.functions);
        if (made) return state_->defined();
        return std::unexpected(std::move(made.error()));
    } catch (const std::bad_alloc&) {
        return std::unexpected("not enough memory");
    }
}

bool script_threads::worker::load() {
    notification loaded;
    loaded.what = notification::kind::loaded;
    loaded.defined = std::unexpected(std::string());
    if (take_turn()) {
        loaded.defined = try_load();
        give_turn();
    }
    const bool is_loaded = loaded.defined.has_value();
    notify(with_, std::move(loaded));
    return is_loaded;
}

/// Waits for work of the thread; a job is taken out of the queue.
script_threads::worker::next script_threads::worker::wait(std::unique_ptr<job>& work) {
    std::unique_lock lock(with_->mutex);
    const auto may_begin = [&] { return with_->begins && !has_begun_; };
    const auto has_something = [&] { return with_->ends || may_begin() || !with_->jobs.empty(); };
    const bool ticks = pause_ > duration{};
    const clock::time_point due = last_tick_ + pause_;
    if (ticks)
        with_->changed.wait_until(lock, due, has_something);
    else
        with_->changed.wait(lock, has_something);
    if (with_->ends) return next::end;
    if (may_begin()) return next::begin;
    if (ticks && clock::now() >= due) {
        // Another thread may run the job that this one was woken for.
        if (!with_->jobs.empty()) with_->changed.notify_one();
        return next::tick;
    }
    EDDY_ASSERT(!with_->jobs.empty());
    work = std::move(with_->jobs.front());
    with_->jobs.pop_front();
    return next::job;
}

void script_threads::worker::work() {
    for (;;) {
        std::unique_ptr<job> work;
        switch (wait(work)) {
            case next::begin: begin(); break;
            case next::tick: tick(); break;
            case next::job: run(std::move(work)); break;
            case next::end: return;
        }
    }
}

void script_threads::worker::run(std::unique_ptr<job> work) {
    notification completed;
    completed.what = notification::kind::completed;
    completed.done = std::move(work);
    try {
        completed.done->run(*state_);
    } catch (const std::bad_alloc&) {
        completed.done->fail_without_memory();
    }
    notify(with_, std::move(completed));
}

template <class F>
std::string script_threads::worker::guarded(F call) const {
    try {
        return call();
    } catch (const std::bad_alloc&) {
        return "not enough memory";
    }
}

void script_threads::worker::begin() {
    has_begun_ = has_failed_ = true;
    if (!take_turn()) return;
    notification begun;
    begun.what = notification::kind::began;
    std::string fault = guarded([&] {
        auto made = with_->options.own_calls.begin(*state_);
        if (!made) return std::move(made.error());
        pause_ = *made;
        return std::string();
    });
    give_turn();
    has_failed_ = !fault.empty();
    if (has_failed_) begun.begun = std::unexpected(std::move(fault));
    last_tick_ = clock::now();
    notify(with_, std::move(begun));
}

void script_threads::worker::tick() {
    notification ticked;
    ticked.what = notification::kind::ticked;
    const clock::time_point now = clock::now();
    ticked.line = guarded([&] { return with_->options.own_calls.tick(*state_, now - last_tick_); });
    // However long it took, the next one comes a pause later.
    last_tick_ = clock::now();
    notify(with_, std::move(ticked));
}

void script_threads::worker::end() {
    if (has_begun_ && !has_failed_) {
        if (pause_ > duration{}) tick();
        note_fault(guarded([&] { return with_->options.own_calls.end(*state_); }));
    }
    state_.reset();
}

void script_threads::worker::note_fault(const std::string& fault) const {
    if (fault.empty()) return;
    notification printed;
    printed.line = fault.substr(0, lua::blocking_state::max_error);
    notify(with_, std::move(printed));
}

void script_threads::work(std::shared_ptr<shared> with) {
    worker here(with);
    if (here.load()) here.work();
    here.end();
    notification ended;
    ended.what = notification::kind::ended;
    notify(with, std::move(ended));
    all_threads().remove(with->options.owner);
}

}  // namespace eddy::script
