// The server runtime over UDP. A peer is an address from which something came lately.
#pragma once

#include <eddy/base/histogram.hpp>
#include <eddy/base/intrusive_list.hpp>
#include <eddy/io/datagram.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/timer.hpp>
#include <eddy/net/rate_limit.hpp>

#include "runtime/host.hpp"
#include "runtime/instance.hpp"
#include "runtime/journal.hpp"
#include "runtime/line_log.hpp"
#include "runtime/listening.hpp"
#include "runtime/metrics.hpp"
#include "runtime/problem.hpp"
#include "runtime/server/options.hpp"
#include "runtime/settings.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>

namespace eddy::runtime::server {

/// One loop's thread.
class datagram_server final : public instance, private timer {
public:
    /// A peer that was silent for this long is forgotten, unless --idle-timeout says otherwise.
    static constexpr duration default_peer_expiry = std::chrono::minutes(5);

    explicit datagram_server(creation from);
    ~datagram_server() override;

    task<outcome<>> start() override;
    task<void> stop(duration drain) override;
    metrics count() const override;
    endpoint local() const override;
    task<outcome<std::uint64_t>> send(std::string message) override;
    outcome<> apply(const settings& changed) override;
    task<outcome<>> check_restart(settings next, bool discards_data) override;

private:
    /// In order of last use, for expiry.
    struct peer : list_link<> {
        peer(const endpoint& from, std::uint64_t number, const rate_limiter& pace) noexcept
            : where(from), id(number), limiter(pace) {}
        endpoint where;
        std::uint64_t id;
        time_point seen_at{};
        rate_limiter limiter;
    };
    struct endpoint_hash {
        std::size_t operator()(const endpoint& where) const noexcept;
    };

    task<void> receive_all();
    void fire() noexcept override;
    void watch() noexcept;
    void take(const datagram_message& message);
    peer* know(const endpoint& from);
    std::uint64_t send_to_all(const_bytes message, const peer* except);
    std::uint64_t send_batch(std::span<const outgoing_datagram> batch);
    void forget(peer& gone);
    void set_pace();
    duration expiry() const noexcept;

    std::string name_;
    settings options_;
    std::shared_ptr<host> host_;  // null without one
    journal& events_;
    config config_;
    counters counted_;
    std::shared_ptr<histogram> latency_ = std::make_shared<histogram>();
    std::unordered_map<endpoint, std::unique_ptr<peer>, endpoint_hash> peers_;
    intrusive_list<peer> by_age_;
    std::uint64_t last_id_ = 0;
    rate_limiter global_limiter_;
    rate_limiter peer_limiter_;
    line_log log_;
    bool said_full_ = false;

    // While it runs.
    struct running;
    std::unique_ptr<running> running_;
};

}  // namespace eddy::runtime::server
