// The table of a proxy's options, and the addresses of its backends.
#include "runtime/proxy/options.hpp"

#include "http/alpn.hpp"
#include "net/network.hpp"
#include "proxy/http/request_fields.hpp"
#include "runtime/listening.hpp"
#include "runtime/serving/accept_options.hpp"
#include "runtime/serving/request_rows.hpp"
#include "runtime/serving/serving_rows.hpp"
#include "runtime/serving/threads.hpp"
#include "runtime/serving/tls_options.hpp"
#include "runtime/target.hpp"
#include "wire/http1/authority.hpp"
#include "wire/http1/forwarding.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

namespace eddy::runtime::proxy {
namespace {

using eddy::http::client_limits;
using eddy::http::session_limits;
using eddy::proxy::balancing;
using eddy::proxy::field_setting;
using eddy::proxy::forwarding_rules;
using eddy::proxy::hash_source;
using eddy::proxy::strategy;
using transport::scheme;

/// Name servers at most.
constexpr std::size_t max_name_servers = 8;

/// Refuses sources that are the proxy itself.
outcome<> check_others(const std::vector<backend_source>& all, const config& serving,
                       std::string_view flag) {
    for (const backend_source& each : all) {
        if (!each.where) continue;
        if (is_itself(*each.where, serving.where) ||
            (serving.shared && is_itself(*each.where, *serving.shared)))
            return refuse(400, fmt::format("{} {} is the proxy itself: each connection would come "
                                           "back to it without end",
                                           flag, each.name));
    }
    return {};
}

outcome<std::vector<backend_source>> read_backends(const settings& chosen, const config& serving) {
    const std::string_view text = chosen.text("backend");
    if (text.empty() && chosen.list("route").empty() && chosen.list("redirect").empty() &&
        !chosen.given("https-redirect"))
        return refuse(
            400,
            "a proxy passes clients on; say where to by --backend HOST:PORT, the name of a "
            "runtime, or a URI such as tcp://HOST:PORT or unix:///PATH, several joined by "
            "commas");
    auto all = read_sources(text, "--backend", serving.carrier());
    if (!all) return all;
    if (!serving.sentinels.all.empty())
        if (auto named = name_masters(*all, "--backend"); !named)
            return std::unexpected(std::move(named.error()));
    if (auto fine = check_others(*all, serving, "--backend"); !fine)
        return std::unexpected(std::move(fine.error()));
    return all;
}

outcome<std::vector<backend_source>> read_backups(const settings& chosen, const config& serving) {
    auto all = read_sources(chosen.text("backup"), "--backup", serving.carrier());
    if (!all) return all;
    for (backend_source& each : *all) each.is_backup = true;
    if (!serving.sentinels.all.empty())
        if (auto named = name_masters(*all, "--backup"); !named)
            return std::unexpected(std::move(named.error()));
    if (auto fine = check_others(*all, serving, "--backup"); !fine)
        return std::unexpected(std::move(fine.error()));
    return all;
}

/// The parts of a text that commas separate; none of an empty one.
std::vector<std::string> split(std::string_view text) {
    std::vector<std::string> all;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find(','), text.size());
        if (end > 0) all.emplace_back(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return all;
}

outcome<std::vector<transport::address>> read_sentinels(const settings& chosen,
                                                        const config& /*of*/) {
    std::vector<transport::address> all;
    for (const std::string& each : split(chosen.text("sentinel"))) {
        auto read = read_target(each, "--sentinel");
        if (!read) return std::unexpected(std::move(read.error()));
        if (std::ranges::find(all, *read) != all.end())
            return refuse(400, fmt::format("--sentinel names {} twice", read->to_string()));
        all.push_back(std::move(*read));
    }
    if (all.size() > eddy::proxy::max_sentinels)
        return refuse(
            400, fmt::format("--sentinel takes at most {} addresses", eddy::proxy::max_sentinels));
    return all;
}

/// Most bytes of content; none at 0.
outcome<std::uint64_t> read_max_body(const settings& chosen, const config& /*of*/) {
    const std::int64_t given = chosen.number("max-body");
    return given == 0 ? UINT64_MAX : static_cast<std::uint64_t>(given);
}

/// Names of backends, in any form in which --backend takes them.
outcome<std::vector<std::string>> read_drained(const settings& chosen, const config& of) {
    std::vector<std::string> all = split(chosen.text("drain-backend"));
    for (std::string& each : all)
        if (const auto read = read_sources(each, "--drain-backend", of.carrier()))
            each = (*read)[0].name;
    return all;
}

/// Refuses to drain what is no backend: its machine may be switched off, as it seems drained.
/// Members of groups and of services are known only when it runs.
outcome<> check_drained(const config& of) {
    std::vector<backend_source> all = of.all_backends();
    for (const route_source& each : of.routes)
        all.insert(all.end(), each.backends.begin(), each.backends.end());
    for (const std::string& each : of.drained) {
        const bool may_be_one = std::ranges::any_of(all, [&](const backend_source& its) {
            // An address of a host in DNS is behind its name.
            return each == its.name || each.starts_with(its.name + "/") || !its.service.empty() ||
                   // Runtimes of other members are called MEMBER/NAME.
                   (its.name.starts_with('@') && each.find(':') == std::string::npos &&
                    std::ranges::count(each, '/') <= 1);
        });
        if (may_be_one) continue;
        std::string known;
        for (const backend_source& its : all) known += (known.empty() ? "" : ", ") + its.name;
        return refuse(400, fmt::format("--drain-backend {} is no backend of this proxy; they are "
                                       "{}",
                                       each, known));
    }
    return {};
}

/// Address of a name server; its port is 53 where none is given.
bool is_name_server(const std::string& text) {
    if (text == "*") return false;
    if (endpoint::ip(text, 0)) return true;
    const auto read = transport::parse("udp://" + text);
    return read && !read->host.empty() && read->port != 0 && endpoint::ip(read->host, 0);
}

outcome<std::string> read_name_servers(const settings& chosen, const config& /*of*/) {
    const std::vector<std::string> all = split(chosen.text("resolver"));
    for (const std::string& each : all)
        if (!is_name_server(each))
            return refuse(400, fmt::format("--resolver {}: write the address of a name server, "
                                           "such as 10.0.0.1, 10.0.0.1:5353 or [2001:db8::1]:53",
                                           each));
    if (all.size() > max_name_servers)
        return refuse(400, fmt::format("--resolver takes at most {} addresses", max_name_servers));
    return chosen.text("resolver");
}

/// The first and the last good status: "200" or "200-399".
outcome<std::pair<int, int>> read_health_status(const settings& chosen, const config& /*of*/) {
    const std::string& text = chosen.text("health-status");
    const auto number = [](std::string_view digits) {
        int read = 0;
        const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), read);
        return end.ec == std::errc() && end.ptr == digits.data() + digits.size() ? read : 0;
    };
    const std::size_t dash = std::min(text.find('-'), text.size());
    const int first = number(std::string_view(text).substr(0, dash));
    const int last = dash == text.size() ? first : number(std::string_view(text).substr(dash + 1));
    if (first < 200 || last > 599 || first > last)
        return refuse(400, fmt::format("--health-status {}: write a status, such as 204, or two "
                                       "from 200 to 599, such as 200-399",
                                       text));
    return std::pair(first, last);
}

