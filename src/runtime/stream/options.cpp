// The table of a stream runtime's options, and checks of their values.
#include "runtime/stream/options.hpp"

#include <eddy/transport/transport.hpp>
#include <eddy/wire/http1/headers.hpp>

#include "base/files/socket_owner.hpp"
#include "base/text/text.hpp"
#include "handoff/receiver.hpp"
#include "runtime/listening.hpp"
#include "runtime/options/bound_options.hpp"
#include "runtime/serving/accept_options.hpp"
#include "runtime/serving/tls_options.hpp"
#include "runtime/stream/limits/stream_deadlines.hpp"
#include "runtime/stream/limits/user_limits.hpp"
#include "runtime/stream/programs/programs.hpp"
#include "wire/http1/forwarding.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <utility>

namespace eddy::runtime::stream {
namespace {

/// A number in digits of `base`, at most `most`.
std::optional<unsigned> number_of(std::string_view text, int base, unsigned most) {
    unsigned read = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), read, base);
    if (error != std::errc{} || end != text.data() + text.size() || read > most) return {};
    return read;
}

outcome<std::string> read_path(const settings& chosen, const config& /*so_far*/) {
    const std::string& given = chosen.text("handoff");
    if (given.empty())
        return refuse(400,
                      "a stream runtime takes clients' sockets from a web server; say where by "
                      "--handoff unix:///PATH");
    const auto where = transport::parse(given.starts_with('/') ? "unix://" + given : given);
    if (!where || (where->kind != transport::scheme::unix_socket &&
                   where->kind != transport::scheme::handoff))
        return refuse(400, fmt::format("--handoff cannot be \"{}\": write unix:///PATH, such as "
                                       "unix:///run/eddy/llm.sock, or unix://@NAME",
                                       given));
    if (where->handoff != transport::handoff_parameters())
        return refuse(400,
                      "--handoff is a path alone: leave out the parameters after the ?, and write "
                      "--handoff-type, --mode and --allow-users instead");
    return where->path;
}

/// The permissions of the socket's file. Refuses them for a socket without one, which every user of
/// the machine could connect to.
outcome<int> read_mode(const settings& chosen, const config& so_far) {
    const std::string& text = chosen.text("mode");
    const auto mode = number_of(text, 8, 0777);
    if (!mode)
        return refuse(
            400, fmt::format("--mode cannot be \"{}\": write octal digits, such as 0660", text));
    if (so_far.path.starts_with('@') && chosen.given("mode"))
        return refuse(400,
                      fmt::format("--mode has no effect with --handoff unix://{}, which has no "
                                  "file: leave it out, and name the users that may hand "
                                  "clients over by --allow-users (without it the daemon's "
                                  "user and root), or give a path, --handoff unix:///PATH",
                                  so_far.path));
    return static_cast<int>(*mode);
}

/// Refuses an owner or group of a socket without a file.
outcome<> check_has_file(std::string_view option, const config& so_far) {
    if (!so_far.path.starts_with('@')) return {};
    return refuse(400, fmt::format("--{} has no effect with --handoff unix://{}, which has no file",
                                   option, so_far.path));
}

outcome<std::optional<uid_t>> read_socket_owner(const settings& chosen, const config& so_far) {
    if (!chosen.has("socket-owner")) return std::nullopt;
    if (auto good = check_has_file("socket-owner", so_far); !good)
        return std::unexpected(std::move(good.error()));
    return find_user(chosen.text("socket-owner"), "--socket-owner");
}

outcome<std::optional<gid_t>> read_socket_group(const settings& chosen, const config& so_far) {
    if (!chosen.has("socket-group")) return std::nullopt;
    if (auto good = check_has_file("socket-group", so_far); !good)
        return std::unexpected(std::move(good.error()));
    return find_group(chosen.text("socket-group"), "--socket-group");
}

outcome<std::vector<uid_t>> read_handoff_users(const settings& chosen, const config& /*so_far*/) {
    return read_users(chosen.text("allow-users"));
}

