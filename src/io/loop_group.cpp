// The threads of a loop group, and how tasks reach them.
#include <eddy/io/loop_group.hpp>

#include <eddy/base/log.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/scope.hpp>

#include "io/posix/signals.hpp"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <future>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

namespace eddy {
namespace {

std::size_t usable_processors() noexcept {
    cpu_set_t usable;
    if (sched_getaffinity(0, sizeof(usable), &usable) < 0) return 1;
    return static_cast<std::size_t>(std::max(CPU_COUNT(&usable), 1));
}

task<void> log_failure(task<void> work) {
    try {
        co_await std::move(work);
    } catch (const std::exception& failure) {
        log_error("loop", std::string("a task ended with an exception: ") + failure.what());
    } catch (...) {
        log_error("loop", "a task ended with an unknown exception");
    }
}

}  // namespace

class loop_group::member {
public:
    /// Starts the thread and waits until its loop stands.
    result<> start(const loop_options& options, std::size_t index);
    result<> post(task<void> work);
    void request_stop();
    void join() {
        if (thread_.joinable()) thread_.join();
    }

private:
    struct handed_task final : posted_work {
        handed_task(member& to, task<void> task) noexcept : where(to), work(std::move(task)) {}
        void run() noexcept override;

        member& where;
        task<void> work;
    };
    struct stop_request final : posted_work {
        explicit stop_request(member& to) noexcept : where(to) {}
        void run() noexcept override { where.stop_requested_.set(); }

        member& where;
    };

    void run(loop_options options, std::promise<std::error_code> started);
    task<void> serve();

    std::thread thread_;
    loop* loop_ = nullptr;
    scope* children_ = nullptr;
    event stop_requested_;
    stop_request stop_request_{*this};
    // A poster counts itself first and looks at stopping_ then; the loop sets stopping_ first and
    // looks at the count then. One of the two sees the other, so no task is left behind.
    std::atomic<std::size_t> posting_{0};
    std::atomic<bool> stopping_{false};
};

result<> loop_group::member::start(const loop_options& options, std::size_t index) {
    std::promise<std::error_code> started;
    auto error = started.get_future();
    try {
        const signals_blocked while_it_starts;
        thread_ = std::thread([this, options, promise = std::move(started)]() mutable {
            run(options, std::move(promise));
        });
    } catch (const std::system_error& refused) {
        return fail(refused.code());
    }
    const std::string name = "eddy-loop-" + std::to_string(index);
    pthread_setname_np(thread_.native_handle(), name.substr(0, 15).c_str());
    if (const std::error_code failed = error.get()) return fail(failed);
    return {};
}

void loop_group::member::run(loop_options options, std::promise<std::error_code> started) {
    auto made = loop::create(options);
    if (!made) {
        started.set_value(made.error());
        return;
    }
    loop_ = made->get();
    started.set_value({});
    (*made)->run(serve());
}

task<void> loop_group::member::serve() {
    scope children;
    children_ = &children;
    static_cast<void>(co_await stop_requested_.wait());
    while (posting_.load(std::memory_order_seq_cst) > 0) co_await loop_->yield();
    children.cancel();
    co_await children.join();
}

result<> loop_group::member::post(task<void> work) {
    posting_.fetch_add(1, std::memory_order_seq_cst);
    if (stopping_.load(std::memory_order_seq_cst)) {
        posting_.fetch_sub(1, std::memory_order_release);
        return fail(errc::closed);
    }
    loop_->post(*new handed_task(*this, std::move(work)));
    return {};
}

void loop_group::member::handed_task::run() noexcept {
    where.children_->spawn(log_failure(std::move(work)));
    where.posting_.fetch_sub(1, std::memory_order_release);
    delete this;
}

void loop_group::member::request_stop() {
    if (stopping_.exchange(true, std::memory_order_seq_cst)) return;
    if (loop_) loop_->post(stop_request_);
}

loop_group::loop_group(std::vector<std::unique_ptr<member>> members) noexcept
    : members_(std::move(members)) {}

loop_group::~loop_group() { stop(); }

result<std::unique_ptr<loop_group>> loop_group::start(const loop_group_options& options) {
    const std::size_t count = options.threads > 0 ? options.threads : usable_processors();
    std::unique_ptr<loop_group> made(new loop_group({}));
    for (std::size_t i = 0; i < count; ++i) {
        made->members_.push_back(std::make_unique<member>());
        if (auto started = made->members_.back()->start(options.loop, i); !started)
            return fail(started.error());
    }
    return made;
}

result<> loop_group::post(std::size_t index, task<void> work) {
    EDDY_ASSERT(index < members_.size());
    return members_[index]->post(std::move(work));
}

void loop_group::stop() {
    for (auto& each : members_) each->request_stop();
    for (auto& each : members_) each->join();
}

}  // namespace eddy
