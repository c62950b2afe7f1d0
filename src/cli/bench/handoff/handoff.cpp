// `eddy bench handoff`: clients handed over to a stream runtime. Its flags may be written with one
// dash, so that it takes the place of the load generators that streaming daemons come with.
#include "cli/bench/commands.hpp"
#include "cli/bench/handoff/handoff_load.hpp"
#include "cli/bench/handoff/handoff_report.hpp"
#include "cli/bench/report.hpp"

#include <fmt/format.h>

#include <exception>
#include <string>
#include <utility>
#include <vector>

namespace eddy::cli::bench {
namespace {

bool read_kind(const arguments& given, handoff::socket_kind& into) {
    const std::string_view text = given.value("socket-type", "auto");
    if (text == "auto")
        into = handoff::socket_kind::automatic;
    else if (text == "stream")
        into = handoff::socket_kind::stream;
    else if (text == "seqpacket")
        into = handoff::socket_kind::seqpacket;
    else {
        complain(fmt::format("--socket-type cannot be \"{}\"; it may be auto, stream or seqpacket",
                             text));
        return false;
    }
    return true;
}

bool read_options(const arguments& given, handoff_options& into) {
    into.socket = given.value("socket", into.socket);
    into.data = given.value("data", into.data);
    into.over_tcp = given.is_set("tcp");
    into.is_verbose = given.is_set("verbose");
    if (!read_number(given, "connections", 1, 1'000'000, into.connections) ||
        !read_duration(given, "ramp-up", into.ramp_up) ||
        !read_duration(given, "hold", into.hold) ||
        !read_duration(given, "stream-timeout", into.stream_timeout) ||
        !read_number(given, "messages", 0, 1'000'000'000, into.messages) ||
        !read_duration(given, "interval", into.interval) ||
        !read_number(given, "processes", 0, process_limit, into.processes) ||
        !read_number(given, "server-pid", 1, 1 << 22, into.server_pid) ||
        !read_kind(given, into.kind) || !read_io_backend(given, into.io_backend))
        return false;
    if (into.processes > into.connections) {
        complain(fmt::format("{} processes have no use for {} streams; raise --connections",
                             into.processes, into.connections));
        return false;
    }
    if (const auto receiver = endpoint::unix_path(into.socket); !receiver) {
        complain(
            fmt::format("--socket: \"{}\" is no path of a Unix socket, which has at most 107 "
                        "bytes",
                        into.socket));
        return false;
    }
    return true;
}

int run_handoff(context& with, const arguments& given) {
    handoff_report made;
    if (!read_options(given, made.wanted)) return exit_bad_input;
    progress_line progress(wants_progress(given) && !made.wanted.is_verbose);
    try {
        made.result = run_handoffs(made.wanted, progress);
        progress.clear();
        print(with.json ? made.json() : made.text());
        if (given.has("output")) write_report(made.json(), std::string(given.value("output")));
        if (given.has("svg")) write_report(made.figure(), std::string(given.value("svg")));
        return made.is_right() ? exit_ok : exit_bad_input;
    } catch (const std::exception& error) {
        progress.clear();
        complain(error.what());
        return exit_fatal;
    }
}

std::vector<flag> handoff_flags() {
    return {
        {.name = "socket",
         .value_name = "PATH",
         .help = "the runtime's Unix socket",
         .default_value = "/var/run/streaming-daemon.sock"},
        {.name = "connections",
         .letter = 'c',
         .value_name = "N",
         .help = "streams",
         .default_value = "100"},
        {.name = "ramp-up",
         .value_name = "TIME",
         .help = "time over which the streams are started, evenly",
         .default_value = "10s"},
        {.name = "hold",
         .value_name = "TIME",
         .help = "time after the ramp-up by which each client must be handed over; streams then "
                 "under way continue",
         .default_value = "60s"},
        {.name = "stream-timeout",
         .value_name = "TIME",
         .help = "longest duration of a stream, from its handoff",
         .default_value = "120s"},
        {.name = "data",
         .value_name = "JSON",
         .help = "sent with each client",
         .default_value = handoff_options().data},
        {.name = "output", .value_name = "FILE", .help = "also write the JSON report to this file"},
        {.name = "svg",
         .value_name = "FILE",
         .help = "draw the times to the first byte by percentile"},
        {.name = "verbose", .help = "a line on standard error for each stream", .negatable = true},
        {.name = "socket-type",
         .value_name = "KIND",
         .help = "of the runtime's socket: auto, stream or seqpacket",
         .default_value = "auto"},
        {.name = "tcp",
         .help = "clients are TCP connections over loopback; else Unix socket pairs"},
        {.name = "messages",
         .value_name = "N",
         .help = "fewest events of a whole answer, before data: [DONE]",
         .default_value = "0"},
        {.name = "interval",
         .value_name = "TIME",
         .help = "interval of the events, to compute the drift of a stream's end"},
        {.name = "processes",
         .value_name = "N",
         .help = "processes for the streams; 0: one for each 17,000, or as open files allow",
         .default_value = "0"},
    };
}

constexpr const char* explanation =
    "Each stream makes a client, connects to the runtime's socket, sends one end of the "
    "client\n"
    "with the data (SCM_RIGHTS), and reads the answer: status 200, an event stream that is "
    "not\n"
    "chunked, data: [DONE], the end. Times count from connect() to the handoff, and from there "
    "to\n"
    "the first byte and to the end. No stream is started in the place of one that has ended, "
    "and\n"
    "the run ends with the last one.\n"
    "\n"
    "Failures are counted by kind: connect, send, receive (broken off, malformed, another "
    "status),\n"
    "timeout, rejected (503), and incomplete answers. The exit status is 1 if there were any. "
    "The\n"
    "report says so when this program was above 90 % of its CPU, or late with its starts.";

}  // namespace

command handoff_command() {
    command c;
    c.name = "bench handoff";
    c.operands = "[flags]";
    c.summary = "measure a stream runtime by handed-over clients";
    c.single_dash = true;
    c.flags = handoff_flags();
    for (flag& each : common_flags())
        if (each.name != "timeout") c.flags.push_back(std::move(each));
    c.examples = {
        {"eddy bench handoff --socket /run/eddy/llm.sock", "100 streams, started over ten seconds"},
        {"eddy bench handoff -socket /run/eddy/llm.sock -connections 1000 -ramp-up 10s -hold 30s "
         "-output result.json",
         "flags in the style of other load generators"},
        {"eddy bench handoff --socket /run/eddy/llm.sock -c 18000 --messages 18 --interval 50ms "
         "--tcp",
         "TCP clients, answers of 18 events each, and the drift of their ends"},
        {"eddy bench handoff --socket /run/eddy/llm.sock -c 102000 --ramp-up 20s --server-pid "
         "$(pgrep -n "
         "eddy)",
         "six processes, with the runtime's CPU"},
    };
    c.more = explanation;
    c.run = run_handoff;
    return c;
}

}  // namespace eddy::cli::bench
