// One end of a simulated connection, or of a simulated pipe.
#pragma once

#include <eddy/base/byte_buffer.hpp>

#include "io/sim/sim_backend.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace eddy {

/// Each end keeps the bytes that travel towards it, so that either end may go first. Bytes on
/// their way and bytes not yet read count against the same socket buffer.
class sim_stream final : public stream_driver {
public:
    /// Where its bytes go: a connection's both ways, a pipe's one.
    enum class way : std::uint8_t { both, from_peer, to_peer };

    /// `local` and `peer` as this end sees them.
    sim_stream(sim_backend& world, const endpoint& local, const endpoint& peer);
    /// The end of a pipe.
    sim_stream(sim_backend& world, way bytes_go);

    /// Makes the two ends of a connection.
    static void join(sim_stream& a, sim_stream& b) noexcept;

    bool start(read_operation& op) override;
    bool start(write_operation& op) override;
    result<std::size_t> try_write(const_bytes bytes) noexcept override;
    void cancel(read_operation& op) noexcept override;
    void cancel(write_operation& op) noexcept override;
    result<> shutdown_write() noexcept override;
    bool may_have_input() const noexcept override {
        return !arrived_.empty() || read_ended_ || broken_;
    }
    endpoint local() const noexcept override { return local_; }
    endpoint peer() const noexcept override { return peer_address_; }
    int native_handle() const noexcept override { return -1; }
    void close() noexcept override;

    void abort() noexcept override;
    /// The first half of it: close() follows.
    void reset_peer() noexcept;

    std::uint64_t id() const noexcept { return id_; }

private:
    enum class event { data, end, reset };
    struct segment {
        event kind;
        std::vector<std::byte> bytes;
    };

    ~sim_stream();

    bool is_pipe() const noexcept { return way_ != way::both; }
    void send(segment sent);
    void arrive();
    bool try_complete(read_operation& op, bool after_spell);
    void retry_read();
    void room_appeared();
    std::error_code read_error() const noexcept;
    std::error_code write_error() noexcept;
    std::size_t push(const_bytes bytes);
    bool push(write_operation& op);
    std::size_t room() const noexcept;
    void meet_fault();

    sim_backend& world_;
    std::uint64_t id_;
    std::uint64_t peer_ = 0;
    way way_ = way::both;
    endpoint local_;
    endpoint peer_address_;

    std::deque<segment> travelling_;
    std::size_t travelling_bytes_ = 0;
    time_point last_arrival_{};
    byte_buffer arrived_;
    read_operation* reader_ = nullptr;
    write_operation* writer_ = nullptr;
    bool read_ended_ = false;
    bool write_ended_ = false;
    bool broken_ = false;
    bool reset_reported_ = false;
    bool reset_answered_ = false;
};

}  // namespace eddy
