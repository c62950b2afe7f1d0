// The program `eddy`. This is the one file where the daemon and the commands that talk to it meet.
#include <eddy/base/log.hpp>
#include <eddy/io/loop.hpp>

#include "base/files/private_folder.hpp"
#include "base/text/text.hpp"
#include "cli/commands/commands.hpp"
#include "cli/local_path.hpp"
#include "cli/program.hpp"
#include "daemon/cluster/engines.hpp"
#include "daemon/cluster/own_member.hpp"
#include "daemon/daemon.hpp"
#include "daemon/stacks/stack_check.hpp"
#include "daemon/stream_daemon/stream_daemon.hpp"
#include "daemon/upgrade/outgoing_upgrade.hpp"
#include "runtime/options/option.hpp"
#include "runtime/options/settings.hpp"
#include "runtime/options/units.hpp"
#include "runtime/stream/worker_share.hpp"
#include "runtime/type.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace {

using eddy::cli::arguments;
using eddy::cli::complain;
using eddy::cli::context;

/// The option tables of all types, as flags.
/// The flag of a runtime's option.
eddy::cli::flag flag_of(const eddy::runtime::option& option) {
    eddy::cli::flag f;
    f.name = option.name;
    f.letter = option.letter;
    f.help = option.help;
    f.default_value = option.default_value;
    f.is_path = option.is_path;
    f.is_socket = option.is_socket;
    f.is_uri = option.is_uri;
    f.is_secret = option.shown != nullptr;
    f.repeats = option.kind == eddy::runtime::option_kind::list;
    for (const eddy::runtime::foreign_name& each : option.foreign_names)
        f.foreign_names.emplace_back(each.name, each.instead);
    f.former_name = option.former_name;
    f.absence = option.absence;
    f.choices.assign(option.choices.begin(), option.choices.end());
    if (option.kind == eddy::runtime::option_kind::flag)
        f.negatable = true;
    else
        f.value_name = option.value_name.empty() ? "VALUE" : option.value_name;
    return f;
}

std::vector<eddy::cli::type_flags> type_flags() {
    std::vector<eddy::cli::type_flags> types;
    for (const eddy::runtime::type& type : eddy::runtime::types()) {
        eddy::cli::type_flags shown;
        shown.name = type.name;
        shown.summary = type.summary;
        shown.secret_parameters.assign(type.secret_parameters.begin(),
                                       type.secret_parameters.end());
        shown.callbacks.assign(type.script_callbacks.begin(), type.script_callbacks.end());
        shown.functions = type.script_functions;
        for (const eddy::runtime::option& option : type.options)
            shown.flags.push_back(flag_of(option));
        types.push_back(std::move(shown));
    }
    return types;
}

std::optional<std::size_t> whole_number(std::string_view text, std::size_t most) {
    std::size_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size() || number > most) return {};
    return number;
}

std::string host_name() {
    char name[256] = {};
    return ::gethostname(name, sizeof name - 1) == 0 ? name : "eddy";
}

eddy::cli::control_answer check_stack(const std::string& name, const std::string& body) {
    auto [status, answer] = eddy::daemon::check_stack(eddy::runtime::types(), name, body);
    return {.status = status, .body = std::move(answer)};
}

/// False, after a complaint, where there is none.
bool take_path(std::string& into, eddy::cli::local_path path) {
    if (path)
        into = std::move(*path);
    else
        complain(path.error());
    return path.has_value();
}

/// Reads --sqpoll and --ring-entries; false after a complaint.
bool read_ring(const arguments& given, eddy::daemon::daemon_options& into) {
    using eddy::daemon::least_ring_entries;
    using eddy::daemon::most_ring_entries;
    into.sqpoll = given.is_set("sqpoll");
    if (given.has("ring-entries")) {
        const auto entries = whole_number(given.value("ring-entries"), most_ring_entries);
        if (!entries || *entries < least_ring_entries) {
            complain(fmt::format("--ring-entries cannot be \"{}\"; it may be {} to {}",
                                 given.value("ring-entries"), least_ring_entries,
                                 most_ring_entries));
            return false;
        }
        into.ring_entries = *entries;
    }
    if (into.io_backend != eddy::io_backend_kind::epoll) return true;
    if (!into.sqpoll && into.ring_entries == 0) return true;
    complain(
        fmt::format("--{} is for io_uring, and --io-backend epoll does without it: leave out one "
                    "of them",
                    into.sqpoll ? "sqpoll" : "ring-entries"));
    return false;
}

