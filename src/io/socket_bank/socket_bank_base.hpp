// Common parts of the socket banks: the table of slots, queues of slots, and the batches of
// flush().
#pragma once

#include <eddy/base/assert.hpp>
#include <eddy/base/result.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/timer.hpp>

#include "io/socket_bank/socket_bank.hpp"

#include <sys/mman.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace eddy {

/// Zeroed elements in pages that take memory only once they are written to.
template <class T>
class lazy_array {
    static_assert(std::is_trivially_copyable_v<T>);

public:
    lazy_array() noexcept = default;
    ~lazy_array() {
        if (elements_) munmap(elements_, bytes_);
    }
    lazy_array(const lazy_array&) = delete;
    lazy_array& operator=(const lazy_array&) = delete;

    /// Fails with mmap(2)'s errors. Once.
    result<> open(std::size_t count) noexcept {
        EDDY_ASSERT(!elements_);
        bytes_ = count * sizeof(T);
        void* const at = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (at == MAP_FAILED) return fail_errno();
        elements_ = static_cast<T*>(at);
        return {};
    }
    T& operator[](std::size_t index) noexcept { return elements_[index]; }

private:
    T* elements_ = nullptr;
    std::size_t bytes_ = 0;
};

/// A socket's entry in the table.
struct bank_slot {
    static constexpr std::uint32_t none = socket_bank_options::max_capacity;  // as `next`
    static constexpr std::uint32_t is_queued = 128;  // flag: in a slot_queue

    const std::byte* data;    // of the write: what has not gone out yet
    std::uint32_t size;       // of the same
    std::uint32_t next : 24;  // in the free list, or in a slot_queue
    std::uint32_t flags : 8;  // of the implementation; 0 for a free one

    bool has(std::uint32_t flag) const noexcept { return (flags & flag) != 0; }
    void set(std::uint32_t flag) noexcept { flags = static_cast<std::uint8_t>(flags | flag); }
    void clear(std::uint32_t flag) noexcept { flags = static_cast<std::uint8_t>(flags & ~flag); }
};
static_assert(sizeof(bank_slot) == 16);

/// All slots. Free ones are reused in the reverse order of their return, before never used ones, so
/// that few pages are touched.
class slot_table {
public:
    result<> open(std::uint32_t capacity) noexcept {
        capacity_ = capacity;
        return slots_.open(capacity);
    }
    bank_slot& operator[](std::uint32_t slot) noexcept {
        EDDY_ASSERT(slot < capacity_);
        return slots_[slot];
    }
    std::uint32_t size() const noexcept { return size_; }
    /// All slots that were ever in use are below it.
    std::uint32_t end() const noexcept { return fresh_; }
    bool is_full() const noexcept { return size_ == capacity_; }
    /// The slot that the next take() returns; only while !is_full().
    std::uint32_t next() const noexcept { return free_ == bank_slot::none ? fresh_ : free_; }
    std::uint32_t take() noexcept {
        const std::uint32_t slot = next();
        if (free_ == bank_slot::none)
            ++fresh_;
        else
            free_ = slots_[slot].next;
        ++size_;
        return slot;
    }
    void give_back(std::uint32_t slot) noexcept {
        slots_[slot] = {.data = nullptr, .size = 0, .next = free_, .flags = 0};
        free_ = slot;
        --size_;
    }

private:
    lazy_array<bank_slot> slots_;
    std::uint32_t capacity_ = 0;
    std::uint32_t size_ = 0;
    std::uint32_t fresh_ = 0;
    std::uint32_t free_ = bank_slot::none;
};

/// First in, first out; a slot is in one queue at a time.
class slot_queue {
public:
    std::uint32_t size() const noexcept { return size_; }
    /// Does nothing for a slot that is in it.
    void push(slot_table& of, std::uint32_t slot) noexcept {
        if (of[slot].has(bank_slot::is_queued)) return;
        of[slot].set(bank_slot::is_queued);
        of[slot].next = bank_slot::none;
        if (size_++ == 0)
            first_ = slot;
        else
            of[last_].next = slot;
        last_ = slot;
    }
    std::uint32_t pop(slot_table& of) noexcept {
        const std::uint32_t slot = first_;
        first_ = of[slot].next;
        --size_;
        of[slot].clear(bank_slot::is_queued);
        return slot;
    }

private:
    std::uint32_t first_ = bank_slot::none;
    std::uint32_t last_ = bank_slot::none;
    std::uint32_t size_ = 0;
};

/// Runs the batches of flush(), and in the loop's next turn a batch of unflushed work.
class batching_bank : public socket_bank, private timer {
public:
    ~batching_bank() override {
        EDDY_ASSERT(!busy_);  // from inside a callback
        loop_.disarm(*this);
    }

    void flush() final {
        if (busy_) return;
        busy_ = true;
        retry_ = false;
        // Callbacks begin more work. After some passes the loop's other work runs.
        for (int pass = 0; pass < most_passes && has_work() && !retry_; ++pass) run_batch();
        busy_ = false;
        loop_.disarm(*this);
        if (retry_)
            loop_.arm(*this, loop_.after(retry_delay));
        else if (has_work())
            loop_.arm(*this, loop_.now());
    }

protected:
    explicit batching_bank(observer& to) noexcept : observer_(to), loop_(loop::current()) {}

    /// True if a batch would make progress.
    virtual bool has_work() const noexcept = 0;
    /// Passes queued work to the kernel, and reports completed work.
    virtual void run_batch() = 0;

    /// For add(), write() and close(): a flush() follows at the latest in the loop's next turn.
    void begin_work() noexcept {
        if (!busy_ && !armed()) loop_.arm(*this, loop_.now());
    }
    /// For run_batch(): retries requests that the kernel has refused for now, after a while.
    void retry_later() noexcept { retry_ = true; }
    /// Calls the observer outside of run_batch(), and then begins the work that it queues.
    template <class Call>
    void report(Call call) {
        EDDY_ASSERT(!busy_);
        busy_ = true;
        call();
        busy_ = false;
        flush();
    }

    observer& to() const noexcept { return observer_; }
    loop& home() const noexcept { return loop_; }

private:
    static constexpr int most_passes = 4;
    static constexpr duration retry_delay = std::chrono::milliseconds(1);

    void fire() noexcept override { flush(); }

    observer& observer_;
    loop& loop_;
    bool busy_ = false;
    bool retry_ = false;
};

}  // namespace eddy
