// The table of a program's options, and their contradictions.
#include "runtime/program/options.hpp"

#include "base/files/regular_file.hpp"
#include "runtime/program/environment.hpp"
#include "runtime/program/signal_names.hpp"
#include "runtime/socket_address.hpp"
#include "runtime/target.hpp"

#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <initializer_list>
#include <string_view>
#include <system_error>
#include <utility>

namespace eddy::runtime::program {
namespace {

using row = bound_option<config>;

constexpr std::int64_t ns_a_second = 1'000'000'000;

template <class Number>
std::optional<Number> whole_number(std::string_view text) {
    Number read = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), read);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return read;
}

// --- Readers -------------------------------------------------------------------------------------

outcome<std::string> read_command(const settings& chosen, const config& /*so_far*/) {
    const std::string& text = chosen.text("command");
    if (text.empty())
        return refuse(400, "say which program by --command PATH; `eddy add PATH` does all at once");
    if (auto whole = check_whole_path("command", text); !whole)
        return std::unexpected(std::move(whole.error()));
    return text;
}

outcome<std::vector<std::string>> read_arguments(const settings& chosen, const config& /*so_far*/) {
    for (const std::string& each : chosen.list("arg"))
        if (each.contains('\0')) return refuse(400, "--arg: an argument has no zero bytes");
    return chosen.list("arg");
}

outcome<std::vector<std::string>> read_given_variables(const settings& chosen,
                                                       const config& /*so_far*/) {
    for (const std::string& each : chosen.list("env"))
        if (auto fine = check_variable(each, "--env"); !fine)
            return std::unexpected(std::move(fine.error()));
    return chosen.list("env");
}

/// USER[:GROUP], by name or number.
outcome<std::optional<process_user>> read_user(const settings& chosen, const config& /*so_far*/) {
    if (!chosen.has("user")) return std::nullopt;
    const std::string& text = chosen.text("user");
    if (::geteuid() != 0)
        return refuse(403,
                      fmt::format("--user {}: the daemon is not root's, so its programs run as "
                                  "its own user. Leave it out, or run the daemon as root",
                                  text));
    const std::string name = text.substr(0, text.find(':'));
    process_user made;
    std::vector<char> room(64 * 1024);
    passwd found{};
    passwd* known = nullptr;
    const auto number = whole_number<std::uint32_t>(name);
    if (number)
        ::getpwuid_r(*number, &found, room.data(), room.size(), &known);
    else
        ::getpwnam_r(name.c_str(), &found, room.data(), room.size(), &known);
    if (known == nullptr && (!number || *number == UINT32_MAX))
        return refuse(400, fmt::format("--user: this machine has no user \"{}\"", name));
    made.user = known != nullptr ? known->pw_uid : *number;
    made.group = known != nullptr ? known->pw_gid : *number;
    if (known != nullptr) {
        int count = 256;
        std::vector<gid_t> groups(static_cast<std::size_t>(count));
        if (::getgrouplist(known->pw_name, known->pw_gid, groups.data(), &count) >= 0)
            made.groups.assign(groups.begin(), groups.begin() + count);
    }
    if (name.size() < text.size()) {
        const std::string group_name = text.substr(name.size() + 1);
        group its{};
        group* group_known = nullptr;
        const auto group_number = whole_number<std::uint32_t>(group_name);
        if (!group_number)
            ::getgrnam_r(group_name.c_str(), &its, room.data(), room.size(), &group_known);
        if (!group_number && group_known == nullptr)
            return refuse(400, fmt::format("--user: this machine has no group \"{}\"", group_name));
        made.group = group_number ? *group_number : group_known->gr_gid;
        made.groups = {made.group};
    }
    return made;
}

outcome<restart_rule> read_restart(const settings& chosen, const config& /*so_far*/) {
    using after = restart_rule::after;
    const std::string& text = chosen.text("restart");
    if (text == "no") return restart_rule{};
    if (text == "always" || text == "unless-stopped") return restart_rule{after::any_end, {}};
    if (text == "on-failure") return restart_rule{after::failure, {}};
    constexpr std::string_view limited = "on-failure:";
    if (text.starts_with(limited))
        if (const auto most =
                whole_number<std::uint64_t>(std::string_view(text).substr(limited.size())))
            return restart_rule{after::failure, *most};
    return refuse(400,
                  fmt::format("--restart cannot be \"{}\": write no, on-failure, on-failure:N, "
                              "always or unless-stopped",
                              text));
}