/// `eddy daemon --upgrade`: asks the running daemon.
int upgrade_daemon(const context& with, const arguments& given) {
    for (const std::string_view each :
         {"state", "io-backend", "loops", "max-runtimes", "metrics-port", "name", "cluster",
          "advertise", "label", "drain", "log-level"}) {
        if (!given.has(each)) continue;
        complain(
            fmt::format("--{} has no effect with --upgrade: the new daemon has the flags of "
                        "the running one; restart that to change them",
                        each));
        return eddy::cli::exit_bad_input;
    }
    eddy::cli::upgrade_order order;
    const std::string own = std::filesystem::read_symlink("/proc/self/exe").string();
    if (!take_path(order.program, eddy::cli::absolute_path(given.value("with", own))))
        return eddy::cli::exit_bad_input;
    if (given.has("upgrade-timeout")) {
        const auto time = eddy::runtime::parse_duration(given.value("upgrade-timeout"));
        if (!time || *time == 0 || eddy::duration(*time) > eddy::daemon::longest_upgrade_patience) {
            complain(
                fmt::format("--upgrade-timeout cannot be \"{}\"; write a time of at most 1h, "
                            "such as 30 (seconds) or 2m",
                            given.value("upgrade-timeout")));
            return eddy::cli::exit_bad_input;
        }
        order.timeout_s = std::chrono::duration<double>(eddy::duration(*time)).count();
    }
    return eddy::cli::upgrade_daemon(with, order);
}

bool read_limit(const arguments& given, eddy::daemon::daemon_options& options) {
    if (!given.has("max-runtimes")) return true;
    const auto runtimes = whole_number(given.value("max-runtimes"), eddy::daemon::most_runtimes);
    if (!runtimes || *runtimes == 0) {
        complain(fmt::format("--max-runtimes cannot be \"{}\"; it may be 1 to {}",
                             given.value("max-runtimes"), eddy::daemon::most_runtimes));
        return false;
    }
    options.runtimes = *runtimes;
    return true;
}

/// Reads --cluster and the flags beside it; false after a complaint.
bool read_cluster(const arguments& given, eddy::daemon::daemon_options& into) {
    if (!given.has("cluster")) {
        for (const std::string_view each : {"advertise", "label"}) {
            if (!given.has(each)) continue;
            complain(fmt::format("--{} goes with --cluster", each));
            return false;
        }
        return true;
    }
    eddy::daemon::cluster_options made;
    made.engine = given.value("cluster");
    if (!made.engine.empty() && !eddy::daemon::is_engine_uri(made.engine) &&
        !take_path(made.engine, eddy::cli::absolute_path(made.engine)))
        return false;
    made.advertise = given.value("advertise");
    made.label = given.value("label");
    if (given.has("advertise") && made.advertise.empty()) {
        complain("--advertise is empty: write the name or address of this machine");
        return false;
    }
    if (auto valid = eddy::daemon::check_cluster_options(made, into.name); !valid) {
        complain(valid.error().message);
        return false;
    }
    into.cluster = std::move(made);
    return true;
}