outcome<std::string> read_health_host(const settings& chosen, const config& /*of*/) {
    const std::string& host = chosen.text("health-host");
    if (!host.empty() && !http1::is_authority(host))
        return refuse(400,
                      fmt::format("--health-host {} is no host: write NAME or NAME:PORT", host));
    return host;
}

outcome<std::string> read_health_path(const settings& chosen, const config& /*of*/) {
    const std::string& path = chosen.text("health-path");
    if (!http1::split_target("GET", path) || !path.starts_with('/'))
        return refuse(400, "--health-path is a path such as /health");
    return path;
}

outcome<std::vector<network>> read_trusted(const settings& chosen, const config& /*of*/) {
    return read_networks(chosen.text("trust"), "--trust");
}

outcome<std::uint32_t> read_slow_factor(const settings& chosen, const config& /*of*/) {
    const std::int64_t factor = chosen.number("eject-slow");
    if (factor == 1)
        return refuse(400,
                      "--eject-slow is 2 or more, or 0 for never: each backend is about as "
                      "fast as the others");
    return static_cast<std::uint32_t>(factor);
}

outcome<std::string> read_host(const settings& chosen, const config& /*of*/) {
    const std::string& host = chosen.text("host");
    if (!host.empty() && !http1::is_authority(host))
        return refuse(400, fmt::format("--host {} is no host: write NAME or NAME:PORT", host));
    return host;
}

outcome<std::string> read_via(const settings& chosen, const config& /*of*/) {
    const std::string& name = chosen.text("via");
    if (name == "-") return std::string();
    if (!http1::is_token(name)) return refuse(400, "--via is a name without spaces, or - for none");
    return name;
}

outcome<std::string> read_sticky(const settings& chosen, const config& /*of*/) {
    const std::string& name = chosen.text("sticky");
    if (!name.empty() && !http1::is_token(name))
        return refuse(400, "--sticky is the name of a cookie, such as backend");
    return name;
}

outcome<hash_source> read_hash_source(const settings& chosen, const config& /*of*/) {
    const std::string& text = chosen.text("hash-by");
    using kind = hash_source::kind;
    if (text == "client") return hash_source{};
    if (text == "path") return hash_source{kind::path};
    const std::size_t colon = text.find(':');
    const std::string name = colon == std::string::npos ? "" : text.substr(colon + 1);
    if (http1::is_token(name) && text.starts_with("field:")) return hash_source{kind::field, name};
    if (http1::is_token(name) && text.starts_with("cookie:"))
        return hash_source{kind::cookie, name};
    return refuse(400, "--hash-by is client, path, field:NAME or cookie:NAME");
}

outcome<std::vector<field_setting>> read_fields(const settings& chosen, std::string_view option) {
    std::vector<field_setting> all;
    for (const std::string& each : chosen.list(option)) {
        const std::size_t colon = std::min(each.find(':'), each.size());
        field_setting made{each.substr(0, colon), each.substr(std::min(colon + 1, each.size()))};
        made.value.erase(0, std::min(made.value.find_first_not_of(' '), made.value.size()));
        if (!http1::is_token(made.name) || !http1::is_field_value(made.value))
            return refuse(400,
                          fmt::format("--{} \"{}\": write NAME: VALUE, such as X-Frame-Options: "
                                      "DENY",
                                      option, each));
        if (!eddy::proxy::is_settable_field(made.name))
            return refuse(
                400,
                fmt::format("--{}: the proxy decides about {} itself{}", option, made.name,
                            http1::equal_ignoring_case(made.name, "Host") ? "; use --host" : ""));
        all.push_back(std::move(made));
    }
    return all;
}

