// The server runtime over streams: TCP, Unix sockets, and what else a URI may name.
#pragma once

#include <eddy/base/histogram.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/stream.hpp>
#include <eddy/net/rate_limit.hpp>

#include "runtime/connections.hpp"
#include "runtime/host.hpp"
#include "runtime/instance.hpp"
#include "runtime/journal.hpp"
#include "runtime/line_log.hpp"
#include "runtime/listening.hpp"
#include "runtime/metrics.hpp"
#include "runtime/problem.hpp"
#include "runtime/server/broadcast.hpp"
#include "runtime/server/client.hpp"
#include "runtime/server/options.hpp"
#include "runtime/settings.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace eddy::runtime::server {

/// One loop's thread.
class stream_server final : public instance {
public:
    explicit stream_server(creation from);
    ~stream_server() override;

    task<outcome<>> start() override;
    task<void> stop(duration drain) override;
    metrics count() const override;
    endpoint local() const override;
    task<outcome<std::uint64_t>> send(std::string message) override;
    outcome<> apply(const settings& changed) override;
    task<outcome<>> check_restart(settings next, bool discards_data) override;

private:
    /// How far consume() came, and what the connection has to wait for next.
    struct progress {
        enum class then : std::uint8_t { read, pause, wait_for_readers, close, refuse };
        std::size_t used = 0;
        then next = then::read;
        duration pause{};
    };
    /// Whole messages at the start of some input.
    struct piece {
        std::size_t size = 0;
        std::uint64_t messages = 0;
        bool paused = false;
        duration pause{};
        bool too_long = false;
    };

    task<void> accept_all();
    task<void> serve(std::unique_ptr<client> c);
    void greet(const client& c);
    void see_off(const client& c, bool out_of_memory);
    progress receive(client& c, lease got);
    progress finish_input(client& c);
    progress consume(client& c, std::string_view input, time_point arrived);
    progress consume_rest(client& c, time_point arrived);
    piece next_lines(client& c, std::string_view input);
    piece next_bytes(client& c, std::string_view input);
    duration pace(client& c);
    void deliver(client& c, std::string_view messages, std::uint64_t count, time_point arrived);
    task<void> pause(progress::then why, duration length, client& c);
    task<void> say_farewell(client& c, progress::then why);
    task<void> flush_queues(time_point until);
    connections::limits limits() const noexcept;
    queued_writer_options queue_options() const noexcept;
    void set_pace();

    std::string name_;
    settings options_;
    std::shared_ptr<host> host_;  // null without one
    journal& events_;
    config config_;
    counters counted_;
    std::shared_ptr<histogram> latency_ = std::make_shared<histogram>();
    connections clients_;
    rate_limiter global_limiter_;
    rate_limiter client_limiter_;  // what each client starts with
    line_log log_;

    // While it runs.
    struct running;
    std::unique_ptr<running> running_;
};

}  // namespace eddy::runtime::server