outcome<int> read_stop_signal(const settings& chosen, const config& /*so_far*/) {
    return read_signal(chosen.text("stop-signal"), "--stop-signal");
}

outcome<int> read_reload_signal(const settings& chosen, const config& /*so_far*/) {
    if (!chosen.has("reload-signal")) return 0;
    return read_signal(chosen.text("reload-signal"), "--reload-signal");
}

outcome<health_check> read_health(const settings& chosen, const config& /*so_far*/) {
    health_check made;
    if (!chosen.has("health-check")) return made;
    constexpr std::string_view flag = "--health-check";
    const std::string_view text = chosen.text("health-check");
    if (text.starts_with("exec:") && text.size() > 5) {
        made.by = health_check::kind::exec;
        made.command = text.substr(5);
        return made;
    }
    std::string_view server;
    if (text.starts_with("tcp:")) {
        made.by = health_check::kind::tcp;
        server = text.substr(text.starts_with("tcp://") ? 6 : 4);
    } else if (text.starts_with("http:")) {
        made.by = health_check::kind::http;
        server = text.substr(text.starts_with("http://") ? 7 : 5);
        const std::size_t path = std::min(server.find('/'), server.size());
        made.target = path < server.size() ? std::string(server.substr(path)) : "/";
        server = server.substr(0, path);
    } else {
        return refuse(400, fmt::format("{} cannot be \"{}\": write tcp:PORT, http://HOST:PORT/PATH "
                                       "or exec:COMMAND",
                                       flag, text));
    }
    const bool is_port = whole_number<std::uint16_t>(server).has_value();
    std::string address = is_port ? fmt::format(":{}", server) : std::string(server);
    const bool is_named_alone = made.by == health_check::kind::http && !address.contains(':');
    if (is_named_alone) address += ":80";
    auto where = read_target(address, flag);
    if (!where) return std::unexpected(std::move(where.error()));
    made.where.where = std::move(*where);
    made.host = is_named_alone ? std::string(server)
                               : fmt::format("{}:{}", made.where.where.host, made.where.where.port);
    return made;
}

outcome<std::vector<transport::address>> read_sockets(const settings& chosen,
                                                      const config& /*so_far*/) {
    std::vector<transport::address> all;
    for (const std::string& each : chosen.list("listen")) {
        auto one = read_socket_address(each);
        if (!one) return std::unexpected(std::move(one.error()));
        const bool is_chosen_by_kernel = one->path.empty() && one->port == 0;
        if (!is_chosen_by_kernel && std::ranges::find(all, *one) != all.end())
            return refuse(400, fmt::format("--listen {} is given twice", each));
        all.push_back(std::move(*one));
    }
    if (all.size() > max_sockets)
        return refuse(400, fmt::format("--listen is given {} times; a program gets at most {} "
                                       "sockets",
                                       all.size(), max_sockets));
    return all;
}

// --- Rows ----------------------------------------------------------------------------------------

