// A simulated message socket.
#pragma once

#include "io/sim/sim_backend.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace eddy {

class sim_datagram final : public datagram_driver {
public:
    sim_datagram(sim_backend& world, const endpoint& local, const listen_options& options)
        : world_(world), local_(local), options_(options), id_(world.add(*this)) {}

    bool start(receive_from_operation& op) override;
    void cancel(receive_from_operation& op) noexcept override;
    result<> send_to(const_bytes bytes, const endpoint& to) noexcept override;
    endpoint local() const noexcept override { return local_; }
    int native_handle() const noexcept override { return -1; }
    void close() noexcept override;

    std::uint64_t id() const noexcept { return id_; }
    const listen_options& options() const noexcept { return options_; }

private:
    struct message {
        std::vector<std::byte> bytes;
        endpoint from;
    };

    ~sim_datagram();

    void transmit(const message& sent, const endpoint& to);
    void arrive(message received);
    bool try_complete(receive_from_operation& op, bool after_spell);

    sim_backend& world_;
    endpoint local_;
    listen_options options_;
    std::uint64_t id_;
    std::deque<message> arrived_;
    std::size_t arrived_bytes_ = 0;
    time_point last_arrival_{};
    receive_from_operation* receiver_ = nullptr;
};

}  // namespace eddy
