// A simulated message socket.
#pragma once

#include <eddy/io/datagram.hpp>

#include "io/sim/sim_backend.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

namespace eddy {

class sim_datagram final : public datagram_driver {
public:
    sim_datagram(sim_backend& world, const endpoint& local, const datagram_options& options)
        : world_(world), local_(local), options_(options), id_(world.add(*this)) {}

    bool start(receive_from_operation& op) override;
    bool start(send_datagrams_operation& op) override;
    void cancel(receive_from_operation& op) noexcept override;
    // There is always room, so no send waits.
    void cancel(send_datagrams_operation&) noexcept override {}
    result<> try_receive(datagram_message& into) noexcept override;
    result<std::size_t> try_send(std::span<const outgoing_datagram> batch) noexcept override;
    result<> connect(const endpoint& peer) noexcept override;
    result<> set(const datagram_options& options) noexcept override;
    result<> set_member(const endpoint& group, std::uint32_t interface,
                        bool member) noexcept override;
    endpoint local() const noexcept override { return local_; }
    endpoint peer() const noexcept override { return peer_; }
    int native_handle() const noexcept override { return -1; }
    void close() noexcept override;

    std::uint64_t id() const noexcept { return id_; }
    const datagram_options& options() const noexcept { return options_; }
    bool receives_all() const noexcept { return peer_.family() == AF_UNSPEC; }
    bool receives_only(const endpoint& from) const {
        return !receives_all() && sim_unmapped(peer_) == from;
    }
    bool is_member(const endpoint& group) const noexcept;

private:
    struct message {
        std::vector<std::byte> bytes;
        endpoint from;
        endpoint to;
    };
    struct membership {
        endpoint group;
        std::uint32_t interface;
    };

    ~sim_datagram();

    result<> send(const outgoing_datagram& one) noexcept;
    void send_to_many(const message& sent);
    void transmit(const message& sent);
    void transmit(const message& sent, sim_datagram& to);
    void arrive(message received);
    void refused();
    void complete_receiver();
    void deliver(datagram_message& into);
    bool try_complete(receive_from_operation& op, bool after_spell);

    sim_backend& world_;
    endpoint local_;
    endpoint peer_;
    datagram_options options_;
    std::uint64_t id_;
    std::vector<membership> groups_;
    std::deque<message> arrived_;
    std::size_t arrived_bytes_ = 0;
    time_point last_arrival_{};
    int error_ = 0;  // for the next call
    receive_from_operation* receiver_ = nullptr;
};

}  // namespace eddy
