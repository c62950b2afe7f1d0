// The program `eddy`. This is the one file where the daemon and the commands that talk to it meet.
#include <eddy/base/log.hpp>
#include <eddy/io/loop.hpp>

#include "cli/commands.hpp"
#include "cli/program.hpp"
#include "daemon/daemon.hpp"
#include "runtime/option.hpp"
#include "runtime/type.hpp"
#include "runtime/units.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace {

using eddy::cli::arguments;
using eddy::cli::complain;
using eddy::cli::context;

/// The option tables of all types, as flags.
std::vector<eddy::cli::type_flags> type_flags() {
    std::vector<eddy::cli::type_flags> types;
    for (const eddy::runtime::type& type : eddy::runtime::types()) {
        eddy::cli::type_flags shown;
        shown.name = type.name;
        shown.summary = type.summary;
        for (const eddy::runtime::option& option : type.options) {
            eddy::cli::flag f;
            f.name = option.name;
            f.letter = option.letter;
            f.help = option.help;
            f.default_value = option.default_value;
            f.is_path = option.is_path;
            f.choices.assign(option.choices.begin(), option.choices.end());
            if (option.kind == eddy::runtime::option_kind::flag)
                f.negatable = true;
            else
                f.value_name = option.value_name.empty() ? "VALUE" : option.value_name;
            shown.flags.push_back(std::move(f));
        }
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

/// An absolute path, so that what the daemon says of it is true wherever it is read.
std::string absolute(std::string_view path) {
    if (path.starts_with('@')) return std::string(path);
    std::error_code error;
    const auto whole = std::filesystem::absolute(path, error);
    return error ? std::string(path) : whole.lexically_normal().string();
}

std::string host_name() {
    char name[256] = {};
    return ::gethostname(name, sizeof name - 1) == 0 ? name : "eddy";
}

int run_daemon(context& with, const arguments& given) {
    eddy::daemon::daemon_options options;
    const char* state = std::getenv("EDDY_STATE_DIR");
    options.state = absolute(given.value(
        "state", state && *state ? std::string_view(state) : eddy::daemon::default_state()));
    options.socket = absolute(with.socket);
    options.name = given.has("name") ? std::string(given.value("name")) : host_name();
    options.types = eddy::runtime::types();

    const auto backend = eddy::parse_backend_kind(given.value("backend", "auto"));
    if (!backend || *backend == eddy::backend_kind::sim) {
        complain(fmt::format("--backend cannot be \"{}\"; it may be auto, uring or epoll",
                             given.value("backend")));
        return eddy::cli::exit_bad_input;
    }
    options.backend = *backend;
    if (given.has("loops")) {
        const auto loops = whole_number(given.value("loops"), eddy::daemon::loop_limit);
        if (!loops || *loops == 0) {
            complain(fmt::format("--loops cannot be \"{}\"; it may be 1 to {}",
                                 given.value("loops"), eddy::daemon::loop_limit));
            return eddy::cli::exit_bad_input;
        }
        options.loops = *loops;
    }
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

eddy::cli::command daemon_command() {
    eddy::cli::command c;
    c.name = "daemon";
    c.operands = "[flags]";
    c.summary = "run the daemon in the foreground";
    c.flags = {
        {.name = "state",
         .value_name = "DIR",
         .help = "the folder of state; else $EDDY_STATE_DIR",
         .default_value = eddy::daemon::default_state()},
        {.name = "backend",
         .value_name = "KIND",
         .help = "how it waits for the kernel: io_uring, or epoll where that is refused",
         .default_value = "auto",
         .choices = {"auto", "uring", "epoll"}},
        {.name = "loops",
         .value_name = "N",
         .help = "event loops, each on a thread, that runtimes are spread over; the default is one "
                 "a processor, at most 4"},
        {.name = "metrics-port",
         .value_name = "PORT",
         .help = "serve /metrics on this port of 127.0.0.1, too; 0 lets the kernel choose"},
        {.name = "name",
         .value_name = "NAME",
         .help = "what it calls itself; else the host's name"},
        {.name = "drain",
         .value_name = "TIME",
         .help = "how long connections may take to finish when a runtime stops",
         .default_value = "5s"},
        {.name = "log-level",
         .value_name = "LEVEL",
         .help = "the least that the log on standard error tells",
         .default_value = "info",
         .choices = {"debug", "info", "warn", "error"}}};
    c.examples = {{"eddy daemon &", ""},
                  {"eddy --socket /tmp/b.sock daemon --state /tmp/b", "a second one beside it"}};
    c.more =
        "It prints one line when it is ready. SIGTERM lets connections finish and ends it; what\n"
        "ran then runs again at the next start. SIGHUP reads the state folder again.";
    c.run = run_daemon;
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
        with.types = type_flags();
        std::vector<eddy::cli::command> commands = eddy::cli::all_commands();
        commands.insert(commands.begin(), daemon_command());
        return eddy::cli::run_program(with, commands, words);
    } catch (const std::exception& failure) {
        // A lack of memory, or an answer of another form than any daemon of ours gives.
        complain(failure.what());
        return eddy::cli::exit_fatal;
    }
}
