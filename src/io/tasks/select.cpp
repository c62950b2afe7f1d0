// Arms of select(): registration, the completion that decides, withdrawal of the others.
#include <eddy/io/select.hpp>

#include <eddy/base/assert.hpp>

namespace eddy {

bool operation::notify_select() noexcept {
    select_->on_arm_completed(*this);
    return true;  // an arm has no waiter to resume
}

namespace detail {

void select_base::set_error(std::error_code error) noexcept {
    winner_ = 0;
    arms_[0]->set_error(error);
}

bool select_base::start() {
    while (winner_ == none && started_ < count_) {
        operation& arm = *arms_[started_];
        arm.select_ = this;
        if (arm.start()) {
            arm.select_ = nullptr;
            // A send to this select()'s own receive has decided already.
            if (winner_ == none) winner_ = started_;
        }
        ++started_;
    }
    suspended_ = winner_ == none;
    if (!suspended_) withdraw();
    return !suspended_;
}

void select_base::on_cancel() noexcept {
    winner_ = 0;
    withdraw();
    complete_later();
}

void select_base::on_arm_completed(operation& arm) noexcept {
    arm.select_ = nullptr;
    if (winner_ != none) return;
    winner_ = 0;
    while (arms_[winner_] != &arm) ++winner_;
    if (!suspended_) return;  // from inside start(), which continues
    withdraw();
    complete_later();
}

void select_base::withdraw() noexcept {
    for (std::size_t i = 0; i < started_; ++i) {
        operation& arm = *arms_[i];
        if (!arm.select_) continue;
        arm.on_cancel();
        EDDY_ASSERT(!arm.select_);  // `keeps_when_withdrawn`: it has completed inside the call
    }
}

}  // namespace detail
}  // namespace eddy
