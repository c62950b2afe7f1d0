// Listening socket on io_uring: one multishot accept, or one accept at a time where few descriptors
// are left.
#pragma once

#include "io/uring/uring_backend.hpp"

#include <cstddef>
#include <vector>

namespace eddy {

class uring_listener final : public listener_driver {
public:
    uring_listener(uring_backend& io_backend, opened_listener opened) noexcept
        : io_backend_(io_backend),
          socket_(std::move(opened.socket)),
          file_(opened.file),
          local_(opened.local),
          is_adopted_(opened.is_adopted),
          latest_(socket_.get()) {
        io_backend_.driver_opened();
    }

    bool start(accept_operation& op) override;
    void cancel(accept_operation& op) noexcept override;
    endpoint local() const noexcept override { return local_; }
    int native_handle() const noexcept override { return socket_.get(); }
    void close() noexcept override;
    void pause() noexcept override;
    void resume() noexcept override;
    void set_shared(bool is_shared) noexcept override;

    /// Most connections accepted ahead of the program; with more, accepting stops and the kernel's
    /// backlog fills instead. Connections accepted before that takes effect wait here, too: at most
    /// as many as the backlog held.
    static constexpr std::size_t most_waiting = 128;
    /// With fewer numbers than this before the reserve of descriptors, the kernel accepts one
    /// connection a request: a multishot request would fill the table before the loop could react.
    static constexpr int multishot_headroom = 512;

private:
    ~uring_listener() { io_backend_.driver_gone(); }
    void on_accepted(int result, unsigned flags);
    void on_cancelled(int result, unsigned flags);
    void arm();
    void stop_accepting() noexcept;
    bool is_table_filling() const noexcept;
    void give(accept_operation& op, unique_fd socket) noexcept;
    void queue(unique_fd socket) noexcept;
    unique_fd next_waiting() noexcept;
    void end_paused() noexcept;
    void free_if_done() noexcept;

    uring_backend& io_backend_;
    unique_fd socket_;
    socket_file file_;
    endpoint local_;
    bool is_adopted_;  // or shared: set_shared()
    accept_operation* waiter_ = nullptr;
    std::vector<unique_fd> waiting_;  // from first_waiting_ on; keeps its memory
    std::size_t first_waiting_ = 0;
    member_completion<uring_listener, &uring_listener::on_accepted> accepted_{*this};
    member_completion<uring_listener, &uring_listener::on_cancelled> cancelled_{*this};
    int latest_;  // the descriptor that was accepted last
    int in_flight_ = 0;
    int error_ = 0;  // reported once
    bool accepting_ = false;
    bool stopping_ = false;
    bool paused_ = false;
    bool closing_ = false;
};

}  // namespace eddy
