// Queue of numbers that are all due after the same time: a list in the order in which they were
// added, through the entries of a table by number. Adding and removing take no allocation.
#pragma once

#include <eddy/base/assert.hpp>

#include <cstdint>
#include <deque>

namespace eddy::runtime::stream {

/// True if a count of milliseconds comes before another one; right also when the count wraps, for
/// times less than 24 days apart.
constexpr bool is_before(std::uint32_t one, std::uint32_t other) noexcept {
    return static_cast<std::int32_t>(one - other) < 0;
}

struct due_entry {
    static constexpr std::uint32_t none = UINT32_MAX;
    std::uint32_t next = none;
    std::uint32_t previous = none;
    std::uint32_t due_ms = 0;
    bool is_queued = false;
};

/// A table of entries, which derive from due_entry, and the queue of the waiting ones. Entries stay
/// where they are. One thread.
template <class Entry>
class due_queue {
public:
    /// Makes the entries up to that number. Throws std::bad_alloc.
    void make_room(std::uint32_t number) {
        if (number >= entries_.size()) entries_.resize(number + 1);
    }
    bool has(std::uint32_t number) const noexcept { return number < entries_.size(); }
    Entry& operator[](std::uint32_t number) noexcept { return entries_[number]; }

    /// Adds a number that has an entry and is not in the queue. It is due no earlier than the
    /// queued ones.
    void add(std::uint32_t number, std::uint32_t due_ms) noexcept {
        EDDY_ASSERT(has(number));
        Entry& its = entries_[number];
        EDDY_ASSERT(!its.is_queued);
        its.is_queued = true;
        its.due_ms = due_ms;
        its.next = due_entry::none;
        its.previous = tail_;
        (tail_ == due_entry::none ? head_ : entries_[tail_].next) = number;
        tail_ = number;
    }
    /// Takes a number out; nothing for one that is not in the queue.
    void remove(std::uint32_t number) noexcept {
        if (!has(number) || !entries_[number].is_queued) return;
        Entry& its = entries_[number];
        its.is_queued = false;
        (its.previous == due_entry::none ? head_ : entries_[its.previous].next) = its.next;
        (its.next == due_entry::none ? tail_ : entries_[its.next].previous) = its.previous;
    }

    bool is_empty() const noexcept { return head_ == due_entry::none; }
    /// The number that is due first; the queue is not empty.
    std::uint32_t first() const noexcept {
        EDDY_ASSERT(!is_empty());
        return head_;
    }
    /// True when a number is due by `now_ms`.
    bool is_due(std::uint32_t now_ms) const noexcept {
        return head_ != due_entry::none && !is_before(now_ms, entries_[head_].due_ms);
    }

private:
    std::deque<Entry> entries_;
    std::uint32_t head_ = due_entry::none;
    std::uint32_t tail_ = due_entry::none;
};

}  // namespace eddy::runtime::stream
