// Remote calls: the way to another loop and back.
#include "daemon/runtimes/remote.hpp"

#include <eddy/io/event.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/timeout.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <string>
#include <utility>

namespace eddy::daemon {
namespace {

/// Completion of a remote call, posted to the loop of the caller. It holds itself on its way, since
/// the task that waits may have ended meanwhile.
struct completion final : posted_work {
    void run() noexcept override {
        done.set();
        const auto last = std::move(self);
    }

    std::shared_ptr<completion> self;
    std::string failure;
    event done;  // home's thread only
};

/// A wait is made of slices of at most so much. A process that was stopped, by SIGSTOP or a
/// debugger, has lost one of them, and not the time in which the other loop did not run either.
constexpr duration slice = std::chrono::milliseconds(500);

task<result<>> wait_by_slices(std::shared_ptr<completion> back, duration patience) {
    for (duration left = patience;; left -= slice) {
        auto waited = co_await with_timeout(std::min(left, slice), back->done.wait());
        if (waited || waited.error() != errc::timed_out || left <= slice) co_return waited;
    }
}

task<void> run_remotely(task<void> work, loop& home, std::shared_ptr<completion> back) {
    try {
        co_await std::move(work);
    } catch (const std::exception& failure) {
        back->failure = failure.what();
    } catch (...) {
        back->failure = "an unknown exception";
    }
    {
        // The frame is destroyed on this thread, before the end is known at home.
        const task<void> finished =
            std::move(work);  // NOLINT(bugprone-use-after-move): awaited only
    }
    completion& node = *back;
    node.self = std::move(back);
    home.post(node);
}

}  // namespace

task<outcome<>> detail::run_on(loop_group& group, std::size_t index, task<void> work,
                               duration patience) {
    auto back = std::make_shared<completion>();
    loop& home = loop::current();
    const auto posted = group.post(index, run_remotely(std::move(work), home, back));
    if (!posted) co_return refuse(503, "the daemon is stopping");

    const auto waited = co_await wait_by_slices(back, patience);
    if (!waited) {
        co_return refuse(503, waited.error() == errc::timed_out
                                  ? fmt::format("loop {} did not answer within {} s", index,
                                                std::chrono::duration<double>(patience).count())
                                  : "the request was cancelled");
    }
    if (!back->failure.empty())
        co_return refuse(500, fmt::format("an exception ended it: {}", back->failure));
    co_return outcome<>();
}

}  // namespace eddy::daemon
