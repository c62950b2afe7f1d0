// Proxy worker: the clients of one loop, each with its connection to a backend, and the bytes
// between the two.
#pragma once

#include <eddy/io/lease.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/stream.hpp>
#include <eddy/io/task.hpp>
#include <eddy/net/tcp.hpp>

#include "io/sockets/linger.hpp"
#include "runtime/proxy/balancer.hpp"
#include "runtime/proxy/options.hpp"
#include "serving/loop_worker.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <system_error>

namespace eddy::runtime::proxy {

/// One loop's thread, but for what says otherwise.
class proxy_worker final : public serving::loop_worker {
public:
    /// Leases of the loop's buffers that wait for slow readers, at most. Bytes for further ones are
    /// copied, so that the loop's buffers are left to other connections.
    static constexpr std::size_t most_held_leases = 64;
    /// Bytes that wait for a slow reader are written so many at a time; each time counts as a sign
    /// of life for the idle timeout.
    static constexpr std::size_t most_a_write = std::size_t{64} * 1024;
    /// Pause of a direction that finds none of the loop's buffers free. A time, not an event: any
    /// connection of the loop may return a buffer, and take it again before others.
    static constexpr duration starved_pause = std::chrono::milliseconds(5);
    /// A side that is to get a reset, and was sent bytes so short a time ago, gets the reset when
    /// it has sent nothing for as long: before, it might lose those bytes, such as an early answer.
    static constexpr duration last_words_time = std::chrono::seconds(1);
    /// When a side takes nothing more, its own earlier bytes may wait so long for the other side to
    /// read any of them.
    static constexpr duration longest_rest = std::chrono::seconds(30);
    /// Longest wait for the reset of a client that keeps sending: its bytes are lost.
    static constexpr duration longest_cut_linger = std::chrono::seconds(5);

    /// On its loop.
    proxy_worker(const serving::worker_place& place, const config& chosen,
                 std::shared_ptr<balancer> backends);
    ~proxy_worker() override;

    void take(stream accepted, serving::connection_slot slot) override;
    task<void> drain(duration limit) override;

    /// Applies live options. Connections that exist keep their backends.
    void apply(const config& chosen, std::shared_ptr<balancer> backends);

private:
    class tunnel;
    class held_piece;
    struct direction;

    serving::connections::limits limits() const noexcept;
    task<void> serve(std::unique_ptr<tunnel> t);
    task<bool> open(tunnel& t);
    task<result<stream>> connect(const backend& to) const;
    task<void> pump(tunnel& t, scope& both, direction& way, const direction& other);
    static void end_input(scope& both, direction& way, const direction& other,
                          std::error_code error) noexcept;
    [[gnu::noinline]] static task<void> end(tunnel& t, const direction& up, const direction& down);
    static task<void> part(stream& side, const direction& way, linger_limits limits);

    const std::size_t index_;
    config config_;
    std::shared_ptr<balancer> backends_;
    std::size_t held_leases_ = 0;
    failure_report unreached_{"clients were closed, as they got no backend"};
    failure_report failed_backends_{"connections to backends failed"};
};

}  // namespace eddy::runtime::proxy
