// An accepting socket on epoll: one accept4(2) an operation.
#pragma once

#include "io/epoll/epoll_backend.hpp"

#include <cstdint>
#include <utility>

namespace eddy {

class epoll_listener final : public listener_driver, public epoll_driver {
public:
    epoll_listener(epoll_backend& io_backend, opened_listener opened) noexcept
        : io_backend_(io_backend),
          socket_(std::move(opened.socket)),
          file_(opened.file),
          local_(opened.local),
          is_shared_(opened.is_adopted) {}
    /// Registers the socket. After a failure the object may be deleted directly.
    result<> open();

    bool start(accept_operation& op) override;
    void cancel(accept_operation& op) noexcept override;
    endpoint local() const noexcept override { return local_; }
    int native_handle() const noexcept override { return socket_.get(); }
    void close() noexcept override;
    void pause() noexcept override;
    void resume() noexcept override { paused_ = false; }
    void set_shared(bool is_shared) noexcept override;

    void on_events(std::uint32_t events) override;

private:
    bool accept(accept_operation& op);
    void end_acceptor(std::error_code why) noexcept;

    epoll_backend& io_backend_;
    unique_fd socket_;  // none after close()
    socket_file file_;
    endpoint local_;
    bool is_shared_;
    accept_operation* acceptor_ = nullptr;
    bool readable_ = false;
    bool paused_ = false;
};

}  // namespace eddy
