// The table of the server's options, and their contradictions.
#include "runtime/server/options.hpp"

#include "base/files/regular_file.hpp"
#include "runtime/listening.hpp"
#include "runtime/options/bound_options.hpp"
#include "runtime/server_address.hpp"
#include "runtime/serving/accept_options.hpp"
#include "runtime/serving/serving_rows.hpp"
#include "runtime/serving/shm_options.hpp"
#include "runtime/serving/threads.hpp"
#include "runtime/target.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

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

/// Options of the master and of the cache.
outcome<> check_commands(const settings& chosen, const config& read) {
    if (read.mode != flow::master) {
        return without_effect(chosen, fmt::format("--mode {}", chosen.text("mode")),
                              "no client is the master",
                              {"master-password", "master-password-file", "master-forward"});
    }
    if (chosen.given("master-password") && chosen.given("master-password-file"))
        return refuse(400, "--master-password and --master-password-file exclude each other");
    return {};
}

outcome<> check_framing(const settings& chosen, const config& read) {
    if (read.messages != framing::raw) return {};
    if (auto ok = without_effect(chosen, "--framing raw", "there are no lines", {"max-line"}); !ok)
        return ok;
    if (read.mode == flow::master)
        return refuse(400,
                      "--mode master and --framing raw exclude each other: the password comes "
                      "in a line");
    return without_effect(chosen, "--framing raw", "a command is a line", {"cache"});
}

/// --mode in: lines go to the journal.
outcome<> check_in(const settings& chosen, const config& read) {
    if (read.mode != flow::in) return {};
    if (!read.script) {
        if (auto ok = without_effect(chosen, "--mode in", "clients get nothing", {"upstream"}); !ok)
            return ok;
    }
    return without_effect(chosen, "--mode in", "lines go to the journal anyway", {"log-traffic"});
}

