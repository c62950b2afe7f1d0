// Accept of simulated connections.
#include "io/sim/sim_listener.hpp"

#include <utility>

namespace eddy {

sim_listener::~sim_listener() { world_.remove(*this); }

bool sim_listener::start(accept_operation& op) {
    EDDY_PRECONDITION(!acceptor_,
                      "a second accept of one listener: await the first before the next");
    if (backlog_.empty()) {
        acceptor_ = &op;
        return false;
    }
    op.set_accepted(stream(*backlog_.front()));
    backlog_.pop_front();
    return true;
}

void sim_listener::add(sim_stream& connected) {
    if (!acceptor_) {
        backlog_.push_back(&connected);
        return;
    }
    acceptor_->set_accepted(stream(connected));
    std::exchange(acceptor_, nullptr)->complete_later();
}

void sim_listener::cancel(accept_operation& op) noexcept {
    EDDY_ASSERT(acceptor_ == &op);
    acceptor_ = nullptr;
    op.set_error(errc::cancelled);
    op.complete_later();
}

void sim_listener::close() noexcept {
    if (acceptor_) cancel(*acceptor_);
    for (sim_stream* waiting : backlog_) waiting->abort();
    delete this;
}

}  // namespace eddy
