// The table of the server's options, and their contradictions.
#include "runtime/server/options.hpp"

#include "runtime/listening.hpp"
#include "runtime/options/bound_options.hpp"
#include "runtime/serving/accept_options.hpp"
#include "runtime/serving/serving_rows.hpp"
#include "runtime/serving/shm_options.hpp"
#include "runtime/serving/threads.hpp"

#include <fmt/format.h>

namespace eddy::runtime::server {
namespace {

using transport::scheme;

constexpr std::int64_t most_per_second = 1'000'000'000;

/// Refuses options that would have no effect beside `reason`.
outcome<> without_effect(const settings& chosen, std::string_view reason, std::string_view why,
                         std::initializer_list<std::string_view> options) {
    for (const std::string_view name : options) {
        if (!chosen.given(name)) continue;
        // Given here, or stored by an earlier create or edit: the type does not know which.
        return refuse(400, fmt::format("--{0} has no effect with {1}: {2}; leave it out, or take "
                                       "it back with --unset {0}",
                                       name, reason, why));
    }
    return {};
}

outcome<> check_combinations(const settings& chosen, const config& read) {
    if (read.where.kind == scheme::udp) {
        if (auto ok = without_effect(chosen, "UDP", "a datagram is a message by itself",
                                     {"framing", "max-line"});
            !ok)
            return ok;
        if (auto ok = without_effect(chosen, "UDP", "HTTP needs a stream",
                                     {"http", "raw-http", "origins"});
            !ok)
            return ok;
        if (auto ok =
                without_effect(chosen, "UDP", "one socket receives all datagrams", {"threads"});
            !ok)
            return ok;
        if (auto ok = without_effect(chosen, "UDP", "datagrams are never queued for a peer",
                                     {"slow-reader", "max-queue"});
            !ok)
            return ok;
        if (auto ok = without_effect(chosen, "UDP", "it has no connections", {"tcp-keepalive"});
            !ok)
            return ok;
    }
    if (read.takes_raw_http) {
        if (auto ok =
                without_effect(chosen, "--raw-http", "WebSocket is not recognised", {"origins"});
            !ok)
            return ok;
    }
    if (read.mode == flow::out) {
        if (auto ok = without_effect(
                chosen, "--mode out", "what clients send is discarded",
                {"framing", "max-line", "rate-limit", "global-rate-limit", "log", "log-traffic"});
            !ok)
            return ok;
    }
    if (read.mode == flow::in) {
        if (auto ok = without_effect(chosen, "--mode in", "clients get nothing",
                                     {"slow-reader", "max-queue"});
            !ok)
            return ok;
        if (auto ok = without_effect(chosen, "--mode in", "lines go to the journal anyway",
                                     {"log-traffic"});
            !ok)
            return ok;
    }
    if (read.messages == framing::raw) {
        if (auto ok = without_effect(chosen, "--framing raw", "there are no lines", {"max-line"});
            !ok)
            return ok;
    }
    if (read.where.kind != scheme::udp && read.mode == flow::inout &&
        read.messages == framing::line && read.max_queue / 2 <= read.max_line) {
        return refuse(400, fmt::format("--max-queue {} is too small for lines of up to {}: it must "
                                       "hold more than two of them",
                                       chosen.text("max-queue"), chosen.text("max-line")));
    }
    return {};
}

/// Refuses what no browser sends as an origin, since it would have no effect.
outcome<std::vector<std::string>> read_origins(const settings& chosen, const config& /*so_far*/) {
    std::string_view text = chosen.text("origins");
    std::vector<std::string> read;
    while (!text.empty()) {
        const std::size_t comma = text.find(',');
        const std::string_view one = text.substr(0, comma);
        text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
        const std::size_t scheme = one.find("://");
        const bool is_origin = scheme != std::string_view::npos && scheme > 0 &&
                               scheme + 3 < one.size() &&
                               one.find_first_of("/*?# ", scheme + 3) == std::string_view::npos;
        if (!is_origin && one != "*" && one != "null")
            return refuse(400, fmt::format("--origins: \"{}\" is no origin; write a scheme and a "
                                           "host, such as https://example.org, with :PORT if it "
                                           "has one, or * for all",
                                           one));
        read.emplace_back(one);
    }
    return read;
}

using row = bound_option<config>;

/// Addresses of its listeners.
bound_options<config> address_rows() {
    return joined({listening_rows<config>(
                       "serve on a URI instead: tcp://HOST:PORT, udp://HOST:PORT, unix:///PATH or "
                       "handoff:///PATH"),
                   {row::unbound({.name = "udp",
                                  .kind = option_kind::flag,
                                  .help = "serve UDP on the port; the clients are the senders of "
                                          "at least two recent datagrams"})},
                   secure_rows<config>()});
}

/// Messages and their receivers.
bound_options<config> message_rows() {
    return {
        row::choice(
            &config::mode,
            {.name = "mode",
             .kind = option_kind::choice,
             .value_name = "MODE",
             .default_value = "inout",
             .help = "receivers of a client's messages: inout: all other clients; in: only the "
                     "journal; out: none, and clients get only messages of `eddy send`"},
            {{"inout", flow::inout}, {"in", flow::in}, {"out", flow::out}}),
        row::choice(&config::messages,
                    {.name = "framing",
                     .kind = option_kind::choice,
                     .value_name = "HOW",
                     .default_value = "line",
                     .help = "what a message is: a line of text, or raw: the bytes as they arrive"},
                    {{"line", framing::line}, {"raw", framing::raw}}),
        row::whole_path(&config::http_root,
                        {.name = "http",
                         .value_name = "DIR",
                         .help = "also serve the files of this folder to HTTP clients on the same "
                                 "port. WebSocket is recognised with and without it",
                         .is_path = true}),
        row::read_by(
            &config::origins,
            {.name = "origins",
             .value_name = "LIST",
             .help =
                 "pages that may open a WebSocket, besides those of the host and port that they "
                 "connect to: origins joined by commas, such as https://example.org; * is all. "
                 "Others get 403; clients that are no browsers send no Origin and may connect",
             .live = true},
            read_origins),
        row::bound(
            &config::takes_raw_http,
            {.name = "raw-http",
             .kind = option_kind::flag,
             .help =
                 "make HTTP requests messages, with their passwords and cookies. Otherwise a "
                 "client whose first line begins like a request, such as \"GET /\", is answered by "
                 "HTTP, and none of it is forwarded. WebSocket is not recognised then"}),
    };
}

/// Threads, and limits of clients.
bound_options<config> client_rows() {
    return {
        row::unbound(threads_option(
            "threads that serve clients. One has the highest throughput a core; more receive, "
            "encrypt and send at the same time, and forward each message to the others' clients")),
        row::bound(&config::max_connections, max_connections_option()),
        row::bound(
            &config::rate_limit,
            {.name = "rate-limit",
             .kind = option_kind::integer,
             .value_name = "N",
             .default_value = "0",
             .help =
                 "messages a second of each client, with bursts of the same size; 0 is no limit. A "
                 "faster TCP client is slowed down. With UDP, where it is 1000 by default, what a "
                 "peer sends for a second after it has reached the limit is dropped",
             .maximum = most_per_second,
             .live = true}),
        row::bound(&config::global_rate_limit, {.name = "global-rate-limit",
                                                .kind = option_kind::integer,
                                                .value_name = "N",
                                                .default_value = "0",
                                                .help = "the same for all clients together",
                                                .maximum = most_per_second,
                                                .live = true}),
        row::bound(
            &config::idle_timeout,
            {.name = "idle-timeout",
             .kind = option_kind::duration,
             .value_name = "TIME",
             .default_value = "0",
             .help = "close a client after this time without a byte in either direction, such as "
                     "30s or 5m; 0 is never. With UDP: forget the client, by default after 5m",
             .live = true}),
        keepalive_row<config>(),
        row::bound(&config::max_line,
                   {.name = "max-line",
                    .kind = option_kind::size,
                    .value_name = "SIZE",
                    .default_value = "64KiB",
                    .help = "longest line, such as 4096, 64k or 1M; a client that sends a longer "
                            "one gets an error and is closed",
                    .minimum = 1,
                    .maximum = std::int64_t{1} << 30}),
        row::choice(
            &config::slow_reader,
            {.name = "slow-reader",
             .kind = option_kind::choice,
             .value_name = "WHAT",
             .default_value = "disconnect",
             .help = "what to do when a client reads too slowly and --max-queue is full: wait: all "
                     "senders wait; drop-oldest: drop its oldest messages; disconnect: close it"},
            {{"wait", slow_reader_policy::wait},
             {"drop-oldest", slow_reader_policy::drop_oldest},
             {"disconnect", slow_reader_policy::disconnect}}),
        row::bound(&config::max_queue, {.name = "max-queue",
                                        .kind = option_kind::size,
                                        .value_name = "SIZE",
                                        .default_value = "1MiB",
                                        .help = "bytes that may wait for one slow client",
                                        .minimum = 4096,
                                        .maximum = std::int64_t{1} << 34}),
    };
}

/// Logs of clients and messages.
bound_options<config> log_rows() {
    return {
        row::bound(&config::log_file, {.name = "log",
                                       .value_name = "FILE",
                                       .help = "append what clients send to this file",
                                       .is_path = true}),
        row::bound(
            &config::log_traffic,
            {.name = "log-traffic",
             .letter = 'b',
             .kind = option_kind::flag,
             .help = "write connections and messages to the journal, which `eddy logs` shows"}),
    };
}

}  // namespace

const bound_options<config>& option_rows() {
    static const bound_options<config> rows =
        joined({address_rows(), message_rows(), client_rows(), log_rows()});
    return rows;
}

outcome<config> read_config(const settings& chosen) {
    const bool udp = chosen.flag("udp");
    if (udp && chosen.has("listen"))
        return refuse(400, "--udp and --listen exclude each other; write --listen udp://HOST:PORT");
    config read;
    auto serving = read_serving_config(chosen, udp ? scheme::udp : scheme::tcp, {}, read);
    if (!serving) return std::unexpected(serving.error());
    if (auto bound = read_bound(option_rows(), chosen, read); !bound)
        return std::unexpected(bound.error());
    if (read.where.kind == scheme::udp && !chosen.given("rate-limit"))
        read.rate_limit = default_datagram_rate;
    if (read.takes_raw_http && !read.http_root.empty())
        return refuse(400,
                      "--http and --raw-http exclude each other: with --raw-http requests are "
                      "messages");
    if (auto ok = check_combinations(chosen, read); !ok) return std::unexpected(ok.error());
    return read;
}

outcome<> may_send(const config& chosen, std::string_view name, bool running) {
    if (!running)
        return refuse(409, fmt::format("{} is not running; `eddy start {}` first", name, name));
    if (chosen.mode == flow::in)
        return refuse(409, fmt::format("{} only receives (--mode in); `eddy edit {} --mode inout` "
                                       "changes that",
                                       name, name));
    return {};
}

}  // namespace eddy::runtime::server
