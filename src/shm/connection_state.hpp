// State of a connection for threads.
#pragma once

#include <eddy/shm/connection.hpp>

#include "shm/channel.hpp"
#include "shm/hangup_watch.hpp"
#include "shm/hello.hpp"
#include "shm/origin.hpp"
#include "shm/spinning.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace eddy::shm {

/// Flushes that the peer has not read, by the position at which each ends. The writer's thread.
class packet_queue {
public:
    explicit packet_queue(std::size_t limit) : ends_(limit) {}

    /// True if there is room for one more, now that the peer has read up to `tail`.
    bool has_room(std::uint64_t tail, std::uint64_t head) noexcept {
        if (ends_.empty()) return true;
        // Unread positions are at most a ring behind `head`, so the difference orders them.
        while (size_ > 0 && head - ends_[first_] >= head - tail) {
            first_ = (first_ + 1) % ends_.size();
            --size_;
        }
        return size_ < ends_.size();
    }
    void add(std::uint64_t end) noexcept {
        if (ends_.empty()) return;
        EDDY_ASSERT(size_ < ends_.size());
        ends_[(first_ + size_) % ends_.size()] = end;
        ++size_;
    }

private:
    std::vector<std::uint64_t> ends_;
    std::size_t first_ = 0;
    std::size_t size_ = 0;
};

struct connection_state {
    connection_state(unique_fd socket, const connection_options& wanted)
        : life(std::make_shared<liveness>(std::move(socket))),
          packets(wanted.max_packets),
          reading(wanted.wait),
          writing(wanted.wait) {}
    ~connection_state();

    std::shared_ptr<liveness> life;
    origin made_in;
    std::unique_ptr<channel> shared;  // null: over the socket
    packet_queue packets;
    alignas(128) spin_history reading;
    alignas(128) spin_history writing;
    std::size_t unflushed = 0;
    /// This side has waited for bytes since its last write. Both threads.
    std::atomic<bool> alternates{false};
};

/// Takes over a connected socket whose exchange is complete.
result<std::unique_ptr<connection_state>> make_state(unique_fd socket, exchange& over,
                                                     const connection_options& wanted);
offer offer_of(const connection_options& wanted) noexcept;
/// EINVAL for invalid options.
result<> check(const connection_options& wanted) noexcept;

}  // namespace eddy::shm
