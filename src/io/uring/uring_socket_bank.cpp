// Rings of the io_uring bank, and the requests of its slots.
#include "io/uring/uring_socket_bank.hpp"

#include <liburing.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <utility>

namespace eddy {
namespace {

// A ring takes memory for its entries at once, whether they are used or not. The kernel keeps the
// completions that have no room.
constexpr unsigned submission_entries = 256;
constexpr unsigned completion_entries = 1024;
/// Most direct descriptors of a ring: IORING_MAX_FIXED_FILES of the kernel.
constexpr std::uint32_t max_table_size = 1U << 20;
/// Submission entries that one slot needs at one time: to cancel its write, and for a step of its
/// close.
constexpr unsigned max_entries_a_slot = 2;
/// Unread bytes that are dropped where the kernel copies them: all but TCP.
constexpr std::size_t scratch_size = 64 * 1024;

/// A feature of Linux 6.14, IORING_FEAT_RW_ATTR. Older kernels may keep a file that a ring has
/// closed until every older request of that ring has ended (before 6.13), and release it a second
/// later.
constexpr unsigned closes_promptly = 1U << 16;

// Flags of a slot, beside bank_slot::is_queued.
constexpr std::uint32_t is_open = 1;      // has a direct descriptor
constexpr std::uint32_t is_closing = 2;   // close() was called
constexpr std::uint32_t has_hung_up = 4;  // reported
constexpr std::uint32_t is_begun = 8;     // its write has to be submitted
constexpr std::uint32_t is_sending = 16;  // its write is the kernel's
constexpr std::uint32_t is_ending = 32;   // a step of its close is the kernel's
constexpr std::uint32_t is_over_tcp = 64;
// Steps of a close. While it is closing no write begins, and no hang-up is reported.
constexpr std::uint32_t is_shut_down = has_hung_up;
constexpr std::uint32_t is_dropped = is_begun;  // what was unread
/// Size of a slot that is closed by a reset: nothing is dropped then.
constexpr std::uint32_t resets = UINT32_MAX;

// Requests, in the upper half of a completion's user data; below it is the slot.
constexpr std::uint64_t request_send = 0;
constexpr std::uint64_t request_cancel = 1;
constexpr std::uint64_t request_shutdown = 2;
constexpr std::uint64_t request_drop = 3;
constexpr std::uint64_t request_close = 4;

constexpr std::uint64_t user_data(std::uint64_t request, std::uint32_t slot) noexcept {
    return request << 32 | slot;
}

// Data of an epoll event: a generation and a slot, or this for the eventfd.
constexpr std::uint64_t completion_event = UINT64_MAX;

constexpr std::uint64_t event_data(std::uint16_t generation, std::uint32_t slot) noexcept {
    return std::uint64_t{generation} << 32 | slot;
}

}  // namespace

class uring_socket_bank::ring {
public:
    ring() noexcept = default;
    ~ring() {
        if (open_) io_uring_queue_exit(&io);
    }
    ring(const ring&) = delete;
    ring& operator=(const ring&) = delete;

    result<> open(std::uint32_t table_size, int completions) {
        io_uring_params parameters{};
        parameters.flags = IORING_SETUP_CQSIZE | IORING_SETUP_SUBMIT_ALL |
                           IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
                           IORING_SETUP_TASKRUN_FLAG;
        parameters.cq_entries = completion_entries;
        if (int error = io_uring_queue_init_params(submission_entries, &io, &parameters); error < 0)
            return fail_errno(-error);
        open_ = true;
        features_ = parameters.features;
        if (int error = io_uring_register_files_sparse(&io, table_size); error < 0)
            return fail_errno(-error);
        if (int error = io_uring_register_eventfd(&io, completions); error < 0)
            return fail_errno(-error);
        // Saves a lookup in every system call; the kernel allows a thread few of them.
        static_cast<void>(io_uring_register_ring_fd(&io));
        return {};
    }

    /// True if completions are ready, or the kernel has work that produces some.
    bool is_due() const noexcept {
        const unsigned flags = IO_URING_READ_ONCE(*io.sq.kflags);
        return io_uring_cq_ready(&io) > 0 ||
               (flags & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW)) != 0;
    }
    bool has_work() const noexcept {
        return begun.size() > 0 || io_uring_sq_ready(&io) > 0 || is_due();
    }
    bool has_room() const noexcept { return io_uring_sq_space_left(&io) >= max_entries_a_slot; }

