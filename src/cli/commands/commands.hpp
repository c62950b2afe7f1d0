// Commands of `eddy`: all but `daemon`, which main.cpp adds. A new command is one entry of
// all_commands() and the function that makes it.
#pragma once

#include "cli/program.hpp"

#include <vector>

namespace eddy::cli {

// commands_change.cpp: make, start, stop, change, remove.
command create_command();
command start_command();
command stop_command();
command reload_command();
command remove_command();
command send_command();

// command_edit.cpp
command edit_command();

// commands_show.cpp: look.
command ls_command();
command ps_command();
command show_command();
command stats_command();
command logs_command();
command version_command();

// commands_db.cpp: a command for a cache.
command db_command();

// bench/commands.cpp: load generators.
command bench_command();

/// In the order of `eddy help`.
std::vector<command> all_commands();

}  // namespace eddy::cli