bound_options<config> program_rows() {
    return {
        row::read_by(&config::command,
                     {.name = "command",
                      .letter = 'c',
                      .value_name = "PATH",
                      .help = "the program's file; no shell reads it",
                      .is_path = true,
                      .foreign_names = {{"exec", "--command PATH --arg ARGUMENT"},
                                        {"entrypoint", "--command PATH"}}},
                     read_command),
        row::read_by(&config::arguments,
                     {.name = "arg",
                      .letter = 'a',
                      .kind = option_kind::list,
                      .value_name = "ARGUMENT",
                      .help = "argument of the program; may be given again. One that begins with a "
                              "dash: --arg=-v",
                      .foreign_names = {{"args", "--arg ARGUMENT for each"}}},
                     read_arguments),
        row::whole_path(&config::directory,
                        {.name = "directory",
                         .letter = 'w',
                         .value_name = "DIR",
                         .help = "working folder; the command line gives its own where there is "
                                 "none",
                         .is_path = true,
                         .foreign_names = {{"workdir", "--directory DIR"},
                                           {"working-directory", "--directory DIR"},
                                           {"cwd", "--directory DIR"}}}),
        row::read_by(&config::variables,
                     {.name = "env",
                      .letter = 'e',
                      .kind = option_kind::list,
                      .value_name = "NAME=VALUE",
                      .help = "variable of its environment, beside the daemon's; may be given "
                              "again. `eddy show` hides values of names with PASSWORD, SECRET, "
                              "TOKEN or KEY",
                      .shown = shown_variable,
                      .foreign_names = {{"environment", "--env NAME=VALUE"}}},
                     read_given_variables),
        row::whole_path(&config::variables_file,
                        {.name = "env-file",
                         .value_name = "FILE",
                         .help = "file of such variables, a line each, read at each start of the "
                                 "program: for secrets. --env counts more",
                         .is_path = true}),
        row::read_by(&config::user,
                     {.name = "user",
                      .letter = 'u',
                      .value_name = "USER[:GROUP]",
                      .help = "user that it runs as, by name or number; only root's daemon may "
                              "choose",
                      .foreign_names = {{"run-as", "--user USER"}, {"uid", "--user NUMBER"}}},
                     read_user),
    };
}

bound_options<config> limit_rows() {
    return {
        row::bound(&config::memory,
                   {.name = "limit-memory",
                    .kind = option_kind::size,
                    .value_name = "SIZE",
                    .help = "writable memory that each of its processes may allocate "
                            "(RLIMIT_DATA), such as 512M: more fails in the program",
                    .minimum = 1 << 20,
                    .foreign_names = {{"memory", "--limit-memory SIZE"}}}),
        row::bound(&config::files,
                   {.name = "limit-files",
                    .kind = option_kind::integer,
                    .value_name = "N",
                    .help = "files and sockets that each of its processes may have open",
                    .minimum = 3,
                    .maximum = 1 << 30}),
        row::bound(&config::processor_time,
                   {.name = "limit-cpu",
                    .kind = option_kind::duration,
                    .value_name = "TIME",
                    .help = "processor time, in whole seconds, that each of its processes may use "
                            "in all: the kernel ends it then",
                    .minimum = ns_a_second,
                    .foreign_names = {{"cpus", "--limit-cpu TIME, which is a sum"}}}),
        row::bound(&config::processes,
                   {.name = "limit-processes",
                    .kind = option_kind::integer,
                    .value_name = "N",
                    .help = "processes and threads that its user may have, in all; root has no "
                            "such limit",
                    .minimum = 1,
                    .maximum = 1 << 30,
                    .foreign_names = {{"pids-limit", "--limit-processes N"}}}),
    };
}

bound_options<config> restart_rows() {
    return {
        row::read_by(&config::restart,
                     {.name = "restart",
                      .value_name = "WHEN",
                      .default_value = "no",
                      .help = "start it again when it has ended: no; on-failure, after a status "
                              "other than 0, a signal or failed health checks; on-failure:N, at "
                              "most N times in a row; always; unless-stopped, which is the same, "
                              "since `eddy stop` always lasts",
                      .live = true},
                     read_restart),
        row::bound(&config::first_pause,
                   {.name = "restart-delay",
                    .kind = option_kind::duration,
                    .value_name = "TIME",
                    .default_value = "100ms",
                    .help = "pause before it is started again, which doubles from one to the next",
                    .minimum = 1'000'000,
                    .live = true,
                    .foreign_names = {{"restart-sec", "--restart-delay TIME"}}}),
        row::bound(&config::longest_pause, {.name = "restart-max-delay",
                                            .kind = option_kind::duration,
                                            .value_name = "TIME",
                                            .default_value = "60s",
                                            .help = "longest such pause",
                                            .minimum = 1'000'000,
                                            .live = true}),
        row::bound(&config::reset_after,
                   {.name = "restart-reset",
                    .kind = option_kind::duration,
                    .value_name = "TIME",
                    .default_value = "10s",
                    .help = "after it has run for this time, pauses and counts begin anew",
                    .minimum = 1,
                    .live = true}),
        row::read_by(&config::stop_signal,
                     {.name = "stop-signal",
                      .value_name = "SIGNAL",
                      .default_value = "TERM",
                      .help = "signal that stops it, and all processes of its group",
                      .live = true},
                     read_stop_signal),
        row::bound(&config::stop_timeout,
                   {.name = "stop-timeout",
                    .kind = option_kind::duration,
                    .value_name = "TIME",
                    .default_value = "10s",
                    .help = "time for it to end after that; then it is killed (SIGKILL)",
                    .maximum = 3600 * ns_a_second,
                    .live = true,
                    .foreign_names = {{"stop-grace-period", "--stop-timeout TIME"}}}),
        row::read_by(
            &config::reload_signal,
            {.name = "reload-signal",
             .value_name = "SIGNAL",
             .help = "signal that `eddy reload` sends to the program, such as HUP; without "
                     "it the program is started anew",
             .live = true},
            read_reload_signal),
    };
}

