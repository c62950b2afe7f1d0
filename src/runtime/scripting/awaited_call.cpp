// Hand-over between a call and the coroutine that awaits it.
#include "runtime/scripting/awaited_call.hpp"

#include <eddy/io/event.hpp>

#include <utility>

namespace eddy::runtime {
namespace {

/// It outlives the call and the coroutine that awaits it.
struct awaited_call {
    script::call_end end;
    event done;
    cancel_source* stop = nullptr;  // while it runs
    bool is_abandoned = false;      // nothing awaits it: it must not begin
};

/// A call ends within the tasks of its version, which may end them.
task<void> finish(script_version& version, std::unique_ptr<script_call> call,
                  std::shared_ptr<awaited_call> to) {
    struct at_end {
        awaited_call& of;
        ~at_end() {
            of.stop = nullptr;
            of.done.set();
        }
    } const setting{*to};
    cancel_source stop(co_await current_source());
    to->stop = &stop;
    if (to->is_abandoned) stop.request();
    to->end = co_await version.finish(std::move(call)).under(stop);
    to->stop = nullptr;
}

}  // namespace

task<result<script::call_end>> await_call(std::unique_ptr<script_call> call) {
    const auto awaited = std::make_shared<awaited_call>();
    script_version& version = call->version();
    version.tasks().spawn(finish(version, std::move(call), awaited));
    const auto ended = co_await awaited->done.wait();
    if (ended) co_return std::move(awaited->end);
    awaited->is_abandoned = true;
    if (awaited->stop != nullptr) awaited->stop->request();
    co_return fail(ended.error());
}

}  // namespace eddy::runtime
