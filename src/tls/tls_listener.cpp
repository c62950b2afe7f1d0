// Accept of connections below, up to the limit of handshakes in progress, and their start.
#include "tls/tls_listener.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/loop.hpp>

#include "tls/tls_stream.hpp"

#include <algorithm>
#include <utility>

namespace eddy::tls {

tls_listener::tls_listener(listener below, context as, duration timeout, std::size_t max_handshakes)
    : below_(std::move(below)),
      context_(std::move(as)),
      timeout_(timeout),
      max_handshakes_(max_handshakes),
      under_way_([](void* self) { static_cast<tls_listener*>(self)->on_handshake_over(); }, this),
      accepted_([](void* self) { static_cast<tls_listener*>(self)->on_accepted(); }, this) {}

tls_stream& tls_listener::oldest() noexcept {
    return static_cast<tls_stream&>(under_way_.oldest());
}

bool tls_listener::start(accept_operation& op) {
    EDDY_PRECONDITION(!waiter_, "a second accept of one listener: await the first before the next");
    if (full()) {
        waiter_ = &op;
        wait_for_room();
        return false;
    }
    if (!accept_below()) {
        waiter_ = &op;
        return false;
    }
    deliver(op);
    return true;
}

/// True when there is a result below. An accept that was cancelled above continues below; its
/// result goes to the next accept.
bool tls_listener::accept_below() {
    if (accepting_) return false;
    if (below_op_) return true;
    accepting_ = true;
    below_op_.emplace(below_.driver());
    if (accepted_.begin(*below_op_)) return false;
    accepting_ = false;
    return true;
}

/// Passes the accepted stream, or the error, to `op`.
void tls_listener::deliver(accept_operation& op) {
    result<stream> plain = below_op_->take_result();
    below_op_.reset();
    if (plain) plain = start_handshake(std::move(*plain), context_, {}, timeout_, &under_way_);
    if (plain)
        op.set_accepted(std::move(*plain));
    else
        op.set_error(plain.error());
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

// ---- at the limit

/// Waits until a handshake ends, or the oldest may be given up.
void tls_listener::wait_for_room() noexcept {
    loop& here = loop::current();
    here.arm(*this, oldest().begun() + std::min(timeout_, pressed_handshake_timeout));
}

void tls_listener::fire() noexcept {
    if (full()) oldest().give_up();
}

/// Called from anywhere, so the waiter resumes in the loop's next turn.
void tls_listener::on_handshake_over() {
    if (!waiter_ || accepting_ || full()) return;
    loop::current().disarm(*this);
    if (!accept_below()) return;
    accept_operation& op = *std::exchange(waiter_, nullptr);
    deliver(op);
    op.complete_later();
}

// ---- the end

void tls_listener::cancel(accept_operation& op) noexcept {
    EDDY_ASSERT(waiter_ == &op);
    waiter_ = nullptr;
    loop::current().disarm(*this);
    op.set_error(errc::cancelled);
    op.complete_later();
}

void tls_listener::close() noexcept {
    closing_ = true;
    loop::current().disarm(*this);
    under_way_.let_go([](handshakes::member& one) { static_cast<tls_stream&>(one).forget_list(); });
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
