// Client: the runtime that keeps a connection to a server, and writes the lines that it receives to
// its journal.
#pragma once

#include <eddy/io/scope.hpp>
#include <eddy/net/queued_writer.hpp>
#include <eddy/transport/transport.hpp>

#include "runtime/backoff.hpp"
#include "runtime/delivery_counter.hpp"
#include "runtime/instance.hpp"
#include "runtime/options/option.hpp"

#include <optional>
#include <vector>

namespace eddy::runtime::client {

std::vector<option> option_table();
outcome<> check(const settings& chosen);

/// One loop's thread.
class client_runtime final : public instance {
public:
    /// Bytes that may wait for a server that reads slowly.
    static constexpr std::size_t max_queued = std::size_t{1} << 20;
    /// Pauses between attempts to connect. After a connection that has lasted for the longest one
    /// they begin anew.
    static constexpr duration first_pause = std::chrono::milliseconds(100);
    static constexpr duration longest_pause = std::chrono::seconds(10);

    explicit client_runtime(creation from);

    /// Does not wait for the connection.
    task<outcome<>> start() override;
    /// Closes the connection at once; what waits for the server is lost.
    task<void> stop(duration drain) override;
    metrics count() const override { return metrics(counted_); }
    /// Always empty: it listens nowhere.
    endpoint local() const override { return {}; }
    /// Sends the message to the server, with a newline at its end. 503 while it is not connected.
    task<outcome<std::uint64_t>> send(std::string message) override;
    task<outcome<>> check_restart(settings next, bool) override { co_return check(next); }
    /// Each attempt to connect reads the files that have changed.
    task<outcome<bool>> reread() override { co_return true; }
    outcome<> apply(const settings& changed) override;

private:
    task<void> keep_connected();
    task<void> connect();
    task<std::error_code> converse(stream server);
    void note_line(std::string_view line, bool is_cut);

    const std::string name_;
    settings options_;
    serving::journal& events_;
    transport::address target_;
    serving::counters counted_;
    delivery_counter delivered_{counted_};
    backoff pauses_{first_pause, longest_pause, entropy_seed()};
    std::error_code reported_;      // of the last attempt, if it failed
    std::optional<scope> tasks_;    // while it runs
    queued_writer* out_ = nullptr;  // while it is connected
};

}  // namespace eddy::runtime::client
