// The server runtime over UDP. A peer is an address from which something came lately.
//
// The sender's address of a datagram may be forged: that of another server, or of this one. Three
// rules keep servers from forwarding to each other without end: a peer gets nothing before its
// second datagram, so that one forged datagram makes no peer of a server that knows nothing of this
// one; datagrams from this server's own address are dropped; and a peer that reaches its rate limit
// (by default 1000 a second) is muted for a second, in which all that circulates ends.
#pragma once

#include <eddy/base/histogram.hpp>
#include <eddy/base/intrusive_list.hpp>
#include <eddy/io/datagram.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/timer.hpp>
#include <eddy/net/rate_limit.hpp>

#include "base/problem.hpp"
#include "runtime/host/host.hpp"
#include "runtime/instance.hpp"
#include "runtime/listening.hpp"
#include "runtime/logs/line_log.hpp"
#include "runtime/metrics.hpp"
#include "runtime/options/settings.hpp"
#include "runtime/scripting/script_reload.hpp"
#include "runtime/server/options.hpp"
#include "runtime/server/script/server_script.hpp"
#include "runtime/serving/inherited_listeners.hpp"
#include "serving/journal.hpp"

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
    /// Time for which a peer that has reached its rate limit is muted. Its limit's bucket is full
    /// then, so on average it gets its rate.
    static constexpr duration mute_time = std::chrono::seconds(1);

    explicit datagram_server(creation from);
    ~datagram_server() override;

    task<outcome<>> start() override;
    task<void> stop(duration drain) override;
    metrics count() const override;
    client_counts count_clients() const override {
        return {counted_.connections_now, counted_.handshakes_now};
    }
    endpoint local() const override;
    std::string fault() const override;
    task<outcome<std::uint64_t>> send(std::string message) override;
    outcome<> apply(const settings& changed) override;
    task<outcome<>> check_restart(settings next, bool discards_data) override;
    task<std::shared_ptr<inherited_listeners>> hand_over_listeners() override;
    outcome<> take_back(inherited_listeners& from) override;
    outcome<std::shared_ptr<passed_listeners>> share_listeners() override;
    void open() override;
    task<outcome<bool>> reread() override;
    task<outcome<>> reload_script() override;
    void give_up_start() noexcept override { reloads_.give_up(); }

private:
    class script_side;
    struct peer : list_link<> {
        peer(const endpoint& from, std::uint64_t number, const rate_limiter& pace) noexcept
            : where(from), id(number), limiter(pace) {}
        endpoint where;
        /// The address of this machine that it sends to, and gets answers from; empty if the socket
        /// is bound to one, or the kernel refuses to send from it.
        endpoint local = {};
        std::uint64_t id;
        script_client* script = nullptr;  // null without a script
        bool is_confirmed = false;
        std::size_t credit = 0;  // bytes that an unconfirmed one may be sent: as many as came
        time_point seen_at{};
        time_point muted_until{};
        rate_limiter limiter;
    };
    struct endpoint_hash {
        std::size_t operator()(const endpoint& where) const noexcept;
    };

    outcome<> report_addresses(datagram& by) const;
    outcome<> bind_again();
    outcome<noted_datagram> bind_or_take(const transport::address& where);
    void know_again(std::span<const inherited_listeners::datagram_peer> before);
    task<outcome<>> start_script();
    task<void> end_script(duration drain);
    void enter_script(peer& of);
    task<void> forget_dismissed();
    task<outcome<>> read_and_replace_script();
    task<void> receive_all();
    void fire() noexcept override;
    void watch() noexcept;
    void take(const datagram_message& message);
    void pass_on(peer& from, const datagram_message& message);
    bool is_own(const endpoint& from);
    peer* know(const datagram_message& message);
    bool may_speak(peer& from);
    std::uint64_t send_to_all(const_bytes message, const peer* except);
    static bool is_served(const peer& to) noexcept;
    std::uint64_t send_to_each(std::span<peer* const> to, const_bytes message);
    std::uint64_t send_batch(std::span<const outgoing_datagram> batch);
    void forget(peer& gone);
    bool make_room();
    template <class F>
    void for_each_peer(F what) {
        confirmed_.for_each(what);
        unconfirmed_.for_each(what);
    }
    void set_pace();
    duration expiry() const noexcept;

    std::string name_;
    settings options_;
    std::shared_ptr<host> host_;
    serving::journal& events_;
    config config_;
    serving::counters counted_;
    std::shared_ptr<histogram> latency_ = std::make_shared<histogram>();
    std::unordered_map<endpoint, std::unique_ptr<peer>, endpoint_hash> peers_;
    std::vector<inherited_listeners::datagram_peer> known_before_;  // during start()
    // In order of last use, for expiry. Peers that have sent a second datagram get messages; the
    // others' addresses may be forged, and at the limit they are evicted.
    intrusive_list<peer> confirmed_;
    intrusive_list<peer> unconfirmed_;
    std::uint64_t last_id_ = 0;
    rate_limiter global_limiter_;
    rate_limiter peer_limiter_;
    line_log log_;
    bool said_full_ = false;
    std::unique_ptr<script_side> to_script_clients_;
    std::unique_ptr<server_script> script_;  // null without one
    script_reloads reloads_;
    script_tallies script_counts_;  // of scripts that have ended
    event dismissed_;
    std::shared_ptr<inherited_listeners> inherited_;  // until it has started
    bool is_held_;                                    // until open()

    // While it runs.
    struct running;
    std::unique_ptr<running> running_;
};

}  // namespace eddy::runtime::server
