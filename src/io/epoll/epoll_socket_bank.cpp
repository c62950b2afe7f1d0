// Slots of the epoll bank. Sockets are registered edge-triggered, at first for hang-ups alone, and
// for room once a write has to wait for it.
#include "io/epoll/epoll_socket_bank.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <span>
#include <utility>

namespace eddy {
namespace {

// Flags of a slot, beside bank_slot::is_queued.
constexpr std::uint32_t is_open = 1;
constexpr std::uint32_t is_closing = 2;
constexpr std::uint32_t is_writing = 4;
constexpr std::uint32_t needs_room = 8;     // its write waits for EPOLLOUT
constexpr std::uint32_t watches_room = 16;  // registered for EPOLLOUT
constexpr std::uint32_t has_hung_up = 32;   // reported

constexpr std::uint32_t hangup_events = EPOLLRDHUP | EPOLLHUP | EPOLLERR;

}  // namespace

result<std::unique_ptr<socket_bank>> epoll_socket_bank::open(io_backend& where,
                                                             driver_counts& drivers,
                                                             const socket_bank_options& options,
                                                             bank_observer& to) {
    auto made = std::make_unique<epoll_socket_bank>(to);
    made->shuts_down_ = options.shuts_down;
    if (auto mapped = made->slots_.open(options.capacity); !mapped) return fail(mapped.error());
    if (auto mapped = made->descriptors_.open(options.capacity); !mapped)
        return fail(mapped.error());
    if (auto opened = made->watch_.open(where, drivers, *made); !opened)
        return fail(opened.error());
    return made;
}

epoll_socket_bank::~epoll_socket_bank() {
    for (std::uint32_t slot = 0; slot < slots_.end(); ++slot)
        if (slots_[slot].has(is_open)) {
            watch_.remove(descriptors_[slot]);
            unique_fd(descriptors_[slot]).reset();
        }
}

result<std::uint32_t> epoll_socket_bank::add(unique_fd socket) {
    if (slots_.is_full()) return fail(errc::limit_reached);
    const std::uint32_t slot = slots_.next();
    if (auto added = watch_.add(socket.get(), EPOLLRDHUP | EPOLLET, slot); !added)
        return fail(added.error());
    static_cast<void>(slots_.take());
    slots_[slot].flags = is_open;
    descriptors_[slot] = socket.release();
    return slot;
}

result<std::uint32_t> epoll_socket_bank::add(stream) { return fail(errc::unsupported); }

void epoll_socket_bank::write(std::uint32_t slot, const_bytes bytes) {
    bank_slot& to = slots_[slot];
    EDDY_ASSERT(to.has(is_open) && !to.has(is_writing));
    EDDY_ASSERT(!bytes.empty() && bytes.size() <= UINT32_MAX);
    to.data = bytes.data();
    to.size = static_cast<std::uint32_t>(bytes.size());
    to.set(is_writing);
    begin(slot);
}

void epoll_socket_bank::end(std::uint32_t slot, bool resets) {
    bank_slot& one = slots_[slot];
    EDDY_ASSERT(one.has(is_open));
    unique_fd socket(descriptors_[slot]);
    watch_.remove(socket.get());
    if (resets && is_tcp(socket.get()))
        reset_connection(socket.get());
    else if (shuts_down_)
        shutdown(socket.get(), SHUT_WR);
    drop_unread(socket.get());
    socket.reset();
    one.clear(is_open | is_writing | needs_room);
    one.set(is_closing);
    begin(slot);
}

void epoll_socket_bank::begin(std::uint32_t slot) noexcept {
    begun_.push(slots_, slot);
    begin_work();
}

void epoll_socket_bank::run_batch() {
    for (std::uint32_t left = begun_.size(); left > 0; --left) {
        const std::uint32_t slot = begun_.pop(slots_);
        if (slots_[slot].has(is_closing)) {
            slots_.give_back(slot);
            to().on_closed(slot);
        } else {
            send(slot);
        }
    }
}

/// Sends what goes without waiting; at most most_bytes_a_turn, so that other sockets are served in
/// between.
void epoll_socket_bank::send(std::uint32_t slot) noexcept {
    bank_slot& from = slots_[slot];
    if (!from.has(is_writing)) return;
    for (std::size_t sent = 0; sent < most_bytes_a_turn;) {
        const ssize_t count = ::send(descriptors_[slot], from.data,
                                     std::min<std::size_t>(from.size, most_bytes_a_turn),
                                     MSG_DONTWAIT | MSG_NOSIGNAL);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0 && errno == EAGAIN) {
            from.set(needs_room);
            if (from.has(watches_room)) return;
            if (auto changed =
                    watch_.change(descriptors_[slot], EPOLLRDHUP | EPOLLOUT | EPOLLET, slot);
                !changed)
                return end_write(slot, -changed.error().value());
            from.set(watches_room);
            return;
        }
        if (count < 0) return end_write(slot, -errno);
        from.data += count;
        from.size -= static_cast<std::uint32_t>(count);
        sent += static_cast<std::size_t>(count);
        if (from.size == 0) return end_write(slot, 0);
    }
    begin(slot);
}

void epoll_socket_bank::end_write(std::uint32_t slot, int result) noexcept {
    slots_[slot].clear(is_writing | needs_room);
    to().on_written(slot, result);
}

void epoll_socket_bank::on_events_ready() noexcept {
    epoll_event events[epoll_watch::batch_size];
    const int count = watch_.fetch(events);
    // A slot that a callback closes is not given out again before the batch is done.
    report([&] {
        for (const epoll_event& each : std::span(events, static_cast<std::size_t>(count)))
            on_events(static_cast<std::uint32_t>(each.data.u64), each.events);
    });
}

void epoll_socket_bank::on_events(std::uint32_t slot, std::uint32_t events) noexcept {
    bank_slot& one = slots_[slot];
    if (!one.has(is_open)) return;
    const bool hung_up = (events & hangup_events) != 0;
    if (hung_up && !one.has(has_hung_up)) {
        one.set(has_hung_up);
        to().on_hangup(slot);
    }
    if ((hung_up || (events & EPOLLOUT) != 0) && one.has(needs_room)) {
        one.clear(needs_room);
        begin(slot);
    }
}

}  // namespace eddy
