// The io_uring io-backend: one ring a loop, set up for a single issuer with deferred task work, so
// the kernel completes requests only when the loop polls. Needs Linux 6.1; loops fall back to epoll
// elsewhere. See io_uring(7), io_uring_enter(2).
//
// Received bytes arrive by multishot receives in a ring of buffers that all streams share. A
// buffer belongs to the kernel, to a stream's queue, or to a lease, never to two of them.
#pragma once

#include <eddy/base/unique_fd.hpp>

#include "io/io_backend.hpp"
#include "io/posix/posix_datagram.hpp"
#include "io/posix/sockets.hpp"
#include "io/uring/end_watch.hpp"

#include <liburing.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace eddy {

/// Routes a completion to a member function of its owner.
template <class Owner, void (Owner::*Member)(int, unsigned)>
class member_completion final : public completion {
public:
    explicit member_completion(Owner& owner) noexcept : owner_(&owner) {}
    void on_completion(int result, unsigned flags) override { (owner_->*Member)(result, flags); }

private:
    Owner* owner_;
};

/// Completion that is a base of its owner, which has one for each kind of request and so keeps no
/// pointer for it: calls the owner's complete<kind>().
template <class Owner, auto Kind>
class base_completion : public completion {
public:
    void on_completion(int result, unsigned flags) final {
        static_cast<Owner&>(*this).template complete<Kind>(result, flags);
    }
};

/// Buffers for the kernel to receive into. It takes them in order; they come back in any order.
class receive_ring final : public lease_owner {
public:
    receive_ring() noexcept = default;
    ~receive_ring();
    receive_ring(const receive_ring&) = delete;
    receive_ring& operator=(const receive_ring&) = delete;

    /// Maps `count` (rounded up to a power of two) buffers and registers them as `group`, which no
    /// other ring of this io_uring has.
    result<> open(io_uring& ring, std::uint16_t group, std::uint32_t count, std::uint32_t size);
    bool is_open() const noexcept { return slots_ != nullptr; }

    static constexpr std::uint16_t none = UINT16_MAX;

    std::uint16_t group() const noexcept { return group_; }
    std::byte* data(std::uint16_t id) const noexcept {
        return buffers_ + std::size_t{id} * stride_;
    }
    std::uint32_t buffer_size() const noexcept { return buffer_size_; }
    /// The kernel has passed this buffer to us.
    void taken() noexcept {
        --published_;
        ++outstanding_;
        publish();
    }
    /// The kernel found no buffer, though not all are in use: so many sockets had something at
    /// once.
    void ran_out() noexcept {
        wanted_ = std::min(2 * wanted_, count_);
        publish();
    }
    /// A buffer that the kernel does not have, for its taker to fill; `none` without one. A lease
    /// gives it back.
    std::uint16_t take() noexcept {
        const std::uint16_t id = free_;
        if (id == none) return none;
        free_ = slots_[id].next;
        ++outstanding_;
        return id;
    }
    /// No buffer is left for the kernel.
    bool exhausted() const noexcept { return outstanding_ == count_; }
    std::uint32_t outstanding() const noexcept { return outstanding_; }
    void give_back(std::byte* data, std::uint32_t id) noexcept override;

    /// A received buffer in its stream's queue: its size, and the next one's id.
    struct slot {
        std::uint32_t size;
        std::uint16_t next;
    };
    slot& at(std::uint16_t id) noexcept { return slots_[id]; }

private:
    void publish() noexcept;

    io_uring_buf_ring* ring_ = nullptr;
    std::byte* buffers_ = nullptr;
    std::size_t ring_bytes_ = 0;
    std::uint32_t count_ = 0;
    std::uint32_t buffer_size_ = 0;
    std::size_t stride_ = 0;
    std::uint32_t outstanding_ = 0;
    // The kernel goes round all that it is given. It gets few, and in place of one that it took the
    // one that came back last: the processor's caches still hold that.
    static constexpr std::uint32_t first_wanted = 16;
    std::uint32_t wanted_ = 0;     // how many the kernel shall have
    std::uint32_t published_ = 0;  // how many it has
    std::uint16_t free_ = none;    // the other unused ones, linked by their slots
    std::uint16_t group_ = 0;
    std::unique_ptr<slot[]> slots_;
};

