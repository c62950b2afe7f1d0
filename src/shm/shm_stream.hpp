// Driver of a shared-memory stream in a loop: the channel, and a Unix stream beside it, whose bytes
// are wake-ups and whose end is the peer's.
#pragma once

#include <eddy/base/frame_pool.hpp>
#include <eddy/io/loop.hpp>

#include "io/tasks/callback.hpp"
#include "shm/channel.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <system_error>

namespace eddy::shm {

/// It frees itself when its handle is closed, or after the last operation below has ended. One
/// loop's thread.
class shm_stream final : public stream_driver {
public:
    /// Most bytes that one write copies in a turn of the loop, however fast the peer reads.
    static constexpr std::size_t most_bytes_a_turn = 1024 * 1024;
    /// Bytes of a lease at most.
    static constexpr std::size_t lease_size = 32 * 1024;

    shm_stream(stream bell, std::unique_ptr<channel> shared);
    static void* operator new(std::size_t size) { return frame_allocate(size); }
    static void operator delete(void* block, std::size_t size) noexcept { frame_free(block, size); }
    /// Watches the peer from now on.
    void begin() { watch(); }

    bool start(read_operation& op) override;
    bool start(write_operation& op) override;
    result<std::size_t> try_write(const_bytes bytes) noexcept override;
    void cancel(read_operation& op) noexcept override;
    void cancel(write_operation& op) noexcept override;
    result<> shutdown_write() noexcept override;
    endpoint local() const noexcept override { return bell_.local(); }
    endpoint peer() const noexcept override { return bell_.peer(); }
    /// None: bytes of the socket are wake-ups.
    int native_handle() const noexcept override { return -1; }
    int option_handle() const noexcept override { return bell_.driver().option_handle(); }
    void close() noexcept override;
    void abort() noexcept override;

    result<const_bytes> peek() noexcept;
    void consume(std::size_t size) noexcept;

private:
    ~shm_stream() = default;

    void watch();
    bool take_wakeups();
    void on_bell();
    void on_pause();
    void pause();
    void wake_reader() noexcept;
    void wake_writer() noexcept;
    bool receive(read_operation& op);
    bool find_end(read_operation& op) noexcept;
    bool send(write_operation& op);
    bool wait_for_bytes(read_operation& op);
    bool wait_for_room(write_operation& op);
    void complete_waiters();
    std::error_code write_error() const noexcept;

    stream bell_;
    std::unique_ptr<channel> shared_;
    callback bell_call_;
    callback pause_call_;
    std::optional<read_lease_operation> bell_op_;
    std::optional<yield_operation> pause_op_;
    read_operation* reader_ = nullptr;
    write_operation* writer_ = nullptr;
    std::error_code bell_end_;  // the peer is gone
    bool is_watching_ = false;  // bell_op_ is under way
    bool is_pausing_ = false;   // pause_op_ is
    bool is_closing_ = false;
    bool is_cut_ = false;  // a write was given up: the stream has no orderly end
};

}  // namespace eddy::shm
