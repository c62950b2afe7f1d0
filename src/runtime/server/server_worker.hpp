// Server worker: the clients of one loop of a stream server. Cuts what they send into messages and
// passes those on: to the other clients of the loop, and to the other loops.
#pragma once

#include <eddy/base/byte_buffer.hpp>
#include <eddy/base/histogram.hpp>
#include <eddy/http/static_files.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/stream.hpp>
#include <eddy/net/rate_limit.hpp>

#include "runtime/delivery_counter.hpp"
#include "runtime/server/broadcast.hpp"
#include "runtime/server/client.hpp"
#include "runtime/server/exchange.hpp"
#include "runtime/server/first_bytes.hpp"
#include "runtime/server/modes/client_modes.hpp"
#include "runtime/server/options.hpp"
#include "runtime/server/script/server_script.hpp"
#include "runtime/server/script/stream_transport.hpp"
#include "runtime/server/server_context.hpp"
#include "runtime/server/upstreams.hpp"
#include "serving/loop_worker.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::runtime::server {

/// One loop's thread, but for what says otherwise.
class server_worker final : public serving::loop_worker {
public:
    /// On its loop. `of` outlives it.
    /// `files` is of --http; none without.
    server_worker(const serving::worker_place& place, server_context& of, const config& chosen,
                  std::optional<eddy::http::static_files> files);
    ~server_worker() override;

    void take(stream accepted, serving::connection_slot slot) override;
    /// Passes on what has come from clients and other loops, has the queues written out and the
    /// responses of HTTP that have begun finished within `limit`, and closes the connections.
    task<void> drain(duration limit) override;
    /// Clients of lines and raw bytes, of a server with one thread and without a script or modes.
    /// None of them takes in anything until all have got what was queued.
    task<std::vector<serving::passed_client>> move_clients() override;
    void take_moved(serving::passed_client from, serving::connection_slot slot) override;

    /// Live options: limits of connections and rates.
    void apply(const config& chosen);
    /// Serves another folder of --http, from the next request on.
    void replace_files(std::optional<eddy::http::static_files> files);
    /// Runs the script's on_start(), if there is one. Its failure is the start's.
    task<outcome<>> start_script();
    /// Replaces the script by another version, in two steps: see loop_script::prepare().
    task<outcome<>> prepare_script(script_file by);
    void adopt_script();
    void discard_script();
    /// Gives the script an event of --upstream. False without a callback for it.
    task<result<bool>> take_upstream(upstream_event what);
    /// Counts of the script; null without one. Any thread.
    const script_tallies* script_counts() const noexcept {
        return script_ ? &script_->counted() : nullptr;
    }

    /// The text of `eddy send` as the script's on_send has it; none where it is dropped.
    task<result<outcome<std::optional<std::string>>>> ask_script(std::string text);
    /// Null without one.
    server_script* script() const noexcept { return script_.get(); }

    /// Index among the workers. Any thread.
    std::size_t index() const noexcept { return index_; }

    /// Sends out what the clients of this loop have sent.
    task<result<>> flush_now();
    /// Under --slow-reader wait: until the clients of this loop read, at most until `until`.
    /// errc::timed_out, errc::cancelled.
    task<result<>> wait_for_readers(time_point until);
    /// Sends whole messages of `eddy send` to the clients of this loop alone; returns how many took
    /// them. Under --slow-reader wait it waits for readers first; errors are those of that. The
    /// latency counts from `arrived`, if there is one.
    task<result<std::uint64_t>> send_here(shared_messages what, std::optional<time_point> arrived,
                                          time_point until);

    /// Continues with a client whose request for a WebSocket was answered: its stream, and the
    /// bytes behind the request.
    void open_websocket(client& c, stream peer, byte_buffer received);

    /// True while it drains: HTTP connections end with the response at hand.
    bool is_draining() const noexcept { return is_draining_; }

    /// Reasons to refuse a request, or to close a client.
    enum class refusal : std::uint8_t {
        no_files,
        origin,
        tls,
        stun,
        proxy,
        late_request,
        long_line,
        bad_frame,
        count,
    };
    /// Writes to the journal why a client's request was refused, or why it was closed, for each
    /// reason at most once a minute. `detail` is the origin, or the limit.
    void note(refusal reason, const client& c, std::string_view detail = {});
    /// True when its clients come by TLS.
    bool is_secure() const noexcept;
    /// Origins of pages that may open a WebSocket.
    const std::vector<std::string>& origins() const noexcept { return config_.origins; }