outcome<std::chrono::seconds> read_keepalive(const settings& chosen, const config& /*so_far*/) {
    return read_tcp_keepalive(chosen);
}

/// Open files of a process beside those of its streams, about: its loop, listeners and logs.
constexpr std::uint64_t own_files = 24;

/// True when its source is a URL.
bool has_url(const config& of) noexcept {
    return of.source == source_type::openai || of.source == source_type::proxy;
}

outcome<std::vector<backend>> read_backends(const settings& chosen, const config& /*so_far*/) {
    constexpr std::string_view option = "source-backend";
    std::vector<backend> all;
    for (const std::string& each : chosen.list(option)) {
        if (all.size() == max_named_backends)
            return refuse(
                400, fmt::format("--{} may be given at most {} times", option, max_named_backends));
        auto read = read_backend(option, each);
        if (!read) return std::unexpected(std::move(read.error()));
        if (std::ranges::find(all, read->name, &backend::name) != all.end())
            return refuse(400,
                          fmt::format("--{}: there are two of the name {}", option, read->name));
        all.push_back(std::move(*read));
    }
    return all;
}

/// Fields that a request has from its source, beside hop-by-hop fields.
constexpr std::array own_request_fields = {
    std::string_view("host"), std::string_view("content-length"), std::string_view("content-type"),
    std::string_view("accept"), std::string_view("accept-encoding")};

outcome<std::vector<response_header>> read_source_fields(const settings& chosen,
                                                         const config& /*so_far*/) {
    std::vector<response_header> all;
    for (const std::string& each : chosen.list("source-header")) {
        const std::size_t colon = std::min(each.find(':'), each.size());
        response_header made{each.substr(0, colon), each.substr(std::min(colon + 1, each.size()))};
        made.value.erase(0, std::min(made.value.find_first_not_of(' '), made.value.size()));
        if (!http1::is_token(made.name) || !http1::is_field_value(made.value) || made.value.empty())
            return refuse(400,
                          "--source-header: write NAME: VALUE, such as \"OpenAI-Organization: "
                          "org-1\"");
        const bool is_own = http1::is_hop_by_hop(made.name) ||
                            std::ranges::any_of(own_request_fields, [&](std::string_view own) {
                                return is_word(made.name, own);
                            });
        if (is_own)
            return refuse(
                400, fmt::format("--source-header: the source decides about {} itself", made.name));
        if (all.size() == max_source_fields)
            return refuse(400, fmt::format("--source-header may be given at most {} times",
                                           max_source_fields));
        all.push_back(std::move(made));
    }
    return all;
}

/// The name alone: the value may be a secret.
std::string shown_field(const std::string& text) {
    const std::size_t colon = text.find(':');
    return colon == std::string::npos ? text : text.substr(0, colon) + ": " + std::string(hidden);
}

outcome<std::string> read_key_field(const settings& chosen, const config& /*so_far*/) {
    const std::string& name = chosen.text("key-field");
    if (!name.empty())
        if (auto good = check_key_field("key-field", name); !good)
            return std::unexpected(std::move(good.error()));
    return name;
}

/// Refuses options that the source needs or has no use for.
outcome<> check_source(const settings& chosen, const config& read) {
    const std::string& name = chosen.text("source");
    const bool is_exec = read.source == source_type::exec;
    const bool is_lua = read.source == source_type::lua;
    if (is_exec == read.command.empty())
        return refuse(400, is_exec ? "--source exec runs a program; say which by --exec COMMAND"
                                   : "--exec has no effect without --source exec");
    if (is_lua != chosen.has("lua"))
        return refuse(400, is_lua ? "--source lua runs a script; say which by --lua FILE"
                                  : "--lua has no effect without --source lua");
    if (read.source != source_type::openai && chosen.given("events"))
        return refuse(400, fmt::format("--events has no effect with --source {}", name));
    if (has_url(read)) return {};
    for (const std::string_view other :
         {"source-url", "source-socket", "source-backend", "source-header", "source-ca", "key-file",
          "key-field", "handoff-key"})
        if (chosen.given(other))
            return refuse(400, fmt::format("--{} has no effect with --source {}", other, name));
    return {};
}