outcome<std::vector<field_setting>> read_request_fields(const settings& chosen,
                                                        const config& /*of*/) {
    return read_fields(chosen, "request-field");
}

outcome<std::vector<field_setting>> read_response_fields(const settings& chosen,
                                                         const config& /*of*/) {
    return read_fields(chosen, "response-field");
}

outcome<std::vector<route_source>> read_routes(const settings& chosen, const config& serving) {
    std::vector<route_source> all;
    for (const std::string& each : chosen.list("route")) {
        auto read = serving.speaks == protocol::http ? read_route(each) : read_tls_route(each);
        if (!read) return std::unexpected(std::move(read.error()));
        if (auto fine = check_others(read->backends, serving, "--route"); !fine)
            return std::unexpected(std::move(fine.error()));
        all.push_back(std::move(*read));
    }
    return all;
}

outcome<std::vector<route_source>> read_redirects(const settings& chosen, const config& of) {
    std::vector<route_source> all;
    for (const std::string& each : chosen.list("redirect")) {
        auto read = read_redirect(each);
        if (!read) return std::unexpected(std::move(read.error()));
        all.push_back(std::move(*read));
    }
    const std::size_t count = all.size() + of.routes.size();
    if (count >= eddy::proxy::max_routes)
        return refuse(400, fmt::format("there are {} routes and redirections; at most {} may be",
                                       count, eddy::proxy::max_routes - 1));
    const auto at = [&](const route_source& each) {
        return fmt::format("{}{}{}", each.by.host, each.by.path, each.alpn);
    };
    std::vector<std::string> places;
    for (const route_source& each : of.routes) places.push_back(at(each));
    for (const route_source& each : all) places.push_back(at(each));
    std::ranges::sort(places);
    if (const auto twice = std::ranges::adjacent_find(places); twice != places.end())
        return refuse(400, fmt::format("two routes or redirections are for {}", *twice));
    return all;
}

outcome<std::vector<error_page_source>> read_error_pages(const settings& chosen,
                                                         const config& /*of*/) {
    return read_error_page_sources(chosen.list("error-page"));
}

using row = bound_option<config>;

bound_options<config> protocol_rows() {
    return {row::choice(&config::speaks,
                        {.name = "protocol",
                         .kind = option_kind::choice,
                         .value_name = "PROTOCOL",
                         .default_value = "tcp",
                         .help = "tcp forwards the bytes of any protocol unchanged, in both "
                                 "directions; http forwards requests, each to the backend that is "
                                 "chosen for it, over kept connections, and WebSockets"},
                        {{"tcp", protocol::tcp}, {"http", protocol::http}})};
}

/// Header for backends. It names the client of a connection, and HTTP's are shared by many.
bound_option<config> send_proxy_row() {
    using eddy::proxy_protocol::version;
    return row::read_by(
        &config::announces,
        {.name = "send-proxy",
         .kind = option_kind::choice,
         .value_name = "VERSION",
         .help = "tcp: begin each connection to a backend with a header of the PROXY "
                 "protocol, which has the client's address: v1, a line of text, or "
                 "v2, binary. All backends must read it",
         .choices = {"v1", "v2"},
         .live = true},
        [](const settings& chosen, const config&) {
            outcome<std::optional<version>> none;
            if (!chosen.has("send-proxy")) return none;
            return outcome<std::optional<version>>(
                chosen.text("send-proxy") == "v1" ? version::text : version::binary);
        });
}

/// Name servers for the names of backends.
bound_option<config> resolver_row() {
    return row::read_by(&config::name_servers,
                        {.name = "resolver",
                         .value_name = "ADDRESS,...",
                         .help = "name servers for the names of backends, such as 10.0.0.1 or "
                                 "10.0.0.1:5353; by default those of /etc/resolv.conf",
                         .live = true},
                        read_name_servers);
}

/// Sentinels, for the masters among the backends: before these.
bound_options<config> sentinel_rows() {
    using eddy::proxy::sentinel_group;
    return {row::read_by(nested(&config::sentinels, &sentinel_group::all),
                         {.name = "sentinel",
                          .value_name = "ADDRESS,...",
                          .help = "Redis's Sentinels, HOST:PORT or tls://HOST:PORT, such as "
                                  "10.0.0.1:26379,10.0.0.2:26379: the backend @NAME-master is the "
                                  "master that they call NAME, and clients of the one before are "
                                  "closed when it changes",
                          .live = true,
                          .is_uri = true},
                         read_sentinels),
            row::bound(nested(&config::sentinels, &sentinel_group::password),
                       {.name = "sentinel-password",
                        .value_name = "PASSWORD",
                        .help = "password for the Sentinels",
                        .live = true,
                        .shown = [](const std::string&) { return std::string(hidden); }})};
}

bound_option<config> local_first_row() {
    return row::bound(&config::is_local_first,
                      {.name = "local-first",
                       .kind = option_kind::flag,
                       .help = "of groups, runtimes of other members of the cluster get clients "
                               "only while no backend of this daemon takes any",
                       .live = true});
}