int run_daemon(context& with, const arguments& given) {
    if (given.has("upgrade")) return upgrade_daemon(with, given);
    for (const std::string_view each : {"with", "upgrade-timeout"}) {
        if (!given.has(each)) continue;
        complain(fmt::format("--{} goes with --upgrade", each));
        return eddy::cli::exit_bad_input;
    }
    eddy::daemon::daemon_options options;
    const char* state = std::getenv("EDDY_STATE_DIR");
    // Absolute, so that the daemon's messages about them hold in any working folder.
    if (!take_path(options.state, eddy::cli::absolute_path(given.value(
                                      "state", state && *state ? std::string_view(state)
                                                               : eddy::daemon::default_state()))) ||
        !take_path(options.socket, eddy::cli::absolute_socket(with.socket)))
        return eddy::cli::exit_bad_input;
    options.name = given.has("name") ? std::string(given.value("name")) : host_name();
    options.types = eddy::runtime::types();
    options.socket_group = given.value("socket-group");
    if (!read_cluster(given, options)) return eddy::cli::exit_bad_input;

    const auto io_backend = eddy::parse_io_backend_kind(given.value("io-backend", "auto"));
    if (!io_backend || *io_backend == eddy::io_backend_kind::sim) {
        complain(fmt::format("--io-backend cannot be \"{}\"; it may be auto, uring or epoll",
                             given.value("io-backend")));
        return eddy::cli::exit_bad_input;
    }
    options.io_backend = *io_backend;
    if (given.has("loops")) {
        const auto loops = whole_number(given.value("loops"), eddy::daemon::loop_limit);
        if (!loops || *loops == 0) {
            complain(fmt::format("--loops cannot be \"{}\"; it may be 1 to {}",
                                 given.value("loops"), eddy::daemon::loop_limit));
            return eddy::cli::exit_bad_input;
        }
        options.loops = *loops;
    }
    if (!read_ring(given, options)) return eddy::cli::exit_bad_input;
    if (!read_limit(given, options)) return eddy::cli::exit_bad_input;
    if (given.has("metrics-port")) {
        const auto port = whole_number(given.value("metrics-port"), 65535);
        if (!port) {
            complain(fmt::format("--metrics-port cannot be \"{}\"; it may be 0 to 65535",
                                 given.value("metrics-port")));
            return eddy::cli::exit_bad_input;
        }
        options.metrics_port = static_cast<std::uint16_t>(*port);
    }
    if (given.has("drain")) {
        const auto drain = eddy::runtime::parse_duration(given.value("drain"));
        if (!drain || *drain > eddy::runtime::largest_duration) {
            complain(
                fmt::format("--drain cannot be \"{}\"; write a time of at most {}, such as 30 "
                            "(seconds), 100ms or 2m",
                            given.value("drain"),
                            eddy::runtime::format_duration(eddy::runtime::largest_duration)));
            return eddy::cli::exit_bad_input;
        }
        options.drain = eddy::duration(*drain);
    }
    const auto level = eddy::parse_log_level(given.value("log-level", "info"));
    if (!level) {
        complain(fmt::format("--log-level cannot be \"{}\"; it may be debug, info, warn or error",
                             given.value("log-level")));
        return eddy::cli::exit_bad_input;
    }
    eddy::set_log_level(*level);
    return eddy::daemon::run_daemon(options);
}

std::vector<eddy::cli::flag> upgrade_flags() {
    return {
        {.name = "upgrade",
         .help = "no new daemon: the running one starts this program in its place, and passes on "
                 "its sockets, clients' queues and caches' data; if that fails it goes on"},
        {.name = "with",
         .value_name = "PATH",
         .help = "--upgrade: the program; else the one of this command",
         .is_path = true},
        {.name = "upgrade-timeout",
         .value_name = "TIME",
         .help = "--upgrade: silence of the new daemon after which it is killed",
         .default_value = "30s"}};
}

std::vector<eddy::cli::flag> cluster_flags() {
    return {
        {.name = "cluster",
         .value_name = "DIR|URI",
         .help = "be a member of the cluster of daemons that share this folder, or an etcd "
                 "(etcd://HOST:PORT,...), under --name: "
                 "`eddy cluster ls` shows all, and proxies find the groups of all"},
        {.name = "advertise",
         .value_name = "HOST",
         .help = "--cluster: name or address at which the others reach this machine; by default "
                 "its first address"},
        {.name = "label",
         .value_name = "LABEL",
         .help = "--cluster: a word about this member that the others see, such as its room"}};
}