    void set_notifying(bool on) noexcept {
        // It can only fail on kernels that never ignore the flag.
        static_cast<void>(io_uring_cq_eventfd_toggle(&io, on));
        // Before is_due() is read: the kernel sets what that reads, then reads this.
        if (on) std::atomic_thread_fence(std::memory_order_seq_cst);
    }

    io_uring io{};
    slot_queue begun;

    bool has(unsigned feature) const noexcept { return (features_ & feature) != 0; }

private:
    bool open_ = false;
    unsigned features_ = 0;
};

uring_socket_bank::uring_socket_bank(bank_observer& to) noexcept : batching_bank(to) {}

uring_socket_bank::~uring_socket_bank() = default;

result<std::unique_ptr<socket_bank>> uring_socket_bank::open(io_backend& where,
                                                             driver_counts& drivers,
                                                             const socket_bank_options& options,
                                                             bank_observer& to) {
    auto made = std::make_unique<uring_socket_bank>(to);
    if (auto mapped = made->slots_.open(options.capacity); !mapped) return fail(mapped.error());
    if (auto mapped = made->generations_.open(options.capacity); !mapped)
        return fail(mapped.error());
    if (auto mapped = made->scratch_.open(scratch_size); !mapped) return fail(mapped.error());

    rlimit files{};
    if (getrlimit(RLIMIT_NOFILE, &files) < 0) return fail_errno();
    made->table_size_ = std::min(options.capacity, max_table_size);
    if (options.table_size > 0) made->table_size_ = std::min(made->table_size_, options.table_size);
    if (files.rlim_cur < made->table_size_)
        made->table_size_ = static_cast<std::uint32_t>(files.rlim_cur);
    if (made->table_size_ == 0) return fail_errno(EMFILE);

    made->completions_.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!made->completions_) return fail_errno();
    if (auto opened = made->watch_.open(where, drivers, *made); !opened)
        return fail(opened.error());
    // Edge-triggered: every signal is an event, and the counter need never be read.
    if (auto added =
            made->watch_.add(made->completions_.get(), EPOLLIN | EPOLLET, completion_event);
        !added)
        return fail(added.error());
    if (auto added = made->add_ring(); !added) return fail(added.error());
    made->shuts_down_ = options.shuts_down || !made->rings_.front()->has(closes_promptly);
    return made;
}

result<> uring_socket_bank::add_ring() try {
    auto made = std::make_unique<ring>();
    if (auto opened = made->open(table_size_, completions_.get()); !opened) return opened;
    rings_.push_back(std::move(made));
    return {};
} catch (const std::bad_alloc&) {
    return fail_errno(ENOMEM);
}

uring_socket_bank::ring& uring_socket_bank::ring_of(std::uint32_t slot) noexcept {
    return *rings_[slot / table_size_];
}

result<std::uint32_t> uring_socket_bank::add(unique_fd socket) {
    if (slots_.is_full()) return fail(errc::limit_reached);
    const std::uint32_t slot = slots_.next();
    if (slot / table_size_ == rings_.size())
        if (auto added = add_ring(); !added) return fail(added.error());
    const int fd = socket.get();
    const std::uint64_t data = event_data(generations_[slot], slot);
    auto watched = watch_.add(fd, EPOLLRDHUP | EPOLLET, data);
    // The same description is already registered under this number, by a slot or since another
    // process still has it. Its hang-up belongs to this slot from now on.
    if (!watched && watched.error() == errno_code(EEXIST))
        watched = watch_.change(fd, EPOLLRDHUP | EPOLLET, data);
    if (!watched) return fail(watched.error());
    if (int outcome = io_uring_register_files_update(&ring_of(slot).io, slot % table_size_, &fd, 1);
        outcome != 1) {
        watch_.remove(fd);
        return fail_errno(outcome < 0 ? -outcome : ENOMEM);
    }
    static_cast<void>(slots_.take());
    slots_[slot].flags = is_tcp(fd) ? is_open | is_over_tcp : is_open;
    return slot;
}

result<std::uint32_t> uring_socket_bank::add(stream) { return fail(errc::unsupported); }

