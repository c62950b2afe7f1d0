// Connected socket on io_uring: one multishot receive that stays armed for the connection's life,
// and sends that are made inline, again and again whenever a full socket has room. Only zero-copy
// sends are requests.
#pragma once

#include <eddy/base/frame_pool.hpp>

#include "io/uring/uring_backend.hpp"

#include <cstddef>
#include <cstdint>

namespace eddy {

class uring_stream;

/// Requests of a stream that may be in the kernel at a time.
enum class stream_request : std::uint8_t { receive, watch, write_watch, send, cancel };

template <stream_request Kind>
using stream_completion = base_completion<uring_stream, Kind>;

/// There is one for each connection, so it is small: bases in place of pointers, bits for what is
/// rarely asked.
class uring_stream final : public stream_driver,
                           private stream_completion<stream_request::receive>,
                           private stream_completion<stream_request::watch>,
                           private stream_completion<stream_request::write_watch>,
                           private stream_completion<stream_request::send>,
                           private stream_completion<stream_request::cancel> {
public:
    uring_stream(uring_backend& io_backend, unique_fd socket) noexcept
        : io_backend_(io_backend), socket_(std::move(socket)) {
        io_backend_.driver_opened();
    }
    static void* operator new(std::size_t size) { return frame_allocate(size); }
    static void operator delete(void* block, std::size_t size) noexcept { frame_free(block, size); }

    bool start(read_operation& op) override;
    bool start(write_operation& op) override;
    result<std::size_t> try_write(const_bytes bytes) noexcept override;
    result<std::size_t> try_send_file(const_bytes head, int file, std::uint64_t offset,
                                      std::size_t size) noexcept override;
    void cancel(read_operation& op) noexcept override;
    void cancel(write_operation& op) noexcept override;
    result<> shutdown_write() noexcept override;
    bool may_have_input() const noexcept override {
        return queued_ != 0 || read_end_ != 0 || maybe_readable_ || !(receiving_ || watching_);
    }
    endpoint local() const noexcept override { return local_endpoint(socket_.get()); }
    endpoint peer() const noexcept override { return peer_endpoint(socket_.get()); }
    int native_handle() const noexcept override { return socket_.get(); }
    void close() noexcept override;
    void abort() noexcept override;
    bool end_receiving() noexcept override;

    // For end_watch.

    /// Index among the watched streams, end_watch::nowhere for none.
    std::uint32_t watched_at() const noexcept { return watched_at_; }
    void set_watched_at(std::uint32_t index) noexcept { watched_at_ = index; }
    /// Looks whether the kernel sleeps over an end, if that is still possible. Then the receive
    /// is stopped, and its completion says more.
    void look_for_end() noexcept;

    /// A stream without a reader stops receiving once this many buffers wait for it, so that one
    /// slow consumer does not hold the buffers of all.
    static constexpr std::uint16_t most_queued_buffers = 8;
    /// Receives by readiness before other streams are served: a turn of io_uring is short, so a
    /// peer that floods must not take more of each.
    static constexpr std::uint16_t most_receives_a_turn = 4;

private:
    template <class, auto>
    friend class base_completion;

    ~uring_stream();

    template <stream_request Kind>
    void complete(int result, unsigned flags) {
        switch (Kind) {
            case stream_request::receive: return on_received(result, flags);
            case stream_request::watch: return on_readable(result, flags);
            case stream_request::write_watch: return on_writable(result, flags);
            case stream_request::send: return on_sent(result, flags);
            case stream_request::cancel: return on_cancelled(result, flags);
        }
    }
    template <stream_request Kind>
    completion* done() noexcept {
        return static_cast<stream_completion<Kind>*>(this);
    }

    void on_received(int result, unsigned flags);
    void on_readable(int result, unsigned flags);
    void on_writable(int result, unsigned flags);
    void on_sent(int result, unsigned flags);
    void on_cancelled(int result, unsigned flags);

    void want_bytes();
    void arm_receive();
    void check_for_end() noexcept;
    void stop_receive() noexcept;
    void watch();
    void stop(completion& request) noexcept;
    bool receive(read_operation& op);
    ssize_t receive_some(std::byte* into, std::size_t room) noexcept;
    void go_by_readiness() noexcept;
    bool set_reports_rest(bool on) noexcept;
    void weigh(std::size_t size);
    bool send(write_operation& op);
    void wait_writable();
    void queue_zero_copy(const_bytes piece);
    void pause_writing();
    void pause_reading();
    void queue_pause(completion& done);
    bool take_send_result(int result);
    void end_write();
    void finish_write();
    void give_up_unsent() noexcept;
    void resolve_end() noexcept;
    void note_failure(int error) noexcept;
    void note_sent() noexcept {
        if (sending_finds_ends_) end_may_hide_ = false;
    }
    void enqueue(std::uint16_t id, std::uint32_t size) noexcept;
    void deliver(read_operation& op) noexcept;
    void drop_queue() noexcept;
    void end_reading(int error) noexcept { read_end_ = failure_ != 0 ? failure_ : error; }
    std::error_code read_error() const noexcept {
        return read_end_ == end_of_stream ? make_error_code(errc::end_of_stream)
                                          : errno_code(read_end_);
    }
    void request_done() noexcept {
        EDDY_ASSERT(in_flight_ > 0);
        --in_flight_;
    }
    void free_if_done() noexcept;

    uring_backend& io_backend_;
    read_operation* reader_ = nullptr;
    write_operation* writer_ = nullptr;
    unique_fd socket_;
    std::uint32_t front_offset_ = 0;  // how much of the first queued buffer is consumed
    std::uint32_t in_flight_ = 0;     // requests that will still complete
    std::uint32_t notices_ = 0;       // of them, zero-copy sends whose bytes are still in use
    int read_end_ = 0;                // an errno, or end_of_stream below; delivered after the queue
    std::uint32_t watched_at_ = end_watch::nowhere;
    int failure_ = 0;  // the socket's error, if a write received it
    std::uint16_t first_ = receive_ring::none;
    std::uint16_t last_ = receive_ring::none;
    std::uint16_t queued_ = 0;
    std::uint16_t bulk_score_ = 0;
    std::uint16_t receives_in_a_row_ = 0;  // by readiness, in this turn
    fill_score fills_;
    bool receiving_ = false;       // the multishot receive is armed
    bool end_may_hide_ = false;    // and perhaps asleep over the end: see look_for_end()
    bool by_readiness_ = false;    // bytes are received when the kernel says that some are there
    bool maybe_readable_ = false;  // it said so, and not all is received yet
    bool end_unresolved_ = false;  // nothing came, and the result of a send will say why
    bool knows_protocol_ = false;
    bool closing_ = false;
    bool stopping_ : 1 = false;            // the multishot receive is requested to end
    bool sending_finds_ends_ : 1 = false;  // a send cannot succeed behind such an end
    bool watching_ : 1 = false;            // a notification of readiness is requested
    bool pausing_ : 1 = false;             // the next receive waits for the next turn
    bool reports_rest_ : 1 = false;        // each receive says whether more is there
    bool hung_up_ : 1 = false;             // behind the bytes is an end, or an error
    bool polling_writable_ : 1 = false;
    bool sending_ : 1 = false;  // a zero-copy send or a pause is in the kernel, its result unknown
    bool write_over_ : 1 = false;  // the writer waits only for its bytes
    bool write_cancelled_ : 1 = false;
    bool receiving_ended_ : 1 = false;  // end_receiving()
    bool zero_copy_refused_ : 1 = false;

    static constexpr int end_of_stream = -1;

    // A multishot receive saves a system call a message, but the kernel fills a buffer for each of
    // up to 20 ready sockets before any of them is answered. When messages are large, the caches
    // have lost the first by then, and it costs less to receive and answer one after the other.
    // Each receive of half a buffer or more adds a step to the score, each smaller one takes 1.
    static constexpr std::uint16_t bulk_step = 4;
    static constexpr std::uint16_t enough_bulk_score = 2 * bulk_step;
    static constexpr std::uint16_t most_bulk_score = 4 * bulk_step;
};

}  // namespace eddy