eddy::cli::command daemon_command() {
    eddy::cli::command c;
    c.name = "daemon";
    c.operands = "[flags]";
    c.summary = "run the daemon in the foreground";
    c.flags = {
        {.name = "state",
         .value_name = "DIR",
         .help = "the state folder; else $EDDY_STATE_DIR",
         .default_value = eddy::daemon::default_state()},
        {.name = "io-backend",
         .value_name = "KIND",
         .help = "kernel interface: auto is io_uring, or epoll if io_uring is refused",
         .default_value = "auto",
         .choices = {"auto", "uring", "epoll"},
         .former_name = "backend"},
        {.name = "loops",
         .value_name = "N",
         .help = "event loops for the runtimes, each on a thread; the default is one a processor, "
                 "at most 4"},
        {.name = "max-runtimes",
         .value_name = "N",
         .help = "most runtimes; create refuses more. One that serves has an open file or more, "
                 "and its clients have one each: `ulimit -n` (LimitNOFILE= of the service) must "
                 "allow them",
         .default_value = "20000"},
        {.name = "socket-group",
         .value_name = "GROUP",
         .help = "members of this group may control the daemon, too; without it only its own user "
                 "and root"},
        {.name = "sqpoll",
         .help =
             "io_uring only: a thread of the kernel submits for each loop, so that it makes "
             "fewer system calls. Each such thread takes a whole processor while its loop works "
             "and for a second after: with fewer free processors than loops all gets slower"},
        {.name = "ring-entries",
         .value_name = "N",
         .help =
             "io_uring only: entries of each loop's ring, 1024 to 32768, rounded up to a power of "
             "two. More take 64 bytes and 2 completions of 16 bytes each, also of a loop that is "
             "idle",
         .default_value = "1024"},
        {.name = "metrics-port",
         .value_name = "PORT",
         .help = "also serve /metrics on this port of 127.0.0.1; 0 lets the kernel choose"},
        {.name = "name", .value_name = "NAME", .help = "name of the daemon; else the host's name"},
        {.name = "drain",
         .value_name = "TIME",
         .help = "time for connections to finish when a runtime stops",
         .default_value = "5s"},
        {.name = "log-level",
         .value_name = "LEVEL",
         .help = "least level of the log on standard error",
         .default_value = "info",
         .choices = {"debug", "info", "warn", "error"}}};
    std::ranges::move(cluster_flags(), std::back_inserter(c.flags));
    std::ranges::move(upgrade_flags(), std::back_inserter(c.flags));
    c.examples = {{"eddy daemon &", ""},
                  {"eddy --socket /tmp/b.sock daemon --state /tmp/b", "a second one beside it"},
                  {"eddy daemon --name a --cluster /srv/eddy", "one of several machines"},
                  {"eddy daemon --upgrade", "after apt upgrade: no connection is refused"}};
    c.more =
        "It prints one line when it is ready. SIGTERM lets connections finish and ends it;\n"
        "runtimes that were running start again with the next daemon. SIGHUP reads the state\n"
        "folder again. As a service it reports to $NOTIFY_SOCKET: Type=notify, WatchdogSec=.";
    c.run = run_daemon;
    return c;
}

/// A flag of `eddy stream-daemon`: the runtime's option that it stands for, and the variable of the
/// environment that counts without the flag.
struct stream_flag {
    eddy::cli::flag shown;
    std::string option;
    const char* variable = "";
};