bound_options<config> output_rows() {
    return {
        row::whole_path(&config::log,
                        {.name = "log",
                         .value_name = "FILE",
                         .help = "file to which its output is appended, a line each; `eddy reload` "
                                 "opens it again",
                         .is_path = true}),
        row::choice(&config::has_journal,
                    {.name = "journal",
                     .kind = option_kind::choice,
                     .value_name = "yes|no",
                     .default_value = "yes",
                     .help = "write its output to the journal, which `eddy logs` shows",
                     .live = true},
                    {{"yes", true}, {"no", false}}),
        row::bound(&config::max_line, {.name = "max-line",
                                       .kind = option_kind::size,
                                       .value_name = "SIZE",
                                       .default_value = "4KiB",
                                       .help = "longest line of its output; a longer one is cut",
                                       .minimum = 16,
                                       .maximum = 1 << 20,
                                       .live = true}),
        row::bound(&config::log_rate,
                   {.name = "log-rate",
                    .kind = option_kind::integer,
                    .value_name = "N",
                    .default_value = "1000",
                    .help = "lines a second that the journal takes; further ones are counted and "
                            "left out, but for those to --log",
                    .minimum = 1,
                    .maximum = 1'000'000,
                    .live = true}),
    };
}

bound_options<config> health_rows() {
    return {
        row::read_by(&config::health,
                     {.name = "health-check",
                      .value_name = "CHECK",
                      .help = "tcp:PORT or tcp:HOST:PORT, which accepts a connection; "
                              "http://HOST:PORT/PATH, which answers with a status below 400; "
                              "exec:COMMAND, of which the shell's status is 0",
                      .foreign_names = {{"health-cmd", "--health-check exec:COMMAND"}}},
                     read_health),
        row::bound(&config::health_interval, {.name = "health-interval",
                                              .kind = option_kind::duration,
                                              .value_name = "TIME",
                                              .default_value = "10s",
                                              .help = "time from one check to the next",
                                              .minimum = 1'000'000,
                                              .live = true}),
        row::bound(&config::health_timeout, {.name = "health-timeout",
                                             .kind = option_kind::duration,
                                             .value_name = "TIME",
                                             .default_value = "5s",
                                             .help = "time for a check to succeed",
                                             .minimum = 1'000'000,
                                             .live = true}),
        row::bound(&config::health_fall,
                   {.name = "health-fall",
                    .kind = option_kind::integer,
                    .value_name = "N",
                    .default_value = "3",
                    .help = "failed checks in a row after which it is unhealthy, and is started "
                            "again if --restart says so",
                    .minimum = 1,
                    .maximum = 1'000'000,
                    .live = true,
                    .foreign_names = {{"health-retries", "--health-fall N"},
                                      {"health-threshold", "--health-fall N"}}}),
        row::bound(&config::health_grace,
                   {.name = "health-start",
                    .kind = option_kind::duration,
                    .value_name = "TIME",
                    .default_value = "0s",
                    .help = "time after its start in which failed checks do not count",
                    .live = true,
                    .foreign_names = {{"health-start-period", "--health-start TIME"}}}),
    };
}