/// URL and key of openai and proxy.
outcome<> complete_url(const settings& chosen, config& into) {
    const bool is_openai = into.source == source_type::openai;
    if (into.source_url.empty() && is_openai) into.source_url = "https://api.openai.com/v1";
    if (auto good = check_url("source-url", into.source_url); !good) return good;
    transport::tls_parameters trusted;
    trusted.ca = into.source_ca;
    if (auto good = check_tls_readable(trusted, {.ca = "--source-ca"}); !good) return good;
    if (!chosen.has("key-file")) {
        const char* key = std::getenv("OPENAI_API_KEY");
        if (key != nullptr && is_openai && http1::is_field_value(key)) into.key = key;
        return {};
    }
    auto key = read_key("key-file", chosen.text("key-file"));
    if (!key) return std::unexpected(key.error());
    into.key = std::move(*key);
    return {};
}

/// Checks the source's options, and reads its files.
outcome<> complete_source(const settings& chosen, config& into) {
    if (auto good = check_source(chosen, into); !good) return good;
    if (auto good = read_script_file(chosen, into.script); !good) return good;
    return has_url(into) ? complete_url(chosen, into) : outcome<>();
}

using row = bound_option<config>;

/// The socket on which clients come.
bound_options<config> handoff_rows() {
    return {
        row::read_by(&config::path,
                     {.name = "handoff",
                      .value_name = "URI",
                      .help = "Unix socket on which a web server hands clients over: unix:///PATH "
                              "or unix://@NAME",
                      .is_uri = true},
                     read_path),
        row::choice(&config::type,
                    {.name = "handoff-type",
                     .kind = option_kind::choice,
                     .value_name = "TYPE",
                     .default_value = "seqpacket",
                     .help = "type of that socket, as the web server's module needs it"},
                    {{"seqpacket", unix_socket::socket_type::seqpacket},
                     {"stream", unix_socket::socket_type::stream}}),
        row::read_by(&config::mode,
                     {.name = "mode",
                      .value_name = "OCTAL",
                      .default_value = "0660",
                      .help = "permissions of the socket's file; not for @NAME, which has none"},
                     read_mode),
        row::read_by(&config::owner,
                     {.name = "socket-owner",
                      .value_name = "USER",
                      .help = "user that the socket's file is given to, by name or number; only "
                              "root may give files away"},
                     read_socket_owner),
        row::read_by(&config::group,
                     {.name = "socket-group",
                      .value_name = "GROUP",
                      .help = "group that it is given to, such as www-data; the daemon's user must "
                              "be root or in that group"},
                     read_socket_group),
        row::read_by(&config::allowed_users,
                     {.name = "allow-users",
                      .value_name = "LIST",
                      .help = "users that may hand clients over, by name or number, such as "
                              "www-data,1000; by default all that the permissions admit, and for "
                              "@NAME the daemon's user and root"},
                     read_handoff_users),
    };
}

/// The source of the events.
bound_options<config> source_rows() {
    return {
        row::choice(&config::source,
                    {.name = "source",
                     .kind = option_kind::choice,
                     .value_name = "SOURCE",
                     .default_value = "mock",
                     .help = "source of the events: mock sends test messages; openai requests chat "
                             "completions from an OpenAI-style API and sends each piece of the "
                             "answer; lua runs a script that sends events; proxy forwards the "
                             "response of a URL; exec runs a program for each client",
                     .former_name = "backend"},
                    {{"mock", source_type::mock},
                     {"openai", source_type::openai},
                     {"lua", source_type::lua},
                     {"proxy", source_type::proxy},
                     {"exec", source_type::exec}}),
        row::bound(&config::command,
                   {.name = "exec",
                    .value_name = "COMMAND",
                    .help = "sh command of exec, with the client's socket as its standard input "
                            "and output, and the handoff's message in $HANDOFF_DATA; it writes the "
                            "whole response, and gets SIGHUP when its client disconnects, SIGTERM "
                            "after --source-timeout more. At most 1000 run at a time"}),
    };
}