/// Flags of the socket on which clients are handed over, named as in other programs of this kind.
std::vector<stream_flag> handoff_flags() {
    return {
        {{.name = "socket",
          .value_name = "PATH",
          .help = "Unix socket on which clients are handed over; @NAME is an abstract one",
          .default_value = "/var/run/streaming-daemon.sock",
          .is_path = true,
          .is_socket = true},
         "handoff",
         "DAEMON_SOCKET_PATH"},
        {{.name = "socket-mode",
          .value_name = "OCTAL",
          .help = "permissions of its file; not for @NAME, which has none",
          .default_value = "0660"},
         "mode",
         "DAEMON_SOCKET_MODE"},
        {{.name = "allow-users",
          .value_name = "LIST",
          .help = "users that may hand clients over, by name or number, such as www-data,1000; by "
                  "default all that the permissions admit, and for @NAME this user and root"},
         "allow_users",
         "DAEMON_ALLOW_USERS"},
        {{.name = "socket-type",
          .value_name = "TYPE",
          .help = "its type",
          .default_value = "seqpacket",
          .choices = {"seqpacket", "stream"}},
         "handoff_type",
         "DAEMON_SOCKET_TYPE"},
        {{.name = "max-connections",
          .value_name = "N",
          .help = "streams at a time; further clients get 503",
          .default_value = "100000"},
         "max_connections",
         "DAEMON_MAX_CONNECTIONS"},
        {{.name = "max-message",
          .value_name = "SIZE",
          .help = "largest message of a handoff",
          .default_value = "128KiB"},
         "max_message",
         "DAEMON_MAX_MESSAGE"},
    };
}

/// Flags of the source of the events.
std::vector<stream_flag> source_flags() {
    return {
        {{.name = "source",
          .value_name = "SOURCE",
          .help = "source of the events",
          .default_value = "mock",
          .choices = {"mock", "openai", "lua", "proxy", "exec"},
          .former_name = "backend"},
         "source",
         "DAEMON_BACKEND_PROVIDER"},
        {{.name = "exec",
          .value_name = "COMMAND",
          .help = "command for sh that exec runs for each client; it writes the whole response"},
         "exec",
         "DAEMON_EXEC"},
        {{.name = "openai-base",
          .value_name = "URL",
          .help = "URL of the API, or of the server of proxy; $OPENAI_API_KEY is the key"},
         "source_url",
         "OPENAI_API_BASE"},
        {{.name = "openai-socket",
          .value_name = "PATH",
          .help = "Unix socket to connect to in place of its host",
          .is_path = true},
         "source_socket",
         "OPENAI_API_SOCKET"},
        {{.name = "message-delay",
          .value_name = "TIME",
          .help = "time between two messages of the mock source",
          .default_value = "50ms"},
         "delay",
         "DAEMON_MESSAGE_DELAY"},
        {{.name = "messages",
          .value_name = "N",
          .help = "messages of the mock source to each client",
          .default_value = "18"},
         "messages",
         "DAEMON_MESSAGES"},
    };
}

/// The flags above, and each other option of the runtime under its own name.
std::vector<stream_flag> stream_flags() {
    std::vector<stream_flag> all = handoff_flags();
    for (stream_flag& each : source_flags()) all.push_back(std::move(each));
    const std::size_t named = all.size();
    for (const eddy::runtime::option& option : eddy::runtime::find_type("stream")->options) {
        const std::string key = eddy::option_key(option.name);
        const bool is_named =
            std::any_of(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(named),
                        [&](const stream_flag& each) { return each.option == key; });
        if (!is_named) all.push_back({.shown = flag_of(option), .option = key});
    }
    return all;
}

std::string_view from_environment(const char* variable) {
    const char* value = std::getenv(variable);
    return value ? value : "";
}

/// HOST:PORT of the metrics page; empty for none.
std::string metrics_address(const arguments& given) {
    if (given.has("metrics-addr")) return std::string(given.value("metrics-addr"));
    if (from_environment("DAEMON_METRICS_ENABLED") == "false") return {};
    return std::string(from_environment("DAEMON_METRICS_ADDR"));
}

/// Value of a flag, else of a variable of the environment, which may be empty.
std::string_view flag_or(const arguments& given, std::string_view flag, const char* variable) {
    return given.has(flag) ? given.value(flag) : from_environment(variable);
}

