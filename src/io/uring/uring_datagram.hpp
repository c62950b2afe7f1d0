// Message socket on io_uring: one multishot receive that stays armed, into a ring of buffers that
// all message sockets of the loop share; sends are system calls, since a request costs more.
//
// Unlike a stream's reader, a receiver resumes at the end of the turn, not from within its
// completion: by then all messages that came together are in the queue, and later receives find
// them without waiting. Where messages are read by system calls, on epoll and when the ring is
// empty, no further completion follows, and the receiver resumes at once.
#pragma once

#include <eddy/base/frame_pool.hpp>

#include "io/posix/posix_datagram.hpp"
#include "io/uring/uring_backend.hpp"

#include <cstddef>
#include <cstdint>

namespace eddy {

class uring_datagram final : public posix_datagram {
public:
    uring_datagram(uring_backend& io_backend, unique_fd socket) noexcept;
    static void* operator new(std::size_t size) { return frame_allocate(size); }
    static void operator delete(void* block, std::size_t size) noexcept { frame_free(block, size); }

    using posix_datagram::cancel;
    using posix_datagram::start;
    bool start(receive_from_operation& op) override;
    void cancel(receive_from_operation& op) noexcept override;
    result<> try_receive(datagram_message& into) noexcept override;
    void close() noexcept override;

    /// A socket without a receiver stops the kernel's receiving once this many messages wait for
    /// it. Later ones wait in the socket's own buffer, or are dropped there.
    static constexpr std::uint16_t most_queued = 64;

private:
    ~uring_datagram();

    void on_received(int result, unsigned flags);
    void on_readable(int result, unsigned flags);
    void on_writable(int result, unsigned flags);
    void on_cancelled(int result, unsigned flags);

    void wait_writable() noexcept override;
    void want_messages();
    void arm_receive();
    void stop_receive();
    bool take(datagram_message& into) noexcept;
    void finish_receive();
    void drop_queue() noexcept;
    void request_done() noexcept {
        EDDY_ASSERT(in_flight_ > 0);
        --in_flight_;
    }
    void free_if_done() noexcept;

    uring_backend& io_backend_;
    receive_from_operation* receiver_ = nullptr;
    msghdr sizes_{};  // how much of a buffer is for the address and the control messages
    member_completion<uring_datagram, &uring_datagram::on_received> received_{*this};
    member_completion<uring_datagram, &uring_datagram::on_readable> readable_{*this};
    member_completion<uring_datagram, &uring_datagram::on_writable> writable_{*this};
    member_completion<uring_datagram, &uring_datagram::on_cancelled> cancelled_{*this};

    std::uint16_t first_ = receive_ring::none;
    std::uint16_t last_ = receive_ring::none;
    std::uint16_t queued_ = 0;
    std::uint32_t in_flight_ = 0;  // requests that will still complete
    bool receiving_ = false;       // the multishot receive is armed
    bool stopping_ = false;        // and requested to end
    bool polling_readable_ = false;
    bool polling_writable_ = false;
    bool closing_ = false;
};

}  // namespace eddy