void uring_socket_bank::write(std::uint32_t slot, const_bytes bytes) {
    bank_slot& to = slots_[slot];
    EDDY_ASSERT(to.has(is_open) && !to.has(is_closing | is_begun | is_sending));
    EDDY_ASSERT(!bytes.empty() && bytes.size() <= UINT32_MAX);
    to.data = bytes.data();
    to.size = static_cast<std::uint32_t>(bytes.size());
    to.set(is_begun);
    begin(slot);
}

void uring_socket_bank::close(std::uint32_t slot) {
    bank_slot& one = slots_[slot];
    EDDY_ASSERT(one.has(is_open) && !one.has(is_closing));
    one.clear(is_begun | has_hung_up);
    one.set(is_closing);
    one.size = 0;  // from now on it counts the bytes that are dropped
    begin(slot);
}

void uring_socket_bank::reset(std::uint32_t slot) {
    close(slot);
    bank_slot& one = slots_[slot];
    if (!one.has(is_over_tcp)) return;
    one.size = resets;
    one.set(is_dropped);
}

void uring_socket_bank::begin(std::uint32_t slot) noexcept {
    ring_of(slot).begun.push(slots_, slot);
    begin_work();
}

bool uring_socket_bank::has_work() const noexcept {
    return std::any_of(rings_.begin(), rings_.end(),
                       [](const auto& each) { return each->has_work(); });
}

void uring_socket_bank::run_batch() {
    // By index: a callback may add a socket, and so a ring.
    for (std::size_t i = 0; i < rings_.size(); ++i)
        if (rings_[i]->has_work()) run_batch(*rings_[i]);
}

void uring_socket_bank::run_batch(ring& on) {
    // Completions within this call are reaped here, and need not wake the loop.
    on.set_notifying(false);
    std::uint32_t left = on.begun.size();
    bool goes_on = true;
    while (goes_on) {
        for (; left > 0 && on.has_room(); --left) prepare(on, on.begun.pop(slots_));
        const unsigned ready = io_uring_sq_ready(&on.io);
        const int sent = io_uring_submit_and_get_events(&on.io);
        EDDY_ASSERT(sent >= 0 || sent == -EINTR || sent == -EAGAIN || sent == -EBUSY);
        reap(on);
        // EAGAIN: the kernel has no memory for requests. Requests that it did not take stay in the
        // ring.
        if (ready > 0 && sent <= 0 && sent != -EINTR) {
            retry_later();
            break;
        }
        goes_on = left > 0 || io_uring_sq_ready(&on.io) > 0;
    }
    on.set_notifying(true);
}

void uring_socket_bank::prepare(ring& on, std::uint32_t slot) noexcept {
    bank_slot& one = slots_[slot];
    const auto index = slot % table_size_;
    const auto entry = [&](std::uint64_t request) {
        io_uring_sqe* const made = io_uring_get_sqe(&on.io);
        EDDY_ASSERT(made);
        return std::pair(made, user_data(request, slot));
    };
    if (!one.has(is_closing)) {
        if (!one.has(is_begun)) return;
        const auto [send, data] = entry(request_send);
        io_uring_prep_send(send, static_cast<int>(index), one.data, one.size,
                           MSG_NOSIGNAL | MSG_WAITALL);
        send->flags |= IOSQE_FIXED_FILE;
        io_uring_sqe_set_data64(send, data);
        one.clear(is_begun);
        one.set(is_sending);
        return;
    }
    if (one.has(is_sending) && one.data) {
        const auto [cancel, data] = entry(request_cancel);
        io_uring_prep_cancel64(cancel, user_data(request_send, slot), 0);
        cancel->flags |= IOSQE_CQE_SKIP_SUCCESS;
        io_uring_sqe_set_data64(cancel, data);
        one.data = nullptr;  // once
    }
    one.set(is_ending);
    if ((shuts_down_ || one.size == resets) && !one.has(is_shut_down)) {
        const auto [end, data] = entry(request_shutdown);
        if (one.size == resets)
            io_uring_prep_connect(end, static_cast<int>(index), &no_peer, sizeof(no_peer));
        else
            io_uring_prep_shutdown(end, static_cast<int>(index), SHUT_WR);
        end->flags |= IOSQE_FIXED_FILE;
        io_uring_sqe_set_data64(end, data);
        return;
    }
    if (one.has(is_dropped)) {
        const auto [end, data] = entry(request_close);
        io_uring_prep_close_direct(end, index);
        io_uring_sqe_set_data64(end, data);
        return;
    }
    const auto [drop, data] = entry(request_drop);
    // TCP does not touch the memory.
    if (one.has(is_over_tcp))
        io_uring_prep_recv(drop, static_cast<int>(index), nullptr, max_dropped,
                           MSG_DONTWAIT | MSG_TRUNC);
    else
        io_uring_prep_recv(drop, static_cast<int>(index), &scratch_[0], scratch_size, MSG_DONTWAIT);
    drop->flags |= IOSQE_FIXED_FILE;
    io_uring_sqe_set_data64(drop, data);
}

