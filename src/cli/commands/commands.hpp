// Commands of `eddy`: all but `daemon`, which main.cpp adds. A new command is one entry of
// all_commands() and the function that makes it.
#pragma once

#include "cli/program.hpp"
#include "cli/request.hpp"

#include <string>
#include <vector>

namespace eddy::cli {

// commands_change.cpp: make, start, stop, change, remove.
command create_command();
command start_command();
command stop_command();
command reload_command();
command restart_command();
command reload_lua_command();
command remove_command();
command send_command();

/// The flags of commands that create a runtime, with those of its owner and group behind them; and
/// what was given of these, in the body of the request.
std::vector<flag> with_ownership(std::vector<flag> flags);
void add_ownership(json& body, const arguments& given);
/// Creation of the runtime of a request's body, and its report. Yields the exit status.
int request_create(context& with, const json& body);

// command_add.cpp: a program.
command add_command();

// attachment.cpp
command attach_command();

// names.cpp: names and owners.
command rename_command();
command owner_command();

// command_edit.cpp
command edit_command();

// commands_show.cpp: look.
command ls_command();
command ps_command();
command show_command();
command logs_command();
command completion_command();
command version_command();

// commands_stats.cpp: counters and rates.
command stats_command();
command top_command();

// events.cpp, wait.cpp: what happens.
command events_command();
command wait_command();

// commands_cluster.cpp: the members of a cluster of daemons.
command cluster_command();

// command_upgrade.cpp: `eddy daemon --upgrade`.
struct upgrade_order {
    std::string program = {};  ///< absolute path
    double timeout_s = 0;      ///< 0: the daemon's default
};
int upgrade_daemon(const context& with, const upgrade_order& order);

// commands_db.cpp: a command for a cache.
command db_command();

// command_console.cpp
command console_command();

// stack/commands.cpp: the runtimes of a file.
command up_command();
command down_command();
command diff_command();
command validate_command();
command export_command();

// bench/commands.cpp: load generators.
command bench_command();

// lua/commands.cpp: scripts.
command script_command();

/// In the order of `eddy help`.
std::vector<command> all_commands();

}  // namespace eddy::cli
