// Accepting below, and starting handshakes.
#include "tls/tls_listener.hpp"

#include <eddy/base/assert.hpp>

#include <utility>

namespace eddy::tls {

tls_listener::tls_listener(listener below, context as, duration timeout)
    : below_(std::move(below)),
      context_(std::move(as)),
      timeout_(timeout),
      accepted_([](void* self) { static_cast<tls_listener*>(self)->on_accepted(); }, this) {}

bool tls_listener::start(accept_operation& op) {
    EDDY_ASSERT(!waiter_);
    waiter_ = &op;
    // One that was cancelled above goes on below: what it brings is the next one's.
    if (accepting_) return false;
    if (!below_op_) {
        accepting_ = true;
        below_op_.emplace(below_.driver());
        if (below_op_->begin(accepted_.handle(), nullptr)) return false;
        accepting_ = false;
    }
    waiter_ = nullptr;
    return deliver(op);
}

/// Hands over what was accepted.
bool tls_listener::deliver(accept_operation& op) {
    result<stream> plain = below_op_->take_result();
    below_op_.reset();
    if (plain) plain = start_handshake(std::move(*plain), context_, {}, timeout_);
    if (plain)
        op.set_accepted(std::move(*plain));
    else
        op.set_error(plain.error());
    return true;
}

void tls_listener::on_accepted() {
    accepting_ = false;
    if (closing_) {
        delete this;
        return;
    }
    if (!waiter_) return;  // kept for the next one
    accept_operation& op = *std::exchange(waiter_, nullptr);
    deliver(op);
    op.complete_now();
}

void tls_listener::cancel(accept_operation& op) noexcept {
    EDDY_ASSERT(waiter_ == &op);
    waiter_ = nullptr;
    op.set_error(errc::cancelled);
    op.complete_later();
}

void tls_listener::close() noexcept {
    closing_ = true;
    if (waiter_) {
        accept_operation& op = *std::exchange(waiter_, nullptr);
        op.set_error(errc::cancelled);
        op.complete_later();
    }
    below_.close();
    if (accepting_ && below_op_->linked()) {
        below_op_->unlink();
        accepting_ = false;
    }
    if (!accepting_) delete this;
}

}  // namespace eddy::tls
