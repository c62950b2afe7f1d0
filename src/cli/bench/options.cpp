// Command lines of `eddy bench http` and `eddy bench ws`.
#include "cli/bench/options.hpp"

#include "base/text/text.hpp"
#include "cli/bench/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <exception>

namespace eddy::cli::bench {
namespace {

std::optional<target> refuse_url(std::string_view url, std::string_view plain,
                                 std::string_view why) {
    complain(fmt::format("\"{}\" is no URL for this: {}; write {}://HOST:PORT/PATH or {}s://...",
                         url, why, plain, plain));
    return std::nullopt;
}

}  // namespace

std::optional<target> read_url(std::string_view url, std::string_view plain) {
    target made;
    made.url = url;
    std::string_view rest = url;
    const std::size_t colon = rest.find("://");
    const std::string scheme = lower(rest.substr(0, colon == std::string_view::npos ? 0 : colon));
    if (scheme == std::string(plain) + "s")
        made.is_tls = true;
    else if (scheme != plain)
        return refuse_url(url, plain,
                          fmt::format("it must begin with {}:// or {}s://", plain, plain));
    rest.remove_prefix(colon + 3);

    const std::size_t slash = std::min(rest.find_first_of("/?"), rest.size());
    made.authority = rest.substr(0, slash);
    made.path = rest.substr(slash);
    if (!made.path.starts_with('/')) made.path.insert(0, "/");
    if (!http1::split_target("GET", made.path))
        return refuse_url(url, plain, "its path holds what must be written as %XX");

    std::string_view host = made.authority;
    std::string_view port;
    const std::size_t bracket = host.starts_with('[') ? host.find(']') : 0;
    if (bracket == std::string_view::npos) return refuse_url(url, plain, "a ] is missing");
    if (const std::size_t at = host.find(':', bracket); at != std::string_view::npos) {
        port = host.substr(at + 1);
        host = host.substr(0, at);
        made.port = 0;
        const auto [end, error] =
            std::from_chars(port.data(), port.data() + port.size(), made.port);
        if (error != std::errc{} || end != port.data() + port.size() || made.port == 0)
            return refuse_url(url, plain, "its port is none");
    } else {
        made.port = made.is_tls ? 443 : 80;
    }
    if (bracket > 0) host = host.substr(1, host.size() - 2);
    if (host.empty() || host.contains('@')) return refuse_url(url, plain, "it names no host");
    made.host = host;
    // A zone (%eth0) means something on this machine alone.
    if (bracket > 0) {
        const std::size_t zone = std::min(made.authority.find('%'), bracket);
        made.authority.erase(zone, bracket - zone);
    }
    return made;
}

std::vector<flag> load_flags() {
    std::vector<flag> flags = {
        {.name = "connections",
         .letter = 'c',
         .value_name = "N",
         .help = "connections",
         .default_value = "50"},
        {.name = "threads",
         .letter = 't',
         .value_name = "N",
         .help = "threads, each with a loop and a part of the connections",
         .default_value = "1"},
        {.name = "duration",
         .letter = 'd',
         .value_name = "SECONDS",
         .help = "duration of the run",
         .default_value = "10"},
        {.name = "requests",
         .letter = 'n',
         .value_name = "N",
         .help = "end after so many requests instead"},
        {.name = "warm-up",
         .value_name = "SECONDS",
         .help = "duration of the load before the run, not counted",
         .default_value = "1"},
        {.name = "rate",
         .letter = 'R',
         .value_name = "N",
         .help = "open loop: requests a second of all connections, planned at even times, from "
                 "which latencies count; without it each reply is followed by the next request"},
        {.name = "pipeline",
         .letter = 'P',
         .value_name = "N",
         .help = "requests under way on a connection",
         .default_value = "1"},
        {.name = "header",
         .letter = 'H',
         .value_name = "NAME:VALUE",
         .help = "a field of the request; may be repeated"},
        {.name = "no-verify", .help = "also count replies that differ from the first one"},
        {.name = "ca",
         .value_name = "FILE",
         .help = "authority of the server's certificate; else the system's list",
         .is_path = true},
        {.name = "insecure", .letter = 'k', .help = "accept any certificate"},
        {.name = "svg",
         .value_name = "FILE",
         .help = "draw the latencies by percentile",
         .is_path = true},
    };
    for (flag& each : common_flags()) flags.push_back(std::move(each));
    return flags;
}

bool read_load_options(const arguments& given, const target& to, load_options& into) {
    into.server.kind = to.is_tls ? transport::scheme::tls : transport::scheme::tcp;
    into.server.host = to.host;
    into.server.port = to.port;
    into.server.tls.ca = given.value("ca");
    if (given.is_set("insecure")) into.server.tls.verify = "none";
    std::uint64_t rate = 0;
    if (!read_io_backend(given, into.io_backend) ||
        !read_number(given, "connections", 1, 100'000, into.connections) ||
        !read_number(given, "threads", 1, 256, into.threads) ||
        !read_number(given, "pipeline", 1, 10'000, into.pipeline) ||
        !read_number(given, "requests", 1, 1'000'000'000'000, into.requests) ||
        !read_number(given, "rate", 1, 1'000'000'000, rate) ||
        !read_seconds(given, "duration", 0.01, 86'400, into.seconds) ||
        !read_seconds(given, "warm-up", 0, 3'600, into.warm_up) ||
        !read_number(given, "timeout", 1, 3'600, into.timeout_s) ||
        !read_number(given, "server-pid", 1, 1 << 22, into.server_pid))
        return false;
    into.rate = static_cast<double>(rate);
    const auto refuse = [](std::string_view why) {
        complain(why);
        return false;
    };
    if (given.has("requests") && given.has("duration"))
        return refuse("--requests and --duration exclude each other");
    if (!to.is_tls && (given.has("ca") || given.is_set("insecure")))
        return refuse("--ca and --insecure are for https:// and wss://");
    if (given.has("ca") && given.is_set("insecure"))
        return refuse("--ca and --insecure exclude each other");
    if (into.threads > into.connections)
        return refuse(fmt::format("{} threads have no use for {} connections; raise --connections",
                                  into.threads, into.connections));
    return true;
}

bool read_headers(const arguments& given, const target& to, http1::header_list& into) {
    for (const auto& [name, value] : given.values()) {
        if (name != "header") continue;
        const std::size_t colon = value.find(':');
        std::string_view text = std::string_view(value).substr(std::min(colon + 1, value.size()));
        while (text.starts_with(' ')) text.remove_prefix(1);
        const std::string field = value.substr(0, colon);
        for (const std::string_view own :
             {"content-length", "transfer-encoding", "connection", "upgrade", "sec-websocket-key",
              "sec-websocket-version"}) {
            if (!is_word(field, own)) continue;
            complain(fmt::format("--header cannot set {}: it follows from the other flags", field));
            return false;
        }
        if (colon == std::string::npos || !into.add(field, text)) {
            complain(fmt::format("--header takes NAME:VALUE, not \"{}\"", value));
            return false;
        }
    }
    if (into.contains("Host")) return true;
    if (into.add("Host", to.authority)) return true;
    complain(fmt::format("\"{}\" is no host that a request can name", to.authority));
    return false;
}

bool can_be_prepared(const load_options& wanted, std::size_t size, std::string_view whats) {
    if (size * wanted.pipeline <= prepared_limit) return true;
    complain(fmt::format("{} {} of {} bytes are more than {} MiB; lower --pipeline",
                         wanted.pipeline, whats, size, prepared_limit >> 20));
    return false;
}

int run_bench(const context& with, const arguments& given, std::string_view plain,
              protocol_maker make) {
    const auto to = read_url(given.positional()[0], plain);
    load_options wanted;
    if (!to || !read_load_options(given, *to, wanted)) return exit_bad_input;
    const std::unique_ptr<protocol> speaks = make(given, *to, wanted);
    if (!speaks) return exit_bad_input;
    progress_line progress(wants_progress(given));
    try {
        report made{std::string(plain), to->url, wanted, {}};
        made.result = run_load(wanted, *speaks, progress);
        progress.clear();
        print(with.json ? made.json() : made.text());
        if (given.has("svg")) write_report(made.figure(), std::string(given.value("svg")));
        return made.is_right() ? exit_ok : exit_fatal;
    } catch (const std::exception& error) {
        progress.clear();
        complain(error.what());
        return exit_fatal;
    }
}

}  // namespace eddy::cli::bench