    /// True if pages get the script of page_client.hpp.
    bool injects_client() const noexcept { return config_.injects_client; }

    /// Requests by HTTP. Any thread.
    std::uint64_t http_requests() const noexcept { return http_requests_; }
    /// Commands to the cache of --cache. Any thread.
    const cache_link& cache() const noexcept { return modes_.cache(); }

    /// A copy of the times that messages took until they were sent to the clients of this loop and
    /// to the other loops. Any thread.
    histogram latency() const;

private:
    /// Progress of consume(), and what the connection has to wait for next.
    struct progress {
        enum class then : std::uint8_t {
            read,
            http,
            script,
            yield,
            pause,
            wait_for_readers,
            wait_for_loops,
            run_commands,
            close,
            refuse,
            end,  // at once: the connection is gone
        };
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

    class http_client;

    task<void> serve(std::unique_ptr<client> c);
    progress begin_moved(client& c);
    static bool may_move(const client& c) noexcept;
    task<bool> move(client& c);
    bool has_unparked();
    void greet(const client& c);
    void see_off(const client& c, bool out_of_memory);
    progress receive(client& c, lease got);
    progress refuse_client(const client& c, refusal reason);
    progress receive_first(client& c, std::string_view text, time_point arrived);
    progress begin_http(const client& c);
    first_bytes_rules recognition() const noexcept;
    progress receive_frames(client& c, std::string_view text);
    task<void> serve_http(client& c);
    std::size_t max_web_message() const noexcept;
    progress finish_input(client& c);
    progress consume(client& c, std::string_view input, time_point arrived);
    progress consume_rest(client& c, time_point arrived);
    progress consume_by_script(client& c, std::string_view input, time_point arrived);
    progress hand_to_script(client& c, std::string_view input);
    std::optional<progress::then> wait_before(const client& c, bool is_sent);
    piece next_lines(client& c, std::string_view input);
    piece next_line(client& c, std::string_view input);
    piece next_bytes(client& c, std::string_view input);
    duration pace(client& c);
    progress take_claim(client& c, const line_command_split& line);
    task<progress> run_commands(client& c);
    void pass_on(client& c, std::string_view messages, std::uint64_t count, time_point arrived,
                 client_modes::route to);
    void note_messages(const client& c, std::string_view messages, std::uint64_t count);
    void deliver(const shared_messages& what);
    void enter_script(client& c);
    void leave_script(client& c) noexcept;
    task<progress> go_on(progress::then next, duration length, client& c);
    task<void> say_farewell(client& c, progress::then why);
    void close_flushed();
    void leave_websocket(client& c);
    task<void> end_http(time_point until);
    task<void> flush_queues(time_point until);
    task<void> take_in();
    task<void> take_in_rest(time_point until);
    serving::connections::limits limits() const noexcept;
    queued_writer_options queue_options() noexcept;

    /// While move_clients() runs.
    struct moving {
        std::vector<serving::passed_client> out;
        std::size_t parked = 0;  ///< clients that take in no more
        event all_are_parked;
    };
    std::unique_ptr<moving> moving_;

    server_context& context_;
    const std::size_t index_;
    config config_;
    delivery_counter delivered_{counted_};
    rate_limiter client_limiter_;  // what each client starts with
    histogram latency_;
    mutable std::mutex latency_guard_;
    std::optional<eddy::http::static_files> files_;
    serving::tally http_requests_;
    std::array<std::optional<time_point>, static_cast<std::size_t>(refusal::count)> noted_at_;
    std::size_t http_clients_ = 0;
    event no_http_clients_;  // for drain()
    bool is_draining_ = false;
    std::optional<exchange_end> others_;  // none with one loop, and where no clients are
    scope background_;
    scope taking_in_;
    broadcast out_;
    client_modes modes_;
    std::optional<stream_transport> to_script_clients_;  // with a script
    std::unique_ptr<server_script> script_;              // null without
};

}  // namespace eddy::runtime::server
