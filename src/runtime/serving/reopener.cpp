// Reopener: attempts and pauses.
#include "runtime/serving/reopener.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/base/random.hpp>
#include <eddy/io/loop.hpp>

#include "io/tasks/backoff.hpp"

#include <new>
#include <utility>

namespace eddy::runtime {

void reopener::begin(const problem& why, std::function<outcome<>()> open) {
    EDDY_ASSERT(!why.message.empty());
    fault_ = why.message;
    open_ = std::move(open);
    if (!attempts_) attempts_.emplace();
    if (!std::exchange(is_trying_, true)) attempts_->spawn(run());
}

task<void> reopener::run() {
    backoff pauses(first_pause, longest_pause, entropy_seed());
    while (co_await loop::current().sleep_for(pauses.next())) {
        try {
            if (const outcome<> opened = open_()) {
                fault_.clear();
                events_.write("listens on all of its addresses again");
                break;
            } else {
                fault_ = opened.error().message;
            }
        } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): tried again
        }
    }
    is_trying_ = false;
}

task<void> reopener::end() {
    if (!attempts_) co_return;
    attempts_->cancel();
    co_await attempts_->join();
    attempts_.reset();
    fault_.clear();
}

}  // namespace eddy::runtime
