// Socket bank on epoll: plain descriptors, written with send(2).
#pragma once

#include "io/epoll/epoll_watch.hpp"
#include "io/posix/sockets.hpp"
#include "io/socket_bank/socket_bank.hpp"
#include "io/socket_bank/socket_bank_base.hpp"

#include <cstdint>
#include <memory>

namespace eddy {

class epoll_socket_bank final : public batching_bank, private epoll_watch::observer {
public:
    static result<std::unique_ptr<socket_bank>> open(io_backend& where, driver_counts& drivers,
                                                     const socket_bank_options& options,
                                                     bank_observer& to);
    explicit epoll_socket_bank(bank_observer& to) noexcept : batching_bank(to) {}
    ~epoll_socket_bank() override;

    io_backend_kind kind() const noexcept override { return io_backend_kind::epoll; }
    result<std::uint32_t> add(unique_fd socket) override;
    result<std::uint32_t> add(stream connection) override;
    void write(std::uint32_t slot, const_bytes bytes) override;
    void close(std::uint32_t slot) override { end(slot, false); }
    void reset(std::uint32_t slot) override { end(slot, true); }
    std::uint32_t size() const noexcept override { return slots_.size(); }

private:
    bool has_work() const noexcept override { return begun_.size() > 0; }
    void run_batch() override;
    void on_events_ready() noexcept override;
    void on_events(std::uint32_t slot, std::uint32_t events) noexcept;
    void end(std::uint32_t slot, bool resets);
    void begin(std::uint32_t slot) noexcept;
    void send(std::uint32_t slot) noexcept;
    void end_write(std::uint32_t slot, int result) noexcept;

    slot_table slots_;
    lazy_array<int> descriptors_;
    slot_queue begun_;
    bool shuts_down_ = false;
    epoll_watch watch_;
};

}  // namespace eddy
