// Threads of a loop group, and the posting of tasks to them.
#include <eddy/io/loop_group.hpp>

#include <eddy/io/event.hpp>

#include "io/posix/signals.hpp"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
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

}  // namespace

class loop_group::member {
public:
    /// Starts the thread and waits until its loop stands.
    result<> start(const loop_options& options, const std::string& name, std::size_t index);
    const eddy::executor& where() const noexcept { return executor_; }
    void request_stop() noexcept;
    void join() {
        if (thread_.joinable()) thread_.join();
    }

private:
    struct stop_request final : posted_work {
        explicit stop_request(member& to) noexcept : where(to) {}
        void run() noexcept override { where.stop_requested_.set(); }

        member& where;
    };

    void run(loop_options options, std::promise<std::error_code> started);
    static task<void> wait_for(event& end) { static_cast<void>(co_await end.wait()); }

    std::thread thread_;
    eddy::executor executor_;
    event stop_requested_;  // of the loop's thread
    stop_request stop_request_{*this};
    bool stopping_ = false;
};

result<> loop_group::member::start(const loop_options& options, const std::string& name,
                                   std::size_t index) {
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
    const std::string number = "-" + std::to_string(index);
    constexpr std::size_t most = 15;
    pthread_setname_np(thread_.native_handle(),
                       (name.substr(0, most - number.size()) + number).c_str());
    if (const std::error_code failed = error.get()) return fail(failed);
    return {};
}

void loop_group::member::run(loop_options options, std::promise<std::error_code> started) {
    auto made = loop::create(options);
    if (!made) {
        started.set_value(made.error());
        return;
    }
    executor_ = eddy::executor::current();
    started.set_value({});
    (*made)->run(wait_for(stop_requested_));
}

void loop_group::member::request_stop() noexcept {
    if (std::exchange(stopping_, true)) return;
    // Closed already when its loop never stood.
    static_cast<void>(executor_.post(stop_request_));
}

loop_group::loop_group(std::vector<std::unique_ptr<member>> members) noexcept
    : members_(std::move(members)) {}

loop_group::~loop_group() { stop(); }

result<std::unique_ptr<loop_group>> loop_group::start(const loop_group_options& options) {
    const std::size_t count = options.threads > 0 ? options.threads : usable_processors();
    std::unique_ptr<loop_group> made(new loop_group({}));
    for (std::size_t i = 0; i < count; ++i) {
        made->members_.push_back(std::make_unique<member>());
        if (auto started = made->members_.back()->start(options.loop, options.name, i); !started)
            return fail(started.error());
    }
    return made;
}

executor loop_group::executor(std::size_t index) const {
    EDDY_PRECONDITION(index < members_.size(),
                      "loop_group::executor() of an index that is not below size()");
    return members_[index]->where();
}

void loop_group::stop() {
    for (auto& each : members_) each->request_stop();
    for (auto& each : members_) each->join();
}

}  // namespace eddy