/// Reads the number of processes and their io-backend; false after a complaint.
bool read_processes(const arguments& given, eddy::daemon::stream_daemon_options& into) {
    const std::string_view workers = flag_or(given, "workers", "DAEMON_WORKERS");
    if (!workers.empty()) {
        const auto read = whole_number(workers, eddy::runtime::stream::max_workers);
        if (!read || *read == 0) {
            complain(fmt::format("--workers cannot be \"{}\"; it may be 1 to {}", workers,
                                 eddy::runtime::stream::max_workers));
            return false;
        }
        into.workers = *read;
    }
    const std::string_view name = flag_or(given, "io-backend", "DAEMON_IO_BACKEND");
    const auto kind = eddy::parse_io_backend_kind(name.empty() ? "auto" : name);
    if (!kind || *kind == eddy::io_backend_kind::sim) {
        complain(
            fmt::format("--io-backend cannot be \"{}\"; it may be auto, uring or epoll", name));
        return false;
    }
    into.io_backend = *kind;
    return true;
}

/// A flag's values: as given, else that of the environment or of its default.
std::vector<std::string> values_of(const stream_flag& of, const arguments& given) {
    std::vector<std::string> all;
    if (of.shown.repeats) {
        for (const auto& [name, value] : given.values())
            if (name == of.shown.name) all.push_back(value);
        return all;
    }
    std::string_view value = from_environment(of.variable);
    // Others have the runtime's own default; given, an option may refuse others.
    if (value.empty() && !given.has(of.shown.name) && of.option != "handoff") return all;
    if (value.empty()) value = of.shown.default_value;
    value = given.value(of.shown.name, value);
    if (!value.empty()) all.emplace_back(value);
    return all;
}

/// Reads the runtime's options from flags and environment, and the words that give them to a
/// worker. False after a complaint.
bool read_stream_options(const arguments& given, nlohmann::json& chosen,
                         std::vector<std::string>& for_workers) {
    for (const stream_flag& each : stream_flags()) {
        std::vector<std::string> values = values_of(each, given);
        if (values.empty()) continue;
        for (std::string& value : values) {
            for_workers.push_back(fmt::format("-{}={}", each.shown.name, value));
            if (each.option != "handoff") continue;
            if (!take_path(value, eddy::cli::absolute_socket(value))) return false;
            value.insert(0, "unix://");
        }
        if (each.shown.repeats)
            chosen[each.option] = std::move(values);
        else
            chosen[each.option] = std::move(values.front());
    }
    return true;
}

int run_stream_daemon(context&, const arguments& given) {
    nlohmann::json chosen = nlohmann::json::object();
    std::vector<std::string> for_workers = {"stream-daemon"};
    if (!read_stream_options(given, chosen, for_workers)) return eddy::cli::exit_bad_input;
    // The environment may have these for another program.
    if (const std::string source = chosen.value("source", "mock");
        source != "openai" && source != "proxy")
        for (const char* const name : {"source_url", "source_socket"}) chosen.erase(name);
    const eddy::runtime::type& type = *eddy::runtime::find_type("stream");
    auto options = eddy::runtime::settings::parse(type.options, chosen);
    if (!options) {
        complain(options.error().message);
        return eddy::cli::exit_bad_input;
    }
    if (auto good = type.check(*options); !good) {
        complain(good.error().message);
        return eddy::cli::exit_bad_input;
    }
    eddy::daemon::stream_daemon_options daemon{.runtime = std::move(*options), .metrics = {}};
    if (const std::string where = metrics_address(given); !where.empty()) {
        const std::size_t colon = where.rfind(':');
        const auto port = whole_number(where.substr(colon + 1), 65535);
        const std::string host = where.substr(0, std::min(colon, where.size()));
        const auto read = colon == std::string::npos || !port
                              ? eddy::result<eddy::endpoint>(eddy::fail(eddy::errc::bad_address))
                              : eddy::endpoint::ip(host.empty() ? "0.0.0.0" : host,
                                                   static_cast<std::uint16_t>(*port));
        if (!read) {
            complain(
                fmt::format("--metrics-addr cannot be \"{}\"; write a numeric address and a "
                            "port, such as 127.0.0.1:9090",
                            where));
            return eddy::cli::exit_bad_input;
        }
        daemon.metrics = *read;
    }
    const std::string_view drain_text = given.value("drain", "10s");
    const auto drain = eddy::runtime::parse_duration(drain_text);
    if (!drain) {
        complain(fmt::format(
            "--drain cannot be \"{}\"; write a time, such as 30 (seconds) or 100ms", drain_text));
        return eddy::cli::exit_bad_input;
    }
    daemon.drain = eddy::duration(*drain);
    for_workers.push_back(fmt::format("-drain={}", drain_text));
    daemon.worker_arguments = std::move(for_workers);
    if (!read_processes(given, daemon)) return eddy::cli::exit_bad_input;
    return eddy::daemon::run_stream_daemon(daemon);
}