/// The backends.
bound_options<config> backend_rows() {
    return {
        row::read_by(
            &config::backends,
            {.name = "backend",
             .value_name = "ADDRESS,...",
             .help =
                 "backends: HOST:PORT, :PORT for this machine, a runtime's name, or a URI, "
                 "tcp://HOST:PORT, tls://HOST:PORT, unix:///PATH or shm:///PATH; at most 64, "
                 "joined "
                 "by commas, such as 10.0.0.7:5432,10.0.0.8:5432; with *3 behind it one gets three "
                 "times as many clients. Each address of a name in DNS is a backend; srv://NAME "
                 "names SRV records. A change does not move existing connections",
             .live = true,
             .is_uri = true},
            read_backends),
        row::read_by(&config::backups,
                     {.name = "backup",
                      .value_name = "ADDRESS,...",
                      .help = "backends that get clients only while no other takes any",
                      .live = true,
                      .is_uri = true},
                     read_backups),
        row::read_by(&config::drained,
                     {.name = "drain-backend",
                      .value_name = "NAME,...",
                      .help = "backends, as --backend or `eddy stats` names them, that get no new "
                              "clients; present ones stay",
                      .live = true},
                     read_drained),
        local_first_row(),
        row::choice(nested(&config::balance, &balancing::chosen),
                    {.name = "strategy",
                     .kind = option_kind::choice,
                     .value_name = "HOW",
                     .default_value = "round-robin",
                     .help = "choice of the backend: round-robin: one after another; random; "
                             "least-connections: the one with the fewest; two-choices: of two "
                             "random ones that with fewer; hash: the same one for the same client. "
                             "If it fails, others are tried",
                     .live = true},
                    {{"round-robin", strategy::round_robin},
                     {"random", strategy::random},
                     {"least-connections", strategy::least_connections},
                     {"two-choices", strategy::two_choices},
                     {"hash", strategy::hash}}),
        row::read_by(&config::hashed_by,
                     {.name = "hash-by",
                      .value_name = "WHAT",
                      .default_value = "client",
                      .help = "key of --strategy hash: client: its address; of http, too: path, "
                              "field:NAME or cookie:NAME",
                      .live = true},
                     read_hash_source),
        row::bound(&config::connect_timeout, {.name = "connect-timeout",
                                              .kind = option_kind::duration,
                                              .value_name = "TIME",
                                              .default_value = "5s",
                                              .help = "time for a backend to accept a connection, "
                                                      "such as 500ms; then the next one is tried",
                                              .minimum = 1,
                                              .live = true}),
        send_proxy_row(),
        resolver_row(),
    };
}

template <class Member>
auto of_health(Member member) {
    return nested(&config::health, member);
}

/// Health checks: requests.
bound_options<config> health_rows() {
    using eddy::proxy::health_rules;
    return {
        row::choice(
            of_health(&health_rules::how),
            {.name = "health-check",
             .kind = option_kind::choice,
             .value_name = "HOW",
             .default_value = "none",
             .help = "try each backend again and again: tcp: it accepts a connection; http: "
                     "it answers GET with a good status. One that fails gets no "
                     "clients",
             .live = true},
            {{"none", health_rules::kind::none},
             {"tcp", health_rules::kind::tcp},
             {"http", health_rules::kind::http}}),
        row::read_by(of_health(&health_rules::path),
                     {.name = "health-path",
                      .value_name = "PATH",
                      .default_value = "/",
                      .help = "path that --health-check http asks for",
                      .live = true},
                     read_health_path),
        row::read_by(of_health(&health_rules::statuses),
                     {.name = "health-status",
                      .value_name = "STATUS",
                      .default_value = "200-399",
                      .help = "statuses that --health-check http takes for good, such as 204 or "
                              "200-299",
                      .live = true},
                     read_health_status),
        row::read_by(of_health(&health_rules::host),
                     {.name = "health-host",
                      .value_name = "HOST",
                      .help = "host that --health-check http asks for; else the backend's",
                      .live = true},
                     read_health_host),
    };
}

/// Health checks: times and results.
bound_options<config> health_result_rows() {
    using eddy::proxy::health_rules;
    return {
        row::bound(of_health(&health_rules::interval),
                   {.name = "health-interval",
                    .kind = option_kind::duration,
                    .value_name = "TIME",
                    .default_value = "2s",
                    .help = "time between two checks of a backend",
                    .minimum = 10'000'000,
                    .live = true}),
        row::bound(of_health(&health_rules::timeout), {.name = "health-timeout",
                                                       .kind = option_kind::duration,
                                                       .value_name = "TIME",
                                                       .default_value = "2s",
                                                       .help = "time for a check",
                                                       .minimum = 1'000'000,
                                                       .live = true}),
        row::bound(of_health(&health_rules::fall),
                   {.name = "health-fall",
                    .kind = option_kind::integer,
                    .value_name = "N",
                    .default_value = "3",
                    .help = "failed checks in a row that take a backend out",
                    .minimum = 1,
                    .maximum = 1000,
                    .live = true}),
        row::bound(of_health(&health_rules::rise),
                   {.name = "health-rise",
                    .kind = option_kind::integer,
                    .value_name = "N",
                    .default_value = "2",
                    .help = "good checks in a row that bring it back",
                    .minimum = 1,
                    .maximum = 1000,
                    .live = true}),
    };
}

