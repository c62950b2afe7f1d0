// The table of a stream runtime's options, and checks of their values.
#include "runtime/stream/options.hpp"

#include <eddy/transport/transport.hpp>
#include <eddy/wire/http1/headers.hpp>

#include "base/files/regular_file.hpp"
#include "base/text/text.hpp"
#include "handoff/receiver.hpp"
#include "runtime/listening.hpp"
#include "runtime/options/bound_options.hpp"
#include "runtime/serving/accept_options.hpp"

#include <fmt/format.h>

#include <algorithm>
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

/// Bytes of a key's file at most.
constexpr std::size_t max_key = 4096;

outcome<std::string> read_key(const std::string& path) {
    auto key = read_regular(path, max_key);
    if (!key && key.error() != errc::limit_reached)
        return refuse(
            400, fmt::format("--key-file: {} cannot be read: {}", path, key.error().message()));
    while (key && (key->ends_with('\n') || key->ends_with('\r') || key->ends_with(' ')))
        key->pop_back();
    if (!key || key->empty() || !http1::is_field_value(*key))
        return refuse(400, fmt::format("--key-file: {} has no key in one line of at most {} bytes",
                                       path, max_key));
    return std::move(*key);
}

/// Bytes of a script's file at most.
constexpr std::size_t max_script = std::size_t{1} << 20;

/// Refuses options that the source needs or has no use for.
outcome<> check_source(const settings& chosen, const config& read) {
    const std::string& name = chosen.text("source");
    const bool is_exec = read.source == source_type::exec;
    const bool is_lua = read.source == source_type::lua;
    if (is_exec == read.command.empty())
        return refuse(400, is_exec ? "--source exec runs a program; say which by --exec COMMAND"
                                   : "--exec has no effect without --source exec");
    if (is_lua != chosen.has("script"))
        return refuse(400, is_lua ? "--source lua runs a script; say which by --script FILE"
                                  : "--script has no effect without --source lua");
    if (read.source != source_type::openai && chosen.given("events"))
        return refuse(400, fmt::format("--events has no effect with --source {}", name));
    if (has_url(read)) return {};
    for (const std::string_view other : {"source-url", "source-socket", "key-file"})
        if (chosen.given(other))
            return refuse(400, fmt::format("--{} has no effect with --source {}", other, name));
    return {};
}

/// URL and key of openai and proxy.
outcome<> complete_url(const settings& chosen, config& into) {
    const bool is_openai = into.source == source_type::openai;
    if (into.source_url.empty() && is_openai) into.source_url = "https://api.openai.com/v1";
    while (into.source_url.ends_with('/') && is_openai) into.source_url.pop_back();
    if (!into.source_url.starts_with("http://") && !into.source_url.starts_with("https://"))
        return refuse(400,
                      fmt::format("--source-url cannot be \"{}\": write http://HOST:PORT/PATH, or "
                                  "the same with https",
                                  into.source_url));
    if (!chosen.has("key-file")) {
        const char* key = std::getenv("OPENAI_API_KEY");
        if (key != nullptr && is_openai && http1::is_field_value(key)) into.key = key;
        return {};
    }
    auto key = read_key(chosen.text("key-file"));
    if (!key) return std::unexpected(key.error());
    into.key = std::move(*key);
    return {};
}

/// Checks the source's options, and reads its files.
outcome<> complete_source(const settings& chosen, config& into) {
    if (auto good = check_source(chosen, into); !good) return good;
    if (has_url(into)) return complete_url(chosen, into);
    if (into.source != source_type::lua) return {};
    auto script = read_script("--script", chosen.text("script"), max_script);
    if (!script) return std::unexpected(script.error());
    into.script = std::move(*script);
    return {};
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
        row::unbound({.name = "script",
                      .value_name = "FILE",
                      .help = "Lua script of lua, read at each start: its function handle(request) "
                              "is called for each client, and may call send(text), event(name, "
                              "text) and sleep(milliseconds)",
                      .is_path = true}),
        row::bound(&config::command,
                   {.name = "exec",
                    .value_name = "COMMAND",
                    .help = "sh command of exec, with the client's socket as its standard input "
                            "and output, and the handoff's message in $HANDOFF_DATA; it writes the "
                            "whole response, and gets SIGHUP when its client disconnects, SIGTERM "
                            "after --source-timeout more. At most 1000 run at a time"}),
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
                    .help = "largest message of a handoff; the client of a larger one gets 413",
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

}  // namespace

const bound_options<config>& option_rows() {
    static const bound_options<config> rows =
        joined({handoff_rows(), source_rows(), url_rows(), time_rows(), mock_rows(), limit_rows()});
    return rows;
}

outcome<config> read_config(const settings& chosen) {
    config read;
    if (auto bound = read_bound(option_rows(), chosen, read); !bound)
        return std::unexpected(bound.error());
    if (auto good = complete_source(chosen, read); !good) return std::unexpected(good.error());
    if (read.replay_memory > 0 &&
        (read.source == source_type::proxy || read.source == source_type::exec))
        return refuse(400, fmt::format("--replay-memory has no effect with --source {}",
                                       chosen.text("source")));
    if (read.replay_memory == 0 && chosen.given("replay-time"))
        return refuse(400, "--replay-time has no effect without --replay-memory");
    return read;
}

std::uint64_t streams_within(const config& chosen, std::uint64_t files) noexcept {
    const std::uint64_t usable = handoff::receiver::usable_descriptors(files);
    const std::uint64_t left = usable - std::min(own_files, usable);
    // A stream has its client, and the connection to its source or two handles of its program.
    const std::uint64_t each = chosen.source == source_type::exec ? 3 : has_url(chosen) ? 2 : 1;
    return std::max<std::uint64_t>(left / each, 1);
}

}  // namespace eddy::runtime::stream
