// The table of a client's options, and their contradictions.
#include "runtime/client/options.hpp"

#include "runtime/target.hpp"

#include <fmt/format.h>

#include <initializer_list>
#include <string_view>
#include <utility>

namespace eddy::runtime::client {
namespace {

/// The kernel's limit on the idle time of its probes (TCP_KEEPIDLE).
constexpr std::int64_t longest_ping_ns = std::int64_t{32'767} * 1'000'000'000;

using row = bound_option<config>;

outcome<server_address> read_server(const settings& chosen, const config& /*so_far*/) {
    const std::string& text = chosen.text("target");
    if (text.empty())
        return refuse(400,
                      "a client connects to a server; say which by --target HOST:PORT, or a URI "
                      "such as udp://HOST:PORT, unix:///PATH or wss://HOST/PATH");
    return read_server_address(text);
}

outcome<std::optional<std::uint64_t>> read_reconnect(const settings& chosen,
                                                     const config& /*so_far*/) {
    if (!chosen.has("reconnect")) return std::nullopt;
    return static_cast<std::uint64_t>(chosen.number("reconnect"));
}

bound_options<config> connection_rows() {
    return {
        row::read_by(&config::target,
                     {.name = "target",
                      .letter = 't',
                      .value_name = "ADDRESS",
                      .help = "server to connect to: HOST:PORT, :PORT for this machine, or a URI, "
                              "tcp://HOST:PORT, tls://HOST:PORT?ca=FILE, udp://HOST:PORT, "
                              "unix:///PATH, shm:///PATH, ws://HOST/PATH or "
                              "wss://HOST/PATH#ca=FILE",
                      .is_uri = true},
                     read_server),
        row::read_by(&config::reconnect,
                     {.name = "reconnect",
                      .kind = option_kind::integer,
                      .value_name = "N",
                      .help = "attempts in a row to connect again, with pauses that grow from 0.1 "
                              "to 10 s, before it gives up; 0 is none. Without this option it "
                              "tries for ever",
                      .maximum = 1'000'000'000,
                      .live = true},
                     read_reconnect),
        row::bound(&config::connect_timeout,
                   {.name = "connect-timeout",
                    .kind = option_kind::duration,
                    .value_name = "TIME",
                    .default_value = "5s",
                    .help = "time for the server to accept a connection, such as 500ms; of a "
                            "WebSocket with its handshake",
                    .minimum = 1,
                    .live = true}),
        row::bound(&config::ping,
                   {.name = "ping",
                    .kind = option_kind::duration,
                    .value_name = "TIME",
                    .default_value = "60s",
                    .help = "probe a server that is silent for this time, and connect again if it "
                            "does not answer: by a ping over WebSocket, by the kernel's keepalive "
                            "over TCP and TLS; 0 is never. A change applies to the next connection",
                    .maximum = longest_ping_ns,
                    .live = true}),
    };
}

bound_options<config> message_rows() {
    return {
        row::choice(
            &config::mode,
            {.name = "mode",
             .kind = option_kind::choice,
             .value_name = "MODE",
             .default_value = "inout",
             .help = "directions of messages: inout: both; in: only from the server, and `eddy "
                     "send` is refused; out: only to the server, and what it sends is discarded",
             .live = true},
            {{"inout", flow::inout}, {"in", flow::in}, {"out", flow::out}}),
        row::choice(&config::messages,
                    {.name = "framing",
                     .kind = option_kind::choice,
                     .value_name = "HOW",
                     .default_value = "line",
                     .help = "what a message is: a line of text, or raw: the bytes as they arrive, "
                             "and as `eddy send` has them. Datagrams and WebSockets have messages "
                             "of their own"},
                    {{"line", framing::line}, {"raw", framing::raw}}),
        row::bound(&config::max_line,
                   {.name = "max-line",
                    .kind = option_kind::size,
                    .value_name = "SIZE",
                    .default_value = "64KiB",
                    .help = "longest received line, datagram or WebSocket message, such as 4096, "
                            "64k or 1M; a longer one is cut, and counts as an error",
                    .minimum = 1,
                    .maximum = std::int64_t{1} << 30,
                    .live = true}),
        row::bound(nested(&config::queue, &outbox_limits::max_bytes),
                   {.name = "queue",
                    .kind = option_kind::size,
                    .value_name = "SIZE",
                    .default_value = "1MiB",
                    .help = "bytes of messages that may wait while there is no connection, or for "
                            "a server that reads slowly",
                    .minimum = 1,
                    .maximum = std::int64_t{1} << 34,
                    .live = true}),
        row::choice(nested(&config::queue, &outbox_limits::policy),
                    {.name = "queue-policy",
                     .kind = option_kind::choice,
                     .value_name = "WHAT",
                     .default_value = "refuse",
                     .help = "what to do when --queue is full: refuse: `eddy send` fails; "
                             "drop-oldest: the oldest messages make room; drop-newest: the new "
                             "message is dropped. Dropped ones are counted",
                     .live = true},
                    {{"refuse", queue_policy::refuse},
                     {"drop-oldest", queue_policy::drop_oldest},
                     {"drop-newest", queue_policy::drop_newest}}),
        row::choice(&config::has_journal,
                    {.name = "journal",
                     .kind = option_kind::choice,
                     .value_name = "yes|no",
                     .default_value = "yes",
                     .help = "write received messages to the journal, which `eddy logs` shows; "
                             "`eddy attach` shows them in either case",
                     .live = true},
                    {{"yes", true}, {"no", false}}),
    };
}

/// Refuses options that would have no effect beside `reason`.
outcome<> without_effect(const settings& chosen, std::string_view reason, std::string_view why,
                         std::initializer_list<std::string_view> options) {
    for (const std::string_view name : options) {
        if (chosen.given(name))
            return refuse(400,
                          fmt::format("--{0} has no effect with {1}: {2}; leave it out, or take it "
                                      "back with --unset {0}",
                                      name, reason, why));
    }
    return {};
}

outcome<> check_combinations(const settings& chosen, const config& read) {
    outcome<> fine;
    const auto check = [&](bool applies, std::string_view reason, std::string_view why,
                           std::initializer_list<std::string_view> options) {
        if (applies && fine) fine = without_effect(chosen, reason, why, options);
    };
    const server_address& to = read.target;
    const std::string kind = fmt::format("{}://", transport::to_string(to.where.kind));
    check(to.is_datagram(), "UDP", "a datagram is a message by itself", {"framing"});
    check(to.is_websocket(), "WebSocket", "it has messages of its own", {"framing"});
    check(!to.has_keepalive(), kind, "a silent server cannot be probed", {"ping"});
    check(to.is_stream() && read.messages == framing::raw, "--framing raw", "there are no lines",
          {"max-line"});
    check(read.mode == flow::out, "--mode out", "what the server sends is discarded",
          {"max-line", "journal"});
    check(read.mode == flow::in, "--mode in", "nothing is sent", {"queue", "queue-policy"});
    return fine;
}

}  // namespace

const bound_options<config>& option_rows() {
    static const bound_options<config> rows =
        joined({connection_rows(), message_rows(), script_rows<config>()});
    return rows;
}

outcome<config> read_config(const settings& chosen) {
    config read;
    if (auto bound = read_bound(option_rows(), chosen, read); !bound)
        return std::unexpected(std::move(bound.error()));
    if (auto fine = check_combinations(chosen, read); !fine)
        return std::unexpected(std::move(fine.error()));
    if (auto fine = read_script_file(chosen, read.script); !fine)
        return std::unexpected(std::move(fine.error()));
    return read;
}

outcome<> check_files(const config& of) { return check_target_files(of.target.where, "--target"); }

}  // namespace eddy::runtime::client