/// Failures that take a backend out, and its way back.
bound_options<config> ejection_rows() {
    using eddy::proxy::ejection_rules;
    return {
        row::bound(
            nested(&config::balance, nested(&balancing::ejection, &ejection_rules::failures)),
            {.name = "eject-after",
             .kind = option_kind::integer,
             .value_name = "N",
             .default_value = "3",
             .help = "clients or requests in a row that fail at a backend, after which it "
                     "gets none for 1 s, and twice as long each time that the next one fails, "
                     "up to 30 s; 0 is never. The last one that takes clients stays",
             .maximum = 1'000'000,
             .live = true}),
        row::bound(nested(&config::balance, &balancing::slow_start),
                   {.name = "slow-start",
                    .kind = option_kind::duration,
                    .value_name = "TIME",
                    .default_value = "0",
                    .help = "a backend that comes back gets a growing share of the clients for "
                            "this time; 0: its whole share at once",
                    .live = true}),
    };
}

/// Backends that are slower than the others.
bound_options<config> slow_rows() {
    using eddy::proxy::ejection_rules;
    return {row::read_by(
        nested(&config::balance, nested(&balancing::ejection, &ejection_rules::slow_factor)),
        {.name = "eject-slow",
         .kind = option_kind::integer,
         .value_name = "FACTOR",
         .default_value = "0",
         .help =
             "http: take a backend out as --eject-after does, if its response times (median, to "
             "the head) are so many times those of the others for 6 s, such as 3; 0 is never. "
             "At most half of the backends are out then",
         .maximum = 1000,
         .live = true},
        read_slow_factor)};
}

/// Routes of HTTP.
bound_options<config> route_rows() {
    return {
        row::read_by(&config::routes,
                     {.name = "route",
                      .kind = option_kind::list,
                      .value_name = "HOST/PATH=BACKENDS",
                      .help = "http: send requests of this host (*.HOST: names below it; empty: "
                              "all) and path to other backends, such as /api=:7001,:7002; "
                              "/api>/v1=:7001 replaces the path's beginning. tcp: send TLS "
                              "connections by the name that the client asks for, without "
                              "decrypting them: HOST=BACKENDS, or HOST/ALPN=BACKENDS for those "
                              "that offer a protocol, such as a.example/h2=:7443. May be repeated; "
                              "the most specific one counts, then --backend",
                      .live = true},
                     read_routes),
        row::read_by(
            &config::redirects,
            {.name = "redirect",
             .kind = option_kind::list,
             .value_name = "HOST/PATH=URL",
             .help = "http: answer 308 to such requests, with the URL and their path, such "
                     "as old.example.org=https://example.org. May be repeated",
             .live = true},
            read_redirects),
        row::bound(&config::https_redirect,
                   {.name = "https-redirect",
                    .kind = option_kind::flag,
                    .help = "http: answer requests without TLS by 308 to https, at port 443",
                    .live = true}),
        row::bound(nested(&config::forwarding, &forwarding_rules::connects),
                   {.name = "allow-connect",
                    .kind = option_kind::flag,
                    .help = "http: pass CONNECT on, whose tunnel no route and no rule sees; else "
                            "it is answered by 405",
                    .live = true}),
        row::read_by(nested(&config::forwarding, &forwarding_rules::sticky_cookie),
                     {.name = "sticky",
                      .value_name = "COOKIE",
                      .help = "http: keep each client at its backend by a cookie of this name",
                      .live = true},
                     read_sticky),
        row::bound(nested(&config::forwarding, &forwarding_rules::tries),
                   {.name = "tries",
                    .kind = option_kind::integer,
                    .value_name = "N",
                    .default_value = "3",
                    .help = "http: backends that a request is sent to at most, one after another; "
                            "one that has got it must have closed the connection without a byte, "
                            "and the method must be idempotent",
                    .minimum = 1,
                    .maximum = 64,
                    .live = true}),
    };
}

/// Fields of forwarded messages.
bound_options<config> field_rows() {
    using eddy::proxy::client_fields;
    return {
        row::choice(
            nested(&config::forwarding, &forwarding_rules::says),
            {.name = "forwarded",
             .kind = option_kind::choice,
             .value_name = "FIELDS",
             .default_value = "both",
             .help = "http: fields by which a backend gets the client's address, host and "
                     "scheme: x-forwarded (-For, -Host, -Proto), forwarded (RFC 7239), both "
                     "or none",
             .live = true},
            {{"both", client_fields::both},
             {"x-forwarded", client_fields::x_forwarded},
             {"forwarded", client_fields::forwarded},
             {"none", client_fields::none}}),
        row::read_by(
            nested(&config::forwarding, &forwarding_rules::trusted),
            {.name = "trust",
             .value_name = "NETWORK,...",
             .help = "http: clients whose own such fields are kept, such as 10.0.0.0/8, ::1 "
                     "or unix; those of others are dropped",
             .live = true},
            read_trusted),
        row::read_by(nested(&config::forwarding, &forwarding_rules::host),
                     {.name = "host",
                      .value_name = "NAME",
                      .help = "http: Host that backends get, in the place of the client's",
                      .live = true},
                     read_host),
        row::read_by(nested(&config::forwarding, &forwarding_rules::via),
                     {.name = "via",
                      .value_name = "NAME",
                      .default_value = "eddy",
                      .help = "http: name in the field Via, both ways; - adds none",
                      .live = true},
                     read_via),
        row::read_by(nested(&config::forwarding, &forwarding_rules::request_fields),
                     {.name = "request-field",
                      .kind = option_kind::list,
                      .value_name = "NAME: VALUE",
                      .help = "http: set a field of forwarded requests; without a value it is "
                              "removed. May be repeated",
                      .live = true},
                     read_request_fields),
        row::read_by(nested(&config::forwarding, &forwarding_rules::response_fields),
                     {.name = "response-field",
                      .kind = option_kind::list,
                      .value_name = "NAME: VALUE",
                      .help = "http: the same of responses, such as \"Strict-Transport-Security: "
                              "max-age=31536000\"",
                      .live = true},
                     read_response_fields),
        row::read_by(&config::error_pages,
                     {.name = "error-page",
                      .kind = option_kind::list,
                      .value_name = "CODES=FILE",
                      .help = "http: answer these statuses, where the answer is the proxy's own, "
                              "with the content of a file, such as 502,503,504=/srv/down.html. May "
                              "be repeated; `eddy reload` reads the files again"},
                     read_error_pages),
    };
}