eddy::cli::command stream_daemon_command() {
    eddy::cli::command c;
    c.name = "stream-daemon";
    c.operands = "[flags]";
    c.summary = "run one stream runtime in the foreground, without the daemon";
    c.single_dash = true;
    for (stream_flag& each : stream_flags()) c.flags.push_back(std::move(each.shown));
    c.flags.push_back({.name = "metrics-addr",
                       .value_name = "HOST:PORT",
                       .help = "serve /metrics and /healthz there; else $DAEMON_METRICS_ADDR"});
    c.flags.push_back({.name = "drain",
                       .value_name = "TIME",
                       .help = "time for streams to end after SIGTERM",
                       .default_value = "10s"});
    c.flags.push_back({.name = "workers",
                       .value_name = "N",
                       .help = "processes that accept clients from the socket; by default as many "
                               "as --max-connections needs open files for, one on io_uring"});
    c.flags.push_back(
        {.name = "io-backend",
         .value_name = "KIND",
         .help = "kernel interface: auto is io_uring, or epoll if io_uring is refused",
         .default_value = "auto",
         .choices = {"auto", "uring", "epoll"}});
    c.examples = {
        {"eddy stream-daemon -socket /run/llm.sock -socket-mode 0666", ""},
        {"eddy stream-daemon -socket /run/llm.sock -metrics-addr 127.0.0.1:9090", ""},
        {"eddy stream-daemon -socket /run/llm.sock -workers 4", "on four processors"},
        {"eddy bench handoff -socket /run/llm.sock -connections 1000", "in another terminal"}};
    c.more =
        "One stream runtime in place of a program of its own: flags may have one dash or two, and\n"
        "the variables DAEMON_SOCKET_PATH, DAEMON_SOCKET_MODE, DAEMON_ALLOW_USERS,\n"
        "DAEMON_MAX_CONNECTIONS, DAEMON_BACKEND_PROVIDER, DAEMON_METRICS_ADDR,\n"
        "DAEMON_METRICS_ENABLED, DAEMON_WORKERS, DAEMON_IO_BACKEND, OPENAI_API_BASE,\n"
        "OPENAI_API_SOCKET and OPENAI_API_KEY count without them. A worker that dies is started\n"
        "again; its streams are lost, the others' go on. SIGTERM lets streams end and prints "
        "their\n"
        "peak; a second one ends it at once.";
    c.run = run_stream_daemon;
    return c;
}

}  // namespace

int main(int count, char** values) {
    try {
        const std::vector<std::string> words(values + 1, values + count);
        context with;
        with.version = eddy::daemon::version();
        with.parts = eddy::daemon::parts();
        with.default_socket = eddy::daemon::default_socket();
        with.system_socket = eddy::control_socket_of_root;
        with.types = type_flags();
        with.check_stack = check_stack;
        std::vector<eddy::cli::command> commands = eddy::cli::all_commands();
        commands.insert(commands.begin(), daemon_command());
        commands.push_back(stream_daemon_command());
        return eddy::cli::run_program(with, commands, words);
    } catch (const std::exception& failure) {
        // A lack of memory, or an answer of another form than any daemon of ours gives.
        complain(failure.what());
        return eddy::cli::exit_fatal;
    }
}
