// A message socket on epoll: registered once, edge-triggered; up to 16 messages are read at once.
#pragma once

#include <eddy/base/frame_pool.hpp>

#include "io/epoll/epoll_backend.hpp"
#include "io/posix/posix_datagram.hpp"

#include <cstddef>

namespace eddy {

class epoll_datagram final : public posix_datagram, public epoll_driver {
public:
    epoll_datagram(epoll_backend& io_backend, unique_fd socket) noexcept
        : posix_datagram(std::move(socket)), io_backend_(io_backend) {}
    static void* operator new(std::size_t size) { return frame_allocate(size); }
    static void operator delete(void* block, std::size_t size) noexcept { frame_free(block, size); }
    /// Registers the socket. After a failure the object may be deleted directly.
    result<> open();

    using posix_datagram::cancel;
    using posix_datagram::start;
    bool start(receive_from_operation& op) override;
    void cancel(receive_from_operation& op) noexcept override;
    result<> try_receive(datagram_message& into) noexcept override;
    void close() noexcept override;

    void on_events(std::uint32_t events) override;

private:
    int receive(datagram_message& into) noexcept;
    void wait_writable() noexcept override;

    epoll_backend& io_backend_;
    receive_from_operation* receiver_ = nullptr;
    message_queue queue_;
    bool readable_ = false;  // a receive may find something
    bool watching_room_ = false;
};

}  // namespace eddy