/// Largest buffer of a message.
constexpr std::int64_t max_buffer = std::int64_t{64} << 20;

/// Buffers of HTTP.
bound_options<config> buffer_rows() {
    return {
        row::bound(nested(&config::forwarding, &forwarding_rules::buffered_request),
                   {.name = "buffer-requests",
                    .kind = option_kind::size,
                    .value_name = "SIZE",
                    .default_value = "0",
                    .help = "http: read the content of a request up to this size before a backend "
                            "is chosen, so that a slow upload takes no connection to one, and it "
                            "can be sent again where the method is idempotent; larger ones are "
                            "streamed; 0 is none. All buffers together take at most 256 MiB",
                    .maximum = max_buffer,
                    .live = true}),
        row::bound(nested(&config::forwarding, &forwarding_rules::buffered_response),
                   {.name = "buffer-responses",
                    .kind = option_kind::size,
                    .value_name = "SIZE",
                    .default_value = "0",
                    .help = "http: take up to this size of a response from a backend ahead of a "
                            "client that reads slowly; 0 is none",
                    .maximum = max_buffer,
                    .live = true}),
    };
}

/// Limits of backends of HTTP.
bound_options<config> limit_rows() {
    const auto of_backend = [](auto member) {
        return nested(&config::forwarding, nested(&forwarding_rules::limits, member));
    };
    return {
        row::none_at_zero(of_backend(&client_limits::response_time),
                          {.name = "response-timeout",
                           .kind = option_kind::duration,
                           .value_name = "TIME",
                           .default_value = "60s",
                           .help = "http: time for a backend to begin its response once it has the "
                                   "request; 504 beyond it; 0 is no limit",
                           .live = true}),
        row::none_at_zero(of_backend(&client_limits::read_time),
                          {.name = "read-timeout",
                           .kind = option_kind::duration,
                           .value_name = "TIME",
                           .default_value = "60s",
                           .help = "http: longest pause of a backend within a response; 0 is no "
                                   "limit",
                           .live = true}),
        row::none_at_zero(
            nested(&config::forwarding, &forwarding_rules::total_time),
            {.name = "total-timeout",
             .kind = option_kind::duration,
             .value_name = "TIME",
             .default_value = "0",
             .help = "http: time from the head of a request to the end of its response, with all "
                     "tries; beyond it 504, or a response that has begun is cut; 0 is no limit. "
                     "WebSockets and other tunnels are not limited",
             .live = true}),
        row::bound(nested(&config::forwarding, &forwarding_rules::backend_connections),
                   {.name = "max-backend-connections",
                    .kind = option_kind::integer,
                    .value_name = "N",
                    .default_value = "1000",
                    .help = "http: connections of a thread to each backend; requests beyond them "
                            "wait for one",
                    .minimum = 1,
                    .maximum = 100'000,
                    .live = true}),
        row::bound(
            nested(&config::forwarding, &forwarding_rules::queue),
            {.name = "queue",
             .kind = option_kind::integer,
             .value_name = "N",
             .default_value = "1000",
             .help = "http: requests of a thread that wait for a connection; 503 beyond them",
             .maximum = 1'000'000,
             .live = true}),
        row::bound(nested(&config::forwarding, &forwarding_rules::queue_time),
                   {.name = "queue-timeout",
                    .kind = option_kind::duration,
                    .value_name = "TIME",
                    .default_value = "5s",
                    .help = "http: time that a request waits for one; 503 beyond it",
                    .minimum = 1,
                    .live = true}),
        row::none_at_zero(of_backend(&client_limits::keep_time),
                          {.name = "keep-timeout",
                           .kind = option_kind::duration,
                           .value_name = "TIME",
                           .default_value = "30s",
                           .help = "http: close a backend's connection after this time without a "
                                   "request; less than the backend does; 0 is never",
                           .live = true}),
    };
}

