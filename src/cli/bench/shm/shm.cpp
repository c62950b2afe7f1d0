// `eddy bench shm`: round trips between two processes over shared memory, beside a Unix socket and
// TCP. Its flags may be written with one dash.
#include "cli/bench/commands.hpp"
#include "cli/bench/report.hpp"
#include "cli/bench/shm/shm_report.hpp"
#include "cli/bench/shm/shm_rounds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <string>
#include <utility>
#include <vector>

namespace eddy::cli::bench {
namespace {

/// Most warm-up connections, before the ones that --connects and --kills measure.
constexpr std::uint64_t most_lives_of_warmup = 20;

bool read_wait(const arguments& given, shm::waiting& into) {
    const std::string_view text = given.value("wait", "adaptive");
    if (text == "adaptive")
        into = shm::waiting::adaptive;
    else if (text == "spin")
        into = shm::waiting::spin;
    else if (text == "sleep")
        into = shm::waiting::sleep;
    else {
        complain(fmt::format("--wait cannot be \"{}\"; it may be adaptive, spin or sleep", text));
        return false;
    }
    return true;
}

/// "0,1", or "any" for no choice.
bool read_processors(const arguments& given, shm_bench_options& into) {
    const std::string_view text = given.value("cpus", "0,1");
    if (text == "any") {
        into.client_cpu = into.server_cpu = -1;
        return true;
    }
    const std::string copy(text);
    char end = 0;
    if (std::sscanf(copy.c_str(), "%d,%d%c", &into.client_cpu, &into.server_cpu, &end) == 2 &&
        into.client_cpu >= 0 && into.server_cpu >= 0)
        return true;
    complain(
        fmt::format("--cpus cannot be \"{}\"; write two numbers of processors, such as 0,1, "
                    "or any",
                    text));
    return false;
}

/// Number of connections, in the place of --reps, and of warm-up connections.
bool read_lives(const arguments& given, std::string_view flag, shm_measurement what,
                shm_bench_options& into) {
    if (!given.has(flag)) return true;
    into.measured = what;
    into.warmup = most_lives_of_warmup;
    if (!read_number(given, flag, 1, 1'000'000, into.reps)) return false;
    into.warmup = std::min(into.warmup, into.reps);
    return true;
}

bool read_options(const arguments& given, shm_bench_options& into) {
    if (given.is_set("tcp") && given.is_set("unix")) {
        complain("--tcp and --unix exclude each other; --compare runs all three");
        return false;
    }
    if (given.has("connects") + given.has("kills") + given.has("stream") > 1) {
        complain("--connects, --kills and --stream exclude each other");
        return false;
    }
    if (given.is_set("tcp")) into.over = carrier::tcp;
    if (given.is_set("unix")) into.over = carrier::unix_socket;
    into.keeps_latencies = !given.is_set("nostats");
    into.is_asymmetric = given.is_set("asymmetric");
    into.in_place = given.is_set("in-place");
    return read_number(given, "reps", 1, shm_bench_options::max_reps, into.reps) &&
           read_number(given, "warmup", 0, shm_bench_options::max_reps, into.warmup) &&
           read_number(given, "pause", 0, 1'000'000'000, into.pause_ns) &&
           read_number(given, "reply-size", 1, shm_bench_options::max_message, into.reply_size) &&
           read_number(given, "port", 1, 65'535, into.port) &&
           read_number(given, "stream", 1, shm_bench_options::max_message, into.message_size) &&
           read_seconds(given, "seconds", 0.01, 3600, into.seconds) &&
           read_number(given, "ring", shm::min_ring_size, shm::max_ring_size, into.ring_size) &&
           read_wait(given, into.wait) && read_processors(given, into) &&
           read_lives(given, "connects", shm_measurement::connects, into) &&
           read_lives(given, "kills", shm_measurement::kills, into);
}

std::vector<carrier> carriers(const arguments& given, const shm_bench_options& wanted) {
    if (!given.is_set("compare")) return {wanted.over};
    return {carrier::shm, carrier::unix_socket, carrier::tcp};
}

int run_shm(context& with, const arguments& given) {
    shm_bench_options wanted;
    if (!read_options(given, wanted)) return exit_bad_input;
    progress_line progress(wants_progress(given));
    try {
        std::vector<shm_report> reports;
        for (const carrier each : carriers(given, wanted)) {
            shm_report made;
            made.wanted = wanted;
            made.wanted.over = each;
            made.result = run_shm_bench(made.wanted, progress);
            if (!with.json) print(made.text());
            reports.push_back(std::move(made));
        }
        if (with.json) print(to_json(reports));
        if (given.has("output"))
            write_report(dump(reports.front()), std::string(given.value("output")));
        if (given.has("svg")) write_report(figure(reports), std::string(given.value("svg")));
        return exit_ok;
    } catch (const std::exception& error) {
        progress.clear();
        complain(error.what());
        return exit_fatal;
    }
}

std::vector<flag> shm_flags() {
    return {
        {.name = "tcp", .help = "over TCP on loopback in place of shared memory"},
        {.name = "unix", .help = "over a Unix socket"},
        {.name = "compare", .help = "over all three, one after the other"},
        {.name = "reps",
         .value_name = "N",
         .help = "measured round trips",
         .default_value = "300000"},
        {.name = "warmup",
         .value_name = "N",
         .help = "round trips before the measurement",
         .default_value = "50000"},
        {.name = "pause",
         .value_name = "NS",
         .help = "nanoseconds between two round trips",
         .default_value = "0"},
        {.name = "reply-size",
         .value_name = "BYTES",
         .help = "size of the answer to a ping of 4 bytes",
         .default_value = "1024"},
        {.name = "port",
         .value_name = "PORT",
         .help = "of TCP, and in the name of the Unix socket",
         .default_value = "3333"},
        {.name = "nostats", .help = "keep no latencies: for very many round trips"},
        {.name = "wait",
         .value_name = "HOW",
         .help = "adaptive (spin, then sleep), spin or sleep",
         .default_value = "adaptive"},
        {.name = "asymmetric", .help = "no fence when publishing: the sleeper pays for it"},
        {.name = "stream",
         .value_name = "BYTES",
         .help = "one-way messages of this size instead, for --seconds"},
        {.name = "seconds",
         .value_name = "S",
         .help = "time of one-way messages",
         .default_value = "2"},
        {.name = "connects",
         .value_name = "N",
         .help = "measure this many connects and closes instead"},
        {.name = "kills",
         .value_name = "N",
         .help = "measure instead how long after SIGKILL of its peer a thread reads the end, so "
                 "many times"},
        {.name = "in-place", .help = "one-way messages are neither copied in nor out"},
        {.name = "ring",
         .value_name = "BYTES",
         .help = "size of each ring, a power of two",
         .default_value = "262144"},
        {.name = "cpus",
         .value_name = "A,B",
         .help = "processors of the client and the server, or any",
         .default_value = "0,1"},
        {.name = "output",
         .value_name = "FILE",
         .help = "write the sorted latencies in microseconds, one a line, for gnuplot"},
        {.name = "svg", .value_name = "FILE", .help = "draw the latencies by percentile"},
        {.name = "no-progress", .help = "no progress line, also on a terminal"},
    };
}

}  // namespace

command shm_command() {
    command c;
    c.name = "bench shm";
    c.operands = "[flags]";
    c.summary = "measure round trips over shared memory, beside sockets";
    c.single_dash = true;
    c.flags = shm_flags();
    c.examples = {
        {"eddy bench shm -reps 500000", "flags with one dash or two"},
        {"eddy bench shm --tcp --output tcp.txt", "over TCP; gnuplot: plot 'tcp.txt' with lines"},
        {"eddy bench shm --compare --svg rounds.svg", "all three, and a figure of them"},
        {"eddy bench shm --stream 64 --asymmetric", "messages a second, one way"},
        {"eddy bench shm --connects 5000 --compare", "what a connection costs, over all three"},
    };
    c.more =
        "A client on one processor sends 4 bytes to a server on the other one and waits for the\n"
        "reply. The line before the table has the time in which the two processors pass a cache\n"
        "line to and fro, before and after: a large difference means that other work ran.";
    c.run = run_shm;
    return c;
}

}  // namespace eddy::cli::bench
