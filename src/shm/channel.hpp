// Shared memory of one connection: the ring that this side writes, the ring that it reads, and the
// words that announce a sleeping side. No system calls but membarrier(2): the caller waits and
// wakes.
//
// The side that publishes bytes, or room, stores a position and then loads the peer's word of
// waiting; the side that goes to sleep stores that word and then loads the position. With a fence
// between store and load on both sides, at least one side observes the other (Dekker). Reading
// frees room in steps of a quarter of the ring, so its fence is rare; a waiting writer has three
// quarters unread, and the reader passes its next step before it has read them.
#pragma once

#include <eddy/base/assert.hpp>
#include <eddy/base/bytes.hpp>
#include <eddy/base/result.hpp>
#include <eddy/shm/layout.h>

#include "shm/memory.hpp"
#include "shm/written_pages.hpp"

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace eddy::shm {

/// True if this process can take part in asymmetric fences; the first call registers it.
bool has_asymmetric_fence() noexcept;
/// The fence in all processes that are registered; has_asymmetric_fence().
void fence_everywhere() noexcept;

/// One thread for writing and one for reading; each uses only its part below.
class channel {
public:
    struct parts {
        memory own;
        memory peer;
        std::uint64_t own_position = 0;  ///< as in the HELLOs
        std::uint64_t peer_position = 0;
        bool is_asymmetric = false;  ///< both have EDDY_SHM_FEATURE_ASYMMETRIC
        std::uint32_t peer_doorbell = EDDY_SHM_DOORBELL_SOCKET;
        unique_fd peer_file = {};  ///< of `peer`
    };
    explicit channel(parts from) noexcept
        : own_(std::move(from.own)),
          peer_(std::move(from.peer)),
          is_asymmetric_(from.is_asymmetric),
          peer_doorbell_(from.peer_doorbell),
          out_(from.own_position, own_.ring_size()),
          in_(from.peer_position, peer_.ring_size()),
          out_begin_(from.own_position),
          pages_(std::move(from.peer_file), from.peer_position, peer_.ring_size()) {
        in_.written = pages_.known();
        store(own_.word64(EDDY_SHM_HEAD), from.own_position);
        store(own_.word64(EDDY_SHM_TAIL), from.peer_position);
    }

    // ---- writing

    /// Free bytes of the own ring. The peer's position is loaded if fewer than `wanted` are known;
    /// still fewer may be free, or none while the peer has not read enough. ECONNRESET for a peer
    /// that broke the protocol.
    result<mutable_bytes> room(std::size_t wanted = 1) noexcept {
        if (out_free() < wanted && !load_tail()) return fail_errno(ECONNRESET);
        return mutable_bytes(own_.ring() + (out_.position & out_.mask), out_free());
    }
    /// Loads the peer's read position. ECONNRESET as room().
    result<> look_at_tail() noexcept {
        if (!load_tail()) return fail_errno(ECONNRESET);
        return {};
    }
    /// The position behind the appended bytes, and the peer's last known read position.
    std::uint64_t appended() const noexcept { return out_.position; }
    std::uint64_t read_by_peer() const noexcept { return out_.other; }
    /// Appends `size` bytes that were written to room(), unpublished.
    void append(std::size_t size) noexcept {
        EDDY_ASSERT(size <= out_free());
        // finish_from_any_thread() reads it.
        store(&out_.position, out_.position + size);
    }
    /// Publishes the appended bytes. True when the peer has to be woken.
    bool publish() noexcept {
        store(own_.word64(EDDY_SHM_HEAD), out_.position);
        fence();
        return sleeps(EDDY_SHM_READER, out_);
    }
    /// Fetches the cache lines of the next bytes for writing, as many as the last message had if
    /// `all`, by a store to each: the peer has read them a lap ago, so the bytes themselves would
    /// wait for their lines. Only before anything is written to room().
    void claim_room(bool all) noexcept {
        const std::uint64_t last = all ? out_.position - claimed_at_ : 0;
        claimed_at_ = out_.position;
        const std::uint64_t to =
            out_.position + least_claimed + (last < most_claimed ? last : most_claimed);
        // Within the peer's last known read position.
        if (to - out_.other > out_.mask + 1) return;
        std::uint64_t line = out_.position > claimed_ ? out_.position : claimed_;
        for (; line < to; line += line_size)
            *static_cast<volatile std::byte*>(own_.ring() + (line & out_.mask)) = std::byte{};
        claimed_ = line;
    }
    /// No bytes follow those published. True when the peer has to be woken.
    bool finish() noexcept {
        store(own_.word64(EDDY_SHM_END), out_.position + 1);
        fence();
        return sleeps(EDDY_SHM_READER, out_);
    }
    /// finish() from a thread beside the writing one: publishes the appended bytes, unless the end
    /// is already published. True when the peer has to be woken; it may be woken twice.
    bool finish_from_any_thread() noexcept {
        const std::uint64_t appended = load(&out_.position);
        std::uint64_t* const head = own_.word64(EDDY_SHM_HEAD);
        std::uint64_t published = load(head);
        // Never back: the writer may publish more meanwhile.
        while (static_cast<std::int64_t>(appended - published) > 0 &&
               !__atomic_compare_exchange_n(head, &published, appended, false, __ATOMIC_ACQ_REL,
                                            __ATOMIC_ACQUIRE)) {
        }
        std::uint64_t none = 0;
        if (!__atomic_compare_exchange_n(own_.word64(EDDY_SHM_END), &none, load(head) + 1, false,
                                         __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            return false;
        std::atomic_thread_fence(std::memory_order_seq_cst);
        return __atomic_load_n(peer_.word32(EDDY_SHM_READER), __ATOMIC_RELAXED) % 2 == 1;
    }
    bool is_finished() const noexcept { return load(own_.word64(EDDY_SHM_END)) != 0; }
    /// Announces that this side waits for room, until disarm_writer(): the peer wakes it once, at
    /// its next consume(). Check for room after this call.
    void arm_writer() noexcept { arm(EDDY_SHM_WRITER, out_); }
    void disarm_writer() noexcept { disarm(EDDY_SHM_WRITER, out_); }
    bool is_writer_armed() const noexcept { return out_.epoch % 2 == 1; }

    /// Copies as much as there is room for, and publishes it. 0 while there is none.
    result<std::size_t> write(const_bytes from, bool& wakes) noexcept {
        const auto found = room(from.size());
        if (!found) return fail(found.error());
        const std::size_t size = found->size() < from.size() ? found->size() : from.size();
        if (size == 0) return 0;
        std::memcpy(found->data(), from.data(), size);
        append(size);
        if (publish()) wakes = true;
        return size;
    }

    // ---- reading

    /// Bytes to read; empty while there are none. A hostile peer may change them while they are
    /// read, so copy them before parsing. ECONNRESET as with room().
    result<const_bytes> bytes() noexcept {
        if (in_.position == in_.other && !load_head()) return fail_errno(ECONNRESET);
        return const_bytes(peer_.ring() + (in_.position & in_.mask), in_unread());
    }
    /// The same, including later bytes when some are known already.
    result<const_bytes> all_bytes() noexcept {
        if (!load_head()) return fail_errno(ECONNRESET);
        return bytes();
    }
    /// Prefetches the cache line of the next bytes while this side polls for them, in parallel with
    /// that of the position.
    void fetch_bytes() const noexcept {
        __builtin_prefetch(peer_.ring() + (in_.position & in_.mask));
    }
    /// True if the peer has finished, and everything was read. ECONNRESET for an invalid end.
    result<bool> is_at_end() noexcept {
        const std::uint64_t end = load(peer_.word64(EDDY_SHM_END));
        if (end == 0) return false;
        if (!load_head() || end != in_.other + 1) return fail_errno(ECONNRESET);
        return in_.position == in_.other;
    }
    /// Frees the room of `size` bytes. True when the peer has to be woken.
    bool consume(std::size_t size) noexcept {
        EDDY_ASSERT(size <= in_unread());
        in_.position += size;
        store(own_.word64(EDDY_SHM_TAIL), in_.position);
        owed_ += size;
        return owed_ > in_.mask / 4 && settle();
    }
    /// Checks for a writer that sleeps on room freed since the last check: true when the peer has
    /// to be woken. Called by a side that finds nothing to read, before it does other things.
    bool settle() noexcept {
        if (owed_ == 0) return false;
        owed_ = 0;
        fence();
        return sleeps(EDDY_SHM_WRITER, in_);
    }
    /// As arm_writer(), for bytes. True when the peer has to be woken, by settle().
    bool arm_reader() noexcept {
        arm(EDDY_SHM_READER, in_);
        return settle();
    }
    void disarm_reader() noexcept { disarm(EDDY_SHM_READER, in_); }
    bool is_reader_armed() const noexcept { return in_.epoch % 2 == 1; }

    /// Copies the bytes that are there, and frees their room. 0 while there are none. `wakes`
    /// becomes true when the peer has to be woken.
    result<std::size_t> read(mutable_bytes into, bool& wakes) noexcept {
        const auto found = bytes();
        if (!found) return fail(found.error());
        const std::size_t size = found->size() < into.size() ? found->size() : into.size();
        if (size == 0) return 0;
        std::memcpy(into.data(), found->data(), size);
        if (consume(size)) wakes = true;
        return size;
    }

    // ---- either
    /// Publishes the processor on which this side runs.
    void set_processor(std::uint32_t number) noexcept {
        __atomic_store_n(own_.word32(EDDY_SHM_CPU), number + 1, __ATOMIC_RELAXED);
    }
    /// 1 + the processor that the peer last published; 0 without one.
    std::uint32_t peer_processor() const noexcept {
        return __atomic_load_n(peer_.word32(EDDY_SHM_CPU), __ATOMIC_RELAXED);
    }

    std::uint32_t peer_doorbell() const noexcept { return peer_doorbell_; }
    /// Increments the word on which a peer that waits for bytes or the end, or for room, sleeps by
    /// futex(2); the caller wakes it then.
    const std::uint32_t* raise_reader_bell() noexcept { return raise(EDDY_SHM_READER_BELL); }
    const std::uint32_t* raise_writer_bell() noexcept { return raise(EDDY_SHM_WRITER_BELL); }
    /// The peer's words of that kind. Load them before arm_reader(), or arm_writer(), and sleep
    /// until they change.
    const std::uint32_t* reader_bell() const noexcept { return peer_.word32(EDDY_SHM_READER_BELL); }
    const std::uint32_t* writer_bell() const noexcept { return peer_.word32(EDDY_SHM_WRITER_BELL); }

    std::size_t own_ring_size() const noexcept { return own_.ring_size(); }
    std::size_t peer_ring_size() const noexcept { return peer_.ring_size(); }

private:
    /// State of one direction, on lines of its own: its thread writes it all the time.
    struct alignas(128) direction {
        direction(std::uint64_t begin, std::size_t ring_size) noexcept
            : position(begin), other(begin), mask(ring_size - 1) {}

        std::uint64_t position;              // of this side
        std::uint64_t other;                 // of the peer, as last seen and checked
        std::uint64_t mask;                  // size of the ring - 1
        std::uint32_t epoch = 0;             // of this side's sleep; odd while it is armed
        std::uint32_t woken = 0;             // of the peer's sleep that it was last woken from
        std::uint64_t written = UINT64_MAX;  // no page up to there needs a check
    };

    static constexpr std::size_t line_size = 64;
    static constexpr std::size_t least_claimed = 4 * line_size;
    static constexpr std::size_t most_claimed = 32 * line_size;

    static void store(std::uint64_t* word, std::uint64_t value) noexcept {
        __atomic_store_n(word, value, __ATOMIC_RELEASE);
    }
    static std::uint64_t load(const std::uint64_t* word) noexcept {
        return __atomic_load_n(word, __ATOMIC_ACQUIRE);
    }

    const std::uint32_t* raise(std::size_t offset) noexcept {
        std::uint32_t* const word = own_.word32(offset);
        __atomic_fetch_add(word, 1, __ATOMIC_RELEASE);
        return word;
    }

    std::size_t out_free() const noexcept { return out_.mask + 1 - (out_.position - out_.other); }
    std::size_t in_unread() const noexcept { return in_.other - in_.position; }

    /// Both accept a position of the peer only between the last one and the last possible one.
    bool load_tail() noexcept {
        const std::uint64_t found = load(peer_.word64(EDDY_SHM_TAIL));
        if (found - out_.other > out_.position - out_.other)
            return found == 0 && out_.other == out_begin_;  // the peer does not have the HELLO yet
        out_.other = found;
        return true;
    }
    bool load_head() noexcept {
        const std::uint64_t found = load(peer_.word64(EDDY_SHM_HEAD));
        const std::uint64_t unread = found - in_.position;
        if (unread > in_.mask + 1 || unread < in_unread()) return false;
        if (found > in_.written && !are_pages_written(found)) return false;
        in_.other = found;
        return true;
    }
    [[gnu::noinline]] bool are_pages_written(std::uint64_t to) noexcept;

    void fence() const noexcept {
        if (is_asymmetric_)
            std::atomic_signal_fence(std::memory_order_seq_cst);
        else
            full_fence();
    }
    /// As std::atomic_thread_fence(), which is mfence in clang: that waits for loads, too, and
    /// takes twice as long.
    static void full_fence() noexcept {
#if defined(__x86_64__)
        asm volatile("lock orl $0, -64(%%rsp)" ::: "memory", "cc");
#else
        std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
    }
    /// After a position was stored, and the fence: true if the peer sleeps on it, and was not woken
    /// from this sleep yet.
    bool sleeps(std::size_t offset, direction& in) const noexcept {
        const std::uint32_t epoch = __atomic_load_n(peer_.word32(offset), __ATOMIC_RELAXED);
        if (epoch % 2 == 0 || epoch == in.woken) return false;
        in.woken = epoch;
        return true;
    }
    void arm(std::size_t offset, direction& in) noexcept {
        in.epoch += in.epoch % 2 == 0 ? 1 : 2;
        __atomic_store_n(own_.word32(offset), in.epoch, __ATOMIC_RELAXED);
        std::atomic_thread_fence(std::memory_order_seq_cst);
        if (is_asymmetric_) fence_everywhere();
    }
    void disarm(std::size_t offset, direction& in) noexcept {
        if (in.epoch % 2 == 0) return;
        ++in.epoch;
        __atomic_store_n(own_.word32(offset), in.epoch, __ATOMIC_RELAXED);
    }

    memory own_;
    memory peer_;
    bool is_asymmetric_;
    std::uint32_t peer_doorbell_;
    direction out_;
    std::uint64_t claimed_at_ = out_.position;  // position at the last claim_room()
    std::uint64_t claimed_ = out_.position;     // lines up to there were claimed
    direction in_;
    std::uint64_t out_begin_;
    std::size_t owed_ = 0;  // bytes read since the writer was last checked
    written_pages pages_;
};

}  // namespace eddy::shm