/// Limits of clients of HTTP, and the log.
bound_options<config> session_rows() {
    return {
        row::bound(
            nested(&config::limits, nested(&session_limits::parser, &http1::limits::header_bytes)),
            {.name = "max-header",
             .kind = option_kind::size,
             .value_name = "SIZE",
             .default_value = "16KiB",
             .help = "http: largest first line (414 beyond it), and largest header (431) of a "
                     "request; the same of responses (502)",
             .minimum = 256,
             .maximum = 1 << 20}),
        row::bound(
            nested(&config::limits, nested(&session_limits::parser, &http1::limits::header_count)),
            max_fields_option("http: largest number of header fields of a request; 431 beyond it; "
                              "the same of responses (502)")),
        row::read_by(
            nested(&config::limits, nested(&session_limits::parser, &http1::limits::body)),
            {.name = "max-body",
             .kind = option_kind::size,
             .value_name = "SIZE",
             .default_value = "0",
             .help = "http: largest content of a request, such as 10M; 413 beyond it; 0 is "
                     "no limit"},
            read_max_body),
        row::none_at_zero(nested(&config::limits, &session_limits::request_time),
                          {.name = "request-timeout",
                           .kind = option_kind::duration,
                           .value_name = "TIME",
                           .default_value = "15s",
                           .help = "http: time for a client to send the head of a request, and "
                                   "longest pause in its content; 408 beyond it; 0 is no limit"}),
        row::none_at_zero(
            nested(&config::limits, &session_limits::idle_time),
            {.name = "client-timeout",
             .kind = option_kind::duration,
             .value_name = "TIME",
             .default_value = "60s",
             .help = "http: close a client's connection after this time without a request; 0 is "
                     "never"}),
        row::none_at_zero(nested(&config::limits, &session_limits::write_time),
                          {.name = "write-timeout",
                           .kind = option_kind::duration,
                           .value_name = "TIME",
                           .default_value = "15s",
                           .help = "http: close a connection whose client takes less than 256 KiB "
                                   "of a response in this time; 0 is never"}),
        row::whole_path(&config::access_log,
                        {.name = "access-log",
                         .value_name = "FILE",
                         .help = "http: append a line for each request to this file, with its "
                                 "backend, the number of tries and the backend's time",
                         .is_path = true}),
        access_format_row<config>(),
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
                            "without a byte in either direction, such as 1h; 0 is never. Of http "
                            "this is for WebSockets and other tunnels; of UDP 30s is the default",
                    .live = true}),
        keepalive_row<config>(std::move(keepalive)),
        accept_proxy_row<config>(),
        row::unbound(threads_option("threads that forward bytes; each client has one of them")),
        row::bound(&config::max_connections, std::move(limit)),
    };
}

/// Refuses options that have an effect only beside others, which are missing.
outcome<> check_effects(const settings& chosen, const config& read) {
    using health = eddy::proxy::health_rules::kind;
    outcome<> fine;
    const auto need = [&](bool is_there, std::string_view what,
                          std::initializer_list<std::string_view> names) {
        for (const std::string_view name : names) {
            if (!fine || is_there || !chosen.given(name)) continue;
            fine = refuse(400, fmt::format("--{0} has no effect without {1}: add that, or leave "
                                           "--{0} out (an edit takes it back with --unset {0})",
                                           name, what));
        }
    };
    need(read.health.how == health::http, "--health-check http",
         {"health-path", "health-status", "health-host"});
    need(read.health.how != health::none, "--health-check tcp or http",
         {"health-interval", "health-timeout", "health-fall", "health-rise"});
    need(read.balance.chosen == strategy::hash, "--strategy hash", {"hash-by"});
    need(read.speaks != protocol::http || !read.backends.empty(), "--backend, whose lack it fills",
         {"backup"});
    const bool has_masters = std::ranges::any_of(
        read.all_backends(), [](const backend_source& each) { return !each.master.empty(); });
    need(has_masters, "--backend @NAME-master", {"sentinel"});
    need(!read.sentinels.all.empty(), "--sentinel", {"sentinel-password"});
    return fine;
}

bound_options<config> http_rows() {
    return joined({slow_rows(), route_rows(), field_rows(), buffer_rows(), limit_rows(),
                   session_rows(), script_rows<config>()});
}

/// Refuses options that have no effect on bytes.
outcome<config> check_tcp(const settings& chosen, config read) {
    for (route_source& each : read.routes) {
        if (read.sentinels.all.empty()) break;
        if (auto named = name_masters(each.backends, "--route"); !named)
            return std::unexpected(std::move(named.error()));
        for (const backend_source& its : each.backends)
            if (!its.master.empty())
                return refuse(400, fmt::format("--route {}: masters of Sentinels are followed for "
                                               "--backend alone",
                                               its.name));
    }
    if (read.hashed_by.of != hash_source::kind::client)
        return refuse(400, "--hash-by path, field and cookie need --protocol http");
    for (const auto& each : http_rows())
        if (each.row().name != "route" && chosen.given(each.row().name))
            return refuse(
                400, fmt::format("--{} has no effect without --protocol http", each.row().name));
    if (!read.routes.empty() && (read.where.kind == scheme::tls || read.secure))
        return refuse(400,
                      "--route with --protocol tcp reads the names of TLS connections that are not "
                      "decrypted here; leave out --tls, or write --protocol http");
    return read;
}

/// Idle time of a session of UDP, which has no end, without --idle-timeout.
constexpr duration datagram_idle_time = std::chrono::seconds(30);