bound_options<config> socket_rows() {
    return {
        row::read_by(&config::sockets,
                     {.name = "listen",
                      .letter = 'l',
                      .kind = option_kind::list,
                      .value_name = "ADDRESS",
                      .help = "socket that it gets as systemd gives them (LISTEN_FDS: descriptors "
                              "3, 4, …): HOST:PORT, :PORT of this machine, *:PORT, "
                              "udp://HOST:PORT or unix:///PATH; may be given again. It stays open "
                              "while the program is started anew: clients and datagrams wait, and "
                              "none is refused",
                      .is_uri = true},
                     read_sockets),
        row::bound(&config::notifies,
                   {.name = "notify",
                    .kind = option_kind::flag,
                    .help = "it is started once it says READY=1 to $NOTIFY_SOCKET, as "
                            "sd_notify(3) does, within 25 seconds"}),
    };
}

// --- Contradictions ------------------------------------------------------------------------------

outcome<> without_effect(const settings& chosen, std::string_view reason,
                         std::initializer_list<std::string_view> options) {
    for (const std::string_view name : options)
        if (chosen.given(name))
            return refuse(400, fmt::format("--{0} has no effect {1}; leave it out, or take it back "
                                           "with --unset {0}",
                                           name, reason));
    return {};
}

outcome<> check_combinations(const settings& chosen, const config& read) {
    outcome<> fine;
    const auto check = [&](bool applies, std::string_view reason,
                           std::initializer_list<std::string_view> options) {
        if (applies && fine) fine = without_effect(chosen, reason, options);
    };
    check(read.health.by == health_check::kind::none, "without --health-check",
          {"health-interval", "health-timeout", "health-fall", "health-start"});
    check(read.restart.which == restart_rule::after::no_end, "with --restart no",
          {"restart-delay", "restart-max-delay", "restart-reset"});
    if (fine && read.first_pause > read.longest_pause)
        return refuse(400, "--restart-delay is longer than --restart-max-delay");
    return fine;
}

problem explain_command(const config& of, int error, bool is_folder) {
    if (is_folder)
        return {400, fmt::format("--command {} is a folder; name the program's file", of.command)};
    if (error == ENOENT)
        return {400, fmt::format("there is no program {}; `command -v NAME` shows where a program "
                                 "is",
                                 of.command)};
    return {403, fmt::format("{} cannot be executed: {}; `chmod +x` makes a file a program",
                             of.command, std::generic_category().message(error))};
}

}  // namespace

std::vector<process_limit> config::limits() const {
    std::vector<process_limit> all;
    const auto add = [&](int resource, std::int64_t most) {
        if (most > 0) all.push_back({resource, static_cast<std::uint64_t>(most)});
    };
    add(RLIMIT_DATA, memory);
    add(RLIMIT_NOFILE, files);
    add(RLIMIT_CPU, std::chrono::duration_cast<std::chrono::seconds>(processor_time).count());
    add(RLIMIT_NPROC, processes);
    return all;
}

const bound_options<config>& option_rows() {
    static const bound_options<config> rows = joined({program_rows(), limit_rows(), restart_rows(),
                                                      output_rows(), health_rows(), socket_rows()});
    return rows;
}

outcome<config> read_config(const settings& chosen) {
    config read;
    if (auto bound = read_bound(option_rows(), chosen, read); !bound)
        return std::unexpected(std::move(bound.error()));
    if (auto fine = check_combinations(chosen, read); !fine)
        return std::unexpected(std::move(fine.error()));
    return read;
}

outcome<> check_files(const config& of) {
    struct stat about{};
    const bool is_there = ::stat(of.command.c_str(), &about) == 0;
    if (!is_there) return std::unexpected(explain_command(of, errno, false));
    if (S_ISDIR(about.st_mode)) return std::unexpected(explain_command(of, EISDIR, true));
    if ((about.st_mode & 0111) == 0) return std::unexpected(explain_command(of, EACCES, false));
    if (!of.directory.empty()) {
        struct stat folder{};
        if (::stat(of.directory.c_str(), &folder) != 0 || !S_ISDIR(folder.st_mode))
            return refuse(400,
                          fmt::format("--directory {}: there is no such folder", of.directory));
    }
    if (of.variables_file.empty()) return {};
    auto text = read_regular(of.variables_file, max_environment_file);
    if (!text)
        return refuse(400, fmt::format("--env-file {} cannot be read: {}", of.variables_file,
                                       text.error().message()));
    if (auto read = read_variables(*text, of.variables_file); !read)
        return std::unexpected(std::move(read.error()));
    return {};
}

}  // namespace eddy::runtime::program
