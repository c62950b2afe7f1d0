// Socket bank of the simulator: streams, with a coroutine each that reads to their end, and one for
// a write that waits.
#pragma once

#include "io/socket_bank/socket_bank.hpp"
#include "io/socket_bank/socket_bank_base.hpp"

#include <cstdint>
#include <memory>
#include <system_error>
#include <vector>

namespace eddy {

class sim_socket_bank final : public batching_bank {
public:
    /// Errors are those of executor::dispatch(), and mmap(2)'s.
    static result<std::unique_ptr<socket_bank>> open(const socket_bank_options& options,
                                                     bank_observer& to);
    explicit sim_socket_bank(bank_observer& to);
    ~sim_socket_bank() override;

    io_backend_kind kind() const noexcept override { return io_backend_kind::sim; }
    result<std::uint32_t> add(unique_fd socket) override;
    result<std::uint32_t> add(stream connection) override;
    void write(std::uint32_t slot, const_bytes bytes) override;
    void close(std::uint32_t slot) override;
    void reset(std::uint32_t slot) override;
    std::uint32_t size() const noexcept override { return slots_.size(); }

private:
    struct connection;
    struct coroutines;

    bool has_work() const noexcept override { return begun_.size() > 0; }
    void run_batch() override;
    void begin(std::uint32_t slot) noexcept;
    void send(std::uint32_t slot);
    void on_read_end(std::uint32_t slot, std::error_code error) noexcept;
    void on_write_end(std::uint32_t slot, std::error_code error) noexcept;
    static task<void> read_to_end(std::shared_ptr<connection> of);
    static task<void> write_rest(std::shared_ptr<connection> of);

    slot_table slots_;
    slot_queue begun_;
    std::vector<std::shared_ptr<connection>> connections_;  // by slot
    std::shared_ptr<coroutines> coroutines_;
};

}  // namespace eddy