/// Refuses options that have no effect on datagrams.
outcome<config> check_udp(const settings& chosen, config read) {
    constexpr std::array<std::string_view, 13> used = {
        "listen",      "backend",    "backup",          "drain-backend", "local-first",
        "strategy",    "protocol",   "connect-timeout", "idle-timeout",  "max-connections",
        "eject-after", "slow-start", "resolver"};
    for (const auto& each : option_rows()) {
        const std::string_view name = each.row().name;
        if (chosen.given(name) && std::ranges::find(used, name) == used.end())
            return refuse(400,
                          fmt::format("--{0} has no effect with --listen udp://; leave it out, "
                                      "or take it back with --unset {0}",
                                      name));
    }
    if (read.speaks != protocol::tcp)
        return refuse(400, "--protocol http needs a stream; write --listen tcp://HOST:PORT");
    if (!chosen.given("idle-timeout")) read.idle_timeout = datagram_idle_time;
    if (read.idle_timeout == duration{})
        return refuse(400,
                      "--idle-timeout cannot be 0 with --listen udp://: only a time without a "
                      "datagram ends a client's session");
    return read;
}

}  // namespace

bool is_itself(const transport::address& backend, const transport::address& where) {
    const bool has_datagrams = backend.kind == scheme::udp && where.kind == scheme::udp;
    if (has_datagrams || (has_port(backend) && has_port(where))) {
        if (backend.port != where.port || where.port == 0) return false;
        const bool is_local =
            backend.host == this_machine || backend.host == "localhost" || backend.host == "::1";
        const bool serves_a_localhost = where.host == this_machine || where.host == "::1";
        return backend.host == where.host || (is_local && where.host.empty()) ||
               (backend.host == "localhost" && serves_a_localhost);
    }
    return backend.kind == where.kind && !backend.path.empty() && backend.path == where.path;
}

const bound_options<config>& option_rows() {
    static const bound_options<config> rows =
        joined({listening_rows<config>(
                    "serve on a URI instead: tcp://HOST:PORT, udp://HOST:PORT, unix:///PATH, "
                    "shm:///PATH, shm://:PORT or handoff:///PATH"),
                secure_rows<config>(), protocol_rows(), sentinel_rows(), backend_rows(),
                health_rows(), health_result_rows(), ejection_rows(), client_rows(), http_rows()});
    return rows;
}

outcome<config> read_config(const settings& chosen) {
    config read;
    auto serving = read_serving_config(chosen, scheme::tcp, {}, read);
    if (!serving) return std::unexpected(serving.error());
    if (auto bound = read_bound(option_rows(), chosen, read); !bound)
        return std::unexpected(bound.error());
    if (auto fine = check_drained(read); !fine) return std::unexpected(std::move(fine.error()));
    if (read.has_datagrams()) return check_udp(chosen, std::move(read));
    if (auto fine = check_effects(chosen, read); !fine)
        return std::unexpected(std::move(fine.error()));
    if (read.speaks != protocol::http) return check_tcp(chosen, std::move(read));
    if (chosen.given("sentinel"))
        return refuse(400, "--sentinel is for --protocol tcp: what Sentinels watch speaks no HTTP");
    if (read.announces)
        return refuse(400,
                      "--send-proxy is for --protocol tcp: connections of http are shared by "
                      "clients, whose addresses are in the field X-Forwarded-For");
    eddy::http::accept_by_alpn(read.where);
    if (read.secure) eddy::http::accept_by_alpn(*read.secure);
    const auto offer = [](std::vector<backend_source>& all) {
        for (backend_source& each : all)
            if (each.where) eddy::http::offer_by_alpn(*each.where);
    };
    offer(read.backends);
    offer(read.backups);
    for (route_source& each : read.routes) offer(each.backends);
    auto& parser = read.limits.parser;
    parser.start_line = parser.header_bytes;
    read.limits.read_time = read.limits.request_time;
    read.limits.read_bytes = 1;
    forwarding_rules& forwarding = read.forwarding;
    forwarding.limits.start_line = forwarding.limits.header_bytes = parser.header_bytes;
    forwarding.limits.header_count = parser.header_count;
    forwarding.connect_timeout = read.connect_timeout;
    forwarding.limits.write_time = forwarding.limits.response_time;
    forwarding.keepalive = read.rules.keepalive;
    forwarding.tunnel_idle_time = read.idle_timeout;
    forwarding.hashed_by = read.hashed_by;
    if (read.https_redirect) forwarding.https = "https://$host";
    if (auto fine = check_access_format(chosen, read.access_log); !fine)
        return std::unexpected(std::move(fine.error()));
    if (auto fine = read_script_file(chosen, read.script); !fine)
        return std::unexpected(std::move(fine.error()));
    return read;
}

outcome<> check_files(const config& of) {
    const auto check = [](const std::vector<backend_source>& all, std::string_view flag) {
        outcome<> fine;
        for (const backend_source& each : all)
            if (fine && each.where) fine = check_target_files(*each.where, flag);
        return fine;
    };
    outcome<> fine;
    for (const transport::address& each : of.sentinels.all)
        if (fine) fine = check_target_files(each, "--sentinel");
    if (fine) fine = check(of.backends, "--backend");
    if (fine) fine = check(of.backups, "--backup");
    for (const route_source& each : of.routes)
        if (fine) fine = check(each.backends, "--route");
    return fine;
}

}  // namespace eddy::runtime::proxy
