// Driver of a TLS stream: an engine, and its operations on the stream below.
#pragma once

#include <eddy/base/frame_pool.hpp>
#include <eddy/io/loop.hpp>

#include "io/tasks/callback.hpp"
#include "tls/engine.hpp"
#include "tls/handshakes.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <system_error>

namespace eddy::tls {

class tls_stream;

/// Waits until the handshake is complete.
class handshake_operation final : public operation {
public:
    explicit handshake_operation(tls_stream& of) noexcept : stream_(&of) {}
    void set_error(std::error_code error) noexcept override { error_ = error; }
    result<> take_result() const noexcept {
        if (error_) return fail(error_);
        return {};
    }

private:
    bool start() override;
    void on_cancel() noexcept override;

    tls_stream* stream_;
    std::error_code error_;
};

/// Frees itself when its handle is closed, or after the last operation below has ended. During the
/// handshake it is in the list of its listener, if it has one.
class tls_stream final : public stream_driver, private timer, public handshakes::member {
public:
    tls_stream(stream below, context as, std::string server_name);
    static void* operator new(std::size_t size) { return frame_allocate(size); }
    static void operator delete(void* block, std::size_t size) noexcept { frame_free(block, size); }

    bool usable() const noexcept { return engine_.usable(); }
    /// Starts the handshake, which then runs by itself. `counted` may be null.
    void begin(duration timeout, handshakes* counted);
    /// The time when the handshake began.
    time_point begun() const noexcept { return begun_; }
    /// Ends the handshake with errc::timed_out.
    void give_up() noexcept { fire(); }
    /// The listener is gone, and its list with it.
    void forget_list() noexcept { counted_ = nullptr; }
    const engine* finished_engine() const noexcept { return secure_ ? &engine_ : nullptr; }
    /// After a handshake that this side has refused: the stream below, whose peer is still to read
    /// the alert; else null.
    stream* refused_below() noexcept;

    bool start(handshake_operation& op);
    bool start(read_operation& op) override;
    bool start(write_operation& op) override;
    result<std::size_t> try_write(const_bytes bytes) noexcept override;
    void cancel(handshake_operation& op) noexcept;
    void cancel(read_operation& op) noexcept override;
    void cancel(write_operation& op) noexcept override;
    result<> shutdown_write() noexcept override;
    endpoint local() const noexcept override { return below_.local(); }
    endpoint peer() const noexcept override { return below_.peer(); }
    /// None: writing to the socket itself would break the protocol.
    int native_handle() const noexcept override { return -1; }
    int option_handle() const noexcept override { return below_.driver().option_handle(); }
    void close() noexcept override { end(false); }
    void abort() noexcept override { end(true); }

    /// Most bytes that one write encrypts in a turn of the loop: the cipher costs the other
    /// connections their time even when the peer reads as fast.
    static constexpr std::size_t most_bytes_a_turn = 256 * 1024;

    /// Ciphertext that may wait for the stream below before nothing more is received: a peer that
    /// requests answers (key updates) and does not read them fills no more memory than that, and
    /// what one read brings.
    static constexpr std::size_t max_unsent = 64 * 1024;

private:
    ~tls_stream();

    void on_input();
    void on_output();
    void fire() noexcept override;

    void advance_handshake();
    void end_handshake(std::error_code error) noexcept;
    void leave_list() noexcept;
    result<> skip_owed(std::byte first) noexcept;
    bool get_input();
    void take_input();
    bool flush();
    void take_flushed();
    void pause();
    void take_tickets();
    void end_reading() noexcept;
    bool fill(read_operation& op);
    bool receive(read_operation& op);
    bool drain(write_operation& op);
    void encrypt_next(write_operation& op, std::size_t& budget);
    void encrypt(const_bytes plain);
    void send_end() noexcept;
    void end(bool resets) noexcept;
    void complete_waiters(bool from_loop);

    stream below_;
    engine engine_;
    callback input_call_;
    callback output_call_;
    std::optional<read_lease_operation> input_op_;
    std::optional<write_operation> output_op_;
    std::optional<yield_operation> pause_op_;
    byte_buffer sending_;  // what output_op_ writes

    handshake_operation* shaker_ = nullptr;
    read_operation* reader_ = nullptr;
    write_operation* writer_ = nullptr;
    std::error_code handshake_end_;  // its failure
    std::error_code input_end_;      // of the stream below
    std::error_code read_end_;       // result of every later read
    std::error_code write_end_;      // result of every later write
    bool shaking_ = true;
    bool secure_ = false;      // the handshake succeeded
    bool receiving_ = false;   // input_op_ is under way
    bool flushing_ = false;    // output_op_ or pause_op_ is under way
    bool end_wanted_ = false;  // shutdown_write() was called
    bool end_sent_ = false;
    bool below_shut_ = false;
    bool cut_ = false;  // a write was given up: the stream has no orderly end
    bool closing_ = false;
    std::optional<std::byte> owed_;  // a byte that try_write() has encrypted, but not counted
    time_point begun_{};
    handshakes* counted_ = nullptr;
};

}  // namespace eddy::tls
