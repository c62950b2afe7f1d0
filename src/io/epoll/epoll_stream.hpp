// A connected socket on epoll.
#pragma once

#include <eddy/base/frame_pool.hpp>

#include "io/epoll/epoll_backend.hpp"

#include <cstddef>
#include <cstdint>
#include <system_error>
#include <utility>

namespace eddy {

class epoll_stream final : public stream_driver, public epoll_driver {
public:
    epoll_stream(epoll_backend& io_backend, unique_fd socket) noexcept
        : io_backend_(io_backend), socket_(std::move(socket)) {}
    static void* operator new(std::size_t size) { return frame_allocate(size); }
    static void operator delete(void* block, std::size_t size) noexcept { frame_free(block, size); }
    /// Registers the socket. After a failure the object may be deleted directly.
    result<> open();

    bool start(read_operation& op) override;
    bool start(write_operation& op) override;
    result<std::size_t> try_write(const_bytes bytes) noexcept override;
    result<std::size_t> try_send_file(const_bytes head, int file, std::uint64_t offset,
                                      std::size_t size) noexcept override;
    void cancel(read_operation& op) noexcept override;
    void cancel(write_operation& op) noexcept override;
    result<> shutdown_write() noexcept override;
    bool may_have_input() const noexcept override { return readable_ || read_end_; }
    endpoint local() const noexcept override { return local_endpoint(socket_.get()); }
    endpoint peer() const noexcept override { return peer_endpoint(socket_.get()); }
    int native_handle() const noexcept override { return socket_.get(); }
    void close() noexcept override;
    void abort() noexcept override;
    bool end_receiving() noexcept override;

    void on_events(std::uint32_t events) override;

private:
    bool receive(read_operation& op);
    bool send(write_operation& op);
    void end_reader(std::error_code error) noexcept;
    void end_writer(std::error_code error) noexcept;

    epoll_backend& io_backend_;
    unique_fd socket_;  // none after close()
    read_operation* reader_ = nullptr;
    write_operation* writer_ = nullptr;
    std::error_code read_end_;  // what every further read gets
    std::error_code failure_;   // the socket's error, if a write received it
    fill_score fills_;
    bool receiving_ended_ = false;  // end_receiving()
    bool had_much_ = false;         // in this turn: a large buffer full
    bool readable_ = false;         // a receive may find something
    bool writable_ = true;
    // A receive that fills less than its buffer has emptied the socket, and what comes later is a
    // new event. That does not hold once the peer has finished or urgent data came, nor for Unix
    // sockets, whose reads stop where descriptors were passed.
    bool short_read_drains_ = true;
};

}  // namespace eddy