void uring_socket_bank::reap(ring& on) noexcept {
    unsigned head = 0;
    unsigned count = 0;
    io_uring_cqe* entry = nullptr;
    io_uring_for_each_cqe(&on.io, head, entry) {
        ++count;
        const auto slot = static_cast<std::uint32_t>(entry->user_data);
        switch (entry->user_data >> 32) {
            case request_send: on_sent(slot, entry->res); break;
            case request_shutdown: on_shut_down(slot); break;
            case request_drop: on_dropped(slot, entry->res); break;
            case request_close: on_close_done(slot, entry->res); break;
            default: break;
        }
    }
    io_uring_cq_advance(&on.io, count);
}

void uring_socket_bank::on_sent(std::uint32_t slot, int result) noexcept {
    bank_slot& from = slots_[slot];
    from.clear(is_sending);
    if (from.has(is_closing)) return end_if_unused(slot);
    // EAGAIN: it was to wait, but could not. Linux 6.1 and later wait, also with O_NONBLOCK.
    if (result == -EAGAIN) retry_later();
    if (result == -EAGAIN || result == -EINTR || (result > 0 && std::cmp_less(result, from.size))) {
        // Short: an error came behind these bytes, and the rest meets it again.
        from.data += std::max(result, 0);
        from.size -= static_cast<std::uint32_t>(std::max(result, 0));
        from.set(is_begun);
        return begin(slot);
    }
    to().on_written(slot, result < 0 ? result : result == 0 ? -EPIPE : 0);
}

void uring_socket_bank::on_shut_down(std::uint32_t slot) noexcept {
    slots_[slot].clear(is_ending);
    slots_[slot].set(is_shut_down);
    begin(slot);
}

/// A step of drop_unread(), repeated until no bytes are left, at most up to max_dropped, since
/// the peer still sends.
void uring_socket_bank::on_dropped(std::uint32_t slot, int result) noexcept {
    bank_slot& one = slots_[slot];
    one.clear(is_ending);
    one.size += static_cast<std::uint32_t>(std::max(result, 0));
    if (result <= 0 || one.size >= max_dropped) one.set(is_dropped);
    begin(slot);
}

void uring_socket_bank::on_close_done(std::uint32_t slot, int result) noexcept {
    bank_slot& one = slots_[slot];
    one.clear(is_ending);
    if (result < 0) {
        // Only for want of memory, ENOMEM: older kernels note the removal somewhere.
        retry_later();
        return begin(slot);
    }
    one.clear(is_open);
    end_if_unused(slot);
}

void uring_socket_bank::end_if_unused(std::uint32_t slot) noexcept {
    if (slots_[slot].has(is_open | is_sending)) return;
    ++generations_[slot];
    slots_.give_back(slot);
    to().on_closed(slot);
}

void uring_socket_bank::on_events_ready() noexcept {
    epoll_event events[epoll_watch::batch_size];
    const int count = watch_.fetch(events);
    report([&] {
        for (const epoll_event& each : std::span(events, static_cast<std::size_t>(count))) {
            if (each.data.u64 == completion_event) continue;  // flush() reaps
            const auto slot = static_cast<std::uint32_t>(each.data.u64);
            bank_slot& one = slots_[slot];
            if (event_data(generations_[slot], slot) != each.data.u64) continue;
            if (!one.has(is_open) || one.has(is_closing | has_hung_up)) continue;
            one.set(has_hung_up);
            to().on_hangup(slot);
        }
    });
}

}  // namespace eddy
