// The table of a stream runtime's options, and which values it refuses.
#include "runtime/stream/options.hpp"

#include <eddy/transport/transport.hpp>
#include <eddy/wire/http1/headers.hpp>

#include "base/regular_file.hpp"
#include "base/text.hpp"
#include "handoff/receiver.hpp"
#include "runtime/listening.hpp"
#include "runtime/options/option_tables.hpp"
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

outcome<std::string> read_path(const settings& chosen) {
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
outcome<int> read_mode(const settings& chosen, const std::string& path) {
    const std::string& text = chosen.text("mode");
    const auto mode = number_of(text, 8, 0777);
    if (!mode)
        return refuse(
            400, fmt::format("--mode cannot be \"{}\": write octal digits, such as 0660", text));
    if (path.starts_with('@') && chosen.given("mode"))
        return refuse(400,
                      fmt::format("--mode has no effect with --handoff unix://{}, which has no "
                                  "file: leave it out, and name the users that may hand "
                                  "clients over by --allow-users (without it the daemon's "
                                  "user and root), or give a path, --handoff unix:///PATH",
                                  path));
    return static_cast<int>(*mode);
}

/// Open files of a process beside those of its streams, about: its loop, listeners and logs.
constexpr std::uint64_t own_files = 24;

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

outcome<> read_backend(const settings& chosen, config& into) {
    const std::string& name = chosen.text("backend");
    into.backend_timeout = duration(chosen.number("backend-timeout"));
    into.heartbeat = duration(chosen.number("heartbeat"));
    into.model = chosen.text("model");
    into.command = chosen.text("exec");
    if ((name == "exec") == into.command.empty())
        return refuse(400, name == "exec"
                               ? "--backend exec runs a program; say which by --exec COMMAND"
                               : "--exec has no effect without --backend exec");
    if ((name == "lua") != chosen.has("script"))
        return refuse(400, name == "lua" ? "--backend lua runs a script; say which by --script FILE"
                                         : "--script has no effect without --backend lua");
    if (name != "openai" && chosen.given("events"))
        return refuse(400, fmt::format("--events has no effect with --backend {}", name));
    if (chosen.text("events") == "content") into.events = completion_events::content;
    if (chosen.text("events") == "chunks") into.events = completion_events::chunks;
    if (name == "mock" || name == "exec" || name == "lua") {
        if (name == "exec") into.backend = backend_type::exec;
        if (name == "lua") into.backend = backend_type::lua;
        for (const std::string_view other : {"backend-url", "backend-socket", "key-file"})
            if (chosen.given(other))
                return refuse(400,
                              fmt::format("--{} has no effect with --backend {}", other, name));
        if (name != "lua") return {};
        auto read = read_script("--script", chosen.text("script"), max_script);
        if (!read) return std::unexpected(read.error());
        into.script = std::move(*read);
        return {};
    }
    into.backend = name == "openai" ? backend_type::openai : backend_type::proxy;
    into.backend_url = chosen.text("backend-url");
    if (into.backend_url.empty() && into.backend == backend_type::openai)
        into.backend_url = "https://api.openai.com/v1";
    while (into.backend_url.ends_with('/') && into.backend == backend_type::openai)
        into.backend_url.pop_back();
    if (!into.backend_url.starts_with("http://") && !into.backend_url.starts_with("https://"))
        return refuse(400,
                      fmt::format("--backend-url cannot be \"{}\": write http://HOST:PORT/PATH, or "
                                  "the same with https",
                                  into.backend_url));
    into.backend_socket = chosen.text("backend-socket");
    if (!chosen.has("key-file")) {
        const char* key = std::getenv("OPENAI_API_KEY");
        if (key != nullptr && into.backend == backend_type::openai && http1::is_field_value(key))
            into.key = key;
        return {};
    }
    auto key = read_key(chosen.text("key-file"));
    if (!key) return std::unexpected(key.error());
    into.key = std::move(*key);
    return {};
}

/// The socket on which clients come.
std::vector<option> handoff_options() {
    return {
        {.name = "handoff",
         .value_name = "URI",
         .help = "Unix socket on which a web server hands clients over: unix:///PATH or "
                 "unix://@NAME",
         .is_uri = true},
        {.name = "handoff-type",
         .kind = option_kind::choice,
         .value_name = "TYPE",
         .default_value = "seqpacket",
         .help = "type of that socket, as the web server's module needs it",
         .choices = {"seqpacket", "stream"}},
        {.name = "mode",
         .value_name = "OCTAL",
         .default_value = "0660",
         .help = "permissions of the socket's file; not for @NAME, which has none"},
        {.name = "allow-users",
         .value_name = "LIST",
         .help =
             "users that may hand clients over, by name or number, such as www-data,1000; by "
             "default all that the permissions admit, and for @NAME the daemon's user and root"},
    };
}

/// The source of the events.
std::vector<option> backend_options() {
    return {
        {.name = "backend",
         .kind = option_kind::choice,
         .value_name = "BACKEND",
         .default_value = "mock",
         .help = "source of the events: mock sends test messages; openai requests chat completions "
                 "from an OpenAI-style API and sends each piece of the answer; lua runs a script "
                 "that sends events; proxy forwards the response of a URL; exec runs a program for "
                 "each client",
         .choices = {"mock", "openai", "lua", "proxy", "exec"}},
        {.name = "script",
         .value_name = "FILE",
         .help =
             "Lua script of lua, read at each start: its function handle(request) is called for "
             "each client, and may call send(text), event(name, text) and sleep(milliseconds)",
         .is_path = true},
        {.name = "exec",
         .value_name = "COMMAND",
         .help =
             "sh command of exec, with the client's socket as its standard input and output, "
             "and the handoff's message in $HANDOFF_DATA; it writes the whole response, and "
             "gets SIGHUP when its client disconnects, SIGTERM after --backend-timeout more. At "
             "most 1000 run at a time"},
        {.name = "backend-url",
         .value_name = "URL",
         .help = "URL for requests of openai and proxy, such as http://127.0.0.1:11434/v1; the "
                 "default of openai is https://api.openai.com/v1"},
        {.name = "backend-socket",
         .value_name = "PATH",
         .help = "Unix socket to connect to instead of that URL's host",
         .is_path = true},
        {.name = "key-file",
         .value_name = "FILE",
         .help = "file with the key of the API, which is sent as Authorization: Bearer KEY; "
                 "without it openai uses the daemon's $OPENAI_API_KEY",
         .is_path = true},
        {.name = "model",
         .value_name = "NAME",
         .default_value = "gpt-4o-mini",
         .help = "model if the handoff names none"},
        {.name = "events",
         .kind = option_kind::choice,
         .value_name = "EVENTS",
         .default_value = "pieces",
         .help =
             "events of openai: pieces sends each piece of the answer, content as "
             "{\"content\":TEXT} and the others (tool_calls, reasoning, refusal, finish_reason, "
             "usage) as events of these names; content sends the content alone; chunks sends "
             "the API's chunks as they come",
         .choices = {"pieces", "content", "chunks"}},
    };
}

/// How long things may take, and events that are kept for clients that reconnect.
std::vector<option> time_options() {
    return {
        {.name = "backend-timeout",
         .kind = option_kind::duration,
         .value_name = "TIME",
         .default_value = "60s",
         .help = "time for a backend to begin its response, and for each pause in it, for a client "
                 "to read the rest of an ended stream, and for a program of exec to end after its "
                 "client has disconnected",
         .minimum = 1'000'000},
        {.name = "heartbeat",
         .kind = option_kind::duration,
         .value_name = "TIME",
         .default_value = "15s",
         .help =
             "send a comment to clients of mock, openai and lua after this time without an event",
         .minimum = 1'000'000},
        {.name = "replay-memory",
         .kind = option_kind::size,
         .value_name = "SIZE",
         .default_value = "0",
         .help = "memory to keep events, with ids, for clients that reconnect: a client that is "
                 "handed over again, with the same user_id and request_id and its last_event_id, "
                 "gets the events that it missed. Not for proxy and exec",
         .maximum = std::int64_t{1} << 40},
        {.name = "replay-time",
         .kind = option_kind::duration,
         .value_name = "TIME",
         .default_value = "60s",
         .help = "how long a stream continues without its client, and how long the events of an "
                 "ended stream are kept",
         .minimum = 1'000'000,
         .maximum = std::int64_t{24 * 3600} * 1'000'000'000},
    };
}

/// Of the mock backend.
std::vector<option> mock_options() {
    return {
        {.name = "delay",
         .kind = option_kind::duration,
         .value_name = "TIME",
         .default_value = "50ms",
         .help = "time between two messages of the mock backend",
         .minimum = 1'000'000,
         .maximum = std::int64_t{3600} * 1'000'000'000},
        {.name = "messages",
         .kind = option_kind::integer,
         .value_name = "N",
         .default_value = "18",
         .help = "messages that the mock backend sends to each client",
         .minimum = 1,
         .maximum = 10'000},
    };
}

/// Limits of clients.
std::vector<option> limit_options() {
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
        connections,
        keepalive,
        {.name = "max-message",
         .kind = option_kind::size,
         .value_name = "SIZE",
         .default_value = "128KiB",
         .help = "largest message of a handoff; the client of a larger one gets 413",
         .minimum = 1,
         .maximum = 16 << 20},
        {.name = "max-queue",
         .kind = option_kind::size,
         .value_name = "SIZE",
         .default_value = "64KiB",
         .help = "bytes that may wait for one slow client; beyond it its stream ends. openai, lua "
                 "and proxy wait for their clients instead",
         .minimum = 1,
         .maximum = 1 << 30},
    };
}

}  // namespace

std::vector<option> option_table() {
    return joined(
        {handoff_options(), backend_options(), time_options(), mock_options(), limit_options()});
}

outcome<config> read_config(const settings& chosen) {
    config read;
    auto path = read_path(chosen);
    if (!path) return std::unexpected(path.error());
    read.path = std::move(*path);
    if (chosen.text("handoff-type") == "stream") read.type = unix_socket::socket_type::stream;
    auto mode = read_mode(chosen, read.path);
    if (!mode) return std::unexpected(mode.error());
    read.mode = *mode;
    auto users = read_users(chosen.text("allow-users"));
    if (!users) return std::unexpected(users.error());
    read.allowed_users = std::move(*users);
    read.max_message = static_cast<std::size_t>(chosen.number("max-message"));
    read.max_connections = static_cast<std::uint32_t>(chosen.number("max-connections"));
    read.max_queue = static_cast<std::size_t>(chosen.number("max-queue"));
    read.keepalive = read_tcp_keepalive(chosen);
    if (auto good = read_backend(chosen, read); !good) return std::unexpected(good.error());
    read.replay_memory = static_cast<std::size_t>(chosen.number("replay-memory"));
    read.replay_time = duration(chosen.number("replay-time"));
    if (read.replay_memory > 0 &&
        (read.backend == backend_type::proxy || read.backend == backend_type::exec))
        return refuse(400, fmt::format("--replay-memory has no effect with --backend {}",
                                       chosen.text("backend")));
    if (read.replay_memory == 0 && chosen.given("replay-time"))
        return refuse(400, "--replay-time has no effect without --replay-memory");
    read.delay = duration(chosen.number("delay"));
    read.messages = static_cast<std::uint32_t>(chosen.number("messages"));
    return read;
}

std::uint64_t streams_within(const config& chosen, std::uint64_t files) noexcept {
    const std::uint64_t usable = handoff::receiver::usable_descriptors(files);
    const std::uint64_t left = usable - std::min(own_files, usable);
    // A stream has its client, and the connection to its backend or two handles of its program.
    const bool has_connection =
        chosen.backend == backend_type::openai || chosen.backend == backend_type::proxy;
    const std::uint64_t each = chosen.backend == backend_type::exec ? 3 : has_connection ? 2 : 1;
    return std::max<std::uint64_t>(left / each, 1);
}

}  // namespace eddy::runtime::stream
