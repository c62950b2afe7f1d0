// Time of a script: the slices of its calls, and their budget.
#include <eddy/io/loop.hpp>

#include "base/processor_time.hpp"
#include "lua/errors.hpp"
#include "script/coroutine_host.hpp"

#include <algorithm>
#include <chrono>

namespace eddy::script {

void coroutine_host::begin_run(const call* of) noexcept {
    used_ = of == nullptr ? std::chrono::nanoseconds{} : of->used_;
    has_used_slice_ = false;
    // The clock is read where short parts of a call add up.
    slice_begun_ = of != nullptr && of->has_paused_ ? processor_time() : not_read;
    slice_length_ = options_.limits.slice;
    ending_ = {};
}

void coroutine_host::begin_further_slice() noexcept {
    slice_begun_ = not_read;
    slice_length_ =
        std::min(options_.limits.slice, std::max(least_slice, options_.limits.slice / slice_part));
}

/// Time of the slice since the clock was first read in it.
std::chrono::nanoseconds coroutine_host::slice_time() noexcept {
    const std::chrono::nanoseconds now = processor_time();
    if (slice_begun_ == not_read) slice_begun_ = now;
    if (round_begun_ == not_read) round_begun_ = now;
    if (!is_round_over_ && fiber_.is_inside() && now - round_begun_ >= options_.limits.slice) {
        is_round_over_ = true;
        loop::current().arm(*this, loop::current().now());
    }
    return now - slice_begun_;
}

void coroutine_host::check(lua::stack in) {
    const std::chrono::nanoseconds elapsed = slice_time();
    const auto most = is_loaded_ ? options_.limits.run : options_.limits.load;
    if (ending_.empty() && used_ + elapsed > most) ending_ = script_too_long;
    // Also while it ends: thousands of pcall() within each other catch an error each.
    leave_after(elapsed);
    if (ending_.empty()) return;
    // From now on at every instruction: no pcall() of the script's keeps it alive.
    lua::sandbox::of(in).check_always(true);
    lua::raise_here(in, ending_ == script_too_long ? "it computes for too long without a wait"
                                                   : "its client has gone");
}

void coroutine_host::check_quietly() { leave_after(slice_time()); }

/// Leaves the script in the middle at the end of its slice.
void coroutine_host::leave_after(std::chrono::nanoseconds elapsed) {
    if (!fiber_.is_inside() || elapsed < slice_length_) return;
    has_used_slice_ = true;
    used_ += elapsed;
    fiber_.suspend();
}

}  // namespace eddy::script
