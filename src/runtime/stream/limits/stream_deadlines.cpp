// Deadlines of streams.
#include "runtime/stream/limits/stream_deadlines.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/loop.hpp>

namespace eddy::runtime::stream {

stream_deadlines::stream_deadlines(observer& owner) noexcept
    : owner_(owner), start_(loop::current().now()) {}

stream_deadlines::~stream_deadlines() { loop::current().disarm(*this); }

void stream_deadlines::set(duration time) noexcept {
    EDDY_ASSERT(time == duration::max() || time <= longest_stream_time);
    if (time == time_) return;
    time_ = time;
    loop::current().disarm(*this);
    if (!has_time()) {
        while (!begun_.is_empty()) begun_.remove(begun_.first());
        return;
    }
    // A whole millisecond more: the beginning is rounded down.
    time_ms_ = static_cast<std::uint32_t>(time / std::chrono::milliseconds(1)) + 1;
    arm();
}

void stream_deadlines::begin(std::uint32_t stream) {
    if (!has_time()) return;
    begun_.make_room(stream);
    begun_.add(stream, clock_ms());
    if (!armed()) arm();
}

void stream_deadlines::fire() noexcept {
    for (unsigned i = 0; i < burst && begun_.is_due(clock_ms() - time_ms_); ++i) {
        const std::uint32_t stream = begun_.first();
        begun_.remove(stream);
        owner_.on_overdue(stream);
    }
    arm();
}

void stream_deadlines::arm() noexcept {
    if (begun_.is_empty()) return;
    const std::uint32_t due = begun_[begun_.first()].due_ms + time_ms_;
    const auto ahead = static_cast<std::int32_t>(due - clock_ms());
    loop& here = loop::current();
    here.arm(*this, here.after(std::chrono::milliseconds(ahead > 0 ? ahead : 0)));
}

std::uint32_t stream_deadlines::clock_ms() const noexcept {
    return static_cast<std::uint32_t>((loop::current().now() - start_) /
                                      std::chrono::milliseconds(1));
}

}  // namespace eddy::runtime::stream