class uring_backend final : public io_backend {
public:
    explicit uring_backend(const loop_options& options) noexcept;
    ~uring_backend() override;
    result<> open(const loop_options& options);

    io_backend_kind kind() const noexcept override { return io_backend_kind::uring; }
    time_point now() const noexcept override;
    bool poll(time_point until) override;
    void wake() noexcept override;
    bool has_begun() const noexcept override { return io_uring_sq_ready(&ring_) > 0; }
    bool has_room_for_lock() const noexcept override;
    result<listener> listen(const endpoint& local, const listen_options& options) override;
    result<datagram> open_datagram(const endpoint& local, const endpoint& peer,
                                   const datagram_options& options) override;
    result<datagram> adopt_datagram(unique_fd socket) override;
    result<listener> adopt_listener(unique_fd socket) override;
    result<stream> adopt(unique_fd socket) override;
    result<stream> adopt_own(unique_fd pipe_end) override;
    result<std::unique_ptr<socket_bank>> open_socket_bank(const socket_bank_options& options,
                                                          bank_observer& to) override;
    bool start(connect_operation& op) override;
    void cancel(connect_operation& op) noexcept override;
    void start_poll(int fd, readiness wanted, completion& done) override;
    void cancel_poll(completion& done) noexcept override;
    bool has_file_requests() const noexcept override { return true; }
    /// With SQPOLL the kernel takes requests at any time, else when the loop enters it.
    bool has_submitting_thread() const noexcept { return !deferred_; }
    void start_file(const file_request& what, completion& done) override;
    void cancel_file(completion& done) noexcept override { cancel_request(done, nullptr); }

    // For the drivers.

    /// A free submission entry. Prepare it, then set its data to the completion to be called.
    io_uring_sqe& submission() noexcept;
    /// Requests that the kernel end the request of `target`; `done`, if not null, gets the result.
    /// Without `done`, the memory of `target` may hold another request by the time that the kernel
    /// acts. That one is safe: the kernel takes entries in their order and cancels inline, so it
    /// has not seen the newer request yet.
    void cancel_request(completion& target, completion* done) noexcept;
    /// ENOMEM when there is no memory for the driver; the socket is closed then.
    result<stream> wrap(unique_fd socket) noexcept;
    receive_ring& receives() noexcept { return receives_; }
    /// Buffers for reads while the ring is empty.
    buffer_pool& spares() noexcept { return spares_; }
    /// For streams that fill those of the ring; taken only while has_spare().
    buffer_pool& large_receives() noexcept { return large_receives_; }
    /// Buffers for messages; mapped when the first message socket opens.
    receive_ring& messages() noexcept { return messages_; }
    /// Reads a message while that ring is empty.
    message_reader& reader() noexcept { return reader_; }
    /// False once the kernel has said that it cannot receive messages by multishot.
    bool multishot_messages() const noexcept { return multishot_messages_; }
    void refuse_multishot_messages() noexcept { multishot_messages_ = false; }
    std::size_t zero_copy_threshold() const noexcept { return zero_copy_threshold_; }
    end_watch& ends() noexcept { return ends_; }
    void driver_opened() noexcept {
        ++drivers_.existing;
        ++drivers_.open;
    }
    void driver_closed() noexcept { --drivers_.open; }
    /// After its last completion.
    void driver_gone() noexcept { --drivers_.existing; }

private:
    int enter_kernel(time_point until);
    void on_wake(int result, unsigned flags);
    void arm_wake();
    bool reap() noexcept;
    /// A blocking socket's driver.
    result<datagram> make_datagram(unique_fd socket) noexcept;

    io_uring ring_{};
    bool open_ = false;
    bool deferred_ = false;
    receive_ring receives_;
    buffer_pool spares_;
    buffer_pool large_receives_;
    receive_ring messages_;
    buffer_pool message_spares_;
    message_reader reader_{message_spares_};
    std::uint32_t message_count_;
    bool multishot_messages_ = true;
    std::size_t zero_copy_threshold_;
    end_watch ends_;
    driver_counts drivers_;
    unique_fd wake_fd_;
    std::uint64_t wake_count_ = 0;
    member_completion<uring_backend, &uring_backend::on_wake> wake_done_{*this};
};

}  // namespace eddy