/// Further targets of openai and proxy, and how they are requested.
bound_options<config> backend_rows() {
    return {
        row::read_by(
            &config::backends,
            {.name = "source-backend",
             .kind = option_kind::list,
             .value_name = "NAME=URL",
             .help = "further URL for requests of openai and proxy; may be given again. A request "
                     "that gets no response, 429 or 5xx is sent to the next one. The handoff's "
                     "member backend chooses by name (default: --source-url). \"NAME=URL "
                     "key-file=FILE key-field=NAME model=NAME\" has a key and a model of its own",
             .shown = shown_backend},
            read_backends),
        row::read_by(&config::source_fields,
                     {.name = "source-header",
                      .kind = option_kind::list,
                      .value_name = "NAME: VALUE",
                      .help = "field of all requests of openai and proxy, such as "
                              "\"OpenAI-Organization: org-1\"; may be given again. `eddy show` "
                              "hides the value",
                      .shown = shown_field},
                     read_source_fields),
        row::whole_path(&config::source_ca,
                        {.name = "source-ca",
                         .value_name = "FILE",
                         .help = "certificates of the authorities to trust at URLs of https, in "
                                 "place of the system's",
                         .is_path = true}),
    };
}

/// Targets of openai and proxy, and the answers of openai.
bound_options<config> url_rows() {
    return {
        row::bound(
            &config::source_url,
            {.name = "source-url",
             .value_name = "URL",
             .help = "URL for requests of openai and proxy, such as http://127.0.0.1:11434/v1; the "
                     "default of openai is https://api.openai.com/v1",
             .former_name = "backend-url"}),
        row::bound(&config::source_socket,
                   {.name = "source-socket",
                    .value_name = "PATH",
                    .help = "Unix socket to connect to instead of that URL's host",
                    .is_path = true,
                    .former_name = "backend-socket"}),
        row::unbound({.name = "key-file",
                      .value_name = "FILE",
                      .help = "file with the key of the API, which is sent as Authorization: "
                              "Bearer KEY; without it openai uses the daemon's $OPENAI_API_KEY",
                      .is_path = true}),
        row::read_by(&config::key_field,
                     {.name = "key-field",
                      .value_name = "NAME",
                      .help = "field that the key is sent in, as it is, in place of Authorization, "
                              "such as api-key for Azure"},
                     read_key_field),
        row::bound(&config::takes_keys,
                   {.name = "handoff-key",
                    .kind = option_kind::flag,
                    .help = "send the handoff's member api_key in place of the key; such a "
                            "request goes to the first of its backends alone"}),
        row::bound(&config::model, {.name = "model",
                                    .value_name = "NAME",
                                    .default_value = "gpt-4o-mini",
                                    .help = "model if the handoff names none"}),
        row::choice(&config::events,
                    {.name = "events",
                     .kind = option_kind::choice,
                     .value_name = "EVENTS",
                     .default_value = "pieces",
                     .help = "events of openai: pieces sends each piece of the answer, content as "
                             "{\"content\":TEXT} and the others (tool_calls, reasoning, refusal, "
                             "finish_reason, usage) as events of these names; content sends the "
                             "content alone; chunks sends the API's chunks as they come"},
                    {{"pieces", completion_events::pieces},
                     {"content", completion_events::content},
                     {"chunks", completion_events::chunks}}),
    };
}

