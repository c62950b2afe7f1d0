// Messages of a server's script to clients over streams: those to one client are written together,
// those to all go with the broadcast of the turn, and the order of both is kept.
#pragma once

#include <eddy/io/event.hpp>
#include <eddy/io/task.hpp>

#include "runtime/server/broadcast.hpp"
#include "runtime/server/client.hpp"
#include "runtime/server/exchange.hpp"
#include "runtime/server/modes/client_modes.hpp"
#include "runtime/server/options.hpp"
#include "runtime/server/script/server_script.hpp"
#include "runtime/server/server_context.hpp"
#include "serving/counters.hpp"
#include "serving/loop_worker.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::runtime::server {

/// One loop's thread.
class stream_transport final : public script_transport {
public:
    /// The references outlive it. `others` is null with one loop; `place` is then of no use.
    stream_transport(broadcast& out, exchange_end* others, const serving::worker_place& place,
                     server_context& of, serving::counters& counted, client_modes& modes,
                     const config& chosen) noexcept
        : out_(out),
          others_(others),
          index_(place.index),
          loops_(place.count - 1),
          context_(of),
          counted_(counted),
          modes_(modes),
          config_(chosen) {}

    bool send(script_client& to, std::string_view text) override;
    bool send_to_all(std::string_view text) override;
    std::size_t send_to_each(const std::vector<script_client*>& to, std::string_view text) override;
    bool send_elsewhere(script_receivers to, std::string_view text) override;
    bool has_other_loops() const noexcept override { return others_ != nullptr; }
    bool is_elsewhere(std::uint64_t id) const noexcept override {
        return others_ != nullptr && id != 0 && id % loops_ != index_ % loops_;
    }
    void disconnect(script_client& of) override;
    void refuse(script_client& of, std::string_view reason) override;
    void decide_claim(script_client& of, bool is_granted) override;
    std::string ip_of(const script_client& of) const override;
    std::uint64_t connections() const override;
    std::size_t max_message() const override { return config_.max_queue / 2; }
    upstreams* upstream_links() const noexcept override { return context_.upstream_links.get(); }

    /// Messages of this client are handled until end_batch(): what is sent to it goes out then.
    void begin_batch(script_client& of) noexcept { current_ = &of; }
    void end_batch();
    /// Sends out all that is for single clients.
    void flush();
    /// Flushes at the end of each turn that sent something; runs until cancelled.
    task<void> run();

    /// Before the client's requests are served: what is held back for it waits for its WebSocket.
    void keep_held(client& of);
    /// It is one now.
    void opened(client& of);
    /// The client goes: nothing of it is left.
    void drop(script_client& of) noexcept;
    /// Messages of the scripts of other loops for some of these clients.
    void deliver(server_script& to, const shared_messages& what);

private:
    static client* peer_of(const script_client& of) noexcept;
    std::string_view framed(std::string_view text);
    std::shared_ptr<const byte_buffer> shared(std::string_view text);
    bool append(client& to, script_client& its, std::string_view text);
    void flush_one(script_client& to);
    bool send_shared(client& to, const std::shared_ptr<const byte_buffer>& plain,
                     std::shared_ptr<const byte_buffer>& frames, std::uint64_t count);

    broadcast& out_;
    exchange_end* others_;
    const std::size_t index_;  // of the worker, see connections::number_by()
    const std::size_t loops_;  // that serve clients, beside the one that accepts
    server_context& context_;
    serving::counters& counted_;
    client_modes& modes_;
    const config& config_;
    std::vector<script_client*> dirty_;
    script_client* current_ = nullptr;
    std::string line_;
    event filled_;
};

}  // namespace eddy::runtime::server
