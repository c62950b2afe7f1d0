// Hierarchical timer wheel.
#include <eddy/io/timer.hpp>

#include <algorithm>
#include <bit>

namespace eddy {

void timer_wheel::append(timer& node, unsigned slot) noexcept {
    list& to = at(slot);
    node.slot_ = static_cast<std::uint16_t>(slot);
    node.prev_ = to.last;
    node.next_ = nullptr;
    if (to.last)
        to.last->next_ = &node;
    else
        to.first = &node;
    to.last = &node;
    used_[slot / slots_a_level] |= std::uint64_t{1} << slot % slots_a_level;
    levels_ |= 1U << slot / slots_a_level;
}

void timer_wheel::insert(timer& node, time_point when) noexcept {
    EDDY_PRECONDITION(!node.armed(), "arm() of a timer that is armed: disarm() it first");
    node.when_ = when;
    place(node);
    next_ = std::min(next_, when);
}

void timer_wheel::place(timer& node) noexcept {
    // Timers that were due before the wheel's time are due now.
    const std::int64_t when = std::max<std::int64_t>(node.when_.time_since_epoch().count(), time_);
    const auto differing = static_cast<std::uint64_t>(when ^ time_);
    const unsigned level = static_cast<unsigned>(std::bit_width(differing | 1) - 1) / digit_bits;
    const auto digit = static_cast<unsigned>(when >> level * digit_bits) % slots_a_level;
    append(node, level * slots_a_level + digit);
}

void timer_wheel::remove(timer& node) noexcept {
    EDDY_ASSERT(node.armed());
    const unsigned slot = node.slot_;
    list& from = at(slot);
    (node.prev_ ? node.prev_->next_ : from.first) = node.next_;
    (node.next_ ? node.next_->prev_ : from.last) = node.prev_;
    node.slot_ = timer::nowhere;
    if (from.first) return;
    std::uint64_t& used = used_[slot / slots_a_level];
    used &= ~(std::uint64_t{1} << slot % slots_a_level);
    if (used == 0) levels_ &= ~(1U << slot / slots_a_level);
    if (moving_ == slot) moving_ = none;
}

/// The slot of the next deadlines: the first one of the lowest level that has any. What stands on
/// a level shares all higher digits with the wheel's time, so it is before all higher levels.
unsigned timer_wheel::first_slot() const noexcept {
    const auto level = static_cast<unsigned>(std::countr_zero(levels_));
    return level * slots_a_level + static_cast<unsigned>(std::countr_zero(used_[level]));
}

/// The first nanosecond of a slot.
std::int64_t timer_wheel::start_of(unsigned slot) const noexcept {
    const unsigned shift = slot / slots_a_level * digit_bits;
    const std::int64_t digit = slot % slots_a_level;
    const std::int64_t above = shift + digit_bits < 63 ? time_ >> (shift + digit_bits) : 0;
    return (above << digit_bits | digit) << shift;
}

void timer_wheel::fire_due(time_point now, std::size_t most) noexcept {
    const std::int64_t until = std::max(now.time_since_epoch().count(), time_);
    while (most > 0 && levels_ != 0) {
        if (moving_ == none) {
            const unsigned slot = first_slot();
            const std::int64_t start = start_of(slot);
            if (start > until) break;
            time_ = start;
            moving_ = slot;
        }
        const unsigned slot = moving_;
        // remove() ends the moving with the slot's last timer. What place() and fire() put in
        // stands lower, or, due at once, in this same slot of level 0.
        for (; most > 0 && moving_ == slot; --most) {
            timer& node = *at(slot).first;
            remove(node);
            if (slot < slots_a_level)
                node.fire();
            else
                place(node);
        }
    }
    if (most == 0 && levels_ != 0) {
        next_ = time_point::min();
        return;
    }
    time_ = until;
    find_next();
}

/// Finds the next deadline, where few timers stand before the others; else when their slot begins.
void timer_wheel::find_next() noexcept {
    next_ = time_point::max();
    if (levels_ == 0) return;
    constexpr int most_examined = 16;
    const unsigned slot = first_slot();
    int seen = 0;
    for (const timer* node = at(slot).first; node; node = node->next_) {
        if (++seen > most_examined) {
            next_ = time_point(duration(start_of(slot)));
            return;
        }
        next_ = std::min(next_, node->when_);
    }
}

}  // namespace eddy
