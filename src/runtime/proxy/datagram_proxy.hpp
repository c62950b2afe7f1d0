// Proxy over UDP: a session for each client, with a socket of its own to a backend.
#pragma once

#include <eddy/io/scope.hpp>
#include <eddy/io/timer.hpp>

#include "base/problem.hpp"
#include "proxy/datagram_sessions.hpp"
#include "runtime/host/host.hpp"
#include "runtime/instance.hpp"
#include "runtime/listening.hpp"
#include "runtime/metrics.hpp"
#include "runtime/options/settings.hpp"
#include "runtime/proxy/options.hpp"
#include "runtime/serving/inherited_listeners.hpp"
#include "serving/journal.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace eddy::runtime::proxy {

/// One loop's thread.
class datagram_proxy final : public instance, private eddy::proxy::datagram_observer {
public:
    /// The least time between two journal lines of a kind; those between are counted.
    static constexpr duration report_interval = std::chrono::seconds(10);

    explicit datagram_proxy(creation from);
    ~datagram_proxy() override;

    task<outcome<>> start() override;
    task<void> stop(duration drain) override;
    metrics count() const override;
    client_counts count_clients() const override {
        return {counted_.connections_now, counted_.handshakes_now};
    }
    endpoint local() const override;
    std::string fault() const override;
    outcome<> apply(const settings& changed) override;
    task<outcome<>> check_restart(settings next, bool discards_data) override;
    task<std::shared_ptr<inherited_listeners>> hand_over_listeners() override;
    outcome<> take_back(inherited_listeners& from) override;
    outcome<std::shared_ptr<passed_listeners>> share_listeners() override;
    void open() override;
    task<outcome<bool>> reread() override;

private:
    struct running;
    /// Failures of a kind in the journal.
    struct report {
        std::optional<time_point> written_at = {};
        std::uint64_t unreported = 0;  // since then
    };

    outcome<noted_datagram> bind_or_take(const transport::address& where);
    outcome<> bind_again();
    void begin_receiving();
    task<void> end_receiving();
    task<void> receive_all();
    void update_sessions();

    void note_failed_backend(const eddy::proxy::backend& which,
                             std::error_code why) noexcept override;
    void note_dropped(std::string_view why) noexcept override;
    void write(report& of, std::string_view kind, std::string_view why) noexcept;

    const std::string name_;
    settings options_;
    const std::shared_ptr<host> host_;
    serving::journal& events_;
    config config_;
    serving::counters counted_;
    eddy::proxy::backend_list backends_;
    report failed_backends_;
    report dropped_;
    std::shared_ptr<inherited_listeners> inherited_;  // until it has started
    bool is_held_;                                    // until open()

    // While it runs.
    std::unique_ptr<running> running_;
};

}  // namespace eddy::runtime::proxy
