// Socket bank on io_uring: direct descriptors, which are no open files of the process, in as many
// rings as they need. See io_uring_register_files_sparse(3).
//
// These rings are the bank's own and send only; their completions come to the loop by one
// eventfd(2). Hang-ups come by epoll: it keeps a registration while the open file description
// exists, also after the plain descriptor was closed. A poll of the ring for each socket would do
// the same, but before Linux 6.13 the files that a ring closes stay open as long as any older
// request of that ring waits.
#pragma once

#include "io/epoll/epoll_watch.hpp"
#include "io/socket_bank/socket_bank.hpp"
#include "io/socket_bank/socket_bank_base.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace eddy {

class uring_socket_bank final : public batching_bank, private epoll_watch::observer {
public:
    /// Makes the first ring, too, and fails with its errors where the kernel refuses it.
    static result<std::unique_ptr<socket_bank>> open(io_backend& where, driver_counts& drivers,
                                                     const socket_bank_options& options,
                                                     bank_observer& to);
    explicit uring_socket_bank(bank_observer& to) noexcept;
    ~uring_socket_bank() override;

    io_backend_kind kind() const noexcept override { return io_backend_kind::uring; }
    result<std::uint32_t> add(unique_fd socket) override;
    result<std::uint32_t> add(stream connection) override;
    void write(std::uint32_t slot, const_bytes bytes) override;
    void close(std::uint32_t slot) override;
    void reset(std::uint32_t slot) override;
    std::uint32_t size() const noexcept override { return slots_.size(); }

private:
    class ring;

    bool has_work() const noexcept override;
    void run_batch() override;
    void run_batch(ring& on);
    void on_events_ready() noexcept override;
    result<> add_ring();
    ring& ring_of(std::uint32_t slot) noexcept;
    void begin(std::uint32_t slot) noexcept;
    void prepare(ring& on, std::uint32_t slot) noexcept;
    void reap(ring& on) noexcept;
    void on_sent(std::uint32_t slot, int result) noexcept;
    void on_shut_down(std::uint32_t slot) noexcept;
    void on_dropped(std::uint32_t slot, int result) noexcept;
    void on_close_done(std::uint32_t slot, int result) noexcept;
    void end_if_unused(std::uint32_t slot) noexcept;

    slot_table slots_;
    /// Number of times that a slot was freed. A registration in the epoll instance stays while
    /// another process shares the description, and its events are not events of the slot's next
    /// socket.
    lazy_array<std::uint16_t> generations_;
    std::uint32_t table_size_ = 0;  // slots of a ring
    bool shuts_down_ = false;       // before each close
    std::vector<std::unique_ptr<ring>> rings_;
    unique_fd completions_;  // eventfd of all rings
    lazy_array<std::byte> scratch_;
    epoll_watch watch_;
};

}  // namespace eddy
