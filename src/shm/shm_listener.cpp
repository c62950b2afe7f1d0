// Accepting below, handshakes side by side, and their end.
#include "shm/shm_listener.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/executor.hpp>
#include <eddy/io/loop.hpp>

#include "shm/crowd.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <new>
#include <utility>

namespace eddy::shm {
namespace {

/// Pause after a failed accept(2): of those for want of descriptors or memory.
constexpr duration crowded_pause = std::chrono::milliseconds(5);

}  // namespace

shm_listener::shm_listener(listener below, listen_options wanted)
    : below_(std::move(below)), options_(std::move(wanted)) {
    under_way_.reserve(max_waiting_connections);
}

bool shm_listener::start(accept_operation& op) {
    EDDY_PRECONDITION(!waiter_, "a second accept of one listener: await the first before the next");
    if (give(op)) return true;
    if (!begin_accepting()) {
        op.set_error(errno_code(ENOMEM));
        return true;
    }
    // It may have accepted at once.
    if (give(op)) return true;
    waiter_ = &op;
    return false;
}

/// Completes `op` with the stream that was ready first; false if there is none.
bool shm_listener::give(accept_operation& op) {
    if (ready_.empty()) return false;
    op.set_accepted(std::move(ready_.front()));
    ready_.pop_front();
    has_room_.set();
    return true;
}

/// Accepting waits in coroutines that end before the loop's run() returns, as its posted tasks do;
/// the next accept() begins anew.
bool shm_listener::begin_accepting() noexcept try {
    if (has_begun_) return true;
    // It outlives what the accepting coroutine has inherited.
    const detail::frames_from pool(nullptr);
    has_begun_ = true;
    if (!executor::current().dispatch(accept_all(this))) has_begun_ = false;
    return has_begun_;
} catch (const std::bad_alloc&) {
    has_begun_ = false;
    return false;
}

task<void> shm_listener::accept_all(shm_listener* self) {
    {
        scope handshakes;
        self->accepting_ = &handshakes;
        co_await self->accept_until_closed(handshakes);
        handshakes.cancel();
        co_await handshakes.join();
        self->accepting_ = nullptr;
        self->has_begun_ = false;
    }
    if (self->is_closing_)
        delete self;
    else
        self->end_waiter(make_error_code(errc::cancelled));
}

task<void> shm_listener::accept_until_closed(scope& handshakes) {
    while (!is_closing_) {
        if (ready_.size() >= max_waiting_connections) {
            has_room_.reset();
            if (auto waited = co_await has_room_.wait(); !waited) co_return;
            continue;
        }
        auto plain = co_await below_.accept();
        if (is_closing_) co_return;
        if (plain) {
            while (is_full()) {
                end_one();
                has_room_.reset();
                if (auto waited = co_await has_room_.wait(); !waited || is_closing_) co_return;
            }
            handshakes.spawn(shake_hands(this, std::move(*plain)));
            continue;
        }
        if (plain.error() == errc::cancelled || plain.error() == errc::closed) co_return;
        end_waiter(plain.error());
        if (auto slept = co_await loop::current().sleep_for(crowded_pause); !slept) co_return;
    }
}

/// Ends the handshake of a process that has most of them, unless one ends already.
void shm_listener::end_one() noexcept {
    if (under_way_.empty() || std::ranges::any_of(under_way_, &handshake::is_given_up)) return;
    handshake& chosen =
        **most_crowding(under_way_, [](const handshake* one) { return one->process; });
    chosen.is_given_up = true;
    // Its wait ends as if the client had closed.
    ::shutdown(chosen.socket, SHUT_RDWR);
}

shm_listener::handshake::handshake(shm_listener& listening, int with)
    : of(listening),
      process(unix_socket::peer_of(with).value_or(unix_socket::peer_process())),
      socket(with) {
    of.under_way_.push_back(this);
}

shm_listener::handshake::~handshake() {
    std::erase(of.under_way_, this);
    of.has_room_.set();
}

task<void> shm_listener::shake_hands(shm_listener* self, stream plain) {
    result<stream> finished = fail(errc::cancelled);
    {
        const handshake own(*self, plain.native_handle());
        finished = co_await accept_over(std::move(plain), self->options_);
    }
    if (self->is_closing_) co_return;
    if (!finished) {
        ++self->failures_;
        co_return;
    }
    self->ready_.push_back(std::move(*finished));
    if (!self->waiter_ || !self->give(*self->waiter_)) co_return;
    std::exchange(self->waiter_, nullptr)->complete_later();
}

void shm_listener::end_waiter(std::error_code error) noexcept {
    if (!waiter_) return;
    accept_operation& op = *std::exchange(waiter_, nullptr);
    op.set_error(error);
    op.complete_later();
}

void shm_listener::cancel(accept_operation& op) noexcept {
    EDDY_ASSERT(waiter_ == &op);
    end_waiter(make_error_code(errc::cancelled));
}

void shm_listener::close() noexcept {
    is_closing_ = true;
    end_waiter(make_error_code(errc::cancelled));
    ready_.clear();
    below_.close();
    has_room_.set();
    if (accepting_) accepting_->cancel();
    if (!has_begun_) delete this;
}

}  // namespace eddy::shm
