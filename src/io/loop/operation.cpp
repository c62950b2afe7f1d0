// Begin, completion and cancellation of operations.
#include <eddy/io/operation.hpp>

#include <eddy/base/result.hpp>
#include <eddy/io/loop.hpp>

namespace eddy {

cancel_source::cancel_source(cancel_source* parent) noexcept {
    if (!parent) return;
    if (parent->requested())
        requested_ = true;
    else
        parent->add(*this);
}

cancel_source::~cancel_source() {
    EDDY_PRECONDITION(
        hooks_.empty(),
        "a cancel_source was destroyed while a task or operation waits under it: await them first");
    unlink();
}

void cancel_source::request() noexcept {
    if (requested_) return;
    requested_ = true;
    while (!hooks_.empty()) hooks_.pop_front().on_cancel();
}

bool operation::begin(std::coroutine_handle<> waiter, cancel_source* source) {
    waiter_ = waiter;
    const bool cancelled = source && source->requested();
    if (cancelled) set_error(errc::cancelled);
    if (cancelled || start()) {
        // A coroutine that loops and ignores its cancellation must not starve the others, either.
        loop& here = loop::current();
        if (here.spend_inline_budget()) return false;
        here.make_ready(*this);
    } else if (source && !linked()) {
        // A start() that chose complete_later() has its result already and cannot be cancelled.
        source->add(*this);
    }
    frame_memory_ = std::exchange(detail::current_frame_memory, nullptr);
    return true;
}

void operation::complete_now() {
    if (goes_on()) return;
    unlink();
    loop::current().resume(*this);
}

void operation::complete_later() noexcept {
    if (goes_on()) return;
    unlink();
    loop::current().make_ready(*this);
}

}  // namespace eddy