/// Time limits, and events that are kept for clients that reconnect.
bound_options<config> time_rows() {
    return {
        row::bound(&config::source_timeout,
                   {.name = "source-timeout",
                    .kind = option_kind::duration,
                    .value_name = "TIME",
                    .default_value = "60s",
                    .help = "time for a source to begin its response, and for each pause in it, "
                            "for a client to read the rest of an ended stream, and for a program "
                            "of exec to end after its client has disconnected",
                    .minimum = 1'000'000,
                    .former_name = "backend-timeout"}),
        row::bound(&config::heartbeat, {.name = "heartbeat",
                                        .kind = option_kind::duration,
                                        .value_name = "TIME",
                                        .default_value = "15s",
                                        .help = "send a comment to clients of mock, openai and lua "
                                                "after this time without an event",
                                        .minimum = 1'000'000}),
        row::bound(
            &config::replay_memory,
            {.name = "replay-memory",
             .kind = option_kind::size,
             .value_name = "SIZE",
             .default_value = "0",
             .help = "memory to keep events, with ids, for clients that reconnect: a client that "
                     "is handed over again, with the same user_id and request_id and its "
                     "last_event_id, gets the events that it missed. Not for proxy and exec",
             .maximum = std::int64_t{1} << 40}),
        row::bound(&config::replay_time,
                   {.name = "replay-time",
                    .kind = option_kind::duration,
                    .value_name = "TIME",
                    .default_value = "60s",
                    .help = "how long a stream continues without its client, and how long the "
                            "events of an ended stream are kept",
                    .minimum = 1'000'000,
                    .maximum = std::int64_t{24 * 3600} * 1'000'000'000}),
    };
}

/// The access log.
bound_options<config> log_rows() {
    return {row::whole_path(
        &config::access_log,
        {.name = "access-log",
         .value_name = "FILE",
         .help = "append a line of JSON to this file for each stream at its end, and for each "
                 "client that was refused: its user, bytes, time to the first one, and reason",
         .is_path = true})};
}

/// Rows of the mock source.
bound_options<config> mock_rows() {
    return {
        row::bound(&config::delay, {.name = "delay",
                                    .kind = option_kind::duration,
                                    .value_name = "TIME",
                                    .default_value = "50ms",
                                    .help = "time between two messages of the mock source",
                                    .minimum = 1'000'000,
                                    .maximum = std::int64_t{3600} * 1'000'000'000}),
        row::bound(&config::messages, {.name = "messages",
                                       .kind = option_kind::integer,
                                       .value_name = "N",
                                       .default_value = "18",
                                       .help = "messages that the mock source sends to each client",
                                       .minimum = 1,
                                       .maximum = 10'000}),
    };
}

/// Limits of clients.
bound_options<config> limit_rows() {
    option connections = max_connections_option();
    connections.default_value = "100000";
    connections.help = "streams at a time; further clients get 503 with Retry-After";
    connections.maximum = max_streams;
    option keepalive = tcp_keepalive_option();
    keepalive.help =
        "have the kernel probe a TCP client that is silent for this time, three times, and close "
        "the connection if it never answers: after twice the time in all; 0 leaves the sockets as "
        "the web server made them. A change counts for new clients";
    return {
        row::bound(&config::max_connections, std::move(connections)),
        row::read_by(&config::keepalive, std::move(keepalive), read_keepalive),
        row::bound(&config::max_message,
                   {.name = "max-message",
                    .kind = option_kind::size,
                    .value_name = "SIZE",
                    .default_value = "128KiB",
                    .help = "largest message of a handoff; the client of a larger one gets 413. "
                            "With --source exec it has at most 131058 bytes",
                    .minimum = 1,
                    .maximum = 16 << 20}),
        row::bound(&config::max_queue,
                   {.name = "max-queue",
                    .kind = option_kind::size,
                    .value_name = "SIZE",
                    .default_value = "64KiB",
                    .help = "bytes that may wait for one slow client; beyond it its stream ends. "
                            "openai, lua and proxy wait for their clients instead",
                    .minimum = 1,
                    .maximum = 1 << 30}),
    };
}

/// Limits of streams and of users.
bound_options<config> stream_rows() {
    return {
        row::none_at_zero(
            &config::max_stream_time,
            {.name = "max-stream-time",
             .kind = option_kind::duration,
             .value_name = "TIME",
             .default_value = "0",
             .help = "longest time of a stream, from its handoff on: then it ends with the error "
                     "stream_too_long; a program of exec gets SIGTERM. 0: no limit",
             .maximum = longest_stream_time.count(),
             .live = true}),
        row::bound(&config::max_streams_per_user,
                   {.name = "max-streams-per-user",
                    .kind = option_kind::integer,
                    .value_name = "N",
                    .default_value = "0",
                    .help = "streams at a time with the same user_id in the handoff; further ones "
                            "get 429 with Retry-After. 0: no limit",
                    .maximum = max_streams,
                    .live = true}),
        row::bound(&config::events_per_minute,
                   {.name = "events-per-minute",
                    .kind = option_kind::integer,
                    .value_name = "N",
                    .default_value = "0",
                    .help = "events that streams with the same user_id are sent in a minute, each "
                            "about a token of openai; beyond it new ones get 429 with Retry-After "
                            "until the next minute. 0: no limit",
                    .maximum = most_user_events,
                    .live = true}),
    };
}

}  // namespace

const bound_options<config>& option_rows() {
    static const bound_options<config> rows =
        joined({handoff_rows(), source_rows(), script_rows<config>("script"), url_rows(),
                backend_rows(), time_rows(), log_rows(), mock_rows(), limit_rows(), stream_rows()});
    return rows;
}

outcome<config> read_config(const settings& chosen) {
    config read;
    if (auto bound = read_bound(option_rows(), chosen, read); !bound)
        return std::unexpected(bound.error());
    if (auto good = complete_source(chosen, read); !good) return std::unexpected(good.error());
    // It goes to programs as a variable of their environment.
    if (read.source == source_type::exec)
        read.max_message = std::min(read.max_message, programs::max_message);
    if (read.replay_memory > 0 &&
        (read.source == source_type::proxy || read.source == source_type::exec))
        return refuse(400, fmt::format("--replay-memory has no effect with --source {}",
                                       chosen.text("source")));
    if (read.source == source_type::exec && read.events_per_minute > 0)
        return refuse(400,
                      "--events-per-minute has no effect with --source exec, whose programs answer "
                      "their clients themselves");
    if (read.replay_memory == 0 && chosen.given("replay-time"))
        return refuse(400, "--replay-time has no effect without --replay-memory");
    return read;
}

handoff::receiver_options receiving_of(const config& chosen) {
    handoff::receiver_options made;
    made.type = chosen.type;
    made.mode = chosen.mode;
    made.max_message = chosen.max_message;
    made.allowed_users = chosen.allowed_users;
    made.owner = chosen.owner;
    made.group = chosen.group;
    return made;
}

problem explain_receiver_failure(const config& chosen, std::error_code why, const host* daemon) {
    if (why == std::errc::operation_not_permitted && (chosen.owner || chosen.group))
        return {500, fmt::format("could not give {} to the user or group of --socket-owner and "
                                 "--socket-group: {}. The daemon's user must be root, or in the "
                                 "group",
                                 chosen.path, why.message())};
    transport::address where;
    where.kind = transport::scheme::unix_socket;
    where.path = chosen.path;
    return explain_listen_failure(where, why, daemon);
}

std::uint64_t streams_within(const config& chosen, std::uint64_t files) noexcept {
    const std::uint64_t usable = handoff::receiver::usable_descriptors(files);
    const std::uint64_t left = usable - std::min(own_files, usable);
    // A stream has its client, and the connection to its source or two handles of its program.
    const std::uint64_t each = chosen.source == source_type::exec ? 3 : has_url(chosen) ? 2 : 1;
    return std::max<std::uint64_t>(left / each, 1);
}

}  // namespace eddy::runtime::stream