outcome<> check_combinations(const settings& chosen, const config& read) {
    if (read.where.kind == scheme::udp) {
        if (auto ok = without_effect(chosen, "UDP", "a datagram is a message by itself",
                                     {"framing", "max-line"});
            !ok)
            return ok;
        if (auto ok = without_effect(chosen, "UDP", "HTTP needs a stream",
                                     {"http", "http-inject", "http-cache", "raw-http", "origins"});
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
        if (auto ok = without_effect(chosen, "UDP", "clients get no answers", {"cache"}); !ok)
            return ok;
        if (read.mode == flow::master)
            return refuse(400,
                          "--mode master and UDP exclude each other: a datagram's sender can "
                          "be forged");
    }
    if (read.takes_raw_http) {
        if (auto ok =
                without_effect(chosen, "--raw-http", "WebSocket is not recognised", {"origins"});
            !ok)
            return ok;
    }
    // Commands to a cache are answered in each mode.
    const bool has_answers = !read.cache.empty();
    if (read.mode == flow::out && !has_answers) {
        if (auto ok = without_effect(
                chosen, "--mode out", "what clients send is discarded",
                {"framing", "max-line", "rate-limit", "global-rate-limit", "log", "log-traffic"});
            !ok)
            return ok;
    }
    if (read.mode == flow::in && !has_answers) {
        if (auto ok = without_effect(chosen, "--mode in", "clients get nothing",
                                     {"slow-reader", "max-queue"});
            !ok)
            return ok;
    }
    if (auto ok = check_in(chosen, read); !ok) return ok;
    if (auto ok = check_framing(chosen, read); !ok) return ok;
    if (auto ok = check_commands(chosen, read); !ok) return ok;
    const bool passes_on = read.mode == flow::inout || read.mode == flow::master;
    const std::size_t prefix = read.mode == flow::master ? longest_forward_prefix : 0;
    if (read.where.kind != scheme::udp && passes_on && read.messages == framing::line &&
        read.max_queue / 2 <= read.max_line + prefix) {
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

/// Checks each address as a client's --target.
outcome<std::vector<std::string>> read_upstreams(const settings& chosen, const config& so_far) {
    std::vector<std::string> all = chosen.list("upstream");
    if (all.size() > max_upstreams)
        return refuse(400, fmt::format("--upstream: at most {} servers", max_upstreams));
    for (const std::string& each : all) {
        const auto where = read_server_address(each, "--upstream");
        if (!where) return std::unexpected(where.error());
        if (so_far.where.kind == scheme::udp)
            return refuse(400, "--upstream and UDP exclude each other: take a server over TCP");
        if (auto fine = check_target_files(where->where, "--upstream"); !fine)
            return std::unexpected(std::move(fine.error()));
    }
    return all;
}

outcome<std::string> read_cache_name(const settings& chosen, const config& /*so_far*/) {
    const std::string& name = chosen.text("cache");
    const bool is_name = std::ranges::all_of(name, [](unsigned char each) {
        return std::isalnum(each) != 0 || each == '.' || each == '_' || each == '-';
    });
    if (!is_name)
        return refuse(400,
                      fmt::format("--cache cannot be \"{}\": write the name of a cache", name));
    return name;
}

/// Reads the password of its source.
outcome<std::string> find_password(const config& of) {
    if (!of.master_password.empty()) return of.master_password;
    if (of.master_password_file.empty()) {
        const char* const given = std::getenv(master_password_variable);
        if (given != nullptr && *given != '\0') return given;
        return refuse(400, fmt::format("--mode master needs a password: give a file with it, "
                                       "--master-password-file FILE, or set {} for the daemon",
                                       master_password_variable));
    }
    const std::string& path = of.master_password_file;
    auto text = read_regular(path, max_master_password + 2);
    if (!text && text.error() != errc::limit_reached)
        return refuse(400, fmt::format("--master-password-file: {} cannot be read: {}", path,
                                       text.error().message()));
    if (!text || text->empty())
        return refuse(400, fmt::format("--master-password-file: {} has no password of at most {} "
                                       "bytes",
                                       path, max_master_password));
    if (text->ends_with('\n')) text->pop_back();
    if (text->ends_with('\r')) text->pop_back();
    return std::move(*text);
}

/// The password comes in a line, so it must be one.
outcome<std::string> read_secret(const config& of) {
    auto found = find_password(of);
    if (!found) return found;
    if (found->empty() || found->size() > max_master_password ||
        found->find_first_of("\r\n") != std::string::npos)
        return refuse(400, fmt::format("the password of the master must be one line of at most {} "
                                       "bytes",
                                       max_master_password));
    if (found->size() + std::string_view("master \r").size() > of.max_line)
        return refuse(400, "the password of the master is longer than --max-line");
    return found;
}

using row = bound_option<config>;

/// Addresses of its listeners.
bound_options<config> address_rows() {
    return joined({listening_rows<config>(
                       "serve on a URI instead: tcp://HOST:PORT, udp://HOST:PORT, unix:///PATH, "
                       "shm:///PATH, shm://:PORT or handoff:///PATH"),
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
                     "journal; out: none, and clients get only messages of `eddy send`; master: "
                     "the messages of one client, which gives a password in a line `master "
                     "PASSWORD`, reach all others",
             .live = true},
            {{"inout", flow::inout},
             {"in", flow::in},
             {"out", flow::out},
             {"master", flow::master}}),
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
        row::bound(&config::injects_client,
                   {.name = "http-inject",
                    .kind = option_kind::flag,
                    .help = "with --http: HTML pages load a small WebSocket client, "
                            "/_eddy/eddy-client.js, by a script tag before </body>"}),
        row::bound(&config::caches_files,
                   {.name = "http-cache",
                    .kind = option_kind::flag,
                    .help = "with --http: keep files of up to 1 MiB in memory, 64 MiB of each "
                            "thread; a changed file is noticed within a second"}),
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

/// The master, and commands.
bound_options<config> command_rows() {
    return {
        row::whole_path(
            &config::master_password_file,
            {.name = "master-password-file",
             .value_name = "FILE",
             .help = "file whose one line is the password for --mode master; `eddy reload` reads "
                     "it again. Without a file and --master-password it is "
                     "$EDDY_MASTER_PASSWORD of the daemon",
             .live = true,
             .is_path = true}),
        row::bound(&config::master_password,
                   {.name = "master-password",
                    .value_name = "PASSWORD",
                    .help = "the password itself: other users of this machine see it in the list "
                            "of processes while the command runs",
                    .live = true,
                    .shown = [](const std::string&) { return std::string(hidden); },
                    .former_name = "master-pw"}),
        row::bound(&config::forwards_to_master,
                   {.name = "master-forward",
                    .kind = option_kind::flag,
                    .help = "with --mode master: the master gets the messages of the others, each "
                            "behind the client's number, as \"[7] hello\"; else they are dropped",
                    .live = true}),
        row::read_by(&config::upstreams,
                     {.name = "upstream",
                      .letter = 'u',
                      .kind = option_kind::list,
                      .value_name = "ADDRESS",
                      .help = "server that this one connects to, as a client's --target: its "
                              "messages go to all clients, as those of `eddy send`; may be given "
                              "again. A script has on_upstream and upstream_send",
                      .is_uri = true},
                     read_upstreams),
        row::read_by(&config::cache,
                     {.name = "cache",
                      .value_name = "NAME",
                      .help = "cache of this daemon whose data commands clients have: the answer "
                              "to a line such as \"cache get k\" goes to its sender alone",
                      .live = true},
                     read_cache_name),
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
        accept_proxy_row<config>(),
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
    static const bound_options<config> rows = joined({address_rows(),
                                                      message_rows(),
                                                      command_rows(),
                                                      client_rows(),
                                                      log_rows(),
                                                      script_rows<config>(),
                                                      {script_body_row<config>()}});
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
    if (read.http_root.empty()) {
        for (const std::string_view name : {"http-inject", "http-cache"})
            if (chosen.given(name))
                return refuse(400, fmt::format("--{} has no effect without --http DIR", name));
    }
    if (auto ok = check_combinations(chosen, read); !ok) return std::unexpected(ok.error());
    if (auto ok = read_script_file(chosen, read.script, true); !ok)
        return std::unexpected(ok.error());
    // on_master_auth may decide instead.
    const bool has_password = !read.script || !read.master_password.empty() ||
                              !read.master_password_file.empty() ||
                              std::getenv(master_password_variable) != nullptr;
    if (read.mode == flow::master && has_password) {
        auto secret = read_secret(read);
        if (!secret) return std::unexpected(std::move(secret.error()));
        read.secret = std::move(*secret);
    }
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
