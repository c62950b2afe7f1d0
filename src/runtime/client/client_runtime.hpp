// Client: the runtime that keeps a connection to a server. What it receives goes to its journal and
// to the followers of `eddy attach`; what is sent waits in a queue while there is no connection.
#pragma once

#include <eddy/io/event.hpp>
#include <eddy/io/scope.hpp>

#include "io/tasks/backoff.hpp"
#include "runtime/client/connection.hpp"
#include "runtime/client/options.hpp"
#include "runtime/client/outbox.hpp"
#include "runtime/client/script/client_script.hpp"
#include "runtime/instance.hpp"
#include "runtime/kept_client.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace eddy::runtime::client {

/// One loop's thread.
class client_runtime final : public instance,
                             public kept_client,
                             private connection_events,
                             private script_link {
public:
    /// Pauses between attempts to connect. After a connection that has lasted for the longest one
    /// they begin anew.
    static constexpr duration first_pause = std::chrono::milliseconds(100);
    static constexpr duration longest_pause = std::chrono::seconds(10);
    /// A connection that its script closes may send what is queued for so long.
    static constexpr duration disconnect_patience = std::chrono::seconds(5);

    /// `to` gets its messages; null: its journal and followers do.
    explicit client_runtime(creation from, message_receiver* to = nullptr);

    /// Does not wait for the connection, but for on_start() of its script. Queues the messages of
    /// the instance before; what the options do not allow any more counts as dropped.
    task<outcome<>> start() override;
    /// Sends what is queued if there is a connection, for at most `drain`, then closes it. The rest
    /// of the queue is lost.
    task<void> stop(duration drain) override;
    void end_drain() noexcept override { drained_.set(); }
    /// Sends what is queued if there is a connection, for at most `patience`.
    task<outcome<>> hand_over(settings next, std::shared_ptr<handover> to,
                              duration patience) override;
    /// Yields the queue, in the place of listeners.
    task<std::shared_ptr<inherited_listeners>> hand_over_listeners() override;
    outcome<> take_back(inherited_listeners& from) override;
    std::string lost() const override { return lost_; }
    metrics count() const override;
    /// Always empty: it listens nowhere.
    endpoint local() const override { return {}; }
    /// Why there is no connection, after the first attempt has failed.
    std::string fault() const override;
    /// Queues the message for the server. Yields 1, or 0 when it waits for a connection or the
    /// policy has dropped it. Fails with 400 for what the transport cannot carry, with 409 while it
    /// does not run or only receives, with 503 when the queue is full, between two instances, or
    /// when it has given up. Its script may replace or drop the message (0), and its failure
    /// refuses it (500).
    task<outcome<std::uint64_t>> send(std::string message) override;
    /// The same at once, past its script.
    outcome<std::uint64_t> send_now(std::string message) override;
    task<outcome<>> check_restart(settings next, bool discards_data) override;
    /// Each attempt to connect reads the files that have changed. One that has given up tries
    /// again. Loads the script again, too.
    task<outcome<bool>> reread() override;
    task<outcome<>> reload_script() override;
    outcome<> apply(const settings& changed) override;

private:
    void note_bytes(std::size_t received) override { counted_.bytes_in += received; }
    void note_message(std::string_view message, bool is_cut) override;
    void note_error(std::error_code error) override;
    event& ready() noexcept override;
    std::size_t longest_message() const override { return chosen_.max_line; }

    // Functions and events of the script.
    outcome<bool> queue(std::string_view message) override;
    bool is_connected() const noexcept override { return is_connected_; }
    bool disconnect() noexcept override;
    void end_greeting() noexcept override;
    void show(std::string_view message, bool is_cut) override;

    task<outcome<>> start_script();
    task<void> end_script(duration limit);
    void begin_connection();
    void note_end(std::string_view reason);
    task<void> end_on_request(cancel_source& connection);
    admission add(outbox& to, std::string message);

    task<void> keep_connected();
    task<bool> connect();
    task<std::error_code> converse(connection& server);
    static task<result<>> send_or_fail(connection& server, std::string_view message);
    task<void> write_out(connection& server, cancel_source& until_broken, std::error_code& broken);
    task<void> drain(duration limit);
    void report(std::error_code error);
    void give_up();
    void resume_attempts();
    void note_dropped(std::uint64_t messages);
    outcome<> may_send(std::string_view message) const;
    outcome<> can_carry(std::string_view message) const;
    void queue_inherited();
    bool has_messages() const noexcept { return !waiting_.empty() || !greeting_.empty(); }
    bool has_lines() const noexcept {
        return chosen_.target.is_stream() && chosen_.messages == framing::line;
    }
    std::vector<std::string> framed(std::string message) const;

    const std::string name_;
    settings given_;
    serving::journal& events_;
    const std::shared_ptr<runtime::host> host_;
    message_receiver* const receiver_;  // null: none
    config chosen_;
    serving::counters counted_;
    serving::tally reconnects_;
    backoff pauses_{first_pause, longest_pause, entropy_seed()};
    outbox waiting_;
    outbox greeting_;                        // what on_connect has sent: it goes first
    event filled_;                           // a message waits, for the writer
    event drained_;                          // nothing waits and nothing is being sent, for stop()
    event dismissed_;                        // the script has closed the present connection
    event always_ready_;                     // set
    std::unique_ptr<client_script> script_;  // null without one
    script_tallies script_counts_;           // of scripts that have ended
    std::error_code reported_;               // of the last attempt, or report of a datagram
    std::string missing_;  // why there is no connection; empty before the first attempt's end
    std::string lost_;     // by the last stop
    std::shared_ptr<inherited_listeners> inherited_;  // the queue of the instance before
    std::optional<scope> tasks_;                      // while it runs
    bool is_connected_ = false;
    bool is_greeting_ = false;    // on_connect has not ended
    bool has_connected_ = false;  // since the start
    bool has_given_up_ = false;
    bool is_stopping_ = false;
    bool has_handed_over_ = false;  // the next instance gets the queue
    bool drops_ = false;  // the journal has the first message that was dropped since the last send
};

/// Its target was checked by read_server_address().
std::unique_ptr<kept_client> make_kept_client(const kept_client_options& by);

}  // namespace eddy::runtime::client
