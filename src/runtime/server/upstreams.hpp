// Upstreams: the connections of a server to other servers, whose messages it gets (--upstream).
// Each is kept up by a client.
#pragma once

#include <eddy/io/event.hpp>
#include <eddy/io/executor.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/task.hpp>

#include "base/problem.hpp"
#include "runtime/kept_client.hpp"
#include "runtime/metrics.hpp"
#include "runtime/server/options.hpp"
#include "serving/counters.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::runtime::server {

/// Event of an upstream. They are numbered from 1, in the order of --upstream.
struct upstream_event {
    enum class kind : std::uint8_t { connected, message, disconnected };
    kind what = kind::message;
    std::size_t number = 0;
    std::string text = {};  ///< the message, or why the connection has ended
};

/// The loop's that makes it, but for what says otherwise. Shared with the loops that send by it.
class upstreams final : public std::enable_shared_from_this<upstreams> {
public:
    /// Bytes of received messages that wait for the server at most: nothing is read beyond that.
    static constexpr std::size_t max_waiting = std::size_t{1} << 20;
    /// Bytes of messages at most that other loops have sent, and this one has not queued.
    static constexpr std::size_t max_posted = std::size_t{1} << 20;
    /// Gets one event after the other, each when the task of the one before has ended.
    using taker = std::function<task<outcome<>>(upstream_event)>;

    /// Connections with the addresses and framing of `chosen`, for the server `name`.
    upstreams(const config& chosen, const std::string& name, serving::journal& events,
              kept_client_factory make, taker to);
    ~upstreams();

    /// Begins to connect; waits for no connection.
    task<outcome<>> start();
    /// No event comes any more.
    task<void> mute();
    /// Sends what is queued, within `limit`, and closes the connections. After mute().
    task<void> stop(duration limit);

    /// Why one has no connection, after the first attempt has failed; empty: all have one.
    std::string fault() const;
    void add_counts(metrics& to) const;

    // Any thread.
    std::size_t count() const noexcept { return all_.size(); }
    bool is_connected(std::size_t number) const noexcept;
    /// Queues a message for one that exists; while it has no connection the message waits. False
    /// when the queue is full, and for what it cannot carry; a message of another loop that turns
    /// out to be such counts as dropped.
    bool send(std::size_t number, std::string_view text);

private:
    class link;
    void add(upstream_event what);
    bool send_here(std::size_t number, std::string text);
    task<void> feed();

    const executor here_;
    serving::journal& events_;
    const taker taker_;
    std::vector<std::unique_ptr<link>> all_;
    std::deque<upstream_event> waiting_;
    std::size_t waiting_bytes_ = 0;
    event filled_;
    event has_room_;
    scope feeding_;
    bool is_open_ = false;
    bool is_muted_ = false;
    bool drops_ = false;  // the journal has it
    serving::tally received_;
    serving::tally sent_;
    serving::tally dropped_;
};

}  // namespace eddy::runtime::server
