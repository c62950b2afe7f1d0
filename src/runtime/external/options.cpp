// The table of an external process's options.
#include "runtime/external/options.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

namespace eddy::runtime::external {
namespace {

using row = bound_option<config>;

constexpr std::size_t longest_kind = 32;

outcome<std::string> read_kind(const settings& chosen, const config& /*so_far*/) {
    const std::string& text = chosen.text("kind");
    const bool is_word =
        !text.empty() && text.size() <= longest_kind && std::ranges::all_of(text, [](char each) {
            return (each >= 'a' && each <= 'z') || (each >= 'A' && each <= 'Z') ||
                   (each >= '0' && each <= '9') || each == '-' || each == '_';
        });
    if (is_word) return text;
    return refuse(400, "--kind cannot be \"" + text +
                           "\": write a word such as cache or postgres, of at most 32 letters, "
                           "digits and dashes");
}

outcome<std::int64_t> read_pid(const settings& chosen, const config& /*so_far*/) {
    const std::int64_t pid = chosen.number("pid");
    if (pid == 1)
        return refuse(400,
                      "--pid 1 is the machine's first process, not a server's; `ss -ltnp` "
                      "shows which process listens on a port");
    if (pid == ::getpid())
        return refuse(400, "--pid is the daemon's own process: its runtimes are in `eddy ls`");
    return pid;
}

}  // namespace

const bound_options<config>& option_rows() {
    static const bound_options<config> rows = {
        row::read_by(&config::kind,
                     {.name = "kind",
                      .value_name = "WORD",
                      .default_value = "server",
                      .help = "what it is, such as cache or postgres; `eddy ls` shows it",
                      .live = true},
                     read_kind),
        row::bound(&config::port, {.name = "port",
                                   .letter = 'p',
                                   .kind = option_kind::integer,
                                   .value_name = "N",
                                   .help = "TCP port that it listens on, on this machine",
                                   .minimum = 1,
                                   .maximum = 65535}),
        row::read_by(
            &config::pid,
            {.name = "pid",
             .kind = option_kind::integer,
             .value_name = "N",
             .help = "its process, which must listen on the port; its end is seen at once. "
                     "Without it any process may, and the port is looked at now and then",
             .minimum = 1,
             .maximum = std::numeric_limits<std::int32_t>::max()},
            read_pid),
        row::bound(&config::start_time,
                   {.name = "pid-start",
                    .kind = option_kind::integer,
                    .value_name = "TICKS",
                    .help = "when the process began, as in /proc/PID/stat, so that a later process "
                            "of the same number is not taken for it; `eddy attach` sets it"}),
        row::bound(&config::interval,
                   {.name = "interval",
                    .kind = option_kind::duration,
                    .value_name = "TIME",
                    .default_value = "5s",
                    .help = "time from one look at the port to the next, without --pid",
                    .minimum = 1'000'000,
                    .live = true}),
    };
    return rows;
}

outcome<config> read_config(const settings& chosen) {
    config read;
    if (auto bound = read_bound(option_rows(), chosen, read); !bound)
        return std::unexpected(std::move(bound.error()));
    if (read.port == 0)
        return refuse(400,
                      "say which port it listens on by --port N; `eddy attach TYPE NAME PORT` "
                      "does all at once");
    if (read.pid == 0 && read.start_time != 0)
        return refuse(400, "--pid-start has no effect without --pid N");
    if (read.pid != 0 && chosen.given("interval"))
        return refuse(400,
                      "--interval has no effect with --pid, whose end is seen at once; leave "
                      "it out, or take it back with --unset interval");
    return read;
}

}  // namespace eddy::runtime::external
