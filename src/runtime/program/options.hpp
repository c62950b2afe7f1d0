// Options of `eddy create program`, as a table and as what the runtime works with.
#pragma once

#include <eddy/io/process.hpp>
#include <eddy/io/timer.hpp>
#include <eddy/transport/transport.hpp>

#include "base/problem.hpp"
#include "runtime/options/bound_options.hpp"
#include "runtime/options/settings.hpp"
#include "runtime/server_address.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace eddy::runtime::program {

/// Ends of the program after which it is started again.
struct restart_rule {
    enum class after : std::uint8_t { no_end, failure, any_end };
    after which = after::no_end;
    std::optional<std::uint64_t> most;  ///< restarts in a row; none: no limit

    friend bool operator==(const restart_rule&, const restart_rule&) = default;
};

/// Check of the program's health.
struct health_check {
    enum class kind : std::uint8_t { none, tcp, http, exec };
    kind by = kind::none;
    server_address where;  ///< of tcp and http
    std::string target;    ///< of http: the path and query
    std::string host;      ///< of http: the field Host
    std::string command;   ///< of exec, for sh(1)

    friend bool operator==(const health_check&, const health_check&) = default;
};

/// Most sockets that a program is given.
inline constexpr std::size_t max_sockets = 32;

/// Checked and converted.
struct config {
    std::string command;
    std::vector<std::string> arguments;
    std::string directory;
    std::vector<std::string> variables;
    std::string variables_file;
    std::optional<process_user> user;
    std::int64_t memory = 0;     ///< RLIMIT_DATA; 0: the daemon's
    std::int64_t files = 0;      ///< RLIMIT_NOFILE
    duration processor_time{};   ///< RLIMIT_CPU
    std::int64_t processes = 0;  ///< RLIMIT_NPROC
    restart_rule restart;
    duration first_pause{};
    duration longest_pause{};
    duration reset_after{};
    int stop_signal = 0;
    duration stop_timeout{};
    int reload_signal = 0;  ///< 0: a reload is a restart
    std::string log;
    bool has_journal = true;
    std::size_t max_line = 0;
    std::uint64_t log_rate = 0;  ///< lines a second in the journal
    health_check health;
    duration health_interval{};
    duration health_timeout{};
    std::uint64_t health_fall = 0;
    duration health_grace{};
    std::vector<transport::address> sockets;
    bool notifies = false;

    std::vector<process_limit> limits() const;
};

/// Rows of the options, in the order of help.
const bound_options<config>& option_rows();
outcome<config> read_config(const settings& chosen);
/// Checks that the program's file can be executed, and the file of its variables be read.
outcome<> check_files(const config& of);

}  // namespace eddy::runtime::program
