// The list of commands.
#include "cli/commands/commands.hpp"

namespace eddy::cli {

std::vector<command> all_commands() {
    return {
        create_command(), start_command(), stop_command(), reload_command(), remove_command(),
        send_command(),   ls_command(),    ps_command(),   show_command(),   stats_command(),
        edit_command(),   logs_command(),  db_command(),   bench_command(),  version_command(),
    };
}

}  // namespace eddy::cli
