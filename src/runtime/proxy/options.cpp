// The table of a proxy's options, and the addresses of its backends.
#include "runtime/proxy/options.hpp"

#include "runtime/listening.hpp"
#include "runtime/serving/accept_options.hpp"
#include "runtime/serving/serving_rows.hpp"
#include "runtime/serving/threads.hpp"
#include "runtime/serving/tls_options.hpp"
#include "runtime/target.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

namespace eddy::runtime::proxy {
namespace {

using transport::scheme;

/// True when a connection to `backend` would come back to the proxy itself, without end, as far as
/// the texts of the addresses show.
bool is_itself(const transport::address& backend, const transport::address& where) {
    if (has_port(backend) && has_port(where)) {
        if (backend.port != where.port || where.port == 0) return false;
        const bool is_local =
            backend.host == this_machine || backend.host == "localhost" || backend.host == "::1";
        const bool serves_a_localhost = where.host == this_machine || where.host == "::1";
        return backend.host == where.host || (is_local && where.host.empty()) ||
               (backend.host == "localhost" && serves_a_localhost);
    }
    return backend.kind == where.kind && !backend.path.empty() && backend.path == where.path;
}

outcome<std::vector<transport::address>> read_backends(const settings& chosen,
                                                       const config& serving) {
    std::string_view rest = chosen.text("backend");
    if (rest.empty())
        return refuse(400,
                      "a proxy passes connections on; say where to by --backend HOST:PORT, or by a "
                      "URI such as tcp://HOST:PORT or unix:///PATH, several joined by commas");
    std::vector<transport::address> all;
    for (bool is_last = false; !is_last;) {
        const std::size_t end = std::min(rest.find(','), rest.size());
        auto one = read_target(rest.substr(0, end), "--backend");
        if (!one) return std::unexpected(one.error());
        if (std::ranges::find(all, *one) != all.end())
            return refuse(400, fmt::format("--backend names {} twice", one->to_string()));
        all.push_back(std::move(*one));
        if (all.size() > max_backends)
            return refuse(400, fmt::format("--backend takes at most {} addresses", max_backends));
        is_last = end == rest.size();
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    for (const transport::address& each : all) {
        if (is_itself(each, serving.where) || (serving.shared && is_itself(each, *serving.shared)))
            return refuse(400, fmt::format("--backend {} is the proxy itself: each connection "
                                           "would come back to it without end",
                                           each.to_string()));
    }
    return all;
}

using row = bound_option<config>;

/// The backends.
bound_options<config> backend_rows() {
    return {
        row::read_by(
            &config::backends,
            {.name = "backend",
             .value_name = "ADDRESS,...",
             .help =
                 "backends: HOST:PORT, :PORT for this machine, or a URI, tcp://HOST:PORT, "
                 "tls://HOST:PORT, unix:///PATH or shm:///PATH; at most 64, joined by commas, such "
                 "as 10.0.0.7:5432,10.0.0.8:5432. A change does not move existing connections",
             .live = true,
             .is_uri = true},
            read_backends),
        row::unbound({.name = "protocol",
                      .kind = option_kind::choice,
                      .value_name = "PROTOCOL",
                      .default_value = "tcp",
                      .help = "protocol: tcp forwards the bytes of any protocol unchanged, in both "
                              "directions. There are no others yet",
                      .choices = {"tcp"}}),
        row::choice(&config::balance,
                    {.name = "strategy",
                     .kind = option_kind::choice,
                     .value_name = "HOW",
                     .default_value = "round-robin",
                     .help = "choice of the backend: round-robin: one after another; "
                             "least-connections: the one with the fewest. If it accepts no "
                             "connection, each of the others is tried once",
                     .live = true},
                    {{"round-robin", strategy::round_robin},
                     {"least-connections", strategy::least_connections}}),
        row::bound(&config::connect_timeout, {.name = "connect-timeout",
                                              .kind = option_kind::duration,
                                              .value_name = "TIME",
                                              .default_value = "5s",
                                              .help = "time for a backend to accept a connection, "
                                                      "such as 500ms; then the next one is tried",
                                              .minimum = 1,
                                              .live = true}),
    };
}

/// Threads, and limits of clients.
bound_options<config> client_rows() {
    option limit = max_connections_option();
    limit.help = "clients at a time; further ones are reset";
    option keepalive = tcp_keepalive_option();
    keepalive.help =
        "have the kernel probe a TCP client, or backend, that is silent for this time, three "
        "times, and close the connection if it never answers: after twice the time in all; 0 is "
        "never";
    return {
        row::bound(&config::idle_timeout,
                   {.name = "idle-timeout",
                    .kind = option_kind::duration,
                    .value_name = "TIME",
                    .default_value = "10m",
                    .help = "close a client and its connection to the backend after this time "
                            "without a byte in either direction, such as 1h; 0 is never",
                    .live = true}),
        keepalive_row<config>(std::move(keepalive)),
        row::unbound(threads_option("threads that forward bytes; each client has one of them")),
        row::bound(&config::max_connections, std::move(limit)),
    };
}

}  // namespace

const bound_options<config>& option_rows() {
    static const bound_options<config> rows =
        joined({listening_rows<config>(
                    "serve on a URI instead: tcp://HOST:PORT, unix:///PATH or handoff:///PATH"),
                secure_rows<config>(), backend_rows(), client_rows()});
    return rows;
}

outcome<config> read_config(const settings& chosen) {
    config read;
    auto serving = read_serving_config(
        chosen, scheme::tcp, "a proxy needs a stream; write --listen tcp://HOST:PORT", read);
    if (!serving) return std::unexpected(serving.error());
    if (auto bound = read_bound(option_rows(), chosen, read); !bound)
        return std::unexpected(bound.error());
    return read;
}

}  // namespace eddy::runtime::proxy
