// Remote calls: the way to another loop and back.
#include "daemon/remote.hpp"

#include <eddy/io/event.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/timeout.hpp>

#include <fmt/format.h>

#include <exception>
#include <string>

namespace eddy::daemon {
namespace {

/// Comes home when the work is done. It holds itself while it is on its way, since whoever waits
/// may have left meanwhile.
struct homecoming final : posted_work {
    void run() noexcept override {
        done.set();
        const auto last = std::move(self);
    }

    std::shared_ptr<homecoming> self;
    std::string failure;
    event done;  // home's thread only
};

task<void> carry(task<void> work, loop& home, std::shared_ptr<homecoming> back) {
    try {
        co_await std::move(work);
    } catch (const std::exception& failure) {
        back->failure = failure.what();
    } catch (...) {
        back->failure = "an unknown exception";
    }
    {
        // Its frame goes on this thread, before anybody at home hears of the end.
        const task<void> finished =
            std::move(work);  // NOLINT(bugprone-use-after-move): awaited only
    }
    homecoming& node = *back;
    node.self = std::move(back);
    home.post(node);
}

}  // namespace

task<outcome<>> detail::run_on(loop_group& group, std::size_t index, task<void> work,
                               duration patience) {
    auto back = std::make_shared<homecoming>();
    loop& home = loop::current();
    const auto posted = group.post(index, carry(std::move(work), home, back));
    if (!posted) co_return refuse(503, "the daemon is stopping");

    const auto waited = co_await with_timeout(patience, back->done.wait());
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
